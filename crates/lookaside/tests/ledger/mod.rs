//! Values that are counted when they are made and when they end, and user code that panics when it is told to.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::borrow::Borrow;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use lookaside::{Config, PageKind};

use outside::Random;

pub(crate) fn one_line() -> Config {
    Config::with_size(64).pages(PageKind::Base)
}

/// Records made and dropped.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub made: AtomicUsize,
    pub dropped: AtomicUsize,
}

impl Ledger {
    pub(crate) fn record(self: &Arc<Self>, number: u64) -> Record {
        self.made.fetch_add(1, Ordering::SeqCst);
        Record { number: Box::new(AtomicU64::new(number)), ledger: self.clone(), panics: false }
    }

    pub(crate) fn name(self: &Arc<Self>, number: u64) -> Name {
        Name { number, record: self.record(number) }
    }

    /// All records are gone, now: none is left, and none was dropped twice.
    #[track_caller]
    pub(crate) fn settle(&self) {
        self.settle_but(0);
    }

    /// So many records are left, and no more are gone.
    #[track_caller]
    pub(crate) fn settle_but(&self, left: usize) {
        let (dropped, made) = (self.dropped.load(Ordering::SeqCst), self.made.load(Ordering::SeqCst));
        assert_eq!(dropped + left, made, "dropped too late, twice or too early");
    }
}

/// A value on the heap that counts its end, and in which it shows that it has ended.
#[derive(Debug)]
pub(crate) struct Record {
    number: Box<AtomicU64>,
    pub ledger: Arc<Ledger>,
    pub panics: bool,
}

pub(crate) const GONE: u64 = u64::MAX;

/// A key with a record, which is looked at in each comparison.
#[derive(Debug)]
pub(crate) struct Name {
    pub number: u64,
    pub record: Record,
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> std::cmp::Ordering {
        self.record.number().cmp(&other.record.number())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.record.number() == other.record.number()
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl Borrow<u64> for Name {
    fn borrow(&self) -> &u64 {
        &self.number
    }
}

impl Record {
    pub(crate) fn number(&self) -> u64 {
        let number = self.number.load(Ordering::SeqCst);
        assert_ne!(number, GONE, "a value that has been dropped");
        number
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        assert_ne!(self.number.swap(GONE, Ordering::SeqCst), GONE);
        self.ledger.dropped.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "on purpose");
        fuse();
    }
}

thread_local! {
    pub static LUCK: Cell<u64> = const { Cell::new(0x1234_5678_9abc) };
    static FUSE: Cell<Option<u64>> = const { Cell::new(None) };
}

/// True once in so many times.
pub(crate) fn once_in(times: u64) -> bool {
    LUCK.with(|luck| {
        let mut random = Random(luck.get());
        let once = random.below(times as usize) == 0;
        luck.set(random.0);
        once
    })
}

/// Counts down, and panics when it gets to zero.
pub(crate) fn fuse() {
    // Threads that end drop values after their locals.
    let burnt = FUSE.try_with(|fuse| {
        let left = fuse.get();
        fuse.set(left.and_then(|left| left.checked_sub(1)));
        left == Some(0)
    });
    assert!(!burnt.unwrap_or(false), "on purpose");
}
/// Calls `what` with a fuse of 0, 1, 2 and so on steps, until it comes to its end. How often it did not.
pub(crate) fn burn(mut what: impl FnMut()) -> u64 {
    quiet();
    for steps in 0.. {
        FUSE.set(Some(steps));
        let outcome = catch_unwind(AssertUnwindSafe(&mut what));
        let left = FUSE.take();
        if outcome.is_ok() && left.is_some() {
            return steps;
        }
        assert!(steps < 10_000);
    }
    unreachable!()
}

/// Panics on purpose are not shown.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !panic.payload_as_str().is_some_and(|message| message.contains("on purpose")) {
                usual(panic);
            }
        }));
    });
}

/// Changes that a test makes. Fewer under the sanitizers, which set this.
pub(crate) fn steps() -> usize {
    std::env::var("LOOKASIDE_STRESS_CHANGES").map_or(20_000, |changes| changes.parse().expect("a number"))
}

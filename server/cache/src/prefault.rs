//! Prefaulting: memory that items and index will come to next is there before they do.
//!
//! Both grow from the beginning of a region to its end, and whoever is the first to write to a page waits until the
//! machine has found and cleared it. A huge page took six milliseconds on a virtual machine, whose host has to find the
//! memory as well; a request would wait for it. So a thread of the lowest priority does that wait, one huge page ahead,
//! as soon as the last one is in use. It asks the kernel for the page; it does not write, so that nobody has to know
//! of it. Nothing depends on it: where it comes too late, or the kernel does not know the request (before Linux 5.14),
//! the first to write waits as before.
//!
//! Pages of four kilobytes are not asked for: each takes some microseconds at the most.
//!
//! It asks only for what the limit allows items or index to reach, and begins with what the first item will take. So it
//! makes nothing resident that a cache in use would not, but for a part of one piece.
//!
//! A cache in a program has one thread beside the program's, which keeps house as well. It has the priority of the
//! others: on a core that they share, who stores waits for the page as before.
//!
//! Rejected: *all memory at the start*, because a cache is to take what it needs.

use std::sync::Arc;
use std::thread;

use pages::{PageKind, Region};

use crate::arena::PAGE;
use crate::clock::Clock;
use crate::policy::Policy;
use crate::pool::PAGES_A_CALL;
use crate::shared::Engine;

/// What is asked for at once.
const PIECE: usize = PageKind::Transparent.size();
/// The pool tells of pages that are taken in time.
const _: () = assert!(PAGES_A_CALL * PAGE * 2 <= PIECE);

/// The one who does it.
pub struct Prefaulter<P: Policy = Clock> {
    engine: Arc<Engine<P>>,
    /// Where the piece begins that was asked for last.
    items: Option<usize>,
    index: Option<usize>,
}

impl<P: Policy> Prefaulter<P> {
    pub(crate) fn new(engine: Arc<Engine<P>>) -> Self {
        Prefaulter { engine, items: None, index: None }
    }

    /// Looks whether a piece is wanted, for items or for the index, and asks the machine for it.
    pub fn step(&mut self) {
        let engine = &*self.engine;
        let (used, left) = engine.pool.frontier();
        ask(engine.arena.region(), used, left, &mut self.items);
        // The index gets its share of the limit with the items' pages.
        ask(engine.table.region(), engine.table.bytes(), left, &mut self.index);
    }

    /// Has this thread unparked as pages are taken, to step then.
    pub(crate) fn is_called(&self) {
        self.engine.pool.call_as_pages_are_taken(thread::current());
    }

    /// Goes on in this thread until `stops`: as pages are taken, and when the thread is unparked.
    pub fn run(&mut self, stops: impl Fn() -> bool) {
        self.is_called();
        while !stops() {
            self.step();
            thread::park();
        }
    }
}

/// Asks for the piece behind `used` bytes, if `left` bytes go so far, and it was not the `last` that was asked for.
fn ask(region: &Region, used: usize, left: usize, last: &mut Option<usize>) {
    let is_huge = matches!(region.obtained(), PageKind::Transparent | PageKind::Huge2M);
    if is_huge
        && let Some(piece) = next_piece(used, left)
        && *last != Some(piece)
    {
        *last = Some(piece);
        region.populate(piece..piece + PIECE);
    }
}

/// Where the piece begins that is wanted when so many bytes are in use and so many more may be. It is wanted as soon as
/// the one before it is in use. A thread that serves may have most of the core, and items and index come to their ends
/// together now and then: half a piece before its end was too late for some.
fn next_piece(used: usize, left: usize) -> Option<usize> {
    let piece = used.next_multiple_of(PIECE);
    let ahead = piece - used;
    (ahead < left).then_some(piece)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::config::Config;
    use crate::engine::{Cache, Entry, Session, Verb};

    #[test]
    fn the_next_piece_is_wanted_where_it_can_be_reached() {
        for (used, left, wanted) in [
            (0, usize::MAX, Some(0)),
            (0, 0, None),
            (PAGE, usize::MAX, Some(PIECE)),
            (PAGE, PIECE - PAGE, None),
            (PAGE, PIECE - PAGE + 1, Some(PIECE)),
            (PIECE - PAGE, PAGE, None),
            (PIECE - PAGE, PAGE + 1, Some(PIECE)),
            (PIECE, usize::MAX, Some(PIECE)),
            (PIECE, 0, None),
            (PIECE + PAGE, usize::MAX, Some(2 * PIECE)),
        ] {
            assert_eq!(next_piece(used, left), wanted, "{used} used, {left} left");
        }
    }

    /// Stores until so many bytes of pages are in use.
    fn store_to(cache: &Cache, session: &mut Session, bytes: usize) {
        for key in 0_u32.. {
            if cache.engine().pool.frontier().0 >= bytes {
                return;
            }
            session.store(Verb::Set, Entry::new(&key.to_be_bytes()), &[1; 1000]).expect("room");
        }
    }

    fn resident(cache: &Cache) -> usize {
        cache.engine().arena.region().census().expect("a kernel that tells").resident
    }

    #[test]
    fn the_next_piece_is_resident_before_it_is_used() {
        for kind in [PageKind::Base, PageKind::Transparent] {
            let config = Config { pages: kind, ..Config::with_limit(64 << 20) };
            let cache: Cache = Cache::new(config).expect("a cache");
            let (mut session, mut prefaulter) = (cache.session(), cache.prefaulter());
            // Where the machine gives huge pages.
            let is_asked = cache.engine().arena.region().obtained() == PageKind::Transparent;
            let expected = |pieces: usize| if is_asked { pieces * PIECE } else { 0 };
            assert_eq!(resident(&cache), 0, "{kind:?}: nobody has asked");
            prefaulter.step();
            assert_eq!(resident(&cache), expected(1), "{kind:?}: the first item has its place");
            store_to(&cache, &mut session, PAGE);
            prefaulter.step();
            assert_eq!(prefaulter.items, is_asked.then_some(PIECE), "{kind:?}");
            store_to(&cache, &mut session, 2 * PIECE - PAGE);
            if is_asked {
                assert_eq!(resident(&cache), expected(2), "{kind:?}");
            }
            // What is stored then is found: asking changed nothing.
            let pinned = session.pin();
            assert!((0..1000_u32).all(|key| pinned.get(&key.to_be_bytes()).is_some()), "{kind:?}");
        }
    }

    #[test]
    fn a_full_cache_takes_no_more_than_its_limit_and_a_piece_for_items_and_index() {
        let limit = 64 << 20;
        let cache: Cache = Cache::new(Config::with_limit(limit)).expect("a cache");
        let (mut session, mut prefaulter) = (cache.session(), cache.prefaulter());
        for key in 0..limit as u32 / 500 {
            session.store(Verb::Set, Entry::new(&key.to_be_bytes()), &[1; 1000]).expect("room");
            if key % 64 == 0 {
                prefaulter.step();
            }
        }
        let index = cache.engine().table.region().census().expect("a kernel that tells").resident;
        let all = resident(&cache) + index;
        assert!(all <= limit + 2 * PIECE, "{all} of {limit}");
    }

    #[test]
    fn a_thread_is_woken_as_pages_are_taken() {
        let cache: Cache = Cache::new(Config::with_limit(64 << 20)).expect("a cache");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let mut prefaulter = cache.prefaulter();
                prefaulter.run(|| stop.load(Ordering::Relaxed));
                prefaulter.items
            });
            let mut session = cache.session();
            let patience = Instant::now() + Duration::from_secs(60);
            store_to(&cache, &mut session, PAGES_A_CALL * PAGE);
            let is_asked = cache.engine().arena.region().obtained() == PageKind::Transparent;
            while is_asked && resident(&cache) < PIECE + PIECE / 2 {
                assert!(Instant::now() < patience, "nobody asked for the next piece");
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            sleeper.thread().unpark();
            assert_eq!(sleeper.join().expect("no panic").is_some(), is_asked);
        });
    }
}

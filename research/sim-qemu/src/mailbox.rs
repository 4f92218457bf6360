//! The mailbox as the plugin reaches it: the guest's own page, and only while it is there.
//!
//! The plugin goes to the page by its address, in a process that it shares with the guest. A guest that greets without
//! having mapped it, or takes it away again, must come to no more than not being answered. So the system is asked
//! ([`crate::maps`]) when it greets, and anew after each system call that did something to the page (unmapped or
//! replaced it, or gave it other rights), or that failed and may have done a part of it. All are rare. In between
//! nothing happens to it on the thread that is served. (Of several threads, one can take the page from under another.
//! Then the other's own moves to it fault, plugin or not.)
//!
//! Rejected: to forget the page whenever a call names it. One with enough rights is as good as before.

#![allow(unsafe_code, reason = "the guest's page has an address, and nothing else")]

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::address_space::Change;
use crate::maps;
use crate::protocol::{MAILBOX, MAILBOX_BYTES};

/// The page in the guest's addresses.
const PAGE: Range<u64> = MAILBOX..MAILBOX + MAILBOX_BYTES;

/// The page that a guest has greeted with.
#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    /// Where it is in this process; 0 while there is none.
    at: AtomicUsize,
}

impl Mailbox {
    /// The guest has greeted; `guest_base` is added to its addresses. Whether its page is there.
    pub(crate) fn open(&self, guest_base: u64) -> bool {
        let at = guest_base.wrapping_add(MAILBOX) as usize;
        let there = is_there(at);
        self.at.store(if there { at } else { 0 }, Ordering::Relaxed);
        there
    }

    pub(crate) fn is_open(&self) -> bool {
        self.at.load(Ordering::Relaxed) != 0
    }

    /// A system call has done this to pages. If the mailbox is none any more, the guest must greet again.
    pub(crate) fn pages_change(&self, changes: &[Change]) {
        if changes.iter().any(|change| change.concerns(&PAGE)) {
            self.check();
        }
    }

    /// A system call has failed that may have done a part of what it was asked for.
    pub(crate) fn check(&self) {
        let at = self.at.load(Ordering::Relaxed);
        if at != 0 && !is_there(at) {
            self.at.store(0, Ordering::Relaxed);
        }
    }

    fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let at = self.at.load(Ordering::Relaxed);
        // SAFETY: `at` is where the page was when the system was last asked, which is after all that the guest did to
        // it, see the head of this file; the words that `protocol` names are aligned and within it, and the guest's own
        // memory.
        (at != 0).then(|| unsafe { &*ptr::with_exposed_provenance(at + offset as usize) })
    }

    /// None while there is no page.
    pub(crate) fn read(&self, offset: u64) -> Option<u64> {
        self.word(offset).map(|word| word.load(Ordering::Relaxed))
    }

    /// Nothing while there is no page.
    pub(crate) fn write(&self, offset: u64, value: u64) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// Whether the whole page can be read and written.
fn is_there(at: usize) -> bool {
    maps::own_memory().iter().any(|range| range.start <= at && at + MAILBOX_BYTES as usize <= range.end)
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    use super::*;
    use crate::protocol::{RESULT, WHO};

    const BYTES: usize = MAILBOX_BYTES as usize;

    /// A page, and what is added to a guest's address so that its mailbox is there.
    fn page() -> (*mut c_void, u64) {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, of nobody else's.
        let page = unsafe { mmap_anonymous(ptr::null_mut(), BYTES, rights, MapFlags::PRIVATE) };
        let page = page.expect("a page");
        (page, (page.expose_provenance() as u64).wrapping_sub(MAILBOX))
    }

    #[test]
    fn without_a_page_nothing_is_read_or_written() {
        let mailbox = Mailbox::default();
        // Below what any process may map.
        assert!(!mailbox.open(4096_u64.wrapping_sub(MAILBOX)) && !mailbox.is_open());
        mailbox.write(WHO, 7);
        assert_eq!(mailbox.read(WHO), None);
    }

    #[test]
    fn a_page_that_goes_is_not_touched_again() {
        let (page, base) = page();
        let mailbox = Mailbox::default();
        assert!(mailbox.open(base) && mailbox.is_open());
        mailbox.write(RESULT, 7);
        assert_eq!(mailbox.read(RESULT), Some(7));
        // Rights that are enough; what happens to others.
        let others = [Change::Gone(0..MAILBOX), Change::Protected(MAILBOX + MAILBOX_BYTES..u64::MAX)];
        mailbox.pages_change(&[Change::Protected(PAGE)]);
        mailbox.pages_change(&others);
        mailbox.check();
        assert_eq!(mailbox.read(RESULT), Some(7));
        // SAFETY: nobody else has a pointer to the page.
        unsafe { mprotect(page, BYTES, MprotectFlags::READ) }.expect("read only");
        mailbox.pages_change(&[Change::Protected(PAGE)]);
        assert_eq!(mailbox.read(RESULT), None);
        mailbox.write(RESULT, 8);
        assert!(!mailbox.open(base), "not as it is");
        // SAFETY: as above.
        unsafe { mprotect(page, BYTES, MprotectFlags::READ | MprotectFlags::WRITE) }.expect("as before");
        assert!(!mailbox.is_open() && mailbox.open(base), "greeted again");
        // Nothing is there, but no other test's memory can take the place.
        // SAFETY: as above.
        unsafe { mprotect(page, BYTES, MprotectFlags::empty()) }.expect("no rights");
        mailbox.pages_change(&[Change::Gone(PAGE)]);
        assert!(!mailbox.is_open());
        // SAFETY: as above.
        unsafe { munmap(page, BYTES) }.expect("unmapped");
    }
}

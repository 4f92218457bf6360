//! Pages of mixed use: filled with places of any class, one path after the other, and used again.
//!
//! The reorganisation ([`crate::relocation`]) lays what is hot together here. What was hot cools, and what lies beside
//! it in a page leaves one by one: it is moved again, replaced, or removed. A page of which three quarters are free
//! is *sparse*. It is filled again before a new one is begun, so what lies in pages of mixed use takes at most four
//! times its own room, whichever way the hot set wanders; and pages so filled are dense enough to be worth it, unless
//! what comes fits the holes badly, which whoever reorganises again and again has to look at ([`crate::background`]).
//! An *empty* page may also become a run of one class ([`crate::space`]), and when a space has no other room left,
//! classes take places in holes between others.
//!
//! A page has a bit for each unit in use. Pages that nobody is filling are listed by the eighths of them that are free,
//! so the roomiest is found at once, and a place that is given back moves its page from list to list at most.
//!
//! Whether a place lies in such a page is one bit of its page, read without a lock. It does not change while the place
//! is used, and who gives a place back has seen it published: so relaxed loads will do.
//!
//! Pages are found by their addresses, hashed with a seed that is fixed: trees that are treated alike then fill their
//! pages in the same order, and a simulation of one repeats to the last line that is written back.
//!
//! Rejected: *giving freed places to their classes' lists*: what is inserted next, which nobody has asked for, comes to
//! lie beside what is hot, and no page is ever free as a whole; *moving the rest out of sparse pages*: for a node one
//! would have to find a key below it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use foldhash::fast::FixedState;
use parking_lot::Mutex;

use crate::error::Exhausted;

/// Parts of a page that are told apart when the roomiest is sought.
const PARTS: usize = 8;
/// Free parts of a page that is worth filling again.
const SPARSE: usize = 6;
/// Sparse pages that are begun for one place, which may fit none of their holes.
const TRIES: usize = 4;
/// Holes that are passed over for one place: a huge page may have tens of thousands that are too small, and others wait
/// for the lock.
const PASSED_OVER: usize = 1024;

/// The pages of mixed use of one space.
pub(crate) struct MixedUse {
    /// Bytes of a page.
    page: usize,
    /// Bytes of a unit.
    unit: usize,
    /// Bytes of the space.
    bytes: usize,
    /// A bit for each page of the space: whether it is of mixed use. There are none before the first one is.
    marks: OnceLock<Box<[AtomicU64]>>,
    state: CachePadded<Mutex<State>>,
}

struct State {
    /// By their first bytes.
    pages: HashMap<usize, Page, FixedState>,
    /// Pages that nobody fills, by the parts of them that are free.
    by_room: [Vec<usize>; PARTS + 1],
    /// What is left of pages that became runs, and what lay between the last run and the first byte of a page.
    remnants: Vec<Range<usize>>,
    /// Places in use, by their class.
    used: Box<[usize]>,
    /// Units in use, of all pages.
    units: usize,
}

/// A page of mixed use.
struct Page {
    /// A bit for each unit that is in use.
    live: Box<[u64]>,
    /// How many these are.
    used: usize,
    /// Where it is in its list; nowhere while somebody fills it.
    listed: Option<usize>,
}

/// Pages that one reorganisation fills, in the order in which places are asked for.
#[derive(Debug, Default)]
pub(crate) struct MixedPages {
    /// Holes that are being filled: what is too large for one may leave room there for others.
    open: VecDeque<Range<usize>>,
    /// Holes that come next.
    waiting: VecDeque<Range<usize>>,
    /// Where each page taken so far begins, in bytes.
    pages: HashSet<usize, FixedState>,
    page: usize,
}

impl MixedUse {
    /// For a space of so many bytes and classes, without any pages yet.
    pub(crate) fn new(bytes: usize, page: usize, unit: usize, classes: usize) -> MixedUse {
        let state = State {
            pages: HashMap::default(),
            by_room: Default::default(),
            remnants: Vec::new(),
            used: vec![0; classes].into(),
            units: 0,
        };
        MixedUse { page, unit, bytes, marks: OnceLock::new(), state: CachePadded::new(Mutex::new(state)) }
    }

    /// Nothing to be filled yet: see [`MixedUse::close`].
    pub(crate) fn open(&self) -> MixedPages {
        MixedPages { page: self.page, ..MixedPages::default() }
    }

    /// Lets others fill these pages again.
    pub(crate) fn close(&self, filled: &mut MixedPages) {
        let state = &mut *self.state.lock();
        filled.open.clear();
        filled.waiting.clear();
        for start in filled.pages.drain() {
            state.list(start, self.units());
        }
    }

    /// Bytes of a page.
    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// Units of a page.
    fn units(&self) -> usize {
        self.page / self.unit
    }

    /// The page of a place, and the units of it that the place takes.
    fn locate(&self, start: usize, bytes: usize) -> (usize, Range<usize>) {
        let first = start % self.page / self.unit;
        (start / self.page * self.page, first..first + bytes / self.unit)
    }

    /// Whether the place at this offset is in a page of mixed use.
    #[inline]
    pub(crate) fn contains(&self, offset: usize) -> bool {
        let Some(marks) = self.marks.get() else { return false };
        let page = offset / self.page;
        marks[page / 64].load(Ordering::Relaxed) >> (page % 64) & 1 == 1
    }

    fn mark(&self, start: usize, is_mixed: bool) {
        let marks = self.marks.get_or_init(|| {
            let words = (self.bytes / self.page).div_ceil(64);
            (0..words).map(|_| AtomicU64::new(0)).collect()
        });
        let page = start / self.page;
        let (word, bit) = (&marks[page / 64], 1 << (page % 64));
        if is_mixed {
            word.fetch_or(bit, Ordering::Relaxed)
        } else {
            word.fetch_and(!bit, Ordering::Relaxed)
        };
    }

    /// A place behind those that `filling` got last, or in the next page: one that has room again, or a `fresh` one,
    /// which comes with what was passed over before it, for any other use.
    pub(crate) fn place(
        &self,
        class: usize,
        bytes: usize,
        filling: &mut MixedPages,
        fresh: impl FnOnce() -> Result<(Range<usize>, usize), Exhausted>,
    ) -> Result<usize, Exhausted> {
        let state = &mut *self.state.lock();
        let (mut left, mut tries) = (PASSED_OVER, TRIES);
        loop {
            if let Some(start) = filling.cut(bytes, &mut left) {
                return Ok(self.enter(state, class, start, bytes));
            }
            if left == 0 || tries == 0 {
                break;
            }
            tries -= 1;
            let Some(page) = state.take_roomiest(SPARSE) else { break };
            filling.begin(page, state.pages[&page].holes(self.units(), self.unit));
        }
        let (passed_over, page) = match fresh() {
            Ok(fresh) => fresh,
            // There is no other room: now every hole counts.
            Err(full) => {
                let start = filling.cut(bytes, &mut { usize::MAX }).ok_or(full)?;
                return Ok(self.enter(state, class, start, bytes));
            }
        };
        if !passed_over.is_empty() {
            state.remnants.push(passed_over);
        }
        self.mark(page, true);
        let live = vec![0; self.units().div_ceil(64)].into();
        state.pages.insert(page, Page { live, used: 0, listed: None });
        filling.begin_fresh(page);
        let start = filling.cut(bytes, &mut 0).ok_or(Exhausted)?;
        Ok(self.enter(state, class, start, bytes))
    }

    /// A place between others, wherever there is one: for a space that is full otherwise.
    pub(crate) fn place_anywhere(&self, class: usize, bytes: usize) -> Result<usize, Exhausted> {
        /// Pages whose holes are looked at.
        const LOOKED_AT: usize = 64;
        self.marks.get().ok_or(Exhausted)?;
        let state = &mut *self.state.lock();
        let roomiest = state.by_room.iter().rev().flatten().take(LOOKED_AT);
        let hole = roomiest.copied().find_map(|page| {
            let hole = state.pages[&page].holes(self.units(), self.unit).find(|hole| hole.len() >= bytes)?;
            Some(page + hole.start)
        });
        let start = hole.ok_or(Exhausted)?;
        Ok(self.enter(state, class, start, bytes))
    }

    /// Counts a place as used: where it begins.
    fn enter(&self, state: &mut State, class: usize, start: usize, bytes: usize) -> usize {
        let (page, units) = self.locate(start, bytes);
        state.used[class] += 1;
        state.units += units.len();
        state.change(page, self.units(), |page| page.set(units, true));
        start
    }

    /// Takes a place back that lies in a page of mixed use, and nobody uses.
    pub(crate) fn put_back(&self, class: usize, start: usize, bytes: usize) {
        let (page, units) = self.locate(start, bytes);
        let state = &mut *self.state.lock();
        state.used[class] -= 1;
        state.units -= units.len();
        state.change(page, self.units(), |page| page.set(units, false));
    }

    /// At most `most` bytes of a page that is empty, for any other use.
    pub(crate) fn give_up(&self, most: usize) -> Option<Range<usize>> {
        self.marks.get()?;
        let state = &mut *self.state.lock();
        let mut rest = state.remnants.pop().or_else(|| {
            let page = state.take_roomiest(PARTS)?;
            state.pages.remove(&page);
            self.mark(page, false);
            Some(page..page + self.page)
        })?;
        let end = rest.end.min(rest.start + most);
        let given = rest.start..end;
        rest.start = end;
        if !rest.is_empty() {
            state.remnants.push(rest);
        }
        Some(given)
    }

    /// Places of this class that are in use.
    pub(crate) fn used(&self, class: usize) -> usize {
        self.state.lock().used[class]
    }

    /// Bytes that are not in use, and bytes of pages that were given up and are not used again yet.
    pub(crate) fn free_bytes(&self) -> usize {
        let state = self.state.lock();
        let remnants: usize = state.remnants.iter().map(Range::len).sum();
        state.pages.len() * self.page - state.units * self.unit + remnants
    }
}

impl State {
    /// Changes what is in use of a page, and puts it into the list where it then belongs.
    fn change(&mut self, start: usize, units: usize, change: impl FnOnce(&mut Page)) {
        let page = self.pages.get_mut(&start).expect("a place lies in a page");
        let before = page.room(units);
        change(page);
        if page.listed.is_some() && page.room(units) != before {
            self.strike(start, before);
            self.list(start, units);
        }
    }

    fn list(&mut self, start: usize, units: usize) {
        let page = self.pages.get_mut(&start).expect("a page that was filled is there");
        let list = &mut self.by_room[page.room(units)];
        page.listed = Some(list.len());
        list.push(start);
    }

    /// Takes a page off the list that it is on.
    fn strike(&mut self, start: usize, room: usize) {
        let at = self.pages.get_mut(&start).and_then(|page| page.listed.take()).expect("it is on a list");
        self.by_room[room].swap_remove(at);
        if let Some(moved) = self.by_room[room].get(at) {
            self.pages.get_mut(moved).expect("pages on lists are there").listed = Some(at);
        }
    }

    /// The roomiest page of which so many parts are free, to be filled.
    fn take_roomiest(&mut self, parts: usize) -> Option<usize> {
        let room = (parts..=PARTS).rev().find(|&room| !self.by_room[room].is_empty())?;
        let start = *self.by_room[room].last()?;
        self.strike(start, room);
        Some(start)
    }
}

impl Page {
    /// Parts of it that are free; all of them only if nothing is in use.
    fn room(&self, units: usize) -> usize {
        PARTS * (units - self.used) / units
    }

    fn set(&mut self, units: Range<usize>, live: bool) {
        self.used = if live { self.used + units.len() } else { self.used - units.len() };
        for unit in units {
            let (word, bit) = (&mut self.live[unit / 64], 1 << (unit % 64));
            debug_assert_eq!(*word & bit == 0, live, "a place was given out or taken back twice");
            *word ^= bit;
        }
    }

    /// What is free of it, in bytes.
    fn holes(&self, units: usize, unit: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let next = move |from: usize, live: bool| {
            // Word by word: most words of a large page are all free, or all in use.
            let mut at = from;
            while at < units {
                let word = if live { self.live[at / 64] } else { !self.live[at / 64] } >> (at % 64);
                if word != 0 {
                    return (at + word.trailing_zeros() as usize).min(units);
                }
                at = (at / 64 + 1) * 64;
            }
            units
        };
        let mut end = 0;
        std::iter::from_fn(move || {
            let start = next(end, false);
            end = next(start, true);
            (start < units).then_some(start * unit..end * unit)
        })
    }
}

impl MixedPages {
    /// Holes that are filled at the same time.
    const OPEN: usize = 8;

    /// Whether the place at this offset is in one of these pages.
    pub(crate) fn contain(&self, offset: usize) -> bool {
        self.pages.contains(&(offset / self.page * self.page))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Takes the holes of one more page.
    fn begin(&mut self, page: usize, holes: impl Iterator<Item = Range<usize>>) {
        self.pages.insert(page);
        self.waiting.extend(holes.map(|hole| page + hole.start..page + hole.end));
    }

    /// Takes a page of which nothing is in use, before what waits.
    fn begin_fresh(&mut self, page: usize) {
        self.pages.insert(page);
        self.open(page..page + self.page);
    }

    fn open(&mut self, hole: Range<usize>) {
        self.open.push_back(hole);
        if self.open.len() > Self::OPEN {
            self.open.pop_front();
        }
    }

    /// So many bytes of the first hole that has them, if that is among the next so many. Holes that are passed over too
    /// often are left as they are.
    fn cut(&mut self, bytes: usize, left: &mut usize) -> Option<usize> {
        let mut at = self.open.iter().position(|hole| hole.len() >= bytes);
        while at.is_none() {
            *left = left.checked_sub(1)?;
            let next = self.waiting.pop_front()?;
            self.open(next);
            at = self.open.back().is_some_and(|hole| hole.len() >= bytes).then_some(self.open.len() - 1);
        }
        let hole = &mut self.open[at?];
        let start = hole.start;
        hole.start += bytes;
        if hole.start == hole.end {
            self.open.remove(at?);
        }
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: usize = 4096;
    const SIZES: [usize; 3] = [32, 96, 1056];

    fn mixed() -> MixedUse {
        MixedUse::new(64 * PAGE, PAGE, 32, SIZES.len())
    }

    #[derive(Debug, Clone)]
    enum Operation {
        Place(usize),
        Anywhere(usize),
        PutBack(usize),
        Close,
        GiveUp(usize),
    }

    fn operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            12 => (0..SIZES.len()).prop_map(Operation::Place),
            2 => (0..SIZES.len()).prop_map(Operation::Anywhere),
            10 => any::<usize>().prop_map(Operation::PutBack),
            1 => Just(Operation::Close),
            1 => (1usize..5).prop_map(|units| Operation::GiveUp(1024 * units)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        /// No two places overlap, nothing is lost, and everything is empty in the end.
        #[test]
        fn places_are_given_out_once(operations in prop::collection::vec(operation(), 1..600)) {
            let mixed = mixed();
            let mut filling = mixed.open();
            let (mut begun, mut given) = (0, Vec::<Range<usize>>::new());
            let mut live: Vec<(usize, usize)> = Vec::new();
            for operation in operations {
                let placed = match operation {
                    Operation::Place(class) => {
                        // One page in three is passed over.
                        let fresh = || match begun {
                            64.. => Err(Exhausted),
                            63 => { begun = 64; Ok((0..0, 63 * PAGE)) }
                            _ if begun % 3 == 0 => {
                                begun += 2;
                                Ok(((begun - 2) * PAGE..(begun - 1) * PAGE, (begun - 1) * PAGE))
                            }
                            _ => { begun += 1; Ok((0..0, (begun - 1) * PAGE)) }
                        };
                        mixed.place(class, SIZES[class], &mut filling, fresh).ok().map(|start| (class, start))
                    }
                    Operation::Anywhere(class) => {
                        mixed.place_anywhere(class, SIZES[class]).ok().map(|start| (class, start))
                    }
                    Operation::PutBack(which) => {
                        if !live.is_empty() {
                            let (class, start) = live.swap_remove(which % live.len());
                            mixed.put_back(class, start, SIZES[class]);
                        }
                        None
                    }
                    Operation::Close => {
                        mixed.close(&mut filling);
                        filling = mixed.open();
                        None
                    }
                    Operation::GiveUp(most) => {
                        if let Some(range) = mixed.give_up(most) {
                            prop_assert!(range.len() <= most && !mixed.contains(range.start));
                            given.push(range);
                        }
                        None
                    }
                };
                if let Some((class, start)) = placed {
                    let range = start..start + SIZES[class];
                    prop_assert_eq!(start / PAGE, (range.end - 1) / PAGE, "it crosses pages");
                    prop_assert!(mixed.contains(start));
                    let apart = |other: &Range<usize>| other.end <= range.start || range.end <= other.start;
                    prop_assert!(live.iter().all(|&(class, start)| apart(&(start..start + SIZES[class]))));
                    prop_assert!(given.iter().all(apart), "{range:?} was given up");
                    live.push((class, start));
                }
                for class in 0..SIZES.len() {
                    prop_assert_eq!(mixed.used(class), live.iter().filter(|live| live.0 == class).count());
                }
                let (used, away): (usize, usize) =
                    (live.iter().map(|live| SIZES[live.0]).sum(), given.iter().map(Range::len).sum());
                prop_assert_eq!(mixed.free_bytes() + used + away, begun * PAGE);
            }
            live.drain(..).for_each(|(class, start)| mixed.put_back(class, start, SIZES[class]));
            mixed.close(&mut filling);
            while let Some(range) = mixed.give_up(PAGE) {
                given.push(range);
            }
            prop_assert_eq!(given.iter().map(Range::len).sum::<usize>(), begun * PAGE);
        }
    }

    /// Fills the first page with places of 32 bytes, of which every fourth stays: where the others were.
    fn leave_a_quarter(mixed: &MixedUse) -> Vec<usize> {
        let mut filling = mixed.open();
        let mut place = || mixed.place(0, 32, &mut filling, || Ok((0..0, 0))).unwrap();
        let mut places: Vec<usize> = (0..mixed.page / 32).map(|_| place()).collect();
        mixed.close(&mut filling);
        places.retain(|start| start / 32 % 4 != 0);
        places.iter().for_each(|&start| mixed.put_back(0, start, 32));
        places
    }

    #[test]
    fn a_sparse_page_is_filled_again_before_a_new_one_is_begun() {
        let mixed = mixed();
        let freed = leave_a_quarter(&mixed);
        let mut filling = mixed.open();
        let mut again: Vec<usize> =
            freed.iter().map(|_| mixed.place(0, 32, &mut filling, || Err(Exhausted)).unwrap()).collect();
        again.sort_unstable();
        assert_eq!(again, freed);
        assert_eq!(mixed.place(0, 32, &mut filling, || Err(Exhausted)), Err(Exhausted));
        // Others do not fill it meanwhile.
        mixed.put_back(0, again[0], 32);
        assert_eq!(mixed.place(0, 32, &mut mixed.open(), || Err(Exhausted)), Err(Exhausted));
    }

    /// Others wait for the lock meanwhile.
    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of places, and no unsafe code")]
    fn a_huge_page_of_holes_that_are_too_small_is_not_searched_to_its_end() {
        const HUGE: usize = 2 << 20;
        let mixed = MixedUse::new(4 * HUGE, HUGE, 32, SIZES.len());
        leave_a_quarter(&mixed);
        let mut filling = mixed.open();
        let fresh = || Ok((0..0, HUGE));
        assert_eq!(mixed.place(2, 1056, &mut filling, fresh), Ok(HUGE));
        assert!(filling.waiting.len() >= HUGE / 32 / 4 - PASSED_OVER, "{} holes left", filling.waiting.len());
        // Those that are left are used.
        assert!((0..HUGE / 1056 - 1).all(|_| mixed.place(2, 1056, &mut filling, || Err(Exhausted)).is_ok()));
        let next = mixed.place(1, 96, &mut filling, || Err(Exhausted)).unwrap();
        assert!(!(HUGE..HUGE + HUGE / 1056 * 1056).contains(&next), "{next}");
    }

    /// Where there is no other page, the last hole is found, however many were too small.
    #[test]
    #[cfg_attr(miri, ignore = "tens of thousands of places, and no unsafe code")]
    fn the_last_hole_of_a_full_space_is_found() {
        const HUGE: usize = 2 << 20;
        let mixed = MixedUse::new(HUGE, HUGE, 32, SIZES.len());
        leave_a_quarter(&mixed);
        // The last two places that stayed, with what is free around them.
        [HUGE - 128, HUGE - 256].into_iter().for_each(|start| mixed.put_back(0, start, 32));
        let mut filling = mixed.open();
        let found = mixed.place(1, 128, &mut filling, || Err(Exhausted)).unwrap();
        assert!(found >= HUGE - 384, "{found}");
    }
}

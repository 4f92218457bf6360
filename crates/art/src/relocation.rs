//! Moving what is on the paths of hot keys together, page by page, while the tree is in use.
//!
//! After Wong, Feng, Xu, Lo and Kao, "TLB misses: the missing issue of adaptive radix tree?", DaMoN 2015, section 5:
//! take the keys by falling frequency, follow each down, and lay every node on its path that has not been moved yet
//! into the page that is being filled; when it is full, begin another. Pages of leaves are filled beside those of
//! nodes. The paper builds a second tree and stops updates meanwhile. Here each node moves by itself, as if it had
//! grown into a copy of its own size: its parent and it are locked for as long as copying takes ([`crate::lock`]),
//! readers notice nothing, and the tree is whole between any two steps. So it can be done a little at a time.
//!
//! A leaf moves by cloning its value. What is changed through a shared reference while it is being moved may be lost in
//! the copy. Most such types are not `Clone` ([`std::sync::Mutex`], atomics), and so cannot be values of a tree that is
//! reorganised; [`std::sync::OnceLock`] is, and what sets it may set it in a leaf that has just been replaced. They
//! belong behind an [`std::sync::Arc`], whose clones are one.
//!
//! # When it helps
//!
//! [`Tree::assess`] follows the hot keys without moving anything, and counts the pages that their nodes and leaves lie
//! in and the pages that they would fill if they lay side by side. Where these are nearly the same there is nothing to
//! gain.
//!
//! Rejected: *building a second tree*, as the paper does: it needs the memory twice and leaves no place for writers.

#![allow(unsafe_code)]

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use atomics::reclaim::Guard;

use crate::core::{Entries, Holder};
use crate::error::Exhausted;
use crate::key::Key;
use crate::log::share_of_lookups;
use crate::mixed::MixedPages;
use crate::node::Symbol;
use crate::probe::Unwatched;
use crate::reference::Ref;
use crate::schedule::Schedule;
use crate::storage::Placement;
use crate::tree::Tree;
use crate::write::Discipline;

/// Nodes and leaves that are moved before what has become free is freed.
const FREED_TOGETHER: usize = 256;

/// Keys that are followed under one epoch when nothing is moved.
const KEYS_PINNED: usize = 1024;

/// Pages that any first-level TLB holds: Sandy Bridge's, that of the paper, holds 64 of 4 KiB and 32 of 2 MiB (its
/// Table 1).
const FEW_PAGES: usize = 32;

/// Times that one path is tried again because others change it.
const ATTEMPTS: usize = 8;

/// What a reorganisation has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Reorganized {
    /// Keys whose paths have been followed.
    pub keys: usize,
    /// Nodes that have been moved.
    pub nodes: usize,
    /// Leaves that have been moved.
    pub leaves: usize,
    /// Pages that have been filled or begun.
    pub pages: usize,
    /// Whether there was no room for more.
    pub full: bool,
}

/// How hot nodes and leaves lie. See [`Tree::assess`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assessment {
    /// Pages that they lie in.
    pub pages: usize,
    /// Pages that they would fill.
    pub packed: usize,
}

impl Assessment {
    /// How many times as many pages there are as there need be: one, if they are so few that a processor has the
    /// translations of all of them at hand (32). A million dense keys lie in nine huge pages, which fit six: to move
    /// them cost a twentieth of the lookups, and saved no translation.
    #[must_use]
    pub fn gain(&self) -> f64 {
        if self.pages <= FEW_PAGES { 1.0 } else { self.pages as f64 / self.packed.max(1) as f64 }
    }
}

/// A reorganisation under way: see [`Tree::reorganization`].
pub struct Reorganization<'t, K: Key + ?Sized, V> {
    tree: &'t Tree<K, V>,
    hottest_first: std::vec::IntoIter<K::Owned>,
    nodes: MixedPages,
    leaves: MixedPages,
    done: Reorganized,
    /// Nodes and leaves moved when something was freed last.
    freed: usize,
}

impl<K: Key + ?Sized, V> fmt::Debug for Reorganization<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reorganization").field("done", &self.done).finish_non_exhaustive()
    }
}

impl<K: Key + ?Sized, V: Clone + Send + Sync + 'static> Tree<K, V> {
    /// Begins to move what is on the paths of these keys together, the hottest first. Nothing happens before
    /// [`Reorganization::step`].
    #[must_use]
    pub fn reorganization(&self, hottest_first: Vec<K::Owned>) -> Reorganization<'_, K, V> {
        Reorganization {
            tree: self,
            hottest_first: hottest_first.into_iter(),
            nodes: self.core.storage.nodes.mixed.open(),
            leaves: self.core.storage.leaves.mixed.open(),
            done: Reorganized::default(),
            freed: 0,
        }
    }

    /// Moves what is on the paths of the keys in the [access log](Tree::access_log) together, the hottest first, and
    /// empties the log. Others may read and write meanwhile. Nothing is moved if it lies in fewer than
    /// [1.5 times](crate::Schedule::gain) the pages that it needs, or in few, or if most lookups go elsewhere
    /// ([`Tree::worth_moving`]): if all keys are asked for alike, neighbours would be torn apart for nothing.
    pub fn reorganize(&self) -> Reorganized {
        let hottest_first = self.worth_moving(self.log.frequencies(), &Schedule::new().with_samples(1));
        let mut reorganization = self.reorganization(hottest_first);
        while reorganization.step(1 << 10).is_continue() {}
        reorganization.done()
    }

    /// Of these keys with their samples, the most frequent first, those that were sampled [often
    /// enough](Schedule::samples), if moving what is on their paths together is worth it: if [`Assessment::gain`], of
    /// the [share of lookups](share_of_lookups) that they get, is no less than [`Schedule::gain`]. None otherwise.
    #[must_use]
    pub fn worth_moving(&self, frequencies: Vec<(K::Owned, usize)>, schedule: &Schedule) -> Vec<K::Owned> {
        self.worth(frequencies, schedule).0
    }

    /// As [`Tree::worth_moving`], and how they lie.
    pub(crate) fn worth(
        &self,
        frequencies: Vec<(K::Owned, usize)>,
        schedule: &Schedule,
    ) -> (Vec<K::Owned>, Assessment) {
        let share = share_of_lookups(&frequencies, schedule.samples);
        let often = frequencies.into_iter().take_while(|&(_, samples)| samples >= schedule.samples);
        let hot: Vec<K::Owned> = often.map(|(key, _)| key).collect();
        let assessment = self.assess(hot.iter().map(std::borrow::Borrow::borrow));
        let is_worth_it = share * assessment.gain() >= schedule.gain;
        (if is_worth_it { hot } else { Vec::new() }, assessment)
    }

    /// How the nodes and leaves on the paths of these keys lie.
    #[must_use]
    pub fn assess<'k>(&self, hot: impl IntoIterator<Item = &'k K>) -> Assessment {
        let mut guard = self.collector.pin();
        let storage = &self.core.storage;
        let page = storage.nodes.region().obtained().size();
        let (mut seen, mut pages, mut bytes) = (HashSet::new(), HashSet::new(), [0; 2]);
        for (number, key) in hot.into_iter().enumerate() {
            // Nothing of the last key is held: what others free is not held back for as long as this takes.
            if number % KEYS_PINNED == 0 {
                guard.refresh();
            }
            self.core.follow(key, |node_or_leaf| {
                let (space, offset, size) = if node_or_leaf.is_leaf() {
                    (
                        1,
                        node_or_leaf.leaf_offset(),
                        storage.key(node_or_leaf).size::<V>().next_multiple_of(Ref::LEAF_UNIT),
                    )
                } else {
                    (0, node_or_leaf.node_offset(), node_or_leaf.kind().bytes())
                };
                if seen.insert((space, offset)) {
                    pages.extend((offset / page..=(offset + size - 1) / page).map(|page| (space, page)));
                    bytes[space] += size;
                }
            });
        }
        Assessment { pages: pages.len(), packed: bytes.iter().map(|bytes| bytes.div_ceil(page)).sum() }
    }
}

impl<K: Key + ?Sized, V: Clone + Send + Sync + 'static> Reorganization<'_, K, V> {
    /// Does some of it: follows paths until about `work` nodes and leaves have been looked at, one whole path at least.
    /// Says whether there is more to do.
    pub fn step(&mut self, work: usize) -> ControlFlow<()> {
        let mut guard = self.tree.collector.pin();
        let mut left = work;
        loop {
            self.free_some(&mut guard);
            let Some(key) = self.hottest_first.next() else { return ControlFlow::Break(()) };
            let key: &K = std::borrow::Borrow::borrow(&key);
            let mut looked_at = 0;
            for _ in 0..ATTEMPTS {
                match self.path(key, &guard, &mut looked_at) {
                    Ok(ControlFlow::Continue(())) => break,
                    // Others changed it.
                    Ok(ControlFlow::Break(())) => {}
                    Err(Exhausted) => {
                        self.done.full = true;
                        return ControlFlow::Break(());
                    }
                }
            }
            self.done.keys += 1;
            left = left.saturating_sub(looked_at.max(1));
            if left == 0 {
                return ControlFlow::Continue(());
            }
        }
    }

    /// [`Reorganization::step`], after which the thread sleeps for `rest` times as long as the step took, or only gives
    /// way if that is nothing. Whoever writes beside it waits for lines that it has moved: with a rest of one, half as
    /// often.
    pub fn step_and_rest(&mut self, work: usize, rest: f64) -> ControlFlow<()> {
        let began = Instant::now();
        let goes_on = self.step(work);
        match Duration::try_from_secs_f64(began.elapsed().as_secs_f64() * rest) {
            Ok(rest) if !rest.is_zero() => std::thread::sleep(rest),
            _ => std::thread::yield_now(),
        }
        goes_on
    }

    /// Frees what was moved since the last time, if that is much.
    fn free_some(&mut self, guard: &mut Guard<'_>) {
        let moved = self.done.nodes + self.done.leaves;
        if moved >= self.freed + FREED_TOGETHER {
            self.freed = moved;
            guard.refresh();
        }
    }

    /// What has been done so far.
    #[must_use]
    pub fn done(&self) -> Reorganized {
        Reorganized { pages: self.nodes.len() + self.leaves.len(), ..self.done }
    }

    /// Moves what is on the path of a key and has not been moved yet; breaks off if others change it meanwhile.
    fn path(
        &mut self,
        key: &K,
        by: &impl Discipline,
        looked_at: &mut usize,
    ) -> Result<ControlFlow<()>, Exhausted> {
        let core = &self.tree.core;
        let storage = &core.storage;
        let mut holder = Holder::ROOT;
        let mut next = core.root.load();
        while next.is_node() {
            *looked_at += 1;
            if !self.nodes.contain(next.node_offset()) {
                let Some(moved) = core.relocate(&holder, next, &mut self.nodes, by)? else {
                    return Ok(ControlFlow::Break(()));
                };
                self.done.nodes += 1;
                next = moved;
            }
            let node = storage.node(next);
            let level = node.level();
            let symbol = Symbol::at(key.as_ref(), level);
            holder = Holder { node: next, symbol, position: level + 1 };
            next = node.child_assigned(symbol);
        }
        *looked_at += 1;
        if !next.is_leaf() || storage.key(next) != key || self.leaves.contain(next.leaf_offset()) {
            return Ok(ControlFlow::Continue(()));
        }
        // No lock is held while the user's code runs.
        let value = storage.value(next).clone();
        let moved =
            storage.new_leaf(key, value, Placement::Mixed(&mut self.leaves)).map_err(|_| Exhausted)?;
        if core.exchange(&holder, next, moved, by) {
            self.done.leaves += 1;
            // SAFETY: it has left the tree, and who exchanges a leaf retires it. `V` is `Send` and `Sync`.
            unsafe { by.retire(storage, next) };
            return Ok(ControlFlow::Continue(()));
        }
        // SAFETY: it was never published.
        unsafe { storage.free(moved) };
        Ok(ControlFlow::Break(()))
    }
}

impl<K: Key + ?Sized, V> Drop for Reorganization<'_, K, V> {
    /// Lets others fill the pages again, as they empty.
    fn drop(&mut self) {
        let storage = &self.tree.core.storage;
        storage.nodes.mixed.close(&mut self.nodes);
        storage.leaves.mixed.close(&mut self.leaves);
    }
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// Shows the nodes on the path of a key, and the leaf at its end.
    pub(crate) fn follow(&self, key: &K, mut visit: impl FnMut(Ref)) {
        let (view, mut position) = (self.storage.view(), 0);
        let mut next = self.root.load();
        while next.is_node() {
            visit(next);
            next = Self::step(view, next, &mut position, key.as_ref(), &mut Unwatched);
        }
        if next.is_leaf() {
            visit(next);
        }
    }
}

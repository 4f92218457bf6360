//! Changing the tree.
//!
//! Every change is one store to one slot; which slot, and what else must hold meanwhile, differs:
//!
//! | change | the slot | locks |
//! |---|---|---|
//! | a key where its node has nothing for it | the node's, perhaps assigned just now | the node's |
//! | a key where its node has no room | the slot above the node, which becomes a larger copy | above, the node's |
//! | a key whose place a leaf or a lower node has | that place: a new Node4 between | the node's |
//! | another value | the leaf's place: a new leaf | the node's |
//! | removal | the leaf's place: null | the node's |
//! | removal from a node of two, or of few | the slot above: the other child, or a smaller copy | above, the node's |
//! | removal of a prefix | as of one leaf, for the highest node with no other keys | as of one leaf, then each below |
//!
//! New nodes and leaves are made before they are published, so when there is no room for one, nothing has happened. A
//! removal that finds no room for a smaller copy makes do with the node as it is.
//!
//! Where keys differ from a node's: a node does not store the bytes that its keys agree in, so a writer that skipped
//! some compares its key with that of any leaf below, finds the first byte that differs, and if that is above where the
//! search ended, searches again down to there. Without skipped bytes, as mostly among numbers, the way down is proof
//! enough.

#![allow(unsafe_code)]

use std::ptr;

use atomics::reclaim::Guard;

use crate::core::{Descent, Entries, Holder, difference};
use crate::error::Exhausted;
use crate::fixed::Fixed;
use crate::key::Key;
use crate::kind::Kind;
use crate::lock::{Lock, State};
use crate::mixed::MixedPages;
use crate::node::Symbol;
use crate::reference::Ref;
use crate::storage::{Placement, Storage};

/// Who changes the tree: one of many, or its one owner.
pub(crate) trait Discipline {
    /// Takes a lock; `None` if its node is obsolete.
    fn acquire(&self, lock: &Lock) -> Option<State>;

    /// Frees what has left the tree, when nobody can reach it any more.
    ///
    /// # Safety
    /// It has left the tree, and is retired once. Entries of a shared tree must be `Send` and `Sync`, and its collector
    /// is dropped before its storage.
    unsafe fn retire<K: Key + ?Sized, V>(&self, storage: &Fixed<Storage<K, V>>, gone: Ref);
}

/// One of many, pinned.
impl Discipline for Guard<'_> {
    #[inline]
    fn acquire(&self, lock: &Lock) -> Option<State> {
        lock.acquire()
    }

    unsafe fn retire<K: Key + ?Sized, V>(&self, storage: &Fixed<Storage<K, V>>, gone: Ref) {
        /// # Safety
        /// The storage is there, and nobody can reach `gone` there, which is freed once.
        unsafe fn free<K: Key + ?Sized, V>(gone: *mut (), storage: *const ()) {
            // SAFETY: by the contract; the address is that of a reference's bits.
            unsafe { (*storage.cast::<Storage<K, V>>()).free(Ref::from_bits(gone.addr() as u32)) }
        }
        let bits = ptr::without_provenance_mut(gone.bits() as usize);
        // SAFETY: by the contract it is out of reach for whoever is pinned after this, any thread may drop it, and the
        // storage is there for longer than the collector.
        unsafe { Guard::retire(self, bits, storage.address().cast(), free::<K, V>) };
    }
}

/// The owner, whom the borrow checker keeps alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alone;

impl Discipline for Alone {
    #[inline]
    fn acquire(&self, lock: &Lock) -> Option<State> {
        Some(lock.state())
    }

    unsafe fn retire<K: Key + ?Sized, V>(&self, storage: &Fixed<Storage<K, V>>, gone: Ref) {
        // SAFETY: by the contract, and nobody else is there.
        unsafe { storage.free(gone) };
    }
}

/// Which insertions are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Of new keys, and of new values for old ones.
    Any,
    /// Of new keys only.
    Absent,
    /// Of new values for old keys only.
    Present,
}

/// What became of the insertion of a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// The key is new.
    New,
    /// This leaf was replaced. It has left the tree, and is the caller's to retire.
    Replaced(Ref),
    /// The rule forbade it; this is what is there, or null.
    Refused(Ref),
}

/// A lock that is held, and the counts that it shows.
struct Held<'a> {
    lock: &'a Lock,
    state: State,
}

impl Held<'_> {
    fn release(self) {
        self.lock.release(self.state);
    }
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// Takes the lock of a slot, if the slot still holds `child`.
    fn hold<D: Discipline>(&self, holder: &Holder, child: Ref, by: &D) -> Option<Held<'_>> {
        let lock = self.lock_of(holder);
        let held = Held { lock, state: by.acquire(lock)? };
        if self.slot_of(holder).map_or(Ref::NULL, |slot| slot.load()) == child {
            return Some(held);
        }
        held.release();
        None
    }

    /// Stores into a slot that is assigned and held.
    fn put(&self, holder: &Holder, child: Ref) {
        self.slot_of(holder).expect("a slot that held something is assigned").store(child);
    }

    /// Puts a leaf of this key into the tree. `make` makes it, or says again which it is; it is asked before any lock
    /// is taken, and told where the leaf is to lie. The leaf stays the caller's unless it is said to be in the tree.
    #[inline]
    pub(crate) fn insert<D: Discipline>(
        &self,
        key: &K,
        mut make: impl FnMut(Placement<'_>) -> Result<Ref, Exhausted>,
        rule: Rule,
        by: &D,
    ) -> Result<Inserted, Exhausted> {
        let bytes = key.as_ref();
        loop {
            let found = self.descend(bytes, usize::MAX);
            let witness = match found.child.is_null() {
                // Nothing but the way down to compare with; which is enough if nothing was skipped.
                true if !found.skipped => None,
                true => match self.any_leaf(found.parent.node) {
                    Some(leaf) => Some(leaf),
                    None => continue,
                },
                false => Some(found.child),
            };
            let differs = witness.map(|leaf| (leaf, difference(bytes, self.storage.key(leaf).as_ref())));
            let done = match differs {
                Some((old, None)) if old == found.child => {
                    if rule == Rule::Absent {
                        return Ok(Inserted::Refused(old));
                    }
                    let leaf = make(self.near(&found))?;
                    self.exchange(&found.parent, old, leaf, by).then_some(Inserted::Replaced(old))
                }
                _ if rule == Rule::Present => return Ok(Inserted::Refused(Ref::NULL)),
                // The key has appeared elsewhere meanwhile.
                Some((_, None)) => None,
                Some((witness, Some(position))) if position < found.parent.position.saturating_sub(1) => {
                    self.fork_above(bytes, witness, position, make(self.near(&found))?, by)?
                }
                Some((witness, Some(position))) if !found.child.is_null() => {
                    self.fork(&found, witness, bytes, position, make(self.near(&found))?, by)?
                }
                _ => self.attach(&found, make(self.near(&found))?, by)?,
            };
            if let Some(done) = done {
                return Ok(done);
            }
        }
    }

    /// Where a leaf is to lie that will be where a search has ended: with those below the lowest node that has a plot.
    fn near(&self, found: &Descent) -> Placement<'_> {
        let above = [found.parent.node, found.grand.node];
        let node = above.into_iter().find(|node| node.is_node() && node.kind() > Kind::Node4);
        node.map_or(Placement::ByClass, |node| Placement::Below(self.storage.node(node)))
    }

    /// Puts a new reference where an old one is; `false` if it is not there any more.
    pub(crate) fn exchange<D: Discipline>(&self, holder: &Holder, old: Ref, new: Ref, by: &D) -> bool {
        let Some(held) = self.hold(holder, old, by) else { return false };
        self.put(holder, new);
        held.release();
        true
    }

    /// Puts a copy of a node, in a page of mixed use, where the node is: the copy, or nothing if it is not there any
    /// more.
    pub(crate) fn relocate<D: Discipline>(
        &self,
        holder: &Holder,
        old: Ref,
        pages: &mut MixedPages,
        by: &D,
    ) -> Result<Option<Ref>, Exhausted> {
        let node = self.storage.node(old);
        // Before any lock is taken: its page may be touched for the first time, which takes the kernel a while.
        let copy = self.storage.new_node(node.kind(), node.level(), Placement::Mixed(pages), |_| ())?;
        let above = self.hold(holder, old, by).and_then(|above| match by.acquire(&node.header().lock) {
            Some(_) => Some(above),
            None => {
                above.release();
                None
            }
        });
        let Some(above) = above else {
            // SAFETY: it was never published.
            unsafe { self.storage.free_node(copy) };
            return Ok(None);
        };
        let to = self.storage.node(copy);
        node.each(|symbol, child| to.add_unshared(symbol, child));
        let copy = copy.with_skip(old.skips());
        self.supersede(holder, above, old, copy, by);
        Ok(Some(copy))
    }

    /// Puts a leaf into a slot that is null or not assigned yet.
    fn attach<D: Discipline>(
        &self,
        found: &Descent,
        leaf: Ref,
        by: &D,
    ) -> Result<Option<Inserted>, Exhausted> {
        let parent = &found.parent;
        let Some(mut held) = self.hold(parent, Ref::NULL, by) else { return Ok(None) };
        if let Some(slot) = self.slot_of(parent) {
            slot.store(leaf);
            if !parent.node.is_null() {
                held.state = State::new(held.state.assigned(), held.state.live() + 1);
            }
            held.release();
            return Ok(Some(Inserted::New));
        }
        let byte = parent.symbol.byte().expect("the end of keys is assigned a slot from the start");
        let node = self.storage.node(parent.node);
        if let Some((slot, counted)) = node.assign(byte, held.state) {
            held.lock.announce(counted);
            slot.store(leaf);
            held.state = counted;
            held.release();
            return Ok(Some(Inserted::New));
        }
        // No room. Locks are taken from above.
        held.release();
        let Some(above) = self.hold(&found.grand, parent.node, by) else { return Ok(None) };
        let Some(held) = self.hold(parent, Ref::NULL, by) else {
            above.release();
            return Ok(None);
        };
        // Bytes of the children that are left; one more comes. (Others may have made room: then a copy does no harm.)
        let kind = Kind::for_bytes(held.state.live() + 1);
        let larger = self.storage.new_node(kind, node.level(), Placement::ByClass, |larger| {
            node.each(|symbol, child| larger.add_unshared(symbol, child));
            larger.add_unshared(parent.symbol, leaf);
        });
        let larger = match larger {
            Ok(larger) => larger,
            Err(exhausted) => {
                held.release();
                above.release();
                return Err(exhausted);
            }
        };
        self.supersede(&found.grand, above, parent.node, larger, by);
        Ok(Some(Inserted::New))
    }

    /// Puts `new` where `old` is, and lets go of both locks, and of `old`.
    fn supersede<D: Discipline>(&self, grand: &Holder, above: Held<'_>, old: Ref, new: Ref, by: &D) {
        self.put(grand, new.with_skip(old.skips()));
        self.bury(above, old, by);
    }

    /// Lets go of a node that has just been replaced in the slot above it.
    fn bury<D: Discipline>(&self, above: Held<'_>, old: Ref, by: &D) {
        self.storage.node(old).header().lock.release_obsolete();
        above.release();
        // SAFETY: no slot refers to it any more, and who freezes a node retires it, once.
        unsafe { by.retire(&self.storage, old) };
    }

    /// Puts a Node4 with the new leaf and the old child where the old child is.
    fn fork<D: Discipline>(
        &self,
        found: &Descent,
        witness: Ref,
        key: &[u8],
        position: usize,
        leaf: Ref,
        by: &D,
    ) -> Result<Option<Inserted>, Exhausted> {
        let old = if found.child.is_node() {
            found.child.with_skip(self.storage.node(found.child).level() > position + 1)
        } else {
            found.child
        };
        let symbols = [Symbol::at(self.storage.key(witness).as_ref(), position), Symbol::at(key, position)];
        let above = found.parent.node;
        let placement =
            if above.is_node() { Placement::Below(self.storage.node(above)) } else { Placement::ByClass };
        let fork = self.storage.fork(position, placement, [(symbols[0], old), (symbols[1], leaf)])?;
        if self.exchange(&found.parent, found.child, fork.with_skip(position > found.parent.position), by) {
            return Ok(Some(Inserted::New));
        }
        // SAFETY: it was never published.
        unsafe { self.storage.free_node(fork) };
        Ok(None)
    }

    /// Puts a fork above the node whose keys differ from this one at `position`, which was skipped.
    fn fork_above<D: Discipline>(
        &self,
        key: &[u8],
        witness: Ref,
        position: usize,
        leaf: Ref,
        by: &D,
    ) -> Result<Option<Inserted>, Exhausted> {
        let found = self.descend(key, position);
        if !found.child.is_node() || found.parent.position > position {
            return Ok(None);
        }
        // The tree may have changed since the witness was found, so the node that is there now has to bear it out.
        let Some(present) = self.any_leaf(found.child) else { return Ok(None) };
        if present != witness && difference(key, self.storage.key(present).as_ref()) != Some(position) {
            return Ok(None);
        }
        self.fork(&found, present, key, position, leaf, by)
    }

    /// Takes a key out: its leaf, which is the caller's to retire.
    pub(crate) fn remove<D: Discipline>(&self, key: &K, by: &D) -> Option<Ref> {
        loop {
            let found = self.descend(key.as_ref(), usize::MAX);
            if found.child.is_null() || self.storage.key(found.child).as_ref() != key.as_ref() {
                return None;
            }
            if self.detach(&found, by) {
                return Some(found.child);
            }
        }
    }

    /// Takes this leaf out, which then is the caller's to retire; `false` if it is not in the tree any more, or its key
    /// has another. As long as the caller is pinned, or owns the tree, no other leaf comes to lie where this one does.
    pub(crate) fn remove_leaf<D: Discipline>(&self, leaf: Ref, by: &D) -> bool {
        loop {
            let found = self.descend(self.storage.key(leaf).as_ref(), usize::MAX);
            if found.child != leaf {
                return false;
            }
            if self.detach(&found, by) {
                return true;
            }
        }
    }

    /// Takes what is in a slot out of it; `false` if it is not there any more.
    fn detach<D: Discipline>(&self, found: &Descent, by: &D) -> bool {
        let parent = &found.parent;
        if parent.node.is_null() {
            return self.exchange(parent, found.child, Ref::NULL, by);
        }
        let node = self.storage.node(parent.node);
        let fewest = node.kind().fewest();
        if node.header().lock.state().live() > fewest {
            let Some(held) = self.hold(parent, found.child, by) else { return false };
            if held.state.live() > fewest {
                self.clear(parent, held);
                return true;
            }
            held.release();
        }
        let Some(above) = self.hold(&found.grand, parent.node, by) else { return false };
        let Some(held) = self.hold(parent, found.child, by) else {
            above.release();
            return false;
        };
        let left = held.state.live() - 1;
        if left >= fewest {
            self.clear(parent, held);
            above.release();
            return true;
        }
        if left == 1 {
            let mut other = Ref::NULL;
            node.each(|symbol, child| {
                if symbol != parent.symbol {
                    other = child;
                }
            });
            // At least the byte of the node between is skipped now.
            self.put(&found.grand, other.with_skip(true));
            self.bury(above, parent.node, by);
            return true;
        }
        let smaller =
            self.storage.new_node(Kind::for_bytes(left), node.level(), Placement::ByClass, |smaller| {
                node.each(|symbol, child| {
                    if symbol != parent.symbol {
                        smaller.add_unshared(symbol, child);
                    }
                });
            });
        match smaller {
            Ok(smaller) => self.supersede(&found.grand, above, parent.node, smaller, by),
            Err(Exhausted) => {
                self.clear(parent, held);
                above.release();
            }
        }
        true
    }

    /// Empties a slot that is held.
    fn clear(&self, parent: &Holder, held: Held<'_>) {
        self.put(parent, Ref::NULL);
        held.lock.release(State::new(held.state.assigned(), held.state.live() - 1));
    }

    /// Takes all keys out that begin with `prefix`, and shows each leaf, which is then retired. Takes as long as there
    /// are such keys.
    pub(crate) fn remove_prefix<D: Discipline>(&self, prefix: &[u8], by: &D, mut each: impl FnMut(Ref)) {
        loop {
            let Some(found) = self.subtree(prefix) else { return };
            if !self.detach(&found, by) {
                continue;
            }
            let mut waiting = vec![found.child];
            while let Some(next) = waiting.pop() {
                if next.is_leaf() {
                    each(next);
                } else {
                    let node = self.storage.node(next);
                    // A writer that was inside already may hold it; one that comes later finds it obsolete.
                    if by.acquire(&node.header().lock).is_none() {
                        continue;
                    }
                    node.each(|_, child| waiting.push(child));
                    node.header().lock.release_obsolete();
                }
                // SAFETY: it left the tree with the subtree; whoever else could take it out of there would need the
                // lock of the node above it, which is obsolete.
                unsafe { by.retire(&self.storage, next) };
            }
            return;
        }
    }

    /// The highest leaf or node all of whose keys, and no others, begin with `prefix`.
    pub(crate) fn subtree(&self, prefix: &[u8]) -> Option<Descent> {
        loop {
            // The symbols of the prefix itself lead to the node; the end of the prefix is not the end of a key.
            let found = match prefix.len() {
                0 => Descent {
                    child: self.root.load(),
                    grand: Holder::ROOT,
                    parent: Holder::ROOT,
                    skipped: false,
                },
                length => self.descend(prefix, length - 1),
            };
            if found.child.is_null() {
                return None;
            }
            match self.any_leaf(found.child) {
                Some(leaf) if self.storage.key(leaf).as_ref().starts_with(prefix) => return Some(found),
                Some(_) => return None,
                None => {}
            }
        }
    }
}

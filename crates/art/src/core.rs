//! The tree under both faces, and how it is searched.
//!
//! ```text
//! next = the root's slot
//! while next is a node:
//!     position = the node's level, if the reference skips; else one more than the last node's
//!     next = the node's slot for the key's symbol at position
//! found, if next is a leaf whose key is the key
//! ```
//!
//! Bytes that all keys below a node agree in are not compared on the way (optimistic path compression), and a subtree
//! of one key is its leaf alone (lazy expansion): the leaf's full key decides. So a lookup touches one line of each
//! Node4 and Node256 and two of the others, and a leaf's.
//!
//! Who is pinned, or owns the tree, may call anything here; see [`crate::storage`] and [`crate::lock`].

#![allow(unsafe_code)]

use std::fmt;
use std::sync::atomic::Ordering;

use pages::MapError;

use crate::config::Config;
use crate::fixed::Fixed;
use crate::key::Key;
use crate::kind::Kind;
use crate::lock::Lock;
use crate::node::{Node, Slot, Symbol};
use crate::probe::{Probe, Unwatched};
use crate::reference::Ref;
use crate::storage::{Storage, View};

/// What is in a tree, for who has pinned it or owns it: a [`Reader`](crate::Reader), an
/// [`OwnedTree`](crate::OwnedTree) and an onlooker of a map's tree dereference to it.
pub struct Entries<K: Key + ?Sized, V> {
    pub(crate) storage: Fixed<Storage<K, V>>,
    /// Guards the root's slot, and is never obsolete.
    pub(crate) lock: Lock,
    pub(crate) root: Slot,
}

/// A slot, by the node that it is in and the symbol that it is for; the root's if the node is null.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Holder {
    pub(crate) node: Ref,
    pub(crate) symbol: Symbol,
    /// The first position that a node in this slot may tell apart.
    pub(crate) position: usize,
}

impl Holder {
    pub(crate) const ROOT: Holder = Holder { node: Ref::NULL, symbol: Symbol::END, position: 0 };
}

/// Where a search for a key ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent {
    /// The slot that refers to the node that `parent` is in.
    pub(crate) grand: Holder,
    /// The slot that the search ended with.
    pub(crate) parent: Holder,
    /// What it held.
    pub(crate) child: Ref,
    /// Whether bytes were skipped on the way.
    pub(crate) skipped: bool,
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    pub(crate) fn new(config: &Config) -> Result<Self, MapError> {
        Ok(Entries {
            storage: Fixed::new(Storage::new(config)?),
            lock: Lock::default(),
            root: Slot::default(),
        })
    }

    /// Whether there is such a key. The [access log](crate::Tree::access_log) does not see it.
    #[must_use]
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key, &mut Unwatched).is_some()
    }

    #[inline(always)]
    pub(crate) fn entry(&self, leaf: Ref) -> (&K, &V) {
        (self.storage.key(leaf), self.storage.value(leaf))
    }

    /// One step of a lookup: the child of a node for the key, whose bytes before `position` have led here.
    #[inline(always)]
    pub(crate) fn step<P: Probe>(
        view: View<'_, K, V>,
        at: Ref,
        position: &mut usize,
        key: &[u8],
        probe: &mut P,
    ) -> Ref {
        let node = view.node(at);
        if at.skips() {
            probe.touch(std::ptr::from_ref(node.header()).addr(), size_of_val(node.header()));
            *position = node.level();
        }
        let Some(&byte) = key.get(*position) else {
            let end = &node.header().end;
            probe.touch(std::ptr::from_ref(end).addr(), size_of_val(end));
            *position += 1;
            return end.load();
        };
        *position += 1;
        node.child_probed(byte, probe)
    }

    /// The leaf of a key.
    #[inline(always)]
    pub(crate) fn find(&self, key: &K, probe: &mut impl Probe) -> Option<Ref> {
        self.find_in(self.storage.view(), key, probe)
    }

    /// The same for who has a view of this tree's storage already.
    #[inline(always)]
    pub(crate) fn find_in(&self, view: View<'_, K, V>, key: &K, probe: &mut impl Probe) -> Option<Ref> {
        let bytes = key.as_ref();
        let mut position = 0;
        let mut next = self.root.load();
        while !next.is_leaf() {
            if next.is_null() {
                return None;
            }
            next = Self::step(view, next, &mut position, bytes, probe);
        }
        let found = view.key(next).as_ref();
        probe.touch(view.leaf_address(next).addr(), view.key(next).size::<V>());
        (found == bytes).then_some(next)
    }

    /// Follows a key down to a null slot, a leaf, or a node whose level is beyond `limit`.
    #[inline]
    pub(crate) fn descend(&self, key: &[u8], limit: usize) -> Descent {
        let mut found =
            Descent { grand: Holder::ROOT, parent: Holder::ROOT, child: self.root.load(), skipped: false };
        while found.child.is_node() {
            let node = self.storage.node(found.child);
            let level = if found.child.skips() { node.level() } else { found.parent.position };
            if level > limit {
                break;
            }
            found.skipped |= found.child.skips();
            let symbol = Symbol::at(key, level);
            found.grand = found.parent;
            found.parent = Holder { node: found.child, symbol, position: level + 1 };
            found.child = node.child_assigned(symbol);
        }
        found
    }

    /// A leaf below this node or leaf: any one, for what all keys there have in common. `None` if others empty what is
    /// there, faster than it can be looked at.
    pub(crate) fn any_leaf(&self, mut below: Ref) -> Option<Ref> {
        while below.is_node() {
            below = self.storage.node(below).any_child()?;
        }
        Some(below)
    }

    /// The lock that guards a slot.
    pub(crate) fn lock_of(&self, holder: &Holder) -> &Lock {
        if holder.node.is_null() { &self.lock } else { &self.storage.node(holder.node).header().lock }
    }

    /// The slot, if it is assigned. For who holds its lock.
    pub(crate) fn slot_of(&self, holder: &Holder) -> Option<&Slot> {
        if holder.node.is_null() {
            Some(&self.root)
        } else {
            self.storage.node(holder.node).slot(holder.symbol)
        }
    }
}

impl Node<'_> {
    /// [`Node::child`] of a byte, telling what it touches.
    #[inline(always)]
    fn child_probed<P: Probe>(self, byte: u8, probe: &mut P) -> Ref {
        match self {
            Node::Four(node) => {
                probe.touch(std::ptr::from_ref(node).addr(), Kind::Node4.bytes());
                node.child(byte)
            }
            Node::Full(node) => {
                probe.touch(node.slot_address(byte).addr(), size_of::<Slot>());
                node.child(byte)
            }
            Node::Sixteen(node) => node.child_watched(byte, |at, bytes| probe.touch(at.addr(), bytes)),
            Node::FortyEight(node) => {
                probe.touch(node.index_address(byte).addr(), 1);
                let position = node.position(byte);
                if position != 0 {
                    probe.touch(node.slot_address(position).addr(), size_of::<Slot>());
                }
                node.child_in(position)
            }
        }
    }
}

/// Where two keys differ first; the end of a key differs from any byte. `None` if they are equal.
#[inline]
pub(crate) fn difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let common = a.len().min(b.len());
    (0..common).find(|&i| a[i] != b[i]).or((a.len() != b.len()).then_some(common))
}

impl<K: Key + ?Sized, V> Drop for Entries<K, V> {
    fn drop(&mut self) {
        // Otherwise the spaces are all there is to free; but where debug assertions are on, `Storage` wants to see it
        // empty.
        let has_more = std::mem::needs_drop::<V>() || self.storage.heap.load(Ordering::Relaxed) > 0;
        if has_more || cfg!(debug_assertions) {
            // SAFETY: nobody else has the tree any more, and what was retired has left it.
            unsafe { self.storage.free_tree(self.root.load()) };
        }
    }
}

impl<K: Key + ?Sized, V> fmt::Debug for Entries<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries").field("storage", &self.storage.nodes).finish_non_exhaustive()
    }
}

//! Nodes and leaves in their spaces.
//!
//! What this module gives out by reference it finds by reference: a [`Ref`] that was read from a slot by someone who is
//! pinned, or who owns the tree, refers to a node or a leaf that stays while they are. All the unsafe code above the
//! spaces rests on that one sentence; why it holds is told in [`crate::lock`].

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use atomics::reclaim::quietly;
use crossbeam_utils::CachePadded;
use pages::MapError;

use crate::config::Config;
use crate::error::Exhausted;
use crate::key::{Key, LARGEST_LEAF};
use crate::kind::Kind;
use crate::mixed::MixedPages;
use crate::node::{Node, Symbol};
use crate::reference::Ref;
use crate::space::Space;

/// Bytes of a plot of leaves, by the kind of the node: a line, or several. Small nodes are many, and most never fill
/// more. What the last plot of a node has left is nobody's: with a KiB for a Node256, a tree of sixteen million random
/// keys of sixteen bytes had 0.9 bytes a key more.
const LEAVES: [usize; 4] = [64, 64, 256, 512];
/// Bytes of a plot of Node4s, by the kind of the node. Only a Node256 has any.
const FORKS: [usize; 4] = [64, 64, 64, 256];

/// What a tree has of its entries. Invariant in their types, for it changes them through shared references: whoever saw
/// a tree as one of subtypes could put values into it that others read as what they are not.
///
/// ```compile_fail
/// use lookaside_art::Tree;
///
/// type Any = for<'a> fn(&'a str);
/// type Static = fn(&'static str);
/// fn narrowed<'t>(tree: &'t Tree<[u8], Any>) -> &'t Tree<[u8], Static> {
///     tree
/// }
/// ```
type Variance<K, V> = PhantomData<fn(V, &K) -> V>;

/// The nodes and leaves of one tree.
#[derive(Debug)]
pub(crate) struct Storage<K: ?Sized, V> {
    pub(crate) nodes: Space,
    pub(crate) leaves: Space,
    /// Bytes of keys on the heap.
    pub(crate) heap: CachePadded<AtomicUsize>,
    entries: Variance<K, V>,
}

/// Where nodes and leaves begin, in registers. No load may be moved before the load of a slot, which is an acquire: a
/// search that asked the storage would load both anew at every node, a tenth of its instructions.
pub(crate) struct View<'s, K: Key + ?Sized, V> {
    nodes: *mut u8,
    leaves: *mut u8,
    storage: &'s Storage<K, V>,
}

impl<K: Key + ?Sized, V> Clone for View<'_, K, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key + ?Sized, V> Copy for View<'_, K, V> {}

impl<'s, K: Key + ?Sized, V> View<'s, K, V> {
    /// The node that a reference leads to.
    #[inline(always)]
    pub(crate) fn node(self, node: Ref) -> Node<'s> {
        debug_assert!(node.is_node());
        self.storage.nodes.check(node.place());
        // SAFETY: see the module.
        unsafe { Node::at(self.nodes.add(node.node_offset()), node.kind()) }
    }

    #[inline(always)]
    pub(crate) fn leaf_address(self, leaf: Ref) -> *mut u8 {
        debug_assert!(leaf.is_leaf());
        // SAFETY: references to leaves lead into their space.
        unsafe { self.leaves.add(leaf.leaf_offset()) }
    }

    /// The key of a leaf.
    #[inline(always)]
    pub(crate) fn key(self, leaf: Ref) -> &'s K {
        self.storage.leaves.check(leaf.place());
        // SAFETY: see the module.
        unsafe { K::of_leaf::<V>(self.leaf_address(leaf)) }
    }

    /// The value of a leaf.
    #[inline(always)]
    pub(crate) fn value(self, leaf: Ref) -> &'s V {
        self.storage.leaves.check(leaf.place());
        // SAFETY: see the module; values do not change while they are shared.
        unsafe { &*K::value_in::<V>(self.leaf_address(leaf)) }
    }
}

/// Where to put a new node or leaf.
#[derive(Debug)]
pub(crate) enum Placement<'m> {
    /// With others of its class.
    ByClass,
    /// A leaf or Node4: with others below this node.
    Below(Node<'m>),
    /// Behind whatever was placed last.
    Mixed(&'m mut MixedPages),
}

impl<K: Key + ?Sized, V> Storage<K, V> {
    pub(crate) fn new(config: &Config) -> Result<Self, MapError> {
        let leaf_sizes: Vec<usize> =
            (1..=LARGEST_LEAF / Ref::LEAF_UNIT).map(|units| units * Ref::LEAF_UNIT).collect();
        Ok(Storage {
            nodes: Space::new(
                config.node_bytes.min(Ref::NODE_REACH),
                config.pages,
                Ref::NODE_UNIT,
                &Kind::ALL.map(Kind::bytes),
                FORKS,
            )?,
            leaves: Space::new(
                config.leaf_bytes.min(Ref::LEAF_REACH),
                config.pages,
                Ref::LEAF_UNIT,
                &leaf_sizes,
                LEAVES,
            )?,
            heap: CachePadded::default(),
            entries: PhantomData,
        })
    }

    fn leaf_class(key: &K) -> usize {
        Self::class_of(key.size::<V>())
    }

    fn class_of(leaf_bytes: usize) -> usize {
        leaf_bytes.div_ceil(Ref::LEAF_UNIT).max(1) - 1
    }

    /// A copy of where nodes and leaves begin, for who follows several references.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_, K, V> {
        View { nodes: self.nodes.base(), leaves: self.leaves.base(), storage: self }
    }

    /// The node that a reference leads to.
    #[inline(always)]
    pub(crate) fn node(&self, node: Ref) -> Node<'_> {
        self.view().node(node)
    }

    #[inline(always)]
    pub(crate) fn leaf_address(&self, leaf: Ref) -> *mut u8 {
        self.view().leaf_address(leaf)
    }

    /// The key of a leaf.
    #[inline(always)]
    pub(crate) fn key(&self, leaf: Ref) -> &K {
        self.view().key(leaf)
    }

    /// The value of a leaf.
    #[inline(always)]
    pub(crate) fn value(&self, leaf: Ref) -> &V {
        self.view().value(leaf)
    }

    /// Where the value of a leaf is: for who owns the tree, and changes it.
    pub(crate) fn value_address(&self, leaf: Ref) -> *mut V {
        self.leaves.check(leaf.place());
        // SAFETY: see the module.
        unsafe { K::value_in::<V>(self.leaf_address(leaf)) }
    }

    /// A node with these children.
    pub(crate) fn new_node(
        &self,
        kind: Kind,
        level: usize,
        placement: Placement<'_>,
        children: impl FnOnce(Node<'_>),
    ) -> Result<Ref, Exhausted> {
        let class = kind as usize;
        let place = match placement {
            Placement::Below(node) if let (Kind::Node4, Some(plot)) = (kind, node.forks()) => {
                self.nodes.allocate_near(class, node.kind(), plot)
            }
            Placement::ByClass | Placement::Below(_) => self.nodes.allocate(class),
            Placement::Mixed(pages) => self.nodes.allocate_mixed(class, pages),
        }?;
        // SAFETY: the place was just given to us, and is as large as a node of its class.
        let node = unsafe { Node::write(self.nodes.at(place), kind, level as u32) };
        children(node);
        Ok(Ref::node(kind, place))
    }

    /// A node with two children.
    pub(crate) fn fork(
        &self,
        level: usize,
        placement: Placement<'_>,
        children: [(Symbol, Ref); 2],
    ) -> Result<Ref, Exhausted> {
        self.new_node(Kind::Node4, level, placement, |node| {
            children.iter().for_each(|&(symbol, child)| node.add_unshared(symbol, child));
        })
    }

    /// A leaf; gives the value back if there is no room.
    pub(crate) fn new_leaf(&self, key: &K, value: V, placement: Placement<'_>) -> Result<Ref, V> {
        let class = Self::leaf_class(key);
        let place = match placement {
            Placement::Below(node) if let (Some(plot), Some(_)) = (node.plot(), K::same_size::<V>()) => {
                self.leaves.allocate_near(class, node.kind(), plot)
            }
            Placement::ByClass | Placement::Below(_) => self.leaves.allocate(class),
            Placement::Mixed(pages) => self.leaves.allocate_mixed(class, pages),
        };
        let Ok(place) = place else { return Err(value) };
        #[cfg(feature = "fault-injection")]
        if key.heap_bytes::<V>() > 0 && crate::fault::refuses_this_one() {
            // SAFETY: given to us, and nobody else knows it.
            unsafe { self.leaves.free(class, place) };
            return Err(value);
        }
        // SAFETY: the place was just given to us, and is as large as a leaf of its class.
        match unsafe { key.write(self.leaves.at(place), value) } {
            Ok(()) => {
                self.heap.fetch_add(key.heap_bytes::<V>(), Ordering::Relaxed);
                Ok(Ref::leaf(place))
            }
            Err(value) => {
                // SAFETY: given to us, and nobody else knows it.
                unsafe { self.leaves.free(class, place) };
                Err(value)
            }
        }
    }

    /// Frees a node.
    ///
    /// # Safety
    /// Nobody can reach it, and it is freed once.
    pub(crate) unsafe fn free_node(&self, node: Ref) {
        if let (Some(plot), Some(size)) = (self.node(node).plot(), K::same_size::<V>()) {
            self.leaves.give_up(Self::class_of(size), node.kind(), plot);
        }
        if let Some(plot) = self.node(node).forks() {
            self.nodes.give_up(Kind::Node4 as usize, node.kind(), plot);
        }
        // SAFETY: by the contract.
        unsafe { self.nodes.free(node.kind() as usize, node.place()) };
    }

    /// Frees a leaf, and gives its value.
    ///
    /// # Safety
    /// Nobody can reach it, and it is freed once.
    pub(crate) unsafe fn take_leaf(&self, leaf: Ref) -> V {
        let address = self.leaf_address(leaf);
        // SAFETY: by the contract nobody else reads it, now or later.
        unsafe {
            let key = K::of_leaf::<V>(address);
            let class = Self::leaf_class(key);
            self.heap.fetch_sub(key.heap_bytes::<V>(), Ordering::Relaxed);
            let value = K::value_in::<V>(address).read();
            K::free_heap::<V>(address);
            self.leaves.free(class, leaf.place());
            value
        }
    }

    /// Frees whatever this refers to. Does not panic: the panic of a value's destructor ends here.
    ///
    /// # Safety
    /// Nobody can reach it, and it is freed once.
    pub(crate) unsafe fn free(&self, node_or_leaf: Ref) {
        if node_or_leaf.is_leaf() {
            // SAFETY: by the contract.
            let value = unsafe { self.take_leaf(node_or_leaf) };
            quietly(|| drop(value));
        } else {
            // SAFETY: by the contract.
            unsafe { self.free_node(node_or_leaf) };
        }
    }

    /// Frees all that is below a slot that nobody will look at again.
    ///
    /// # Safety
    /// Nobody can reach it, and it is freed once.
    pub(crate) unsafe fn free_tree(&self, root: Ref) {
        let mut waiting = vec![root];
        while let Some(next) = waiting.pop() {
            if next.is_node() {
                self.node(next).each(|_, child| waiting.push(child));
            }
            if !next.is_null() {
                // SAFETY: by the contract; each is the child of one node.
                unsafe { self.free(next) };
            }
        }
    }
}

/// In builds with debug assertions, panics if anything was lost: nobody refers to what is in use now.
#[cfg(debug_assertions)]
impl<K: ?Sized, V> Drop for Storage<K, V> {
    fn drop(&mut self) {
        let lost = |space: &Space| space.uses().iter().map(|class| class.used).sum::<usize>();
        let (nodes, leaves) = (lost(&self.nodes), lost(&self.leaves));
        let heap = *self.heap.get_mut();
        assert!(
            nodes + leaves + heap == 0 || std::thread::panicking(),
            "lost: {nodes} nodes, {leaves} leaves, {heap} bytes of keys"
        );
    }
}

// SAFETY: nodes are atomics; leaves are keys and values, which are shared by reference and dropped by any thread.
unsafe impl<K: Key + ?Sized, V: Send> Send for Storage<K, V> {}
// SAFETY: as above.
unsafe impl<K: Key + ?Sized, V: Send + Sync> Sync for Storage<K, V> {}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    fn storage() -> Storage<[u8; 8], u64> {
        let config = Config { node_bytes: 1 << 20, leaf_bytes: 1 << 20, ..Config::default() };
        Storage::new(&config).unwrap()
    }

    #[test]
    #[should_panic(expected = "is used after it was freed")]
    fn a_leaf_is_not_read_after_its_time() {
        let storage = storage();
        let leaf = storage.new_leaf(&[1; 8], 2, Placement::ByClass).unwrap();
        assert_eq!((storage.key(leaf), storage.value(leaf)), (&[1; 8], &2));
        // SAFETY: nobody else knows it; that it is read again is what is tested, in memory that stays.
        unsafe { storage.free(leaf) };
        storage.key(leaf);
    }

    #[test]
    #[should_panic(expected = "is used after it was freed")]
    fn a_node_is_not_read_after_its_time() {
        let storage = storage();
        let leaf = storage.new_leaf(&[1; 8], 2, Placement::ByClass).unwrap();
        let node = storage.fork(0, Placement::ByClass, [(Symbol(1), leaf), (Symbol(2), leaf)]).unwrap();
        assert_eq!(storage.node(node).child(Symbol(2)), leaf);
        // SAFETY: as above.
        unsafe { storage.free_node(node) };
        storage.node(node);
    }

    #[test]
    #[should_panic(expected = "is freed twice")]
    fn nothing_is_freed_twice() {
        let storage = storage();
        let place = storage.leaves.allocate(0).unwrap();
        // SAFETY: the second is what is tested: it is refused before it does anything.
        unsafe {
            storage.leaves.free(0, place);
            storage.leaves.free(0, place);
        }
    }

    #[test]
    fn what_was_freed_is_overwritten() {
        let storage = storage();
        let leaf = storage.new_leaf(&[1; 8], 2, Placement::ByClass).unwrap();
        let address = storage.leaf_address(leaf);
        // SAFETY: nobody else knows it; the memory stays, and is read as bytes.
        let left = unsafe {
            storage.free(leaf);
            std::slice::from_raw_parts(address, 16)
        };
        // But for the number of the next free place.
        assert_eq!(left[4..], [0xA5; 12]);
    }
}

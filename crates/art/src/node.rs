//! Nodes: what each of the four [kinds](Kind) has, and what may be done to it.
//!
//! | kind | children | bytes | lines that a lookup touches |
//! |---|---|---|---|
//! | Node4 | 4 | 32 | 1: two nodes share one |
//! | Node16 | 16 | 96 | 2: bytes and slots |
//! | Node48 | 48 | 480 | 2: index and slot |
//! | Node256 | 256 | 1056 | 1: the slot's |
//!
//! Every node begins with its lock word, its level, and a slot for the key that *ends* here: keys may be prefixes of
//! each other, and the end of a key is a symbol of its own, before all bytes. Bytes of small nodes are kept in the
//! order in which they were assigned, not sorted: sorting would move them under readers. Scans sort the few there are:
//! [`crate::order`].
//!
//! Nodes are all atomics but for the level, which is written before the node is published. So shared references to them
//! are all that anyone ever needs.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::kind::Kind;
use crate::lock::{Lock, State};
use crate::reference::Ref;
use crate::search::{in_four, in_sixteen};

/// What a node tells its children apart by: a byte of the key, or that the key has ended. In the order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Symbol(pub(crate) i16);

impl Symbol {
    pub(crate) const END: Symbol = Symbol(-1);
    /// Before every symbol.
    pub(crate) const BEFORE: Symbol = Symbol(-2);
    /// After every symbol.
    pub(crate) const AFTER: Symbol = Symbol(256);

    /// The symbol of a key at a position.
    #[inline(always)]
    pub(crate) fn at(key: &[u8], position: usize) -> Symbol {
        key.get(position).map_or(Symbol::END, |&byte| Symbol(byte.into()))
    }

    #[inline(always)]
    pub(crate) fn byte(self) -> Option<u8> {
        u8::try_from(self.0).ok()
    }
}

/// A reference to a child, or null.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Slot(AtomicU32);

impl Slot {
    #[inline(always)]
    pub(crate) fn load(&self) -> Ref {
        // pairs with the release in `store`: who sees a reference sees what it refers to.
        Ref::from_bits(self.0.load(Ordering::Acquire))
    }

    #[inline(always)]
    pub(crate) fn store(&self, child: Ref) {
        // pairs with the acquire in `load`.
        self.0.store(child.bits(), Ordering::Release);
    }
}

/// What every node begins with.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) lock: Lock,
    /// The position in the key of the byte that the children differ in. Written before the node is published.
    pub(crate) level: u32,
    /// The child for the key that ends here.
    pub(crate) end: Slot,
}

/// Where the next leaf or Node4 below a node is to lie, so that those which are near each other in the tree are so in
/// memory: a place in a few lines that are set aside for the node, or zero. See [`crate::space`], which alone looks at
/// it, under the lock of their class.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Plot(pub(crate) AtomicU32);

#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Node4 {
    pub(crate) header: Header,
    pub(crate) bytes: AtomicU32,
    pub(crate) slots: [Slot; 4],
}

#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Node16 {
    pub(crate) header: Header,
    pub(crate) plot: Plot,
    bytes: [AtomicU64; 2],
    pub(crate) slots: [Slot; 16],
}

#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Node48 {
    pub(crate) header: Header,
    pub(crate) plot: Plot,
    /// For each byte the number of its slot, from one; zero if it has none. Eight to a word.
    pub(crate) index: [AtomicU64; 32],
    slots: [Slot; 48],
}

#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct Node256 {
    pub(crate) header: Header,
    pub(crate) plot: Plot,
    pub(crate) slots: [Slot; 256],
    /// As the plot, for the next Node4 below this node.
    forks: Plot,
}

const _: () = {
    assert!(size_of::<Node4>() == Kind::Node4.bytes());
    assert!(size_of::<Node16>() == Kind::Node16.bytes());
    assert!(size_of::<Node48>() == Kind::Node48.bytes());
    assert!(size_of::<Node256>() == Kind::Node256.bytes());
};

impl Node4 {
    #[inline(always)]
    pub(crate) fn child(&self, byte: u8) -> Ref {
        // pairs with the release in `Node::assign`.
        let at = in_four(self.bytes.load(Ordering::Acquire), byte);
        self.slots.get(at).map_or(Ref::NULL, Slot::load)
    }
}

impl Node16 {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> [u64; 2] {
        // pairs with the release in `Node::assign`.
        [self.bytes[0].load(Ordering::Acquire), self.bytes[1].load(Ordering::Acquire)]
    }

    #[inline(always)]
    pub(crate) fn child(&self, byte: u8) -> Ref {
        self.slots.get(in_sixteen(self.bytes(), byte)).map_or(Ref::NULL, Slot::load)
    }

    /// [`Node16::child`], telling what it touches.
    #[inline(always)]
    pub(crate) fn child_watched(&self, byte: u8, mut watch: impl FnMut(*const Slot, usize)) -> Ref {
        watch((&raw const self.bytes).cast(), size_of_val(&self.bytes));
        let Some(slot) = self.slots.get(in_sixteen(self.bytes(), byte)) else { return Ref::NULL };
        watch(slot, size_of_val(slot));
        slot.load()
    }

    /// The lines that a lookup may touch, for prefetching: that of the bytes, and that of the later slots.
    #[inline(always)]
    pub(crate) fn lines(&self) -> [*const u8; 2] {
        [(&raw const self.bytes).cast(), (&raw const self.slots[12]).cast()]
    }
}

impl Node48 {
    #[inline(always)]
    pub(crate) fn position(&self, byte: u8) -> u8 {
        // pairs with the release in `Node::assign`.
        (self.index[usize::from(byte / 8)].load(Ordering::Acquire) >> (8 * (byte % 8))) as u8
    }

    #[inline(always)]
    pub(crate) fn child(&self, byte: u8) -> Ref {
        self.child_in(self.position(byte))
    }

    /// The child in the slot of this number, or null.
    #[inline(always)]
    pub(crate) fn child_in(&self, position: u8) -> Ref {
        // Zero, which is no slot's number, wraps to what no slot has.
        self.slots.get(usize::from(position.wrapping_sub(1))).map_or(Ref::NULL, Slot::load)
    }

    #[inline(always)]
    pub(crate) fn index_address(&self, byte: u8) -> *const u8 {
        (&raw const self.index).cast::<u8>().wrapping_add(usize::from(byte))
    }

    /// Where the slot of this position is.
    #[inline(always)]
    pub(crate) fn slot_address(&self, position: u8) -> *const u8 {
        let first = &raw const self.slots;
        first.cast::<u8>().wrapping_add(4 * usize::from(position.wrapping_sub(1)))
    }
}

impl Node256 {
    #[inline(always)]
    pub(crate) fn child(&self, byte: u8) -> Ref {
        self.slots[byte as usize].load()
    }

    #[inline(always)]
    pub(crate) fn slot_address(&self, byte: u8) -> *const u8 {
        (&raw const self.slots[byte as usize]).cast()
    }
}

/// A node of any kind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node<'a> {
    Four(&'a Node4),
    Sixteen(&'a Node16),
    FortyEight(&'a Node48),
    Full(&'a Node256),
}

impl<'a> Node<'a> {
    /// The node at this address.
    ///
    /// # Safety
    /// A node of this kind was written there, and stays for `'a`.
    #[inline(always)]
    pub(crate) unsafe fn at(address: *const u8, kind: Kind) -> Node<'a> {
        // SAFETY: by the contract; places are aligned to 32 bytes, as nodes are.
        unsafe {
            match kind {
                Kind::Node4 => Node::Four(&*address.cast()),
                Kind::Node16 => Node::Sixteen(&*address.cast()),
                Kind::Node48 => Node::FortyEight(&*address.cast()),
                Kind::Node256 => Node::Full(&*address.cast()),
            }
        }
    }

    /// Writes an empty, unlocked node of this kind.
    ///
    /// # Safety
    /// There is room for it at this address, aligned to 32 bytes, and nobody else uses it; it stays for `'a`.
    pub(crate) unsafe fn write(address: *mut u8, kind: Kind, level: u32) -> Node<'a> {
        // SAFETY: by the contract. Zero bytes are a node of level 0 without children; the header is the first field.
        unsafe {
            address.write_bytes(0, kind.bytes());
            let assigned = if kind == Kind::Node256 { 256 } else { 0 };
            let header = Header { lock: Lock::new(State::new(assigned, 0)), level, end: Slot::default() };
            address.cast::<Header>().write(header);
            Node::at(address, kind)
        }
    }

    #[inline(always)]
    pub(crate) fn header(self) -> &'a Header {
        match self {
            Node::Four(node) => &node.header,
            Node::Sixteen(node) => &node.header,
            Node::FortyEight(node) => &node.header,
            Node::Full(node) => &node.header,
        }
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> Kind {
        match self {
            Node::Four(_) => Kind::Node4,
            Node::Sixteen(_) => Kind::Node16,
            Node::FortyEight(_) => Kind::Node48,
            Node::Full(_) => Kind::Node256,
        }
    }

    /// Where the next leaf below this node is to lie. A Node4 has no room to know.
    #[inline(always)]
    pub(crate) fn plot(self) -> Option<&'a Plot> {
        match self {
            Node::Four(_) => None,
            Node::Sixteen(node) => Some(&node.plot),
            Node::FortyEight(node) => Some(&node.plot),
            Node::Full(node) => Some(&node.plot),
        }
    }

    /// Where the next Node4 below this node is to lie. Only a Node256 has so many that it is worth the room.
    #[inline(always)]
    pub(crate) fn forks(self) -> Option<&'a Plot> {
        match self {
            Node::Full(node) => Some(&node.forks),
            Node::Four(_) | Node::Sixteen(_) | Node::FortyEight(_) => None,
        }
    }

    #[inline(always)]
    pub(crate) fn level(self) -> usize {
        self.header().level as usize
    }

    /// The child for a symbol, or null.
    #[inline(always)]
    pub(crate) fn child(self, symbol: Symbol) -> Ref {
        let Some(byte) = symbol.byte() else { return self.header().end.load() };
        match self {
            Node::Four(node) => node.child(byte),
            Node::Sixteen(node) => node.child(byte),
            Node::FortyEight(node) => node.child(byte),
            Node::Full(node) => node.child(byte),
        }
    }

    /// [`Node::child`], but never what is being assigned to another byte at this moment: for those who go on to change
    /// what they come to, or have no key to compare with it. See [`crate::lock`].
    #[inline(always)]
    pub(crate) fn child_assigned(self, symbol: Symbol) -> Ref {
        self.slot(symbol).map_or(Ref::NULL, Slot::load)
    }

    /// The slot assigned to a symbol, if there is one. Who does not hold the lock may miss one that is being assigned.
    pub(crate) fn slot(self, symbol: Symbol) -> Option<&'a Slot> {
        let Some(byte) = symbol.byte() else { return Some(&self.header().end) };
        // Before the bytes: of all that are counted, the byte is seen.
        let assigned = self.header().lock.state().assigned();
        match self {
            Node::Four(node) => node.slots[..assigned].get(in_four(node.bytes.load(Ordering::Acquire), byte)),
            Node::Sixteen(node) => node.slots[..assigned].get(in_sixteen(node.bytes(), byte)),
            Node::FortyEight(node) => node.slots.get(usize::from(node.position(byte).wrapping_sub(1))),
            Node::Full(node) => node.slots.get(usize::from(byte)),
        }
    }

    /// Assigns a slot, which is null, to a byte that has none, and counts it and its child; `None` if there is no room.
    /// For who holds the lock; the child is to be stored next.
    pub(crate) fn assign(self, byte: u8, state: State) -> Option<(&'a Slot, State)> {
        let at = state.assigned();
        if at >= self.kind().capacity() {
            return None;
        }
        let counted = State::new(at + 1, state.live() + 1);
        // release: pairs with the acquire in `child`.
        let slot = match self {
            Node::Four(node) => {
                let bytes = node.bytes.load(Ordering::Relaxed) | u32::from(byte) << (8 * at);
                node.bytes.store(bytes, Ordering::Release);
                &node.slots[at]
            }
            Node::Sixteen(node) => {
                let half = &node.bytes[at / 8];
                half.store(
                    half.load(Ordering::Relaxed) | u64::from(byte) << (8 * (at % 8)),
                    Ordering::Release,
                );
                &node.slots[at]
            }
            Node::FortyEight(node) => {
                let word = &node.index[usize::from(byte / 8)];
                let slot = (at as u64 + 1) << (8 * (byte % 8));
                word.store(word.load(Ordering::Relaxed) | slot, Ordering::Release);
                &node.slots[at]
            }
            // All of its bytes are assigned from the start.
            Node::Full(_) => return None,
        };
        Some((slot, counted))
    }

    /// Adds a child to a node that nobody else knows yet. There must be room, and no child for the symbol.
    pub(crate) fn add_unshared(self, symbol: Symbol, child: Ref) {
        let lock = &self.header().lock;
        let state = lock.state();
        if let Some(slot) = self.slot(symbol) {
            slot.store(child);
            lock.release(State::new(state.assigned(), state.live() + 1));
        } else if let Some((slot, state)) = symbol.byte().and_then(|byte| self.assign(byte, state)) {
            slot.store(child);
            lock.release(state);
        } else {
            unreachable!("a node was made without room for its children");
        }
    }

    /// A child, if there is any.
    pub(crate) fn any_child(self) -> Option<Ref> {
        // No slot that is not counted: see the protocol page.
        let assigned = self.header().lock.state().assigned();
        let slots = match self {
            Node::Four(node) => &node.slots[..assigned],
            Node::Sixteen(node) => &node.slots[..assigned],
            Node::FortyEight(node) => &node.slots[..assigned],
            Node::Full(node) => &node.slots[..assigned],
        };
        std::iter::once(&self.header().end).chain(slots).map(Slot::load).find(|child| !child.is_null())
    }

    /// The children of a Node4 or Node16, in the order in which their bytes were assigned.
    #[inline]
    fn each_small(self, mut visit: impl FnMut(u8, Ref)) {
        let assigned = self.header().lock.state().assigned();
        let (bytes, slots) = match self {
            Node::Four(node) => ([node.bytes.load(Ordering::Acquire).into(), 0], &node.slots[..assigned]),
            Node::Sixteen(node) => (node.bytes(), &node.slots[..assigned]),
            Node::FortyEight(_) | Node::Full(_) => return,
        };
        for (at, slot) in slots.iter().enumerate() {
            let child = slot.load();
            if !child.is_null() {
                visit((bytes[at / 8] >> (8 * (at % 8))) as u8, child);
            }
        }
    }

    /// All children, in no order.
    pub(crate) fn each(self, mut visit: impl FnMut(Symbol, Ref)) {
        let end = self.header().end.load();
        if !end.is_null() {
            visit(Symbol::END, end);
        }
        match self {
            Node::Four(_) | Node::Sixteen(_) => {
                self.each_small(|byte, child| visit(Symbol(byte.into()), child));
            }
            Node::FortyEight(_) | Node::Full(_) => {
                for byte in 0..=255 {
                    let child = self.child(Symbol(byte));
                    if !child.is_null() {
                        visit(Symbol(byte), child);
                    }
                }
            }
        }
    }
}

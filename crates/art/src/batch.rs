//! Many lookups at once, each a step at a time.
//!
//! A lookup is a chain of lines, each named by the one before it. A batch walks many chains in turn: it takes one step
//! of the first, asks for the line of its next step, goes on to the second, and by the time it is back the line has
//! come. A chain that has ended makes room for the next key's at once, so that as many lines as possible are always on
//! their way.
//!
//! The reference to a node tells its kind, so the one line that matters of a Node256, or the one of a Node48's index,
//! is asked for before anything of the node has been read. A Node48 takes two steps: its index, its slot.
//!
//! Rejected: *all keys one level down, then the next level*: the ends of short chains leave gaps.

use crate::core::Entries;
use crate::key::Key;
use crate::node::{Node, Symbol};
use crate::probe::Unwatched;
use crate::reference::Ref;
use crate::storage::View;

/// Lookups in flight: about as many as a core has misses in flight, of lines and of translations.
const LANES: usize = 32;
/// Steps through large nodes that a lookup takes at once when it begins.
const AT_ONCE: usize = 2;

/// One lookup on its way.
#[derive(Clone, Copy)]
struct Lane {
    /// Whose it is.
    key: usize,
    /// Where it is: what it looks at next has been asked for.
    next: Ref,
    position: usize,
    /// The slot of a Node48 whose index has been looked at; else zero.
    slot: u8,
}

impl<K: Key + ?Sized, V> Entries<K, V> {
    /// Looks up every key: `found[i]` is told the leaf of `keys[i]`, or that there is none.
    pub(crate) fn find_many(&self, keys: &[&K], mut found: impl FnMut(usize, Option<Ref>)) {
        let root = self.root.load();
        if root.is_null() {
            (0..keys.len()).for_each(|key| found(key, None));
            return;
        }
        let view = self.storage.view();
        let start = |key: usize| Self::start(view, root, key, keys[key].as_ref());
        let mut lanes = [Lane { key: 0, next: root, position: 0, slot: 0 }; LANES];
        let mut flying = keys.len().min(LANES);
        let mut waiting = flying..keys.len();
        for (key, lane) in lanes[..flying].iter_mut().enumerate() {
            *lane = start(key);
        }
        while flying > 0 {
            let mut at = 0;
            while at < flying {
                let lane = &mut lanes[at];
                if Self::advance(view, lane, keys[lane.key]) {
                    at += 1;
                    continue;
                }
                found(lane.key, Some(lane.next).filter(|leaf| leaf.is_leaf()));
                if let Some(key) = waiting.next() {
                    *lane = start(key);
                    at += 1;
                } else {
                    flying -= 1;
                    lanes[at] = lanes[flying];
                }
            }
        }
    }

    /// A lookup that has begun. The first steps it takes at once: large nodes at the top of a large tree are in the
    /// caches.
    #[inline(always)]
    fn start(view: View<'_, K, V>, root: Ref, key: usize, bytes: &[u8]) -> Lane {
        let (mut next, mut position) = (root, 0);
        for &byte in bytes.iter().take(AT_ONCE) {
            if !next.is_node() || next.skips() {
                break;
            }
            let Node::Full(node) = view.node(next) else { break };
            next = node.child(byte);
            position += 1;
        }
        if !next.is_null() {
            Self::prefetch(view, next, position, bytes);
        }
        Lane { key, next, position, slot: 0 }
    }

    /// Takes one step, and asks for what the next one looks at; `false` if there is none, because the leaf of the key,
    /// or null, has been reached.
    #[inline(always)]
    fn advance(view: View<'_, K, V>, lane: &mut Lane, key: &K) -> bool {
        let bytes = key.as_ref();
        if lane.next.is_null() {
            return false;
        }
        let next = if lane.next.is_leaf() {
            if view.key(lane.next).as_ref() != bytes {
                lane.next = Ref::NULL;
            }
            return false;
        } else if lane.slot != 0 {
            let Node::FortyEight(node) = view.node(lane.next) else { unreachable!() };
            let slot = std::mem::take(&mut lane.slot);
            lane.position += 1;
            node.child_in(slot)
        } else if let Node::FortyEight(node) = view.node(lane.next) {
            if lane.next.skips() {
                lane.position = node.header.level as usize;
            }
            if let Some(byte) = Symbol::at(bytes, lane.position).byte() {
                lane.slot = node.position(byte);
                if lane.slot == 0 {
                    lane.next = Ref::NULL;
                    return false;
                }
                pages::prefetch(node.slot_address(lane.slot));
                return true;
            }
            lane.position += 1;
            node.header.end.load()
        } else {
            Self::step(view, lane.next, &mut lane.position, bytes, &mut Unwatched)
        };
        lane.next = next;
        if next.is_null() {
            return false;
        }
        Self::prefetch(view, next, lane.position, bytes);
        true
    }

    /// Asks for what a lookup touches first of a node or leaf.
    #[inline(always)]
    pub(crate) fn prefetch(view: View<'_, K, V>, next: Ref, position: usize, key: &[u8]) {
        if next.is_leaf() {
            pages::prefetch(view.leaf_address(next));
            return;
        }
        let node = view.node(next);
        match (node, Symbol::at(key, position).byte()) {
            (Node::Full(node), Some(byte)) if !next.skips() => pages::prefetch(node.slot_address(byte)),
            (Node::FortyEight(node), Some(byte)) if !next.skips() => {
                pages::prefetch(node.index_address(byte));
            }
            (Node::Sixteen(node), _) => node.lines().into_iter().for_each(pages::prefetch),
            _ => pages::prefetch(node.header()),
        }
    }
}

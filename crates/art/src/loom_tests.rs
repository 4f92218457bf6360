//! The lock word and the order of stores of [`crate::lock`] under the model checker: every interleaving and every
//! reordering that the memory model allows, on a root and nodes of two slots.
//!
//! The real nodes lie in pages, where the checker sees nothing. These have the same words, changed in the same order.
//!
//! Run by `ci/safety`: `RUSTFLAGS="--cfg loom" cargo test -p lookaside-art --lib --release`.

#![allow(unsafe_code)]

use atomics::{Arc, AtomicU32, Ordering};
use loom::thread;

use crate::lock::{Lock, State};

/// A node with room for two bytes. Its children are numbers; zero is none.
#[derive(Default)]
struct Node {
    lock: Lock,
    /// The bytes, eight bits each; not assigned ones are zero.
    bytes: AtomicU32,
    slots: [AtomicU32; 2],
}

/// A root's slot, which holds the number of a node, and nodes that take each other's place.
#[derive(Default)]
struct Tree {
    lock: Lock,
    root: AtomicU32,
    nodes: [Node; 3],
}

impl Node {
    fn position(&self, byte: u32) -> Option<usize> {
        let bytes = self.bytes.load(Ordering::Acquire);
        (0..2).find(|at| bytes >> (8 * at) & 0xFF == byte)
    }

    /// As `Node4::child`.
    fn child(&self, byte: u32) -> u32 {
        self.position(byte).map_or(0, |at| self.slots[at].load(Ordering::Acquire))
    }

    /// As `Node::child_assigned`: the count first.
    fn child_assigned(&self, byte: u32) -> u32 {
        let assigned = self.lock.state().assigned();
        let at = self.position(byte).filter(|&at| at < assigned);
        at.map_or(0, |at| self.slots[at].load(Ordering::Acquire))
    }

    /// As `Node::each`: by the count.
    fn each(&self) -> Vec<(u32, u32)> {
        let assigned = self.lock.state().assigned();
        let bytes = self.bytes.load(Ordering::Acquire);
        let slots =
            (0..assigned).map(|at| (bytes >> (8 * at) & 0xFF, self.slots[at].load(Ordering::Acquire)));
        slots.filter(|&(_, child)| child != 0).collect()
    }

    /// As the end of `Entries::attach`, with the lock held; gives the counts to release it with.
    fn attach(&self, byte: u32, child: u32, state: State) -> State {
        let at = state.assigned();
        let counted = State::new(at + 1, state.live() + 1);
        self.bytes.store(self.bytes.load(Ordering::Relaxed) | byte << (8 * at), Ordering::Release);
        self.lock.announce(counted);
        self.slots[at].store(child, Ordering::Release);
        counted
    }
}

impl Tree {
    fn with(children: &[(u32, u32)]) -> Arc<Tree> {
        let tree = Tree::default();
        for &(byte, child) in children {
            let node = &tree.nodes[0];
            let state = node.attach(byte, child, node.lock.state());
            node.lock.release(state);
        }
        Arc::new(tree)
    }

    fn node(&self) -> (u32, &Node) {
        let root = self.root.load(Ordering::Acquire);
        (root, &self.nodes[root as usize])
    }

    fn get(&self, byte: u32) -> u32 {
        self.node().1.child(byte)
    }

    /// As `Entries::insert` where there is room.
    fn insert(&self, byte: u32, child: u32) {
        loop {
            let node = self.node().1;
            if let Some(state) = node.lock.acquire() {
                let state = node.attach(byte, child, state);
                node.lock.release(state);
                return;
            }
        }
    }

    /// As `Entries::exchange`: what was there.
    fn exchange(&self, byte: u32, child: u32) -> u32 {
        loop {
            let node = self.node().1;
            if let Some(state) = node.lock.acquire() {
                let slot = &node.slots[node.position(byte).expect("it is assigned")];
                let old = slot.load(Ordering::Acquire);
                slot.store(child, Ordering::Release);
                node.lock.release(state);
                return old;
            }
        }
    }

    /// As `Entries::relocate`: puts node `new` in the place of the one that is there.
    fn replace_node(&self, new: u32) {
        let above = self.lock.acquire().expect("the root's lock is never obsolete");
        let (_, old) = self.node();
        old.lock.acquire().expect("who replaces a node holds the root's lock");
        let copy = &self.nodes[new as usize];
        for (byte, child) in old.each() {
            let state = copy.attach(byte, child, copy.lock.state());
            copy.lock.release(state);
        }
        self.root.store(new, Ordering::Release);
        old.lock.release_obsolete();
        self.lock.release(above);
    }
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// A thread that puts one child in.
fn inserting(tree: &Arc<Tree>, byte: u32, child: u32) -> thread::JoinHandle<()> {
    let tree = tree.clone();
    thread::spawn(move || tree.insert(byte, child))
}

#[test]
fn nothing_is_lost_between_a_node_and_its_copy() {
    model(|| {
        let tree = Tree::with(&[(1, 10)]);
        let writer = thread::spawn({
            let tree = tree.clone();
            move || {
                tree.insert(2, 20);
                // Who has put it in finds it.
                assert_eq!(tree.get(2), 20);
            }
        });
        tree.replace_node(1);
        assert_eq!(tree.get(1), 10);
        writer.join().unwrap();
        assert_eq!((tree.get(1), tree.get(2)), (10, 20));
        assert_eq!(tree.node().1.lock.state(), State::new(2, 2));
    });
}

#[test]
fn a_reader_sees_what_was_there_all_the_while_and_time_does_not_run_backwards() {
    model(|| {
        let tree = Tree::with(&[(1, 10)]);
        let mover = thread::spawn({
            let tree = tree.clone();
            move || tree.replace_node(1)
        });
        let writer = thread::spawn({
            let tree = tree.clone();
            move || assert_eq!(tree.exchange(1, 11), 10)
        });
        let first = tree.get(1);
        let second = tree.get(1);
        assert!(first == 10 || first == 11, "{first}");
        assert!(second == 11 || first == 10 && second == 10, "{first}, then {second}");
        mover.join().unwrap();
        writer.join().unwrap();
        assert_eq!(tree.get(1), 11);
    });
}

#[test]
fn a_scan_shows_what_a_lookup_has_seen() {
    model(|| {
        let tree = Tree::with(&[]);
        let writer = inserting(&tree, 2, 20);
        let seen = tree.get(2);
        let shown = tree.node().1.each();
        // Bytes and children belong together, always.
        assert!(shown.iter().all(|&entry| entry == (2, 20)), "{shown:?}");
        assert!(seen == 0 || !shown.is_empty(), "looked up, but not shown");
        writer.join().unwrap();
    });
}

#[test]
fn two_writers_of_one_node_both_count() {
    model(|| {
        let tree = Tree::with(&[]);
        let writer = inserting(&tree, 1, 10);
        tree.insert(2, 20);
        writer.join().unwrap();
        assert_eq!((tree.get(1), tree.get(2)), (10, 20));
        assert_eq!(tree.node().1.lock.state(), State::new(2, 2));
    });
}

#[test]
fn byte_zero_never_leads_below_a_byte_that_is_being_assigned() {
    model(|| {
        let tree = Tree::with(&[(5, 50)]);
        let writer = inserting(&tree, 7, 70);
        // Unassigned bytes read as zero: a search that is to end in a change, or in a scan, must not take them for it.
        assert_eq!(tree.node().1.child_assigned(0), 0);
        writer.join().unwrap();
        assert_eq!((tree.node().1.child_assigned(7), tree.node().1.child_assigned(0)), (70, 0));
    });
}

/// The check above can fail: what lookups do, who compare the leaf's key in the end, is led there.
#[test]
#[should_panic(expected = "led below another byte")]
fn without_the_count_byte_zero_leads_there() {
    model(|| {
        let tree = Tree::with(&[(5, 50)]);
        let writer = inserting(&tree, 7, 70);
        assert_eq!(tree.node().1.child(0), 0, "led below another byte");
        writer.join().unwrap();
    });
}

//! What may cross threads, and what may not. All of it is checked by the compiler.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use lookaside::{Found, Handle, Map, MapRef, OwnedMap, Pin, RandomState, Removed, RwLock, SharedBuffer};

type Index<K, V> = RwLock<BTreeSet<Handle<K, V>>>;
type Shared<K, V> = Map<K, V, Index<K, V>>;
type Owned<K, V> = OwnedMap<K, V, BTreeSet<Handle<K, V>>>;

fn sent<T: Send>() {}
fn shared<T: Sync>() {}

/// Ambiguous, and so an error, where the type is what it must not be.
macro_rules! never {
    ($bound:ident: $($type:ty),* $(,)?) => { $({
        trait Otherwise<Which> {
            fn asked() {}
        }
        impl<T: ?Sized> Otherwise<()> for T {}
        #[allow(dead_code)]
        struct Bound;
        impl<T: ?Sized + $bound> Otherwise<Bound> for T {}
        <$type as Otherwise<_>>::asked();
    })* };
}

#[test]
fn maps_and_what_was_taken_out_cross_threads_if_keys_and_values_do() {
    sent::<Shared<String, String>>();
    shared::<Shared<String, String>>();
    sent::<Owned<String, String>>();
    sent::<Handle<String, String>>();
    shared::<Handle<String, String>>();
    sent::<Removed<String, String>>();
    shared::<Removed<String, String>>();
    sent::<SharedBuffer>();
    shared::<SharedBuffer>();
    // Each of them is dropped on one thread and read on others.
    never!(Send: Handle<Rc<u8>, u8>, Handle<u8, Rc<u8>>, Handle<Cell<u8>, u8>, Removed<u8, Cell<u8>>);
    never!(Sync: Handle<Rc<u8>, u8>, Handle<u8, Rc<u8>>, Handle<u8, Cell<u8>>, Removed<Cell<u8>, u8>);
    never!(Send: Shared<Rc<u8>, u8>, Shared<u8, Cell<u8>>, Owned<u8, Rc<u8>>, Owned<Cell<u8>, u8>);
    never!(Sync: Shared<Rc<u8>, u8>, Shared<u8, Cell<u8>>);
    // Types of entries that the index knows nothing of.
    never!(Send: Map<Rc<u8>, u8, ()>, Map<u8, Cell<u8>, ()>, OwnedMap<Rc<u8>, u8, ()>);
    never!(Sync: Map<Rc<u8>, u8, ()>, Map<u8, Cell<u8>, ()>);
}

#[test]
fn indexes_and_hashers_take_part() {
    never!(Send: Map<u8, u8, Rc<u8>>, Map<u8, u8, (), Rc<RandomState>>, OwnedMap<u8, u8, Rc<u8>>);
    never!(Sync: Map<u8, u8, RefCell<u8>>, Map<u8, u8, (), RefCell<RandomState>>);
}

#[test]
fn what_is_pinned_stays_where_it_is() {
    never!(Send: MapRef<'static, u8, u8, ()>, Pin<'static>, Found<'static, u8, u8>);
    never!(Sync: MapRef<'static, u8, u8, ()>, Pin<'static>, Found<'static, u8, u8>);
    // One thread at a time.
    never!(Sync: Owned<u8, u8>);
}

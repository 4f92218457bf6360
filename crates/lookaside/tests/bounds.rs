//! What may cross threads, and what may not. All of it is checked by the compiler.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use lookaside::{
    Buffer, Found, Front, Handle, Map, MapRef, OwnedMap, Pin, RandomState, Removed, RwLock, SharedBuffer,
};

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

/// What a panic leaves whole may be used by who has caught it, with no word more.
#[test]
fn a_panic_leaves_maps_whole_if_it_does_keys_and_values() {
    fn whole<T: UnwindSafe + RefUnwindSafe>() {}
    whole::<Map<String, Vec<u8>>>();
    whole::<MapRef<'static, String, Vec<u8>>>();
    whole::<OwnedMap<String, Vec<u8>>>();
    whole::<Shared<String, String>>();
    whole::<Owned<String, String>>();
    whole::<Removed<String, String>>();
    whole::<(Buffer, SharedBuffer)>();
    whole::<Front<&'static str>>();
    never!(UnwindSafe: Map<Cell<u8>, u8>, MapRef<'static, u8, Cell<u8>>, OwnedMap<u8, Cell<u8>>);
    never!(RefUnwindSafe: Map<u8, RefCell<u8>>, OwnedMap<RefCell<u8>, u8>);
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

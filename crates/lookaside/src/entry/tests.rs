use std::hash::Hasher;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::departing::ends;
use super::found::Entry;
use super::handle::free;
use super::word::Word;
use super::*;
use crate::config::Config;
use crate::index::{Find, SharedDiscard, SharedStore};
use crate::map::Map;

/// Keeps clones of what it gives back, or gives back what was not asked for.
#[derive(Default)]
struct Odd {
    keeps: bool,
    handles: Arc<Mutex<Vec<Handle<u64, u64>>>>,
    kept: Arc<Mutex<Vec<Handle<u64, u64>>>>,
}

impl Find<u64, u64, u64> for Odd {
    fn find<'p>(&self, key: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, u64>> {
        self.handles.lock().unwrap().iter().find(|handle| handle.key() == key)?.found(pin)
    }
}

impl SharedStore<u64, u64> for Odd {
    const SUCCESSION: bool = true;

    fn replace(&self, handle: Handle<u64, u64>) -> Option<Handle<u64, u64>> {
        let old = SharedDiscard::remove(self, handle.key());
        self.handles.lock().unwrap().push(handle);
        old
    }

    fn len(&self) -> usize {
        self.handles.lock().unwrap().len()
    }
}

impl SharedDiscard<u64, u64, u64> for Odd {
    fn remove(&self, key: &u64) -> Option<Handle<u64, u64>> {
        let mut handles = self.handles.lock().unwrap();
        // A key above a hundred is given that of the first entry, whatever it is.
        let at = handles.iter().position(|handle| *key > 100 || handle.key() == key)?;
        let old = handles.remove(at);
        if self.keeps {
            self.kept.lock().unwrap().push(old.clone());
        }
        Some(old)
    }
}

fn is_forgotten(removed: &Removed<u64, u64>) -> bool {
    Word::is_forgotten(removed.0.entry().word.load(Ordering::Relaxed))
}

/// Has one entry, and gives every other back at once.
#[derive(Default)]
struct Full(Mutex<Option<Handle<u64, u64>>>);

impl Find<u64, u64, u64> for Full {
    fn find<'p>(&self, _key: &u64, pin: &Pin<'p>) -> Option<Found<'p, u64, u64>> {
        self.0.lock().unwrap().as_ref()?.found(pin)
    }
}

impl SharedStore<u64, u64> for Full {
    fn replace(&self, handle: Handle<u64, u64>) -> Option<Handle<u64, u64>> {
        let mut only = self.0.lock().unwrap();
        if only.is_some() {
            return Some(handle);
        }
        only.replace(handle)
    }

    fn len(&self) -> usize {
        1
    }
}

/// The table has it.
#[test]
fn nor_is_the_very_one_that_was_put_in() {
    let map = Map::with_index(Full::default(), &Config::with_size(64)).unwrap();
    map.insert(1, 10);
    assert_eq!(map.pin().get(&1), Some(&10));
    let back = map.insert(1, 11).unwrap();
    assert_eq!((*back, map.pin().get(&1)), (11, Some(&11)));
    assert!(!is_forgotten(&back));
    drop(back);
    map.buffer().collect();
    assert_eq!(map.pin().get(&1), Some(&10));
}

/// With a key that has been succeeded.
fn succeeded(index: Odd) -> Map<u64, u64, Odd> {
    let map = Map::with_index(index, &Config::with_size(64)).unwrap();
    map.insert(1, 10);
    assert_eq!(map.pin().get(&1), Some(&10));
    assert!(!is_forgotten(&map.insert(1, 11).unwrap()), "the index has it still");
    map
}

#[test]
fn the_last_handle_that_an_index_gives_back_is_known_to_be_forgotten() {
    let map = Map::with_index(Odd::default(), &Config::with_size(64)).unwrap();
    assert!(map.insert(1, 10).is_none());
    assert!(is_forgotten(&map.insert(1, 11).unwrap()));
    assert!(is_forgotten(&map.remove(&1).unwrap()));
}

#[test]
fn so_is_a_successor_that_is_replaced_and_that_of_such_a_last_handle() {
    let map = succeeded(Odd::default());
    assert!(is_forgotten(&map.insert(1, 12).unwrap()));
    assert!(is_forgotten(&map.remove(&1).unwrap()));
    assert_eq!(map.buffer().counts().successions, 2);
}

#[test]
fn nor_is_a_successor_of_which_somebody_has_a_share() {
    let index = Odd { keeps: true, ..Odd::default() };
    let (handles, kept) = (Arc::clone(&index.handles), Arc::clone(&index.kept));
    let map = succeeded(index);
    let share = map.remove(&1).unwrap();
    assert_eq!(*share, 11);
    // The index has second thoughts.
    handles.lock().unwrap().append(&mut kept.lock().unwrap());
    assert_eq!(map.pin().get(&1), Some(&11));
    let replaced = map.insert(1, 12).unwrap();
    assert_eq!((*replaced, map.buffer().counts().successions), (11, 2));
    assert!(!is_forgotten(&replaced));
    drop(replaced);
    assert_eq!((*share, map.pin().get(&1)), (11, Some(&12)));
}

#[test]
fn what_others_may_find_is_not() {
    let map = Map::with_index(Odd { keeps: true, ..Odd::default() }, &Config::with_size(64)).unwrap();
    map.insert(1, 10);
    assert!(!is_forgotten(&map.insert(1, 11).unwrap()), "the index has another handle");
    let map = succeeded(Odd { keeps: true, ..Odd::default() });
    assert!(!is_forgotten(&map.remove(&1).unwrap()), "and that has the same successor");

    let map = Map::with_index(Odd::default(), &Config::with_size(64)).unwrap();
    map.insert(1, 10);
    assert!(!is_forgotten(&map.remove(&101).unwrap()), "the table was cleared of another hash");

    // An index that is shared by two maps gives one what is the other's, of the same hash.
    let buffer = || crate::SharedBuffer::for_indexes(&Config::with_size(64), 1).unwrap();
    let index = Odd::default();
    let same = Odd { handles: Arc::clone(&index.handles), ..Odd::default() };
    let other = Map::sharing(index, &buffer(), Same).unwrap();
    let map = Map::sharing(same, &buffer(), Same).unwrap();
    other.insert(1, 10);
    assert!(!is_forgotten(&map.remove(&1).unwrap()), "the table of the other was not cleared");
}

#[test]
fn nobody_takes_a_share_of_what_a_write_of_another_stripe_may_be_replacing() {
    let map = succeeded(Odd::default());
    assert_eq!(map.remove(&101).as_deref(), Some(&10), "of another hash");

    let buffer = || crate::SharedBuffer::for_indexes(&Config::with_size(64), 1).unwrap();
    let index = Odd::default();
    let same = Odd { handles: Arc::clone(&index.handles), ..Odd::default() };
    let other = Map::sharing(index, &buffer(), Same).unwrap();
    let map = Map::sharing(same, &buffer(), Same).unwrap();
    other.insert(1, 10);
    assert_eq!(other.pin().get(&1), Some(&10));
    assert_eq!(other.insert(1, 11).as_deref(), Some(&10));
    assert_eq!(map.remove(&1).as_deref(), Some(&10), "of another map");
}

/// Hashes keys to themselves.
#[derive(Clone, Default)]
struct Same;

impl std::hash::BuildHasher for Same {
    type Hasher = Last;

    fn build_hasher(&self) -> Last {
        Last(0)
    }
}

struct Last(u64);

impl Hasher for Last {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[test]
fn an_entry_of_two_numbers_is_four_words() {
    assert_eq!(size_of::<Entry<u64, u64>>(), 32);
}

/// Of more handles than a word can count, none is the last.
#[test]
fn an_entry_with_too_many_handles_is_not_freed() {
    let index = Odd::default();
    let handles = Arc::clone(&index.handles);
    let map = Map::with_index(index, &Config::with_size(64)).unwrap();
    map.insert(1, 10);
    let handle = handles.lock().unwrap()[0].clone();
    let clones: Vec<_> = (0..20_000).map(|_| handle.clone()).collect();
    drop(clones);
    handles.lock().unwrap().clear();
    let word = handle.entry().word.load(Ordering::Relaxed);
    assert_eq!((Word::handles(word), handle.value()), (Word::MANY, &10));
    // As many as there are, so that this test leaves nothing behind.
    let one = word & !(Word::MANY << 32) | Word::ONE;
    handle.entry().word.0.store(one, Ordering::Relaxed);
    drop(map);
    assert_eq!(handle.value(), &10);
}

#[test]
fn what_was_removed_is_had_when_nobody_sees_it() {
    let map = Map::<String, String>::new();
    let entry = || ("rome".to_string(), "eternal".to_string());
    let put = || drop(map.insert(entry().0, entry().1));
    put();
    let reader = map.pin();
    let seen = reader.get("rome").unwrap();
    let removed = map.remove("rome").unwrap().try_unwrap().unwrap_err();
    assert_eq!((seen, &*removed, removed.key()), (&entry().1, &entry().1, &entry().0));
    drop(reader);
    map.buffer().collect();
    assert_eq!(removed.try_unwrap().unwrap(), entry());
    put();
    // Sooner or later it is itself; a clone until then.
    assert_eq!(map.remove("rome").unwrap().into_value(), entry().1);

    let mut owned = crate::OwnedMap::<String, String>::new();
    for _ in 0..3 {
        owned.insert(entry().0, entry().1);
        owned.get("rome");
        assert_eq!(owned.insert(entry().0, entry().1).unwrap().try_unwrap().unwrap(), entry());
        assert_eq!(owned.remove("rome").unwrap().try_unwrap().unwrap(), entry());
    }
    // A first owns its successor, and keeps it while it is in the index.
    let mut owned = crate::OwnedMap::<String, u64>::new();
    owned.insert(entry().0, 1);
    owned.get("rome");
    let first = owned.insert(entry().0, 2).unwrap().try_unwrap().unwrap_err();
    assert_eq!(owned.counts().successions, 1);
    let second = owned.remove("rome").unwrap();
    assert_eq!((*first, *second), (1, 2));
    drop(owned);
    assert_eq!((first.into_value(), second.into_value()), (1, 2));
}

/// Lets nothing go.
struct Holds;

impl Reclaim for Holds {
    fn retire(self: Arc<Self>, _: Dead) {}

    unsafe fn forget(&self, _: Dead) {}
}

/// Who asked for a share of an entry that had none left was refused, and yet counted off a handle that there was not:
/// the entry then seemed to have more than can be counted.
#[test]
fn an_entry_without_handles_has_none_to_share() {
    let home = Reclaimer::of(Arc::new(Holds), false);
    let handle = Draft::new(7u64, 70u64, u64::MAX, &home).handle();
    // SAFETY: freed below.
    let found = handle.found(&unsafe { Pin::new(&home) }).unwrap();
    drop(handle);
    let word = || found.entry().word.load(Ordering::Relaxed);
    let before = word();
    assert_eq!(Word::handles(before), 0);
    assert!(found.share().is_none() && found.share().is_none());
    assert_eq!(word(), before);
    // SAFETY: its only handle is gone, and nobody was told of it.
    unsafe { free::<u64, u64>(found.entry.as_ptr().cast(), std::ptr::null()) };
    drop(ends::<u64, u64>(&home));
}

//! The lookaside buffer before the index: what it knows is used, and what is gone is never found by way of it.
//!
//! Every test warms the table first and checks that it was asked, so that none passes because the buffer did nothing.

use std::ops::ControlFlow;

use lookaside_cache::engine::{Cache, Config, Entry, Eviction, Expiry, Session, Stored, Todo, Updated, Verb};

const MIB: usize = 1 << 20;

/// A cache whose table has room for every key of these tests.
fn cache(limit: usize) -> Cache {
    Cache::new(Config { lookaside: MIB, ..Config::with_limit(limit) }).unwrap()
}

fn name(key: u64) -> Vec<u8> {
    format!("key-{key:012}").into_bytes()
}

fn set(session: &mut Session, key: u64, value: &[u8]) {
    assert!(matches!(session.store(Verb::Set, Entry::new(&name(key)), value), Ok(Stored::Stored(_))));
}

fn get(session: &mut Session, key: u64) -> Option<Vec<u8>> {
    session.pin().get(&name(key)).map(|hit| hit.to_vec())
}

/// All at once, as a server asks for them.
fn get_many(session: &mut Session, keys: &[u64]) -> Vec<Option<Vec<u8>>> {
    let names: Vec<Vec<u8>> = keys.iter().map(|&key| name(key)).collect();
    let mut values = Vec::new();
    session.pin().get_many(&names.iter().map(Vec::as_slice).collect::<Vec<_>>(), |_, hit| {
        values.push(hit.map(|hit| hit.to_vec()));
        ControlFlow::Continue(())
    });
    values
}

/// Asks for what is there until the table has it.
fn warm(cache: &Cache, session: &mut Session, key: u64) {
    for _ in 0..2 {
        assert!(get(session, key).is_some());
    }
    let before = cache.counts().lookaside_hits;
    assert!(get(session, key).is_some());
    assert_eq!(cache.counts().lookaside_hits, before + 1, "the table has it");
}

#[test]
fn hits_and_misses_are_counted() {
    let cache = cache(4 * MIB);
    let mut session = cache.session();
    let keys: Vec<u64> = (0..100).collect();
    keys.iter().for_each(|&key| set(&mut session, key, &key.to_le_bytes()));
    let expected: Vec<_> = keys.iter().map(|key| Some(key.to_le_bytes().to_vec())).collect();
    let told = || (cache.counts().lookaside_hits, cache.counts().lookaside_misses);
    assert_eq!((told(), cache.memory().lookaside), ((0, 0), MIB));
    assert_eq!(get_many(&mut session, &keys), expected);
    assert_eq!(told(), (0, 100), "the first time all come from the index");
    assert_eq!(get_many(&mut session, &keys), expected);
    assert_eq!(told(), (100, 100), "the second time from the table");
    assert_eq!(get(&mut session, 7), expected[7]);
    assert_eq!(get(&mut session, 100), None);
    assert_eq!(told(), (101, 101));
    // Known and unknown ones in one batch, in their order.
    assert_eq!(
        get_many(&mut session, &[100, 3, 101, 4, 3]),
        [None, expected[3].clone(), None, expected[4].clone(), expected[3].clone()]
    );
    assert_eq!(told(), (104, 103));
    let counts = cache.counts();
    assert_eq!((counts.hits, counts.misses), (204, 3), "a hit is a hit, wherever it was found");
}

#[test]
fn without_one_nothing_is_counted() {
    let cache: Cache = Cache::new(Config::with_limit(4 * MIB)).unwrap();
    let mut session = cache.session();
    set(&mut session, 1, b"value");
    assert!(get(&mut session, 1).is_some() && get_many(&mut session, &[1, 1]).iter().all(Option::is_some));
    let counts = cache.counts();
    assert_eq!((counts.lookaside_hits, counts.lookaside_misses, cache.memory().lookaside), (0, 0, 0));
}

#[test]
fn a_deleted_item_is_gone_and_a_new_one_is_the_new_one() {
    let cache = cache(4 * MIB);
    let mut session = cache.session();
    for round in 0..1000u64 {
        set(&mut session, 1, &round.to_le_bytes());
        warm(&cache, &mut session, 1);
        assert!(session.delete(&name(1)));
        assert_eq!((get(&mut session, 1), get_many(&mut session, &[1])), (None, vec![None]));
    }
}

#[test]
fn whatever_replaces_an_item_is_found_in_its_place() {
    let cache = cache(4 * MIB);
    let mut session = cache.session();
    set(&mut session, 1, b"0");
    let check = |session: &mut Session, value: &[u8]| {
        assert_eq!(get_many(session, &[1]), [Some(value.to_vec())]);
        warm(&cache, session, 1);
        assert_eq!(get(session, 1), Some(value.to_vec()));
    };
    check(&mut session, b"0");
    let key = name(1);
    let before = cache.counts().lookaside_hits;
    let stored = |stored| assert!(matches!(stored, Ok(Stored::Stored(_))));
    stored(session.store(Verb::Set, Entry::new(&key), b"1"));
    assert_eq!(get(&mut session, 1), Some(b"1".to_vec()));
    assert_eq!(cache.counts().lookaside_hits, before + 1, "what was hot stays hot");
    check(&mut session, b"1");
    stored(session.store(Verb::Replace, Entry::new(&key), b"2"));
    check(&mut session, b"2");
    stored(session.store(Verb::Append, Entry::new(&key), b"!"));
    check(&mut session, b"2!");
    stored(session.store(Verb::Prepend, Entry::new(&key), b"!"));
    check(&mut session, b"!2!");
    let number = session.pin().get(&key).unwrap().cas();
    stored(session.store(Verb::CompareAndSwap(number), Entry::new(&key), b"3"));
    check(&mut session, b"3");
    let refused = session.store(Verb::CompareAndSwap(number), Entry::new(&key), b"4");
    assert_eq!(refused, Ok(Stored::Exists));
    check(&mut session, b"3");
    let outcome = session.update(&key, |_, new| {
        new.push(b'5');
        Ok::<(), ()>(())
    });
    assert!(matches!(outcome, Ok(Updated::Updated(_))));
    check(&mut session, b"5");
    // Without room for an expiry, a touch makes a copy.
    assert_eq!(session.touch(&key, Expiry::At(1000)), Ok(true));
    check(&mut session, b"5");
    assert_eq!(session.pin().get(&key).unwrap().expiry(), Expiry::At(1000));
    // A set that fails leaves nothing.
    assert!(session.store(Verb::Set, Entry::new(&key), &vec![0; 8 * MIB]).is_err());
    assert_eq!(get(&mut session, 1), None);
}

#[test]
fn expired_items_are_found_by_nobody_and_their_chunks_are_others() {
    for by_housekeeping in [false, true] {
        let cache = cache(4 * MIB);
        cache.set_time(100);
        let mut session = cache.session();
        for key in 0..1000 {
            let name = name(key);
            let entry = Entry { expiry: Expiry::At(200), ..Entry::new(&name) };
            session.store(Verb::Set, entry, &key.to_le_bytes()).unwrap();
            warm(&cache, &mut session, key);
        }
        // In place: no copy, and the table still knows it.
        assert_eq!(session.touch(&name(7), Expiry::At(300)), Ok(true));
        cache.set_time(200);
        if by_housekeeping {
            let mut housekeeper = cache.housekeeper();
            for _ in 0..100 {
                housekeeper.step();
            }
            assert_eq!(cache.len(), 1, "all but the one that was touched");
        }
        let alive: Vec<u64> = (0..1000).filter(|&key| get(&mut session, key).is_some()).collect();
        assert_eq!(alive, [7]);
        // Others move in.
        for key in 1000..3000u64 {
            set(&mut session, key, &key.to_le_bytes());
        }
        for key in 0..3000u64 {
            let expected = (key >= 1000 || key == 7).then(|| key.to_le_bytes().to_vec());
            assert_eq!(get(&mut session, key), expected);
        }
        cache.set_time(300);
        assert_eq!(get_many(&mut session, &[7]), [None]);
    }
}

/// Chunks are evicted and reused many times over, by keys of the same length: a location that the table should have
/// forgotten would be another key's item, or an older one of the same key's.
#[test]
fn evicted_chunks_are_reused_and_never_found_under_their_old_key() {
    for lookaside in [64, 4096, MIB] {
        let cache: Cache = Cache::new(Config { lookaside, ..Config::with_limit(MIB) }).unwrap();
        let mut session = cache.session();
        let keys = 40_000;
        let mut versions = vec![0u64; keys as usize];
        let (mut found, mut missing) = (0, 0);
        for round in 0..200_000u64 {
            let key = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) % keys;
            versions[key as usize] = round;
            set(&mut session, key, &[key.to_le_bytes(), round.to_le_bytes()].concat());
            // The last one, from the index and then from the table, and any.
            for other in [key, key, round.wrapping_mul(0xD6E8_FEB8_6659_FD93) % keys] {
                for value in get_many(&mut session, &[other, other]) {
                    let Some(value) = value else {
                        missing += 1;
                        continue;
                    };
                    found += 1;
                    let expected = [other.to_le_bytes(), versions[other as usize].to_le_bytes()].concat();
                    assert_eq!(value, expected, "key {other} in round {round}");
                }
            }
        }
        let evicted: u64 = cache.classes().iter().map(|(_, class)| class.departures.evicted).sum();
        let known = cache.counts().lookaside_hits;
        assert!(
            found > 100_000 && missing > 10_000 && evicted > 50_000 && known > 200_000,
            "{found} found, {missing} missing, {evicted} evicted, {known} known"
        );
    }
}

#[test]
fn memory_that_moves_between_classes_takes_nothing_known_with_it() {
    let cache = cache(4 * MIB);
    let mut session = cache.session();
    for (phase, len) in [20usize, 2000, 200, 20, 100_000, 20].into_iter().enumerate() {
        let value = |key: u64| [&key.to_le_bytes()[..], &vec![phase as u8; len]].concat();
        let keys = (8 * MIB / (len + 60)) as u64;
        for key in 0..keys {
            set(&mut session, key, &value(key));
            for other in [key, key / 2] {
                let seen = get(&mut session, other);
                assert!(seen.is_none_or(|seen| seen == value(other)), "phase {phase}, key {other}");
            }
        }
    }
    assert!(cache.memory().pages_moved > 0 && cache.counts().lookaside_hits > 10_000);
}

#[test]
fn the_index_grows_under_it_and_what_it_knows_stays_true() {
    let cache = cache(64 * MIB);
    let mut session = cache.session();
    for key in 0..1000 {
        set(&mut session, key, &key.to_le_bytes());
        warm(&cache, &mut session, key);
    }
    let (buckets, before) = (cache.memory().index_buckets, cache.counts().lookaside_hits);
    for key in 1000..400_000 {
        set(&mut session, key, &key.to_le_bytes());
        assert_eq!(get(&mut session, key % 1000), Some((key % 1000).to_le_bytes().to_vec()));
    }
    let grown = cache.memory().index_buckets;
    assert!(grown > buckets * 4, "from {buckets} to {grown} buckets");
    let known = cache.counts().lookaside_hits - before;
    assert!(known > 390_000, "{known} of 399000 from the table: locations stay what they are");
}

/// So little memory that the index has no room for a key: one of its neighbours goes, whose stripe may be the same.
#[test]
fn neighbours_make_room_without_anybody_waiting_for_himself() {
    for lookaside in [64, 1 << 16] {
        let config = Config { lookaside, ..Config::with_limit(MIB) };
        let cache: Cache = Cache::new(config).unwrap();
        let mut session = cache.session();
        for key in 0..200_000u64 {
            assert!(matches!(
                session.store(Verb::Set, Entry::new(&key.to_be_bytes()[4..]), b""),
                Ok(Stored::Stored(_))
            ));
            assert!(session.pin().get(&key.to_be_bytes()[4..]).is_some());
        }
        assert!(cache.len() > 10_000);
    }
    // Where nothing makes way, a full cache keeps what it has.
    let config = Config { eviction: Eviction::Never, lookaside: 64, ..Config::with_limit(MIB) };
    let cache: Cache = Cache::new(config).unwrap();
    let mut session = cache.session();
    let stored = (0u64..).take_while(|key| {
        session.store(Verb::Set, Entry::new(&key.to_be_bytes()), &key.to_le_bytes()).is_ok()
    });
    let stored = stored.count() as u64;
    for key in 0..stored {
        let hit = session.pin().get(&key.to_be_bytes()).map(|hit| hit.to_vec());
        assert_eq!(hit, Some(key.to_le_bytes().to_vec()));
    }
}

#[test]
fn what_is_flushed_is_gone_and_stays_gone() {
    let cache = cache(16 * MIB);
    let mut session = cache.session();
    let mut housekeeper = cache.housekeeper();
    let keys: Vec<u64> = (0..1000).collect();
    // More flushes than there are generations, some swept before the next and some not.
    for round in 0..12u64 {
        for &key in &keys {
            set(&mut session, key, &[key.to_le_bytes(), round.to_le_bytes()].concat());
            warm(&cache, &mut session, key);
        }
        cache.flush();
        assert!(get_many(&mut session, &keys).iter().all(Option::is_none), "round {round}");
        // Some come back before the old ones are swept, and are warm when that happens.
        for &key in &keys[..500] {
            set(&mut session, key, b"again");
            warm(&cache, &mut session, key);
        }
        if round % 2 == 0 {
            while housekeeper.step() == Todo::More {}
        }
        for (&key, value) in keys.iter().zip(get_many(&mut session, &keys)) {
            assert_eq!(value, (key < 500).then(|| b"again".to_vec()), "round {round}, key {key}");
        }
    }
    // And one that is due.
    cache.set_time(1000);
    cache.flush_at(Some(1010));
    warm(&cache, &mut session, 7);
    cache.set_time(1010);
    housekeeper.step();
    assert_eq!(get(&mut session, 7), None);
}

/// What was found by way of the table stays what it is for as long as its reader is pinned.
#[test]
fn a_pinned_reader_keeps_what_it_found_in_the_table() {
    let cache = cache(2 * MIB);
    let (mut reader, mut writer) = (cache.session(), cache.session());
    for key in 0..100 {
        set(&mut writer, key, &[key as u8; 500]);
        warm(&cache, &mut reader, key);
    }
    let names: Vec<Vec<u8>> = (0..100).map(name).collect();
    let before = cache.counts().lookaside_hits;
    let pinned = reader.pin();
    let hits: Vec<_> = names.iter().map(|name| pinned.get(name).unwrap()).collect();
    assert_eq!(cache.counts().lookaside_hits, before + 100);
    for key in 0..100 {
        assert!(writer.delete(&name(key)));
    }
    // As many as there is memory for: what is in use is not reused.
    let others = (1000..10_000)
        .take_while(|&key| writer.store(Verb::Set, Entry::new(&name(key)), &[255; 500]).is_ok())
        .count();
    assert!(others > 1000, "{others}");
    for (key, hit) in hits.iter().enumerate() {
        assert_eq!(hit.key(), names[key]);
        assert!(hit.contiguous().unwrap().iter().all(|&byte| byte == key as u8));
    }
}

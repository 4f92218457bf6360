//! Fronts before what lends references: their answers are the index's, whatever is asked, however keys are hashed, and
//! whatever the closures do; and nothing is found behind a borrow that has ended.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};

use lookaside::{Config, CounterPolicy, CreateError, Front, Hashing, Lent, PageKind};
use proptest::prelude::*;

use outside::Random;

/// Of one bucket or two, and of more slots than there are keys.
const SIZES: [usize; 2] = [128, 1 << 12];

fn config(size: usize) -> Config {
    Config::with_size(size).pages(PageKind::Base)
}

/// All keys have one hash, and so one bucket and one tag.
#[derive(Default)]
struct Same;

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {}

    fn finish(&self) -> u64 {
        7
    }
}

/// An index: what it lends for a key, and whether that is a key's.
trait Index<Q: ?Sized> {
    type Item: Lent + PartialEq + std::fmt::Debug;

    fn find(self, key: &Q) -> Option<Self::Item>;

    fn is(item: Self::Item, key: &Q) -> bool;
}

impl<'a> Index<str> for &'a HashMap<String, Vec<u8>> {
    type Item = (&'a String, &'a Vec<u8>);

    fn find(self, key: &str) -> Option<Self::Item> {
        self.get_key_value(key)
    }

    fn is((name, _): Self::Item, key: &str) -> bool {
        name == key
    }
}

impl<'a> Index<i64> for &'a BTreeMap<i64, String> {
    type Item = (i64, &'a String);

    fn find(self, key: &i64) -> Option<Self::Item> {
        Some((*key, self.get(key)?))
    }

    fn is((number, _): Self::Item, key: &i64) -> bool {
        number == *key
    }
}

/// A sorted slice of rows whose first field is the key.
impl<'a> Index<u32> for &'a [(u32, [u8; 100])] {
    type Item = &'a (u32, [u8; 100]);

    fn find(self, key: &u32) -> Option<Self::Item> {
        self.binary_search_by_key(key, |row| row.0).ok().map(|at| &self[at])
    }

    fn is(row: Self::Item, key: &u32) -> bool {
        row.0 == *key
    }
}

/// Lines of a text, found by what they begin with.
impl<'a> Index<str> for &'a [&'a str] {
    type Item = &'a str;

    fn find(self, key: &str) -> Option<&'a str> {
        self.iter().find(|line| <&[&str]>::is(line, key)).copied()
    }

    fn is(line: &'a str, key: &str) -> bool {
        line.split_once(' ').is_some_and(|(first, _)| first == key)
    }
}

/// Records in one piece of memory, as in a mapped file: the length of the key, that of the value, and both.
#[derive(Clone, Copy)]
struct Mapped<'a>(&'a [u8]);

impl<'a> Index<[u8]> for Mapped<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn find(self, key: &[u8]) -> Option<Self::Item> {
        let mut rest = self.0;
        while let [key_length, value_length, behind @ ..] = rest {
            let (found, behind) = behind.split_at(usize::from(*key_length));
            let (value, behind) = behind.split_at(usize::from(*value_length));
            if found == key {
                return Some((found, value));
            }
            rest = behind;
        }
        None
    }

    fn is((found, _): Self::Item, key: &[u8]) -> bool {
        found == key
    }
}

/// Asks a front for these keys, one at a time and in batches: each answer is the index's.
fn agrees<Q, I, S>(front: &Front<I::Item, S>, index: I, keys: &[&Q])
where
    Q: Hash + ?Sized + std::fmt::Debug,
    I: Index<Q> + Copy,
    S: BuildHasher,
{
    for (at, keys) in keys.chunks(19).enumerate() {
        let expected: Vec<_> = keys.iter().map(|key| index.find(key)).collect();
        let found: Vec<_> = if at % 2 == 0 {
            keys.iter().map(|key| front.get(*key, I::is, |key| index.find(key))).collect()
        } else {
            let mut found = vec![expected.iter().flatten().next().copied(); keys.len()];
            front.get_many(keys, &mut found, I::is, |key| index.find(key));
            found
        };
        assert_eq!(found, expected, "of {keys:?}");
    }
}

/// As [`agrees`], of every size and hasher.
fn agrees_always<Q, I>(index: I, keys: &[&Q])
where
    Q: Hash + ?Sized + std::fmt::Debug,
    I: Index<Q> + Copy,
{
    for size in SIZES {
        for counters in [CounterPolicy::EveryHit, CounterPolicy::Falling, CounterPolicy::Never] {
            agrees(&Front::new(&config(size).counters(counters)).unwrap(), index, keys);
        }
        agrees(&Front::with_hasher(&Config::paper(size), RandomState::new()).unwrap(), index, keys);
        let same = Hashing::avalanching(BuildHasherDefault::<Same>::default());
        agrees(&Front::with_hasher(&config(size), same).unwrap(), index, keys);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn answers_are_the_index_s(
        known in prop::collection::btree_set(0u32..60, 0..40),
        asked in prop::collection::vec(0u32..60, 0..200),
    ) {
        let name = |number: u32| format!("{:1$}", number, number as usize % 20 + 1);
        let names: Vec<String> = asked.iter().map(|&number| name(number)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();

        let hashed: HashMap<_, _> = known.iter().map(|&number| (name(number), vec![number as u8; 9])).collect();
        agrees_always(&hashed, &names);

        let numbers: Vec<i64> = asked.iter().map(|&number| i64::from(number) - 30).collect();
        let tree: BTreeMap<_, _> = known.iter().map(|&number| (i64::from(number) - 30, name(number))).collect();
        agrees_always(&tree, &numbers.iter().collect::<Vec<_>>());

        let rows: Vec<_> = known.iter().map(|&number| (number, [number as u8; 100])).collect();
        agrees_always(&rows[..], &asked.iter().collect::<Vec<_>>());

        let lines: Vec<_> = known.iter().map(|number| format!("{number} {}", name(*number))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let firsts: Vec<String> = asked.iter().map(u32::to_string).collect();
        agrees_always(&lines[..], &firsts.iter().map(String::as_str).collect::<Vec<_>>());

        let mut mapped = Vec::new();
        for number in &known {
            let (key, value) = (name(*number), vec![*number as u8; *number as usize]);
            mapped.extend([key.len() as u8, value.len() as u8]);
            mapped.extend_from_slice(key.as_bytes());
            mapped.extend(value);
        }
        let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        agrees_always(Mapped(&mapped), &keys);
    }
}

#[test]
fn the_index_is_asked_once_for_what_has_room() {
    let rows: Vec<(u32, [u8; 100])> = (0..300).map(|number| (number, [number as u8; 100])).collect();
    let keys: Vec<u32> = (0..300).collect();
    let keys: Vec<&u32> = keys.iter().collect();
    let front = Front::new(&config(1 << 20)).unwrap();
    let asked = Cell::new(0);
    let find = |key: &u32| {
        asked.set(asked.get() + 1);
        rows[..].find(key)
    };
    for _ in 0..3 {
        for key in &keys {
            assert!(front.get(*key, <&[(u32, [u8; 100])]>::is, find).is_some());
        }
        let mut found = vec![None; keys.len()];
        front.get_many(&keys, &mut found, <&[(u32, [u8; 100])]>::is, find);
        assert!(found.iter().zip(&keys).all(|(row, key)| row.unwrap().0 == **key));
    }
    assert_eq!((asked.get(), front.occupancy()), (300, 300));
}

#[test]
fn what_is_asked_for_often_stays() {
    // Room for seven of a hundred, of which three are asked for between all others.
    let values: Vec<u64> = (0..100).collect();
    for counters in [CounterPolicy::EveryHit, CounterPolicy::Falling] {
        let front = Front::new(&config(128).counters(counters)).unwrap();
        let mut hits = 0;
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for draw in 0..10_000 {
            let key = if draw % 4 == 0 { random.below(100) } else { random.below(3) };
            let mut hit = true;
            front.get(
                &key,
                |(number, _): (usize, &u64), key| number == *key,
                |&key| {
                    hit = false;
                    Some((key, &values[key]))
                },
            );
            hits += usize::from(hit && key < 3);
        }
        assert!(hits > 6_500, "{hits} of some 7,570 by {counters:?}");
    }
}

#[test]
fn all_of_the_memory_is_used_for_either_kind_of_item() {
    let narrow = Front::<&u64>::new(&config(1 << 16)).unwrap();
    let wide = Front::<&str>::new(&config(1 << 16)).unwrap();
    assert_eq!((narrow.bytes(), narrow.capacity()), (1 << 16, 7 << 10));
    assert_eq!((wide.bytes(), wide.capacity()), (1 << 16, 7 << 9));
    assert!(matches!(Front::<&str>::new(&config(64)), Err(CreateError::TooSmall { .. })));
    assert!(format!("{wide:?}").contains("capacity: 3584"), "{wide:?}");
}

#[test]
fn nothing_is_left_when_a_front_is_recycled() {
    let mut kept: Front<(u64, &'static String)> = Front::new(&config(1 << 14)).unwrap();
    for round in 0..5u64 {
        let front = kept.recycle();
        assert_eq!(front.occupancy(), 0);
        let values: Vec<String> = (0..200).map(|key| format!("{key} of {round}")).collect();
        for _ in 0..2 {
            for key in 0..200u64 {
                let found = front.get(
                    &key,
                    |(found, _), key| found == *key,
                    |&key| Some((key, &values[key as usize])),
                );
                assert_eq!(found, Some((key, &values[key as usize])));
            }
        }
        assert!(front.occupancy() > 150);
        kept = front.recycle();
    }
}

/// What is lent lies about nothing when its front is never dropped, or dropped late.
#[test]
fn a_forgotten_front_keeps_nothing_alive_and_leads_nowhere() {
    for round in 0..3 {
        let value = Box::new(round);
        let front = Front::new(&config(128)).unwrap();
        assert_eq!(front.get(&1, |_, _| true, |_| Some(&*value)), Some(&round));
        std::mem::forget(front);
    }
}

#[test]
fn a_closure_that_lies_gets_what_was_lent_to_somebody() {
    let texts: Vec<String> = (0..50).map(|number| "x".repeat(number)).collect();
    let same = Hashing::avalanching(BuildHasherDefault::<Same>::default());
    let front = Front::with_hasher(&config(1 << 10), same).unwrap();
    for key in 0..50usize {
        // It is anybody's; and not found where it is.
        let found = front.get(&key, |_, key| key % 3 == 0, |&key| Some(texts[key].as_str()));
        assert!(texts.contains(&found.unwrap().to_owned()));
        // What was lent to another, and what lives for ever.
        assert_eq!(front.get(&key, |_, _| false, |_| Some("for ever")), Some("for ever"));
        assert_eq!(front.get(&key, |_, _| false, |_| None), None);
    }
}

#[test]
fn a_closure_that_panics_leaves_a_front_that_answers() {
    let values: Vec<u64> = (0..40).collect();
    let front = Front::new(&config(512)).unwrap();
    let is = |(key, _): (u64, &u64), sought: &u64| key == *sought;
    let find = |&key: &u64| Some((key, values.get(key as usize)?));
    let keys: Vec<&u64> = values.iter().collect();
    for &key in &keys {
        let ask = AssertUnwindSafe(|| front.get(key, |_, _| panic!("is"), |_| panic!("find")));
        assert!(catch_unwind(ask).is_err());
        assert_eq!(front.get(key, is, find), Some((*key, key)));
        let many = AssertUnwindSafe(|| {
            let mut found = [None; 40];
            front.get_many(&keys, &mut found, |_, _| panic!("is"), find);
        });
        assert!(catch_unwind(many).is_err());
    }
    let mut found = [None; 40];
    front.get_many(&keys, &mut found, is, find);
    assert!(found.iter().zip(&keys).all(|(found, key)| *found == Some((**key, *key))));
}

#[test]
fn a_closure_may_use_the_front() {
    let values: Vec<u64> = (0..40).collect();
    let front: Front<(u64, &u64)> = Front::new(&config(128)).unwrap();
    fn ask<'a>(front: &Front<(u64, &'a u64)>, values: &'a [u64], key: u64) -> Option<(u64, &'a u64)> {
        front.get(
            &key,
            |(found, _), sought| {
                let inner = front.get(&0, |_, _| false, |&zero| Some((zero, &values[0])));
                inner.is_some() && found == *sought
            },
            |&key| {
                if key > 0 {
                    ask(front, values, key - 1)?;
                }
                Some((key, values.get(key as usize)?))
            },
        )
    }
    for key in [39, 3, 39, 20] {
        assert_eq!(ask(&front, &values, key), Some((key, &key)));
    }
}

#[test]
fn errors_of_the_index_are_the_caller_s() {
    let value = 7;
    let front = Front::new(&config(128)).unwrap();
    let is = |(key, _): (u8, &i32), sought: &u8| key == *sought;
    assert_eq!(front.try_get(&1, is, |_| Err("torn")), Err("torn"));
    assert_eq!(front.try_get(&1, is, |_| Ok::<_, &str>(None)), Ok(None));
    assert_eq!(front.occupancy(), 0);
    assert_eq!(front.try_get(&1, is, |&key| Ok::<_, &str>(Some((key, &value)))), Ok(Some((1, &7))));
    assert_eq!(front.try_get(&1, is, |_| Err("torn")), Ok(Some((1, &7))), "the index is not asked");
    let mut found = [Some((9, &value)); 3];
    let failed = front.try_get_many(&[&1, &2, &3], &mut found, is, |_| Err("torn"));
    assert_eq!((failed, found), (Err("torn"), [Some((1, &7)), None, None]));
}

#[test]
#[should_panic(expected = "one answer a key")]
fn as_many_answers_as_keys() {
    Front::<&u8>::new(&config(128)).unwrap().get_many(&[&1], &mut [], |_, _| true, |_| None);
}

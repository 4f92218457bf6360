//! Ranges are those of a model, wherever they begin and end, and whatever kinds of node lie below each other.

use std::collections::BTreeMap;
use std::ops::Bound;

use lookaside_art::OwnedTree;

/// Children of a node: the least and the most of each kind, and some between.
const WIDTHS: [usize; 10] = [1, 2, 4, 5, 16, 17, 30, 48, 49, 256];

/// Numbers without order (splitmix64): the `n`-th.
fn number(n: u64) -> u64 {
    let z = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// So many bytes, all different, in no order.
fn bytes(width: usize, seed: u64) -> impl Iterator<Item = u8> {
    let (first, step) = (number(seed) as u8, number(seed + 1) as u8 | 1);
    (0..width).map(move |at| first.wrapping_add(step.wrapping_mul(at as u8)))
}

/// Keys of up to four bytes: below each node some children are leaves, some are keys that end, and some go on.
fn keys([top, middle, low]: [usize; 3]) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for a in bytes(top, 1) {
        for b in bytes(middle, u64::from(a)).take(if top > 48 && a % 8 > 0 { 1 } else { middle }) {
            let seed = u64::from(a) << 8 | u64::from(b);
            match number(seed) % 4 {
                0 => keys.push(vec![a, b]),
                1 => keys.extend([vec![a, b], vec![a, b, 0], vec![a, b, 0, 7]]),
                _ => keys.extend(
                    bytes(low.min(if middle > 48 { 5 } else { 256 }), seed).map(|c| vec![a, b, c, 9]),
                ),
            }
        }
    }
    keys
}

#[test]
fn ranges_are_those_of_the_model() {
    let mut compared = 0;
    // Every seventh: seven and ten have no factor in common, so each width is met everywhere.
    for shape in (0..WIDTHS.len().pow(3)).step_by(7) {
        let widths = [shape % 10, shape / 10 % 10, shape / 100].map(|at| WIDTHS[at]);
        let mut tree = OwnedTree::<[u8], usize>::new().unwrap();
        let mut model = BTreeMap::new();
        for (at, key) in keys(widths).into_iter().enumerate() {
            tree.insert(&key, at).unwrap();
            model.insert(key, at);
        }
        // Slots that are null.
        let gone: Vec<_> = model
            .keys()
            .filter(|key| number(key.len() as u64 + u64::from(key[1])).is_multiple_of(5))
            .cloned()
            .collect();
        for key in gone {
            assert_eq!(tree.remove(&key), model.remove(&key));
        }
        let all: Vec<_> = model.iter().map(|(key, at)| (&key[..], at)).collect();
        assert!(tree.iter().eq(all.iter().copied()), "{widths:?}");
        assert!(tree.iter().rev().eq(all.iter().rev().copied()), "{widths:?}");
        for n in 0..12 {
            let draw = |n: u64| {
                let mut key = match all.get(number(n) as usize % (all.len() + 1)) {
                    Some((key, _)) => key.to_vec(),
                    None => vec![number(n) as u8],
                };
                match number(!n) % 4 {
                    0 => drop(key.pop()),
                    1 => key.push(number(n) as u8),
                    2 => *key.last_mut().unwrap() ^= 1,
                    _ => {}
                }
                key
            };
            let (from, to) = (draw(2 * n + 100 * shape as u64), draw(2 * n + 1 + 100 * shape as u64));
            let (from, to) = (from.clone().min(to.clone()), from.max(to));
            let bounds = match n % 3 {
                0 => (Bound::Included(&from[..]), Bound::Unbounded),
                1 => (Bound::Excluded(&from[..]), Bound::Included(&to[..])),
                _ => (Bound::Unbounded, Bound::Excluded(&to[..])),
            };
            if bounds == (Bound::Excluded(&to[..]), Bound::Included(&to[..])) {
                continue;
            }
            let expected: Vec<_> = model.range::<[u8], _>(bounds).map(|(key, at)| (&key[..], at)).collect();
            let range = || tree.range_of_bytes(bounds.0, bounds.1);
            assert!(range().eq(expected.iter().copied()), "{widths:?}, {bounds:?}");
            assert!(range().rev().eq(expected.iter().rev().copied()), "{widths:?}, {bounds:?}");
            let mut inwards = range();
            for at in 0..expected.len() {
                let (shown, entry) = match at % 3 {
                    0 => (inwards.next_back(), expected[expected.len() - 1 - at / 3]),
                    _ => (inwards.next(), expected[at - at.div_ceil(3)]),
                };
                assert_eq!(shown, Some(entry), "{widths:?}, {bounds:?}");
            }
            assert_eq!((inwards.next(), inwards.next_back()), (None, None));
            compared += expected.len();
        }
    }
    assert!(compared > 100_000, "{compared}");
}

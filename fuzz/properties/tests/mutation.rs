//! Inputs that a case's number makes of seeds: one of them, changed once to eight times by what is wont to find faults
//! in parsers. A fuzzer does the same, and goes on from what has reached new code; here nobody looks.

use std::ops::Range;

use outside::Random;

/// No change makes an input longer by more than this.
const MOST_ADDED: usize = 4096;

pub(crate) struct Mutations<'a> {
    name: &'a str,
    seeds: &'a [Vec<u8>],
    words: &'a [Vec<u8>],
}

impl<'a> Mutations<'a> {
    /// Of these `seeds`, with these `words`, of neither of which there may be none. `name` lets targets whose seeds are
    /// alike try different ones.
    pub(crate) fn new(name: &'a str, seeds: &'a [Vec<u8>], words: &'a [Vec<u8>]) -> Self {
        Self { name, seeds, words }
    }

    /// The input of a case.
    pub(crate) fn make(&self, case: u64) -> Vec<u8> {
        // Knuth's multiplier spreads neighbours.
        let spread = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(6_364_136_223_846_793_005);
        let seed = case.to_le_bytes().into_iter().chain(self.name.bytes()).fold(!0, spread);
        let mut random = Random(seed.max(1));
        let mut data = self.seed(&mut random).to_vec();
        for _ in 0..=random.below(8) {
            self.change(&mut data, &mut random);
        }
        data
    }

    fn seed(&self, random: &mut Random) -> &'a [u8] {
        &self.seeds[random.below(self.seeds.len())]
    }

    fn change(&self, data: &mut Vec<u8>, random: &mut Random) {
        let word = &self.words[random.below(self.words.len())];
        match random.below(13) {
            // A bit is another.
            0 => {
                if let Some(byte) = pick(data, random) {
                    *byte ^= 1 << random.below(8);
                }
            }
            // A byte is another, often one at the edge of what is allowed.
            1 => {
                let edges = [0, b' ', b'\r', b'\n', b'0', b'9', 0x7f, 0x80, 0xff];
                let other = if random.below(2) == 0 { edges[random.below(edges.len())] } else { any(random) };
                if let Some(byte) = pick(data, random) {
                    *byte = other;
                }
            }
            // A part is missing.
            2 => drop(data.drain(part(data, random))),
            // A part is all there is: of what follows, more hits it.
            3 => {
                let part = part(data, random);
                data.truncate(part.end);
                data.drain(..part.start);
            }
            // A part stands there again and again.
            4 => {
                let part = part(data, random);
                let most = (MOST_ADDED / part.len().max(1)).min(64);
                let again = data[part.clone()].repeat(random.below(most + 1));
                data.splice(part.end..part.end, again);
            }
            // A part stands elsewhere as well.
            5 => {
                let copy: Vec<u8> = data[part(data, random)].iter().copied().take(MOST_ADDED).collect();
                insert(data, &copy, random);
            }
            // A word more.
            6 => insert(data, word, random),
            // A word in the place of something.
            7 => drop(data.splice(part(data, random), word.iter().copied())),
            // The same of a whole token: numbers are read by the whole, and names are known by it.
            8 | 9 => {
                if let Some(token) = token(data, random) {
                    data.splice(token, word.trim_ascii().iter().copied());
                }
            }
            // A token is missing.
            10 => drop(token(data, random).map(|token| drop(data.drain(token)))),
            // Noise, of any bytes or of those that are there.
            11 => {
                let most = if random.below(4) == 0 { 256 } else { 16 };
                let known = random.below(2) == 0 && !data.is_empty();
                let length = 1 + random.below(most);
                let one = |_| if known { data[random.below(data.len())] } else { any(random) };
                let noise: Vec<u8> = (0..length).map(one).collect();
                insert(data, &noise, random);
            }
            // One seed's beginning and another's end.
            _ => {
                let other = self.seed(random);
                data.truncate(random.below(data.len() + 1));
                data.extend(&other[random.below(other.len() + 1)..]);
            }
        }
    }
}

fn insert(data: &mut Vec<u8>, bytes: &[u8], random: &mut Random) {
    let at = random.below(data.len() + 1);
    data.splice(at..at, bytes.iter().copied());
}

fn any(random: &mut Random) -> u8 {
    random.below(256) as u8
}

fn pick<'d>(data: &'d mut [u8], random: &mut Random) -> Option<&'d mut u8> {
    let length = data.len();
    data.get_mut(random.below(length.max(1)))
}

/// Of any length, mostly a short one, and often the end.
fn part(data: &[u8], random: &mut Random) -> Range<usize> {
    let most = if random.below(4) == 0 { data.len() } else { data.len().min(16) };
    let length = random.below(most + 1);
    let last = data.len() - length;
    let start = if random.below(4) == 0 { last } else { random.below(last + 1) };
    start..start + length
}

/// Letters, digits and what stands in names and signed numbers, with anything else around them.
fn token(data: &[u8], random: &mut Random) -> Option<Range<usize>> {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    let from = random.below(data.len().max(1));
    let start = from + data.get(from..)?.iter().position(inside)?;
    let before = data[..start].iter().rev().take_while(|byte| inside(byte)).count();
    let after = data[start..].iter().take_while(|byte| inside(byte)).count();
    Some(start - before..start + after)
}

#[test]
fn cases_repeat_and_differ() {
    let (seeds, words) =
        ([b"get a\r\n".to_vec(), b"incr a 1\r\n".to_vec(), Vec::new()], [b"noreply".to_vec()]);
    let mutations = Mutations::new("a", &seeds, &words);
    let made: Vec<_> = (0..1000).map(|case| mutations.make(case)).collect();
    assert!(made.iter().zip(0..).all(|(data, case)| *data == mutations.make(case)));
    let different: std::collections::BTreeSet<_> = made.iter().collect();
    assert!(different.len() > 700, "{} of a thousand", different.len());
    // What each kind of change does is there somewhere.
    assert!(made.iter().any(|data| data.windows(7).any(|part| part == b"noreply")));
    assert!(made.iter().any(|data| data.len() > 100) && made.iter().any(|data| data.is_empty()));
    assert!(made.iter().any(|data| data.starts_with(b"get") && data.ends_with(b" a 1\r\n")));
    assert!(made.iter().any(|data| data.iter().any(|&byte| byte > 127)));
}

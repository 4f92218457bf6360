//! Eviction policies, simulated: which keys a cache of so many bytes holds, and nothing else of a cache.
//!
//! - [`Lru`]: the one goes that was used longest ago. A hit moves its key in a list. memcached's, before its list had
//!   segments.
//! - [`SegmentedLru`]: memcached's since 1.5, three lists. What is hit twice is *active*; a hit moves a key from the
//!   last list only. `lru_pull_tail`, `lru_maintainer_juggle` and `do_item_get` in its `items.c`.
//! - [`Sieve`]: the first goes without a bit that a hand meets, from the oldest to the newest; none moves. A hit sets
//!   the bit. Zhang et al., NSDI 2024.
//! - [`S3Fifo`]: what came and was asked for once at the most goes from a tenth of the bytes, and keys that left are
//!   remembered. A hit raises a count of two bits. Yang et al., SOSP 2023.
//! - [`WTinyLfu`]: of the oldest and the newcomer the one goes that was asked for less often. A hit moves its key and
//!   counts in a sketch. Einziger, Friedman and Manes, ACM TOS 2017.
//!
//! Of memcached, this is what its lists decide by the options that it has by default, without its slab classes. Its
//! clock counts requests, not seconds, and what a thread of its own does some time later is done at once.
//!
//! Keys are dense numbers, each with its bytes, so queues are links in one table. What is larger than the cache is not
//! stored. Frequencies of W-TinyLFU are counted exactly, not by a sketch: it is as good here as a sketch can be.

/// No key: the end of a queue.
const NONE: u32 = u32::MAX;
/// In no queue.
const NOWHERE: u8 = u8::MAX;

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Missed,
    /// The key was there, and what is known of it already said so.
    Hit,
    /// The key was there, and something was written to remember that.
    Noted,
}

/// What a policy is asked.
pub(super) trait Eviction {
    /// Whether the key is there. If it is not, it comes in.
    fn request(&mut self, key: u32) -> Answer;

    /// Keys that are there.
    fn items(&self) -> usize;
}

#[derive(Debug, Clone, Copy)]
struct Node {
    newer: u32,
    older: u32,
    queue: u8,
    /// Hits that count.
    mark: u8,
}

#[derive(Debug, Clone, Copy)]
struct Queue {
    newest: u32,
    oldest: u32,
    bytes: u64,
    items: usize,
}

/// Queues of keys. A key is in one of them or in none.
struct Queues<'s, const N: usize> {
    sizes: &'s [u32],
    nodes: Vec<Node>,
    queues: [Queue; N],
}

impl<'s, const N: usize> Queues<'s, N> {
    fn new(sizes: &'s [u32]) -> Self {
        let node = Node { newer: NONE, older: NONE, queue: NOWHERE, mark: 0 };
        let queue = Queue { newest: NONE, oldest: NONE, bytes: 0, items: 0 };
        Queues { sizes, nodes: vec![node; sizes.len()], queues: [queue; N] }
    }

    fn size(&self, key: u32) -> u64 {
        u64::from(self.sizes[key as usize])
    }

    fn place(&self, key: u32) -> u8 {
        self.nodes[key as usize].queue
    }

    fn mark(&mut self, key: u32) -> &mut u8 {
        &mut self.nodes[key as usize].mark
    }

    fn bytes(&self, queue: u8) -> u64 {
        self.queues[queue as usize].bytes
    }

    fn oldest(&self, queue: u8) -> u32 {
        self.queues[queue as usize].oldest
    }

    /// Puts a key that is in no queue in front of one.
    fn push(&mut self, queue: u8, key: u32) {
        let size = self.size(key);
        let list = &mut self.queues[queue as usize];
        let older = std::mem::replace(&mut list.newest, key);
        list.bytes += size;
        list.items += 1;
        match older {
            NONE => list.oldest = key,
            older => self.nodes[older as usize].newer = key,
        }
        let node = &mut self.nodes[key as usize];
        (node.newer, node.older, node.queue) = (NONE, older, queue);
    }

    fn remove(&mut self, key: u32) {
        let size = self.size(key);
        let Node { newer, older, queue, .. } = self.nodes[key as usize];
        let list = &mut self.queues[queue as usize];
        list.bytes -= size;
        list.items -= 1;
        match newer {
            NONE => list.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.queues[queue as usize].oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        self.nodes[key as usize].queue = NOWHERE;
    }

    fn shift(&mut self, queue: u8, key: u32) {
        self.remove(key);
        self.push(queue, key);
    }

    /// Keys in all queues.
    fn items(&self) -> usize {
        self.queues.iter().map(|queue| queue.items).sum()
    }
}

/// What one queue has at most so many bytes of. Policies differ in what a hit does and in who goes.
struct Bounded<'s> {
    queue: Queues<'s, 1>,
    capacity: u64,
}

impl<'s> Bounded<'s> {
    fn new(sizes: &'s [u32], capacity: u64) -> Self {
        Bounded { queue: Queues::new(sizes), capacity }
    }

    fn has(&self, key: u32) -> bool {
        self.queue.place(key) == 0
    }

    /// Lets a key in, if the whole can hold it. `evict` takes one out.
    fn admit(&mut self, key: u32, mut evict: impl FnMut(&mut Queues<'s, 1>)) {
        if self.queue.size(key) <= self.capacity {
            while self.queue.bytes(0) + self.queue.size(key) > self.capacity {
                evict(&mut self.queue);
            }
            self.queue.push(0, key);
        }
    }

    fn items(&self) -> usize {
        self.queue.queues[0].items
    }
}

/// Strict least recently used.
pub(super) struct Lru<'s>(Bounded<'s>);

impl<'s> Lru<'s> {
    pub(super) fn new(sizes: &'s [u32], capacity: u64) -> Self {
        Lru(Bounded::new(sizes, capacity))
    }
}

impl Eviction for Lru<'_> {
    fn request(&mut self, key: u32) -> Answer {
        if self.0.has(key) {
            self.0.queue.shift(0, key);
            return Answer::Noted;
        }
        self.0.admit(key, |queue| queue.remove(queue.oldest(0)));
        Answer::Missed
    }

    fn items(&self) -> usize {
        self.0.items()
    }
}

/// memcached's lists: *hot* is what is new, *warm* what was active at a list's end, *cold* what is next to go.
pub(super) struct SegmentedLru<'s> {
    queues: Queues<'s, 3>,
    capacity: u64,
    /// The request at which each key was used last, as far as that is noted.
    used: Vec<u64>,
    now: u64,
}

impl<'s> SegmentedLru<'s> {
    const HOT: u8 = 0;
    const WARM: u8 = 1;
    const COLD: u8 = 2;
    /// What a key's mark says: it was hit; it was hit since.
    const FETCHED: u8 = 1;
    const ACTIVE: u8 = 2;

    pub(super) fn new(sizes: &'s [u32], capacity: u64) -> Self {
        SegmentedLru { queues: Queues::new(sizes), capacity, used: vec![0; sizes.len()], now: 0 }
    }

    fn bytes(&self) -> u64 {
        [Self::HOT, Self::WARM, Self::COLD].map(|list| self.queues.bytes(list)).iter().sum()
    }

    /// How long ago the oldest key of a list was used; nothing for an empty one.
    fn age(&self, list: u8) -> u64 {
        match self.queues.oldest(list) {
            NONE => 0,
            oldest => self.now - self.used[oldest as usize],
        }
    }

    /// Moves the oldest key of a list on if it is active, or the list above `limit` bytes, or the key older than `age`.
    fn pull(&mut self, list: u8, limit: u64, age: u64) -> bool {
        let oldest = self.queues.oldest(list);
        if oldest == NONE {
            return false;
        }
        let mark = self.queues.mark(oldest);
        if *mark == Self::ACTIVE {
            *mark = Self::FETCHED;
            self.queues.shift(Self::WARM, oldest);
            return true;
        }
        let is_due = self.queues.bytes(list) > limit || self.age(list) > age;
        if is_due {
            self.queues.shift(Self::COLD, oldest);
        }
        is_due
    }

    /// What the thread does that looks after the lists: so many steps at the most.
    fn juggle(&mut self) {
        let (all, cold) = (self.bytes(), self.age(Self::COLD));
        for _ in 0..500 {
            if !self.pull(Self::HOT, all / 5, cold / 5) && !self.pull(Self::WARM, all / 5 * 2, cold * 2) {
                return;
            }
        }
    }

    /// Evicts the oldest cold key, or makes one cold.
    fn evict(&mut self) {
        match self.queues.oldest(Self::COLD) {
            NONE => {
                let _ = self.pull(Self::HOT, 0, 0) || self.pull(Self::WARM, 0, 0);
            }
            oldest => self.queues.remove(oldest),
        }
    }
}

impl Eviction for SegmentedLru<'_> {
    fn request(&mut self, key: u32) -> Answer {
        self.now += 1;
        let place = self.queues.place(key);
        if place != NOWHERE {
            let mark = self.queues.mark(key);
            match *mark {
                Self::ACTIVE => return Answer::Hit,
                Self::FETCHED => {
                    self.used[key as usize] = self.now;
                    match place {
                        Self::COLD => self.queues.shift(Self::WARM, key),
                        _ => *mark = Self::ACTIVE,
                    }
                }
                _ => *mark = Self::FETCHED,
            }
            return Answer::Noted;
        }
        let size = self.queues.size(key);
        if size > self.capacity {
            return Answer::Missed;
        }
        while self.bytes() + size > self.capacity {
            self.evict();
        }
        *self.queues.mark(key) = 0;
        self.used[key as usize] = self.now;
        self.queues.push(Self::HOT, key);
        self.juggle();
        Answer::Missed
    }

    fn items(&self) -> usize {
        self.queues.items()
    }
}

/// SIEVE.
pub(super) struct Sieve<'s> {
    kept: Bounded<'s>,
    hand: u32,
}

impl<'s> Sieve<'s> {
    pub(super) fn new(sizes: &'s [u32], capacity: u64) -> Self {
        Sieve { kept: Bounded::new(sizes, capacity), hand: NONE }
    }

    fn evict(queue: &mut Queues<1>, hand: &mut u32) {
        loop {
            let here = if *hand == NONE { queue.oldest(0) } else { *hand };
            *hand = queue.nodes[here as usize].newer;
            if std::mem::take(queue.mark(here)) == 0 {
                return queue.remove(here);
            }
        }
    }
}

impl Eviction for Sieve<'_> {
    fn request(&mut self, key: u32) -> Answer {
        let Sieve { kept, hand } = self;
        if kept.has(key) {
            return if std::mem::replace(kept.queue.mark(key), 1) == 0 { Answer::Noted } else { Answer::Hit };
        }
        kept.admit(key, |queue| Sieve::evict(queue, hand));
        Answer::Missed
    }

    fn items(&self) -> usize {
        self.kept.items()
    }
}

/// S3-FIFO: three queues that are first in, first out.
pub(super) struct S3Fifo<'s> {
    queues: Queues<'s, 3>,
    capacity: u64,
    /// Bytes of the keys that are remembered.
    ghosts: u64,
}

impl<'s> S3Fifo<'s> {
    const SMALL: u8 = 0;
    const MAIN: u8 = 1;
    /// Keys that left the small queue.
    const GHOSTS: u8 = 2;
    /// Hits that are told apart.
    const MOST: u8 = 3;

    /// As published: as many bytes of keys are remembered as the main queue may hold.
    pub(super) fn new(sizes: &'s [u32], capacity: u64) -> Self {
        Self::remembering(sizes, capacity, capacity - capacity / 10)
    }

    /// One that remembers keys of so many bytes.
    pub(super) fn remembering(sizes: &'s [u32], capacity: u64, ghosts: u64) -> Self {
        S3Fifo { queues: Queues::new(sizes), capacity, ghosts }
    }

    fn small(&self) -> u64 {
        self.capacity / 10
    }

    /// Takes a step towards room.
    fn evict(&mut self) {
        let small = self.small();
        let queues = &mut self.queues;
        let main = queues.oldest(Self::MAIN);
        if queues.bytes(Self::SMALL) > small || main == NONE {
            let key = queues.oldest(Self::SMALL);
            if std::mem::take(queues.mark(key)) > 1 {
                queues.shift(Self::MAIN, key);
            } else {
                queues.shift(Self::GHOSTS, key);
                while queues.bytes(Self::GHOSTS) > self.ghosts {
                    queues.remove(queues.oldest(Self::GHOSTS));
                }
            }
        } else if *queues.mark(main) > 0 {
            *queues.mark(main) -= 1;
            queues.shift(Self::MAIN, main);
        } else {
            queues.remove(main);
        }
    }
}

impl Eviction for S3Fifo<'_> {
    fn request(&mut self, key: u32) -> Answer {
        let place = self.queues.place(key);
        if place < Self::GHOSTS {
            let mark = self.queues.mark(key);
            if *mark == Self::MOST {
                return Answer::Hit;
            }
            *mark += 1;
            return Answer::Noted;
        }
        let size = self.queues.size(key);
        if size > self.capacity {
            return Answer::Missed;
        }
        if place == Self::GHOSTS {
            self.queues.remove(key);
        }
        while self.queues.bytes(Self::SMALL) + self.queues.bytes(Self::MAIN) + size > self.capacity {
            self.evict();
        }
        *self.queues.mark(key) = 0;
        self.queues.push(if place == Self::GHOSTS { Self::MAIN } else { Self::SMALL }, key);
        Answer::Missed
    }

    fn items(&self) -> usize {
        self.queues.queues[Self::SMALL as usize].items + self.queues.queues[Self::MAIN as usize].items
    }
}

/// W-TinyLFU: a window of a hundredth, and behind it a segmented LRU that admits by frequency.
pub(super) struct WTinyLfu<'s> {
    queues: Queues<'s, 3>,
    capacity: u64,
    /// Requests since all frequencies were halved.
    sample: usize,
}

impl<'s> WTinyLfu<'s> {
    const WINDOW: u8 = 0;
    const PROBATION: u8 = 1;
    const PROTECTED: u8 = 2;
    /// Four bits, as a sketch has them.
    const MOST: u8 = 15;
    /// Requests for each item until frequencies are halved.
    const PERIOD: usize = 10;

    pub(super) fn new(sizes: &'s [u32], capacity: u64) -> Self {
        WTinyLfu { queues: Queues::new(sizes), capacity, sample: 0 }
    }

    fn window(&self) -> u64 {
        self.capacity / 100
    }

    /// The mark is the frequency, of keys that are not there as well.
    fn count(&mut self, key: u32) {
        let mark = self.queues.mark(key);
        *mark = (*mark + 1).min(Self::MOST);
        self.sample += 1;
        if self.sample > Self::PERIOD * self.items().max(1) {
            self.queues.nodes.iter_mut().for_each(|node| node.mark /= 2);
            self.sample = 0;
        }
    }

    /// What has left the window competes with the oldest of the main part.
    fn admit(&mut self, candidate: u32) {
        let room = self.capacity - self.window();
        let queues = &mut self.queues;
        queues.shift(Self::PROBATION, candidate);
        while queues.bytes(Self::PROBATION) + queues.bytes(Self::PROTECTED) > room {
            let victim = match queues.oldest(Self::PROBATION) {
                oldest if oldest == candidate && queues.oldest(Self::PROTECTED) != NONE => {
                    queues.oldest(Self::PROTECTED)
                }
                oldest => oldest,
            };
            if victim == candidate || *queues.mark(candidate) <= *queues.mark(victim) {
                return queues.remove(candidate);
            }
            queues.remove(victim);
        }
    }
}

impl Eviction for WTinyLfu<'_> {
    fn request(&mut self, key: u32) -> Answer {
        self.count(key);
        let window = self.window();
        let protected = (self.capacity - window) / 5 * 4;
        let queues = &mut self.queues;
        match queues.place(key) {
            NOWHERE if queues.size(key) > self.capacity => Answer::Missed,
            NOWHERE => {
                queues.push(Self::WINDOW, key);
                while self.queues.bytes(Self::WINDOW) > window {
                    self.admit(self.queues.oldest(Self::WINDOW));
                }
                Answer::Missed
            }
            Self::WINDOW => {
                queues.shift(Self::WINDOW, key);
                Answer::Noted
            }
            _ => {
                queues.shift(Self::PROTECTED, key);
                while queues.bytes(Self::PROTECTED) > protected {
                    queues.shift(Self::PROBATION, queues.oldest(Self::PROTECTED));
                }
                Answer::Noted
            }
        }
    }

    fn items(&self) -> usize {
        self.queues.items()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Make = fn(&[u32], u64) -> Box<dyn Eviction + '_>;

    const ALL: [Make; 6] = [
        |sizes, capacity| Box::new(Lru::new(sizes, capacity)),
        |sizes, capacity| Box::new(SegmentedLru::new(sizes, capacity)),
        |sizes, capacity| Box::new(Sieve::new(sizes, capacity)),
        |sizes, capacity| Box::new(S3Fifo::new(sizes, capacity)),
        |sizes, capacity| Box::new(S3Fifo::remembering(sizes, capacity, 0)),
        |sizes, capacity| Box::new(WTinyLfu::new(sizes, capacity)),
    ];

    fn hits(cache: &mut dyn Eviction, requests: impl IntoIterator<Item = u32>) -> usize {
        requests.into_iter().filter(|&key| cache.request(key) != Answer::Missed).count()
    }

    #[test]
    fn what_fits_is_kept_and_what_is_too_large_never_comes() {
        let mut sizes = vec![10; 100];
        sizes.push(1001);
        for make in ALL {
            let mut cache = make(&sizes, 1000);
            assert_eq!(hits(&mut *cache, (0..10).flat_map(|_| 0..101)), 900);
            assert_eq!(cache.items(), 100);
        }
    }

    /// Sizes from 1 to 50: the cache is never above its bytes, and its own count of them is right.
    #[test]
    fn the_bytes_are_a_limit() {
        let sizes: Vec<u32> = (0..100).map(|key| 1 + key * 7 % 50).collect();
        let mut random = 1u64;
        let requests: Vec<u32> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let draw = (random >> 33) as u32;
            draw % 100 % (1 + draw / 100 % 100)
        })
        .take(2_000)
        .collect();
        for make in ALL {
            let mut cache = make(&sizes, 700);
            let found = hits(&mut *cache, requests.iter().copied());
            assert!((200..1_900).contains(&found), "{found}");
            // Whatever it holds now, it hits; asking changes what it holds, so each key is asked of a cache of its own.
            let held: u32 = (0..100)
                .filter(|&key| {
                    let mut cache = make(&sizes, 700);
                    hits(&mut *cache, requests.iter().copied());
                    cache.request(key) != Answer::Missed
                })
                .map(|key| sizes[key as usize])
                .sum();
            assert!((600..=700).contains(&held), "{held} bytes");
        }
    }

    /// What a second hit in a row writes: nothing where a bit says it all, the list always where there is one.
    #[test]
    fn hits_come_to_rest_but_in_lists() {
        let rest = ALL.map(|make| {
            let mut cache = make(&[1; 10], 10);
            let answers: Vec<_> = (0..6).map(|_| cache.request(3)).collect();
            assert_eq!(answers[..2], [Answer::Missed, Answer::Noted]);
            answers[5]
        });
        let (hit, noted) = (Answer::Hit, Answer::Noted);
        assert_eq!(rest, [noted, hit, hit, hit, hit, noted]);
    }

    /// A fifth of the bytes is for newcomers; what was hit twice, since it came or since it was last spared, goes from
    /// there to the warm list, and the rest to the cold one.
    #[test]
    fn memcached_s_lists_spare_what_is_hit_twice() {
        let sizes = [1; 250];
        let mut cache = SegmentedLru::new(&sizes, 100);
        // As long as no key is cold, none is too young to become it.
        hits(&mut cache, 150..250);
        hits(&mut cache, [0, 1, 0, 1, 0]);
        hits(&mut cache, 2..150);
        assert_eq!([0, 1].map(|key| cache.queues.place(key)), [SegmentedLru::WARM, NOWHERE]);
        let lists = [SegmentedLru::HOT, SegmentedLru::WARM, SegmentedLru::COLD];
        assert_eq!(lists.map(|list| cache.queues.bytes(list)).iter().sum::<u64>(), 100);
        assert!(cache.queues.bytes(SegmentedLru::HOT) <= 20);
        // A cold key that is hit for the second time is warm at once.
        let cold = cache.queues.oldest(SegmentedLru::COLD);
        assert_eq!(hits(&mut cache, [cold, cold]), 2);
        assert_eq!(cache.queues.place(cold), SegmentedLru::WARM);
    }

    /// Ten keys are asked for again and again, and others once each: LRU loses the ten, the others keep them.
    #[test]
    fn only_lru_is_washed_out_by_keys_that_are_asked_for_once() {
        let sizes = vec![1; 100_000];
        let hot = || 0..10u32;
        let lost: Vec<bool> = ALL
            .iter()
            .map(|make| {
                let mut cache = make(&sizes, 100);
                // Full from the start: memcached's lists hold on to nothing while there is nothing cold.
                hits(&mut *cache, 90_000..90_100);
                hits(&mut *cache, (0..10).flat_map(|_| hot()));
                (0..50).any(|round| {
                    hits(&mut *cache, 10 + round * 150..10 + (round + 1) * 150);
                    hits(&mut *cache, hot()) < 10
                })
            })
            .collect();
        assert_eq!(lost, [true, false, false, false, false, false]);
    }
}

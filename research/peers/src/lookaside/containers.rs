//! Containers of C++, alone and with a Search Lookaside Buffer in front through the C interface (`crates/capi`).
//!
//! | container | Debian |
//! |---|---|
//! | `std::map`, `std::unordered_map` | a C++ compiler |
//! | `absl::btree_map`, `absl::flat_hash_map` | libabsl-dev |
//! | `google::dense_hash_map` | libsparsehash-dev |
//!
//! Keys are byte strings of one length, hashed as such: by `std::hash` over the bytes, or by `absl::Hash`. Alone a
//! container maps them to pointers to values; with a buffer in front, to pointers to records of key and value, each one
//! entry on the heap. The loops are C++ (`cpp/containers`): one call for millions of lookups.
//!
//! Such containers may be searched by many threads, or changed by one that is alone. So there is a lock here, taken
//! once a call, as before the maps of the Rust standard library: whoever looks up shares it, whoever writes has it
//! alone. Therefore a miss needs no ticket: what the container says cannot change before the table is told.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::{NonNull, null};

use lab::lookaside::{Answer, Call, Contestant, Entrant, Key, Made, Request, RwLock, Tally, in_turn};
use lookaside::{Config, Counts, CreateError, Verdict};
use lookaside_capi::{lookaside_counts, lookaside_options, lookaside_verdict};

/// Makes a container: its form, the bytes of a key, the records it has room for, and how the buffer is made. Null
/// without memory, or where there are no keys of that length.
type Maker = unsafe extern "C" fn(u32, usize, usize, *const lookaside_options) -> *mut c_void;

// SAFETY: these are the functions of cpp/containers/standard.cpp, which build.rs compiles and links whenever this
// module is compiled in. A container is used by one thread at a time, but for `get`, which several may call at once
// where the form is not the owner's. Keys, requests and tallies are laid out as C does it, there and here.
unsafe extern "C" {
    fn lookaside_peers_container_end(container: *mut c_void);
    fn lookaside_peers_container_get(
        container: *mut c_void,
        batches: bool,
        keys: *const c_void,
        count: usize,
        tally: *mut Tally,
    );
    fn lookaside_peers_container_perform(
        container: *mut c_void,
        batches: bool,
        requests: *const c_void,
        count: usize,
        tally: *mut Tally,
    );
    fn lookaside_peers_container_resize(container: *mut c_void, bytes: usize) -> bool;
    fn lookaside_peers_container_counts(container: *mut c_void, counts: *mut lookaside_counts);
    fn lookaside_peers_container_verdict(container: *mut c_void, verdict: *mut lookaside_verdict);
}

/// How a container takes part: the same numbers as in `cpp/containers/contestant.hpp`.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Alone,
    /// Behind a buffer that threads share, its hit path inlined.
    Inlined,
    /// Behind the same buffer, asked by calls.
    Called,
    /// Behind a buffer of one owner, its hit path inlined.
    Owned,
    /// Behind STLT-SW, compiled in, for one owner.
    Stlt,
}

impl Form {
    /// Whether one thread at a time may look up.
    fn is_an_owners(self) -> bool {
        matches!(self, Form::Owned | Form::Stlt)
    }
}

/// A kind of container.
trait Container {
    fn maker() -> Maker;
}

macro_rules! container {
    ($(#[$when:meta])? $name:ident, $maker:ident) => {
        $(#[$when])?
        struct $name;

        $(#[$when])?
        impl Container for $name {
            fn maker() -> Maker {
                // SAFETY: as above: a function of cpp/containers.
                unsafe extern "C" {
                    fn $maker(
                        form: u32,
                        key_bytes: usize,
                        records: usize,
                        options: *const lookaside_options,
                    ) -> *mut c_void;
                }
                $maker
            }
        }
    };
}

container!(StdMap, lookaside_peers_std_map);
container!(StdUnorderedMap, lookaside_peers_std_unordered_map);
container!(
    #[cfg(abseil)]
    AbslBtreeMap,
    lookaside_peers_absl_btree_map
);
container!(
    #[cfg(abseil)]
    AbslFlatHashMap,
    lookaside_peers_absl_flat_hash_map
);
container!(
    #[cfg(sparsehash)]
    DenseHashMap,
    lookaside_peers_dense_hash_map
);

/// Those that are there.
pub(super) fn entrants<const N: usize>() -> Vec<Entrant<N>> {
    vec![
        entrant::<N, StdMap>("std::map"),
        entrant::<N, StdUnorderedMap>("std::unordered_map"),
        #[cfg(abseil)]
        entrant::<N, AbslBtreeMap>("absl::btree_map"),
        #[cfg(abseil)]
        entrant::<N, AbslFlatHashMap>("absl::flat_hash_map"),
        #[cfg(sparsehash)]
        entrant::<N, DenseHashMap>("dense_hash_map"),
    ]
}

fn entrant<const N: usize, C: Container>(name: &'static str) -> Entrant<N> {
    Entrant {
        name,
        alone: |records| Foreign::make::<N, C>(Form::Alone, records, null()),
        shared: Some(|records, config, monitor| fronted::<N, C>(Form::Inlined, records, config, monitor)),
        sole: Some(|records, config, monitor| fronted::<N, C>(Form::Owned, records, config, monitor)),
        called: Some(|records, config, monitor| fronted::<N, C>(Form::Called, records, config, monitor)),
        stlt: Some(|records, bytes, ways| match ways {
            4 => fronted::<N, C>(Form::Stlt, records, &Config::with_size(bytes), false),
            _ => Err("STLT-SW is compiled into C++ with four ways".into()),
        }),
    }
}

fn fronted<const N: usize, C: Container>(
    form: Form,
    records: usize,
    config: &Config,
    monitor: bool,
) -> Made<N> {
    let options = lookaside_options { monitor, ..lookaside_options::from(config) };
    Foreign::make::<N, C>(form, records, &raw const options)
}

/// A container behind its lock.
struct Foreign {
    form: Form,
    container: RwLock<NonNull<c_void>>,
}

// SAFETY: nothing in a container belongs to a thread.
unsafe impl Send for Foreign {}
// SAFETY: the lock sees to what is said at the functions.
unsafe impl Sync for Foreign {}

impl Foreign {
    fn make<const N: usize, C: Container>(
        form: Form,
        records: usize,
        options: *const lookaside_options,
    ) -> Made<N> {
        Ok(Box::new(Foreign::new::<N, C>(form, records, options)?))
    }

    fn new<const N: usize, C: Container>(
        form: Form,
        records: usize,
        options: *const lookaside_options,
    ) -> Result<Foreign, String> {
        // SAFETY: options are null only for a container alone, which does not look at them.
        let made = unsafe { C::maker()(form as u32, N, records, options) };
        match NonNull::new(made) {
            Some(container) => Ok(Foreign { form, container: RwLock::new(container) }),
            None => Err(format!("no memory for {records} records in a container with keys of {N} bytes")),
        }
    }

    /// Looks up many keys, under the lock.
    fn ask<const N: usize>(&self, call: Call, keys: &[Key<N>]) -> Tally {
        let ask = |container: &NonNull<c_void>| {
            let mut tally = Tally::default();
            // SAFETY: the container lives and is for keys of this length, of which there are as many as it is told;
            // nobody changes it, and in the owner's form nobody else asks it, while it is locked.
            unsafe {
                lookaside_peers_container_get(
                    container.as_ptr(),
                    call == Call::Batch,
                    keys.as_ptr().cast(),
                    keys.len(),
                    &raw mut tally,
                );
            }
            tally
        };
        if self.form.is_an_owners() { ask(&self.container.write()) } else { ask(&self.container.read()) }
    }

    /// What the buffer in front has counted.
    fn told(&self) -> lookaside_counts {
        let (container, mut told) = (self.container.write(), lookaside_counts::default());
        // SAFETY: the container lives, and nobody else uses it: no lookup replaces the table, so no pin is needed.
        unsafe { lookaside_peers_container_counts(container.as_ptr(), &raw mut told) };
        told
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: made by its maker, and ended nowhere else.
        unsafe { lookaside_peers_container_end(self.container.get_mut().as_ptr()) };
    }
}

impl<const N: usize> Contestant<N> for Foreign {
    fn get(&self, _thread: usize, call: Call, warm_up: &[Key<N>], timed: &[Key<N>]) -> Answer {
        in_turn(|keys: &[Key<N>]| self.ask(call, keys), warm_up, timed)
    }

    fn perform(&self, _thread: usize, call: Call, warm_up: &[Request<N>], timed: &[Request<N>]) -> Answer {
        let carry_out = |requests: &[Request<N>]| {
            let (container, mut tally) = (self.container.write(), Tally::default());
            // SAFETY: as in `ask`, and nobody else does anything with it.
            unsafe {
                lookaside_peers_container_perform(
                    container.as_ptr(),
                    call == Call::Batch,
                    requests.as_ptr().cast(),
                    requests.len(),
                    &raw mut tally,
                );
            }
            tally
        };
        in_turn(carry_out, warm_up, timed)
    }

    fn has_batches(&self) -> bool {
        self.form != Form::Alone
    }

    fn shares_writes(&self) -> bool {
        false
    }

    fn shares_reads(&self) -> bool {
        !self.form.is_an_owners()
    }

    fn resize(&mut self, bytes: usize) -> Result<(), CreateError> {
        // SAFETY: the container lives, and nobody else uses it.
        let resized = unsafe { lookaside_peers_container_resize(self.container.get_mut().as_ptr(), bytes) };
        let refused = CreateError::Parameter {
            parameter: "size",
            value: bytes as f64,
            range: "at least 64, and no more than there is memory for",
        };
        if resized { Ok(()) } else { Err(refused) }
    }

    fn counts(&self) -> Option<Counts> {
        if self.form == Form::Alone {
            return None;
        }
        let told = self.told();
        let mut counts = Counts::default();
        counts.hits = told.hits;
        counts.misses = told.misses;
        counts.bypassed = told.bypassed;
        counts.emissions = told.emissions;
        counts.admissions = told.admissions;
        counts.evictions = told.evictions;
        counts.refused_tickets = told.refused_tickets;
        counts.invalidations = told.invalidations;
        counts.cleared = told.cleared;
        Some(counts)
    }

    fn verdict(&self) -> Option<Verdict> {
        if matches!(self.form, Form::Alone | Form::Stlt) {
            return None;
        }
        let (container, mut found) = (self.container.write(), lookaside_verdict::default());
        // SAFETY: the container lives, and nobody else uses it.
        unsafe { lookaside_peers_container_verdict(container.as_ptr(), &raw mut found) };
        let mut verdict = Verdict::default();
        verdict.watching = found.watching;
        verdict.on = found.on;
        verdict.gain = (found.gain > 0.0).then_some(found.gain);
        verdict.on_in_batches = found.on_in_batches;
        verdict.gain_in_batches = (found.gain_in_batches > 0.0).then_some(found.gain_in_batches);
        verdict.trials = found.trials;
        verdict.switches = found.switches;
        Some(verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::lookaside::{Value, fill};

    const RECORDS: u64 = 2_000;

    /// Every form of every container, behind a table that is far too small.
    fn each<const N: usize>(mut check: impl FnMut(&str, &mut dyn Contestant<N>)) {
        const BYTES: usize = 64 * 16;
        let (slb, records) = (Config::with_size(BYTES), RECORDS as usize);
        for entrant in entrants::<N>() {
            let makers = [entrant.shared, entrant.sole, entrant.called].map(Option::unwrap);
            let fronted = makers.into_iter().flat_map(|make| [(make, false), (make, true)]);
            let fronted = fronted.map(|(make, monitor)| make(records, &slb, monitor).unwrap());
            let others = [(entrant.alone)(records), entrant.stlt.unwrap()(records, BYTES, 4)];
            for mut made in others.map(Result::unwrap).into_iter().chain(fronted) {
                check(entrant.name, &mut *made);
            }
        }
    }

    /// Looks up every other record, and as many that there are not.
    fn answers<const N: usize>(contestant: &dyn Contestant<N>, call: Call) -> Tally {
        let keys: Vec<_> = (0..RECORDS).map(|number| Key::of(2 * number)).collect();
        contestant.get(0, call, &keys[..10], &keys).tally
    }

    fn finds_what_was_put_in<const N: usize>() {
        let mut expected = Tally::default();
        (0..RECORDS / 2).for_each(|number| expected.count(Some(Value::expected(2 * number))));
        each::<N>(|name, contestant| {
            let nothing = Tally::default();
            assert_eq!(answers(contestant, Call::Single), nothing, "{name}: empty");
            fill(contestant, 0, 0..RECORDS);
            for call in [Call::Single, Call::Batch, Call::Batch, Call::Single] {
                assert_eq!(answers(contestant, call), expected, "{name}, {call:?}");
            }
            contestant.resize(64 * 1024).unwrap();
            assert_eq!(answers(contestant, Call::Batch), expected, "{name}");
            if contestant.counts().is_some() {
                assert!(contestant.resize(0).is_err(), "{name}: a table of no bytes");
                let counts = contestant.counts().unwrap();
                let asked = counts.hits + counts.misses + counts.bypassed;
                assert_eq!(asked, 6 * (RECORDS + 10), "{name}");
            }
        });
    }

    #[test]
    fn containers_find_what_was_put_in_and_nothing_else() {
        finds_what_was_put_in::<24>();
        finds_what_was_put_in::<8>();
    }

    #[test]
    fn what_is_replaced_is_never_found_again() {
        each::<24>(|name, contestant| {
            fill(contestant, 0, 0..RECORDS);
            for round in 0..4u64 {
                // Each key in turn is read, given the value of another record, and read again.
                let numbers = (0..RECORDS).map(|number| (number, number + round * RECORDS));
                let mut expected = Tally::default();
                let requests: Vec<_> = numbers
                    .flat_map(|(number, value)| {
                        let before = value.saturating_sub(RECORDS).max(number);
                        expected.count(Some(Value::expected(before)));
                        expected.count(Some(Value::expected(value)));
                        let key = Key::of(number);
                        let ask = Request { key, record: 0, set: false };
                        [ask, Request { key, record: value, set: true }, ask]
                    })
                    .collect();
                let answer = contestant.perform(0, Call::Single, &[], &requests);
                assert_eq!(answer.tally, expected, "{name}, round {round}");
                // In batches a lookup may come after a write that it stood before: only of other keys.
                let (mut expected, mut requests) = (Tally::default(), Vec::new());
                for number in 0..RECORDS {
                    let (set, asked) = (number, (number + RECORDS / 2) % RECORDS);
                    let value = set + round * RECORDS;
                    requests.push(Request { key: Key::of(set), record: value, set: true });
                    requests.push(Request { key: Key::of(asked), record: 0, set: false });
                    expected.count(Some(Value::expected(asked + round * RECORDS)));
                }
                let answer = contestant.perform(0, Call::Batch, &[], &requests);
                assert_eq!(answer.tally, expected, "{name}, round {round}, in batches");
            }
        });
    }

    #[test]
    fn threads_share_what_is_not_an_owners() {
        each::<24>(|name, contestant| {
            if !contestant.shares_reads() {
                return;
            }
            fill(contestant, 0, 0..RECORDS);
            let (contestant, calls) = (&*contestant, [Call::Single, Call::Batch]);
            let tallies: Vec<_> = std::thread::scope(|scope| {
                let threads = calls.map(|call| scope.spawn(move || answers(contestant, call)));
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(tallies[0].found == RECORDS / 2 && tallies[0] == tallies[1], "{name}: {tallies:?}");
        });
    }

    /// A lookup may replace a table that fits itself, which is why all are pinned: what was found before is found
    /// after, by each way to ask, and what is replaced then is never found again. Other tables stay.
    #[test]
    fn a_table_that_fits_itself_is_folded_under_lookups() {
        for (form, fits) in
            [(Form::Inlined, true), (Form::Called, true), (Form::Inlined, false), (Form::Owned, true)]
        {
            // Half of the records are asked for: an eighth of the slots has room for three times as many.
            let config = Config::with_size(1 << 18).fits(fits);
            let options = lookaside_options { monitor: false, ..lookaside_options::from(&config) };
            let made = Foreign::new::<24, StdMap>(form, RECORDS as usize, &raw const options).unwrap();
            let (whole, contestant): (_, &dyn Contestant<24>) = (made.told().capacity, &made);
            let look_up = |value_of: fn(u64) -> u64, rounds| {
                let mut expected = Tally::default();
                (0..RECORDS / 2)
                    .for_each(|number| expected.count(Some(Value::expected(value_of(2 * number)))));
                let calls = [Call::Single, Call::Batch].into_iter().cycle().take(rounds);
                calls.for_each(|call| assert_eq!(answers(contestant, call), expected, "{form:?}, {call:?}"));
            };
            fill(contestant, 0, 0..RECORDS);
            std::thread::scope(|scope| {
                let threads = if contestant.shares_reads() { 2 } else { 1 };
                (0..threads).for_each(|_| _ = scope.spawn(|| look_up(|number| number, 200)));
            });
            let folds = fits && form != Form::Owned;
            assert_eq!(made.told().capacity < whole, folds, "{form:?}: {:?} of {whole}", made.told());
            let put = |number| Request { key: Key::of(number), record: number + RECORDS, set: true };
            let requests: Vec<_> = (0..RECORDS).map(put).collect();
            contestant.perform(0, Call::Single, &[], &requests);
            look_up(|number| number + RECORDS, 2);
        }
    }

    #[test]
    fn stlt_has_four_ways_there_or_is_refused() {
        let made = entrants::<24>().remove(0).stlt.unwrap()(10, 4096, 8);
        assert!(made.is_err_and(|why| why.contains("four ways")));
        assert!(entrants::<24>().remove(0).stlt.unwrap()(10, 63, 4).is_err(), "a table of less than a set");
    }
}

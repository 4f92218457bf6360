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

use lab::lookaside::{Abilities, Answer, Call, Contestant, Entrant, Lot, Made, RwLock, Tally};
use lab::measure::Stopwatch;
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

/// Makes the container of this number among [`entrants`].
fn maker(which: usize) -> Maker {
    macro_rules! makers {
        ($($(#[$when:meta])? $maker:ident),*) => {{
            // SAFETY: as above: functions of cpp/containers.
            unsafe extern "C" {
                $($(#[$when])? fn $maker(
                    form: u32,
                    key_bytes: usize,
                    records: usize,
                    options: *const lookaside_options,
                ) -> *mut c_void;)*
            }
            let all: &[Maker] = &[$($(#[$when])? $maker),*];
            all
        }};
    }
    makers!(
        lookaside_peers_std_map,
        lookaside_peers_std_unordered_map,
        #[cfg(abseil)]
        lookaside_peers_absl_btree_map,
        #[cfg(abseil)]
        lookaside_peers_absl_flat_hash_map,
        #[cfg(sparsehash)]
        lookaside_peers_dense_hash_map
    )[which]
}

/// Those that are there.
pub(super) fn entrants<const N: usize>() -> Vec<Entrant<N>> {
    let names = [
        "std::map",
        "std::unordered_map",
        #[cfg(abseil)]
        "absl::btree_map",
        #[cfg(abseil)]
        "absl::flat_hash_map",
        #[cfg(sparsehash)]
        "dense_hash_map",
    ];
    let made = [entrant::<N, 0>, entrant::<N, 1>, entrant::<N, 2>, entrant::<N, 3>, entrant::<N, 4>];
    names.into_iter().zip(made).map(|(name, entrant)| entrant(name)).collect()
}

fn entrant<const N: usize, const WHICH: usize>(name: &'static str) -> Entrant<N> {
    Entrant {
        name,
        alone: |records| Foreign::make::<N>(WHICH, Form::Alone, records, null()),
        shared: Some(|records, config, monitor| fronted(WHICH, Form::Inlined, records, config, monitor)),
        sole: Some(|records, config, monitor| fronted(WHICH, Form::Owned, records, config, monitor)),
        called: Some(|records, config, monitor| fronted(WHICH, Form::Called, records, config, monitor)),
        stlt: Some(|records, bytes, ways| match ways {
            4 => fronted(WHICH, Form::Stlt, records, &Config::with_size(bytes), false),
            _ => Err("STLT-SW is compiled into C++ with four ways".into()),
        }),
    }
}

fn fronted<const N: usize>(
    which: usize,
    form: Form,
    records: usize,
    config: &Config,
    monitor: bool,
) -> Made<N> {
    let options = lookaside_options { monitor, ..lookaside_options::from(config) };
    Foreign::make::<N>(which, form, records, &raw const options)
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
    fn make<const N: usize>(
        which: usize,
        form: Form,
        records: usize,
        options: *const lookaside_options,
    ) -> Made<N> {
        Ok(Box::new(Foreign::new::<N>(which, form, records, options)?))
    }

    fn new<const N: usize>(
        which: usize,
        form: Form,
        records: usize,
        options: *const lookaside_options,
    ) -> Result<Foreign, String> {
        // SAFETY: options are null only for a container alone, which does not look at them.
        let made = unsafe { maker(which)(form as u32, N, records, options) };
        match NonNull::new(made) {
            Some(container) => Ok(Foreign { form, container: RwLock::new(container) }),
            None => Err(format!("no memory for {records} records in a container with keys of {N} bytes")),
        }
    }

    /// Answers under the lock.
    fn answer<const N: usize>(&self, call: Call, lot: Lot<'_, N>) -> Tally {
        let (batches, mut tally) = (call == Call::Batch, Tally::default());
        match lot {
            Lot::Keys(keys) => {
                let mut get = |container: &NonNull<c_void>| {
                    let (container, first) = (container.as_ptr(), keys.as_ptr().cast());
                    // SAFETY: the container lives and is for keys of this length, of which there are as many as it is
                    // told; nobody changes it, and in the owner's form nobody else asks it, while it is locked.
                    unsafe {
                        lookaside_peers_container_get(container, batches, first, keys.len(), &raw mut tally);
                    }
                };
                match self.form.is_an_owners() {
                    true => get(&self.container.write()),
                    false => get(&self.container.read()),
                }
            }
            Lot::Requests(requests) | Lot::Renewals(requests) => {
                let container = self.container.write();
                let (container, first) = (container.as_ptr(), requests.as_ptr().cast());
                // SAFETY: as above, and nobody else does anything with it.
                unsafe {
                    lookaside_peers_container_perform(
                        container,
                        batches,
                        first,
                        requests.len(),
                        &raw mut tally,
                    );
                }
            }
        }
        tally
    }

    /// What the buffer in front has counted.
    fn counted(&self) -> lookaside_counts {
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
    fn ask(&self, _thread: usize, call: Call, [warm_up, timed]: [Lot<'_, N>; 2]) -> Answer {
        self.answer(call, warm_up);
        let watch = Stopwatch::start();
        let tally = self.answer(call, timed);
        Answer { tally, time: watch.elapsed() }
    }

    fn abilities(&self) -> Abilities {
        let (batches, shared_reads) = (self.form != Form::Alone, !self.form.is_an_owners());
        Abilities { batches, shared_reads, renews: false, ..Abilities::READ_BY_MANY }
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

    fn told(&self) -> Option<(Counts, Verdict)> {
        if self.form == Form::Alone {
            return None;
        }
        let told = self.counted();
        let mut counts = Counts::default();
        counts.hits = told.hits;
        counts.misses = told.misses;
        counts.bypassed = told.bypassed;
        counts.offers = told.emissions;
        counts.admissions = told.admissions;
        counts.evictions = told.evictions;
        counts.refused_tickets = told.refused_tickets;
        counts.invalidations = told.invalidations;
        counts.cleared = told.cleared;
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
        Some((counts, verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::lookaside::{Key, Value, fill};

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
    fn threads_share_what_is_not_an_owners() {
        each::<24>(|name, contestant| {
            if !contestant.abilities().shared_reads {
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

    #[test]
    fn stlt_has_four_ways_there_or_is_refused() {
        let made = entrants::<24>().remove(0).stlt.unwrap()(10, 4096, 8);
        assert!(made.is_err_and(|why| why.contains("four ways")));
        assert!(entrants::<24>().remove(0).stlt.unwrap()(10, 63, 4).is_err(), "a table of less than a set");
    }
}

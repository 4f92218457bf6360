//! Indexes that people use, alone and behind a lookaside table: kind `slb-peers-lookups`, which is the laboratory's
//! `slb-lookups` with these indexes as well; and kind `art-peers-slb`, its `art-slb` likewise.
//!
//! | module | indexes |
//! |---|---|
//! | `ordered` | scc's B+-tree, crossbeam's skip list |
//! | `hashed` | hashbrown, papaya, dashmap |
//! | `lmdb` | LMDB, through heed |
//! | `containers` | C++: `std::map`, `std::unordered_map`, Abseil's, `dense_hash_map`; through the C interface: unsafe |
//! | `handle_cell` | a handle that can be exchanged where it lies: unsafe, as `lmdb` is |

#[cfg(containers)]
mod containers;
mod handle_cell;
mod hashed;
mod lmdb;
mod ordered;

use lab::art::behind_table;
use lab::experiment::{ExperimentError, Session};
use lab::lookaside::lookups::{Missing, Parameters, run_with};
use lab::lookaside::{
    Entrant, Key, RwLock, Value, alone, behind_stlt, own_entrants, shared, shared_behind_stlt, sole,
};
use lookaside::Handle;

/// What is stored behind a map.
type Handled<const N: usize> = Handle<Key<N>, Value>;

/// The kind.
///
/// # Errors
/// As [`run_with`].
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    run_with(parameters, session, entrants::<8>(), entrants::<24>(), &missing())
}

/// Kind `art-peers-slb`: the laboratory's `art-slb` with these indexes as well.
///
/// # Errors
/// As [`behind_table::run_with`].
pub fn run_radix_tree(
    parameters: &behind_table::Parameters,
    session: &mut Session,
) -> Result<(), ExperimentError> {
    behind_table::run_with(parameters, session, entrants::<24>(), &missing())
}

/// The containers that are not installed, or were not when this was compiled.
#[must_use]
pub fn missing() -> Vec<Missing> {
    let containers = [
        ("std::map", cfg!(containers), "a C++ compiler is not installed"),
        ("std::unordered_map", cfg!(containers), "a C++ compiler is not installed"),
        ("absl::btree_map", cfg!(abseil), "libabsl-dev is not installed"),
        ("absl::flat_hash_map", cfg!(abseil), "libabsl-dev is not installed"),
        ("dense_hash_map", cfg!(sparsehash), "libsparsehash-dev is not installed"),
    ];
    let missing = containers.into_iter().filter(|(_, installed, _)| !installed);
    missing.map(|(name, _, why)| Missing { name, why }).collect()
}

/// All indexes: those of this crate, and the laboratory's own.
fn entrants<const N: usize>() -> Vec<Entrant<N>> {
    let mut entrants = vec![
        Entrant {
            name: "scc::TreeIndex",
            alone: alone::<N, ordered::TreeAlone<N>>,
            shared: Some(shared::<N, ordered::Tree<N>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, ordered::Tree<N>>),
        },
        Entrant {
            name: "skip list",
            alone: alone::<N, ordered::SkipListAlone<N>>,
            shared: Some(shared::<N, ordered::SkipList<N>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, ordered::SkipList<N>>),
        },
        Entrant {
            name: "hashbrown",
            alone: alone::<N, hashed::HashbrownAlone<N>>,
            shared: Some(shared::<N, RwLock<hashed::Hashbrown<N>>>),
            sole: Some(sole::<N, hashed::Hashbrown<N>>),
            called: None,
            stlt: Some(behind_stlt::<N, hashed::Hashbrown<N>>),
        },
        Entrant {
            name: "papaya",
            alone: alone::<N, hashed::PapayaAlone<N>>,
            shared: Some(shared::<N, hashed::Papaya<N>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, hashed::Papaya<N>>),
        },
        Entrant {
            name: "dashmap",
            alone: alone::<N, hashed::DashmapAlone<N>>,
            shared: Some(shared::<N, hashed::Dashmap<N>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, hashed::Dashmap<N>>),
        },
        Entrant {
            name: "LMDB",
            alone: alone::<N, lmdb::LmdbAlone<N>>,
            shared: Some(shared::<N, lmdb::Lmdb<N>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, lmdb::Lmdb<N>>),
        },
    ];
    entrants.extend(own_entrants());
    #[cfg(containers)]
    entrants.extend(containers::entrants());
    entrants
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::lookaside::{history, model};

    #[test]
    fn every_index_behind_a_map_is_a_map() {
        model::check::<ordered::Tree<24>>();
        model::check::<ordered::SkipList<24>>();
        model::check::<RwLock<hashed::Hashbrown<24>>>();
        model::check::<hashed::Papaya<24>>();
        model::check::<hashed::Dashmap<24>>();
        model::check::<lmdb::Lmdb<24>>();
    }

    #[test]
    fn every_index_behind_a_map_that_threads_share_shows_no_older_record() {
        history::check::<ordered::Tree<24>>();
        history::check::<ordered::SkipList<24>>();
        history::check::<RwLock<hashed::Hashbrown<24>>>();
        history::check::<hashed::Papaya<24>>();
        history::check::<hashed::Dashmap<24>>();
        history::check::<lmdb::Lmdb<24>>();
    }

    fn skip_what_is_missing() {
        missing().iter().for_each(|Missing { name, why }| outside::skip(format_args!("{name}: {why}")));
    }

    /// The C++ containers among them. Those of the laboratory are tested in the laboratory.
    #[test]
    fn every_contestant_answers_requests() {
        skip_what_is_missing();
        let ours: Vec<_> = own_entrants::<24>().iter().map(|entrant| entrant.name).collect();
        let foreign = entrants::<24>().into_iter().filter(|entrant| !ours.contains(&entrant.name));
        foreign.for_each(|entrant| model::check_entrant(&entrant));
    }

    #[test]
    fn ordered_indexes_behind_a_map_have_ranges() {
        model::check_ranges::<ordered::Tree<24>>();
        model::check_ranges::<ordered::SkipList<24>>();
    }

    #[test]
    fn every_container_is_there_or_missing() {
        skip_what_is_missing();
        let missing = missing().len();
        let all =
            ["std::map", "std::unordered_map", "absl::btree_map", "absl::flat_hash_map", "dense_hash_map"];
        let there = entrants::<24>().iter().filter(|entrant| all.contains(&entrant.name)).count();
        assert_eq!(there + missing, all.len());
    }

    #[test]
    fn indexes_have_names_of_their_own() {
        let mut names: Vec<_> = entrants::<24>().iter().map(|entrant| entrant.name).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}

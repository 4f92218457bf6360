//! Indexes that people use, alone and behind a lookaside table: the laboratory's kind `slb-lookups`, with these as
//! well.
//!
//! | module | indexes |
//! |---|---|
//! | `ordered` | scc's B+-tree, crossbeam's skip list |
//! | `hashed` | hashbrown, papaya, dashmap |
//! | `lmdb` | LMDB, through heed |
//! | `containers` | C++: `std::map`, `std::unordered_map`, Abseil's, `dense_hash_map`; by the C interface: unsafe |
//! | `handle_cell` | a handle that can be exchanged where it lies: unsafe, as `lmdb` is |

#[cfg(containers)]
mod containers;
mod handle_cell;
pub(crate) mod hashed;
mod lmdb;
mod ordered;

use std::sync::Arc;

use lab::experiment::{ExperimentError, Session};
use lab::lookaside::indexes::{Alone, Boxes, Handled, Handles};
use lab::lookaside::lookups::{Missing, Parameters, run_with};
use lab::lookaside::{Entrant, Key, RwLock, Value, own_entrants};

use hashed::{Dashmap, Hashbrown, HashbrownAlone, Papaya};
use lmdb::{Lmdb, LmdbAlone};
use ordered::{SkipList, SkipListAlone, Tree};

/// The kind.
///
/// # Errors
/// As [`run_with`].
pub fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    run_with(parameters, session, entrants::<8>(), entrants::<24>(), &missing())
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
        Entrant::new::<Boxes<N, Arc<Value>, Tree<Key<N>, Arc<Value>>>>("scc::TreeIndex")
            .with_shared::<Handles<N, Tree<Key<N>, Handled<N>>>>()
            .with_stlt::<Handles<N, Tree<Key<N>, Handled<N>>>>(),
        Entrant::new::<Boxes<N, Box<Value>, SkipListAlone<N>>>("skip list")
            .with_shared::<SkipList<N>>()
            .with_stlt::<SkipList<N>>(),
        Entrant::new::<Alone<HashbrownAlone<N>>>("hashbrown")
            .with_shared::<RwLock<Hashbrown<N>>>()
            .with_sole::<Hashbrown<N>>(),
        Entrant::new::<Boxes<N, Box<Value>, Papaya<Key<N>, Box<Value>>>>("papaya")
            .with_shared::<Handles<N, Papaya<Key<N>, Handled<N>>>>()
            .with_stlt::<Handles<N, Papaya<Key<N>, Handled<N>>>>(),
        Entrant::new::<Boxes<N, Box<Value>, Dashmap<Key<N>, Box<Value>>>>("dashmap")
            .with_shared::<Handles<N, Dashmap<Key<N>, Handled<N>>>>()
            .with_stlt::<Handles<N, Dashmap<Key<N>, Handled<N>>>>(),
        Entrant::new::<LmdbAlone<N>>("LMDB").with_shared::<Lmdb<N>>().with_stlt::<Lmdb<N>>(),
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
    fn every_index_behind_a_map_is_a_map_and_shows_no_older_record() {
        history::check::<Handles<24, Tree<Key<24>, Handled<24>>>>();
        history::check::<SkipList<24>>();
        history::check::<RwLock<Hashbrown<24>>>();
        history::check::<Handles<24, Papaya<Key<24>, Handled<24>>>>();
        history::check::<Handles<24, Dashmap<Key<24>, Handled<24>>>>();
        history::check::<Lmdb<24>>();
        model::check_owned::<Hashbrown<24>>();
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

//! The indexes of this crate by name.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;

use lookaside::{Handle, RwLock};

use super::beside::Record;
use super::bulk_chaining::{BulkChaining, FOUR_LINES, ONE_LINE, TWO_LINES};
use super::chaining::Chaining;
use super::contestant::{Entrant, alone, behind_stlt, shared, shared_behind_stlt, sole, with_own_records};
use super::cuckoo_table::Cuckoo;
use super::items::Kept;
use super::radix_tree;
use super::record::{Key, Value};
use super::standard::{HashAlone, Tree, TreeAlone};

type Handled<const N: usize> = Handle<Key<N>, Value>;
type Hashed<const N: usize> = HashSet<Handled<N>, RandomState>;

/// One of MICA's tables, shared.
fn crew<const N: usize, const ITEMS: usize>(name: &'static str) -> Entrant<N> {
    Entrant {
        name,
        alone: alone::<N, BulkChaining<N, Kept<N>, true, ITEMS>>,
        shared: Some(shared::<N, BulkChaining<N, Handled<N>, true, ITEMS>>),
        sole: None,
        called: None,
        stlt: Some(shared_behind_stlt::<N, BulkChaining<N, Handled<N>, true, ITEMS>>),
    }
}

/// One of MICA's tables, for one thread.
fn erew<const N: usize, const ITEMS: usize>(name: &'static str) -> Entrant<N> {
    Entrant {
        name,
        alone: alone::<N, RwLock<BulkChaining<N, Kept<N>, false, ITEMS>>>,
        shared: None,
        sole: Some(sole::<N, BulkChaining<N, Handled<N>, false, ITEMS>>),
        called: None,
        stlt: Some(behind_stlt::<N, BulkChaining<N, Handled<N>, false, ITEMS>>),
    }
}

/// The standard library's ordered map.
pub(super) fn b_tree<const N: usize>() -> Entrant<N> {
    Entrant {
        name: "BTreeMap",
        alone: alone::<N, TreeAlone<N>>,
        shared: Some(shared::<N, RwLock<Tree<N>>>),
        sole: Some(sole::<N, Tree<N>>),
        called: None,
        stlt: Some(behind_stlt::<N, Tree<N>>),
    }
}

/// The indexes of this crate.
#[must_use]
pub fn own_entrants<const N: usize>() -> Vec<Entrant<N>> {
    let mut entrants = vec![
        b_tree(),
        Entrant {
            name: "HashMap",
            alone: alone::<N, HashAlone<N>>,
            shared: Some(shared::<N, RwLock<Hashed<N>>>),
            sole: Some(sole::<N, Hashed<N>>),
            called: None,
            stlt: Some(behind_stlt::<N, Hashed<N>>),
        },
        Entrant {
            name: "cuckoo table",
            alone: alone::<N, Cuckoo<N, Kept<N>>>,
            shared: Some(with_own_records::<N, Cuckoo<N, Kept<N>>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, Cuckoo<N, Handled<N>>>),
        },
        Entrant {
            name: "chaining",
            alone: alone::<N, Chaining<N, Record<N>>>,
            shared: Some(with_own_records::<N, Chaining<N, Record<N>>>),
            sole: None,
            called: None,
            stlt: Some(shared_behind_stlt::<N, Chaining<N, Handled<N>>>),
        },
        crew::<N, FOUR_LINES>("MICA CREW, four lines"),
        crew::<N, TWO_LINES>("MICA CREW, two lines"),
        crew::<N, ONE_LINE>("MICA CREW, one line"),
        erew::<N, FOUR_LINES>("MICA EREW, four lines"),
        erew::<N, TWO_LINES>("MICA EREW, two lines"),
        erew::<N, ONE_LINE>("MICA EREW, one line"),
    ];
    entrants.extend(radix_tree::entrants());
    entrants
}

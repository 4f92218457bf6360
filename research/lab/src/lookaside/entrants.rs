//! The indexes of this crate by name.

use std::collections::{BTreeMap, HashMap};

use lookaside::RwLock;

use super::beside::{Own, Record};
use super::bulk_chaining::{BulkChaining, FOUR_LINES, ONE_LINE, TWO_LINES};
use super::chaining::Chaining;
use super::cuckoo_table::Cuckoo;
use super::entrant::Entrant;
use super::indexes::{Alone, Handled, Hashed, Tree};
use super::items::Kept;
use super::radix_tree;
use super::record::{Key, Value};

/// One of MICA's tables, shared.
fn crew<const N: usize, const ITEMS: usize>(name: &'static str) -> Entrant<N> {
    Entrant::new::<Own<BulkChaining<N, Kept<N>, true, ITEMS>>>(name)
        .with_shared::<BulkChaining<N, Handled<N>, true, ITEMS>>()
        .with_stlt::<BulkChaining<N, Handled<N>, true, ITEMS>>()
}

/// One of MICA's tables, for one thread.
fn erew<const N: usize, const ITEMS: usize>(name: &'static str) -> Entrant<N> {
    Entrant::new::<Alone<BulkChaining<N, Kept<N>, false, ITEMS>>>(name).with_sole::<BulkChaining<
        N,
        Handled<N>,
        false,
        ITEMS,
    >>()
}

/// The standard library's ordered map.
pub(super) fn b_tree<const N: usize>() -> Entrant<N> {
    Entrant::new::<Alone<BTreeMap<Key<N>, Box<Value>>>>("BTreeMap")
        .with_shared::<RwLock<Tree<N>>>()
        .with_sole::<Tree<N>>()
}

/// The indexes of this crate.
#[must_use]
pub fn own_entrants<const N: usize>() -> Vec<Entrant<N>> {
    let mut entrants = vec![
        b_tree(),
        Entrant::new::<Alone<HashMap<Key<N>, Box<Value>>>>("HashMap")
            .with_shared::<RwLock<Hashed<N>>>()
            .with_sole::<Hashed<N>>(),
        Entrant::new::<Own<Cuckoo<N, Kept<N>>>>("cuckoo table")
            .with_beside::<Cuckoo<N, Kept<N>>>()
            .with_stlt::<Cuckoo<N, Handled<N>>>(),
        Entrant::new::<Own<Chaining<N, Record<N>>>>("chaining")
            .with_beside::<Chaining<N, Record<N>>>()
            .with_stlt::<Chaining<N, Handled<N>>>(),
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

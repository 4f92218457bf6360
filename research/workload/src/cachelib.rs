//! The sizes of values in the workloads that Meta published with CacheLib (Berg et al., "The CacheLib caching engine",
//! OSDI 2020), for its program `cachebench`.

use crate::sizes::Histogram;
use crate::table::Table;

/// Bytes of values in the workload of this name, such as `kvcache_reg`: about a hundred sizes instead of thousands,
/// which are built into the program. `None` where none of the six has the name.
///
/// ```
/// use lookaside_workload::{cachelib::value_sizes, sizes::Sizes};
///
/// assert_eq!(value_sizes("kvcache_reg").expect("one of the six").quantile(0.5), 159);
/// ```
#[must_use]
pub fn value_sizes(name: &str) -> Option<Histogram> {
    let rows = Table::named(name)?.numbers("value");
    let (sizes, weights): (Vec<u64>, Vec<f64>) = rows.map(|row: Vec<u64>| (row[0], row[1] as f64)).unzip();
    Histogram::new(&sizes, &weights).ok()
}

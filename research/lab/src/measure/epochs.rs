//! Memory of the laboratory's own tables that readers may still look at.
//!
//! One collector for all of them ([`atomics::reclaim`]): what a table of words lets go of does not know which table it
//! was in. Who pins once for many requests lets go from time to time, so that memory is used again while he stays, as
//! in a program.

use std::sync::LazyLock;

use atomics::reclaim::{self, Collector};

/// Requests after which a guard or a visit is to be refreshed.
pub const REQUESTS: usize = 1024;

/// Who holds one has pinned the laboratory's collector.
pub type Guard = reclaim::Guard<'static>;

static COLLECTOR: LazyLock<Collector> = LazyLock::new(Collector::new);

/// Pins.
pub fn pin() -> Guard {
    COLLECTOR.pin()
}

/// Frees what everybody has let go of.
pub fn collect() {
    COLLECTOR.collect();
}

//! `stats`: what monitoring reads, under memcached's names and in its order (MEMCACHED 1.6).
//!
//! Names for things that do not exist here stand with the value that means nothing happened, because dashboards ask for
//! them. What memcached does not have stands at the end, and only where it is switched on.

mod classes;
mod conns;
mod general;
mod settings;

use cache::engine::{ClassReport, Departures};
use protocol::{StatsTopic, reply};

use crate::counted::Counted;
use crate::metrics::ClassSums;
use crate::shared::Shared;

impl Shared {
    /// Answers `stats`.
    pub(crate) fn write_stats(&self, topic: StatsTopic, out: &mut Vec<u8>) {
        match topic {
            StatsTopic::General => self.general(out),
            StatsTopic::Reset => {
                *self.baseline.lock() = self.counted_in_all(&self.classes());
                self.prefixes.clear();
                out.extend_from_slice(reply::RESET);
                return;
            }
            StatsTopic::Settings => self.settings(out),
            StatsTopic::Items => self.items(out),
            StatsTopic::Slabs => self.slabs(out),
            StatsTopic::Conns => self.conns(out),
            // Who looks at items for it, and does more, is the executor.
            StatsTopic::Sizes => {
                let status = if self.settings.track_sizes { "enabled" } else { "disabled" };
                reply::stat(out, "sizes_status", status);
            }
            StatsTopic::Detail(_) | StatsTopic::Cachedump(_) => {}
        }
        out.extend_from_slice(reply::END);
    }

    /// What the server has counted since it was started; `classes` is what its cache says of its classes.
    fn counted_in_all(&self, classes: &[ClassReport]) -> Counted {
        Counted {
            sums: self.metrics.sums(),
            by_class: self.by_class.sums(),
            cache: self.cache.counts(),
            arrivals: self.connections.arrivals(),
            pages_moved: self.cache.memory().pages_moved as u64,
            departures: classes.iter().map(|class| class.departures).collect(),
            logged: self.watch.logged(),
            dumps: self.crawling.begun(),
        }
    }

    /// All slab classes, by number.
    fn classes(&self) -> Vec<ClassReport> {
        (0..).map_while(|number| self.cache.class(number)).collect()
    }

    fn counted(&self, classes: &[ClassReport]) -> Counted {
        self.counted_in_all(classes).since(&self.baseline.lock())
    }
}

/// The classes that there is something to say of, with their numbers: those that have pages, and those of whose items
/// something was counted, so that the counts of all together are those in all.
fn shown<'a>(
    classes: &'a [ClassReport],
    counted: &'a Counted,
) -> impl Iterator<Item = (usize, &'a ClassReport)> {
    classes.iter().enumerate().filter(|&(number, class)| {
        class.pages > 0
            || counted.class(number) != ClassSums::default()
            || counted.departures(number) != Departures::default()
    })
}

//! What can be chosen about a table, and what is chosen by default.

use pages::PageKind;

use crate::bucket::CounterPolicy;

/// Who may enter a Cache Table whose bucket for it is full.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Admission {
    /// The paper's (sections 3.3.2 and 3.3.3): a share of the emissions, drawn at random, is written into the Log Table, and
    /// a key is admitted when it then stands there more than `threshold` times. While the Cache Table is not full, every
    /// emission is admitted.
    Logged {
        /// How often a key must have been logged before the emission that admits it: 0 to 14.
        threshold: u8,
        /// Which share of the emissions is logged: above 0, at most 1.
        sampling: f64,
    },
    /// A share of the emissions, drawn at random, with no log: a newcomer takes the place of the coldest in its bucket, and
    /// stays if it is asked for again before the next newcomer comes.
    Sampled {
        /// Which share of the emissions enters: above 0, at most 1.
        sampling: f64,
    },
}

/// The parameters of an [`Slb`](crate::Slb).
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Bytes of the Cache Table: at least one line of 64 bytes. What is left over a multiple of 64 is not used.
    pub size: usize,
    /// Bytes of the Log Table for each byte of the Cache Table, where admission needs one.
    pub log_ratio: usize,
    /// Who may enter.
    pub admission: Admission,
    /// How hits warm their slots.
    pub counters: CounterPolicy,
    /// The count that a newcomer begins with.
    pub newcomer: u8,
    /// The pages that the tables are asked to lie in.
    pub pages: PageKind,
    /// Whether the Cache Table may be smaller than `size` while what is asked for has room in a part of it: a quarter, an
    /// eighth, and so on. It is then found in fewer lines. When it has no room there any more, the whole table begins empty.
    /// While one is copied to the other, both take memory, and the old one does until all threads have refreshed or ended their
    /// visits some times. A Log Table begins empty with each. Lookups see to it, as [`crate::Visit::uses_table`] counts them. An owner's table ([`crate::OwnedMap`]) is of one size.
    pub fits: bool,
}

impl Config {
    /// The paper to the letter (sections 3.2 and 3.3): a Log Table four times the Cache Table, 5 % of the emissions logged, a
    /// threshold of three, counters raised by every hit, a table of one size.
    ///
    /// ```
    /// use lookaside::{Admission, Config};
    /// assert_eq!(Config::paper(16 << 20).admission, Admission::Logged { threshold: 3, sampling: 0.05 });
    /// ```
    #[must_use]
    pub fn paper(size: usize) -> Config {
        Config {
            size,
            log_ratio: 4,
            admission: Admission::Logged { threshold: 3, sampling: 0.05 },
            counters: CounterPolicy::EveryHit,
            newcomer: 1,
            pages: PageKind::Transparent,
            fits: false,
        }
    }

    /// What measured best: no log, every emission enters, counters that rise ever more rarely, newcomers begin at the
    /// bottom, and the table fits itself. (Counting every hit, as the paper does, keeps a little more of what is hot, 86.5 % of hits instead of 85.3 %
    /// where the table is full, and writes a line at each hit: research/experiments/slb-warm-up.toml and
    /// slb-shared-writes.toml show both. The paper's log by itself keeps nothing more.)
    #[must_use]
    pub fn with_size(size: usize) -> Config {
        Config {
            admission: Admission::Sampled { sampling: 1.0 },
            counters: CounterPolicy::Falling,
            newcomer: 0,
            fits: true,
            ..Config::paper(size)
        }
    }
}

/// 32 MiB of [`Config::with_size`].
impl Default for Config {
    fn default() -> Config {
        Config::with_size(32 << 20)
    }
}

/// Why a table could not be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Less than a line, or a set.
    #[error("a table of {size} bytes holds nothing: give it at least {least}")]
    TooSmall {
        /// The bytes asked for.
        size: usize,
        /// The bytes of the smallest.
        least: usize,
    },
    /// More lines than a hash can tell apart.
    #[error("a table of {size} bytes has more lines than a hash can name: give it at most 2^{bits} bytes")]
    TooLarge {
        /// The bytes asked for.
        size: usize,
        /// Of the bytes of the largest, the logarithm.
        bits: u32,
    },
    /// A number that is not one of those that it can be.
    #[error("{parameter} is {value}: it must be {range}")]
    Parameter {
        /// Which.
        parameter: &'static str,
        /// What it was.
        value: f64,
        /// What it can be.
        range: &'static str,
    },
    /// The machine does not have the memory.
    #[error("no memory for the tables: {0}")]
    Memory(#[from] pages::MapError),
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), CreateError> {
        let sampling = match self.admission {
            Admission::Logged { threshold, .. } if threshold > 14 => {
                let range = "at most 14, for a log holds fifteen tags";
                return Err(CreateError::Parameter {
                    parameter: "threshold",
                    value: threshold.into(),
                    range,
                });
            }
            Admission::Logged { sampling, .. } | Admission::Sampled { sampling } => sampling,
        };
        if !(sampling > 0.0 && sampling <= 1.0) {
            let range = "above 0 and at most 1";
            return Err(CreateError::Parameter { parameter: "sampling", value: sampling, range });
        }
        let logged = matches!(self.admission, Admission::Logged { .. });
        if logged && !(1..=64).contains(&self.log_ratio) {
            let range = "1 to 64";
            return Err(CreateError::Parameter {
                parameter: "log_ratio",
                value: self.log_ratio as f64,
                range,
            });
        }
        lines_of(self.size)?;
        Ok(())
    }
}

/// The lines that fit so many bytes.
pub(crate) fn lines_of(size: usize) -> Result<usize, CreateError> {
    match size / 64 {
        0 => Err(CreateError::TooSmall { size, least: 64 }),
        lines if lines > 1 << 32 => Err(CreateError::TooLarge { size, bits: 38 }),
        lines => Ok(lines),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stlt::{StltConfig, Ways};
    use crate::table::{Parameters, Table};

    #[test]
    fn sizes_that_no_table_has_are_refused() {
        for size in [0, 1, 63] {
            for config in [Config::paper(size), Config::with_size(size)] {
                assert!(
                    matches!(config.create(), Err(CreateError::TooSmall { size: said, least: 64 }) if said == size)
                );
            }
            assert!(matches!(StltConfig::with_size(size).create(), Err(CreateError::TooSmall { .. })));
        }
        for size in [usize::MAX, usize::MAX / 2, (1 << 38) + 64] {
            for config in [Config::paper(size), Config::with_size(size)] {
                assert!(matches!(config.create(), Err(CreateError::TooLarge { .. })), "{size}");
            }
        }
        for size in [usize::MAX, 1 << 45] {
            assert!(matches!(StltConfig::with_size(size).create(), Err(CreateError::TooLarge { .. })));
        }
        // The Log Table counts, too.
        let config = Config { log_ratio: 64, ..Config::paper(1 << 34) };
        assert!(matches!(config.create(), Err(CreateError::TooLarge { .. })));
        let eight = StltConfig { ways: Ways::Eight, ..StltConfig::with_size(127) };
        assert!(matches!(eight.create(), Err(CreateError::TooSmall { least: 128, .. })));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps what no machine has")]
    fn memory_that_is_not_there_is_an_error() {
        // A process has 2^47 bytes of addresses: seven of these leave no room for an eighth, whatever the system promises.
        let config = StltConfig { pages: PageKind::Base, ..StltConfig::with_size(1 << 44) };
        let mut tables = Vec::new();
        let refused = (0..8).find_map(|_| config.create().map(|table| tables.push(table)).err());
        assert!(matches!(refused, Some(CreateError::Memory(_))), "{refused:?}");
    }

    #[test]
    fn sizes_are_rounded_down_to_lines() {
        let capacity = |size| Config::with_size(size).create().unwrap().capacity();
        assert_eq!([64, 127, 128, 64 * 1000 + 63].map(capacity), [7, 7, 14, 7000]);
        let rows = |size| StltConfig::with_size(size).create().unwrap().capacity();
        assert_eq!([64, 127, 128, 1 << 20, (1 << 21) - 1].map(rows), [4, 4, 8, 1 << 16, 1 << 16]);
    }

    fn refused(config: &Config) -> Option<&'static str> {
        match config.create() {
            Err(CreateError::Parameter { parameter, .. }) => Some(parameter),
            Ok(_) => None,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn shares_are_above_nothing_and_at_most_all() {
        for sampling in [0.0, -0.0, -1.0, 1.0 + f64::EPSILON, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            for admission in [Admission::Logged { threshold: 3, sampling }, Admission::Sampled { sampling }] {
                assert_eq!(
                    refused(&Config { admission, ..Config::paper(64) }),
                    Some("sampling"),
                    "{sampling}"
                );
            }
        }
        for sampling in [f64::MIN_POSITIVE, 0.5, 1.0] {
            for admission in [Admission::Logged { threshold: 3, sampling }, Admission::Sampled { sampling }] {
                assert_eq!(refused(&Config { admission, ..Config::paper(64) }), None, "{sampling}");
            }
        }
    }

    #[test]
    fn a_threshold_is_below_what_a_log_holds() {
        let with = |threshold| Config {
            admission: Admission::Logged { threshold, sampling: 1.0 },
            ..Config::paper(64)
        };
        assert_eq!([0, 14].map(|threshold| refused(&with(threshold))), [None; 2]);
        assert_eq!([15, 255].map(|threshold| refused(&with(threshold))), [Some("threshold"); 2]);
    }

    #[test]
    fn a_log_is_needed_only_where_something_is_logged() {
        for log_ratio in [0, 65, usize::MAX] {
            assert_eq!(refused(&Config { log_ratio, ..Config::paper(64) }), Some("log_ratio"));
            assert_eq!(refused(&Config { log_ratio, ..Config::with_size(64) }), None);
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |config: &Config| config.create().unwrap_err().to_string();
        assert!(error(&Config::with_size(0)).contains("at least 64"));
        assert!(error(&Config::with_size(usize::MAX)).contains("at most 2^38"));
        let sampling = Config { admission: Admission::Sampled { sampling: 2.0 }, ..Config::default() };
        assert_eq!(error(&sampling), "sampling is 2: it must be above 0 and at most 1");
    }
}

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
}

impl Config {
    /// The paper to the letter (sections 3.2 and 3.3): a Log Table four times the Cache Table, 5 % of the emissions logged, a
    /// threshold of three, counters raised by every hit.
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
        }
    }

    /// What measured best: no log, every emission enters, counters that rise ever more rarely.
    #[must_use]
    pub fn with_size(size: usize) -> Config {
        Config {
            admission: Admission::Sampled { sampling: 1.0 },
            counters: CounterPolicy::Falling,
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Less than a line.
    #[error("a table of {size} bytes holds nothing: give it at least 64")]
    TooSmall {
        /// The bytes asked for.
        size: usize,
    },
    /// More lines than a hash can tell apart.
    #[error("a table of {size} bytes has more lines than a hash can name: give it at most 2^38 bytes")]
    TooLarge {
        /// The bytes asked for.
        size: usize,
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
        0 => Err(CreateError::TooSmall { size }),
        lines if lines > 1 << 32 => Err(CreateError::TooLarge { size }),
        lines => Ok(lines),
    }
}

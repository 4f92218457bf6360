//! What can be chosen about a table, and what is chosen by default.

use std::error::Error;
use std::fmt;

use pages::PageKind;

/// Who may enter a Cache Table whose bucket for it is full.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Admission {
    /// A share of the offers, drawn at random: a newcomer takes the place of the coldest in its bucket,
    /// and stays if it is asked for again before the next newcomer comes.
    Sampled {
        /// Which share of the offers enters: above 0, at most 1.
        sampling: f64,
    },
    /// The paper's (sections 3.3.2 and 3.3.3): a share of the offers, drawn at random, is written into the Log
    /// Table, and a key is admitted when it then stands there more than `threshold` times. While the Cache Table is not
    /// full, every offer is admitted.
    #[cfg(feature = "paper")]
    Logged {
        /// How often a key must have been logged before the offer that admits it: 0 to 14.
        threshold: u8,
        /// Which share of the offers is logged: above 0, at most 1.
        sampling: f64,
    },
}

/// How a hit warms its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CounterPolicy {
    /// The paper's: every hit, to 255, then another counter is lowered.
    EveryHit,
    /// Every hit, to 15, where a counter stays: lines that are hit most are no longer written. All counters of a bucket
    /// fall by what the victim's was when a newcomer takes its place.
    #[default]
    Falling,
    /// Never: slots are replaced at random, and a hit writes nothing.
    Never,
}

impl CounterPolicy {
    /// A hit counts while its counter is less than this; 256 where one that is full lowers another.
    pub(crate) fn warmest(self) -> u32 {
        match self {
            CounterPolicy::EveryHit => 256,
            CounterPolicy::Falling => 15,
            CounterPolicy::Never => 0,
        }
    }
}

/// The parameters of a table. Begin with [`Config::with_size`], and change what you like.
///
/// ```
/// use lookaside::{Config, CounterPolicy};
/// let config = Config::with_size(16 << 20).counters(CounterPolicy::EveryHit).newcomer(1);
/// assert_eq!((config.size, config.newcomer), (16 << 20, 1));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Bytes of the Cache Table: at least one line of 64 bytes. What is left over a multiple of 64 is not used.
    pub size: usize,
    /// Bytes of the Log Table for each byte of the Cache Table, where admission needs one.
    #[cfg(feature = "paper")]
    pub log_ratio: usize,
    /// Who may enter.
    pub admission: Admission,
    /// How hits warm their slots.
    pub counters: CounterPolicy,
    /// The count that a newcomer begins with.
    pub newcomer: u8,
    /// The pages that the tables are asked to lie in. One of less than a megabyte lies in base pages instead of
    /// transparent ones, where it would take two.
    pub pages: PageKind,
}

impl Config {
    /// What measured best: every offer enters, counters that rise to fifteen, and newcomers begin at the
    /// bottom. (The paper's policies are no better: research/experiments/slb-warm-up.toml has the share of hits of
    /// both, and slb-shared-writes.toml the lines that a hit writes: one each, where every hit counts to 255.)
    #[must_use]
    pub fn with_size(size: usize) -> Config {
        Config {
            size,
            #[cfg(feature = "paper")]
            log_ratio: 4,
            admission: Admission::Sampled { sampling: 1.0 },
            counters: CounterPolicy::Falling,
            newcomer: 0,
            pages: PageKind::Transparent,
        }
    }

    /// The paper to the letter (sections 3.2 and 3.3): a Log Table four times the Cache Table, 5 % of the offers
    /// logged, a threshold of three, counters raised by every hit. For who repeats its figures: a Log Table decides no
    /// better than the counters of a bucket do, and takes four times the memory.
    ///
    /// ```
    /// use lookaside::{Admission, Config};
    /// assert_eq!(Config::paper(16 << 20).admission, Admission::Logged { threshold: 3, sampling: 0.05 });
    /// ```
    #[cfg(feature = "paper")]
    #[must_use]
    pub fn paper(size: usize) -> Config {
        Config {
            admission: Admission::Logged { threshold: 3, sampling: 0.05 },
            counters: CounterPolicy::EveryHit,
            newcomer: 1,
            ..Config::with_size(size)
        }
    }

    /// Sets [`Config::log_ratio`](#structfield.log_ratio).
    #[cfg(feature = "paper")]
    #[must_use]
    pub fn log_ratio(self, log_ratio: usize) -> Config {
        Config { log_ratio, ..self }
    }

    /// Sets [`Config::admission`](#structfield.admission).
    #[must_use]
    pub fn admission(self, admission: Admission) -> Config {
        Config { admission, ..self }
    }

    /// Sets [`Config::counters`](#structfield.counters).
    #[must_use]
    pub fn counters(self, counters: CounterPolicy) -> Config {
        Config { counters, ..self }
    }

    /// Sets [`Config::newcomer`](#structfield.newcomer).
    #[must_use]
    pub fn newcomer(self, newcomer: u8) -> Config {
        Config { newcomer, ..self }
    }

    /// Sets [`Config::pages`](#structfield.pages).
    #[must_use]
    pub fn pages(self, pages: PageKind) -> Config {
        Config { pages, ..self }
    }
}

/// 32 MiB of [`Config::with_size`].
impl Default for Config {
    fn default() -> Config {
        Config::with_size(32 << 20)
    }
}

/// Why a table could not be made.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// Less than a line.
    TooSmall {
        /// The bytes asked for.
        size: usize,
        /// The bytes of the smallest.
        least: usize,
    },
    /// More lines than a hash can tell apart.
    TooLarge {
        /// The bytes asked for.
        size: usize,
        /// Of the bytes of the largest, the logarithm.
        bits: u32,
    },
    /// A number that is not one of those that it can be.
    Parameter {
        /// Which.
        parameter: &'static str,
        /// What it was.
        value: f64,
        /// What it can be.
        range: &'static str,
    },
    /// The machine does not have the memory.
    Memory(pages::MapError),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::TooSmall { size, least } => {
                write!(f, "a table of {size} bytes holds nothing: give it at least {least}")
            }
            CreateError::TooLarge { size, bits } => write!(
                f,
                "a table of {size} bytes has more lines than a hash can name: give it at most 2^{bits} bytes"
            ),
            CreateError::Parameter { parameter, value, range } => {
                write!(f, "{parameter} is {value}: it must be {range}")
            }
            CreateError::Memory(error) => write!(f, "no memory for the tables: {error}"),
        }
    }
}

impl Error for CreateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            CreateError::Memory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<pages::MapError> for CreateError {
    fn from(error: pages::MapError) -> CreateError {
        CreateError::Memory(error)
    }
}

impl Config {
    /// The same, but for the size in bytes.
    pub(crate) fn resized(&self, size: usize) -> Config {
        Config { size, ..self.clone() }
    }

    pub(crate) fn check(&self) -> Result<(), CreateError> {
        let sampling = match self.admission {
            #[cfg(feature = "paper")]
            Admission::Logged { threshold, .. } if threshold > 14 => {
                let range = "at most 14, for a log holds fifteen tags";
                return Err(CreateError::Parameter {
                    parameter: "threshold",
                    value: threshold.into(),
                    range,
                });
            }
            #[cfg(feature = "paper")]
            Admission::Logged { sampling, .. } => sampling,
            Admission::Sampled { sampling } => sampling,
        };
        if !(sampling > 0.0 && sampling <= 1.0) {
            let range = "above 0 and at most 1";
            return Err(CreateError::Parameter { parameter: "sampling", value: sampling, range });
        }
        #[cfg(feature = "paper")]
        if matches!(self.admission, Admission::Logged { .. }) && !(1..=64).contains(&self.log_ratio) {
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

#[cfg(all(test, feature = "paper", not(loom)))]
mod tests;

//! What one run is: everything that its numbers depend on, and nothing else.
//!
//! A configuration is data. Two that are equal have the same numbers, so a run that is finished need not be made
//! again: it is kept under the [digest](Configuration::digest) of its configuration ([`crate::store`]). What does
//! not matter to a run is therefore not in it: the index alone has no table, and no hash of one.

use serde::{Deserialize, Serialize};
use sim::{Frames, Profile, ProfileError};

use crate::guest::{Container, Distribution, Hash, Variant};

/// The version of what in-process guests and the machine do: another one, other numbers.
const MODEL: u32 = 5;

/// Who runs the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guest {
    /// A guest made here ([`crate::guest`]).
    #[default]
    InProcess,
    /// A compiled program under QEMU ([`crate::qemu`]).
    Qemu,
}

/// The table in front of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Bytes: of an STLT the rows, a power of two; of an SLB both its tables.
    pub bytes: u64,
    /// Rows of an STLT's set; an SLB's is always of seven.
    pub ways: u32,
    /// The hash of its integers.
    pub hash: Hash,
}

/// How long everything takes, in requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lengths {
    /// Before anything is counted: the table in front, the caches and the TLBs are warmed, without a clock.
    pub warm_up: u64,
    /// The end of the warm-up that caches and TLBs hear of; the requests before it only bring the table in front to
    /// where they would.
    #[serde(default = "functional")]
    pub functional: u64,
    /// With the clock, but not counted: the window fills, branches are learnt.
    pub settle: u64,
    /// Windows that are counted.
    pub windows: u32,
    /// Requests of each.
    pub window: u64,
}

/// Enough for caches and TLBs: the largest hold some hundred thousand lines, a thousand translations.
pub const FUNCTIONAL: u64 = 1_000_000;

fn functional() -> u64 {
    FUNCTIONAL
}

impl Lengths {
    /// Requests of the warm-up that are replayed on the table in front alone.
    #[must_use]
    pub const fn replayed(&self) -> u64 {
        self.warm_up.saturating_sub(self.functional)
    }

    /// All requests, wherever they are made: under QEMU a program settles before each window, one of this process
    /// before the first. Nothing, if they are more than can be counted.
    #[must_use]
    pub fn most_requests(&self) -> Option<u64> {
        let each = self.settle.checked_add(self.window)?;
        u64::from(self.windows).checked_mul(each)?.checked_add(self.warm_up)
    }
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// [`MODEL`].
    model: u32,
    /// Who runs the program.
    pub guest: Guest,
    /// The program.
    pub container: Container,
    /// How it looks its keys up.
    pub variant: Variant,
    /// Records.
    pub keys: u32,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// What is asked for.
    pub distribution: Distribution,
    /// The table in front, if there is one.
    pub table: Option<Table>,
    /// How long.
    pub lengths: Lengths,
    /// Of keys, requests and the layout of frames.
    pub seed: u64,
    /// The machine.
    pub machine: Profile,
}

/// Why a configuration cannot be run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigurationError {
    /// Its numbers would be others than those that it was made for.
    #[error(
        "a run of another version of the simulator: make the configuration anew, with this one's 'lookaside-lab sim'"
    )]
    Version,
    /// It looks keys up in a table, and has none.
    #[error("no table in front for the variant {0}: give it one (bytes, ways and hash)")]
    NoTable(&'static str),
    /// It has a table, and looks nothing up in it: the same run would be kept twice.
    #[error("a table in front for the variant {0}, which has none: leave it out")]
    Table(&'static str),
    /// The table's bytes make no table.
    #[error(
        "a table of {bytes} bytes: an STLT has a power of two from 1 KiB to 64 GiB, an SLB at least 1 KiB"
    )]
    TableBytes {
        /// What was asked for.
        bytes: u64,
    },
    /// Sets of so many rows do not exist.
    #[error("sets of {0} rows: there are 1, 2, 4 and 8")]
    Ways(u32),
    /// Nothing would be measured.
    #[error("nothing would be measured: ask for at least one window of at least one request")]
    Empty,
    /// Nobody can count its requests.
    #[error("2^64 requests or more: give it a shorter warm-up, or fewer or shorter windows")]
    TooLong,
    /// The machine cannot be.
    #[error(transparent)]
    Machine(#[from] ProfileError),
}

impl Configuration {
    /// The run of `container` with `variant` on `machine`. What does not matter to it is left out: `table` where
    /// nothing is in front.
    ///
    /// # Errors
    /// If it cannot be run.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        guest: Guest,
        container: Container,
        variant: Variant,
        (keys, value_bytes, distribution): (u32, u64, Distribution),
        table: Table,
        lengths: Lengths,
        seed: u64,
        machine: &Profile,
    ) -> Result<Configuration, ConfigurationError> {
        let is_stlt = variant.stlt().is_some();
        let in_front = is_stlt || variant.is_slb();
        let mut machine = machine.clone();
        if let Frames::Random { seed: frames } = &mut machine.paging.frames {
            *frames = seed;
        }
        let ways = if is_stlt { table.ways } else { 7 };
        let table = in_front.then_some(Table { ways, ..table });
        let configuration = Configuration {
            model: MODEL,
            guest,
            container,
            variant,
            keys,
            value_bytes,
            distribution,
            table,
            lengths,
            seed,
            machine,
        };
        configuration.check()?;
        Ok(configuration)
    }

    /// Whether it can be run, as far as it can be told without loading anything. One that was read from a file, or
    /// changed, may be anything: without a window its means would be no numbers, and what is kept of it could not be
    /// read again.
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self) -> Result<(), ConfigurationError> {
        if self.model != MODEL {
            return Err(ConfigurationError::Version);
        }
        let is_stlt = self.variant.stlt().is_some();
        match self.table {
            None if is_stlt || self.variant.is_slb() => {
                return Err(ConfigurationError::NoTable(self.variant.name()));
            }
            Some(_) if !is_stlt && !self.variant.is_slb() => {
                return Err(ConfigurationError::Table(self.variant.name()));
            }
            Some(Table { bytes, .. })
                if is_stlt && !bytes.is_power_of_two() || !(1 << 10..=1 << 36).contains(&bytes) =>
            {
                return Err(ConfigurationError::TableBytes { bytes });
            }
            Some(Table { ways, .. }) if is_stlt && !matches!(ways, 1 | 2 | 4 | 8) => {
                return Err(ConfigurationError::Ways(ways));
            }
            _ => {}
        }
        if self.lengths.windows == 0 || self.lengths.window == 0 {
            return Err(ConfigurationError::Empty);
        }
        if self.lengths.most_requests().is_none() {
            return Err(ConfigurationError::TooLong);
        }
        Ok(self.machine.validate()?)
    }

    /// A name for files: what it is in words, and sixteen digits of a hash of all of it.
    ///
    /// # Panics
    /// Never: every field can be written down.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).expect("a configuration is numbers and names");
        let hash = twox_hash::XxHash3_64::oneshot(text.as_bytes());
        format!("{}-{}-{}-{hash:016x}", self.container.name(), self.variant.name(), self.distribution.title())
    }

    /// What it is, in a line.
    #[must_use]
    pub fn describe(&self) -> String {
        let table = self.table.map(|table| format!(", {} KiB {}", table.bytes >> 10, table.hash.title()));
        format!(
            "{} {}, {} keys of {} bytes, {}{}, {}, seed {}",
            self.container.name(),
            self.variant.name(),
            self.keys,
            self.value_bytes,
            self.distribution.title(),
            table.unwrap_or_default(),
            self.machine.name,
            self.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: Table = Table { bytes: 1 << 20, ways: 4, hash: Hash::Xxh3 };
    const LENGTHS: Lengths = Lengths { warm_up: 10, functional: 10, settle: 1, windows: 1, window: 10 };

    fn configuration(variant: Variant, table: Table, seed: u64) -> Result<Configuration, ConfigurationError> {
        let asked = (1000, 64, Distribution::Zipf);
        let machine = Profile::stlt_paper();
        Configuration::new(Guest::InProcess, Container::Map, variant, asked, table, LENGTHS, seed, &machine)
    }

    #[test]
    fn what_does_not_matter_is_left_out() {
        let other = Table { bytes: 1 << 22, ways: 2, hash: Hash::Sip };
        let digest = |variant, table, seed| configuration(variant, table, seed).expect("legal").digest();
        assert_eq!(digest(Variant::Alone, TABLE, 1), digest(Variant::Alone, other, 1));
        assert_ne!(digest(Variant::Stlt, TABLE, 1), digest(Variant::Stlt, other, 1));
        assert_eq!(digest(Variant::Slb, TABLE, 1), digest(Variant::Slb, Table { ways: 1, ..TABLE }, 1));
        assert_ne!(digest(Variant::Alone, TABLE, 1), digest(Variant::Alone, TABLE, 2));
        assert_ne!(digest(Variant::Alone, TABLE, 1), digest(Variant::Known, TABLE, 1));
    }

    #[test]
    fn it_survives_being_written_down() {
        let sound = configuration(Variant::Stlt, TABLE, 7).expect("legal");
        let text = serde_json::to_string(&sound).expect("JSON");
        assert_eq!(serde_json::from_str::<Configuration>(&text).expect("the same"), sound);
        let unknown = text.replace("\"keys\"", "\"kees\"");
        assert!(serde_json::from_str::<Configuration>(&unknown).is_err());
        assert_eq!(sound.machine.paging.frames, Frames::Random { seed: 7 }, "a seed is a layout, too");
    }

    #[test]
    fn impossible_runs_are_refused_whether_they_were_asked_for_changed_or_read() {
        let bytes = |variant, bytes| configuration(variant, Table { bytes, ..TABLE }, 1).map(|_| ());
        assert_eq!(bytes(Variant::Slb, 3 << 20), Ok(()));
        assert_eq!(bytes(Variant::Slb, 3), Err(ConfigurationError::TableBytes { bytes: 3 }));
        let sound = configuration(Variant::Stlt, TABLE, 1).expect("legal");
        let refused = |change: fn(&mut Configuration)| {
            let mut changed = sound.clone();
            change(&mut changed);
            changed.check().expect_err("it cannot be run")
        };
        assert_eq!(sound.check(), Ok(()));
        assert_eq!(refused(|of| of.model += 1), ConfigurationError::Version);
        assert_eq!(refused(|of| of.table = None), ConfigurationError::NoTable("stlt"));
        assert_eq!(refused(|of| of.variant = Variant::Alone), ConfigurationError::Table("alone"));
        let bytes = 3 << 20;
        let odd = ConfigurationError::TableBytes { bytes };
        assert_eq!(refused(|of| of.table = Some(Table { bytes: 3 << 20, ..TABLE })), odd);
        assert_eq!(refused(|of| of.table = Some(Table { ways: 7, ..TABLE })), ConfigurationError::Ways(7));
        assert_eq!(refused(|of| of.lengths.windows = 0), ConfigurationError::Empty);
        assert_eq!(refused(|of| of.lengths.window = 0), ConfigurationError::Empty);
        let machine = refused(|of| of.machine.core.window = 0);
        assert!(matches!(machine, ConfigurationError::Machine(ProfileError::Range { .. })), "{machine}");
    }

    #[test]
    fn requests_that_cannot_be_counted_are_refused_and_the_most_that_can_are_not() {
        let check = |lengths| {
            let sound = configuration(Variant::Stlt, TABLE, 1).expect("legal");
            Configuration { lengths, ..sound }.check()
        };
        // Two windows, each with what comes before it, and the warm-up: 2^64 - 1 requests in all.
        let window = u64::MAX / 4;
        let most = Lengths { warm_up: u64::MAX - 2 * (window + 1), settle: 1, windows: 2, window, ..LENGTHS };
        assert_eq!(check(most), Ok(()));
        for more in [
            Lengths { warm_up: most.warm_up + 1, ..most },
            Lengths { settle: 2, ..most },
            Lengths { windows: 3, ..most },
            Lengths { settle: u64::MAX, ..most },
            Lengths { window: u64::MAX, settle: 0, warm_up: 0, ..most },
        ] {
            assert_eq!(check(more), Err(ConfigurationError::TooLong), "{more:?}");
        }
    }
}

//! A machine, as data.
//!
//! A machine is a TOML file. Three are built in, from the folder `research/profiles`: the processor of the ART
//! paper, the one of the STLT paper, and a server core of today. Unknown fields are refused, because a misspelt
//! latency that is silently the default is worse than an error. A machine that differs in a few fields is
//! described by those ([`Profile::with_changes`]).
//!
//! Latencies are cycles from the beginning of an access. A level's latency is that of an access which it
//! serves, not what it adds to the level before; memory's latency alone is added to that of the last cache,
//! whose miss must be known first.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::{CacheShapes, Level};
use crate::prefetch::{DistanceShape, StrideShape, VldpShape};
use crate::tlb::TlbShapes;
use crate::walker::Paging;

/// Memory behind the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryShape {
    /// Cycles of a read, beyond the miss of the last cache.
    pub latency: u32,
    /// Cycles that a line occupies the channel: 64 bytes by the bandwidth.
    pub cycles_per_line: u32,
}

/// Prefetchers; none unless said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PrefetchShapes {
    /// Of translations.
    pub distance: Option<DistanceShape>,
    /// Of lines, by strides.
    pub stride: Option<StrideShape>,
    /// Of lines, by histories of deltas.
    pub vldp: Option<VldpShape>,
}

/// The core's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreShape {
    /// Instructions dispatched, and retired, in a cycle.
    pub width: u32,
    /// Entries of the reorder buffer.
    pub window: u32,
    /// Misses of the first level that can be under way.
    pub misses: u32,
    /// Stores that can wait to be written.
    pub stores: u32,
    /// Page walks at a time.
    pub walkers: u32,
    /// Cycles from a resolved misprediction until the right instructions are dispatched.
    pub mispredict_penalty: u32,
    /// The branch predictor has two to this power counters.
    pub predictor_bits: u32,
}

/// The unit that executes `loadVA` and `insertSTLT`, and its buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StltShape {
    /// Cycles of `loadVA` besides its memory accesses.
    pub load_cycles: u32,
    /// Cycles of `insertSTLT` besides its memory accesses and the walk.
    pub insert_cycles: u32,
    /// Bytes that the path from the first level delivers at a time: a set is scanned in as many steps, a cycle each.
    pub path_bytes: u32,
    /// Entries of the STB.
    pub stb: u32,
    /// Cycles that asking the STB takes, after the last TLB has missed.
    pub stb_latency: u32,
    /// Entries of the IPB.
    pub ipb: u32,
    /// Entries of the insertion buffer.
    pub insertion_buffer: u32,
}

impl Default for StltShape {
    /// Table III and sections III-D1 and III-D2 of the paper. It gives the insertion buffer 16 entries in the
    /// text and 8 in its Table I; the text is taken.
    fn default() -> StltShape {
        StltShape {
            load_cycles: 6,
            insert_cycles: 4,
            path_bytes: 16,
            stb: 32,
            stb_latency: 1,
            ipb: 32,
            insertion_buffer: 16,
        }
    }
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What reports call it.
    pub name: String,
    /// Cycles in a nanosecond.
    pub gigahertz: f64,
    /// The caches.
    pub caches: CacheShapes,
    /// The TLBs.
    pub tlb: TlbShapes,
    /// Page tables and their walker.
    pub paging: Paging,
    /// Memory.
    pub memory: MemoryShape,
    /// The core.
    pub core: CoreShape,
    /// Prefetchers.
    #[serde(default)]
    pub prefetch: PrefetchShapes,
    /// The STLT's hardware.
    #[serde(default)]
    pub stlt: StltShape,
}

/// Why a profile is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Nobody knows its name.
    #[error(
        "there is no machine '{name}': there are {}; or give the path of a profile, which ends with .toml",
        known.join(", ")
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Its file cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        reason: String,
    },
    /// It is not TOML, or not of this shape.
    #[error("the profile cannot be read: {0}")]
    Syntax(String),
    /// A number is out of range.
    #[error("{field} is {value}; it must be {expected}")]
    Range {
        /// Which.
        field: String,
        /// What it is.
        value: String,
        /// What it may be.
        expected: String,
    },
    /// A cache or a TLB does not divide into sets.
    #[error(
        "{field}: {entries} entries cannot be divided into sets of {ways}; choose ways that divide the entries"
    )]
    Ways {
        /// Which.
        field: String,
        /// Lines or translations.
        entries: u64,
        /// Ways.
        ways: u32,
    },
    /// Two arrays of a TLB hold the same size of page, or one holds none.
    #[error("{field}: every array must hold at least one size of page, and every size at most one array")]
    Pages {
        /// Which.
        field: String,
    },
}

fn in_range(field: &str, value: u32, least: u32, most: u32) -> Result<(), ProfileError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let (field, value, expected) = (field.to_owned(), value.to_string(), format!("{least} to {most}"));
    Err(ProfileError::Range { field, value, expected })
}

fn divides(field: &str, entries: u64, ways: u32) -> Result<(), ProfileError> {
    if ways > 0 && entries > 0 && entries.is_multiple_of(u64::from(ways)) {
        return Ok(());
    }
    Err(ProfileError::Ways { field: field.to_owned(), entries, ways })
}

/// Puts the fields of `changes` into `table`; tables go into tables.
fn change(table: &mut toml::Table, changes: &toml::Table) {
    for (name, value) in changes {
        match (table.get_mut(name), value) {
            // Another order of frames has other fields.
            (Some(toml::Value::Table(inner)), toml::Value::Table(changes))
                if changes.get("order").is_none_or(|order| inner.get("order") == Some(order)) =>
            {
                change(inner, changes);
            }
            _ => {
                table.insert(name.clone(), value.clone());
            }
        }
    }
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// If it is not TOML, has a field that is unknown or lacks one, or describes a machine that cannot be.
    pub fn from_toml(text: &str) -> Result<Profile, ProfileError> {
        let profile: Profile =
            toml::from_str(text).map_err(|error| ProfileError::Syntax(error.to_string()))?;
        profile.validate()?;
        Ok(profile)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// As [`Profile::from_toml`], and if the file cannot be read.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ProfileError::Unreadable { path: path.to_owned(), reason: error.to_string() })?;
        Profile::from_toml(&text)
    }

    /// As it stands in a file.
    ///
    /// # Errors
    /// If the name or a number cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        toml::to_string(self).map_err(|error| ProfileError::Syntax(error.to_string()))
    }

    /// The same machine with some fields changed: those that `changes` has, table by table.
    ///
    /// ```
    /// let changes = toml::from_str("paging = { pages = '2MiB' }\ncore = { window = 8 }")?;
    /// let machine = sim::Profile::stlt_paper().with_changes(&changes)?;
    /// assert_eq!((machine.paging.pages, machine.core.window), (sim::PageSize::Large, 8));
    /// assert_eq!(machine.core.width, 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a field is unknown, of another type, or makes a machine that cannot be.
    pub fn with_changes(&self, changes: &toml::Table) -> Result<Profile, ProfileError> {
        let syntax = |reason: String| ProfileError::Syntax(reason);
        let mut table = toml::Table::try_from(self).map_err(|error| syntax(error.to_string()))?;
        change(&mut table, changes);
        let profile: Profile =
            table.try_into().map_err(|error: toml::de::Error| syntax(error.to_string()))?;
        profile.validate()?;
        Ok(profile)
    }

    /// Whether the machine can be built.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), ProfileError> {
        const CYCLES: u32 = 100_000;
        if !(self.gigahertz.is_finite() && self.gigahertz > 0.0) {
            let (field, value) = ("gigahertz".into(), self.gigahertz.to_string());
            return Err(ProfileError::Range { field, value, expected: "a positive number".into() });
        }
        let caches = [
            ("caches.l1i", Some(self.caches.l1i)),
            ("caches.l1d", Some(self.caches.l1d)),
            ("caches.l2", self.caches.l2),
            ("caches.l3", self.caches.l3),
        ];
        for (field, shape) in caches {
            let Some(shape) = shape else { continue };
            in_range(&format!("{field}.kib"), shape.kib, 1, 1 << 22)?;
            divides(field, u64::from(shape.kib) * 16, shape.ways)?;
            in_range(&format!("{field}.latency"), shape.latency, 1, CYCLES)?;
        }
        let levels = [
            ("tlb.data", Some(&self.tlb.data)),
            ("tlb.instructions", Some(&self.tlb.instructions)),
            ("tlb.second", self.tlb.second.as_ref()),
        ];
        for (field, shape) in levels {
            let Some(shape) = shape else { continue };
            in_range(&format!("{field}.latency"), shape.latency, 0, CYCLES)?;
            let mut held = Vec::new();
            for array in &shape.arrays {
                in_range(&format!("{field}.entries"), array.entries, 1, 1 << 24)?;
                divides(field, array.entries.into(), array.ways)?;
                if array.pages.is_empty() || array.pages.iter().any(|size| held.contains(size)) {
                    return Err(ProfileError::Pages { field: field.to_owned() });
                }
                held.extend(&array.pages);
            }
        }
        let mut structure_caches = vec![self.paging.structure_caches];
        if let Some(nested) = &self.paging.nested {
            in_range("paging.nested.levels", nested.levels, 4, 5)?;
            in_range("paging.nested.tlb_entries", nested.tlb_entries, 0, 1 << 16)?;
            structure_caches.push(nested.structure_caches);
        }
        for shape in structure_caches {
            for entries in [shape.level2, shape.level3, shape.level4, shape.level5] {
                in_range("structure_caches", entries, 0, 1 << 16)?;
                if entries > 32 {
                    divides("structure_caches", entries.into(), 4)?;
                }
            }
        }
        if let Some(shape) = &self.prefetch.distance {
            in_range("prefetch.distance.rows", shape.rows, 1, 1 << 16)?;
            in_range("prefetch.distance.slots", shape.slots, 1, 4)?;
            in_range("prefetch.distance.buffer", shape.buffer, 1, 1024)?;
        }
        if let Some(shape) = &self.prefetch.stride {
            in_range("prefetch.stride.streams", shape.streams, 1, 1024)?;
            in_range("prefetch.stride.degree", shape.degree, 1, 63)?;
        }
        if let Some(shape) = &self.prefetch.vldp {
            in_range("prefetch.vldp.pages", shape.pages, 1, 1024)?;
            in_range("prefetch.vldp.rows", shape.rows, 1, 1 << 16)?;
            in_range("prefetch.vldp.degree", shape.degree, 1, 16)?;
        }
        let (core, stlt) = (&self.core, &self.stlt);
        let others = [
            ("paging.levels", self.paging.levels, 4, 5),
            ("memory.latency", self.memory.latency, 0, 1_000_000),
            ("memory.cycles_per_line", self.memory.cycles_per_line, 1, CYCLES),
            ("core.width", core.width, 1, 64),
            ("core.window", core.window, 1, 1 << 16),
            ("core.misses", core.misses, 1, 1024),
            ("core.stores", core.stores, 1, 1024),
            ("core.walkers", core.walkers, 1, 64),
            ("core.mispredict_penalty", core.mispredict_penalty, 0, 10_000),
            ("core.predictor_bits", core.predictor_bits, 1, 24),
            ("stlt.path_bytes", stlt.path_bytes, 16, 128),
            ("stlt.stb", stlt.stb, 0, 1024),
            ("stlt.ipb", stlt.ipb, 1, 1024),
            ("stlt.load_cycles", stlt.load_cycles, 0, CYCLES),
            ("stlt.insert_cycles", stlt.insert_cycles, 0, CYCLES),
            ("stlt.stb_latency", stlt.stb_latency, 0, CYCLES),
            ("stlt.insertion_buffer", stlt.insertion_buffer, 1, 1024),
        ];
        others.into_iter().try_for_each(|(field, value, least, most)| in_range(field, value, least, most))
    }

    /// Cycles of an access that `level` serves, data or walk.
    #[must_use]
    pub fn latency(&self, level: Level) -> u32 {
        let caches = &self.caches;
        let last = caches.l3.or(caches.l2).unwrap_or(caches.l1d).latency;
        match level {
            Level::L1 => caches.l1d.latency,
            Level::L2 => caches.l2.map_or(caches.l1d.latency, |shape| shape.latency),
            Level::L3 => last,
            Level::Memory => last + self.memory.latency,
        }
    }

    /// The ART paper's processor, by its file `sandy_bridge.toml`.
    ///
    /// # Panics
    /// Never: the file is a part of this library, and a test reads it.
    #[must_use]
    pub fn sandy_bridge() -> Profile {
        Profile::named("sandy_bridge").expect("a profile that is built in")
    }

    /// The STLT paper's processor, by its file `gainestown.toml`.
    ///
    /// # Panics
    /// Never, as [`Profile::sandy_bridge`].
    #[must_use]
    pub fn stlt_paper() -> Profile {
        Profile::named("stlt_paper").expect("a profile that is built in")
    }

    /// A server core of today, by its file `server.toml`.
    ///
    /// # Panics
    /// Never, as [`Profile::sandy_bridge`].
    #[must_use]
    pub fn current_server() -> Profile {
        Profile::named("current_server").expect("a profile that is built in")
    }

    /// The names of the profiles that are built in.
    pub const NAMES: [&str; 5] = ["current_server", "gainestown", "sandy_bridge", "server", "stlt_paper"];

    /// The profile of one of [`NAMES`](Profile::NAMES), which becomes the machine's name: two machines have a second
    /// name, by which results know them.
    #[must_use]
    pub fn named(name: &str) -> Option<Profile> {
        let text = match name {
            "sandy_bridge" => include_str!("../../profiles/sandy_bridge.toml"),
            "gainestown" | "stlt_paper" => include_str!("../../profiles/gainestown.toml"),
            "server" | "current_server" => include_str!("../../profiles/server.toml"),
            _ => return None,
        };
        Some(Profile { name: name.to_owned(), ..Profile::from_toml(text).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Frames;
    use crate::page::PageSize;

    #[test]
    fn the_named_profiles_are_machines_and_survive_being_written_down() {
        for name in Profile::NAMES {
            let profile = Profile::named(name).expect("a named profile");
            assert_eq!((profile.name.as_str(), profile.validate()), (name, Ok(())));
            let text = toml::to_string(&profile).expect("a profile is TOML");
            assert_eq!(Profile::from_toml(&text), Ok(profile));
        }
        assert_eq!(Profile::named("pentium"), None);
        let absent = Profile::read(Path::new("absent.toml"));
        assert!(matches!(absent, Err(ProfileError::Unreadable { .. })));
    }

    #[test]
    fn table_iii_is_what_the_paper_prints() {
        let profile = Profile::stlt_paper();
        assert_eq!(profile.caches.l1d.sets(), 64);
        assert_eq!(Level::ALL.map(|level| profile.latency(level)), [4, 12, 40, 160]);
        // 45 ns at 2.66 GHz.
        assert_eq!((45.0 * profile.gigahertz).round(), f64::from(profile.memory.latency));
    }

    #[test]
    fn changes_change_what_they_name_and_nothing_else() {
        let changed = |text: &str| {
            let changes = toml::from_str(text).expect("TOML");
            Profile::stlt_paper().with_changes(&changes)
        };
        let nested =
            changed("[paging]\nlevels = 5\nnested = { levels = 4, pages = '4KiB', tlb_entries = 32 }");
        let nested = nested.expect("a machine").paging;
        assert_eq!(
            (nested.levels, nested.nested.map(|host| (host.levels, host.tlb_entries))),
            (5, Some((4, 32)))
        );
        let none = changed("").expect("a machine");
        assert_eq!(none, Profile::stlt_paper());
        assert!(matches!(changed("[core]\nwindows = 8"), Err(ProfileError::Syntax(_))));
        assert!(matches!(changed("[core]\nwindow = 0"), Err(ProfileError::Range { .. })));
        let frames =
            |text: &str| changed(&format!("[paging]\nframes = {text}")).map(|machine| machine.paging.frames);
        assert_eq!(frames("{ order = 'identity' }"), Ok(Frames::Identity {}));
        assert_eq!(frames("{ seed = 5 }"), Ok(Frames::Random { seed: 5 }));
        assert!(matches!(frames("{ order = 'sequential', sead = 7 }"), Err(ProfileError::Syntax(_))));
        assert!(matches!(changed("[stlt]\nload_cycles = 4294967295"), Err(ProfileError::Range { .. })));
        assert!(matches!(changed("paging = 4"), Err(ProfileError::Syntax(_))));
    }

    #[test]
    fn unknown_fields_and_impossible_machines_are_refused() {
        let text = toml::to_string(&Profile::stlt_paper()).expect("TOML");
        let misspelt = text.replace("walkers", "wolkers");
        assert!(matches!(Profile::from_toml(&misspelt), Err(ProfileError::Syntax(_))));
        let mut profile = Profile::stlt_paper();
        profile.caches.l1d.ways = 7;
        assert!(matches!(profile.validate(), Err(ProfileError::Ways { entries: 512, ways: 7, .. })));
        let mut profile = Profile::stlt_paper();
        profile.paging.levels = 3;
        assert_eq!(
            profile.validate().map_err(|error| error.to_string()),
            Err("paging.levels is 3; it must be 4 to 5".into())
        );
        let mut profile = Profile::sandy_bridge();
        profile.tlb.data.arrays[1].pages = vec![PageSize::Small];
        assert!(matches!(profile.validate(), Err(ProfileError::Pages { .. })));
    }
}

//! The items that a server is filled with: of each record its key and its value.

use std::fmt;

use workload::cachelib::Workload;
use workload::facebook::{EtcKeySizes, EtcValueSizes};
use workload::key::{LONGEST_KEY, spell};
use workload::sizes::{AnySizes, Fixed, Histogram, Sizes};

use super::DriveError;
use super::contents::Contents;

/// The largest value that may be asked for, in bytes: no server can be told to take larger ones.
pub const LARGEST_VALUE: u64 = 1 << 30;

/// Of sizes of keys, the share that may be less than what the number of a record takes: published distributions have a
/// tail of keys of a byte or two.
const TOO_SHORT: f64 = 0.001;

/// The items of a load.
pub struct Items {
    key_sizes: AnySizes,
    value_sizes: AnySizes,
    most: u64,
    contents: Contents,
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").finish_non_exhaustive()
    }
}

impl Items {
    /// Items with keys and values of these sizes.
    #[must_use]
    pub fn new(key_sizes: AnySizes, value_sizes: AnySizes) -> Items {
        Items { key_sizes, value_sizes, most: LARGEST_VALUE, contents: Contents::new() }
    }

    /// Cuts values that would have more bytes than this. Whoever cuts says so beside the numbers.
    #[must_use]
    pub fn cut_values_at(self, most: u64) -> Items {
        Items { most: most.min(LARGEST_VALUE), ..self }
    }

    /// Checks that `records` records can have keys of the sizes asked for.
    ///
    /// # Errors
    /// [`DriveError::Settings`] where the number of a record is longer than its key.
    pub(super) fn examine(&self, records: u64) -> Result<(), DriveError> {
        let digits = u64::from(records.saturating_sub(1).checked_ilog10().unwrap_or(0) + 1);
        let shortest = self.key_sizes.quantile(TOO_SHORT);
        if shortest < digits {
            return Err(DriveError::Settings(format!(
                "keys of {shortest} bytes do not tell {records} records apart: ask for {digits} bytes, or for fewer \
                 records"
            )));
        }
        Ok(())
    }

    /// Bytes of the largest value, or as good as.
    pub(super) fn largest_value(&self) -> u64 {
        largest(&self.value_sizes).min(self.most)
    }

    /// Items with keys of `key` bytes and values of `value` bytes.
    #[must_use]
    pub fn fixed(key: u64, value: u64) -> Items {
        Items::new(Box::new(Fixed(key)), Box::new(Fixed(value)))
    }

    /// Puts the key of `record` in the place of what is in `key`.
    pub fn key(&self, record: u64, key: &mut Vec<u8>) {
        key.clear();
        spell(record, self.key_sizes.for_record(record) as usize, key);
    }

    /// Bytes of the value of `key`: always the same ones.
    #[must_use]
    pub fn value_size(&self, key: &[u8]) -> usize {
        self.value_sizes.for_key(key).min(self.most) as usize
    }

    /// Puts the value of `key` in the place of what is in `value`.
    pub fn value(&self, key: &[u8], version: u64, value: &mut Vec<u8>) {
        value.clear();
        self.contents.append(key, version, self.value_size(key), value);
    }

    /// What values are made of, to check them.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }
}

/// The distribution of sizes that `name` means, every size times `scale`.
///
/// | name | sizes |
/// |---|---|
/// | `32` | all of 32 bytes |
/// | `10-100` | 10 to 100 bytes, all equally frequent |
/// | `etc` | those of Facebook's ETC: of keys or of values, as `of` says |
/// | any other | the values of CacheLib's workload of that name, such as `kvcache_reg` |
///
/// # Errors
/// [`DriveError::Settings`] where it means nothing, and where sizes are larger than keys or values may be.
pub fn sizes(name: &str, of: SizesOf, scale: f64) -> Result<AnySizes, DriveError> {
    let wrong = |reason: String| DriveError::Settings(format!("the sizes '{name}': {reason}"));
    let number = |text: &str| text.parse::<u64>().ok();
    let sizes: AnySizes = if let Some(size) = number(name) {
        Box::new(Fixed(size))
    } else if let Some((first, last)) =
        name.split_once('-').and_then(|(first, last)| Some((number(first)?, number(last)?)))
    {
        if first > last {
            return Err(wrong("a range goes from the smaller number to the larger".into()));
        }
        let end = last.saturating_add(1);
        Box::new(Histogram::new(&[first, end], &[1.0]).map_err(|error| wrong(error.to_string()))?)
    } else if name == "etc" {
        match of {
            SizesOf::Keys => Box::new(EtcKeySizes),
            SizesOf::Values => Box::new(EtcValueSizes),
        }
    } else if of == SizesOf::Values {
        let known = "values have a number of bytes, a range like 10-100, 'etc', or one of CacheLib's workloads \
                     like kvcache_reg";
        let workload = Workload::published(name).ok_or_else(|| wrong(known.into()))?;
        Box::new(workload.value_sizes().clone())
    } else {
        return Err(wrong("keys have a number of bytes, a range like 10-100, or 'etc'".into()));
    };
    let sizes: AnySizes = Box::new(sizes.scaled(scale)?);
    let (what, most) = match of {
        SizesOf::Keys => ("keys", LONGEST_KEY as u64),
        SizesOf::Values => ("values", LARGEST_VALUE),
    };
    let asked = largest(&sizes);
    if asked > most {
        return Err(wrong(format!("{what} have at most {most} bytes, not {asked}")));
    }
    Ok(sizes)
}

/// The largest of some sizes.
fn largest(sizes: &AnySizes) -> u64 {
    sizes.quantile(1.0_f64.next_down())
}

/// What sizes are wanted of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizesOf {
    /// Keys.
    Keys,
    /// Values.
    Values,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_sizes() {
        let values = |name, scale| sizes(name, SizesOf::Values, scale).unwrap();
        assert_eq!(values("32", 2.0).quantile(0.5), 64);
        assert_eq!((values("10-19", 1.0).quantile(0.0), values("10-19", 1.0).quantile(0.9999)), (10, 19));
        assert_eq!(values("etc", 1.0).quantile(0.45), 18);
        assert!(sizes("etc", SizesOf::Keys, 1.0).unwrap().quantile(0.5) > 25);
        for name in ["", "x", "20-10", "5-4", "-", "kvcache"] {
            assert!(matches!(sizes(name, SizesOf::Keys, 1.0), Err(DriveError::Settings(_))), "{name}");
        }
        assert!(matches!(sizes("32", SizesOf::Values, -1.0), Err(DriveError::Distribution(_))));
    }

    #[test]
    fn a_record_has_one_key_and_one_size() {
        let items = Items::new(
            sizes("16", SizesOf::Keys, 1.0).unwrap(),
            sizes("1-3000000", SizesOf::Values, 1.0).unwrap(),
        );
        let (mut key, mut value, mut again) = (vec![1, 2, 3], Vec::new(), Vec::new());
        items.key(12, &mut key);
        assert_eq!(key, b"0000000000000012");
        items.value(&key, 1, &mut value);
        items.value(&key, 1, &mut again);
        assert!(value == again && value.len() == items.value_size(&key));
        assert!(Items::fixed(16, 3000).cut_values_at(1000).value_size(&key) == 1000);
        items.contents().check(&key, &value).unwrap();
    }
}

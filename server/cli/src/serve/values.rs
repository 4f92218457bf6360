//! What the values of options may be, each said in its own unit when it is refused.

use server::Protocol;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest size that an option takes.
const LARGEST: usize = 1 << 30;
/// The most that `-m` takes, in megabytes: a quarter of the addresses that a process has, 32 TB. For an index that
/// takes all of it as many are claimed again, and with half of them there would be none left for anything else.
const MOST_MEGABYTES: usize = 1 << 25;

/// The memory of `-m` in bytes: a number of megabytes, which may say so (`64`, `64M`), or of gigabytes (`2G`).
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let wrong =
        || "the memory is a number of megabytes, with M or G behind it or nothing, like 64".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let megabytes = match unit {
        "" | "m" | "M" => Some(number),
        "g" | "G" => number.checked_mul(KIB),
        _ => return Err(wrong()),
    };
    match megabytes {
        Some(megabytes @ 1..=MOST_MEGABYTES) => Ok(megabytes * MIB),
        _ => Err(format!("{text} is not in 1..={MOST_MEGABYTES}")),
    }
}

/// Permissions, in octal.
pub(super) fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("permissions are three octal digits, like 700".into()),
    }
}

/// The size of the largest item.
pub(super) fn item_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        size @ KIB..=LARGEST => Ok(size),
        _ => Err("an item may be 1k at least and 1024m at most".into()),
    }
}

/// The size of a lookaside buffer.
pub(super) fn table_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        size @ 64..=LARGEST => Ok(size),
        _ => Err("a buffer has 64 bytes at least and 1024m at most; leave the option out for none".into()),
    }
}

/// A number of bytes, or of kilobytes or megabytes with a `k` or an `m` behind it.
fn size(text: &str) -> Result<usize, String> {
    let wrong = || "a size is a number with nothing, k or m behind it, like 2m".to_owned();
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let unit = match unit {
        "" => 1,
        "k" | "K" => KIB,
        "m" | "M" => MIB,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

/// A number, and what stands behind it.
fn split(text: &str) -> Option<(usize, &str)> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    Some((digits.parse().ok()?, unit))
}

/// How clients speak, as `-B` names it.
pub(super) fn protocol(text: &str) -> Result<Protocol, String> {
    match text {
        "auto" => Ok(Protocol::Auto),
        "ascii" => Ok(Protocol::Ascii),
        "binary" => Ok(Protocol::Binary),
        _ => Err("it is auto, ascii or binary".into()),
    }
}

/// The first byte, as memcached takes it.
pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    text.bytes().next().ok_or_else(|| "a character is needed, like ':'".into())
}

/// A growth factor, which is above 1.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 1.0 && factor.is_finite());
    factor.ok_or_else(|| "a factor is a number above 1, like 1.25".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_in_megabytes_unless_it_says_gigabytes() {
        for text in ["64", "64m", "64M"] {
            assert_eq!(memory(text), Ok(64 << 20), "{text}");
        }
        assert_eq!(memory("2g"), Ok(2 << 30));
        assert_eq!(memory("33554432"), Ok(1 << 45));
        for text in ["", "M", "64k", "64MB", "-1", "1.5G", " 64"] {
            assert!(memory(text).is_err_and(|said| said.contains("like 64")), "{text}");
        }
        for text in ["0", "33554433", "18014398509481984g"] {
            assert!(memory(text).is_err_and(|said| said.contains("1..=33554432")), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(item_size("1024"), Ok(1024));
        assert_eq!(item_size("512K"), Ok(512 << 10));
        assert_eq!(item_size("1024m"), Ok(1 << 30));
        assert_eq!(table_size("64"), Ok(64));
        assert_eq!(table_size("32m"), Ok(32 << 20));
    }

    #[test]
    fn a_delimiter_is_the_first_byte() {
        assert_eq!(delimiter("#:"), Ok(b'#'));
        assert_eq!(delimiter("-"), Ok(b'-'));
        assert!(delimiter("").is_err());
    }
}

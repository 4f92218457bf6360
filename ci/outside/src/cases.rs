//! How many cases a test of random inputs tries.

/// What `PROPTEST_CASES` counts by itself: as many as proptest tries where nobody says otherwise.
const USUAL: u64 = 256;

/// The number for a test that tries so many by hand and each night: fewer or more in the proportion in which
/// `PROPTEST_CASES` changes the usual number, and one at least. Proptest itself asks the variable only where a test
/// names no number of its own.
///
/// # Panics
/// If the variable is no number.
pub fn cases(whole: u32) -> u32 {
    match std::env::var("PROPTEST_CASES") {
        Ok(asked) => scaled(whole, asked.parse().expect("PROPTEST_CASES is a number")),
        Err(_) => whole,
    }
}

fn scaled(whole: u32, asked: u32) -> u32 {
    let scaled = u64::from(whole) * u64::from(asked) / USUAL;
    u32::try_from(scaled).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_fewer_or_more_in_the_same_proportion_for_all() {
        assert_eq!(scaled(3000, 256), 3000);
        assert_eq!(scaled(3000, 64), 750);
        assert_eq!(scaled(3000, 512), 6000);
        assert_eq!((scaled(3, 64), scaled(3000, 0)), (1, 1));
        assert_eq!(scaled(u32::MAX, u32::MAX), u32::MAX);
    }
}

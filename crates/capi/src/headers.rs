//! Which headers the library was built with, as bytes that can be looked for in it.
//!
//! A program that was compiled with the headers of one day, and is linked with the library of another, is linked
//! without a word, and does something else: the layout that `lookaside_inline.h` reads has a version, but an option
//! that is new has not. So what links programs by itself (the guests of `research/sim-qemu`) first looks into the file
//! whether it has [`HEADERS`].
//!
//! Rejected: a function that says so. It could be asked only by a program that is linked already.

/// A word, and the hash of `lookaside.h` and `lookaside_inline.h`. They stand in every library that was built with
/// these headers, static or shared.
pub const HEADERS: [u8; 24] =
    stamp(include_bytes!("../include/lookaside.h"), include_bytes!("../include/lookaside_inline.h"));

/// The same, for whoever looks.
// SAFETY: the name begins with the library's, and no function of it has this one.
#[used]
#[unsafe(no_mangle)]
static lookaside_headers: [u8; 24] = HEADERS;

const fn stamp(header: &[u8], inline: &[u8]) -> [u8; 24] {
    let hash = fnv1a(fnv1a(0xcbf2_9ce4_8422_2325, header), inline).to_le_bytes();
    let mut stamp = *b"lookaside.h is: ????????";
    let word = stamp.len() - hash.len();
    let mut place = 0;
    while place < hash.len() {
        stamp[word + place] = hash[place];
        place += 1;
    }
    stamp
}

/// Fowler, Noll and Vo's hash: of the known ones that with the least for the compiler to do. Nobody attacks it.
const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut place = 0;
    while place < bytes.len() {
        hash = (hash ^ bytes[place] as u64).wrapping_mul(0x100_0000_01b3);
        place += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_headers_have_other_bytes() {
        let stamped = lookaside_headers;
        let (word, hash) = stamped.split_at(16);
        assert_eq!((stamped, word), (HEADERS, &b"lookaside.h is: "[..]));
        assert_ne!(hash, b"????????");
        assert_eq!(fnv1a(0xcbf2_9ce4_8422_2325, b"foobar"), 0x8594_4171_f739_67e8, "as published");
        let (header, inline) =
            (include_bytes!("../include/lookaside.h"), include_bytes!("../include/lookaside_inline.h"));
        for changed in [0, header.len() / 2, header.len() - 1] {
            let mut other = header.to_vec();
            other[changed] ^= 1;
            assert_ne!(stamp(&other, inline), HEADERS);
        }
        assert_ne!(stamp(header, &inline[1..]), HEADERS);
    }
}

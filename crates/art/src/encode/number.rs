//! Numbers in their order, whatever their width: see [`crate::encode`].

macro_rules! integers {
    ($what:literal: $($number:ident $to:ident $width:literal),*) => { $(
        #[doc = concat!($what, " number of ", $width, ", in its order: negative ones, if there are any, first.")]
        #[must_use]
        pub const fn $number(number: $number) -> [u8; size_of::<$number>()] {
            // The sign turned round, where there is one.
            (number ^ $number::MIN).to_be_bytes()
        }

        #[doc = concat!($what, " number of ", $width, " that was encoded.")]
        #[must_use]
        pub const fn $to(key: [u8; size_of::<$number>()]) -> $number {
            $number::from_be_bytes(key) ^ $number::MIN
        }
    )* };
}

integers!(
    "An unsigned": u8 to_u8 "8 bits", u16 to_u16 "16 bits", u32 to_u32 "32 bits", u64 to_u64 "64 bits",
    u128 to_u128 "128 bits", usize to_usize "as many bits as a pointer has on this machine"
);
integers!(
    "A signed": i8 to_i8 "8 bits", i16 to_i16 "16 bits", i32 to_i32 "32 bits", i64 to_i64 "64 bits",
    i128 to_i128 "128 bits", isize to_isize "as many bits as a pointer has on this machine"
);

macro_rules! floating {
    ($($number:ident $bits:ident $to:ident $bytes:literal $width:literal),*) => { $(
        #[doc = concat!("A floating-point number of ", $width, ", in the order of")]
        #[doc = concat!("[`", stringify!($number), "::total_cmp`]: -0.0 before 0.0, and each NaN at one of the ends.")]
        #[must_use]
        pub const fn $number(number: $number) -> [u8; $bytes] {
            let bits = number.to_bits();
            // Negative ones the other way round, and before all others.
            let sign = $bits::MAX / 2 + 1;
            (if bits & sign == 0 { bits | sign } else { !bits }).to_be_bytes()
        }

        #[doc = concat!("The floating-point number of ", $width, " that was encoded, bit by bit.")]
        #[must_use]
        pub const fn $to(key: [u8; $bytes]) -> $number {
            let bits = $bits::from_be_bytes(key);
            let sign = $bits::MAX / 2 + 1;
            $number::from_bits(if bits & sign == 0 { !bits } else { bits ^ sign })
        }
    )* };
}

floating!(f32 u32 to_f32 4 "32 bits", f64 u64 to_f64 8 "64 bits");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    macro_rules! keep_their_order {
        ($($test:ident: $number:ident $to:ident $compare:ident),*) => { proptest! { $(
            #[test]
            fn $test(a: $number, b: $number, bit in 0..8 * size_of::<$number>()) {
                // Numbers that are near each other, and those at the ends of their range.
                let near = $to({
                    let mut key = $number(a);
                    key[bit / 8] ^= 1 << (bit % 8);
                    key
                });
                let ends = [$number::MIN, $number::MAX];
                let all = [a, b, near, ends[0], ends[1], $number::default()];
                for (one, two) in all.iter().flat_map(|one| all.iter().map(move |two| (one, two))) {
                    prop_assert_eq!($number(*one).cmp(&$number(*two)), one.$compare(two));
                    prop_assert!($to($number(*one)).$compare(one).is_eq());
                }
            }
        )* } };
    }

    keep_their_order!(
        unsigned_8: u8 to_u8 cmp, unsigned_16: u16 to_u16 cmp, unsigned_32: u32 to_u32 cmp,
        unsigned_64: u64 to_u64 cmp, unsigned_128: u128 to_u128 cmp, unsigned_sized: usize to_usize cmp,
        signed_8: i8 to_i8 cmp, signed_16: i16 to_i16 cmp, signed_32: i32 to_i32 cmp,
        signed_64: i64 to_i64 cmp, signed_128: i128 to_i128 cmp, signed_sized: isize to_isize cmp
    );

    keep_their_order!(floating_32: f32 to_f32 total_cmp, floating_64: f64 to_f64 total_cmp);

    #[test]
    fn what_is_no_number_is_at_the_ends() {
        let sorted = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -1.0,
            -f64::MIN_POSITIVE / 2.0,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(sorted.is_sorted_by(|a, b| f64(*a) < f64(*b)));
        assert!(sorted.iter().all(|number| to_f64(f64(*number)).to_bits() == number.to_bits()));
        let single = sorted.map(|number| number as f32);
        assert!([0, 1, 2, 4, 5, 7, 8].is_sorted_by(|a, b| f32(single[*a]) < f32(single[*b])));
    }
}

//! Bytes to the client's side: what a hostile server may send is taken apart without a panic, and never more of it than
//! has come.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::response::{Parsed, parse};

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    loop {
        match parse(rest) {
            Ok(Parsed::Complete { consumed, .. }) => {
                assert!((1..=rest.len()).contains(&consumed));
                rest = &rest[consumed..];
            }
            Ok(_) | Err(_) => break,
        }
    }
});

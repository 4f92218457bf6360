//! Bytes to the client's side: what a hostile server may send is taken apart without a panic, and never more of it than
//! has come.

use protocol::response::{Parsed, parse};

/// What a client makes of a server's bytes.
pub fn response(data: &[u8]) {
    let mut rest = data;
    while let Ok(Parsed::Complete { consumed, .. }) = parse(rest) {
        assert!((1..=rest.len()).contains(&consumed));
        rest = &rest[consumed..];
    }
}

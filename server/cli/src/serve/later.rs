//! What memcached's options ask for and this server does not offer yet: each is refused with one sentence, so that
//! nobody takes it for granted.

use std::fmt;

/// What is not offered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Later {
    /// `-Z`, the `ssl_` names of `-o`, `notls:` and `mtls:` before an address.
    Tls,
    /// `-S`.
    Sasl,
    /// `-Y`.
    AuthFile,
    /// `-U` with a port.
    Udp,
    /// `-e`.
    MemoryFile,
}

impl fmt::Display for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Later::Tls => {
                "TLS is not offered yet: leave it out, or put a proxy that speaks it before the server"
            }
            Later::Sasl => {
                "SASL is not offered yet: leave -S out, and let only trusted clients reach the port"
            }
            Later::AuthFile => {
                "passwords are not offered yet: leave -Y out, and let only trusted clients reach the port"
            }
            Later::Udp => "UDP is not offered yet: leave -U out, or give it 0",
            Later::MemoryFile => "a cache that survives a restart in a file is not offered yet: leave -e out",
        })
    }
}

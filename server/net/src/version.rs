//! Which server this is.

/// What `version` answers: the release of memcached whose protocol this is, which is what clients look at, and ours.
///
/// Clients take the first word for the version, or what begins with a digit, or the *last* three numbers with dots
/// between them (npm's memcached), and some do without what follows a space. So memcached's stands first, and ours in
/// two numbers.
pub const VERSION: &str =
    concat!("1.6.45 (lookaside ", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"), ")");

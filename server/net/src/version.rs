//! Which server this is.

/// What `version` answers: the release of memcached whose protocol this is, and nothing else.
///
/// Clients decide by it what they may ask for. Some read all of the line as three numbers with dots between them
/// (async-memcached), some the *last* three (npm's memcached). Our own version stands in `stats`, as
/// `lookaside_version`.
pub const VERSION: &str = "1.6.45";

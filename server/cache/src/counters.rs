//! What has happened in a cache: counted by each session for itself, see [`atomics::counters!`].

atomics::counters! {
    /// Counts since the cache was made, summed over all sessions.
    #[non_exhaustive]
    pub struct Counts;
    /// The counts of one session.
    pub(crate) struct Counters;
    /// Keys looked up and found.
    hits,
    /// Keys looked up and not found, for whatever reason.
    misses,
    /// Of the misses, keys whose item had expired.
    expired,
    /// Of the misses, keys whose item was flushed and not yet swept away.
    flushed,
    /// Keys whose item the lookaside buffer knew.
    lookaside_hits,
    /// Keys looked up in the index although there is a lookaside buffer.
    lookaside_misses,
    /// Items that became visible.
    stored,
    /// Bytes of items that became visible: header, key and value.
    bytes_stored,
    /// Items that were replaced, deleted, evicted or reclaimed.
    removed,
    /// Bytes of these.
    bytes_removed,
}

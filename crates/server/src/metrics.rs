//! What the server counts, each worker for itself.

atomics::counters! {
    /// Counts since the start, summed over all workers.
    pub(crate) struct Sums;
    /// The counts of one worker.
    pub(crate) struct Metrics;
    /// Keys asked for by `get` and `gets`.
    gets,
    /// Of these, keys found.
    get_hits,
    /// Storage commands whose value was taken.
    sets,
    /// `flush_all`.
    flushes,
    /// Keys given another expiry, by `touch`, `gat` and `gats`.
    touches,
    /// Of these, keys found.
    touch_hits,
    /// `delete` of a key that was there.
    delete_hits,
    /// `delete` of one that was not.
    delete_misses,
    /// `incr` of a number that was there.
    increment_hits,
    /// `incr` of a key that was not there.
    increment_misses,
    /// `decr` of a number that was there.
    decrement_hits,
    /// `decr` of a key that was not there.
    decrement_misses,
    /// `cas` that stored.
    cas_hits,
    /// `cas` of a key that was not there.
    cas_misses,
    /// `cas` of a key that had changed.
    cas_badval,
    /// Stores refused because the item was too large.
    too_large,
    /// Stores refused because there was no memory.
    no_memory,
    /// Bytes received.
    bytes_read,
    /// Bytes sent.
    bytes_written,
    /// Times that a connection had to let others have their turn.
    yields,
}

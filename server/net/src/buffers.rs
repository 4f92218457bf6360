//! What all connections together may hold beside the cache: half requests, and replies that their clients do not take.
//!
//! A connection that is idle holds nothing. One whose client sends half a line, or asks for much and reads nothing,
//! holds a buffer of bounded size; so many of them together could still take any amount of memory. Here is the bound
//! for all of them: who needs a buffer beyond it is closed, which costs the one who makes the server wait and nobody
//! else. memcached's `read_buf_mem_limit` is such a bound, and off by default there.
//!
//! A buffer is accounted for when a turn leaves something behind: a request that is here as a whole, and a reply that
//! the socket takes at once, come by nothing of this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes received at once. By each worker. More than a conversation leaves, so that there is always room for more.
pub(crate) const RECEIVE: usize = 64 << 10;
/// What all may hold, in bytes, where the settings do not say it.
pub(crate) const USUAL_LIMIT: usize = 64 << 20;

/// What is held, in all.
pub(crate) struct Buffers {
    limit: usize,
    bytes: AtomicUsize,
    requests: Kind,
    replies: Kind,
}

#[derive(Default)]
struct Kind {
    count: AtomicUsize,
    bytes: AtomicUsize,
    refused: AtomicU64,
}

/// What is held, and how many were refused, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) requests: usize,
    pub(crate) request_bytes: usize,
    pub(crate) requests_refused: u64,
    pub(crate) replies: usize,
    pub(crate) reply_bytes: usize,
    pub(crate) replies_refused: u64,
}

impl Buffers {
    /// A bound of so many bytes; 0: the usual one.
    pub(crate) fn new(limit: usize) -> Self {
        Buffers {
            limit: if limit == 0 { USUAL_LIMIT } else { limit },
            bytes: AtomicUsize::new(0),
            requests: Kind::default(),
            replies: Kind::default(),
        }
    }

    /// The bound, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn report(&self) -> Report {
        let size = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Report {
            requests: size(&self.requests.count),
            request_bytes: size(&self.requests.bytes),
            requests_refused: self.requests.refused.load(Ordering::Relaxed),
            replies: size(&self.replies.count),
            reply_bytes: size(&self.replies.bytes),
            replies_refused: self.replies.refused.load(Ordering::Relaxed),
        }
    }

    /// Changes what one holds of a kind; false if that would be too much in all, and then it holds what it held.
    fn change(&self, kind: &Kind, held: &mut usize, bytes: usize) -> bool {
        let before = *held;
        if before == bytes {
            return true;
        }
        // Relaxed, as all of these: counts that order nothing. Several that ask at once may all be refused.
        if bytes > before {
            let more = bytes - before;
            if self.bytes.fetch_add(more, Ordering::Relaxed) + more > self.limit {
                self.bytes.fetch_sub(more, Ordering::Relaxed);
                kind.refused.fetch_add(1, Ordering::Relaxed);
                return false;
            }
            kind.bytes.fetch_add(more, Ordering::Relaxed);
        } else {
            self.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
            kind.bytes.fetch_sub(before - bytes, Ordering::Relaxed);
        }
        match (before, bytes) {
            (0, _) => _ = kind.count.fetch_add(1, Ordering::Relaxed),
            (_, 0) => _ = kind.count.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        *held = bytes;
        true
    }
}

/// What one connection holds; given back when this is dropped.
pub(crate) struct Held {
    buffers: Arc<Buffers>,
    request: usize,
    reply: usize,
}

impl Held {
    pub(crate) fn nothing(buffers: Arc<Buffers>) -> Self {
        Held { buffers, request: 0, reply: 0 }
    }

    /// It holds so many bytes of a request from now on; false if that is too much.
    #[must_use]
    #[inline]
    pub(crate) fn request(&mut self, bytes: usize) -> bool {
        self.request == bytes || self.buffers.change(&self.buffers.requests, &mut self.request, bytes)
    }

    /// It holds so many bytes of replies from now on; false if that is too much.
    #[must_use]
    #[inline]
    pub(crate) fn reply(&mut self, bytes: usize) -> bool {
        self.reply == bytes || self.buffers.change(&self.buffers.replies, &mut self.reply, bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Less is always allowed.
        let _ = self.request(0);
        let _ = self.reply(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_and_comes_back() {
        let buffers = Arc::new(Buffers::new(1000));
        let mut one = Held::nothing(buffers.clone());
        let mut other = Held::nothing(buffers.clone());
        assert!(one.request(600) && other.reply(400));
        assert!(!other.request(1) && !one.request(601));
        assert_eq!(
            buffers.report(),
            Report {
                requests: 1,
                request_bytes: 600,
                requests_refused: 2,
                replies: 1,
                reply_bytes: 400,
                replies_refused: 0
            }
        );
        assert!(one.request(100) && other.reply(900) && !other.reply(901));
        drop(one);
        assert!(other.reply(1000));
        drop(other);
        let Report { requests, request_bytes, replies, reply_bytes, .. } = buffers.report();
        assert_eq!((requests, request_bytes, replies, reply_bytes), (0, 0, 0, 0));
    }

    #[test]
    fn a_bound_of_nothing_is_the_usual_one() {
        assert_eq!(Buffers::new(0).limit(), USUAL_LIMIT);
    }
}

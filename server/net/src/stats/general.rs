//! `stats`: all of memcached's names, in its order.

use std::fmt::Display;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use protocol::reply;

use crate::buffers::RECEIVE;
use crate::counted::Counted;
use crate::shared::Shared;
use crate::version::VERSION;
use crate::watch::Logged;

impl Shared {
    pub(super) fn general(&self, out: &mut Vec<u8>) {
        let counted = self.counted(&self.classes());
        self.process(&counted, out);
        self.requests(&counted, out);
        self.machinery(&counted, out);
        self.stored(&counted, out);
    }

    /// The process and its connections.
    fn process(&self, Counted { arrivals, .. }: &Counted, out: &mut Vec<u8>) {
        let now = self.time();
        let mut stat = |name: &str, value: &dyn Display| reply::stat(out, name, value);
        stat("pid", &std::process::id());
        stat("uptime", &now.saturating_sub(self.started));
        stat("time", &now);
        stat("version", &VERSION);
        stat("libevent", &0);
        stat("pointer_size", &usize::BITS);
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |time: nix::sys::time::TimeVal| {
                format!("{}.{:06}", time.num_seconds(), time.num_microseconds() % 1_000_000)
            };
            stat("rusage_user", &seconds(usage.user_time()));
            stat("rusage_system", &seconds(usage.system_time()));
        }
        stat("max_connections", &self.settings.connections);
        stat("curr_connections", &self.connections.clients());
        stat("total_connections", &arrivals.accepted);
        stat("rejected_connections", &arrivals.rejected);
        stat("connection_structures", &self.connections.listed());
        // Replies that a client does not take, and half requests: see `Buffers`.
        let buffers = self.buffers.report();
        stat("response_obj_oom", &buffers.replies_refused);
        stat("response_obj_count", &buffers.replies);
        stat("response_obj_bytes", &buffers.reply_bytes);
        stat("read_buf_count", &(self.settings.threads + buffers.requests));
        stat("read_buf_bytes", &(self.settings.threads * RECEIVE + buffers.request_bytes));
        stat("read_buf_bytes_free", &(self.settings.threads * RECEIVE));
        stat("read_buf_oom", &buffers.requests_refused);
        // What each thread that waits for events waits with, and is woken by.
        stat("reserved_fds", &(2 * self.wakers.lock().len()));
    }

    /// What was asked.
    fn requests(&self, Counted { sums, by_class, cache, .. }: &Counted, out: &mut Vec<u8>) {
        let get_hits = by_class.total(|class| class.get_hits);
        let touch_hits = by_class.total(|class| class.touch_hits);
        let mut stat = |name: &str, value: u64| reply::stat(out, name, value);
        stat("cmd_get", sums.gets);
        stat("cmd_set", by_class.total(|class| class.sets));
        stat("cmd_flush", sums.flushes);
        stat("cmd_touch", sums.touches);
        stat("cmd_meta", sums.inspections);
        stat("get_hits", get_hits);
        stat("get_misses", sums.gets.saturating_sub(get_hits));
        stat("get_expired", cache.expired);
        stat("get_flushed", cache.flushed);
        stat("delete_misses", sums.delete_misses);
        stat("delete_hits", by_class.total(|class| class.delete_hits));
        stat("incr_misses", sums.increment_misses);
        stat("incr_hits", by_class.total(|class| class.increment_hits));
        stat("decr_misses", sums.decrement_misses);
        stat("decr_hits", by_class.total(|class| class.decrement_hits));
        stat("cas_misses", sums.cas_misses);
        stat("cas_hits", by_class.total(|class| class.cas_hits));
        stat("cas_badval", by_class.total(|class| class.cas_badval));
        stat("touch_hits", touch_hits);
        stat("touch_misses", sums.touches.saturating_sub(touch_hits));
        stat("store_too_large", sums.too_large);
        stat("store_no_memory", sums.no_memory);
        stat("auth_cmds", 0);
        stat("auth_errors", 0);
        if self.settings.idle_timeout > 0 {
            stat("idle_kicks", sums.idle_kicks);
        }
        stat("bytes_read", sums.bytes_read);
        stat("bytes_written", sums.bytes_written);
    }

    /// Threads, the index, pages, the crawler and the logs.
    fn machinery(&self, counted: &Counted, out: &mut Vec<u8>) {
        let memory = self.cache.memory();
        let Counted { sums, arrivals, logged, .. } = counted;
        let mut stat = |name: &str, value: u64| reply::stat(out, name, value);
        stat("limit_maxbytes", memory.limit as u64);
        stat("accepting_conns", self.connections.is_accepting().into());
        stat("listen_disabled_num", arrivals.pauses);
        stat("time_in_listen_disabled_us", arrivals.paused_us);
        stat("threads", self.settings.threads as u64);
        stat("conn_yields", sums.yields);
        stat("hash_power_level", memory.index_buckets.ilog2().into());
        stat("hash_bytes", memory.index as u64);
        // It grows by a bucket now and then; there is no such state.
        stat("hash_is_expanding", 0);
        for name in ["rescues", "chunk_rescues", "inline_reclaim", "busy_items", "busy_deletes", "busy_nomem"]
        {
            stat(&format!("slab_reassign_{name}"), 0);
        }
        stat("slab_reassign_last_busy_status", 0);
        stat("slab_reassign_running", 0);
        stat("slabs_moved", counted.pages_moved);
        stat("lru_crawler_running", self.crawling.is_busy().into());
        stat("lru_crawler_starts", counted.dumps);
        stat("lru_maintainer_juggles", 0);
        stat("malloc_fails", 0);
        let Logged { dropped, written, skipped, sent } = *logged;
        stat("log_worker_dropped", dropped);
        stat("log_worker_written", written);
        stat("log_watcher_skipped", skipped);
        stat("log_watcher_sent", sent);
        stat("log_watchers", self.watch.watchers() as u64);
        stat("unexpected_napi_ids", 0);
        stat("round_robin_fallback", 0);
    }

    /// Items, and those that are gone.
    fn stored(&self, counted: &Counted, out: &mut Vec<u8>) {
        let memory = self.cache.memory();
        // Of what is, not of what has happened: these have no reset.
        let all = self.cache.counts();
        let mut stat = |name: &str, value: u64| reply::stat(out, name, value);
        // What one thread has stored another may have removed and counted first.
        stat("bytes", all.bytes_stored.saturating_sub(all.bytes_removed));
        stat("curr_items", self.cache.len() as u64);
        stat("total_items", counted.cache.stored);
        stat("slab_global_page_pool", memory.pages_free as u64);
        stat("expired_unfetched", counted.all_departures(|class| class.expired_unfetched));
        stat("evicted_unfetched", counted.all_departures(|class| class.evicted_unfetched));
        stat("evicted_active", 0);
        stat("evictions", counted.all_departures(|class| class.evicted));
        stat("reclaimed", counted.all_departures(|class| class.reclaimed));
        stat("crawler_reclaimed", counted.all_departures(|class| class.swept));
        stat("crawler_items_checked", 0);
        stat("lrutail_reflocked", 0);
        for name in ["moves_to_cold", "moves_to_warm", "moves_within_lru", "direct_reclaims"] {
            stat(name, 0);
        }
        stat("lru_bumps_dropped", 0);
        if memory.lookaside > 0 {
            stat("lookaside_bytes", memory.lookaside as u64);
            stat("lookaside_hits", counted.cache.lookaside_hits);
            stat("lookaside_misses", counted.cache.lookaside_misses);
        }
        // Which server this really is.
        reply::stat(out, "lookaside_version", env!("CARGO_PKG_VERSION"));
    }
}

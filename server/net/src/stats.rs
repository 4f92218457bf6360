//! `stats`: what monitoring reads, under memcached's names and in its order (MEMCACHED 1.6).
//!
//! Names for things that do not exist here stand with the value that means nothing happened, because dashboards ask for
//! them. What memcached does not have stands at the end, and only where it is switched on.

use std::fmt::Display;

use cache::engine::ClassReport;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use protocol::{StatsTopic, reply};

use crate::counted::{Counted, Departures};
use crate::metrics::ClassSums;
use crate::shared::{Shared, unix_time};
use crate::version::VERSION;

impl Shared {
    /// Answers `stats`.
    pub(crate) fn write_stats(&self, topic: StatsTopic, out: &mut Vec<u8>) {
        match topic {
            StatsTopic::General => self.general(out),
            StatsTopic::Reset => {
                *self.baseline.lock() = self.counted_in_all(&self.classes());
                out.extend_from_slice(reply::RESET);
                return;
            }
            StatsTopic::Settings => self.settings(out),
            StatsTopic::Items => self.items(out),
            StatsTopic::Slabs => self.slabs(out),
            StatsTopic::Sizes => reply::stat(out, "sizes_status", "disabled"),
            StatsTopic::Conns => self.conns(out),
        }
        out.extend_from_slice(reply::END);
    }

    fn general(&self, out: &mut Vec<u8>) {
        let now = unix_time();
        let memory = self.cache.memory();
        let counted = self.counted(&self.classes());
        let Counted { sums, by_class, cache: counts, arrivals, .. } = &counted;
        let get_hits = by_class.total(|class| class.get_hits);
        let touch_hits = by_class.total(|class| class.touch_hits);
        // Of what is, not of what has happened: these have no reset.
        let all = self.cache.counts();
        let clients = self.connections.clients();
        let mut stat = |name: &str, value: &dyn Display| reply::stat(out, name, value);
        stat("pid", &std::process::id());
        stat("uptime", &now.saturating_sub(self.started));
        stat("time", &now);
        stat("version", &VERSION);
        stat("pointer_size", &usize::BITS);
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let seconds = |time: nix::sys::time::TimeVal| {
                format!("{}.{:06}", time.num_seconds(), time.num_microseconds() % 1_000_000)
            };
            stat("rusage_user", &seconds(usage.user_time()));
            stat("rusage_system", &seconds(usage.system_time()));
        }
        stat("max_connections", &self.settings.connections);
        stat("curr_connections", &clients);
        stat("total_connections", &arrivals.accepted);
        stat("rejected_connections", &arrivals.rejected);
        stat("connection_structures", &clients);
        for name in ["response_obj_oom", "response_obj_count", "response_obj_bytes", "read_buf_count"] {
            stat(name, &0);
        }
        for name in ["read_buf_bytes", "read_buf_bytes_free", "read_buf_oom", "reserved_fds"] {
            stat(name, &0);
        }
        stat("cmd_get", &sums.gets);
        stat("cmd_set", &by_class.total(|class| class.sets));
        stat("cmd_flush", &sums.flushes);
        stat("cmd_touch", &sums.touches);
        stat("cmd_meta", &sums.inspections);
        stat("get_hits", &get_hits);
        stat("get_misses", &sums.gets.saturating_sub(get_hits));
        stat("get_expired", &counts.expired);
        stat("get_flushed", &counts.flushed);
        stat("delete_misses", &sums.delete_misses);
        stat("delete_hits", &by_class.total(|class| class.delete_hits));
        stat("incr_misses", &sums.increment_misses);
        stat("incr_hits", &by_class.total(|class| class.increment_hits));
        stat("decr_misses", &sums.decrement_misses);
        stat("decr_hits", &by_class.total(|class| class.decrement_hits));
        stat("cas_misses", &sums.cas_misses);
        stat("cas_hits", &by_class.total(|class| class.cas_hits));
        stat("cas_badval", &by_class.total(|class| class.cas_badval));
        stat("touch_hits", &touch_hits);
        stat("touch_misses", &sums.touches.saturating_sub(touch_hits));
        stat("store_too_large", &sums.too_large);
        stat("store_no_memory", &sums.no_memory);
        stat("auth_cmds", &0);
        stat("auth_errors", &0);
        stat("bytes_read", &sums.bytes_read);
        stat("bytes_written", &sums.bytes_written);
        stat("limit_maxbytes", &memory.limit);
        stat("accepting_conns", &u8::from(self.connections.is_accepting()));
        stat("listen_disabled_num", &arrivals.pauses);
        stat("time_in_listen_disabled_us", &arrivals.paused_us);
        stat("threads", &self.settings.threads);
        stat("conn_yields", &sums.yields);
        stat("hash_power_level", &memory.index_buckets.ilog2());
        stat("hash_bytes", &memory.index);
        // It grows by a bucket now and then; there is no such state.
        stat("hash_is_expanding", &0);
        for name in ["rescues", "chunk_rescues", "inline_reclaim", "busy_items", "busy_deletes", "busy_nomem"]
        {
            stat(&format!("slab_reassign_{name}"), &0);
        }
        stat("slab_reassign_last_busy_status", &0);
        stat("slab_reassign_running", &0);
        stat("slabs_moved", &counted.pages_moved);
        stat("malloc_fails", &0);
        for name in ["worker_dropped", "worker_written", "watcher_skipped", "watcher_sent", "watchers"] {
            stat(&format!("log_{name}"), &0);
        }
        stat("unexpected_napi_ids", &0);
        stat("round_robin_fallback", &0);
        // What one thread has stored another may have removed and counted first.
        stat("bytes", &all.bytes_stored.saturating_sub(all.bytes_removed));
        stat("curr_items", &self.cache.len());
        stat("total_items", &counts.stored);
        stat("slab_global_page_pool", &memory.pages_free);
        stat("expired_unfetched", &counted.all_departures(|class| class.expired_unfetched));
        stat("evicted_unfetched", &counted.all_departures(|class| class.evicted_unfetched));
        stat("evictions", &counted.all_departures(|class| class.evicted));
        stat("reclaimed", &counted.all_departures(|class| class.reclaimed));
        stat("crawler_reclaimed", &0);
        stat("crawler_items_checked", &0);
        stat("lrutail_reflocked", &0);
        if memory.lookaside > 0 {
            stat("lookaside_bytes", &memory.lookaside);
            stat("lookaside_hits", &counts.lookaside_hits);
            stat("lookaside_misses", &counts.lookaside_misses);
        }
    }

    fn settings(&self, out: &mut Vec<u8>) {
        let settings = &self.settings;
        let mut stat = |name: &str, value: &dyn Display| reply::stat(out, name, value);
        let address = settings.tcp.first().map(|socket| socket.address);
        stat("maxbytes", &settings.memory);
        stat("maxconns", &settings.connections);
        stat("tcpport", &address.map_or(0, |address| address.port()));
        stat("udpport", &0);
        stat("inter", &address.map_or_else(|| "NULL".to_owned(), |address| address.ip().to_string()));
        stat("verbosity", &self.verbosity());
        stat("oldest", &0);
        stat("evictions", &if settings.evict { "on" } else { "off" });
        let socket = settings.unix.as_ref();
        stat(
            "domain_socket",
            &socket.map_or_else(|| "NULL".to_owned(), |socket| socket.path.display().to_string()),
        );
        stat("umask", &format!("{:o}", socket.map_or(0o700, |socket| socket.mode)));
        stat("growth_factor", &"1.04");
        stat("chunk_size", &16);
        stat("num_threads", &settings.threads);
        stat("stat_key_prefix", &":");
        stat("detail_enabled", &"no");
        stat("reqs_per_event", &settings.requests_per_turn);
        stat("cas_enabled", &"yes");
        stat("tcp_backlog", &settings.backlog);
        stat("binding_protocol", &"ascii");
        stat("auth_enabled_sasl", &"no");
        stat("auth_enabled_ascii", &"no");
        stat("item_size_max", &settings.largest_item);
        stat("maxconns_fast", &"yes");
        stat("hashpower_init", &0);
        stat("slab_reassign", &"yes");
        stat("slab_automove", &1);
        stat("lru_crawler", &"yes");
        stat("flush_enabled", &"yes");
        stat("dump_enabled", &"no");
        stat("hash_algorithm", &"xxh3");
        stat("lru_maintainer_thread", &"no");
        stat("temp_lru", &"no");
        stat("idle_timeout", &0);
        stat("eviction_policy", &<cache::engine::Clock as cache::engine::Policy>::NAME);
        stat("page_kind", &self.cache.page_kind());
    }

    fn items(&self, out: &mut Vec<u8>) {
        let classes = self.classes();
        let counted = self.counted(&classes);
        for (id, class) in shown(&classes, &counted) {
            let departures = counted.departures(id);
            let id = id + 1;
            let mut stat =
                |name: &str, value: u64| reply::stat(out, format_args!("items:{id}:{name}"), value);
            stat("number", (class.used_chunks - class.limbo_chunks.min(class.used_chunks)) as u64);
            stat("age", 0);
            stat("mem_requested", (class.used_chunks * class.chunk_size) as u64);
            stat("evicted", departures.evicted);
            stat("evicted_nonzero", 0);
            stat("evicted_time", 0);
            stat("outofmemory", departures.out_of_memory);
            stat("tailrepairs", 0);
            stat("reclaimed", departures.reclaimed);
            stat("expired_unfetched", departures.expired_unfetched);
            stat("evicted_unfetched", departures.evicted_unfetched);
        }
    }

    fn slabs(&self, out: &mut Vec<u8>) {
        let classes = self.classes();
        let counted = self.counted(&classes);
        for (id, class) in shown(&classes, &counted) {
            let asked = counted.class(id);
            let id = id + 1;
            let mut stat = |name: &str, value: u64| reply::stat(out, format_args!("{id}:{name}"), value);
            stat("chunk_size", class.chunk_size as u64);
            stat("chunks_per_page", class.chunks_per_page as u64);
            stat("total_pages", class.pages as u64);
            stat("total_chunks", (class.pages * class.chunks_per_page) as u64);
            stat("used_chunks", class.used_chunks as u64);
            stat("free_chunks", class.free_chunks as u64);
            stat("free_chunks_end", 0);
            stat("get_hits", asked.get_hits);
            stat("cmd_set", asked.sets);
            stat("delete_hits", asked.delete_hits);
            stat("incr_hits", asked.increment_hits);
            stat("decr_hits", asked.decrement_hits);
            stat("cas_hits", asked.cas_hits);
            stat("cas_badval", asked.cas_badval);
            stat("touch_hits", asked.touch_hits);
        }
        let pages: usize = classes.iter().map(|class| class.pages).sum();
        reply::stat(out, "active_slabs", classes.iter().filter(|class| class.pages > 0).count());
        reply::stat(out, "total_malloced", pages * cache::engine::PAGE);
    }

    fn conns(&self, out: &mut Vec<u8>) {
        for seen in self.connections.seen(self.cache.time()) {
            let mut stat = |name: &str, value: &dyn Display| {
                reply::stat(out, format_args!("{}:{name}", seen.descriptor), value);
            };
            stat("addr", &seen.address);
            if let Some(listener) = &seen.listener {
                stat("listen_addr", listener);
            }
            stat("state", &seen.doing);
            stat("secs_since_last_cmd", &seen.idle);
        }
    }

    /// All slab classes, by number.
    /// What the server has counted since it was started; `classes` is what its cache says of its classes.
    fn counted_in_all(&self, classes: &[ClassReport]) -> Counted {
        Counted {
            sums: self.metrics.sums(),
            by_class: self.by_class.sums(),
            cache: self.cache.counts(),
            arrivals: self.connections.arrivals(),
            pages_moved: self.cache.memory().pages_moved as u64,
            departures: classes.iter().map(Departures::of).collect(),
        }
    }

    fn classes(&self) -> Vec<ClassReport> {
        (0..).map_while(|number| self.cache.class(number)).collect()
    }

    fn counted(&self, classes: &[ClassReport]) -> Counted {
        self.counted_in_all(classes).since(&self.baseline.lock())
    }
}

/// The classes that there is something to say of, with their numbers: those that have pages, and those of whose items
/// something was counted, so that the counts of all together are those in all.
fn shown<'a>(
    classes: &'a [ClassReport],
    counted: &'a Counted,
) -> impl Iterator<Item = (usize, &'a ClassReport)> {
    classes.iter().enumerate().filter(|&(number, class)| {
        class.pages > 0
            || counted.class(number) != ClassSums::default()
            || counted.departures(number) != Departures::default()
    })
}

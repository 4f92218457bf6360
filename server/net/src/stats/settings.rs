//! `stats settings`: all of memcached's names, in its order, and two of ours at the end.

use std::fmt::Display;

use protocol::reply;

use crate::shared::Shared;
use crate::watch::{LOG_BYTES, WATCHER_BYTES};

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

impl Shared {
    pub(super) fn settings(&self, out: &mut Vec<u8>) {
        self.started_with(out);
        self.tuned(out);
        let asked = |name: &str| self.settings.asked::<u32>(name);
        let mut stat = |name: &str, value: &dyn Display| reply::stat(out, name, value);
        // What is not built in: as it was asked for, else 0.
        for name in [
            "ext_item_size",
            "ext_item_age",
            "ext_low_ttl",
            "ext_recache_rate",
            "ext_wbuf_size",
            "ext_compact_under",
            "ext_drop_under",
            "ext_max_sleep",
        ] {
            stat(name, &asked(name).unwrap_or(0));
        }
        stat("ext_max_frag", &format!("{:.2}", self.settings.asked("ext_max_frag").unwrap_or(0.0)));
        stat("slab_automove_freeratio", &format!("{:.3}", self.tuning.automove.lock().free_ratio));
        stat("ext_drop_unread", &yes(self.settings.asked_for("ext_drop_unread").unwrap_or(false)));
        for (name, value) in [
            ("ssl_enabled", "no"),
            ("ssl_chain_cert", "(null)"),
            ("ssl_key", "(null)"),
            ("ssl_verify_mode", "0"),
            ("ssl_keyformat", "0"),
            ("ssl_ciphers", "NULL"),
            ("ssl_ca_cert", "NULL"),
            ("ssl_wbuf_size", "0"),
            ("ssl_session_cache", "no"),
            ("ssl_kernel_tls", "no"),
            ("ssl_min_version", "NULL"),
        ] {
            stat(name, &value);
        }
        stat(
            "num_napi_ids",
            &asked("num_napi_ids").map_or_else(|| "(null)".to_owned(), |ids| ids.to_string()),
        );
        stat("memory_file", &"(null)");
        stat("eviction_policy", &<cache::engine::Clock as cache::engine::Policy>::NAME);
        stat("page_kind", &self.cache.page_kind());
    }

    /// What it was started with, up to the sizes of items.
    fn started_with(&self, out: &mut Vec<u8>) {
        let settings = &self.settings;
        let mut stat = |name: &str, value: &dyn Display| reply::stat(out, name, value);
        let address = settings.tcp.first().map(|socket| socket.address);
        stat("maxbytes", &self.cache.memory().limit);
        stat("maxconns", &settings.connections);
        stat("tcpport", &address.map_or(0, |address| address.port()));
        stat("udpport", &0);
        stat("inter", &address.map_or_else(|| "NULL".to_owned(), |address| address.ip().to_string()));
        stat("verbosity", &self.tuning.verbosity());
        stat("oldest", &0);
        stat("evictions", &if settings.evict { "on" } else { "off" });
        let socket = settings.unix.as_ref();
        stat(
            "domain_socket",
            &socket.map_or_else(|| "NULL".to_owned(), |socket| socket.path.display().to_string()),
        );
        stat("umask", &format!("{:o}", socket.map_or(0o700, |socket| socket.mode)));
        stat("shutdown_command", &yes(settings.shutdown_allowed));
        stat("growth_factor", &"1.04");
        stat("chunk_size", &16);
        stat("num_threads", &settings.threads);
        stat("num_threads_per_udp", &settings.threads);
        stat("stat_key_prefix", &char::from(self.prefixes.delimiter()));
        stat("detail_enabled", &yes(self.watch.observers().detail()));
        stat("reqs_per_event", &settings.requests_per_turn);
        stat("cas_enabled", &yes(!settings.cas_disabled));
        stat("tcp_backlog", &settings.backlog);
        stat("binding_protocol", &settings.protocol.name());
        stat("auth_enabled_sasl", &"no");
        stat("auth_enabled_ascii", &"no");
        stat("item_size_max", &settings.largest_item);
        stat("maxconns_fast", &yes(settings.maxconns_fast));
        stat("hashpower_init", &settings.hash_power);
    }

    /// What commands can change, and what is left of the settings.
    fn tuned(&self, out: &mut Vec<u8>) {
        let (settings, tuning) = (&self.settings, &self.tuning);
        let (automove, lru) = (*tuning.automove.lock(), *tuning.lru.lock());
        let mut stat = |name: &str, value: &dyn Display| reply::stat(out, name, value);
        stat("slab_reassign", &yes(settings.slab_reassign));
        stat("slab_automove", &automove.level);
        stat("slab_automove_ratio", &format!("{:.2}", automove.ratio));
        stat("slab_automove_window", &automove.window);
        stat("slab_chunk_max", &self.classes().last().map_or(0, |class| class.chunk_size));
        stat("lru_crawler", &yes(tuning.has_crawler()));
        stat("lru_crawler_sleep", &tuning.crawler_sleep().as_micros());
        stat("lru_crawler_tocrawl", &tuning.crawler_most());
        stat("tail_repair_time", &settings.asked("tail_repair_time").unwrap_or(0_u32));
        stat("flush_enabled", &yes(settings.flush_allowed));
        stat("dump_enabled", &yes(settings.dumps_allowed));
        stat("hash_algorithm", &"xxh3");
        stat("lru_maintainer_thread", &yes(settings.asked_for("lru_maintainer").unwrap_or(true)));
        stat("lru_segmented", &yes(lru.segmented));
        stat("hot_lru_pct", &lru.hot_percent);
        stat("warm_lru_pct", &lru.warm_percent);
        stat("hot_max_factor", &format!("{:.2}", lru.hot_factor));
        stat("warm_max_factor", &format!("{:.2}", lru.warm_factor));
        stat("temp_lru", &yes(lru.temporary.is_some()));
        stat("temporary_ttl", &lru.temporary.unwrap_or(61));
        stat("idle_timeout", &settings.idle_timeout);
        stat("watcher_logbuf_size", &WATCHER_BYTES);
        stat("worker_logbuf_size", &LOG_BYTES);
        stat("read_buf_mem_limit", &self.buffers.limit());
        stat("track_sizes", &yes(settings.track_sizes));
        stat("inline_ascii_response", &"no");
    }
}

//! `stats items` and `stats slabs`: by slab class.
//!
//! memcached has four lists of items in a class. Here there is one, which is shown as its cold list is.

use protocol::reply;

use crate::shared::Shared;
use crate::stats::shown;

impl Shared {
    pub(super) fn items(&self, out: &mut Vec<u8>) {
        let classes = self.classes();
        let counted = self.counted(&classes);
        for (id, class) in shown(&classes, &counted) {
            let (departures, asked) = (counted.departures(id), counted.class(id));
            let id = id + 1;
            let mut stat =
                |name: &str, value: u64| reply::stat(out, format_args!("items:{id}:{name}"), value);
            let number = (class.used_chunks - class.limbo_chunks.min(class.used_chunks)) as u64;
            stat("number", number);
            stat("number_hot", 0);
            stat("number_warm", 0);
            stat("number_cold", number);
            stat("age_hot", 0);
            stat("age_warm", 0);
            stat("age", self.cache.oldest_age(id - 1).into());
            stat("mem_requested", (class.used_chunks * class.chunk_size) as u64);
            stat("evicted", departures.evicted);
            stat("evicted_nonzero", departures.evicted_expiring);
            stat("evicted_time", class.evicted_age.into());
            stat("outofmemory", departures.out_of_memory);
            stat("tailrepairs", 0);
            stat("reclaimed", departures.reclaimed);
            stat("expired_unfetched", departures.expired_unfetched);
            stat("evicted_unfetched", departures.evicted_unfetched);
            stat("evicted_active", 0);
            stat("crawler_reclaimed", departures.swept);
            stat("crawler_items_checked", 0);
            stat("lrutail_reflocked", 0);
            for name in ["moves_to_cold", "moves_to_warm", "moves_within_lru", "direct_reclaims"] {
                stat(name, 0);
            }
            stat("hits_to_hot", 0);
            stat("hits_to_warm", 0);
            stat("hits_to_cold", asked.get_hits);
            stat("hits_to_temp", 0);
        }
    }

    pub(super) fn slabs(&self, out: &mut Vec<u8>) {
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
}

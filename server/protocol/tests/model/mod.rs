//! memcached as a map: what the answer to a request has to be, byte for byte, except for CAS ids (always 0 here), the
//! version (1.6.45) and the statistics (left out).
//!
//! It is one with all switched off that can be: `-W -X -o no_slab_reassign,no_lru_crawler`, and without `-A`.

use lookaside_protocol::meta::{Flags, MetaRequest};
use lookaside_protocol::{
    ErrorReply, Expiry, Flush, GetRequest, Key, Keys, LruCrawlerRequest, Request, SlabsRequest, StatsTopic,
    StoreRequest, Verb, apply, expiry, flush, reply,
};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

struct Item {
    flags: u32,
    data: Vec<u8>,
}

/// The map, and when memcached was started.
pub(crate) struct Model {
    items: HashMap<Vec<u8>, Item>,
    started: u64,
}

/// How far a time must be from now for the model to foresee what it does, in seconds.
const MARGIN: u64 = 30;

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set").as_secs()
}

/// The times in a meta command.
fn meta_times<'a>(request: &MetaRequest<'a>) -> impl Iterator<Item = i32> + use<'a> {
    let flags = match request {
        MetaRequest::Get(request) => request.flags,
        MetaRequest::Set(request) => request.flags,
        MetaRequest::Delete(request) => request.flags,
        MetaRequest::Arithmetic(request) => request.flags,
        MetaRequest::Debug(_) | MetaRequest::Noop => Flags::default(),
    };
    flags.iter().filter(|flag| matches!(flag.letter, b'N' | b'R' | b'T')).map(|flag| flag.time())
}

impl Model {
    pub(crate) fn new(started: u64) -> Model {
        Model { items: HashMap::new(), started }
    }

    /// Whether the outcome depends on how fast the test is.
    pub(crate) fn is_about_now(&self, request: &Request<'_>) -> bool {
        let near = |time: u64| time.abs_diff(now()) < MARGIN || time.abs_diff(self.started) < MARGIN;
        match request {
            Request::Store(StoreRequest { exptime, .. })
            | Request::GetAndTouch { exptime, .. }
            | Request::Touch { exptime, .. } => {
                matches!(expiry(*exptime, now(), self.started), Expiry::At(time) if near(time))
            }
            Request::FlushAll { delay, .. } => {
                matches!(flush(*delay, now(), self.started), Flush::At(time) if near(time))
            }
            Request::Meta(request) => meta_times(request)
                .any(|time| matches!(expiry(time, now(), self.started), Expiry::At(time) if near(time))),
            _ => false,
        }
    }

    /// The answer to a request; `data` is the data block of a storage command, without its ending.
    pub(crate) fn answer(&mut self, request: &Request<'_>, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let noreply = match request {
            Request::Get(GetRequest { keys, with_cas }) => {
                self.values(keys.clone(), *with_cas, &mut out);
                false
            }
            Request::GetAndTouch { exptime, keys, with_cas } => {
                for key in keys.clone() {
                    self.values_of(key, *with_cas, &mut out);
                    self.touch(&key, *exptime);
                }
                out.extend_from_slice(reply::END);
                false
            }
            Request::Store(store) => {
                out.extend_from_slice(self.store(store, data));
                store.noreply
            }
            Request::Delete { key, noreply } => {
                let found = self.items.remove(key.as_bytes()).is_some();
                out.extend_from_slice(if found { reply::DELETED } else { reply::NOT_FOUND });
                *noreply
            }
            Request::Arithmetic { operation, key, delta, noreply } => {
                match self
                    .items
                    .get_mut(key.as_bytes())
                    .map(|item| (apply(&item.data, *delta, *operation), item))
                {
                    None => out.extend_from_slice(reply::NOT_FOUND),
                    Some((Err(_), _)) => out.extend_from_slice(ErrorReply::NonNumeric.bytes()),
                    Some((Ok(result), item)) => {
                        item.data.resize(result.length(), 0);
                        result.fill(&mut item.data);
                        reply::number(&mut out, result.number());
                    }
                }
                *noreply
            }
            Request::Touch { key, exptime, noreply } => {
                let found = self.items.contains_key(key.as_bytes());
                self.touch(key, *exptime);
                out.extend_from_slice(if found { reply::TOUCHED } else { reply::NOT_FOUND });
                *noreply
            }
            Request::FlushAll { delay, noreply } => {
                if flush(*delay, now(), self.started) == Flush::Now {
                    self.items.clear();
                }
                out.extend_from_slice(reply::OK);
                *noreply
            }
            Request::Stats(topic) => {
                out.extend_from_slice(match topic {
                    StatsTopic::Reset => reply::RESET,
                    StatsTopic::Detail(_) => ErrorReply::StatsDetailNotAllowed.bytes(),
                    StatsTopic::Cachedump(_) => ErrorReply::StatsCachedumpNotAllowed.bytes(),
                    _ => reply::END,
                });
                false
            }
            Request::Version => {
                reply::version(&mut out, "1.6.45");
                false
            }
            Request::Verbosity { noreply, .. } | Request::CacheMemlimit { noreply, .. } => {
                out.extend_from_slice(reply::OK);
                *noreply
            }
            Request::Lru { noreply, .. } => {
                out.extend_from_slice(reply::OK);
                *noreply
            }
            Request::LruCrawler { request, noreply } => {
                out.extend_from_slice(match request {
                    LruCrawlerRequest::Crawl(_)
                    | LruCrawlerRequest::Metadump(_)
                    | LruCrawlerRequest::Mgdump(_) => ErrorReply::LruCrawlerDisabled.bytes(),
                    _ => reply::OK,
                });
                *noreply
            }
            Request::Slabs { request, noreply } => {
                out.extend_from_slice(match request {
                    SlabsRequest::Reassign(_) => ErrorReply::SlabReassignDisabled.bytes(),
                    _ => reply::OK,
                });
                *noreply
            }
            Request::Shutdown { noreply, .. } => {
                out.extend_from_slice(ErrorReply::ShutdownNotEnabled.bytes());
                *noreply
            }
            Request::Watch(_) => {
                out.extend_from_slice(ErrorReply::WatchNotAllowed.bytes());
                false
            }
            Request::Meta(_) => panic!("a map knows nothing of meta commands"),
            Request::Quit => false,
        };
        if noreply {
            out.clear();
        }
        out
    }

    fn values(&self, keys: Keys<'_>, with_cas: bool, out: &mut Vec<u8>) {
        for key in keys {
            self.values_of(key, with_cas, out);
        }
        out.extend_from_slice(reply::END);
    }

    fn values_of(&self, key: Key<'_>, with_cas: bool, out: &mut Vec<u8>) {
        if let Some(Item { flags, data }) = self.items.get(key.as_bytes()) {
            reply::value_header(out, &key, *flags, data.len(), with_cas.then_some(0));
            out.extend_from_slice(data);
            out.extend_from_slice(reply::CRLF);
        }
    }

    fn touch(&mut self, key: &[u8], exptime: i32) {
        if !self.lives(exptime) {
            self.items.remove(key);
        }
    }

    fn store(&mut self, store: &StoreRequest<'_>, data: &[u8]) -> &'static [u8] {
        let key = store.key.as_bytes();
        match (store.verb, self.items.get_mut(key)) {
            (Verb::Add, Some(_)) | (Verb::Replace | Verb::Append | Verb::Prepend, None) => {
                return reply::NOT_STORED;
            }
            (Verb::Cas(_), None) => return reply::NOT_FOUND,
            // The ids in the test are smaller than those of any item that is there.
            (Verb::Cas(_), Some(_)) => return reply::EXISTS,
            (Verb::Append, Some(item)) => item.data.extend_from_slice(data),
            (Verb::Prepend, Some(item)) => item.data = [data, &item.data].concat(),
            (Verb::Set | Verb::Add | Verb::Replace, _) => {
                self.items.remove(key);
                if self.lives(store.exptime) {
                    self.items.insert(key.to_vec(), Item { flags: store.flags, data: data.to_vec() });
                }
            }
        }
        reply::STORED
    }

    fn lives(&self, exptime: i32) -> bool {
        match expiry(exptime, now(), self.started) {
            Expiry::Never => true,
            Expiry::Already => false,
            Expiry::At(time) => time > now(),
        }
    }
}

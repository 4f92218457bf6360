//! What lists items: `lru_crawler metadump` and `mgdump`, `stats cachedump` and `stats sizes`.
//!
//! The cache is walked in steps of a page, so that neither a lock nor a pin is held for longer than it takes to write
//! the lines of some thousand items. What comes and goes meanwhile may be listed or not; what stays is, most of it
//! once.

use std::collections::BTreeMap;
use std::io::Write;

use cache::engine::{Expiry, Hit, Session, Walk};
use protocol::binary::{self, Header};
use protocol::reply;

use crate::crawling::Crawl;
use crate::shared::Shared;
use crate::watch::UriEncoded;

/// Bytes that `stats cachedump` lists at the most, as memcached's.
const MOST_OF_CLASS: usize = 2 << 20;
/// Sizes are counted in steps of so many bytes, as memcached's.
const SIZE_STEP: usize = 32;

/// The classes whose items are listed, by their number less one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Classes {
    All,
    These(Vec<u8>),
}

/// What is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Of each item a line with all that is known of it.
    Meta(Classes),
    /// Of each item the meta command that gets it.
    Mg(Classes),
    /// Some items of a class, with the size of their values and when they expire; `most`: 0 for as many as fit.
    Class { class: u8, most: u32 },
    /// How many items there are of each size.
    Sizes,
}

/// A listing under way.
pub(crate) struct Dump {
    listing: Listing,
    /// Classes that are to be walked after this one, the next one last.
    next: Vec<Option<u8>>,
    walk: Option<Walk>,
    /// Items and bytes that were written.
    items: u64,
    bytes: usize,
    sizes: BTreeMap<usize, u64>,
    /// Unix time of second 0 of the cache's clock.
    epoch: u64,
    /// The frame that asked, whose answer is frames; none: lines.
    frame: Option<Header>,
    /// Held for as long as it is under way, if it is one of those that there is one of at a time.
    _crawl: Option<Crawl>,
}

impl Dump {
    pub(crate) fn new(listing: Listing, crawl: Option<Crawl>, shared: &Shared) -> Self {
        let next = match &listing {
            Listing::Meta(Classes::These(classes)) | Listing::Mg(Classes::These(classes)) => {
                classes.iter().rev().map(|&class| Some(class)).collect()
            }
            Listing::Class { class, .. } => vec![Some(*class)],
            Listing::Meta(Classes::All) | Listing::Mg(Classes::All) | Listing::Sizes => vec![None],
        };
        Dump {
            listing,
            next,
            walk: None,
            items: 0,
            bytes: 0,
            sizes: BTreeMap::new(),
            epoch: shared.unix_time_of(0),
            frame: None,
            _crawl: crawl,
        }
    }

    /// How many items there are of each size, in the binary protocol, for whoever has sent a frame with this header.
    pub(crate) fn sizes_in_frames(header: Header, shared: &Shared) -> Self {
        Dump { frame: Some(header), ..Dump::new(Listing::Sizes, None, shared) }
    }

    /// Items that were written so far.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Writes what one step comes to, and says whether there is more.
    pub(crate) fn step(&mut self, shared: &Shared, session: &mut Session, out: &mut Vec<u8>) -> bool {
        let Dump { listing, next, walk, items, bytes, sizes, epoch, .. } = self;
        if walk.is_none() {
            let Some(class) = next.pop() else {
                self.end(out);
                return false;
            };
            *walk = Some(shared.cache.walk(class));
        }
        let Some(under_way) = walk else { return true };
        let more = under_way.step(session, 1, |hit| {
            let before = out.len();
            match listing {
                Listing::Meta(_) => write_meta(hit, *epoch, out),
                Listing::Mg(_) => write_mg(hit, out),
                Listing::Class { most, .. } => {
                    if *most == 0 || *items < u64::from(*most) {
                        write_item(hit, *epoch, out);
                        if *bytes + out.len() - before > MOST_OF_CLASS {
                            out.truncate(before);
                        }
                    }
                }
                Listing::Sizes => {
                    *sizes.entry(hit.size().div_ceil(SIZE_STEP) * SIZE_STEP).or_default() += 1;
                }
            }
            *items += u64::from(out.len() > before || *listing == Listing::Sizes);
            *bytes += out.len() - before;
        });
        let full = matches!(listing, Listing::Class { most, .. }
            if (*most > 0 && *items >= u64::from(*most)) || *bytes + 512 > MOST_OF_CLASS);
        if !more || full {
            *walk = None;
        }
        true
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(header) = &self.frame {
            for (size, count) in &self.sizes {
                binary::reply::stat(out, header, size.to_string().as_bytes(), count.to_string().as_bytes());
            }
            return binary::reply::stat(out, header, b"", b"");
        }
        for (size, count) in &self.sizes {
            reply::stat(out, size, count);
        }
        out.extend_from_slice(match self.listing {
            Listing::Mg(_) => b"EN\r\n",
            _ => reply::END,
        });
    }
}

/// Writing to a vector does not fail.
fn written(outcome: std::io::Result<()>) {
    debug_assert!(outcome.is_ok());
}

fn write_meta(hit: &Hit<'_>, epoch: u64, out: &mut Vec<u8>) {
    let expires = match hit.expiry() {
        Expiry::Never => -1,
        Expiry::At(second) => i64::try_from(epoch + u64::from(second)).unwrap_or(i64::MAX),
    };
    written(writeln!(
        out,
        "key={} exp={expires} la={} cas={} fetch={} cls={} size={} flags={}",
        UriEncoded(hit.key()),
        epoch + u64::from(hit.last_access()),
        hit.cas(),
        if hit.was_fetched() { "yes" } else { "no" },
        u32::from(hit.class()) + 1,
        hit.size(),
        // As memcached tells from 1.6.24 on.
        hit.flags(),
    ));
}

fn write_mg(hit: &Hit<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"mg ");
    // A key that is not text can only have come in base64.
    if hit.key().iter().any(|&byte| byte <= b' ' || byte == 0x7f) {
        protocol::meta::encode_base64(out, hit.key());
        out.extend_from_slice(b" b\r\n");
    } else {
        out.extend_from_slice(hit.key());
        out.extend_from_slice(b"\r\n");
    }
}

fn write_item(hit: &Hit<'_>, epoch: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"ITEM ");
    out.extend_from_slice(hit.key());
    let expires = match hit.expiry() {
        Expiry::Never => 0,
        Expiry::At(second) => epoch + u64::from(second),
    };
    written(write!(out, " [{} b; {expires} s]\r\n", hit.value_len()));
}

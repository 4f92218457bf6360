//! The list of `-o`: names with commas between them, some with a value behind `=`.
//!
//! Every name that memcached 1.6 knows is known here. Some have their meaning; some ask for what is so anyway; some set
//! a part of memcached that this server does not have, and are accepted, so that a start script works, but told. A name
//! that memcached does not know is refused in its words. Where it takes what is no number for 0, that is refused.
//!
//! The list is taken apart as getsubopt(3) does it: a value may be given where none is wanted, and is ignored; a comma
//! may stand at the end.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use super::later::Later;

/// What a name of the list comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Suboption {
    /// Whether a connection beyond the most is closed at once.
    MaxconnsFast(bool),
    /// The power of two of items that the index has room for from the start.
    HashPower(u32),
    /// Seconds that a connection may be silent; 0: for ever.
    IdleTimeout(u32),
    /// `stats sizes` counts.
    TrackSizes,
    /// Megabytes for half requests and replies that are not taken; 0: as many as come.
    ReadBuffers(u32),
    /// The mark of the sockets that are listened on, for firewalls.
    SocketMark(u32),
    /// Whether keys may be listed.
    LruCrawler(bool),
    /// Microseconds that a list of keys rests, now and then.
    LruCrawlerSleep(u32),
    /// Whether clients may have pages moved.
    SlabReassign(bool),
    /// It is so anyway.
    Given(Named),
    /// This sets what this server does not have.
    Moot(Named),
}

/// A name with its value, if it has one, to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// What stands behind it.
    pub value: Option<String>,
}

/// Why a list is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListError {
    /// memcached does not know this either.
    Unknown(String),
    /// A name that needs a value has none.
    Missing {
        /// The name.
        name: &'static str,
        /// What it takes.
        wanted: String,
    },
    /// A name has a value that it cannot have.
    Value {
        /// The name.
        name: &'static str,
        /// Its value.
        given: String,
        /// What it takes.
        wanted: String,
    },
    /// This is not offered yet.
    Later {
        /// The name.
        name: &'static str,
        /// What it belongs to.
        what: Later,
    },
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListError::Unknown(given) => write!(f, "Illegal suboption \"{given}\""),
            ListError::Missing { name, wanted } => write!(f, "-o {name} needs {wanted}, as in {name}=VALUE"),
            ListError::Value { name, given, wanted } => {
                write!(f, "-o {name} needs {wanted}, which '{given}' is not")
            }
            ListError::Later { name, what } => write!(f, "-o {name}: {what}"),
        }
    }
}

impl Error for ListError {}

/// What stands behind a name.
enum Takes {
    /// Nothing that counts.
    Nothing,
    /// A whole number.
    Number(RangeInclusive<u32>),
    /// A whole number, or nothing.
    Maybe(RangeInclusive<u32>),
    /// A number between these two, neither of which it is.
    Fraction(f64, f64),
    /// One of these.
    Word(&'static [&'static str]),
    /// Anything.
    Text,
}

/// What a name comes to.
enum Becomes {
    This(Suboption),
    /// This, with the name's number.
    Number(fn(u32) -> Suboption),
    Given,
    /// What is so anyway if the value is this one, else nothing here.
    GivenIf(&'static str),
    Moot,
    Later(Later),
}

struct Name {
    name: &'static str,
    takes: Takes,
    becomes: Becomes,
}

const fn name(name: &'static str, takes: Takes, becomes: Becomes) -> Name {
    Name { name, takes, becomes }
}

const ANY: Takes = Takes::Number(0..=u32::MAX);
const SOME: Takes = Takes::Number(1..=u32::MAX);
const POSITIVE: Takes = Takes::Fraction(0.0, f64::INFINITY);
const SHARE: Takes = Takes::Fraction(0.0, 1.0);
const PERCENT: Takes = Takes::Number(1..=79);
const TLS: Becomes = Becomes::Later(Later::Tls);

/// All names, in the order of memcached's help, and then those that it does not tell.
static NAMES: &[Name] = &[
    name("maxconns_fast", Takes::Nothing, Becomes::This(Suboption::MaxconnsFast(true))),
    name("no_maxconns_fast", Takes::Nothing, Becomes::This(Suboption::MaxconnsFast(false))),
    name("hashpower", Takes::Number(12..=32), Becomes::Number(Suboption::HashPower)),
    name("tail_repair_time", Takes::Number(10..=u32::MAX), Becomes::Moot),
    name("hash_algorithm", Takes::Word(&["jenkins", "murmur3", "xxh3"]), Becomes::GivenIf("xxh3")),
    name("lru_crawler", Takes::Nothing, Becomes::This(Suboption::LruCrawler(true))),
    name("no_lru_crawler", Takes::Nothing, Becomes::This(Suboption::LruCrawler(false))),
    name("lru_crawler_sleep", Takes::Number(0..=1_000_000), Becomes::Number(Suboption::LruCrawlerSleep)),
    name("lru_crawler_tocrawl", ANY, Becomes::Moot),
    name("read_buf_mem_limit", Takes::Number(0..=1 << 20), Becomes::Number(Suboption::ReadBuffers)),
    name("lru_maintainer", Takes::Nothing, Becomes::Given),
    name("no_lru_maintainer", Takes::Nothing, Becomes::Moot),
    name("hot_lru_pct", PERCENT, Becomes::Moot),
    name("warm_lru_pct", PERCENT, Becomes::Moot),
    name("hot_max_factor", POSITIVE, Becomes::Moot),
    name("warm_max_factor", POSITIVE, Becomes::Moot),
    name("temporary_ttl", ANY, Becomes::Moot),
    name("idle_timeout", Takes::Number(0..=i32::MAX as u32), Becomes::Number(Suboption::IdleTimeout)),
    name("slab_chunk_max", SOME, Becomes::Moot),
    name("watcher_logbuf_size", SOME, Becomes::Moot),
    name("worker_logbuf_size", SOME, Becomes::Moot),
    name("track_sizes", Takes::Nothing, Becomes::This(Suboption::TrackSizes)),
    name("no_hashexpand", Takes::Nothing, Becomes::Moot),
    name("modern", Takes::Nothing, Becomes::Given),
    name("no_modern", Takes::Nothing, Becomes::Moot),
    name("sock_cookie_id", ANY, Becomes::Number(Suboption::SocketMark)),
    name("ext_path", Takes::Text, Becomes::Moot),
    name("ext_page_size", SOME, Becomes::Moot),
    name("ext_wbuf_size", SOME, Becomes::Moot),
    name("ext_threads", SOME, Becomes::Moot),
    name("ext_io_depth", SOME, Becomes::Moot),
    name("ext_item_size", ANY, Becomes::Moot),
    name("ext_item_age", ANY, Becomes::Moot),
    name("ext_low_ttl", ANY, Becomes::Moot),
    name("ext_drop_unread", Takes::Nothing, Becomes::Moot),
    name("ext_recache_rate", ANY, Becomes::Moot),
    name("ext_compact_under", ANY, Becomes::Moot),
    name("ext_drop_under", ANY, Becomes::Moot),
    name("ext_max_frag", POSITIVE, Becomes::Moot),
    name("ext_max_sleep", ANY, Becomes::Moot),
    name("slab_automove_freeratio", SHARE, Becomes::Moot),
    name("ssl_chain_cert", Takes::Text, TLS),
    name("ssl_key", Takes::Text, TLS),
    name("ssl_keyformat", Takes::Text, TLS),
    name("ssl_verify_mode", Takes::Text, TLS),
    name("ssl_ciphers", Takes::Text, TLS),
    name("ssl_ca_cert", Takes::Text, TLS),
    name("ssl_wbuf_size", Takes::Text, TLS),
    name("ssl_session_cache", Takes::Nothing, TLS),
    name("ssl_kernel_tls", Takes::Nothing, TLS),
    name("ssl_min_version", Takes::Text, TLS),
    name("slab_reassign", Takes::Nothing, Becomes::This(Suboption::SlabReassign(true))),
    name("no_slab_reassign", Takes::Nothing, Becomes::This(Suboption::SlabReassign(false))),
    name("slab_automove", Takes::Maybe(0..=2), Becomes::GivenIf("1")),
    name("no_slab_automove", Takes::Nothing, Becomes::Moot),
    name("slab_automove_ratio", SHARE, Becomes::Moot),
    name("slab_automove_window", SOME, Becomes::Moot),
    name("slab_sizes", Takes::Nothing, Becomes::Moot),
    name("drop_privileges", Takes::Nothing, Becomes::Moot),
    name("no_drop_privileges", Takes::Nothing, Becomes::Given),
    name("inline_ascii_resp", Takes::Nothing, Becomes::Given),
    name("no_inline_ascii_resp", Takes::Nothing, Becomes::Given),
    name("no_chunked_items", Takes::Nothing, Becomes::Given),
    name("resp_obj_mem_limit", Takes::Nothing, Becomes::Moot),
];

/// All names of the list.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|name| name.name)
}

/// What a list asks for, in its order.
///
/// # Errors
/// [`ListError`] for the first that is unknown, or has a value that it cannot have, or is not offered.
pub fn parse(list: &str) -> Result<Vec<Suboption>, ListError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    list.strip_suffix(',').unwrap_or(list).split(',').map(one).collect()
}

fn one(given: &str) -> Result<Suboption, ListError> {
    let (word, value) = match given.split_once('=') {
        Some((word, value)) => (word, Some(value)),
        None => (given, None),
    };
    let known = NAMES.iter().find(|known| known.name == word);
    let known = known.ok_or_else(|| ListError::Unknown(given.to_owned()))?;
    if let Becomes::Later(what) = known.becomes {
        return Err(ListError::Later { name: known.name, what });
    }
    let number = known.takes.check(known.name, value)?;
    let named = || Named { name: known.name, value: value.map(str::to_owned) };
    Ok(match &known.becomes {
        Becomes::This(suboption) => suboption.clone(),
        Becomes::Number(suboption) => suboption(number),
        Becomes::Given => Suboption::Given(named()),
        Becomes::GivenIf(so) if value.unwrap_or(so) == *so => Suboption::Given(named()),
        Becomes::GivenIf(_) | Becomes::Moot => Suboption::Moot(named()),
        Becomes::Later(what) => return Err(ListError::Later { name: known.name, what: *what }),
    })
}

impl Takes {
    /// Checks a name's value; its number, where it is a whole one, else 0.
    fn check(&self, name: &'static str, value: Option<&str>) -> Result<u32, ListError> {
        if matches!((self, value), (Takes::Nothing, _) | (Takes::Maybe(_), None)) {
            return Ok(0);
        }
        let value = value.ok_or_else(|| ListError::Missing { name, wanted: self.to_string() })?;
        let whole = value.parse().ok();
        let is_good = match self {
            Takes::Nothing | Takes::Text => true,
            Takes::Number(range) | Takes::Maybe(range) => whole.is_some_and(|number| range.contains(&number)),
            Takes::Fraction(low, high) => {
                value.parse::<f64>().is_ok_and(|number| number > *low && number < *high)
            }
            Takes::Word(words) => words.contains(&value),
        };
        if is_good {
            Ok(whole.unwrap_or(0))
        } else {
            Err(ListError::Value { name, given: value.to_owned(), wanted: self.to_string() })
        }
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Nothing => f.write_str("nothing"),
            Takes::Number(range) | Takes::Maybe(range) => {
                write!(f, "a number from {} to {}", range.start(), range.end())
            }
            Takes::Fraction(low, high) if high.is_finite() => write!(f, "a number between {low} and {high}"),
            Takes::Fraction(low, _) => write!(f, "a number above {low}"),
            Takes::Word(words) => write!(f, "one of {}", words.join(", ")),
            Takes::Text => f.write_str("a value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(list: &str) -> String {
        parse(list).expect_err(list).to_string()
    }

    #[test]
    fn what_has_a_meaning_is_told_in_order() {
        assert_eq!(
            parse(
                "maxconns_fast,no_maxconns_fast,hashpower=20,idle_timeout=0,track_sizes,read_buf_mem_limit=64"
            ),
            Ok(vec![
                Suboption::MaxconnsFast(true),
                Suboption::MaxconnsFast(false),
                Suboption::HashPower(20),
                Suboption::IdleTimeout(0),
                Suboption::TrackSizes,
                Suboption::ReadBuffers(64),
            ])
        );
        assert_eq!(parse("sock_cookie_id=7"), Ok(vec![Suboption::SocketMark(7)]));
        assert_eq!(parse("no_lru_crawler"), Ok(vec![Suboption::LruCrawler(false)]));
        assert_eq!(parse("slab_reassign"), Ok(vec![Suboption::SlabReassign(true)]));
    }

    #[test]
    fn what_is_so_anyway_is_not_told_and_the_rest_is() {
        for list in ["modern", "slab_automove", "slab_automove=1", "lru_maintainer", "hash_algorithm=xxh3"] {
            assert!(matches!(parse(list).expect(list)[..], [Suboption::Given(_)]), "{list}");
        }
        let moot =
            |name, value: &str| Ok(vec![Suboption::Moot(Named { name, value: Some(value.to_owned()) })]);
        assert_eq!(parse("hash_algorithm=jenkins"), moot("hash_algorithm", "jenkins"));
        assert_eq!(parse("hot_lru_pct=20"), moot("hot_lru_pct", "20"));
    }

    /// As getsubopt(3) has it.
    #[test]
    fn commas_and_values_that_nobody_wants() {
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("modern,"), Ok(vec![Suboption::Given(Named { name: "modern", value: None })]));
        assert_eq!(parse("maxconns_fast=0"), Ok(vec![Suboption::MaxconnsFast(true)]));
        for list in [",", ",modern", "modern,,", "modern,,modern"] {
            assert_eq!(parse(list), Err(ListError::Unknown(String::new())), "{list}");
        }
    }

    #[test]
    fn unknown_names_are_refused_in_memcacheds_words() {
        assert_eq!(refusal("bogus"), "Illegal suboption \"bogus\"");
        assert_eq!(refusal("modern,bogus=1,x"), "Illegal suboption \"bogus=1\"");
        // Spaces count, and so does the case.
        assert_eq!(refusal("modern, track_sizes"), "Illegal suboption \" track_sizes\"");
        assert_eq!(refusal("Modern"), "Illegal suboption \"Modern\"");
    }

    #[test]
    fn values_are_checked() {
        assert_eq!(refusal("hashpower"), "-o hashpower needs a number from 12 to 32, as in hashpower=VALUE");
        assert_eq!(refusal("hashpower=11"), "-o hashpower needs a number from 12 to 32, which '11' is not");
        for list in [
            "hashpower=33",
            "idle_timeout=abc",
            "idle_timeout=-1",
            "idle_timeout=2147483648",
            "idle_timeout=",
            "hash_algorithm=md5",
            "hot_lru_pct=80",
            "tail_repair_time=9",
            "slab_automove=3",
            "slab_automove_ratio=1",
            "slab_automove_ratio=nan",
            "warm_max_factor=0",
            "ext_path",
        ] {
            let said = refusal(list);
            assert!(said.starts_with("-o ") && said.contains(" needs "), "{list}: {said}");
        }
    }

    #[test]
    fn tls_comes_later() {
        for name in names().filter(|name| name.starts_with("ssl_")) {
            let said = refusal(&format!("{name}=1"));
            assert!(said.contains("TLS is not offered yet"), "{said}");
        }
    }

    #[test]
    fn names_are_told_apart() {
        let mut all: Vec<_> = names().collect();
        all.sort_unstable();
        let before = all.len();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}

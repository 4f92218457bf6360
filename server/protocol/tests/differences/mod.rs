//! What memcached answers otherwise than this crate, with reasons. Most of it is what memcached 1.6.18 (Debian 12's)
//! did and 1.6.45 does no more: a run of the tests against 1.6.45 compares those lines too.
#![allow(dead_code, reason = "each test file uses a part of this")]

mod meta;

pub(crate) use meta::META_DIFFERENCES;
#[allow(unused_imports, reason = "each test file uses a part of this")]
pub(crate) use meta::is_incomparable;

use crate::naive::{self, Outcome};

/// The version whose behaviour this crate follows.
pub(crate) const FOLLOWED: [u32; 3] = [1, 6, 45];

/// A line as the list of differences looks at it.
pub(crate) struct Seen<'a> {
    text: &'a [u8],
    tokens: Vec<&'a [u8]>,
    outcome: Outcome,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Seen<'a> {
        let text = naive::text_of(line);
        let tokens = naive::all_tokens(text).into_iter().map(|(_, token)| token).collect();
        Seen { text, tokens, outcome: naive::parse(line) }
    }

    fn command(&self) -> &[u8] {
        self.token(0)
    }

    fn token(&self, at: usize) -> &'a [u8] {
        self.tokens.get(at).copied().unwrap_or_default()
    }

    fn is(&self, commands: &[&str]) -> bool {
        commands.iter().any(|command| command.as_bytes() == self.command())
    }

    fn stores(&self) -> bool {
        self.is(&["set", "add", "replace", "append", "prepend", "cas"])
    }

    pub(crate) fn is_meta(&self) -> bool {
        self.is(&["mg", "ms", "md", "ma", "mn", "me"])
    }

    fn is_refused(&self) -> bool {
        !matches!(self.outcome, Outcome::Request(_))
    }
}

/// Something memcached answers otherwise.
pub(crate) struct Difference {
    /// What it does, and why we do not.
    pub(crate) reason: &'static str,
    /// Whether 1.6.45 still does it.
    pub(crate) who: Who,
    /// The lines it does it to.
    pub(crate) applies: fn(&Seen<'_>) -> bool,
    /// One of them, perhaps with lines before it or a data block behind it.
    pub(crate) example: &'static str,
    /// How memcached's answer to the example begins.
    pub(crate) theirs: &'static str,
}

#[derive(PartialEq, Eq)]
pub(crate) enum Who {
    /// Versions before the one that is followed here; the examples are 1.6.18's.
    Older,
    /// The version that is followed here.
    Followed,
    /// Every version.
    All,
}

impl Who {
    pub(crate) fn is(&self, version: [u32; 3]) -> bool {
        match self {
            Who::Older => version < FOLLOWED,
            Who::Followed => version >= FOLLOWED,
            Who::All => true,
        }
    }
}

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        reason: "a get with a bad key throws away the replies that wait before it (and 1.6.45 sends its CRLF twice): \
                 a client could not tell which reply belongs to which request",
        who: Who::All,
        applies: |line| {
            line.is(&["get", "gets", "gat", "gats"]) && line.tokens.iter().any(|token| token.len() > 250)
        },
        example: "version\r\nget K251\r\n",
        theirs: "CLIENT_ERROR bad command line format\r\n",
    },
    Difference {
        reason: "a flush that is to come brings back what an earlier one has taken away: what is gone should stay gone",
        who: Who::All,
        applies: |line| {
            line.is(&["flush_all"]) && naive::strict_i32(line.token(1)).is_some_and(|delay| delay > 0)
        },
        example: "set a 0 0 1\r\nx\r\nflush_all\r\nflush_all 1000\r\nget a\r\n",
        theirs: "STORED\r\nOK\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
    },
    Difference {
        reason: "the one that is compared is started without an LRU maintainer, and then there is no mode to choose",
        who: Who::All,
        applies: |line| line.is(&["lru"]) && !["", "tune"].map(str::as_bytes).contains(&line.token(1)),
        example: "lru mode flat\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "built here without external storage",
        who: Who::All,
        applies: |line| line.is(&["extstore"]),
        example: "extstore item_size 5\r\n",
        theirs: "OK\r\n",
    },
    Difference {
        reason: "the same: its statistics",
        who: Who::All,
        applies: |line| line.is(&["stats"]) && b"extstore".starts_with(line.token(1)),
        example: "stats extstore\r\n",
        theirs: "END\r\n",
    },
    Difference {
        reason: "a line shorter than four bytes was an unknown command",
        who: Who::Older,
        applies: |line| line.text.len() < 4 && line.outcome == naive::parse(b"\n"),
        example: "a\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "spaces before a command were skipped",
        who: Who::Older,
        applies: |line| line.text.starts_with(b" "),
        example: " get a\r\n",
        theirs: "END\r\n",
    },
    Difference {
        reason: "a line ended at a NUL",
        who: Who::Older,
        applies: |line| line.text.contains(&0),
        example: "version\0x\r\n",
        theirs: "VERSION ",
    },
    Difference {
        reason: "a known command with too few tokens was an unknown command",
        who: Who::Older,
        applies: |line| {
            let fewest = match line.command() {
                b"get" | b"gets" | b"gat" | b"gats" | b"delete" | b"verbosity" => 2,
                b"incr" | b"decr" | b"touch" => 3,
                b"cas" => 6,
                _ if line.stores() => 5,
                _ => 0,
            };
            line.tokens.len() < fewest
        },
        example: "get\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "a known command with too many tokens was an unknown command",
        who: Who::Older,
        applies: |line| {
            let most = match line.command() {
                b"delete" => 3,
                b"incr" | b"decr" | b"touch" => 4,
                b"verbosity" | b"flush_all" | b"cache_memlimit" => 3,
                b"cas" => 7,
                b"shutdown" => 2,
                _ if line.stores() => 6,
                _ => usize::MAX,
            };
            line.tokens.len() > most
        },
        example: "flush_all 0 0 noreply\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "delete ignores what stands behind its key: libmemcached's test of servers asks for the error that \
                 1.6.18 answered",
        who: Who::Followed,
        applies: |line| line.is(&["delete"]) && line.tokens.len() > 2,
        example: "delete a 10\r\n",
        theirs: "NOT_FOUND\r\n",
    },
    Difference {
        reason: "gat without a key was fine, or had a bad time",
        who: Who::Older,
        applies: |line| line.is(&["gat", "gats"]) && line.tokens.len() == 2,
        example: "gat 5\r\n",
        theirs: "END\r\n",
    },
    Difference {
        reason: "all numbers were read by C's functions, which know signs, and cut 64 bits to 32",
        who: Who::Older,
        applies: |line| {
            let (at, strict): (usize, Reader) = match line.command() {
                b"gat" | b"gats" | b"flush_all" => (1, naive::strict_i32),
                b"touch" => (2, naive::strict_i32),
                b"verbosity" | b"cache_memlimit" => (1, naive::strict_u32),
                b"incr" | b"decr" => (2, naive::strict_u64),
                _ if line.stores() => (4, naive::strict_i32),
                _ => return false,
            };
            let id = (line.is(&["cas"]), naive::strict_u64(line.token(5)));
            strict(line.token(at)) != naive::c_number(line.token(at))
                || (id.0 && id.1 != naive::c_number(line.token(5)))
        },
        example: "touch a +5\r\n",
        theirs: "NOT_FOUND\r\n",
    },
    Difference {
        reason: "a number did not begin in one token and end in the next",
        who: Who::Older,
        applies: |line| {
            let blank = |at: usize| line.token(at).iter().all(|byte| (b'\t'..=b'\r').contains(byte));
            line.stores() && (blank(2) || blank(3))
        },
        example: "set a \t 7 1\r\nx\r\n",
        theirs: "CLIENT_ERROR bad command line format\r\n",
    },
    Difference {
        reason: "the data of a refused storage command was not swallowed",
        who: Who::Older,
        applies: |line| {
            matches!(line.outcome, Outcome::Refused(_, 1..)) && (!line.is_meta() || line.token(1).len() > 250)
        },
        example: "set a x 0 1\r\nx\r\n",
        theirs: "CLIENT_ERROR bad command line format\r\nERROR\r\n",
    },
    Difference {
        reason: "noreply was noticed by the commands that have it, and only where it belongs; by those, though, \
                 before the rest",
        who: Who::Older,
        applies: |line| {
            line.tokens.iter().take(23).next_back() == Some(&b"noreply".as_slice()) && line.is_refused()
        },
        example: "foo noreply\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "the key noreply of a delete was only its key",
        who: Who::Older,
        applies: |line| line.is(&["delete"]) && line.tokens == [b"delete".as_slice(), b"noreply"],
        example: "delete noreply\r\n",
        theirs: "NOT_FOUND\r\n",
    },
    Difference {
        reason: "the topics of stats could not be shortened",
        who: Who::Older,
        applies: |line| {
            line.is(&["stats"])
                && ["reset", "detail", "settings", "cachedump", "conns"].iter().any(|name| {
                    name.as_bytes() != line.token(1) && name.as_bytes().starts_with(line.token(1))
                })
        },
        example: "stats r\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "the option -X had nothing to do with stats detail",
        who: Who::Older,
        applies: |line| line.is(&["stats"]) && line.token(1) == b"detail",
        example: "stats detail off\r\n",
        theirs: "OK\r\n",
    },
    Difference {
        reason: "the answer to shutdown has another first word",
        who: Who::Older,
        applies: |line| line.is(&["shutdown"]),
        example: "shutdown\r\n",
        theirs: "ERROR: shutdown not enabled\r\n",
    },
    Difference {
        reason: "the mgdump of lru_crawler did not exist, and no subcommand could be shortened",
        who: Who::Older,
        applies: |line| line.is(&["lru_crawler"]) && line.tokens.len() == 3,
        example: "lru_crawler mgdump all\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "nor any of slabs",
        who: Who::Older,
        applies: |line| {
            line.is(&["slabs"]) && !["reassign", "automove"].map(str::as_bytes).contains(&line.token(1))
        },
        example: "slabs r 1 2\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "the commands that steer memcached's machinery counted their tokens otherwise",
        who: Who::Older,
        applies: |line| {
            line.is(&["slabs", "lru", "lru_crawler"])
                && (line.tokens.last() == Some(&b"noreply".as_slice())
                    || line.tokens.len() > 3 && line.token(1) == b"automove")
        },
        example: "slabs automove window 5\r\n",
        theirs: "CLIENT_ERROR bad command line format\r\n",
    },
    Difference {
        reason: "watch took noreply, and was silent",
        who: Who::Older,
        applies: |line| line.is(&["watch"]) && line.tokens.last() == Some(&b"noreply".as_slice()),
        example: "watch noreply\r\n",
        theirs: "",
    },
    Difference {
        reason: "Debian builds it with TLS",
        who: Who::Older,
        applies: |line| line.is(&["refresh_certs"]),
        example: "refresh_certs\r\n",
        theirs: "Error TLS not enabled\r\n",
    },
    Difference {
        reason: "HTTP/ was not looked for behind a word of one letter, or one that begins as a command does",
        who: Who::Older,
        applies: |line| {
            line.outcome == Outcome::Closed
                && (line.command().len() == 1
                    || line.command().first().is_some_and(|byte| b"acdgist".contains(byte)))
        },
        example: "sets HTTP/1\r\n",
        theirs: "ERROR\r\n",
    },
    Difference {
        reason: "a line of nothing but HTTP/ closed too",
        who: Who::Older,
        applies: |line| line.command().starts_with(b"HTTP/"),
        example: "HTTP/1.1\r\n",
        theirs: "",
    },
];

type Reader = fn(&[u8]) -> Option<i128>;

/// The first difference between this crate and this version of memcached that concerns the line.
pub(crate) fn difference(version: [u32; 3], line: &[u8]) -> Option<&'static Difference> {
    let seen = Seen::new(line);
    let concerned = |difference: &&Difference| difference.who.is(version) && (difference.applies)(&seen);
    DIFFERENCES.iter().chain(META_DIFFERENCES).find(concerned)
}

/// Statistics that one of the two servers shows and the other does not.
pub(crate) struct Unshared {
    /// What `stats` was asked for.
    pub(crate) topic: &'static str,
    pub(crate) who: Shows,
    /// Without the number of the slab class, where there is one.
    pub(crate) names: &'static [&'static str],
    pub(crate) reason: &'static str,
}

#[derive(PartialEq, Eq, Clone, Copy, Debug)]
pub(crate) enum Shows {
    Memcached,
    Lookaside,
}

pub(crate) const STATISTICS: &[Unshared] = &[
    Unshared {
        topic: "",
        who: Shows::Lookaside,
        names: &[
            "slab_reassign_rescues",
            "slab_reassign_chunk_rescues",
            "slab_reassign_inline_reclaim",
            "slab_reassign_busy_items",
            "slab_reassign_busy_deletes",
            "slab_reassign_busy_nomem",
            "slab_reassign_last_busy_status",
            "slab_reassign_running",
            "slabs_moved",
        ],
        reason: "memory moves between classes here; the memcached of the tests is told not to",
    },
    Unshared {
        topic: "",
        who: Shows::Lookaside,
        names: &[
            "lru_crawler_running",
            "lru_crawler_starts",
            "lru_maintainer_juggles",
            "evicted_active",
            "moves_to_cold",
            "moves_to_warm",
            "moves_within_lru",
            "direct_reclaims",
            "lru_bumps_dropped",
        ],
        reason: "the memcached of the tests is told to have no crawler and no maintainer",
    },
    Unshared {
        topic: "",
        who: Shows::Lookaside,
        names: &["lookaside_version"],
        reason: "which server this really is",
    },
    Unshared {
        topic: "settings",
        who: Shows::Lookaside,
        names: &["eviction_policy", "page_kind"],
        reason: "can be chosen here",
    },
    Unshared {
        topic: "items",
        who: Shows::Lookaside,
        names: &[
            "number_hot",
            "number_warm",
            "number_cold",
            "age_hot",
            "age_warm",
            "evicted_active",
            "moves_to_cold",
            "moves_to_warm",
            "moves_within_lru",
            "direct_reclaims",
            "hits_to_hot",
            "hits_to_warm",
            "hits_to_cold",
            "hits_to_temp",
        ],
        reason: "the memcached of the tests is told to have no maintainer",
    },
];

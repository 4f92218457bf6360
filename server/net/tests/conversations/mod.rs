//! Conversations: what a client sends, what comes back to the byte, and whether the connection is open afterwards.
//!
//! Each begins with an empty cache. `$1` stands for a number that the server chooses: where it is first expected it may
//! be any number but zero that has not been seen before, and from then on it is that one.

mod meta;

use lookaside_server::VERSION;

use crate::lines::{Expect, table};

/// What becomes of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Open,
    Closed,
}

/// What is sent and what comes back, once or several times in turn, and the end.
pub(crate) struct Conversation {
    pub(crate) exchanges: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) end: End,
}

impl Conversation {
    /// Whether the replies go by the clock: they tell a time to live.
    pub(crate) fn is_timed(&self) -> bool {
        let tells = |reply: &[u8]| reply.windows(3).any(|at| at.starts_with(b" t") && at[2].is_ascii_digit());
        self.exchanges.iter().any(|(_, reply)| reply.len() < 1000 && tells(reply))
    }
}

use End::{Closed, Open};

/// One exchange, of one request or several, after which the connection is open.
const EXCHANGES: &[(&str, &str)] = &[
    // set
    ("set a 0 0 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
    ("set a 4294967295 100 5\r\nhello\r\nget a\r\n", "STORED\r\nVALUE a 4294967295 5\r\nhello\r\nEND\r\n"),
    ("set a 1 0 0\r\n\r\nget a\r\n", "STORED\r\nVALUE a 1 0\r\n\r\nEND\r\n"),
    ("set a 0 0 1\nx\r\nget a\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
    ("set a 0 0 4\r\n\r\n\r\n\r\nget a\r\n", "STORED\r\nVALUE a 0 4\r\n\r\n\r\n\r\nEND\r\n"),
    (
        "set a 0 0 1\r\nx\r\nset a 7 0 2\r\nyz\r\nget a\r\n",
        "STORED\r\nSTORED\r\nVALUE a 7 2\r\nyz\r\nEND\r\n",
    ),
    ("set a 0 0 1 noreply\r\nx\r\nget a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n"),
    ("set a 0 -1 1\r\nx\r\nget a\r\n", "STORED\r\nEND\r\n"),
    ("set a 0 0 1\r\nx\r\nset a 0 -1 1\r\ny\r\nget a\r\n", "STORED\r\nSTORED\r\nEND\r\n"),
    ("set a 0 1000000000 1\r\nx\r\nget a\r\n", "STORED\r\nEND\r\n"),
    ("set a 0 2592000 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
    ("set a 0 4000000000 1\r\nx\r\nget a\r\n", "STORED\r\nEND\r\n"),
    // add
    ("add a 3 0 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 3 1\r\nx\r\nEND\r\n"),
    (
        "set a 0 0 1\r\nx\r\nadd a 3 0 1\r\ny\r\nget a\r\n",
        "STORED\r\nNOT_STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
    ),
    ("add a 0 0 1 noreply\r\nx\r\nadd a 0 0 1 noreply\r\ny\r\nget a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n"),
    ("set a 0 -1 1\r\nx\r\nadd a 0 0 1\r\ny\r\nget a\r\n", "STORED\r\nSTORED\r\nVALUE a 0 1\r\ny\r\nEND\r\n"),
    // replace
    ("replace a 0 0 1\r\nx\r\nget a\r\n", "NOT_STORED\r\nEND\r\n"),
    (
        "set a 0 0 1\r\nx\r\nreplace a 9 0 2\r\nyy\r\nget a\r\n",
        "STORED\r\nSTORED\r\nVALUE a 9 2\r\nyy\r\nEND\r\n",
    ),
    (
        "replace a 0 0 1 noreply\r\nx\r\nset a 0 0 1\r\nx\r\nreplace a 0 0 1 noreply\r\ny\r\nget a\r\n",
        "STORED\r\nVALUE a 0 1\r\ny\r\nEND\r\n",
    ),
    ("set a 0 -1 1\r\nx\r\nreplace a 0 0 1\r\ny\r\n", "STORED\r\nNOT_STORED\r\n"),
    // append, prepend: flags and time are those of the item
    ("append a 0 0 1\r\nx\r\nprepend a 0 0 1\r\nx\r\nget a\r\n", "NOT_STORED\r\nNOT_STORED\r\nEND\r\n"),
    (
        "set a 5 0 2\r\nbc\r\nappend a 6 0 2\r\nde\r\nprepend a 7 -1 1\r\na\r\nget a\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\nVALUE a 5 5\r\nabcde\r\nEND\r\n",
    ),
    (
        "set a 5 0 1\r\nb\r\nappend a 0 0 1 noreply\r\nc\r\nprepend a 0 0 1 noreply\r\na\r\nget a\r\n",
        "STORED\r\nVALUE a 5 3\r\nabc\r\nEND\r\n",
    ),
    (
        "set a 0 0 1\r\nb\r\nappend a 0 0 0\r\n\r\nprepend a 0 0 0\r\n\r\nget a\r\n",
        "STORED\r\nSTORED\r\nSTORED\r\nVALUE a 0 1\r\nb\r\nEND\r\n",
    ),
    ("set a 0 -1 1\r\nx\r\nappend a 0 0 1\r\ny\r\n", "STORED\r\nNOT_STORED\r\n"),
    // get, gets
    ("get a\r\n", "END\r\n"),
    ("gets a b c\r\n", "END\r\n"),
    ("get a a\r\nget  a  \r\n", "END\r\nEND\r\n"),
    (
        "set a 1 0 1\r\nx\r\nset c 2 0 2\r\nyz\r\nget a b c\r\nget c a c\r\n",
        "STORED\r\nSTORED\r\nVALUE a 1 1\r\nx\r\nVALUE c 2 2\r\nyz\r\nEND\r\n\
         VALUE c 2 2\r\nyz\r\nVALUE a 1 1\r\nx\r\nVALUE c 2 2\r\nyz\r\nEND\r\n",
    ),
    ("set noreply 0 0 1\r\nx\r\nget noreply\r\n", "STORED\r\nVALUE noreply 0 1\r\nx\r\nEND\r\n"),
    ("set a\tb 0 0 1\r\nx\r\nget a\tb\r\n", "STORED\r\nVALUE a\tb 0 1\r\nx\r\nEND\r\n"),
    ("get\r\ngets\r\nget \r\n", BAD_FORMAT_3),
    // gat, gats
    ("gat 100 a\r\ngats 0 a b\r\n", "END\r\nEND\r\n"),
    (
        "set a 4 0 1\r\nx\r\ngat 100 b a c a\r\nget a\r\n",
        "STORED\r\nVALUE a 4 1\r\nx\r\nVALUE a 4 1\r\nx\r\nEND\r\nVALUE a 4 1\r\nx\r\nEND\r\n",
    ),
    ("set a 4 0 1\r\nx\r\ngat -1 a\r\nget a\r\n", "STORED\r\nVALUE a 4 1\r\nx\r\nEND\r\nEND\r\n"),
    ("set a 4 50 1\r\nx\r\ngat -1 a a\r\nget a\r\n", "STORED\r\nVALUE a 4 1\r\nx\r\nEND\r\nEND\r\n"),
    ("gat x a\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
    ("gat\r\ngat 5\r\ngats a\r\n", BAD_FORMAT_3),
    // touch
    ("touch a 100\r\ntouch a 100 noreply\r\n", "NOT_FOUND\r\n"),
    (
        "set a 4 0 1\r\nx\r\ntouch a 100\r\ntouch a 0\r\nget a\r\n",
        "STORED\r\nTOUCHED\r\nTOUCHED\r\nVALUE a 4 1\r\nx\r\nEND\r\n",
    ),
    ("set a 4 0 1\r\nx\r\ntouch a -1\r\nget a\r\n", "STORED\r\nTOUCHED\r\nEND\r\n"),
    ("set a 4 9 1\r\nx\r\ntouch a -1 noreply\r\nget a\r\ntouch a 0\r\n", "STORED\r\nEND\r\nNOT_FOUND\r\n"),
    ("touch a x\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
    ("touch\r\ntouch a\r\ntouch a noreply\r\n", BAD_FORMAT_2),
    // delete
    ("delete a\r\n", "NOT_FOUND\r\n"),
    ("set a 0 0 1\r\nx\r\ndelete a\r\nget a\r\ndelete a\r\n", "STORED\r\nDELETED\r\nEND\r\nNOT_FOUND\r\n"),
    ("set a 0 0 1\r\nx\r\ndelete a noreply\r\nget a\r\n", "STORED\r\nEND\r\n"),
    ("set a 0 0 1\r\nx\r\ndelete a 0\r\n", "STORED\r\nDELETED\r\n"),
    ("set a 0 0 1\r\nx\r\ndelete a 0 noreply\r\nget a\r\n", "STORED\r\nEND\r\n"),
    (
        "set a 0 0 1\r\nx\r\ndelete a 10\r\nget a\r\ndelete a 10 noreply\r\nget a\r\n",
        "STORED\r\nCLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n\
         VALUE a 0 1\r\nx\r\nEND\r\nEND\r\n",
    ),
    ("set a 0 -1 1\r\nx\r\ndelete a\r\n", "STORED\r\nNOT_FOUND\r\n"),
    // The data of ms is not taken for a command.
    (
        "set a 0 0 1\r\nx\r\nms k 11\r\nflush_all\r\n\r\nget a\r\n",
        "STORED\r\nHD\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
    ),
    ("delete\r\n", "CLIENT_ERROR bad command line format\r\n"),
    // incr, decr
    ("incr a 1\r\ndecr a 1\r\nincr a 1 noreply\r\n", "NOT_FOUND\r\nNOT_FOUND\r\n"),
    (
        "set a 3 0 1\r\n9\r\nincr a 1\r\nget a\r\nincr a 990 noreply\r\nget a\r\n",
        "STORED\r\n10\r\nVALUE a 3 2\r\n10\r\nEND\r\nVALUE a 3 4\r\n1000\r\nEND\r\n",
    ),
    (
        "set a 3 0 2\r\n10\r\ndecr a 1\r\nget a\r\ndecr a 100\r\nget a\r\ndecr a 1 noreply\r\n",
        "STORED\r\n9\r\nVALUE a 3 2\r\n9 \r\nEND\r\n0\r\nVALUE a 3 2\r\n0 \r\nEND\r\n",
    ),
    (
        "set a 0 0 20\r\n18446744073709551615\r\nincr a 1\r\nget a\r\n",
        "STORED\r\n0\r\nVALUE a 0 20\r\n0                   \r\nEND\r\n",
    ),
    (
        "set a 0 0 1\r\n5\r\nincr a 18446744073709551615\r\ndecr a 18446744073709551615\r\n",
        "STORED\r\n4\r\n0\r\n",
    ),
    (
        "set a 0 0 1\r\nx\r\nincr a 1\r\ndecr a 1 noreply\r\nget a\r\n",
        "STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
    ),
    (
        "set a 0 0 20\r\n18446744073709551616\r\nincr a 1\r\n",
        "STORED\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    ),
    (
        "incr a x\r\nincr a -1\r\nincr a x noreply\r\n",
        "CLIENT_ERROR invalid numeric delta argument\r\nCLIENT_ERROR invalid numeric delta argument\r\n",
    ),
    ("incr\r\nincr a\r\nincr a noreply\r\n", BAD_FORMAT_2),
    // flush_all
    ("set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\n", "STORED\r\nOK\r\nEND\r\n"),
    ("set a 0 0 1\r\nx\r\nflush_all 0\r\nget a\r\n", "STORED\r\nOK\r\nEND\r\n"),
    ("set a 0 0 1\r\nx\r\nflush_all -1\r\nget a\r\n", "STORED\r\nOK\r\nEND\r\n"),
    (
        "set a 0 0 1\r\nx\r\nflush_all noreply\r\nget a\r\nadd a 0 0 1\r\ny\r\nget a\r\n",
        "STORED\r\nEND\r\nSTORED\r\nVALUE a 0 1\r\ny\r\nEND\r\n",
    ),
    ("set a 0 0 1\r\nx\r\nflush_all 0 noreply\r\nget a\r\n", "STORED\r\nEND\r\n"),
    (
        "set a 0 0 1\r\nx\r\nflush_all 1000\r\nget a\r\nflush_all 100000 noreply\r\nget a\r\n",
        "STORED\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\nVALUE a 0 1\r\nx\r\nEND\r\n",
    ),
    ("flush_all x\r\n", "CLIENT_ERROR invalid exptime argument\r\n"),
    // Many in a row: what a flush leaves is swept before the fourth flush after it can happen.
    (
        "set a 0 0 1\r\nx\r\nflush_all\r\nflush_all\r\nflush_all\r\nflush_all\r\nflush_all\r\nget a\r\n",
        "STORED\r\nOK\r\nOK\r\nOK\r\nOK\r\nOK\r\nEND\r\n",
    ),
    // verbosity
    ("verbosity 0\r\nverbosity 2 noreply\r\nverbosity 1\r\n", "OK\r\nOK\r\n"),
    ("verbosity\r\nverbosity x\r\nverbosity x noreply\r\n", BAD_FORMAT_2),
    // stats, where it says the same every time
    ("stats reset\r\n", "RESET\r\n"),
    ("stats sizes\r\n", "STAT sizes_status disabled\r\nEND\r\n"),
    ("stats nothing\r\nstats noreply\r\n", "ERROR\r\nERROR\r\n"),
    ("stats detail on\r\n", "CLIENT_ERROR stats detail not allowed\r\n"),
    ("stats cachedump 1 1\r\n", "CLIENT_ERROR stats cachedump not allowed\r\n"),
    // What is not a command, or is one of an administrator's that are switched off
    ("foo\r\nGET a\r\n get a\r\n", "ERROR\r\nERROR\r\nERROR\r\n"),
    ("\r\n\n", BAD_FORMAT_2),
    ("foo noreply\r\nget a\r\n", "END\r\n"),
    ("shutdown\r\n", "SERVER_ERROR: shutdown not enabled\r\n"),
    ("cache_memlimit 7\r\n", "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n"),
    ("watch\r\n", "CLIENT_ERROR watch commands not allowed\r\n"),
    ("lru_crawler metadump all\r\n", "CLIENT_ERROR lru crawler disabled\r\n"),
    ("slabs reassign 1 2\r\n", "CLIENT_ERROR slab reassignment disabled\r\n"),
    // Lengths that cannot be: the data is taken for a request
    ("set a 0 0 -1\r\nfoo\r\n", "CLIENT_ERROR bad command line format\r\nERROR\r\n"),
    ("set a 0 0 2147483646\r\nfoo\r\n", "CLIENT_ERROR bad command line format\r\nERROR\r\n"),
    ("set a 0 0 99999999999999999999\r\nfoo\r\n", "CLIENT_ERROR bad command line format\r\nERROR\r\n"),
    ("set a 0 0\r\nfoo\r\n", "CLIENT_ERROR bad command line format\r\nERROR\r\n"),
    // Other bad numbers: the data is swallowed
    ("set a x 0 3\r\nfoo\r\nget a\r\n", "CLIENT_ERROR bad command line format\r\nEND\r\n"),
    ("set a 0 x 3 noreply\r\nfoo\r\nget a\r\n", "END\r\n"),
    ("cas a 0 0 3 x\r\nfoo\r\nget a\r\n", "CLIENT_ERROR bad command line format\r\nEND\r\n"),
    ("cas a 0 0 3\r\nfoo\r\nget a\r\n", "CLIENT_ERROR bad command line format\r\nEND\r\n"),
    // Data that does not end where it was said to: as many bytes are taken as were announced, and what was there stays
    (
        "set a 0 0 3\r\nold\r\nset a 0 0 1\r\nabcd\r\nget a\r\n",
        "STORED\r\nCLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\n\
         VALUE a 0 3\r\nold\r\nEND\r\n",
    ),
    ("set a 0 0 5\r\nabc\r\nxyversion\r\n", "CLIENT_ERROR bad data chunk\r\n$VERSION"),
    ("set a 0 0 3 noreply\r\nabcdeget a\r\n", "END\r\n"),
    ("set a 0 0 1\r\nx\n\rget a\r\n", "CLIENT_ERROR bad data chunk\r\nEND\r\n"),
    ("append a 0 0 1\r\nxyzget a\r\n", "CLIENT_ERROR bad data chunk\r\nEND\r\n"),
];

const BAD_FORMAT_2: &str = "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n";
const BAD_FORMAT_3: &str = "CLIENT_ERROR bad command line format\r\nCLIENT_ERROR bad command line format\r\n\
                            CLIENT_ERROR bad command line format\r\n";

/// One exchange, after which the connection is closed.
const CLOSING: &[(&str, &str)] = &[
    ("quit\r\n", ""),
    ("quit\n", ""),
    ("quit noreply\r\n", ""),
    ("set a 0 0 1\r\nx\r\nget a\r\nquit\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
    ("get a\r\nquit\r\nget a\r\nget a\r\n", "END\r\n"),
    // A browser
    ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ""),
];

/// Several exchanges, each of which begins when the one before is over, with numbers to compare and swap by.
const EXCHANGES_WITH_CAS: &[&[(&str, &str)]] = &[
    &[("cas a 0 0 1 1\r\nx\r\n", "NOT_FOUND\r\n"), ("cas a 0 0 1 1 noreply\r\nx\r\nget a\r\n", "END\r\n")],
    &[
        ("set a 5 0 1\r\nx\r\ngets a\r\n", "STORED\r\nVALUE a 5 1 $1\r\nx\r\nEND\r\n"),
        ("gets a\r\n", "VALUE a 5 1 $1\r\nx\r\nEND\r\n"),
        ("cas a 6 0 2 $1\r\nyy\r\ngets a\r\n", "STORED\r\nVALUE a 6 2 $2\r\nyy\r\nEND\r\n"),
        ("cas a 7 0 1 $1\r\nz\r\ngets a\r\n", "EXISTS\r\nVALUE a 6 2 $2\r\nyy\r\nEND\r\n"),
        ("cas a 7 0 1 0\r\nz\r\n", "EXISTS\r\n"),
        ("cas a 7 0 1 18446744073709551615\r\nz\r\n", "EXISTS\r\n"),
        ("cas a 7 0 1 $1 noreply\r\nz\r\ngets a\r\n", "VALUE a 6 2 $2\r\nyy\r\nEND\r\n"),
        ("cas a 7 0 1 $2 noreply\r\nz\r\ngets a\r\n", "VALUE a 7 1 $3\r\nz\r\nEND\r\n"),
        ("delete a\r\ncas a 0 0 1 $3\r\nx\r\n", "DELETED\r\nNOT_FOUND\r\n"),
        ("set a 0 0 1\r\nx\r\ngets a\r\n", "STORED\r\nVALUE a 0 1 $4\r\nx\r\nEND\r\n"),
    ],
    // What changes the value changes the number; what changes the time, or nothing, does not.
    &[
        ("set a 0 0 1\r\n5\r\ngets a\r\n", "STORED\r\nVALUE a 0 1 $1\r\n5\r\nEND\r\n"),
        ("touch a 100\r\ngets a\r\n", "TOUCHED\r\nVALUE a 0 1 $1\r\n5\r\nEND\r\n"),
        ("touch a 0\r\ngats 50 a\r\n", "TOUCHED\r\nVALUE a 0 1 $1\r\n5\r\nEND\r\n"),
        ("gats 0 a\r\ngets a\r\n", "VALUE a 0 1 $1\r\n5\r\nEND\r\nVALUE a 0 1 $1\r\n5\r\nEND\r\n"),
        ("add a 0 0 1\r\ny\r\ngets a\r\n", "NOT_STORED\r\nVALUE a 0 1 $1\r\n5\r\nEND\r\n"),
        (
            "incr a x\r\ngets a\r\n",
            "CLIENT_ERROR invalid numeric delta argument\r\nVALUE a 0 1 $1\r\n5\r\nEND\r\n",
        ),
        ("incr a 1\r\ngets a\r\n", "6\r\nVALUE a 0 1 $2\r\n6\r\nEND\r\n"),
        ("decr a 1\r\ngets a\r\n", "5\r\nVALUE a 0 1 $3\r\n5\r\nEND\r\n"),
        ("append a 0 0 1\r\n0\r\ngets a\r\n", "STORED\r\nVALUE a 0 2 $4\r\n50\r\nEND\r\n"),
        ("prepend a 0 0 0\r\n\r\ngets a\r\n", "STORED\r\nVALUE a 0 2 $5\r\n50\r\nEND\r\n"),
        ("replace a 0 0 2\r\n50\r\ngets a\r\n", "STORED\r\nVALUE a 0 2 $6\r\n50\r\nEND\r\n"),
        (
            "set b 1 0 1\r\ny\r\ngets b a b\r\n",
            "STORED\r\nVALUE b 1 1 $7\r\ny\r\nVALUE a 0 2 $6\r\n50\r\nVALUE b 1 1 $7\r\ny\r\nEND\r\n",
        ),
    ],
];

/// The largest value that a key of one byte may have without flags, as memcached counts: 1 MiB, of which 60 bytes are
/// not the value's.
const LARGEST: usize = (1 << 20) - 60;

pub(crate) fn all() -> Vec<Conversation> {
    let version = format!("VERSION {VERSION}\r\n");
    let bytes = |text: &str| text.replace("$VERSION", &version).into_bytes();
    let written = |exchanges: &[(&str, &str)], end| Conversation {
        exchanges: exchanges.iter().map(|(sent, reply)| (bytes(sent), bytes(reply))).collect(),
        end,
    };
    let mut all: Vec<Conversation> = Vec::new();
    let single = EXCHANGES.iter().chain(meta::EXCHANGES);
    all.extend(single.map(|exchange| written(&[*exchange], Open)));
    let closing = CLOSING.iter().chain(meta::CLOSING);
    all.extend(closing.map(|exchange| written(&[*exchange], Closed)));
    let several = EXCHANGES_WITH_CAS.iter().chain(meta::EXCHANGES_WITH_CAS);
    all.extend(several.map(|exchanges| written(exchanges, Open)));
    all.extend(refused());
    let computed = computed().into_iter();
    all.extend(computed.map(|(sent, reply, end)| Conversation { exchanges: vec![(sent, reply)], end }));
    all
}

/// The lines that the protocol's own table says are no requests.
fn refused() -> impl Iterator<Item = Conversation> {
    table().into_iter().filter_map(|(line, expect)| {
        let (reply, swallowed, end) = match expect {
            Expect::Means(_) => return None,
            Expect::Refused(error, swallowed) => (error.bytes(), swallowed, Open),
            Expect::Silent(swallowed) => (b"".as_slice(), swallowed, Open),
            Expect::Ended(error) => (error.bytes(), 0, Closed),
            Expect::Closed => (b"".as_slice(), 0, Closed),
        };
        // Were the data taken for a request, the connection would be closed.
        let data: Vec<u8> = b"quit\r\n".iter().copied().cycle().take(swallowed).collect();
        let next: (&[u8], &[u8]) = if end == Open { (b"get a\r\n", b"END\r\n") } else { (b"", b"") };
        let exchange = ([line.as_slice(), &data, next.0].concat(), [reply, next.1].concat());
        Some(Conversation { exchanges: vec![exchange], end })
    })
}

/// Those that are too long to be written out.
fn computed() -> Vec<(Vec<u8>, Vec<u8>, End)> {
    let mut all: Vec<(Vec<u8>, Vec<u8>, End)> = Vec::new();
    let mut open = |sent: Vec<u8>, reply: Vec<u8>| all.push((sent, reply, Open));
    let bad_format = "CLIENT_ERROR bad command line format\r\n";

    // Every byte there is, in a value and, where it may stand there, in a key.
    let every: Vec<u8> = (0..=255).collect();
    open(set("a", 0, &every, "get a\r\n"), replied("STORED\r\n", &[("a", 0, &every)]));
    let in_a_key: Vec<u8> = (0..=255).filter(|byte| !b" \n\r".contains(byte)).collect();
    for key in in_a_key.chunks(200) {
        let sent = [b"set ", key, b" 0 0 1\r\nx\r\nget ", key, b"\r\n"].concat();
        open(sent, [b"STORED\r\nVALUE ", key, b" 0 1\r\nx\r\nEND\r\n"].concat());
    }

    // Keys of 250 bytes, and of one more, in every command that has one.
    let (longest, too_long) = ("k".repeat(250), "k".repeat(251));
    open(
        format!(
            "set {longest} 0 0 1\r\n1\r\nget {longest}\r\nappend {longest} 0 0 1\r\n0\r\nincr {longest} 5\r\n\
             touch {longest} 0\r\ngat 0 {longest}\r\ndelete {longest}\r\nget {longest} {longest} {longest}\r\n"
        )
        .into(),
        format!(
            "STORED\r\nVALUE {longest} 0 1\r\n1\r\nEND\r\nSTORED\r\n15\r\nTOUCHED\r\n\
             VALUE {longest} 0 2\r\n15\r\nEND\r\nDELETED\r\nEND\r\n"
        )
        .into(),
    );
    for request in ["get K", "gets a K b", "gat 0 K", "delete K", "incr K 1", "decr K 1", "touch K 0"] {
        let sent = request.replace('K', &too_long) + "\r\nget a\r\n";
        open(sent.into(), format!("{bad_format}END\r\n").into());
    }
    for verb in ["set", "add", "replace", "append", "prepend", "cas"] {
        let cas = if verb == "cas" { " 1" } else { "" };
        // Swallowed, and so not taken for a request.
        let sent = format!("{verb} {too_long} 0 0 7{cas}\r\nversion\r\nget a\r\n");
        open(sent.into(), format!("{bad_format}END\r\n").into());
        let sent = format!("{verb} {too_long} 0 0 7{cas} noreply\r\nversion\r\nget a\r\n");
        open(sent.into(), b"END\r\n".into());
    }

    // Values of all sizes: in the receive buffer, beyond it, in several pieces, the largest.
    for size in [100, 2048, 8000, 8150, 8200, 16_300, 16_370, 16_400, 40_000, 65_536, 300_000, LARGEST] {
        let value = value(size);
        open(set("a", 0, &value, "get a\r\n"), replied("STORED\r\n", &[("a", 0, &value)]));
        let rest = b"get a a\r\n";
        let doubled = replied("", &[("a", 0, &value), ("a", 0, &value)]);
        open([storing("set", "a", 0, &value, " noreply").as_slice(), rest].concat(), doubled);
        // Not ended where it was said to: nothing is stored, and what was there stays.
        let mut bad = [set("a", 0, b"old", ""), storing("set", "a", 0, &value, "")].concat();
        let ending = bad.len() - 2;
        bad[ending] = b'!';
        bad.extend_from_slice(b"get a\r\n");
        open(bad, replied("STORED\r\nCLIENT_ERROR bad data chunk\r\n", &[("a", 0, b"old")]));
    }
    // Made of others.
    for size in [10, 5_000, 20_000, 200_000] {
        let (first, second) = (value(size), value(size + 1));
        let sent = [
            storing("set", "a", 7, &first, ""),
            storing("append", "a", 0, &second, ""),
            storing("prepend", "a", 0, &second, " noreply"),
            b"get a\r\n".into(),
        ];
        let whole = [second.as_slice(), &first, &second].concat();
        open(sent.concat(), replied("STORED\r\nSTORED\r\n", &[("a", 7, &whole)]));
        let sent = [
            storing("add", "a", 7, &first, ""),
            storing("add", "a", 7, &second, ""),
            storing("replace", "b", 0, &second, ""),
            b"get a b\r\n".into(),
        ];
        let reply = replied("STORED\r\nNOT_STORED\r\nNOT_STORED\r\n", &[("a", 7, &first)]);
        open(sent.concat(), reply);
    }

    // Too large by one byte, or by far: swallowed. What a set was to replace is gone, lest somebody take it for the new
    // one.
    let too_large = "SERVER_ERROR object too large for cache\r\n";
    for size in [LARGEST + 1, 3 << 20] {
        let value = value(size);
        for (verb, left) in
            [("set", false), ("add", true), ("replace", true), ("append", true), ("cas", true)]
        {
            let extra = if verb == "cas" { " 1" } else { "" };
            let sent = [set("a", 0, b"old", ""), storing(verb, "a", 0, &value, extra), b"get a\r\n".into()];
            let old: &[(&str, u32, &[u8])] = if left { &[("a", 0, b"old")] } else { &[] };
            open(sent.concat(), replied(&format!("STORED\r\n{too_large}"), old));
        }
        let sent = [set("a", 0, b"old", ""), storing("set", "a", 0, &value, " noreply"), b"get a\r\n".into()];
        open(sent.concat(), b"STORED\r\nEND\r\n".into());
    }
    // Flags take four bytes, and every byte of the key one.
    let largest = value(LARGEST);
    open(set("a", 1, &largest, "get a\r\n"), format!("{too_large}END\r\n").into());
    open(set("ab", 0, &largest, "get ab\r\n"), format!("{too_large}END\r\n").into());
    open(set("a", 1, &largest[4..], "get a\r\n"), replied("STORED\r\n", &[("a", 1, &largest[4..])]));

    // Lists of keys that fit no buffer, and replies that fit none.
    for (keys, command) in [(60, "get"), (3_000, "get"), (20_000, "gets"), (100, "gat 0")] {
        let line = (0..keys).map(|i| format!("key-{i:05}")).collect::<Vec<_>>().join(" ");
        open(format!("{command} {line}\r\n{command} {line} \r\n").into(), b"END\r\nEND\r\n".into());
    }
    let filled: Vec<(String, Vec<u8>)> =
        (0..200).map(|i| (format!("key-{:05}", i * 17), value(i * 10))).collect();
    let stored = |noreply| -> Vec<u8> {
        filled.iter().flat_map(|(key, value)| storing("set", key, 3, value, noreply)).collect()
    };
    let values: Vec<(&str, u32, &[u8])> =
        filled.iter().map(|(key, value)| (key.as_str(), 3, value.as_slice())).collect();
    for keys in [3_400, 10_000] {
        let line = (0..keys).map(|i| format!("key-{i:05}")).collect::<Vec<_>>().join("  ");
        let sent = [stored(" noreply"), format!("get {line}\r\nget {line} \r\n").into()].concat();
        open(sent, [replied("", &values), replied("", &values)].concat());
    }
    let keys = filled.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(" ");
    let sent = [stored(" noreply"), format!("gat 100 {keys}\r\nget {keys}\r\n").into()].concat();
    open(sent, [replied("", &values), replied("", &values)].concat());
    // One large value asked for many times over.
    let large = value(70_000);
    let sent = [storing("set", "a", 0, &large, " noreply"), format!("get {}\r\n", "a ".repeat(40)).into()];
    open(sent.concat(), replied("", &[("a", 0, large.as_slice()); 40]));
    // A long list with a key that is too long at its end.
    for keys in [50, 30_000] {
        let line = "k ".repeat(keys);
        open(format!("get {line}{too_long}\r\nget a\r\n").into(), format!("{bad_format}END\r\n").into());
    }
    open(format!("get {}\r\nget a\r\n", " ".repeat(3000)).into(), format!("{bad_format}END\r\n").into());

    // More requests in one piece than are served in one turn.
    let pipelined = "get a\r\nset a 0 0 1\r\nx\r\nget a\r\ndelete a\r\n".repeat(1000);
    let replies = "END\r\nSTORED\r\nVALUE a 0 1\r\nx\r\nEND\r\nDELETED\r\n".repeat(1000);
    open(pipelined.into(), replies.into());
    open("get a b c\r\n".repeat(5000).into(), "END\r\n".repeat(5000).into());
    open("incr a 1\r\n".repeat(3000).into(), "NOT_FOUND\r\n".repeat(3000).into());
    let sent = "set a 0 0 1\r\n0\r\n".to_owned() + &"incr a 1\r\n".repeat(2000);
    let replies = (1..=2000).map(|i| format!("{i}\r\n")).collect::<String>();
    open(sent.into(), format!("STORED\r\n{replies}").into());

    // Lines that do not end: closed once they are longer than 2048 bytes, but for the lists of get and gets.
    for start in ["x", "set a 0 0 1 ", "gat 0 ", "delete ", "GET "] {
        let line = start.to_owned() + &"k".repeat(2100);
        all.push((format!("get a\r\n{line}").into(), b"END\r\n".into(), Closed));
    }
    all.push((vec![b' '; 3000], Vec::new(), Closed));
    // The binary protocol's SET, whose value would be a command here.
    let mut binary = b"\x80\x01\x00\x01\x08\x00\x00\x00\x00\x00\x00\x15".to_vec();
    binary.extend([0; 20]);
    binary.extend(b"k\nflush_all\r\n");
    all.push((binary, Vec::new(), Closed));
    // More flushes than may await their sweep: the next ones are late, and nobody else waits for them.
    let flushes = b"set a 0 0 1\r\nx\r\nflush_all\r\nget a\r\n".repeat(20);
    all.push((flushes, b"STORED\r\nOK\r\nEND\r\n".repeat(20), Open));
    all
}

/// A value that differs at every place from its neighbours, with line ends in it.
fn value(size: usize) -> Vec<u8> {
    (0..size).map(|at| if at % 77 == 0 { b'\n' } else { (at * 7 + at / 251 + size) as u8 }).collect()
}

fn storing(verb: &str, key: &str, flags: u32, value: &[u8], extra: &str) -> Vec<u8> {
    let line = format!("{verb} {key} {flags} 0 {}{extra}\r\n", value.len());
    [line.as_bytes(), value, b"\r\n"].concat()
}

fn set(key: &str, flags: u32, value: &[u8], then: &str) -> Vec<u8> {
    [storing("set", key, flags, value, "").as_slice(), then.as_bytes()].concat()
}

/// A reply that ends with these values.
fn replied(before: &str, values: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut reply = before.as_bytes().to_vec();
    for (key, flags, value) in values {
        reply.extend_from_slice(format!("VALUE {key} {flags} {}\r\n", value.len()).as_bytes());
        reply.extend_from_slice(value);
        reply.extend_from_slice(b"\r\n");
    }
    reply.extend_from_slice(b"END\r\n");
    reply
}

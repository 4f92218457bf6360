//! Published figures as tables of numbers, built into the program: the format of `research/workload/tables`.
//!
//! A line is a word, which says what it tells, and its fields, with blanks between them. A line that begins with `#` is
//! for readers: each table opens with where its figures come from, under which licence, and what was done to them. The
//! tables are written by a test (`tests/published_data.rs`, with `LOOKASIDE_BLESS=1`) from the published files, which
//! are not part of this repository: neighbours are put together until some hundred numbers are left.

use std::fmt::Debug;
use std::str::FromStr;

/// A table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table(&'static str);

/// The tables, by name.
const ALL: [(&str, &str); 10] = [
    ("cdn", include_str!("../tables/cdn.table")),
    ("fb-cdn", include_str!("../tables/fb-cdn.table")),
    ("graph_cache_follower_assocs", include_str!("../tables/graph_cache_follower_assocs.table")),
    ("graph_cache_follower_fbobj", include_str!("../tables/graph_cache_follower_fbobj.table")),
    ("graph_cache_leader_assocs", include_str!("../tables/graph_cache_leader_assocs.table")),
    ("graph_cache_leader_fbobj", include_str!("../tables/graph_cache_leader_fbobj.table")),
    ("kvcache_reg", include_str!("../tables/kvcache_reg.table")),
    ("orm-busy", include_str!("../tables/orm-busy.table")),
    ("web07", include_str!("../tables/web07.table")),
    ("words", include_str!("../tables/words.table")),
];

impl Table {
    pub(crate) fn named(name: &str) -> Option<Table> {
        ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| Table(text))
    }

    /// The names of the tables that have lines of this word.
    pub(crate) fn names_with(word: &'static str) -> impl Iterator<Item = &'static str> {
        ALL.into_iter().filter(move |(_, text)| Table(text).rows(word).next().is_some()).map(|(name, _)| name)
    }

    /// The fields of each line that begins with `word`.
    pub(crate) fn rows(self, word: &str) -> impl Iterator<Item = Vec<&'static str>> {
        self.0.lines().filter_map(move |line| {
            let mut fields = line.split_ascii_whitespace();
            (fields.next() == Some(word)).then(|| fields.collect())
        })
    }

    /// The fields of each line that begins with `word`, as numbers.
    pub(crate) fn numbers<T: FromStr<Err: Debug>>(self, word: &str) -> impl Iterator<Item = Vec<T>> {
        self.rows(word).map(|fields| fields.into_iter().map(number).collect())
    }

    /// The one number of the one line that begins with `word`.
    pub(crate) fn number<T: FromStr<Err: Debug>>(self, word: &str) -> T {
        number(self.rows(word).next().expect("the table has the line")[0])
    }
}

/// A number of a table. The tables are part of the program, and a test reads all of them.
pub(crate) fn number<T: FromStr<Err: Debug>>(field: &str) -> T {
    field.parse().expect("the tables hold numbers")
}

//! How a trace is to be read, for the commands that read one.

use workload::trace::{Choice, Format};

#[derive(clap::Args)]
pub(crate) struct Reading {
    /// The trace's format, where its content does not tell: keys (one a line), be32 (big-endian 32-bit keys, as
    /// cache2k's), oracleGeneral (libCacheSim's), meta-cdn, meta-kv or twitter
    #[arg(long, value_name = "FORMAT", conflicts_with = "column")]
    format: Option<Format>,
    /// The column that holds the keys, in a comma-separated text with a header
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
}

impl Reading {
    pub(crate) fn choice(&self) -> Choice {
        Choice { format: self.format, column: self.column.clone() }
    }
}

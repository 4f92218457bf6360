//! `lookaside-lab advise`: whether a table in front of an index pays for the requests of a trace, and of which size.

use std::process::ExitCode;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use lab::advice::{Advice, Kept, KeyTrace, MeasuredIndex, Question};
use lookaside_cli::output::{Outcome, print};

use crate::trace::Reading;

#[derive(clap::Args)]
#[command(after_help = "\
The trace is a text with one key a line; a comma-separated text with a header, whose column of keys --column
names; or one of the recorded formats: libCacheSim's oracleGeneral, Meta's CDN, Meta's key-value caches,
Twitter's clusters. It is read through gzip, xz and Zstandard. What its content does not tell, --format says.

What it does: every key is looked up in tables of several sizes, in the trace's order, with made-up entries. A
table that answers a share r of the lookups and takes t nanoseconds for each pays before an index whose
lookups take more than t / r: that is the break-even. What the index takes is given (--index-cost) or measured
with a map of the standard library (--index); without either, both maps are measured. 'ideal' is what a cache
of as many entries would answer that knows what will be asked: where it is low, no table helps.

Leave the table out where the advice says so: before an index that is about as fast as the table, or where
keys seldom come again. Run it on a machine that does nothing else, and with a trace as long as the table
lives: a short one is all warm-up. It does not know what batches gain, and how threads share a table.
Examples:
  lookaside-lab advise generated/orm-busy
  lookaside-lab advise requests.csv.gz --column user_id --index-cost 350
  lookaside-lab advise keys.bin --format be32
  grep -o 'user=[0-9]*' access.log | lookaside-lab advise -
  lookaside-lab advise keys.txt --sizes 256K,1M,4M --table slb --index btree --json")]
pub(crate) struct Arguments {
    /// The trace: a path, - for standard input, one that is generated, or a name in the folder of recorded ones
    /// (LOOKASIDE_DATA)
    trace: String,
    #[command(flatten)]
    reading: Reading,
    /// No more requests than this
    #[arg(long, value_name = "REQUESTS")]
    most: Option<usize>,
    /// Sizes of the tables, in bytes or with K, M or G [default: five, up to the one that has room for all keys]
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', value_parser = bytes)]
    sizes: Vec<usize>,
    /// The tables to try [default: those of the library]
    #[arg(long, value_name = "TABLE,...", value_delimiter = ',')]
    table: Vec<TableName>,
    /// What a lookup of your index takes, in nanoseconds; several, to compare
    #[arg(long, value_name = "NANOSECONDS,...", value_delimiter = ',')]
    index_cost: Vec<f64>,
    /// Measure an index of the trace's keys [default: both, unless --index-cost is given]
    #[arg(long, value_name = "INDEX,...", value_delimiter = ',')]
    index: Vec<IndexName>,
    /// Bytes of an entry, key and value
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "88")]
    entry_bytes: usize,
    /// The share of the trace that only warms up
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    warm_up: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum TableName {
    /// The Search Lookaside Buffer as it is by default, but of one size: every miss enters, the coldest leaves
    Slb,
    /// The same to the letter of its paper: a log, four times as large, decides who enters
    SlbPaper,
    /// STLT-SW, four ways, for comparison: it is in no library
    Stlt,
}

#[derive(Clone, Copy, ValueEnum)]
enum IndexName {
    /// The standard library's BTreeMap
    Btree,
    /// The standard library's HashMap
    Hash,
}

/// A number of bytes, like 4096, 64K or 1M.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "bytes are written like 4096, 64K, 16M or 1G".to_owned())
}

impl Arguments {
    fn question(&self) -> Question {
        let tables = self.table.iter().map(|table| match table {
            TableName::Slb => Kept::Slb,
            TableName::SlbPaper => Kept::SlbPaper,
            TableName::Stlt => Kept::Stlt,
        });
        let indexes = self.index.iter().map(|index| match index {
            IndexName::Btree => MeasuredIndex::BTree,
            IndexName::Hash => MeasuredIndex::Hash,
        });
        Question {
            sizes: self.sizes.clone(),
            tables: if self.table.is_empty() { vec![Kept::Slb, Kept::SlbPaper] } else { tables.collect() },
            warm_up: self.warm_up,
            entry_bytes: self.entry_bytes,
            index_costs: self.index_cost.clone(),
            indexes: if self.index.is_empty() && self.index_cost.is_empty() {
                vec![MeasuredIndex::BTree, MeasuredIndex::Hash]
            } else {
                indexes.collect()
            },
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let style = ProgressStyle::with_template("[{elapsed_precise}] {bar:30} {percent} % {wide_msg}")
        .expect("the template is well-formed");
    // Shows itself only if standard error is a terminal.
    let bar = ProgressBar::new(0).with_style(style);
    let most = arguments.most.unwrap_or(usize::MAX);
    let trace = KeyTrace::read(&arguments.trace, &arguments.reading.choice(), most, &bar)?;
    let advice = Advice::on(&trace, &arguments.question(), &bar)?;
    bar.finish_and_clear();
    if arguments.json {
        print(format_args!("{}\n", advice.to_json()))?;
    } else {
        print(format_args!("{advice}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!((bytes("64"), bytes("64K"), bytes("3m")), (Ok(64), Ok(65_536), Ok(3 << 20)));
        for refused in ["", "K", "1T", "-1", "1.5M", "99999999999999999999G", "20000000000G"] {
            assert!(bytes(refused).is_err(), "{refused}");
        }
    }
}

//! The advice as text: what is asked for, a table of the tables, and a sentence for each index.

use std::fmt;

use super::{Advice, Kept, Offer, Verdict};
use crate::report::Table;

/// Bytes in words: `64 KiB`.
pub(super) fn bytes(bytes: usize) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let (mut whole, mut unit) = (bytes, 0);
    while unit + 1 < UNITS.len() && whole >= 1024 && whole.is_multiple_of(1024) {
        (whole, unit) = (whole / 1024, unit + 1);
    }
    format!("{whole} {}", UNITS[unit])
}

/// A number with commas: `76,349`.
fn grouped(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kept::Slb => "slb",
            Kept::SlbPaper => "slb-paper",
            Kept::Stlt => "stlt",
        })
    }
}

impl Advice {
    fn lowest_break_even(&self) -> Option<&Offer> {
        let hitting = self.offers.iter().filter(|offer| offer.break_even.is_some());
        hitting.min_by(|one, other| {
            one.break_even.unwrap_or_default().total_cmp(&other.break_even.unwrap_or_default())
        })
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = &self.working_set;
        writeln!(
            f,
            "{} lookups, {} writes, {} deletes; {} keys, {} with entries of {} bytes",
            grouped(set.lookups),
            grouped(set.writes),
            grouped(set.deletes),
            grouped(set.keys as u64),
            bytes_about(set.keys * self.entry_bytes),
            self.entry_bytes,
        )?;
        writeln!(
            f,
            "working set: {} keys get half of the lookups, {} get 90 %, {} get 99 %",
            grouped(set.keys_of_half as u64),
            grouped(set.keys_of_90_percent as u64),
            grouped(set.keys_of_99_percent as u64),
        )?;
        writeln!(
            f,
            "counted after a warm-up of {} % of the trace; times in nanoseconds a lookup",
            percent(self.warm_up)
        )?;
        for index in &self.indexes {
            writeln!(f, "{} alone: {:.1}", index.name, index.nanoseconds)?;
        }
        let mut head =
            vec!["table", "size", "memory", "entries", "hits %", "ideal %", "table's own", "break-even"];
        let befores: Vec<_> = self.indexes.iter().map(|index| format!("before {}", index.name)).collect();
        head.extend(befores.iter().map(String::as_str));
        let mut table = Table::new(head);
        for offer in &self.offers {
            let mut line = vec![
                offer.table.to_string(),
                bytes(offer.size),
                bytes(offer.bytes),
                offer.entries.to_string(),
                percent(offer.hit_ratio),
                percent(offer.ideal_hit_ratio),
                format!("{:.1}", offer.nanoseconds),
                offer.break_even.map_or_else(|| "never".into(), |at| format!("{at:.1}")),
            ];
            for (index, with) in self.indexes.iter().zip(&offer.with) {
                line.push(format!("{with:.1} ({:.2} x)", index.nanoseconds / with));
            }
            table.add(line);
        }
        write!(f, "\n{table}")?;
        writeln!(f)?;
        for (index, verdict) in self.indexes.iter().zip(&self.verdicts) {
            match verdict {
                Verdict::Use { offer, gain } => {
                    let offer = &self.offers[*offer];
                    writeln!(
                        f,
                        "Before {}, use {} of {}: lookups {gain:.2} times as fast, {} % of them without the index.",
                        index.name,
                        offer.table,
                        bytes(offer.size),
                        percent(offer.hit_ratio),
                    )?;
                }
                Verdict::LeaveOut { gain } => writeln!(
                    f,
                    "Before {}, leave it out: lookups would be {gain:.2} times as fast at best.",
                    index.name
                )?,
            }
        }
        match self.lowest_break_even() {
            Some(offer) => writeln!(
                f,
                "Break-even: leave it out before any index whose lookup takes less than {:.0} ns ({} of {}).",
                offer.break_even.unwrap_or_default(),
                offer.table,
                bytes(offer.size),
            ),
            None => writeln!(f, "No table ever hits: leave it out before any index."),
        }
    }
}

/// Bytes in words, cut to a whole unit.
fn bytes_about(count: usize) -> String {
    match count {
        0..10_240 => format!("{count} B"),
        10_240..10_485_760 => format!("{} KiB", count >> 10),
        _ => format!("{} MiB", count >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(
            (bytes(1 << 20), bytes(1536), bytes(64)),
            ("1 MiB".into(), "1536 B".into(), "64 B".into())
        );
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
        assert_eq!(bytes_about(76_349 * 88), "6561 KiB");
    }
}

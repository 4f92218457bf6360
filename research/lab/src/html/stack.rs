//! Metrics that are parts of a sum, as one picture: a bar for each configuration and point, its parts side by side.
//!
//! A metric whose name begins with one of [`SUMS`] is such a part: `cycles: memory` is the cycles that went by waiting
//! for memory. The parts have the colours of the palette, in the order in which they were measured; the legend is the
//! page's affair.

use super::ChartError;
use super::axis::{Axis, PALETTE};
use super::bars::{self, Bar};
use crate::results::Row;

/// What the names of parts begin with.
pub(super) const SUMS: [&str; 2] = ["cycles: ", "share: "];

/// The room that bars have.
const ROOM: u32 = 600;

/// The bars of one sum.
pub(super) struct Stack<'r> {
    /// The parts' names, without what they begin with.
    pub(super) parts: Vec<&'r str>,
    bars: Vec<Bar>,
}

impl<'r> Stack<'r> {
    /// The bars of the rows whose metrics begin with `sum`; none if there are no parts.
    pub(super) fn of(sum: &str, rows: &[&'r Row]) -> Option<Stack<'r>> {
        let parts_of = |row: &&'r Row| row.metric.strip_prefix(sum);
        let parts = super::distinct(rows.iter().filter_map(parts_of));
        let mut bars: Vec<Bar> = Vec::new();
        for row in rows {
            let Some(part) = parts_of(row) else { continue };
            let point = if row.point.is_empty() { String::new() } else { format!(", {}", row.point) };
            let name = format!("{}{point}", row.configuration);
            let at = bars.iter().position(|bar| bar.name == name).unwrap_or_else(|| {
                let colors = PALETTE.iter().cycle().take(parts.len());
                let parts = colors.map(|(color, _)| (0.0, *color)).collect();
                bars.push(Bar { name, parts, spread: None, marks: Vec::new() });
                bars.len() - 1
            });
            if let Some(place) = parts.iter().position(|known| *known == part) {
                bars[at].parts[place].0 = row.median.max(0.0);
            }
        }
        // What is nothing is not drawn.
        bars.iter_mut().for_each(|bar| bar.parts.retain(|(size, _)| *size > 0.0));
        (parts.len() > 1).then_some(Stack { parts, bars })
    }

    /// The picture.
    pub(super) fn draw(&self) -> Result<String, ChartError> {
        let sum = |bar: &Bar| bar.parts.iter().map(|(size, _)| size).sum::<f64>();
        let most = self.bars.iter().map(sum).fold(f64::MIN_POSITIVE, f64::max);
        bars::draw(&self.bars, Axis::Linear { from: 0.0, to: most * 1.02 }, ROOM)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::row;

    #[test]
    fn parts_are_drawn_one_behind_the_other() {
        let rows = [
            row("map, alone", "", "cycles: base", 100.0),
            row("map, alone", "", "cycles: memory", 300.0),
            row("map, STLT", "", "cycles: base", 50.0),
            row("map, STLT", "", "cycles: memory", 0.0),
            row("map, STLT", "", "cycles", 50.0),
        ];
        let rows: Vec<_> = rows.iter().collect();
        let stack = Stack::of("cycles: ", &rows).expect("two parts");
        assert_eq!(stack.parts, ["base", "memory"]);
        let bars: Vec<_> = stack
            .bars
            .iter()
            .map(|bar| (bar.name.as_str(), bar.parts.iter().map(|part| part.0).collect()))
            .collect();
        assert_eq!(bars, [("map, alone", vec![100.0, 300.0]), ("map, STLT", vec![50.0])]);
        let svg = stack.draw().expect("a picture");
        assert_eq!(
            (svg.matches("fill=\"#1B6FB5\"").count(), svg.matches("fill=\"#C8550B\"").count()),
            (2, 1)
        );
        assert!(svg.contains("\n400\n"), "the sum stands behind the bar: {svg}");
        assert!(Stack::of("share: ", &rows).is_none());
    }
}

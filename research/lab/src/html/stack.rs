//! Metrics that are parts of a sum, as one picture: a bar for each configuration and point, its parts side by side.
//!
//! A metric whose name begins with one of [`SUMS`] is such a part: `cycles: memory` is the cycles that went by waiting
//! for memory. The parts have the colours of the palette, in the order in which they were measured; the legend is the
//! page's affair.

use plotters::prelude::*;

use super::ChartError;
use super::chart::{CHARACTER, GRID, PALETTE, TEXT, short, shortened, text};
use crate::results::Row;
use plotters::style::text_anchor::{HPos, VPos};

/// What the names of parts begin with.
pub(super) const SUMS: [&str; 2] = ["cycles: ", "share: "];

const WIDTH: u32 = 980;
const BAR: u32 = 20;

/// The bars of one sum.
pub(super) struct Stack<'r> {
    /// The parts' names, without what they begin with.
    pub(super) parts: Vec<&'r str>,
    /// Names of the bars, and the size of each part.
    bars: Vec<(String, Vec<f64>)>,
}

impl<'r> Stack<'r> {
    /// The bars of the rows whose metrics begin with `sum`; none if there are no parts.
    pub(super) fn of(sum: &str, rows: &[&'r Row]) -> Option<Stack<'r>> {
        let parts_of = |row: &&'r Row| row.metric.strip_prefix(sum);
        let parts = super::distinct(rows.iter().filter_map(parts_of));
        let mut bars: Vec<(String, Vec<f64>)> = Vec::new();
        for row in rows {
            let Some(part) = parts_of(row) else { continue };
            let point = if row.point.is_empty() { String::new() } else { format!(", {}", row.point) };
            let name = format!("{}{point}", row.configuration);
            let at = bars.iter().position(|bar| bar.0 == name).unwrap_or_else(|| {
                bars.push((name, vec![0.0; parts.len()]));
                bars.len() - 1
            });
            if let Some(place) = parts.iter().position(|known| *known == part) {
                bars[at].1[place] = row.median.max(0.0);
            }
        }
        (parts.len() > 1).then_some(Stack { parts, bars })
    }

    /// The picture.
    pub(super) fn draw(&self) -> Result<String, ChartError> {
        let mut svg = String::new();
        self.draw_bars(&mut svg).map_err(|error| ChartError(error.to_string()))?;
        Ok(svg)
    }

    fn draw_bars(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let longest = self.bars.iter().map(|bar| shortened(&bar.0).chars().count()).max().unwrap_or(0);
        let left = longest as f64 * CHARACTER + 12.0;
        let most = self.bars.iter().map(|bar| bar.1.iter().sum::<f64>()).fold(f64::MIN_POSITIVE, f64::max);
        let area =
            SVGBackend::with_string(svg, (WIDTH, self.bars.len() as u32 * BAR + 34)).into_drawing_area();
        let mut chart = ChartBuilder::on(&area)
            .margin(4)
            .margin_right(58)
            .set_label_area_size(LabelAreaPosition::Left, left as u32)
            .set_label_area_size(LabelAreaPosition::Bottom, 22)
            .build_cartesian_2d(0.0..most * 1.02, self.bars.len() as f64..0.0)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_labels(8)
            .x_label_formatter(&|at| short(*at))
            .label_style(("sans-serif", TEXT))
            .axis_style(GRID.0)
            .bold_line_style(GRID.0)
            .light_line_style(TRANSPARENT)
            .draw()?;
        let (names, values) = (text(HPos::Right, VPos::Center), text(HPos::Left, VPos::Center));
        for (at, (name, parts)) in self.bars.iter().enumerate() {
            let middle = at as f64 + 0.5;
            let mut from = 0.0;
            for (part, size) in parts.iter().enumerate().filter(|part| *part.1 > 0.0) {
                let bar = [(from, middle - 0.36), (from + size, middle + 0.36)];
                chart.draw_series([Rectangle::new(bar, PALETTE[part % PALETTE.len()].0.filled())])?;
                from += size;
            }
            let start = EmptyElement::at((0.0, middle));
            chart.draw_series([start + Text::new(shortened(name), (-6, 0), names.clone())])?;
            let end = EmptyElement::at((from, middle));
            chart.draw_series([end + Text::new(short(from), (8, 0), values.clone())])?;
        }
        area.present()?;
        Ok(())
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
        assert_eq!(
            stack.bars,
            [("map, alone".into(), vec![100.0, 300.0]), ("map, STLT".into(), vec![50.0, 0.0])]
        );
        let svg = stack.draw().expect("a picture");
        assert_eq!(
            (svg.matches("fill=\"#1B6FB5\"").count(), svg.matches("fill=\"#C8550B\"").count()),
            (2, 1)
        );
        assert!(svg.contains("\n400\n"), "the sum stands behind the bar: {svg}");
        assert!(Stack::of("share: ", &rows).is_none());
    }
}

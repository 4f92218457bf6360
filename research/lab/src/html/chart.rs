//! One metric of one experiment as a picture: bars, or lines where there is an axis.
//!
//! Drawn by `plotters` into SVG text, in the colours of a light page; the page's style replaces them on a dark one, by
//! the very colour that stands in an attribute ([`PALETTE`]). So a picture that is taken out of the page is still
//! complete.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::ChartError;
use super::axis::{Axis, CHARACTER, GRID, INK, PALETTE, TEXT, diamond, short, shortened, text};
use super::bars::{self, Bar};
use crate::results::Row;

const NARROW: u32 = 480;
const WIDE: u32 = 980;
/// The room that bars have.
const BARS: u32 = 300;
/// Between the largest and the smallest number, more than this is drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 300.0;

/// A number of the paper's in a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) configuration: String,
    /// None: at every point.
    pub(super) point: Option<String>,
    pub(super) value: f64,
}

/// What a picture is drawn of.
pub(super) struct Panel<'r> {
    /// The rows, all of one metric.
    pub(super) rows: Vec<&'r Row>,
    /// What their points have in common, which is not written at each of them.
    pub(super) group: &'r str,
    /// All configurations of the experiment: the place in the list is the colour.
    pub(super) configurations: &'r [&'r str],
    pub(super) marks: Vec<Mark>,
    /// Whether lines begin where the numbers do, instead of at zero.
    pub(super) is_close: bool,
}

impl Panel<'_> {
    /// The point as it is written: without what the panel says already.
    fn label<'p>(&self, point: &'p str) -> &'p str {
        point.strip_prefix(self.group).map_or(point, |rest| rest.trim_start_matches([',', ' ']))
    }

    /// The points, in order.
    fn points(&self) -> Vec<&str> {
        let mut points = Vec::new();
        for row in &self.rows {
            if !points.contains(&row.point.as_str()) {
                points.push(&row.point);
            }
        }
        points
    }

    /// The point that all numbers are at, if they are at one: it is said once, above the picture.
    fn common_point(&self) -> Option<&str> {
        match self.points()[..] {
            [""] => None,
            [only] => Some(only),
            _ => None,
        }
    }

    /// What is said of it beside the metric: a point that all share tells the group as well.
    pub(super) fn place(&self) -> &str {
        self.common_point().unwrap_or(self.group)
    }

    /// Whether the points make an axis.
    pub(super) fn has_axis(&self) -> bool {
        self.points().len() > 2
    }

    fn color(&self, configuration: &str) -> RGBColor {
        let at = self.configurations.iter().position(|known| *known == configuration).unwrap_or(0);
        PALETTE[at % PALETTE.len()].0
    }

    fn marks_at<'p>(&'p self, configuration: &'p str, point: &'p str) -> impl Iterator<Item = &'p Mark> {
        self.marks.iter().filter(move |mark| {
            mark.configuration == configuration && mark.point.as_ref().is_none_or(|at| at == point)
        })
    }

    /// From zero, or from a power of ten on a logarithmic axis, to a little more than the largest number; of lines that
    /// are looked at closely, from a little less than the smallest.
    fn axis(&self) -> Axis {
        let spread = self.rows.iter().flat_map(|row| [row.minimum, row.median, row.maximum]);
        let numbers = spread.chain(self.marks.iter().map(|mark| mark.value));
        let (mut least, mut most, mut below) = (f64::INFINITY, 0.0_f64, 0.0_f64);
        for number in numbers {
            most = most.max(number);
            below = below.min(number);
            if number > 0.0 {
                least = least.min(number);
            }
        }
        let positive = self.rows.iter().all(|row| row.minimum > 0.0);
        if positive && most / least > LOGARITHMIC_FROM {
            return Axis::Logarithmic { from: 10f64.powf(least.log10().floor()), to: most * 1.5 };
        }
        if self.is_close && self.has_axis() && most > least {
            let low = if below < 0.0 { below } else { least };
            let around = (most - low) * 0.08;
            return Axis::Linear { from: low - around, to: most + around };
        }
        let most = if most == 0.0 && below == 0.0 { 1.0 } else { most };
        Axis::Linear { from: below * 1.08, to: most * 1.08 }
    }

    /// The picture.
    pub(super) fn draw(&self) -> Result<String, ChartError> {
        if !self.has_axis() {
            return bars::draw(&self.bars(), self.axis(), BARS);
        }
        let mut svg = String::new();
        self.draw_lines(&mut svg).map_err(|error| ChartError(error.to_string()))?;
        Ok(svg)
    }

    /// A bar for each number.
    fn bars(&self) -> Vec<Bar> {
        let bar = |row: &&Row| {
            let point = self.label(&row.point);
            let name = if point.is_empty() || self.common_point().is_some() {
                row.configuration.clone()
            } else {
                format!("{}, {point}", row.configuration)
            };
            Bar {
                name,
                parts: vec![(row.median, self.color(&row.configuration))],
                spread: (row.minimum < row.maximum).then_some((row.minimum, row.maximum)),
                marks: self.marks_at(&row.configuration, &row.point).map(|mark| mark.value).collect(),
            }
        };
        // What is at one point stands together.
        let points = self.points();
        let mut rows = self.rows.clone();
        rows.sort_by_key(|row| points.iter().position(|point| *point == row.point));
        rows.iter().map(bar).collect()
    }

    /// A line for each configuration over the points, which stand side by side in the order of the results.
    fn draw_lines(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let points = self.points();
        let labels: Vec<_> = points.iter().map(|point| shortened(self.label(point))).collect();
        let longest = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0) as f64 * CHARACTER;
        let wanted = points.len() as f64 * (longest + 14.0) + 90.0;
        let width = (wanted as u32).clamp(NARROW, WIDE);
        // Where not even the wide picture has room for all labels, every other one, or every third, is written.
        let every = (wanted / f64::from(width)).ceil().max(1.0) as usize;
        let axis = self.axis();
        {
            let area = SVGBackend::with_string(svg, (width, 270)).into_drawing_area();
            let mut chart = ChartBuilder::on(&area)
                .margin(6)
                .margin_right(14)
                .set_label_area_size(LabelAreaPosition::Left, 58)
                .set_label_area_size(LabelAreaPosition::Bottom, 24)
                .build_cartesian_2d(-0.35..points.len() as f64 - 0.65, axis.scaled())?;
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_labels(0)
                .y_labels(6)
                .y_label_formatter(&|at| short(axis.unscale(*at)))
                .label_style(("sans-serif", TEXT).with_color(INK.0))
                .axis_style(GRID.0)
                .bold_line_style(GRID.0)
                .light_line_style(TRANSPARENT)
                .draw()?;
            let below = text(HPos::Center, VPos::Top);
            for (at, label) in labels.into_iter().enumerate().step_by(every) {
                let place = EmptyElement::at((at as f64, axis.start()));
                chart.draw_series([place + Text::new(label, (0, 8), below.clone())])?;
            }
            for &configuration in self.configurations {
                let color = self.color(configuration);
                let own: Vec<_> = points
                    .iter()
                    .enumerate()
                    .filter_map(|(at, point)| {
                        let mut rows = self.rows.iter();
                        let row = rows.find(|row| row.configuration == configuration && row.point == *point);
                        row.map(|row| (at as f64, row))
                    })
                    .collect();
                let y = |value| axis.scale(value);
                let line = own.iter().map(|(at, row)| (*at, y(row.median)));
                chart.draw_series([PathElement::new(line.collect::<Vec<_>>(), color.stroke_width(2))])?;
                for &(at, row) in &own {
                    if row.minimum < row.maximum {
                        let spread = [(at, y(row.minimum)), (at, y(row.maximum))];
                        chart.draw_series([PathElement::new(spread, color)])?;
                    }
                    chart.draw_series([Circle::new((at, y(row.median)), 3, color.filled())])?;
                    for mark in self.marks_at(configuration, &row.point) {
                        chart.draw_series([EmptyElement::at((at, y(mark.value))) + diamond()])?;
                    }
                }
            }
            area.present()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::SHOWN;
    use super::*;
    use crate::results::row;

    fn panel<'r>(rows: &'r [Row], configurations: &'r [&'r str], group: &'r str) -> Panel<'r> {
        Panel { rows: rows.iter().collect(), group, configurations, marks: Vec::new(), is_close: false }
    }

    fn count(svg: &str, part: &str) -> usize {
        svg.matches(part).count()
    }

    #[test]
    fn numbers_without_an_axis_are_bars() {
        let rows = [
            row("ours", "1 thread", "speed", 10.0),
            Row { minimum: 1.0, maximum: 7.0, ..row("theirs & <co>", "1 thread", "speed", 5.0) },
        ];
        let mut panel = panel(&rows, &["ours", "theirs & <co>"], "");
        panel.marks.push(Mark { configuration: "ours".into(), point: None, value: 8.0 });
        assert!(!panel.has_axis());
        let svg = panel.draw().unwrap();
        assert_eq!((count(&svg, "fill=\"#1B6FB5\""), count(&svg, "fill=\"#C8550B\"")), (1, 1));
        assert_eq!(count(&svg, "<polygon"), 1, "the paper's mark");
        assert!(svg.contains("\ntheirs &amp; &lt;co&gt;\n"), "{svg}");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn numbers_along_an_axis_are_lines() {
        let points = ["a, 1 %", "a, 2 %", "a, 3 %"];
        let rows: Vec<_> = points.iter().map(|point| row("ours", point, "speed", 3.0)).collect();
        let svg = panel(&rows, &["ours"], "a").draw().unwrap();
        assert_eq!((count(&svg, "<circle"), count(&svg, "stroke-width=\"2\"")), (3, 1));
        assert!(svg.contains("\n1 %\n") && !svg.contains("a, 1 %"), "{svg}");
    }

    #[test]
    fn an_axis_begins_at_zero_unless_it_has_to_be_logarithmic() {
        let linear = [row("a", "", "m", 2.0), row("b", "", "m", 100.0)];
        assert_eq!(panel(&linear, &["a", "b"], "").axis(), Axis::Linear { from: 0.0, to: 108.0 });
        let wide = [row("a", "", "m", 2.0), row("b", "", "m", 10_000.0)];
        assert_eq!(panel(&wide, &["a", "b"], "").axis(), Axis::Logarithmic { from: 1.0, to: 15_000.0 });
        let close = ["1", "2", "3"].map(|point| row("a", point, "m", 40.0 + point.len() as f64));
        let mut close = panel(&close, &["a"], "");
        close.rows[0] = &linear[0];
        close.is_close = true;
        assert_eq!(close.axis(), Axis::Linear { from: 2.0 - 39.0 * 0.08, to: 41.0 + 39.0 * 0.08 });
        let nothing = [row("a", "", "m", 0.0)];
        assert_eq!(panel(&nothing, &["a"], "").axis(), Axis::Linear { from: 0.0, to: 1.08 });
    }

    #[test]
    fn numbers_on_an_axis_are_short() {
        let words: Vec<_> =
            [0.0, 0.00001, 0.02, 0.5, 5.5, 25.0, 250.0, 25_000.0, 2.5e6, 3e6].map(short).to_vec();
        assert_eq!(words, ["0", "1e-5", "0.02", "0.5", "5.5", "25", "250", "25k", "2.5M", "3M"]);
        assert_eq!(shortened(&"x".repeat(70)).chars().count(), SHOWN);
    }
}

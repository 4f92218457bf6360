//! Bars, one below the other, each named at its left, with its number at its right.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::ChartError;
use super::axis::{Axis, CHARACTER, GRID, INK, TEXT, diamond, short, shortened, text};

/// The height of a bar, with what parts it from the next.
const BAR: u32 = 22;

/// A bar.
#[derive(Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) name: String,
    /// The size of each part and its colour: they lie one behind the other.
    pub(super) parts: Vec<(f64, RGBColor)>,
    /// The extremes, where they are shown.
    pub(super) spread: Option<(f64, f64)>,
    /// The paper's numbers.
    pub(super) marks: Vec<f64>,
}

impl Bar {
    fn size(&self) -> f64 {
        self.parts.iter().map(|(size, _)| size).sum()
    }
}

/// The picture of these bars, with at least so much room for them.
pub(super) fn draw(bars: &[Bar], axis: Axis, room: u32) -> Result<String, ChartError> {
    let mut svg = String::new();
    draw_into(&mut svg, bars, axis, room).map_err(|error| ChartError(error.to_string()))?;
    Ok(svg)
}

fn draw_into(
    svg: &mut String,
    bars: &[Bar],
    axis: Axis,
    room: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let longest = bars.iter().map(|bar| shortened(&bar.name).chars().count()).max().unwrap_or(0);
    let left = (longest as f64 * CHARACTER + 12.0) as u32;
    let size = (left + room, bars.len() as u32 * BAR + 34);
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(4)
        // Room for the number behind the longest bar.
        .margin_right(58)
        .set_label_area_size(LabelAreaPosition::Left, left)
        .set_label_area_size(LabelAreaPosition::Bottom, 22)
        .build_cartesian_2d(axis.scaled(), bars.len() as f64..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(0)
        .x_labels(5)
        .x_label_formatter(&|at| short(axis.unscale(*at)))
        .label_style(("sans-serif", TEXT).with_color(INK.0))
        .axis_style(GRID.0)
        .bold_line_style(GRID.0)
        .light_line_style(TRANSPARENT)
        .draw()?;
    let (names, values) = (text(HPos::Right, VPos::Center), text(HPos::Left, VPos::Center));
    for (at, bar) in bars.iter().enumerate() {
        let (middle, x) = (at as f64 + 0.5, |value| axis.scale(value));
        let mut sum = 0.0;
        for &(size, color) in &bar.parts {
            let from = if sum == 0.0 { axis.base() } else { sum };
            sum += size;
            let part = [(x(from), middle - 0.32), (x(sum), middle + 0.32)];
            chart.draw_series([Rectangle::new(part, color.filled())])?;
        }
        // Behind the bar, and of one that goes to the left, behind where it began.
        let mut end = bar.size().max(axis.base());
        if let Some((least, most)) = bar.spread {
            chart.draw_series([PathElement::new([(x(least), middle), (x(most), middle)], INK.0)])?;
            end = end.max(most);
        }
        for &mark in &bar.marks {
            chart.draw_series([EmptyElement::at((x(mark), middle)) + diamond()])?;
            end = end.max(mark);
        }
        let start = EmptyElement::at((axis.start(), middle));
        chart.draw_series([start + Text::new(shortened(&bar.name), (-6, 0), names.clone())])?;
        let end = EmptyElement::at((x(end), middle));
        chart.draw_series([end + Text::new(short(bar.size()), (8, 0), values.clone())])?;
    }
    area.present()?;
    Ok(())
}

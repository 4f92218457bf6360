//! What all pictures share: their colours, their text, and the axis of their numbers.
//!
//! Labels are placed here rather than by the library, which does not know how wide a text is and leaves room by guess:
//! a character is taken to be [`CHARACTER`] wide.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Colours of the series: on a light page, and on a dark one. They can be told apart by those who see no red or green,
/// too.
pub(super) const PALETTE: [(RGBColor, &str); 8] = [
    (RGBColor(0x1B, 0x6F, 0xB5), "#6CB6F5"),
    (RGBColor(0xC8, 0x55, 0x0B), "#F59B5B"),
    (RGBColor(0x0B, 0x7F, 0x64), "#4FCFAE"),
    (RGBColor(0x96, 0x3D, 0x97), "#D68BD7"),
    (RGBColor(0x8A, 0x6D, 0x00), "#D9BC4A"),
    (RGBColor(0x5A, 0x5F, 0x68), "#A9B0BA"),
    (RGBColor(0xB3, 0x2D, 0x45), "#F2879A"),
    (RGBColor(0x3F, 0x4F, 0xB8), "#98A5FF"),
];
/// Text and spreads.
pub(super) const INK: (RGBColor, &str) = (RGBColor(0x20, 0x24, 0x2A), "#E4E7EB");
/// Lines of the grid.
pub(super) const GRID: (RGBColor, &str) = (RGBColor(0xDC, 0xDF, 0xE3), "#3A3F47");
/// The paper's numbers.
pub(super) const PAPER: (RGBColor, &str) = (RGBColor(0xE0, 0x00, 0x4D), "#FF5C93");

/// Points to the width of a character, at [`TEXT`].
pub(super) const CHARACTER: f64 = 6.3;
/// The size of text, as the library counts: a quarter more than it comes out.
pub(super) const TEXT: f64 = 14.0;
/// Characters of a label that are shown.
pub(super) const SHOWN: usize = 56;

/// The axis of the numbers. A logarithmic one is drawn as a linear one of logarithms, so that both are of one type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Axis {
    Linear { from: f64, to: f64 },
    Logarithmic { from: f64, to: f64 },
}

impl Axis {
    pub(super) fn scaled(self) -> std::ops::Range<f64> {
        match self {
            Axis::Linear { from, to } => from..to,
            Axis::Logarithmic { from, to } => from.log10()..to.log10(),
        }
    }

    pub(super) fn scale(self, value: f64) -> f64 {
        match self {
            Axis::Linear { .. } => value,
            Axis::Logarithmic { .. } => value.log10(),
        }
    }

    pub(super) fn unscale(self, at: f64) -> f64 {
        match self {
            Axis::Linear { .. } => at,
            Axis::Logarithmic { .. } => 10f64.powf(at),
        }
    }

    /// Where the axis begins, as it is drawn.
    pub(super) fn start(self) -> f64 {
        self.scaled().start
    }

    /// Where bars begin.
    pub(super) fn base(self) -> f64 {
        match self {
            Axis::Linear { .. } => 0.0,
            Axis::Logarithmic { from, .. } => from,
        }
    }
}

pub(super) fn text(horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", TEXT).into_font()).color(&INK.0).pos(Pos::new(horizontal, vertical))
}

/// The mark of the paper's number.
pub(super) fn diamond() -> Polygon<(i32, i32)> {
    Polygon::new([(0, -6), (5, 0), (0, 6), (-5, 0)], PAPER.0)
}

/// A label that fits.
pub(super) fn shortened(label: &str) -> String {
    if label.chars().count() <= SHOWN {
        return label.to_owned();
    }
    let kept: String = label.chars().take(SHOWN - 1).collect();
    format!("{}…", kept.trim_end())
}

/// A number in few characters, for an axis.
pub(super) fn short(value: f64) -> String {
    let text = match value.abs() {
        1e6.. => format!("{:.1}M", value / 1e6),
        1e4.. => format!("{:.0}k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.1.. => format!("{value:.2}"),
        0.0 => "0".into(),
        1e-4.. => format!("{value:.4}"),
        _ => format!("{value:.0e}"),
    };
    // 25.0 is 25, and 5.50 is 5.5.
    if text.contains('.') && !text.ends_with('M') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text.replace(".0M", "M")
}

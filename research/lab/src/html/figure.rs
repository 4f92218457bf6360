//! Some pictures of an experiment as one SVG that stands alone, for a page that is not ours: a column for each metric,
//! in it a picture for each group of points, and above all what the colours mean.

use maud::{Markup, PreEscaped, html};

use super::axis::{CHARACTER, INK, PALETTE};
use super::style::hex;

/// Between pictures, and around all of them.
const GAP: u32 = 12;
/// The height of a line of text.
const LINE: u32 = 22;

/// A picture and what stands above it.
pub(super) struct Captioned {
    pub(super) caption: String,
    pub(super) svg: String,
}

impl Captioned {
    /// A number that the picture's first tag has.
    fn attribute(&self, name: &str) -> u32 {
        let value = self.svg.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
        value.and_then(|(value, _)| value.parse().ok()).unwrap_or(0)
    }
}

/// The names in their colours, in lines that are no wider than `width`, and how many lines these are.
fn legend(names: &[&str], width: u32) -> (Markup, u32) {
    let (mut x, mut line) = (GAP, 0);
    let places: Vec<_> = names
        .iter()
        .map(|name| {
            let wide = 32 + (name.chars().count() as f64 * CHARACTER * 1.1) as u32;
            if x + wide > width && x > GAP {
                (x, line) = (GAP, line + 1);
            }
            let place = (x, GAP + line * LINE);
            x += wide;
            place
        })
        .collect();
    let entries = html! {
        @for (at, (name, (x, y))) in names.iter().zip(&places).enumerate() {
            rect x=(x) y=(y + 2) width="12" height="12" fill=(hex(PALETTE[at % PALETTE.len()].0)) {}
            text x=(x + 18) y=(y + 13) { (name) }
        }
    };
    (entries, line + 1)
}

/// The pictures in columns, and the names of what is compared, whose place is their colour.
pub(super) fn draw(columns: &[Vec<Captioned>], names: &[&str]) -> String {
    let wide: Vec<_> = columns
        .iter()
        .map(|column| column.iter().map(|picture| picture.attribute("width")).max().unwrap_or(0) + GAP)
        .collect();
    let width = wide.iter().sum::<u32>() + GAP;
    let (legend, lines) = legend(names, width);
    let (mut x, mut height) = (GAP, 0);
    let mut placed = Vec::new();
    for (column, wide) in columns.iter().zip(&wide) {
        let mut y = 2 * GAP + lines * LINE;
        for picture in column {
            placed.push((x, y, picture));
            y += LINE + picture.attribute("height") + GAP;
        }
        (x, height) = (x + wide, height.max(y));
    }
    let image = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) font-family="sans-serif"
            font-size="12" fill=(hex(INK.0)) {
            // Dark text on whatever the page has would be lost on a dark one.
            rect width="100%" height="100%" fill="#FFFFFF" {}
            (legend)
            @for (x, y, picture) in placed {
                text x=(x + GAP) y=(y + 15) font-weight="bold" { (picture.caption) }
                svg x=(x) y=(y + LINE) width=(picture.attribute("width")) height=(picture.attribute("height")) {
                    (PreEscaped(&picture.svg))
                }
            }
        }
    };
    // A tag a line, so that a change is read as one.
    image.into_string().replace("><", ">\n<") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_stand_in_columns_below_their_captions() {
        let picture = |caption: &str, height| Captioned {
            caption: caption.to_owned(),
            svg: format!("<svg width=\"480\" height=\"{height}\"></svg>"),
        };
        let columns = [vec![picture("a < b", 270), picture("c", 100)], vec![picture("d", 50)]];
        let image = draw(&columns, &["ours", "theirs"]);
        assert!(image.starts_with("<svg xmlns=") && image.trim_end().ends_with("</svg>"));
        assert!(image.contains("viewBox=\"0 0 996 484\""), "{image}");
        assert!(
            image.contains("a &lt; b") && image.contains("x=\"504\" y=\"68\" width=\"480\" height=\"50\""),
            "{image}"
        );
        assert_eq!(image.matches("<svg").count(), 1 + 2 * 3);
        assert_eq!(image.matches("<rect").count(), 1 + 2);
    }
}

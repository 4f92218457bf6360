//! The page's style. Pictures are drawn in the colours of a light page; on a dark one each is replaced by its
//! counterpart.

use plotters::style::RGBColor;

use super::axis::{GRID, INK, PALETTE, PAPER};

const SHEET: &str = include_str!("style.css");

const DARK: &str = "\
:root { --ink: #e4e7eb; --soft: #9aa2ad; --ground: #14171b; --line: #3a3f47; --accent: #6cb6f5; --missed: #f2879a }
";

/// The colour as pictures have it.
pub(super) fn hex(color: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

/// The style sheet.
pub(super) fn sheet() -> String {
    let mut sheet = SHEET.to_owned();
    let mut dark = DARK.to_owned();
    for (at, (light, on_dark)) in PALETTE.iter().enumerate() {
        sheet += &format!(".c{at} {{ --series: {} }}\n", hex(*light));
        dark += &format!(".c{at} {{ --series: {on_dark} }}\n");
    }
    sheet += &format!(".paper {{ color: {} }}\n", hex(PAPER.0));
    dark += &format!(".paper {{ color: {} }}\n", PAPER.1);
    for (light, on_dark) in PALETTE.iter().chain([&INK, &GRID, &PAPER]) {
        let light = hex(*light);
        // A rule of the style is stronger than an attribute.
        for property in ["fill", "stroke"] {
            dark += &format!("svg [{property}=\"{light}\"] {{ {property}: {on_dark} }}\n");
        }
    }
    format!("{sheet}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_a_picture_has_its_counterpart_on_a_dark_page() {
        let sheet = sheet();
        let (light, dark) = sheet.split_once("@media").unwrap();
        for (color, on_dark) in PALETTE.iter().chain([&INK, &GRID, &PAPER]) {
            let rule = format!("svg [stroke=\"{}\"] {{ stroke: {on_dark} }}", hex(*color));
            assert!(dark.contains(&rule) && !light.contains(&rule), "{rule}");
        }
        assert_eq!(sheet.matches('{').count(), sheet.matches('}').count());
    }
}

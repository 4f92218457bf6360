//! The page's style. Pictures are drawn in the colours of a light page; on a dark one each is replaced by its counterpart.

use std::fmt::Write;

use plotters::style::RGBColor;

use super::chart::{GRID, INK, PALETTE, PAPER};

const SHEET: &str = "\
:root { --ink: #20242a; --soft: #59616b; --ground: #fff; --line: #dcdfe3; --accent: #1b6fb5; --missed: #b32d45 }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
main { max-width: 68rem; margin: 0 auto; padding: 1rem 1.25rem 4rem }
h1, h2, h3 { line-height: 1.25; font-weight: 600 }
h2 { margin: 0 0 .25rem; font-size: 1.35rem }
h3 { margin: 1.25rem 0 .25rem; font-size: 1rem }
p { max-width: 46rem; margin: .5rem 0 }
a { color: var(--accent) }
small, .source, .provenance { color: var(--soft) }
section { margin-top: 3rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
.source { margin: 0 0 .5rem }
.provenance { font-size: .8rem }
.warning, .missed { color: var(--missed) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0; font-size: .875rem; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding-bottom: .25rem }
th, td { padding: .2rem .75rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line) }
th { font-weight: 500; color: var(--soft) }
.n { text-align: right; white-space: nowrap }
.differs td { color: var(--soft); padding-left: 1rem; max-width: 46rem }
.pictures { display: flex; flex-wrap: wrap; gap: 1.25rem 2rem; align-items: flex-start }
figure { margin: 0; max-width: 100%; content-visibility: auto; contain-intrinsic-size: auto 30rem auto 20rem }
pre { overflow-x: auto; font-size: .8rem }
figcaption { font-size: .9rem; font-weight: 500 }
figure svg { max-width: 100%; height: auto }
figure text { font-family: system-ui, sans-serif }
.legend { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; max-width: none; font-size: .875rem }
.legend span::before { content: \"\"; display: inline-block; width: .8em; height: .8em; margin-right: .4em; border-radius: 2px; background: var(--series) }
summary { cursor: pointer; margin: .75rem 0; font-size: .9rem; color: var(--soft) }
";

const DARK: &str = "\
:root { --ink: #e4e7eb; --soft: #9aa2ad; --ground: #14171b; --line: #3a3f47; --accent: #6cb6f5; --missed: #f2879a }
";

fn hex(color: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", color.0, color.1, color.2)
}

/// The style sheet.
pub(super) fn sheet() -> String {
    let mut sheet = SHEET.to_owned();
    let mut dark = DARK.to_owned();
    for (at, (light, on_dark)) in PALETTE.iter().enumerate() {
        writeln!(sheet, ".c{at} {{ --series: {} }}", hex(*light)).expect("memory takes all");
        writeln!(dark, ".c{at} {{ --series: {on_dark} }}").expect("memory takes all");
    }
    writeln!(sheet, ".paper {{ color: {} }}", hex(PAPER.0)).expect("memory takes all");
    writeln!(dark, ".paper {{ color: {} }}", PAPER.1).expect("memory takes all");
    for (light, on_dark) in PALETTE.iter().chain([&INK, &GRID, &PAPER]) {
        let light = hex(*light);
        // A rule of the style is stronger than an attribute.
        for property in ["fill", "stroke"] {
            writeln!(dark, "svg [{property}=\"{light}\"] {{ {property}: {on_dark} }}")
                .expect("memory takes all");
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

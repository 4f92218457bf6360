//! Results as pages: pictures of our numbers, the papers' beside them, and where ours come from.
//!
//! One experiment is one file, with its style and its pictures (SVG) in it: it can be sent, kept beside a paper, and
//! opened from a disk. Several are an overview and a file for each in a folder beside it: all of them in one had a
//! thousand pictures, in 10 MB, which a browser takes seconds to lay out. No page needs a script; long tables fold by
//! themselves (`details`). On a dark screen it is dark: the pictures' colours are replaced by the style. Nothing is
//! left out: what was skipped, missed or lost stands there as in the text.

mod axis;
mod bars;
mod chart;
mod figure;
mod stack;
mod style;

use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::experiment::{Definition, ExperimentError, Outcome};
use crate::report::{MISSED, QUICK, Report, Table, is_number};
use crate::results::Row;
use axis::PALETTE;
use chart::{Mark, Panel};
use figure::Captioned;
use stack::{SUMS, Stack};

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("a picture could not be drawn: {0}")]
pub struct ChartError(String);

/// Writes the page of some experiments to `path`; of several, an overview, and the page of each in a folder beside it.
///
/// # Errors
/// [`ExperimentError::Io`], or [`ExperimentError::Machine`] where a picture could not be drawn.
pub fn write(path: &Path, reports: &[(&Definition, Report<'_>)]) -> Result<(), ExperimentError> {
    let file = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|error| ExperimentError::Io { path: path.to_owned(), error })
    };
    let page = |definition: &Definition, report: &Report<'_>| {
        page(definition, report).map_err(ExperimentError::machine)
    };
    if let [(definition, report)] = reports {
        return file(path, page(definition, report)?);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{name}-pages");
    let folder = path.with_file_name(&name);
    std::fs::create_dir_all(&folder).map_err(|error| ExperimentError::Io { path: folder.clone(), error })?;
    for (definition, report) in reports {
        file(&folder.join(&definition.name).with_extension("html"), page(definition, report)?)?;
    }
    file(path, overview(reports, &name))
}

/// A page.
fn document(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style::sheet())) }
            }
            body { main { (content) } }
        }
    };
    page.into_string()
}

/// A table. Numbers stand at the right.
fn table(caption: &str, head: &Markup, lines: &Markup) -> Markup {
    html! {
        div.scroll {
            table {
                @if !caption.is_empty() { caption { (caption) } }
                thead { tr { (head) } }
                tbody { (lines) }
            }
        }
    }
}

/// A table of a report.
fn table_of(caption: &str, of: &Table) -> Markup {
    let head = html! { @for (name, is_number) in of.head() { th.n[is_number] { (name) } } };
    let lines = html! {
        @for line in of.lines() {
            tr {
                @for cell in line {
                    td.n[is_number(cell)] { @if cell == MISSED { strong.missed { (cell) } } @else { (cell) } }
                }
            }
        }
    };
    table(caption, &head, &lines)
}

/// The experiments in this order, what came of each, and the way to its page in `folder`.
fn overview(reports: &[(&Definition, Report<'_>)], folder: &str) -> String {
    let row = |definition: &Definition, report: &Report<'_>| {
        let count =
            |outcome: Outcome| report.verdicts.iter().filter(|verdict| verdict.outcome == outcome).count();
        let outcomes =
            [(Outcome::Met, "met"), (Outcome::Missed, "missed"), (Outcome::Unmeasured, "not measured")];
        let told = outcomes.map(|(outcome, word)| (count(outcome), word));
        let told = told.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        let told = if report.quick { "quick: none".to_owned() } else { told.collect::<Vec<_>>().join(", ") };
        html! {
            tr {
                td {
                    a href={ (address(folder)) "/" (address(&definition.name)) ".html" } { (report.title) }
                }
                td { (report.reproduces.as_deref().unwrap_or("a question of our own")) }
                td.n { (report.rows.len()) }
                td.missed[count(Outcome::Missed) > 0 || report.quick] { (told) }
                td { (report.provenance.date.get(..10).unwrap_or_default()) }
            }
        }
    };
    let heads = ["experiment", "after", "numbers", "expectations", "measured"];
    let head = html! { @for name in heads { th.n[name == "numbers"] { (name) } } };
    let rows = html! { @for (definition, report) in reports { (row(definition, report)) } };
    document("Lookaside: results", &html! { h1 { "Results" } (table("", &head, &rows)) })
}

/// A name as a part of an address.
fn address(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let spelled = name
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    spelled.collect()
}

/// The page of one experiment.
///
/// # Errors
/// [`ChartError`]
pub fn page(definition: &Definition, report: &Report<'_>) -> Result<String, ChartError> {
    Ok(document(&format!("Lookaside: {}", report.title), &section(definition, report)?))
}

fn section(definition: &Definition, report: &Report<'_>) -> Result<Markup, ChartError> {
    Ok(html! {
        section id=(definition.name) {
            h2 { (report.title) }
            @if let Some(source) = &report.reproduces { p.source { "After " (source) } }
            @if report.quick { p.warning { (QUICK) " The text below is of the full one." } }
            @for shortfall in &report.shortfalls { p.warning { (shortfall) } }
            (paragraphs(report.about))
            @if let Some(differs) = report.differs {
                h3 { "Where ours differ from the paper's" }
                (paragraphs(differs))
            }
            @if !report.beside.is_empty() {
                (table_of("The paper's numbers and ours", &report.papers()))
                @for (quantity, differs) in report.differences() { p.differs { (quantity) ": " (differs) } }
            }
            p {
                "Medians over all runs; thin lines are the extremes. " span.paper { "◆" } " is the paper's own number, \
                 where it is of the same kind. Numbers of one picture come from one run on one machine; compare \
                 ratios, not pictures."
            }
            (pictures(definition, report)?)
            @if !report.verdicts.is_empty() { (table_of("What was expected", &report.outcomes())) }
            @if !report.skipped.is_empty() {
                h3 { "Not measured" }
                ul { @for skipped in report.skipped { li { (skipped) } } }
            }
            details { summary { "All " (report.rows.len()) " numbers" } (table_of("", &report.numbers())) }
            details open[report.quick] { summary { "What was run" } pre { (report.parameters) } }
            p.provenance { (report.provenance) }
        }
    })
}

/// Text whose paragraphs are parted by empty lines.
fn paragraphs(text: &str) -> Markup {
    html! { @for paragraph in text.trim().split("\n\n") { p { (paragraph) } } }
}

/// A picture for each metric, and for each group of points that share the words before their last comma.
fn pictures(definition: &Definition, report: &Report<'_>) -> Result<Markup, ChartError> {
    let finite: Vec<_> = report.rows.iter().filter(|row| row.is_finite()).collect();
    let configurations = distinct(finite.iter().map(|row| row.configuration.as_str()));
    let mut metrics = distinct(finite.iter().map(|row| row.metric.as_str()));
    let mut stacks = Vec::new();
    for sum in SUMS {
        if let Some(stack) = Stack::of(sum, &finite) {
            metrics.retain(|metric| !metric.starts_with(sum));
            let unit =
                finite.iter().find(|row| row.metric.starts_with(sum)).map_or("", |row| row.unit.as_str());
            stacks.push((sum.trim_end_matches(": "), unit, stack));
        }
    }
    let mut panels = Vec::new();
    for metric in metrics {
        let of_metric = panels_of(metric, &finite, &configurations, &marks(definition, report, metric));
        panels.extend(of_metric.into_iter().map(|panel| (metric, panel)));
    }
    let has_legend = panels.iter().any(|(_, panel)| panel.has_axis()) && configurations.len() > 1;
    Ok(html! {
        @if has_legend { (legend(&configurations)) }
        div.pictures {
            @for (metric, panel) in &panels {
                @let place = panel.place();
                @let unit = panel.rows.first().map_or("", |row| row.unit.as_str());
                figure {
                    figcaption {
                        (metric)
                        @if !place.is_empty() { ", " (place) }
                        @if !unit.is_empty() { " " small { (unit) } }
                    }
                    (PreEscaped(panel.draw()?))
                }
            }
            @for (sum, unit, stack) in &stacks {
                figure {
                    figcaption { (sum) ", by what they went into " small { (unit) } }
                    (legend(&stack.parts))
                    (PreEscaped(stack.draw()?))
                }
            }
        }
    })
}

/// The pictures of a metric, one for each group of points.
fn panels_of<'r>(
    metric: &str,
    rows: &[&'r Row],
    configurations: &'r [&'r str],
    marks: &[Mark],
) -> Vec<Panel<'r>> {
    let rows: Vec<_> = rows.iter().copied().filter(|row| row.metric == metric).collect();
    let grouped = is_grouped(&rows);
    let groups = if grouped { distinct(rows.iter().map(|row| group_of(&row.point))) } else { vec![""] };
    let panel = |group| {
        let in_group = |row: &&Row| !grouped || group_of(&row.point) == group;
        let rows: Vec<_> = rows.iter().copied().filter(in_group).collect();
        // One number is no picture.
        (rows.len() > 1).then(|| Panel {
            rows,
            group,
            configurations,
            marks: marks.to_vec(),
            is_close: false,
        })
    };
    groups.into_iter().filter_map(panel).collect()
}

/// The pictures that the definition asks for as one SVG that stands alone; none where it asks for none.
///
/// # Errors
/// [`ChartError`]
pub fn figure(definition: &Definition, report: &Report<'_>) -> Result<Option<String>, ChartError> {
    let Some(asked) = &definition.picture else { return Ok(None) };
    let names: Vec<_> = asked.configurations.iter().map(String::as_str).collect();
    let is_shown = |row: &&Row| row.is_finite() && names.contains(&row.configuration.as_str());
    let rows: Vec<_> = report.rows.iter().filter(is_shown).collect();
    let column = |metric: &String| {
        let panels = panels_of(metric, &rows, &names, &[]).into_iter().map(|panel| {
            let panel = Panel { is_close: true, ..panel };
            let unit = panel.rows.first().map_or("", |row| row.unit.as_str());
            let parts = [metric.as_str(), panel.place()].into_iter().filter(|part| !part.is_empty());
            let caption = parts.collect::<Vec<_>>().join(", ");
            let caption = if unit.is_empty() { caption } else { format!("{caption} ({unit})") };
            Ok(Captioned { caption, svg: panel.draw()? })
        });
        panels.collect::<Result<Vec<_>, ChartError>>()
    };
    let columns = asked.metrics.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(figure::draw(&columns, &names)))
}

/// Which colour stands for what.
fn legend(names: &[&str]) -> Markup {
    html! {
        p.legend {
            @for (at, name) in names.iter().enumerate() {
                span class={ "c" (at % PALETTE.len()) } { (name) } " "
            }
        }
    }
}

/// The words before the last comma.
fn group_of(point: &str) -> &str {
    point.rsplit_once(", ").map_or("", |(group, _)| group)
}

/// Whether the points fall into groups, at least one of which has several.
fn is_grouped(rows: &[&Row]) -> bool {
    let points = distinct(rows.iter().map(|row| row.point.as_str()));
    let groups = distinct(points.iter().map(|point| group_of(point)));
    groups.len() < points.len() && points.iter().all(|point| point.contains(", "))
}

fn distinct<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut distinct = Vec::new();
    for text in texts {
        if !distinct.contains(&text) {
            distinct.push(text);
        }
    }
    distinct
}

/// The paper's numbers that are of the same kind as a metric of ours, and not a ratio or a difference.
fn marks(definition: &Definition, report: &Report<'_>, metric: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (reference, beside) in definition.references.iter().zip(&report.beside) {
        let ours = &reference.ours;
        let unit = report.rows.iter().find(|row| row.metric == metric).map(|row| row.unit.as_str());
        if ours.metric == metric && ours.is_plain() && unit.is_some_and(|unit| same_unit(unit, &beside.unit))
        {
            marks.push(Mark {
                configuration: ours.configuration.clone(),
                point: ours.point.clone(),
                value: beside.paper,
            });
        }
    }
    marks
}

/// Whether two names mean one unit: the papers' files and ours write some of them differently.
fn same_unit(ours: &str, papers: &str) -> bool {
    let millions = ["M/s", "Mops", "M operations/s", "M keys/s", "M requests/s", "MOPS"];
    ours == papers || (millions.contains(&ours) && millions.contains(&papers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use crate::report::tests::with_report;

    fn example() -> String {
        let mut example = String::new();
        with_report(Scale::Full, |definition, report| example = page(definition, report).unwrap());
        example
    }

    #[test]
    fn the_page_has_everything_and_needs_nothing() {
        let page = example();
        for part in [
            "Speed of &lt;two&gt; tables",
            "After A paper, Figure 1",
            "<p>Our machine is newer.</p><p>And larger.</p>",
            "7.43",
            "Memory &amp; caches.",
            "missed",
            "third: it is not installed",
            "All 8 numbers",
            "system allocator",
            "prefers-color-scheme: dark",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        for foreign in ["<script", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        // The only addresses are places in the page, and the name of the pictures' language.
        assert!(page.split("href=\"").skip(1).all(|rest| rest.starts_with('#')));
        assert_eq!(page.matches("http").count(), page.matches("http://www.w3.org/2000/svg").count());
    }

    #[test]
    fn a_picture_shows_one_group_and_the_paper_s_number_of_the_same_unit() {
        let page = example();
        assert_eq!(page.matches("<figure>").count(), 2, "one for each R");
        assert!(page.contains("speed, R = 1 M <small>M/s</small>"), "{page}");
        // One reference is a plain number at one point, the other a ratio.
        assert_eq!(page.matches("<polygon").count(), 1);
    }

    #[test]
    fn every_tag_that_is_opened_is_closed() {
        let page = example();
        for tag in [
            "html", "head", "body", "main", "ul", "section", "table", "thead", "tbody", "details", "figure",
            "svg", "text", "p", "div",
        ] {
            let opened =
                page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}

//! Results as pages: pictures of our numbers, the papers' beside them, and where ours come from.
//!
//! One experiment is one file, with its style and its pictures (SVG) in it: it can be sent, kept beside a paper, and opened from a
//! disk. Several are an overview and a file for each in a folder beside it: all of them in one had a thousand pictures, in 10 MB,
//! which a browser takes seconds to lay out. No page needs a script; long tables fold by themselves (`details`). On a dark screen
//! it is dark: the pictures' colours are replaced by the style. Nothing is left out: what was skipped, missed or lost stands there
//! as in the text.

mod chart;
mod stack;
mod style;

use std::fmt::Write;
use std::path::Path;

use crate::experiment::{Bound, Definition, ExperimentError, Outcome};
use crate::machine::Provenance;
use crate::report::{QUICK, Report, number};
use crate::results::Row;
use chart::{Mark, PALETTE, Panel};
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
        page(definition, report).map_err(|error| ExperimentError::Machine(error.to_string()))
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

/// What pages begin with.
fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
        escaped(title),
        style::sheet()
    )
}

const END: &str = "</main>\n</body>\n</html>\n";

/// The experiments in this order, what came of each, and the way to its page in `folder`.
fn overview(reports: &[(&Definition, Report<'_>)], folder: &str) -> String {
    let mut page = head("Lookaside: results");
    page.push_str("<h1>Results</h1>\n<div class=\"scroll\"><table>\n<thead><tr><th>experiment<th>after");
    page.push_str("<th class=\"n\">numbers<th>expectations<th>measured</tr></thead>\n<tbody>\n");
    for (definition, report) in reports {
        let source = report.reproduces.as_deref().unwrap_or("a question of our own");
        let count =
            |outcome: Outcome| report.verdicts.iter().filter(|verdict| verdict.outcome == outcome).count();
        let outcomes =
            [(Outcome::Met, "met"), (Outcome::Missed, "missed"), (Outcome::Unmeasured, "not measured")];
        let told = outcomes.map(|(outcome, word)| (count(outcome), word));
        let told = told.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
        let told = if report.quick { "quick: none".to_owned() } else { told.collect::<Vec<_>>().join(", ") };
        let class = if count(Outcome::Missed) > 0 || report.quick { " class=\"missed\"" } else { "" };
        add(
            &mut page,
            format_args!(
                "<tr><td><a href=\"{}/{}.html\">{}</a><td>{}<td class=\"n\">{}<td{class}>{told}<td>{}</tr>\n",
                address(folder),
                address(&definition.name),
                escaped(&report.title),
                escaped(source),
                report.rows.len(),
                escaped(report.provenance.date.get(..10).unwrap_or_default())
            ),
        );
    }
    page.push_str("</tbody></table></div>\n");
    page + END
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
    let mut page = head(&format!("Lookaside: {}", report.title));
    section(&mut page, definition, report)?;
    Ok(page + END)
}

fn add(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("memory takes all");
}

fn section(page: &mut String, definition: &Definition, report: &Report<'_>) -> Result<(), ChartError> {
    add(
        page,
        format_args!("<section id=\"{}\">\n<h2>{}</h2>\n", escaped(&definition.name), escaped(&report.title)),
    );
    if let Some(source) = &report.reproduces {
        add(page, format_args!("<p class=\"source\">After {}</p>\n", escaped(source)));
    }
    if report.quick {
        add(page, format_args!("<p class=\"warning\">{QUICK} The text below is of the full one.</p>\n"));
    }
    for shortfall in &report.shortfalls {
        add(page, format_args!("<p class=\"warning\">{}</p>\n", escaped(shortfall)));
    }
    paragraphs(page, report.about);
    if let Some(differs) = report.differs {
        page.push_str("<h3>Where ours differ from the paper's</h3>\n");
        paragraphs(page, differs);
    }
    beside(page, report);
    page.push_str(
        "<p>Medians over all runs; thin lines are the extremes. <span class=\"paper\">◆</span> is the paper's own number, where \
         it is of the same kind. Numbers of one picture come from one run on one machine; compare ratios, not pictures.</p>\n",
    );
    pictures(page, definition, report)?;
    verdicts(page, report);
    if !report.skipped.is_empty() {
        page.push_str("<h3>Not measured</h3>\n<ul>\n");
        for skipped in report.skipped {
            add(page, format_args!("<li>{}</li>\n", escaped(skipped)));
        }
        page.push_str("</ul>\n");
    }
    numbers(page, &report.rows);
    add(
        page,
        format_args!(
            "<details{}><summary>What was run</summary>\n<pre>{}</pre></details>\n",
            if report.quick { " open" } else { "" },
            escaped(&report.parameters)
        ),
    );
    provenance(page, report.provenance);
    page.push_str("</section>\n");
    Ok(())
}

/// Text whose paragraphs are parted by empty lines.
fn paragraphs(page: &mut String, text: &str) {
    for paragraph in text.trim().split("\n\n") {
        add(page, format_args!("<p>{}</p>\n", escaped(paragraph)));
    }
}

/// The paper's numbers beside ours.
fn beside(page: &mut String, report: &Report<'_>) {
    if report.beside.is_empty() {
        return;
    }
    page.push_str(
        "<div class=\"scroll\"><table>\n<caption>The paper's numbers and ours</caption>\n\
         <thead><tr><th>quantity<th class=\"n\">paper<th>ours<th>unit<th>where</tr></thead>\n<tbody>\n",
    );
    for beside in &report.beside {
        let ours: Vec<_> = match beside.ours.as_slice() {
            [] => vec!["not measured".into()],
            [(_, only)] => vec![number(*only)],
            several => several.iter().map(|(point, ours)| format!("{} ({point})", number(*ours))).collect(),
        };
        add(
            page,
            format_args!(
                "<tr><td>{}<td class=\"n\">{}<td>{}<td>{}<td>{}</tr>\n",
                escaped(&beside.quantity),
                number(beside.paper),
                escaped(&ours.join(", ")),
                escaped(&beside.unit),
                escaped(&beside.exhibit)
            ),
        );
        if let Some(differs) = &beside.differs {
            add(
                page,
                format_args!("<tr class=\"differs\"><td colspan=\"5\">{}</tr>\n", escaped(differs.trim())),
            );
        }
    }
    page.push_str("</tbody></table></div>\n");
}

/// A picture for each metric, and for each group of points that share the words before their last comma.
fn pictures(page: &mut String, definition: &Definition, report: &Report<'_>) -> Result<(), ChartError> {
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
        let rows: Vec<_> = finite.iter().copied().filter(|row| row.metric == metric).collect();
        let grouped = is_grouped(&rows);
        let groups = if grouped { distinct(rows.iter().map(|row| group_of(&row.point))) } else { vec![""] };
        for group in groups {
            let in_group = |row: &&Row| !grouped || group_of(&row.point) == group;
            let rows: Vec<_> = rows.iter().copied().filter(in_group).collect();
            // One number is no picture.
            if rows.len() > 1 {
                let marks = marks(definition, report, metric);
                panels.push((metric, Panel { rows, group, configurations: &configurations, marks }));
            }
        }
    }
    if panels.iter().any(|(_, panel)| panel.has_axis()) && configurations.len() > 1 {
        legend(page, &configurations);
    }
    page.push_str("<div class=\"pictures\">\n");
    for (metric, panel) in &panels {
        let unit = panel.rows.first().map_or("", |row| row.unit.as_str());
        let unit = if unit.is_empty() { String::new() } else { format!(" <small>{}</small>", escaped(unit)) };
        // A point that all share tells the group as well.
        let place = panel.common_point().unwrap_or(panel.group);
        let place = if place.is_empty() { String::new() } else { format!(", {}", escaped(place)) };
        let caption = format!("{}{place}{unit}", escaped(metric));
        add(page, format_args!("<figure>\n<figcaption>{caption}</figcaption>\n{}</figure>\n", panel.draw()?));
    }
    for (sum, unit, stack) in &stacks {
        add(
            page,
            format_args!(
                "<figure>\n<figcaption>{}, by what they went into <small>{}</small></figcaption>\n",
                escaped(sum),
                escaped(unit)
            ),
        );
        legend(page, &stack.parts);
        add(page, format_args!("{}</figure>\n", stack.draw()?));
    }
    page.push_str("</div>\n");
    Ok(())
}

/// Which colour stands for what.
fn legend(page: &mut String, names: &[&str]) {
    page.push_str("<p class=\"legend\">");
    for (at, name) in names.iter().enumerate() {
        add(page, format_args!("<span class=\"c{}\">{}</span> ", at % PALETTE.len(), escaped(name)));
    }
    page.push_str("</p>\n");
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

/// What was expected and what came of it.
fn verdicts(page: &mut String, report: &Report<'_>) {
    if report.verdicts.is_empty() {
        return;
    }
    page.push_str(
        "<div class=\"scroll\"><table>\n<caption>What was expected</caption>\n\
         <thead><tr><th>statement<th class=\"n\">bound<th class=\"n\">measured<th>at<th></tr></thead>\n<tbody>\n",
    );
    for verdict in &report.verdicts {
        let bound = match verdict.bound {
            Bound::AtLeast(bound) => format!("≥ {bound}"),
            Bound::AtMost(bound) => format!("≤ {bound}"),
        };
        let outcome = match verdict.outcome {
            Outcome::Met => "met",
            Outcome::Missed => "<strong class=\"missed\">missed</strong>",
            Outcome::Unmeasured => "not measured",
        };
        add(
            page,
            format_args!(
                "<tr><td>{}<td class=\"n\">{bound}<td class=\"n\">{}<td>{}<td>{outcome}</tr>\n",
                escaped(&verdict.statement),
                verdict.measured.map_or_else(String::new, number),
                escaped(verdict.point.as_deref().unwrap_or_default())
            ),
        );
    }
    page.push_str("</tbody></table></div>\n");
}

fn numbers(page: &mut String, rows: &[Row]) {
    add(
        page,
        format_args!(
            "<details><summary>All {} numbers</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th>configuration\
             <th>at<th>metric<th class=\"n\">median<th class=\"n\">from<th class=\"n\">to<th>unit<th class=\"n\">runs\
             <th>pages</tr></thead>\n<tbody>\n",
            rows.len()
        ),
    );
    for row in rows {
        add(
            page,
            format_args!(
                "<tr><td>{}<td>{}<td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}<td class=\"n\">{}<td>{}</tr>\n",
                escaped(&row.configuration),
                escaped(&row.point),
                escaped(&row.metric),
                number(row.median),
                number(row.minimum),
                number(row.maximum),
                escaped(&row.unit),
                row.runs,
                escaped(&row.pages)
            ),
        );
    }
    page.push_str("</tbody></table></div></details>\n");
}

fn provenance(page: &mut String, provenance: &Provenance) {
    let Provenance { date, revision, compiler, build, allocator, machine } = provenance;
    add(
        page,
        format_args!(
            "<p class=\"provenance\">{}, {} cores, {} GiB; Linux {}, transparent huge pages: {}; {} allocator; {}, {} \
             build of <code>{}</code>; {}</p>\n",
            escaped(&machine.processor),
            machine.cores,
            machine.memory_gib,
            escaped(&machine.kernel),
            escaped(&machine.transparent_huge_pages),
            escaped(allocator),
            escaped(compiler),
            escaped(build),
            escaped(revision),
            escaped(date)
        ),
    );
}

/// Text as it stands in HTML, in and outside of attributes.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Scale;
    use crate::results::{Results, row};

    const DEFINITION: &str = r#"
name = "speed"
title = "Speed of <two> tables"
reproduces = { paper = "A paper", exhibit = "Figure 1" }
kind = "none"
about = "Two tables are compared."
differs = "Our machine is newer.\n\nAnd larger."
runs = 3
[rows]
configurations = ["ours", "theirs"]
metrics = ["speed"]
[[expectations]]
statement = "ours is faster"
quantity = { configuration = "ours", metric = "speed", over = [{ configuration = "theirs" }] }
at_least = 20
[[references]]
file = "paper.csv"
filter = { configuration = "theirs" }
ours = { configuration = "theirs", metric = "speed", point = "R = 1 M, 1 thread" }
differs = "Memory & caches."
[[references]]
file = "paper.csv"
filter = { configuration = "gain" }
ours = { configuration = "ours", metric = "speed", over = [{ configuration = "theirs" }] }
"#;

    fn example() -> String {
        let folder = tempfile::tempdir().unwrap();
        let csv = "configuration,value,unit,where\ntheirs,7.43,Mops,Table 2\ngain,2,x,Table 2\n";
        std::fs::write(folder.path().join("paper.csv"), csv).unwrap();
        let definition = Definition::parse(DEFINITION, Path::new(&folder.path().join("speed.toml"))).unwrap();
        let points = ["R = 1 M, 1 thread", "R = 1 M, 2 threads", "R = 10 M, 1 thread", "R = 10 M, 2 threads"];
        let rows = points.iter().flat_map(|point| {
            [row("ours", point, "speed", 25.0), Row { maximum: 20.0, ..row("theirs", point, "speed", 10.0) }]
        });
        let results = Results {
            experiment: "speed".into(),
            scale: Scale::Full,
            skipped: vec!["third: it is not installed".into()],
            provenance: Provenance { allocator: "system".into(), ..Provenance::default() },
            rows: rows.collect(),
        };
        let report = Report::of(&definition, &results).unwrap();
        page(&definition, &report).unwrap()
    }

    #[test]
    fn the_page_has_everything_and_needs_nothing() {
        let page = example();
        for part in [
            "Speed of &lt;two&gt; tables",
            "After A paper, Figure 1",
            "<p>Our machine is newer.</p>\n<p>And larger.</p>",
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

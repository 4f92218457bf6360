//! The documents keep their word: what they name exists, every page of the book stands in its summary, and the papers'
//! tables and figures all have a command.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{lab, repository, said_by};

/// What a reader sees first is no longer than this, and has no more results.
const LINES_OF_README: usize = 150;
const RESULTS_OF_README: usize = 8;
/// Lines are no longer than this, rows of tables excepted.
const COLUMNS: usize = 120;
/// Where what we write lies: code, definitions and scripts.
const FOLDERS: [&str; 6] = ["crates", "server", "research", "fuzz", "ci", ".ci"];
/// What is generated there.
const NOT_WRITTEN: [&str; 6] = ["target", "corpus", "artifacts", "seeds", "results", "simulations"];
/// The name of an experiment that a page tells its reader to write begins so.
const TO_BE_WRITTEN: &str = "my-";

/// A page: where it is, seen from the repository's root, and what it says.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The targets of its links, outside of code.
    fn links(&self) -> Vec<String> {
        let prose = without_code(&self.text);
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        targets.map(|(target, _)| target.to_owned()).collect()
    }

    /// The anchors of its headings, as the book and code hosts make them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = without_blocks(&self.text);
        headings
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(line.trim_matches(['#', ' '])))
            .collect()
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Without blocks of code.
fn without_blocks(text: &str) -> String {
    let outside = text.split("```").step_by(2);
    outside.collect::<Vec<_>>().join("\n")
}

/// Without code in blocks and in lines.
fn without_code(text: &str) -> String {
    let blocks = without_blocks(text);
    let outside = blocks.split('`').step_by(2);
    outside.collect::<Vec<_>>().join(" ")
}

/// Adds the pages below a folder.
fn add_pages(folder: &Path, pages: &mut Vec<Page>) {
    for entry in fs::read_dir(repository().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = folder.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(Page { text: fs::read_to_string(entry.path()).unwrap(), path });
        }
    }
}

/// The pages of the book.
fn book() -> Vec<Page> {
    let mut pages = Vec::new();
    add_pages(Path::new("docs"), &mut pages);
    assert!(pages.len() > 20, "{} pages", pages.len());
    pages
}

/// The book, and the documents that stand at the root and beside the crates.
fn documents() -> Vec<Page> {
    let mut pages = book();
    let mut add = |path: PathBuf| {
        let text =
            fs::read_to_string(repository().join(&path)).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        pages.push(Page { path, text });
    };
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"] {
        add(name.into());
    }
    for folder in ["crates", "server"] {
        for entry in fs::read_dir(repository().join(folder)).unwrap() {
            add(Path::new(folder).join(entry.unwrap().file_name()).join("README.md"));
        }
    }
    pages
}

/// All experiments by name: the files that define them.
fn definitions() -> BTreeMap<String, PathBuf> {
    fn add(folder: &Path, definitions: &mut BTreeMap<String, PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, definitions);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                definitions.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), path);
            }
        }
    }
    let mut definitions = BTreeMap::new();
    add(&repository().join("research/experiments"), &mut definitions);
    assert!(definitions.len() > 50, "{} experiments", definitions.len());
    definitions
}

/// The experiments that a text says to run: a word with a hyphen in it behind the word `run`. And those behind `figure`
/// and `table` of the simulator's command.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words: Vec<&str> = text.split_whitespace().map(|word| word.trim_matches(|c| !is_part(c))).collect();
    let mut names = BTreeSet::new();
    for pair in words.windows(2) {
        if pair[0] == "run" && pair[1].contains('-') && pair[1].starts_with(|c: char| c.is_ascii_lowercase())
        {
            names.insert(pair[1].to_owned());
        }
    }
    for triple in words.windows(3) {
        if triple[0] == "sim" && triple[1] == "figure" && triple[2].parse::<u16>().is_ok() {
            names.insert(format!("stlt-figure{}", triple[2]));
        }
    }
    names
}

#[test]
fn every_experiment_that_is_named_exists_and_every_one_is_named_in_the_book() {
    let exist: BTreeSet<_> = definitions().into_keys().collect();
    let mut in_book = BTreeSet::new();
    for page in documents() {
        let names = named(&page.text);
        for name in names.iter().filter(|name| !name.starts_with(TO_BE_WRITTEN)) {
            // `sim figure 19` is short for all whose names begin so.
            let exists =
                exist.contains(name) || exist.iter().any(|other| other.starts_with(&format!("{name}-")));
            assert!(exists, "{} says to run {name}: there is no such experiment", page.name());
        }
        if page.path.starts_with("docs") {
            in_book.extend(names);
        }
    }
    let unnamed: Vec<_> = exist.difference(&in_book).collect();
    assert!(unnamed.is_empty(), "experiments that no page of the book says to run: {unnamed:?}");
}

/// What stands in the summary, and the folder of the book.
#[test]
fn every_page_of_the_book_stands_in_its_summary_once() {
    let pages = book();
    let summary = pages.iter().find(|page| page.path.ends_with("SUMMARY.md")).expect("a summary");
    let mut listed = summary.links();
    listed.sort();
    let mut there: Vec<_> = pages.iter().map(|page| page.path.strip_prefix("docs").unwrap()).collect();
    there.retain(|path| *path != Path::new("SUMMARY.md"));
    there.sort();
    let there: Vec<_> = there.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(listed, there, "the summary beside the pages that there are");
}

#[test]
fn links_lead_somewhere() {
    let mut followed = 0;
    for page in documents() {
        for link in page.links() {
            if link.starts_with("https://") || link.starts_with("http://") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let from = repository().join(&page.path);
            let to = if path.is_empty() { from } else { from.parent().unwrap().join(path) };
            assert!(to.exists(), "{} links {link}, which is not there", page.name());
            followed += 1;
            if !heading.is_empty() {
                let text = fs::read_to_string(&to).unwrap();
                let anchors = Page { path: to, text }.anchors();
                assert!(
                    anchors.contains(heading),
                    "{} links {link}, but the headings are {anchors:?}",
                    page.name()
                );
            }
        }
    }
    assert!(followed > 50, "{followed} links");
}

#[test]
fn the_readme_is_short_and_lines_are_not_long() {
    for page in documents() {
        let lines = page.text.lines().count();
        if page.path == Path::new("README.md") {
            let results = page.text.lines().filter(|line| line.starts_with('|') && line.contains("`run "));
            let results = results.count();
            assert!(lines <= LINES_OF_README, "README.md: {lines} lines");
            assert!((1..=RESULTS_OF_README).contains(&results), "README.md: {results} results");
        }
        for (number, line) in page.text.lines().enumerate() {
            let is_of_table = line.trim_start().starts_with('|');
            let columns = line.chars().count();
            assert!(is_of_table || columns <= COLUMNS, "{}:{}: {columns} columns", page.name(), number + 1);
        }
    }
}

/// Adds the files below a folder that people write: code, definitions, scripts.
fn add_code(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if !NOT_WRITTEN.contains(&name) {
                add_code(&path, files);
            }
        } else {
            let known = ["rs", "c", "h", "hpp", "cpp", "sh", "toml", "cmake"];
            let kind = path.extension().map(|kind| kind.to_str().unwrap());
            if kind.is_none_or(|kind| known.contains(&kind)) {
                files.push(path);
            }
        }
    }
}

/// A definition has tables, too: arrays of inline tables, one a line.
#[test]
fn lines_of_code_are_not_long() {
    let mut files = Vec::new();
    for folder in FOLDERS {
        add_code(&repository().join(folder), &mut files);
    }
    assert!(files.len() > 600, "{} files", files.len());
    let mut long = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for (number, line) in text.lines().enumerate() {
            let is_of_table =
                file.extension().is_some_and(|kind| kind == "toml") && line.starts_with("    { ");
            let columns = line.chars().count();
            if columns > COLUMNS && !is_of_table {
                long.push(format!("{}:{}: {columns} columns", file.display(), number + 1));
            }
        }
    }
    assert!(long.is_empty(), "{long:#?}");
}

/// The first column of a file of the papers' numbers says what a row is of.
#[test]
fn all_of_the_papers_numbers_have_a_command() {
    let page = fs::read_to_string(repository().join("docs/papers.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let mut groups = 0;
    for entry in fs::read_dir(repository().join("research/experiments/papers")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "csv") {
            continue;
        }
        let file = format!("`{}`", path.file_name().unwrap().to_str().unwrap());
        let text = fs::read_to_string(&path).unwrap();
        let of: BTreeSet<_> = text.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        for group in of {
            let row = rows.iter().find(|row| row[0] == file && row[1] == group);
            let row = row.unwrap_or_else(|| panic!("docs/papers.md has no row for {group} of {file}"));
            assert!(!named(row[3]).is_empty(), "docs/papers.md has no command for {group} of {file}");
            groups += 1;
        }
    }
    assert!(groups > 30, "{groups} groups of rows");
}

/// The exhibits of the papers that definitions say to reproduce stand in the page's tables, with the command.
#[test]
fn what_a_definition_reproduces_stands_in_the_table_of_papers() {
    let page = fs::read_to_string(repository().join("docs/papers.md")).unwrap();
    let exhibits = named(page.split("## The papers' numbers as data").next().unwrap());
    let mut reproduced = 0;
    for (name, path) in definitions() {
        let definition: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        if definition.contains_key("reproduces") {
            reproduced += 1;
            assert!(exhibits.contains(&name), "docs/papers.md does not say what {name} makes");
        }
    }
    assert!(reproduced > 30, "{reproduced} definitions");
}

/// A mistake is found: the functions above are not ones that find nothing.
#[test]
fn names_links_and_anchors_are_read() {
    let page = Page {
        path: "a.md".into(),
        text: "# One `two` (three)\n`run no-such` and [x](y.md#z), ```\n[code](no)\n``` `lookaside-lab -- \
               run\nlong-name`, `run --quick`, `sim figure 11`"
            .into(),
    };
    let names: Vec<_> = named(&page.text).into_iter().collect();
    assert_eq!(names, ["long-name", "no-such", "stlt-figure11"]);
    assert_eq!(page.links(), ["y.md#z"]);
    assert_eq!(page.anchors().into_iter().collect::<Vec<_>>(), ["one-two-three"]);
}

/// Numbers of tables had been left behind by results that were measured later. The first column of a table's row is
/// what it says; the last names the experiment.
#[test]
fn the_tables_of_servers_are_those_of_the_kept_results() {
    let printed = said_by(&mut lab(&["report", "--table"]));
    let (printed, head): (Vec<_>, Vec<_>) = printed.lines().partition(|line| line.contains("`run "));
    assert!(printed.len() >= 10 && head.len() == 2, "{printed:?}");
    let experiment = |line: &str| line.rsplit('|').nth(1).map(|cell| cell.trim().to_owned());
    let experiments: BTreeSet<_> = printed.iter().map(|line| experiment(line)).collect();
    for (name, least) in [("README.md", 5), ("docs/benchmarks.md", printed.len())] {
        let text = fs::read_to_string(repository().join(name)).unwrap();
        let is_of_these = |line: &&str| line.starts_with('|') && experiments.contains(&experiment(line));
        let rows: Vec<_> = text.lines().filter(is_of_these).collect();
        let of_old: Vec<_> = rows.iter().filter(|row| !printed.contains(row)).collect();
        assert!(of_old.is_empty(), "{name} has other rows than ci/tables prints: {of_old:#?} {printed:#?}");
        assert!(rows.len() >= least && text.contains(head[0]), "{name} has {} rows", rows.len());
    }
}

/// The same of the book's picture, which `lookaside-lab report memc3-policies --svg docs/eviction.svg` draws.
#[test]
fn the_book_s_picture_is_that_of_the_kept_results() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("eviction.svg");
    said_by(&mut lab(&["report", "memc3-policies", "--svg", drawn.to_str().unwrap()]));
    let kept = fs::read_to_string(repository().join("docs/eviction.svg")).unwrap();
    assert!(
        kept == fs::read_to_string(drawn).unwrap(),
        "docs/eviction.svg is of other results: draw it again"
    );
}

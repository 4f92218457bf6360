//! The options of a file: TOML, whose keys are the long names of the options.
//!
//! ```toml
//! memory-limit = 1024
//! listen = ["127.0.0.1", "10.0.0.7:11212"]
//! disable-evictions = true
//!
//! [extended]
//! idle_timeout = 60
//! maxconns_fast = false
//! ```
//!
//! An entry becomes the words of a command line that mean the same, so that a value is checked in one place, wherever
//! it was written, and has one default. Rejected: a structure for serde beside that for the command line, which had to
//! have every option, every value's limits and every default once more.

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use super::extended;

/// Why a file's options are refused.
#[derive(Debug)]
pub(super) enum FileError {
    /// It could not be read.
    Read { path: PathBuf, error: io::Error },
    /// This is wrong with it.
    Content { path: PathBuf, mistake: Mistake },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Read { path, error } => {
                write!(f, "cannot read {} (--config): {error}", path.display())
            }
            FileError::Content { path, mistake } => {
                write!(f, "{}, line {}: {}", path.display(), mistake.line, mistake.what)
            }
        }
    }
}

impl Error for FileError {}

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) line: usize,
    pub(super) what: String,
}

/// An entry of a file, as a command line would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The long name of the option.
    pub(super) name: String,
    /// The option with its value; none for what is `false`.
    pub(super) words: Vec<String>,
    pub(super) line: usize,
}

/// The table of the file whose entries are names of `-o`, and the option that it stands for.
const TABLE: &str = "extended";
/// The options that may be given more than once, each time with more.
const LISTS: [&str; 2] = ["listen", TABLE];

/// The entries of a file, in the order of their lines; `names` are the long names that there are.
///
/// # Errors
/// [`Mistake`]: it is no TOML, a name is not known, or a value is none for an option.
pub(super) fn parse(text: &str, names: &[&str]) -> Result<Vec<Entry>, Mistake> {
    let line = |span: Range<usize>| 1 + text.bytes().take(span.start).filter(|&byte| byte == b'\n').count();
    let wrong = |span, what| Mistake { line: line(span), what };
    let table = DeTable::parse(text).map_err(|error| {
        // The reason, not the picture of the line that stands around it.
        wrong(error.span().unwrap_or_default(), error.message().replace('\n', " "))
    })?;
    let mut entries = Vec::new();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        if !names.contains(&name) {
            return Err(wrong(key.span(), unknown("option", name, names.iter().copied())));
        }
        if let (TABLE, DeValue::Table(more)) = (name, value.get_ref()) {
            for (key, value) in more {
                let name = key.get_ref().as_ref();
                let words = extended_words(name, value.get_ref()).map_err(|what| wrong(key.span(), what))?;
                entries.push(Entry { name: TABLE.into(), words, line: line(key.span()) });
            }
        } else {
            let words = words(name, value.get_ref()).map_err(|what| wrong(key.span(), what))?;
            entries.push(Entry { name: name.into(), words, line: line(key.span()) });
        }
    }
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

/// The words for an option with this value.
fn words(name: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match value {
        DeValue::Boolean(true) => Ok(vec![format!("--{name}")]),
        DeValue::Boolean(false) => Ok(Vec::new()),
        // How often it is said is how much it means.
        _ if name == "verbose" => {
            let times = text(name, value)?.parse().ok().filter(|&times: &usize| times <= 3);
            times.map(|times| vec!["--verbose".into(); times]).ok_or_else(|| "verbose is from 0 to 3".into())
        }
        DeValue::Array(_) if !LISTS.contains(&name) => Err(format!("{name} takes one value")),
        DeValue::Array(values) => {
            let one =
                |value: &toml::Spanned<DeValue<'_>>| Ok(format!("--{name}={}", text(name, value.get_ref())?));
            values.iter().map(one).collect()
        }
        value => Ok(vec![format!("--{name}={}", text(name, value)?)]),
    }
}

/// The words for a name of `-o` with this value.
fn extended_words(name: &str, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let opposite = format!("no_{name}");
    let is_known = |wanted: &str| extended::names().any(|name| name == wanted);
    if !is_known(name) && !is_known(&opposite) {
        return Err(unknown("name of -o", name, extended::names()));
    }
    let item = match value {
        DeValue::Boolean(true) => name.to_owned(),
        DeValue::Boolean(false) if is_known(&opposite) => opposite,
        // What nobody asks for is not so.
        DeValue::Boolean(false) => return Ok(Vec::new()),
        value => format!("{name}={}", text(name, value)?),
    };
    if item.contains(',') {
        return Err(format!("'{item}' has a comma, which ends a value of -o"));
    }
    Ok(vec![format!("--{TABLE}={item}")])
}

/// A value as a command line has it.
fn text(name: &str, value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().to_owned()),
        // As the permissions are written.
        DeValue::Integer(number) if number.radix() == 8 => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        _ => Err(format!("{name} takes a number, a text, true or false")),
    }
}

/// That a name is not known, and which one may be meant.
fn unknown<'a>(what: &str, given: &str, names: impl Iterator<Item = &'a str>) -> String {
    let likeness = |name: &&str| strsim::jaro_winkler(given, name);
    match names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))) {
        Some(nearest) => format!("there is no {what} '{given}'; did you mean '{nearest}'?"),
        None => format!("there is no {what} '{given}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 7] =
        ["port", "memory-limit", "listen", "verbose", "unix-mask", "disable-evictions", "extended"];

    fn command_line(text: &str) -> String {
        let entries = parse(text, &NAMES).expect(text);
        entries.into_iter().flat_map(|entry| entry.words).collect::<Vec<_>>().join(" ")
    }

    fn mistake(text: &str) -> (usize, String) {
        let Mistake { line, what } = parse(text, &NAMES).expect_err(text);
        (line, what)
    }

    #[test]
    fn entries_are_words_of_a_command_line() {
        assert_eq!(command_line(""), "");
        assert_eq!(
            command_line(
                "port = 11_300\nmemory-limit = \"64M\"\ndisable-evictions = true\nunix-mask = 0o770\n"
            ),
            "--port=11300 --memory-limit=64M --disable-evictions --unix-mask=770"
        );
        assert_eq!(command_line("listen = ['::1', '127.0.0.1:7']"), "--listen=::1 --listen=127.0.0.1:7");
        assert_eq!(
            command_line("listen = '*'\ndisable-evictions = false\nverbose = 2"),
            "--listen=* --verbose --verbose"
        );
        assert_eq!(command_line("extended = 'modern,idle_timeout=5'"), "--extended=modern,idle_timeout=5");
        assert_eq!(
            command_line(
                "[extended]\nidle_timeout = 5\nmaxconns_fast = false\ntrack_sizes = false\nhot_max_factor = 0.5"
            ),
            "--extended=idle_timeout=5 --extended=no_maxconns_fast --extended=hot_max_factor=0.5"
        );
        // Either way of saying no.
        assert_eq!(
            command_line("[extended]\nno_hashexpand = true\nhashexpand = false"),
            "--extended=no_hashexpand --extended=no_hashexpand"
        );
    }

    #[test]
    fn mistakes_are_told_with_their_line_and_the_nearest_name() {
        assert_eq!(mistake("\nprot = 1"), (2, "there is no option 'prot'; did you mean 'port'?".into()));
        assert_eq!(
            mistake("port = 1\n\nmemory_limit = 1"),
            (3, "there is no option 'memory_limit'; did you mean 'memory-limit'?".into())
        );
        assert_eq!(
            mistake("port = 1\n[extended]\nidle-timeout = 1"),
            (3, "there is no name of -o 'idle-timeout'; did you mean 'idle_timeout'?".into())
        );
        for (text, line) in [
            ("port = ", 1),
            ("port = 1\nport = 2", 2),
            ("# no table\n[listen]\naddress = 1", 2),
            ("listen = [[1]]", 1),
            ("port = 1979-05-27", 1),
            ("port = 0x10", 1),
            ("verbose = 4", 1),
            ("[extended]\nidle_timeout = '1,bogus'", 2),
        ] {
            assert_eq!(mistake(text).0, line, "{text}");
        }
    }
}

//! From the words of a command line, and the file that they may name, to options.
//!
//! The file's entries stand before the command line's own words, which win: what the command line gives is left out of
//! the file's, but for `-o`, whose names are each on their own.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};

use super::extended;
use super::file::{self, Entry, FileError, Mistake};
use super::listen;
use super::manner::Manner;
use super::options::{self, Options};

/// Why there are no options, or what is wanted in their place.
#[derive(Debug)]
pub(super) enum Instead {
    /// The command line is wrong, or wants help or the version.
    Answer(clap::Error),
    /// The file is wrong.
    File(FileError),
    /// A word is no option.
    Surplus(OsString),
}

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Instead::Answer(answer) => answer.fmt(f),
            Instead::File(error) => error.fmt(f),
            Instead::Surplus(word) => write!(f, "'{}' is no option: see --help", word.display()),
        }
    }
}

impl Error for Instead {}

/// Whose manners a program of this name with these options has.
pub(super) fn manner(program: &OsStr, words: &[OsString]) -> Manner {
    if words.iter().any(|word| word == "--compat") { Manner::Memcached } else { Manner::of(program) }
}

/// The options that `words` give, which stand behind the program's name.
///
/// # Errors
/// [`Instead`].
pub(super) fn read(manner: Manner, words: &[OsString]) -> Result<Options, Instead> {
    let command = options::command(manner);
    let mut matches = matches(&command, words)?;
    if let Some(path) = matches.get_one::<PathBuf>("config") {
        let kept = of_file(&command, path, &matches).map_err(Instead::File)?;
        let both: Vec<OsString> = kept.into_iter().map(OsString::from).chain(words.iter().cloned()).collect();
        matches = self::matches(&command, &both)?;
    }
    let options = Options::from_arg_matches(&matches).map_err(Instead::Answer)?;
    match (manner, options.surplus.first()) {
        (Manner::Lookaside, Some(word)) => Err(Instead::Surplus(word.clone())),
        _ => Ok(options),
    }
}

fn matches(command: &Command, words: &[OsString]) -> Result<ArgMatches, Instead> {
    let program = OsString::from(command.get_name());
    // memcached takes a value here, and does not mind it.
    let plain = |word: &OsString| match word.to_str() {
        Some(text) if text.starts_with("--verbose=") => "--verbose".into(),
        _ => word.clone(),
    };
    let words = std::iter::once(program).chain(words.iter().map(plain));
    command.clone().try_get_matches_from(words).map_err(Instead::Answer)
}

/// The words of a file, less those of options that the command line gives.
fn of_file(command: &Command, path: &Path, given: &ArgMatches) -> Result<Vec<String>, FileError> {
    let text = fs::read_to_string(path).map_err(|error| FileError::Read { path: path.to_owned(), error })?;
    let entries =
        entries(command, &text).map_err(|mistake| FileError::Content { path: path.to_owned(), mistake })?;
    let is_given = |name: &str| {
        let option = command.get_arguments().find(|option| option.get_long() == Some(name));
        let source = option.and_then(|option| given.value_source(option.get_id().as_str()));
        source == Some(ValueSource::CommandLine) && name != "extended"
    };
    Ok(entries.into_iter().filter(|entry| !is_given(&entry.name)).flat_map(|entry| entry.words).collect())
}

/// The entries of a file, each of which alone is a command line.
fn entries(command: &Command, text: &str) -> Result<Vec<Entry>, Mistake> {
    let names = file_names(command);
    let entries = file::parse(text, &names)?;
    for entry in &entries {
        let words: Vec<_> = entry.words.iter().map(OsString::from).collect();
        matches(command, &words).map_err(|instead| {
            let said = instead.to_string();
            let said = said.lines().next().unwrap_or_default();
            Mistake { line: entry.line, what: said.strip_prefix("error: ").unwrap_or(said).to_owned() }
        })?;
        check_lists(entry)?;
    }
    Ok(entries)
}

/// That the lists of an entry are lists.
fn check_lists(entry: &Entry) -> Result<(), Mistake> {
    let wrong = |what| Mistake { line: entry.line, what };
    for word in &entry.words {
        if let Some(list) = word.strip_prefix("--extended=") {
            extended::parse(list).map_err(|error| wrong(error.to_string()))?;
        } else if let Some(list) = word.strip_prefix("--listen=") {
            listen::parse(list).map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(())
}

/// The names that a file may have: all long ones, but for what is asked and not set.
fn file_names(command: &Command) -> Vec<&str> {
    let names = command.get_arguments().filter_map(|option| option.get_long());
    names.filter(|name| !["config", "license"].contains(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(text: &str, words: &[&str]) -> Result<Options, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("lookaside.toml");
        fs::write(&path, text).expect("a file");
        let mut all = vec!["--config".into(), path.clone().into_os_string()];
        all.extend(words.iter().map(OsString::from));
        read(Manner::Lookaside, &all)
            .map_err(|instead| instead.to_string().replace(&path.display().to_string(), "FILE"))
    }

    #[test]
    fn the_command_line_wins() {
        let text = "port = 1\nthreads = 2\nlisten = ['::1', '127.0.0.1']\nverbose = 3\ndisable-evictions = true\n\
                    [extended]\nidle_timeout = 5";
        let options = read_with(text, &[]).expect("sound");
        assert_eq!((options.port, options.threads, options.verbose, options.conn_limit), (1, 2, 3, 1024));
        assert_eq!(options.listen, ["::1", "127.0.0.1"]);
        assert_eq!(options.extended, ["idle_timeout=5"]);
        assert!(options.disable_evictions && !options.daemon && !options.compat);
        assert!(read_with("compat = true", &[]).expect("sound").compat);
        let words = ["-p", "9", "-l", "127.0.0.2", "-v", "-o", "idle_timeout=7"];
        let options = read_with(text, &words).expect("sound");
        assert_eq!((options.port, options.threads, options.verbose), (9, 2, 1));
        assert_eq!(options.listen, ["127.0.0.2"]);
        // In order, so that the last of a name is the one.
        assert_eq!(options.extended, ["idle_timeout=5", "idle_timeout=7"]);
    }

    #[test]
    fn values_of_a_file_are_checked_as_those_of_the_command_line() {
        for (text, said) in [
            (
                "\n\nport = 65536",
                "FILE, line 3: invalid value '65536' for '--port <NUM>': 65536 is not in -1..=65535",
            ),
            ("memory-limit = '64X'", "FILE, line 1: invalid value '64X' for '--memory-limit <NUM>'"),
            ("threads = 1\nport = true", "FILE, line 2: a value is required for '--port <NUM>'"),
            ("daemon = 'yes'", "FILE, line 1: unexpected value 'yes' for '--daemon'"),
            ("comfig = 'x'", "FILE, line 1: there is no option 'comfig'; did you mean"),
            ("config = 'x'", "FILE, line 1: there is no option 'config'"),
            ("\nthreads = [1, 2]", "FILE, line 2: threads takes one value"),
            ("\nverbose = 'much'", "FILE, line 2: verbose is from 0 to 3"),
            ("\nextended = 'modern,bogus'", "FILE, line 2: Illegal suboption \"bogus\""),
            ("\n[extended]\nidle_timeout = 'x'", "FILE, line 3: -o idle_timeout needs a number"),
            ("\n[extended]\nssl_key = 'x'", "FILE, line 3: -o ssl_key: TLS is not offered yet"),
            ("\nlisten = ['127.0.0.1', '::1:x']", "FILE, line 2: cannot listen on '::1:x'"),
        ] {
            let refusal = read_with(text, &[]).err().expect(text);
            assert!(refusal.starts_with(said), "{text}: {refusal}");
        }
        let nowhere = read(Manner::Lookaside, &["--config".into(), "/nowhere/at-all".into()]);
        assert!(nowhere.is_err_and(|instead| instead.to_string().contains("cannot read /nowhere/at-all")));
    }

    #[test]
    fn what_is_no_option_is_refused_but_not_by_memcached() {
        let words = ["-m", "64", "surplus"].map(OsString::from);
        assert!(read(Manner::Memcached, &words).is_ok());
        let refusal = read(Manner::Lookaside, &words).err().expect("it is no option");
        assert!(refusal.to_string().contains("surplus"), "{refusal}");
    }

    #[test]
    fn every_option_has_a_short_or_a_long_name_of_memcacheds() {
        let command = options::command(Manner::Memcached);
        // Those of memcached 1.6.45's help; -D and -N have no long one there.
        let memcacheds = [
            ('p', "port"),
            ('U', "udp-port"),
            ('s', "unix-socket"),
            ('a', "unix-mask"),
            ('A', "enable-shutdown"),
            ('l', "listen"),
            ('d', "daemon"),
            ('r', "enable-coredumps"),
            ('u', "user"),
            ('m', "memory-limit"),
            ('M', "disable-evictions"),
            ('c', "conn-limit"),
            ('k', "lock-memory"),
            ('v', "verbose"),
            ('i', "license"),
            ('P', "pidfile"),
            ('f', "slab-growth-factor"),
            ('n', "slab-min-size"),
            ('L', "enable-largepages"),
            ('D', "delimiter"),
            ('t', "threads"),
            ('R', "max-reqs-per-event"),
            ('C', "disable-cas"),
            ('b', "listen-backlog"),
            ('B', "protocol"),
            ('I', "max-item-size"),
            ('S', "enable-sasl"),
            ('F', "disable-flush-all"),
            ('X', "disable-dumping"),
            ('W', "disable-watch"),
            ('Y', "auth-file"),
            ('e', "memory-file"),
            ('Z', "enable-ssl"),
            ('o', "extended"),
            ('N', "napi-ids"),
        ];
        let ours: Vec<_> = command
            .get_arguments()
            .filter_map(|option| Some((option.get_short()?, option.get_long()?)))
            .collect();
        assert_eq!(ours, memcacheds);
    }

    #[test]
    fn what_memcacheds_getopt_takes() {
        let read =
            |words: &[&str]| read(Manner::Memcached, &words.iter().map(OsString::from).collect::<Vec<_>>());
        let options = read(&[
            "-vMkp11300",
            "--verbose=1",
            "-m64M",
            "--thr=2",
            "--max-item",
            "2m",
            "-D-",
            "-omodern",
            "-d",
            "-d",
        ])
        .expect("sound");
        assert_eq!(
            (options.verbose, options.port, options.memory_limit, options.threads),
            (2, 11300, 64 << 20, 2)
        );
        assert!(options.disable_evictions && options.lock_memory && options.daemon);
        assert_eq!(
            (options.max_item_size, options.delimiter, options.extended),
            (2 << 20, Some(b'-'), vec!["modern".to_owned()])
        );
    }
}

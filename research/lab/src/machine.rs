//! Where numbers come from: the machine, the revision of this repository, the compiler.
//!
//! Everything is asked of the system at the time of the run, except the compiler, which is the one that built this
//! crate. What cannot be found out is said to be unknown.

use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// What cannot be found out.
const UNKNOWN: &str = "unknown";

/// The machine that a program runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name for itself.
    pub processor: String,
    /// Processors that this program may use.
    pub cores: usize,
    /// Memory, in whole GiB.
    pub memory_gib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's setting for transparent huge pages.
    pub transparent_huge_pages: String,
}

/// Where results come from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// When they were measured: UTC, RFC 3339.
    pub date: String,
    /// The git revision of this repository; `+changes` where files differed from it.
    pub revision: String,
    /// The compiler.
    pub compiler: String,
    /// `release`, or `debug`, whose numbers mean nothing.
    pub build: String,
    /// The program's allocator.
    pub allocator: String,
    /// The machine.
    pub machine: Machine,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let processor = field(&cpuinfo, "model name").unwrap_or(UNKNOWN).to_owned();
        let meminfo = read("/proc/meminfo");
        let kib = field(&meminfo, "MemTotal")
            .and_then(|total| total.strip_suffix("kB")?.trim().parse::<u64>().ok());
        let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
        let known = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { text.to_owned() };
        Machine {
            processor,
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            // The kernel keeps a part for itself: round to what was put in.
            memory_gib: kib.map_or(0, |kib| (kib + (1 << 19)) >> 20),
            kernel: known(read("/proc/sys/kernel/osrelease").trim()),
            // The setting in force is the one in brackets.
            transparent_huge_pages: known(
                huge.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(now, _)| now),
            ),
        }
    }

    /// A name for the machine that can stand in a path.
    ///
    /// ```
    /// use lookaside_lab::machine::Machine;
    ///
    /// let processor = "AMD EPYC 9B14 @ 2.60GHz".to_owned();
    /// let machine = Machine { processor, cores: 2, memory_gib: 24, ..Machine::default() };
    /// assert_eq!(machine.slug(), "amd-epyc-9b14-2-60ghz-2-cores-24-gib");
    /// ```
    #[must_use]
    pub fn slug(&self) -> String {
        let name =
            format!("{} {} cores {} gib", self.processor, self.cores, self.memory_gib).to_ascii_lowercase();
        let words: Vec<_> =
            name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        words.join("-")
    }
}

/// The value of `name: value` in one of the kernel's lists.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

impl Provenance {
    /// Here and now: `repository` is a folder in the repository, `allocator` the name of the program's.
    #[must_use]
    pub fn collect(repository: &Path, allocator: &str) -> Provenance {
        Provenance {
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            revision: revision(repository).unwrap_or_else(|| UNKNOWN.to_owned()),
            compiler: env!("LAB_COMPILER").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
            allocator: allocator.to_owned(),
            machine: Machine::this(),
        }
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Provenance { date, revision, compiler, build, allocator, machine } = self;
        let Machine { processor, cores, memory_gib, kernel, transparent_huge_pages } = machine;
        write!(
            f,
            "{processor}, {cores} cores, {memory_gib} GiB, Linux {kernel}, transparent huge pages: \
             {transparent_huge_pages}; {allocator} allocator; {compiler}, {build} build of {revision}; {date}"
        )
    }
}

fn revision(repository: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(repository).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    // Results are not what was measured: writing one must not make the next one's revision look changed.
    let changes = git(&["status", "--porcelain", "--", ":/", ":(exclude,top)research/results"])?;
    Some(if changes.is_empty() { revision } else { format!("{revision}+changes") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::this();
        assert!(machine.cores > 0);
        if cfg!(target_os = "linux") {
            assert!(machine.memory_gib < 1 << 20 && machine.kernel != UNKNOWN);
        }
        let slug = machine.slug();
        assert!(slug.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{slug}");
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "MemTotalExtra:  1 kB\nMemTotal:   24684092 kB\n";
        assert_eq!(field(text, "MemTotal"), Some("24684092 kB"));
        assert_eq!(field(text, "Mem"), None);
    }

    #[test]
    fn a_folder_without_a_repository_has_no_revision() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Provenance::collect(folder.path(), "system").revision, UNKNOWN);
    }

    #[test]
    fn a_changed_file_shows_in_the_revision_and_a_result_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
            let status =
                Command::new("git").current_dir(folder.path()).args(identity).args(arguments).output();
            status.is_ok_and(|output| output.status.success())
        };
        assert!(git(&["init"]), "git is needed to test how git is asked");
        std::fs::write(folder.path().join("file"), "1").unwrap();
        assert!(git(&["add", "."]) && git(&["commit", "-m", "first"]));
        let clean = revision(folder.path()).unwrap();
        assert_eq!(clean.len(), 12);
        std::fs::create_dir_all(folder.path().join("research/results")).unwrap();
        std::fs::write(folder.path().join("research/results/new.csv"), "").unwrap();
        assert_eq!(revision(folder.path()).unwrap(), clean);
        std::fs::write(folder.path().join("file"), "2").unwrap();
        assert_eq!(revision(folder.path()).unwrap(), format!("{clean}+changes"));
    }
}

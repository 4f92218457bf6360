//! How much memory this process may have: the least of what the machine has and what its control groups allow.
//!
//! A server that is asked for more starts all the same, for memory is taken as items come, and is killed when it has
//! filled what there is, hours later and without a word. So the start is the time to speak.
//!
//! A control group's limit lies in a file of its folder, and those of all groups around it hold too. Where the folder
//! is follows from two files: `/proc/self/cgroup` says in which group of which hierarchy the process is,
//! `/proc/self/mountinfo` where a hierarchy is mounted, and which group of it the mount shows as its topmost: in a
//! container that is usually the container's own, under the name that the host knows it by (cgroups(7),
//! proc_pid_mountinfo(5)).
//!
//! Rejected: sysinfo and procfs. The one knows the topmost group alone, the other reads the two files and leaves the
//! rest to do; neither can be given another root to test it with.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A limit, and who sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) bytes: u64,
    pub(super) source: Source,
}

/// Who sets a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// There is no more in the machine.
    Machine,
    /// A control group's file says so.
    ControlGroup(PathBuf),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded down: it is what there is at least.
        let megabytes = self.bytes >> 20;
        match &self.source {
            Source::Machine => write!(f, "this machine has {megabytes} MB of memory"),
            Source::ControlGroup(file) => {
                write!(f, "its control group may use {megabytes} MB ({})", file.display())
            }
        }
    }
}

/// A hierarchy of control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hierarchy {
    /// Version 1, that of the memory controller.
    Memory,
    /// Version 2, which has all controllers.
    Unified,
}

impl Hierarchy {
    /// The files of a group that limit its memory: beyond the first it is killed, beyond the second slowed to a crawl.
    fn files(self) -> &'static [&'static str] {
        match self {
            Hierarchy::Memory => &["memory.limit_in_bytes"],
            Hierarchy::Unified => &["memory.max", "memory.high"],
        }
    }
}

/// The least of the limits on this process's memory, with all files looked for under `root`, which is `/`. `None` where
/// the system says nothing.
pub(super) fn memory(root: &Path) -> Option<Limit> {
    control_groups(root).into_iter().chain(machine(root)).min_by_key(|limit| limit.bytes)
}

fn machine(root: &Path) -> Option<Limit> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(Limit { bytes: kilobytes << 10, source: Source::Machine })
}

/// The limits of the groups that the process is in and of all that lie around them, as far as they can be seen.
fn control_groups(root: &Path) -> Vec<Limit> {
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let mut limits = Vec::new();
    for (hierarchy, group) in groups.lines().filter_map(group) {
        for mount in mounts.iter().filter(|mount| mount.hierarchy == hierarchy) {
            let top = within(root, &mount.point);
            let inner = group.strip_prefix(&mount.root).ok();
            // A group that the mount does not show is one outside the container, which sees only its own, at the top.
            let folder =
                inner.filter(|inner| top.join(inner).is_dir()).map_or(top.clone(), |inner| top.join(inner));
            for folder in folder.ancestors().take_while(|folder| folder.starts_with(&top)) {
                for file in hierarchy.files().iter().map(|name| folder.join(name)) {
                    // No limit is the word `max` in version 2, and a number larger than any memory in version 1.
                    let text = fs::read_to_string(&file).unwrap_or_default();
                    if let Ok(bytes) = text.trim().parse() {
                        let shown = file.strip_prefix(root).unwrap_or(&file);
                        limits
                            .push(Limit { bytes, source: Source::ControlGroup(Path::new("/").join(shown)) });
                    }
                }
            }
        }
    }
    limits
}

/// A line of `/proc/self/cgroup`: `hierarchy:controllers:group`.
fn group(line: &str) -> Option<(Hierarchy, &Path)> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
    let hierarchy = if number == "0" && controllers.is_empty() {
        Hierarchy::Unified
    } else if controllers.split(',').any(|controller| controller == "memory") {
        Hierarchy::Memory
    } else {
        return None;
    };
    Some((hierarchy, Path::new(group)))
}

/// A place where a hierarchy is mounted.
struct Mount {
    hierarchy: Hierarchy,
    /// The group that is shown as the topmost one.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// A line of `/proc/self/mountinfo`: `id parent device root point options [tags] - type source options`.
    fn parse(line: &str) -> Option<Mount> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let (root, point) = (front.next()?, front.next()?);
        let mut back = back.split(' ');
        let (kind, options) = (back.next()?, back.nth(1)?);
        let hierarchy = match kind {
            "cgroup2" => Hierarchy::Unified,
            "cgroup" if options.split(',').any(|option| option == "memory") => Hierarchy::Memory,
            _ => return None,
        };
        Some(Mount { hierarchy, root: unescape(root).into(), point: unescape(point).into() })
    }
}

/// A path in which a space, a tab, a line feed and a backslash stand as `\` and three octal digits.
fn unescape(text: &str) -> String {
    text.replace(r"\040", " ").replace(r"\011", "\t").replace(r"\012", "\n").replace(r"\134", "\\")
}

/// An absolute path as it lies under another root.
fn within(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    /// A root folder with these files; the machine has 1,000 MB.
    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (name, text) in
            [("proc/meminfo", "MemTotal:        1024000 kB\nMemFree: 5 kB\n")].iter().chain(files)
        {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        root
    }

    fn limit(files: &[(&str, &str)]) -> (u64, String) {
        let root = root(files);
        let limit = memory(root.path()).expect("the machine has memory");
        let source = match limit.source {
            Source::Machine => "machine".to_owned(),
            Source::ControlGroup(file) => file.display().to_string(),
        };
        (limit.bytes, source)
    }

    const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const MEMORY: &str = "29 23 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                          33 23 0:29 / /sys/fs/cgroup/memory rw,relatime shared:14 - cgroup cgroup rw,memory\n";

    #[test]
    fn without_groups_it_is_the_machine() {
        assert_eq!(limit(&[]), (1000 * MB, "machine".into()));
        // In a group without a limit, too, in either version.
        let files = [
            ("proc/self/cgroup", "4:memory:/a\n0::/a\n"),
            ("proc/self/mountinfo", &[UNIFIED, MEMORY].concat()),
            ("sys/fs/cgroup/a/memory.max", "max\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(limit(&files), (1000 * MB, "machine".into()));
        assert_eq!(memory(Path::new("/nowhere-at-all")), None);
    }

    #[test]
    fn version_2_and_all_groups_around() {
        let mut files = vec![
            ("proc/self/cgroup", "0::/system.slice/cache.service\n"),
            ("proc/self/mountinfo", UNIFIED),
            ("sys/fs/cgroup/system.slice/cache.service/memory.max", "536870912\n"),
        ];
        assert_eq!(limit(&files), (512 * MB, "/sys/fs/cgroup/system.slice/cache.service/memory.max".into()));
        files.push(("sys/fs/cgroup/system.slice/memory.max", "268435456\n"));
        assert_eq!(limit(&files), (256 * MB, "/sys/fs/cgroup/system.slice/memory.max".into()));
        files.push(("sys/fs/cgroup/system.slice/cache.service/memory.high", "134217728\n"));
        assert_eq!(limit(&files), (128 * MB, "/sys/fs/cgroup/system.slice/cache.service/memory.high".into()));
        // Nobody is in a group beside it.
        files.push(("sys/fs/cgroup/user.slice/memory.max", "1\n"));
        assert_eq!(limit(&files).0, 128 * MB);
    }

    #[test]
    fn version_1_and_all_groups_around() {
        let mut files = vec![
            ("proc/self/cgroup", "6:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/y\n"),
            ("proc/self/mountinfo", MEMORY),
            ("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "314572800\n"),
            ("sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "1\n"),
        ];
        let file = |folder: &str| format!("/sys/fs/cgroup/memory/{folder}memory.limit_in_bytes");
        assert_eq!(limit(&files), (300 * MB, file("docker/abc/")));
        files.push(("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "209715200\n"));
        assert_eq!(limit(&files), (200 * MB, file("docker/")));
        files.push(("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n"));
        assert_eq!(limit(&files), (100 * MB, file("")));
    }

    /// A container sees its own group where the hierarchy is mounted, whatever the host calls it.
    #[test]
    fn in_a_container() {
        let mount = "33 23 0:29 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                     34 23 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        let own = |group: &'static str| {
            [
                ("proc/self/cgroup", group),
                ("proc/self/mountinfo", mount),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n"),
                ("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "52428800\n"),
                ("sys/fs/cgroup/memory.max", "103809024\n"),
            ]
        };
        assert_eq!(limit(&own("5:memory:/docker/abc\n")).0, 100 * MB);
        assert_eq!(limit(&own("5:memory:/docker/abc/inner\n")).0, 50 * MB);
        assert_eq!(limit(&own("0::/docker/abc\n")).0, 99 * MB);
        // With a name space of its own, in it and seen from within.
        assert_eq!(limit(&own("0::/\n")).0, 99 * MB);
        assert_eq!(limit(&own("0::/../other\n")).0, 99 * MB);
    }

    #[test]
    fn where_mounts_have_spaces_in_their_names() {
        let files = [
            ("proc/self/cgroup", "0::/a\n"),
            ("proc/self/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 none rw\n"),
            ("my groups/a/memory.max", "1048576\n"),
        ];
        assert_eq!(limit(&files), (MB, "/my groups/a/memory.max".into()));
    }
}

//! The cache lines that an operation of the cache writes, and how long it holds locks, beside what is committed:
//! `lines.toml`.
//!
//! What two cores write in turn is what keeps many cores from working side by side, and no clock of a machine with two
//! shows it. So the stores themselves are looked at, with their addresses, as lackey writes them down: the lines that
//! an operation writes, by what lies there ([`cache::engine::Cache::regions`]). Memory that belongs to nobody counts as
//! shared. A lock is told by its word: changed in one step when it is taken, and written again when it is given back.
//! How long it is held is the number of instructions between.
//!
//! The lines hardly depend on the compiler; the instructions do.
//!
//! Rejected: *to count in the atomics*, where loom is put in: most of what an operation writes is no atomic.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::committed::Committed;
use crate::program::{build, has_valgrind, output_of};

const COMMITTED: Committed = Committed {
    file: "lines.toml",
    head: "# What an operation of the cache (a key, in batches) writes and locks, seen by lackey: see tests/lines.rs.\n\
           # OPERATION_lines_REGION: cache lines written. OPERATION_locks_REGION: locks taken there.\n\
           # OPERATION_held_REGION: instructions for which one is held.\n\
           # LOOKASIDE_BLESS=1 cargo test -p lookaside-counts writes them anew.\n",
    decimals: 2,
    // Which parts of a count a batch adds to depends on its keys' hashes, which differ from run to run.
    always: 0.08,
};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Locks an operation, below which nothing is said of how long one is held: it is the mean of a few.
const RARE: f64 = 0.03;
/// What no other thread looks at.
const PRIVATE: [&str; 2] = ["stack", "session"];
/// What is not named.
const ELSEWHERE: &str = "elsewhere";

/// What a program says of itself.
#[derive(Debug, Default)]
struct Description {
    operations: usize,
    groups: usize,
    begin: usize,
    end: usize,
    regions: Vec<(String, Range<usize>)>,
}

impl Description {
    fn read(text: &str) -> Description {
        let mut description = Description::default();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            let number = |word: &str| word.parse::<usize>().expect("a number");
            match words[..] {
                ["operations", operations] => description.operations = number(operations),
                ["groups", groups] => description.groups = number(groups),
                ["marks", begin, end] => (description.begin, description.end) = (number(begin), number(end)),
                ["region", name, start, end] => {
                    description.regions.push((name.to_owned(), number(start)..number(end)));
                }
                _ => panic!("{line}"),
            }
        }
        description
    }

    fn region(&self, address: usize) -> &str {
        let found = self.regions.iter().find(|(_, region)| region.contains(&address));
        found.map_or(ELSEWHERE, |(name, _)| name)
    }
}

/// What a group of operations does.
#[derive(Debug, Default)]
struct Group {
    lines: BTreeSet<usize>,
    /// Where a lock is, and the instructions for which it was held.
    held: Vec<(usize, u64)>,
    /// Of each bucket's lock, when it was written first and last.
    buckets: BTreeMap<usize, (u64, u64)>,
}

/// An access, as lackey writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Instruction,
    Load,
    Store,
    /// A load and a store in one instruction.
    Change,
}

/// The kind of a line such as ` S 1fff000738,8`, and of what is written the address and the bytes.
fn access(line: &str) -> Option<(Access, usize, usize)> {
    let (kind, place) = line.split_at_checked(3)?;
    let kind = match kind {
        // Most lines are these two, and where that was matters to nobody.
        "I  " => return Some((Access::Instruction, 0, 0)),
        " L " => return Some((Access::Load, 0, 0)),
        " S " => Access::Store,
        " M " => Access::Change,
        _ => return None,
    };
    let (address, bytes) = place.split_once(',')?;
    Some((kind, usize::from_str_radix(address, 16).ok()?, bytes.parse().ok()?))
}

/// The last groups of a trace.
fn groups(mut trace: impl BufRead, description: &Description) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut now: Option<Group> = None;
    let mut instructions = 0u64;
    let mut open = BTreeMap::new();
    // One line's memory for all of them: they are millions.
    let mut line = String::new();
    while trace.read_line(&mut line).expect("a trace") > 0 {
        let accessed = access(line.trim_end());
        line.clear();
        let Some((kind, address, bytes)) = accessed else { continue };
        match kind {
            Access::Instruction => instructions += 1,
            Access::Load => {}
            _ if address == description.begin => now = Some(Group::default()),
            _ if address == description.end => groups.extend(now.take()),
            _ => {
                let Some(group) = &mut now else { continue };
                group.lines.extend((address / LINE..=(address + bytes - 1) / LINE).map(|line| line * LINE));
                let is_change = kind == Access::Change;
                match lock(description.region(address), bytes) {
                    Some(Lock::Bucket) if is_change || group.buckets.contains_key(&address) => {
                        group.buckets.entry(address).or_insert((instructions, instructions)).1 = instructions;
                    }
                    Some(Lock::Byte) => {
                        if let Some(taken) = open.remove(&address) {
                            group.held.push((address, instructions - taken));
                        } else if is_change {
                            open.insert(address, instructions);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(open.is_empty(), "locks that nobody gives back: {open:?}");
    for group in &mut groups {
        let buckets = std::mem::take(&mut group.buckets);
        group.held.extend(buckets.into_iter().map(|(lock, (taken, last))| (lock, last - taken)));
    }
    groups.split_off(groups.len() - description.groups)
}

/// A word that is a lock.
enum Lock {
    /// A bucket's, with its version and its marks: whoever holds it may write it several times. It is held from the
    /// first change of a group to the last at most; an operation locks a bucket once.
    Bucket,
    /// Any other: the change after the one that takes it gives it back.
    Byte,
}

/// The lock that a word of so many bytes is there, if it is one.
fn lock(region: &str, bytes: usize) -> Option<Lock> {
    match (region, bytes) {
        ("index", 4) => Some(Lock::Bucket),
        ("classes" | "epochs" | "engine" | ELSEWHERE, 1) => Some(Lock::Byte),
        _ => None,
    }
}

/// What a program's operations write and lock.
fn watch(program: &Path, name: &str) -> BTreeMap<String, f64> {
    let trace = program.with_file_name(format!("{name}.lackey"));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=lackey", "--basic-counts=no", "--trace-mem=yes"]);
    valgrind.arg(format!("--log-file={}", trace.display())).arg(program).args(["lines", name]);
    let description = Description::read(&output_of(&mut valgrind));
    let groups = groups(BufReader::new(File::open(&trace).unwrap()), &description);
    fs::remove_file(&trace).unwrap();

    let operations = description.operations as f64;
    let mut numbers = BTreeMap::new();
    let mut add = |what: &str, address: usize, number: f64| {
        let region = description.region(address);
        if !PRIVATE.contains(&region) {
            *numbers.entry(format!("{name}_{what}_{region}")).or_insert(0.0) += number;
        }
    };
    for group in &groups {
        group.lines.iter().for_each(|&line| add("lines", line, 1.0 / operations));
        for &(lock, instructions) in &group.held {
            add("locks", lock, 1.0 / operations);
            // Two keys of a group may have one bucket, by chance, and its lock would seem to be held between them.
            if description.operations == description.groups || description.region(lock) != "index" {
                add("held", lock, instructions as f64 / operations);
            }
        }
    }
    let locks: Vec<_> = numbers
        .iter()
        .filter(|(name, _)| name.contains("_locks_"))
        .map(|(name, &locks)| (name.replace("_locks_", "_held_"), locks))
        .collect();
    for (held, locks) in locks {
        if locks < RARE {
            numbers.remove(&held);
        } else {
            numbers.entry(held).and_modify(|instructions| *instructions /= locks);
        }
    }
    numbers
}

#[test]
fn lines_and_locks_are_those_that_are_committed() {
    if !has_valgrind() {
        return;
    }
    COMMITTED.compare(|| {
        let program = build();
        let names = output_of(Command::new(&program).arg("lines"));
        let names: Vec<_> = names.lines().collect();
        let program = &program;
        // Two at a time: each has one thread, and a trace of millions of lines.
        let numbers: BTreeMap<_, _> = thread::scope(|scope| {
            let watch_all = move |names: &[&str]| -> Vec<_> {
                names.iter().flat_map(|name| watch(program, name)).collect()
            };
            let halves = names.chunks(names.len().div_ceil(2));
            let threads = halves.map(|half| scope.spawn(move || watch_all(half)));
            threads.collect::<Vec<_>>().into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        // Whatever is committed: a hit writes nothing that another core reads for its own hits, and takes no lock.
        let of_hits =
            numbers.keys().filter(|name| name.starts_with("get_") || name.starts_with("get-batched_"));
        for name in of_hits {
            assert!(name.ends_with("_lines_epoch-of-the-session"), "a hit writes: {name}");
        }
        numbers
    });
}

#[test]
fn a_trace_is_read_as_lackey_writes_it() {
    let description = Description::read(
        "groups 1\noperations 2\nmarks 4096 4224\nregion stack 8192 12288\nregion index 65536 131072\n",
    );
    let trace = "\
==1== a word of valgrind's
 S 1000,8
 S 10000,8
 S 1080,8
I  04000,3
 S 1000,8
I  04003,4
 L 10080,8
 M 10040,4
I  04007,4
I  0400b,4
 S 1003c,8
I  0400f,4
 S 10040,4
 S 2000,8
 S 1080,8
 S 20000,8
";
    let groups = groups(trace.as_bytes(), &description);
    let [group] = &groups[..] else { panic!("{groups:?}") };
    let lines: Vec<_> = group.lines.iter().copied().collect();
    assert_eq!(lines, [0x2000, 0x10000, 0x10040]);
    assert_eq!(group.held, [(0x10040, 3)]);
    assert_eq!(description.region(0x20000), ELSEWHERE);
    assert_eq!((description.region(0x2000), description.operations), ("stack", 2));
}

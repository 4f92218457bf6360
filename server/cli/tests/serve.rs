//! The server as it is started: its options, what it says on standard error, and who it runs as.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};

use crate::serving::{PROGRAM, Serving, ask, stat, wait_for};

/// Log lines had colour codes in them wherever they went, to files and to the journal too, where nothing shows colours
/// and words are searched for.
#[test]
fn log_lines_in_a_file_had_colour_codes() {
    let server = Serving::start(Command::new(PROGRAM).args(["-vv", "-m", "8"]));
    assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION 1.6."));
    // It says that it listens while the first client may have come already.
    let has_both = |log: &String| log.contains("new client connection") && log.contains("INFO");
    let log = wait_for("a line on the connection", || Some(server.log()).filter(has_both));
    assert!(!log.contains('\x1b'), "{log:?}");
}

/// A log line that could not be written, because the disk was full or who read it had gone, was replaced by a message
/// that could not be written either, and that was a panic: the thread ended, and the server with it.
#[test]
fn a_log_that_could_not_be_written_ended_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = PathBuf::from("/dev/null");
    let full = File::options().write(true).open("/dev/full").expect("Linux has one");
    let mut command = Command::new(PROGRAM);
    command.args(["-vv", "-m", "8"]).stderr(full);
    let server = Serving::start_with_its_own_log(&mut command, directory, nowhere.clone());
    for _ in 0..3 {
        assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION 1.6."));
    }

    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(PROGRAM);
    command.args(["-vv", "-m", "8"]).stderr(Stdio::piped());
    let mut server = Serving::start_with_its_own_log(&mut command, directory, nowhere);
    drop(server.child.stderr.take());
    for _ in 0..3 {
        assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION 1.6."));
    }
}

/// A log that grew to the limit of files (`ulimit -f`) was a signal that nobody minded, and the end of the server. Such
/// lines are lost, as on a full disk.
#[test]
fn a_log_that_reached_the_limit_of_files_ended_the_server() {
    let server = Serving::start(Command::new(PROGRAM).args(["-vvv", "-m", "8"]));
    let limit = Rlimit { current: Some(2000), maximum: Some(2000) };
    prlimit(Some(Pid::from_child(&server.child)), Resource::Fsize, limit)
        .expect("a lower one is anybody's right");
    let mut client = server.connect();
    wait_for("as much log as may be", || {
        assert_eq!(ask(&mut client, "get a-key-that-is-not-there\r\n"), "END\r\n");
        (server.log().len() == 2000).then_some(())
    });
    for _ in 0..300 {
        assert_eq!(ask(&mut client, "get a-key-that-is-not-there\r\n"), "END\r\n");
    }
}

/// A server that was given the file of another one's process id took it without a word, and when the other one ended it
/// removed the file, whosever it was by then.
#[test]
fn a_process_id_was_removed_by_another_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("pid");
    let id_in_file = || fs::read_to_string(&file).unwrap_or_default();
    // It listens before it writes the file, and says what there is to say of it.
    let start = || {
        let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-P"]).arg(&file));
        let id = format!("{}\n", server.child.id());
        wait_for("its process id in the file", || (id_in_file() == id).then_some(()));
        server
    };
    let ends = |mut server: Serving| {
        kill_process(Pid::from_child(&server.child), Signal::TERM).expect("it runs");
        assert_eq!(server.child.wait().expect("it is our child").code(), Some(0));
    };
    let (first, second) = (start(), start());
    let told =
        format!("{} has the process id of another one, which runs: {}", file.display(), first.child.id());
    wait_for("what it says of that", || second.log().contains(&told).then_some(()));
    assert_eq!(first.log(), "");
    ends(first);
    assert_eq!(id_in_file(), format!("{}\n", second.child.id()), "it stays");
    ends(second);
    assert!(!file.exists());
    // One of a server that was killed is nothing to speak of.
    drop(start());
    assert!(file.exists());
    assert_eq!(start().log(), "");
}

/// A file of ports that could not be finished stayed behind, half written, when the server had not started.
#[test]
fn a_file_of_ports_was_left_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let ports = directory.path().join("ports");
    fs::create_dir(&ports).expect("a name that is taken");
    let output = Command::new(PROGRAM).args(["-p", "-1"]).env("MEMCACHED_PORT_FILENAME", &ports).output();
    let output = output.expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.code() == Some(1) && said.contains("cannot write the ports to"), "{said}");
    assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
}

/// Where no more threads could be had, the log said that one had ended before its time, and the error not what could
/// not be had.
#[test]
fn a_thread_that_could_not_be_started_ended_before_its_time() {
    // Four stacks of 150 MB are more than so many addresses; what the threads that could be started ask for meanwhile
    // is far less than what is left then.
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 400000; exec \"$0\" \"$@\"", PROGRAM, "-p", "-1", "-m", "8", "-t", "4"])
        .env("RUST_MIN_STACK", "150000000")
        .output()
        .expect("a shell");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.code() == Some(1) && said.lines().count() == 1, "{said}");
    assert!(
        said.starts_with("lookaside: cannot start the thread worker-") && said.contains("(-t)"),
        "{said}"
    );
}

/// A log that nobody reads, as behind a pager or a logger that hangs, is full after some hundred lines. Then the thread
/// that wrote the next one stood still, and with it whoever connected.
#[test]
fn a_log_that_nobody_reads_held_up_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(PROGRAM);
    command.args(["-vvv", "-m", "8"]).stderr(Stdio::piped());
    let mut server = Serving::start_with_its_own_log(&mut command, directory, PathBuf::from("/dev/null"));
    for _ in 0..300 {
        let mut client = server.connect();
        for _ in 0..20 {
            assert_eq!(ask(&mut client, "get a-key-that-is-not-there\r\n"), "END\r\n");
        }
    }
    let pid = Pid::from_child(&server.child);
    kill_process(pid, Signal::TERM).expect("it runs");
    assert_eq!(server.child.wait().expect("it is our child").code(), Some(0));
    let mut log = String::new();
    server.child.stderr.take().expect("piped").read_to_string(&mut log).expect("text");
    assert!(log.contains(" get a-key-that-is-not-there\n"), "{}", log.len());
}

/// With `-u`, where supplementary groups cannot be given up (in user name spaces, and so in containers without root),
/// the server did not start. memcached says so and serves.
#[test]
fn a_user_who_may_not_give_up_groups_was_not_served() {
    let inside = ["-U", "-r"];
    let may = Command::new("unshare").args(inside).arg("true").stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return outside::skip("no user name space can be made here (unshare -U -r)");
    }
    for user in ["root", "0"] {
        let mut command = Command::new("unshare");
        let server = Serving::start(command.args(inside).args([PROGRAM, "-u", user, "-m", "8"]));
        assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION 1.6."));
        let log = server.log();
        assert!(log.contains("WARN") && log.contains("supplementary groups"), "{log:?}");
    }
}

/// `-u 65534` was refused, for no user is called that: images of containers name users by their numbers, and often have
/// no list of users at all.
#[test]
fn a_user_by_number_was_not_known() {
    if !rustix::process::geteuid().is_root() {
        return outside::say("only root can become somebody else");
    }
    // The last is nobody's.
    for number in ["65534", "123456789"] {
        let server = Serving::start(Command::new(PROGRAM).args(["-u", number, "-m", "8"]));
        assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION 1.6."));
        let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).expect("it runs");
        let ids = |name: &str| -> Vec<String> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("Linux says so");
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!((ids("Uid:"), ids("Gid:")), (vec![number.to_owned(); 4], vec![number.to_owned(); 4]));
        assert!(!ids("Groups:").contains(&"0".to_owned()), "{status}");
    }
    let mut command = Command::new(PROGRAM);
    let output = command.args(["-u", "nobody-at-all", "-m", "8", "-p", "-1"]).output().expect("it starts");
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(!output.status.success() && said.contains("no user 'nobody-at-all'"), "{said}");
}

/// A signal that came while memory was claimed, which took seconds if it was much, was minded after that: the server
/// started, listened, and only then ended. It takes a moment now, so that most signals come too late to show it: many
/// are tried. If they were minded late, none would ever come in time.
#[test]
fn a_signal_before_the_start_waited_until_after_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let port_file = directory.path().join("port");
    let has_come_in_time = || {
        let mut child = Command::new(PROGRAM)
            .args(["-p", "-1", "-m", "1024"])
            .env("MEMCACHED_PORT_FILENAME", &port_file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let status = format!("/proc/{}/status", child.id());
        let minds_signals = || {
            let status = fs::read_to_string(&status).expect("it runs");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("Linux says so");
            let caught = u64::from_str_radix(caught.trim(), 16).expect("a number");
            caught >> (Signal::TERM.as_raw() - 1) & 1 == 1
        };
        // Without a rest in between.
        while !minds_signals() {
            assert!(child.try_wait().expect("it is our child").is_none(), "it has ended before");
        }
        kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
        assert_eq!(child.wait().expect("it is our child").code(), Some(0));
        let has_listened = port_file.exists();
        if has_listened {
            fs::remove_file(&port_file).expect("our directory");
        }
        !has_listened
    };
    assert!((0..500).any(|_| has_come_in_time()), "it has listened each time");
}

/// How often the thread that accepts has gone to sleep: in a shortage, once for each attempt.
fn listener_rounds(process: u32) -> u64 {
    let mut tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs").flatten();
    let listener = tasks
        .find(|task| fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "listener\n"));
    let status = fs::read_to_string(listener.expect("it has one").path().join("status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.expect("Linux says so").trim().parse().expect("a number")
}

/// When file descriptors had run out, connections waited without a word, unless every connection was logged: clients
/// timed out, and the operator saw a server that had nothing to say. It is a warning now, and not one for each attempt.
#[test]
fn running_out_of_descriptors_went_without_a_word() {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-c", "100"]));
    let mut observer = server.connect();
    assert!(ask(&mut observer, "version\r\n").starts_with("VERSION"));
    let pid = i32::try_from(server.child.id()).ok().and_then(Pid::from_raw).expect("a process");
    // The first number that is not taken yet is the first that is not to be had.
    let taken =
        |number: &u64| fs::symlink_metadata(format!("/proc/{}/fd/{number}", server.child.id())).is_ok();
    let first = (0..).find(|number| !taken(number));
    let less = Rlimit { current: first, ..getrlimit(Resource::Nofile) };
    let before = prlimit(Some(pid), Resource::Nofile, less).expect("less is always allowed");

    let mut waiting: Vec<_> = (0..3).map(|_| server.connect()).collect();
    let warning = "connections wait, for none can be accepted";
    wait_for("the warning", || server.log().contains(warning).then_some(()));
    assert_eq!(stat(&mut observer, "accepting_conns"), 0);
    // It tries again every few milliseconds, and says so once in a minute.
    let rounds = || listener_rounds(server.child.id());
    let first_rounds = rounds();
    wait_for("twenty more attempts", || (rounds() >= first_rounds + 20).then_some(()));
    let log = server.log();
    assert_eq!(log.matches(warning).count(), 1, "{log}");
    assert!(log.contains("Too many open files") && log.contains("connections=1"), "{log}");
    assert_eq!(stat(&mut observer, "listen_disabled_num"), 1);

    // One that goes makes room for another one.
    drop(observer);
    assert!(ask(&mut waiting[0], "version\r\n").starts_with("VERSION"));
    wait_for("the next one waits", || (stat(&mut waiting[0], "accepting_conns") == 0).then_some(()));
    prlimit(Some(pid), Resource::Nofile, before).expect("what it had");
    for client in &mut waiting {
        assert!(ask(client, "version\r\n").starts_with("VERSION"));
    }
    wait_for("all have come", || (stat(&mut waiting[0], "accepting_conns") == 1).then_some(()));
    assert!(stat(&mut waiting[0], "time_in_listen_disabled_us") > 0);
}

/// `-m` beyond what the machine, or the container, has started without a word, and the server was killed when it had
/// filled what there was.
#[test]
fn more_memory_than_there_is_was_asked_for_without_a_word() {
    let meminfo = fs::read_to_string("/proc/meminfo").expect("Linux");
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).expect("Linux says so");
    let kilobytes: u64 = total.trim().trim_end_matches(" kB").parse().expect("a number");
    let asked = ((kilobytes >> 10) + 2).to_string();
    let mut options = vec!["-m", &asked];
    // Where the kernel promises only what it has, there is nothing to warn of.
    if fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2") {
        return;
    }
    let server = Serving::start(Command::new(PROGRAM).args(&options));
    let log = server.log();
    assert!(log.contains("WARN") && log.contains(&format!("{asked} MB are asked for (-m)")), "{log}");
    let numbers = log.split(" MB").filter_map(|before| before.rsplit(' ').next()?.parse::<u64>().ok());
    let numbers: Vec<_> = numbers.collect();
    assert!(
        numbers.len() == 2 && numbers[1] <= kilobytes >> 10,
        "what is asked for, and what there is: {log}"
    );
    drop(server);
    options[1] = "8";
    let server = Serving::start(Command::new(PROGRAM).args(&options));
    assert_eq!(server.log(), "");
}

/// `-m 67108864` was refused with "ask for at most 70368744177664 bytes", which is that. What an option takes is said
/// in the option's own unit. So it was, and 67108864 said to be the most; but its addresses are claimed twice, and two
/// times 64 TB are more than a process has: it was refused still, when 28 GB of tables had been written.
#[test]
fn the_most_memory_that_was_offered_was_refused() {
    for asked in ["33554433", "67108864"] {
        let output = Command::new(PROGRAM).args(["-m", asked, "-p", "-1"]).output().expect("it starts");
        let said = String::from_utf8(output.stderr).expect("text");
        let refusal = format!("{asked} is not in 1..=33554432");
        assert!(!output.status.success() && said.contains(&refusal), "{said}");
    }
}

/// An error at the start is told as well as it can be, and its exit code is that of an error, not of a panic.
#[test]
fn an_error_that_could_not_be_told_was_a_panic() {
    let full = File::options().write(true).open("/dev/full").expect("Linux has one");
    let mut child = Command::new(PROGRAM)
        .args(["-p", "0"])
        .stderr(full)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let status = child.wait().expect("it is our child");
    assert_eq!(status.code(), Some(1));
    let mut said = String::new();
    child.stdout.take().expect("piped").read_to_string(&mut said).expect("text");
    assert_eq!(said, "");
}

/// Help went to a full disk, or to a reader that had seen enough, as if all were well.
#[test]
fn help_that_could_not_be_written_was_not_noticed() {
    let help = |stdout: Stdio| {
        let output = Command::new(PROGRAM).arg("--help").stdout(stdout).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (code, said) = help(full.into());
    assert!(code == Some(1) && said.starts_with("lookaside: standard output: No space left"), "{said}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(help(writer.into()), (Some(141), String::new()));
}

/// The server's program has nothing of the laboratory.
#[test]
fn what_measures_is_another_program() {
    for command in ["lab", "sim", "advise"] {
        let output = Command::new(PROGRAM).arg(command).output().unwrap();
        assert!(!output.status.success(), "{command} is taken");
    }
}

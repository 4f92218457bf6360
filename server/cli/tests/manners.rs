//! What the program says of itself and where it listens, by its own name and by memcached's; what it refuses, in whose
//! words; and what the process has when it serves.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use lookaside_cli::serve::extended;

use crate::serving::{PATIENCE, PROGRAM, Serving, answer_to_a_noop, ask, stat, wait_for};

/// What a program says to these options, which it does not serve with.
fn answer(program: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } =
        Command::new(program).args(options).stdin(Stdio::null()).output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

/// The one that is installed.
fn memcached() -> Command {
    Command::new(std::env::var_os("LOOKASIDE_MEMCACHED").unwrap_or_else(|| "memcached".into()))
}

/// A folder with the program under memcached's name.
fn as_memcached() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a directory");
    let link = folder.path().join("memcached");
    symlink(PROGRAM, &link).expect("a link");
    (folder, link)
}

/// The lines on standard output of a server that is started with these options, and the addresses it listens on.
fn first_words(program: &Path, options: &[&str]) -> (Vec<String>, BTreeSet<String>) {
    let folder = tempfile::tempdir().expect("a directory");
    let ports = folder.path().join("ports");
    let mut child = Command::new(program)
        .args(options)
        .args(["-p", "-1", "-m", "8", "-t", "1"])
        .env("MEMCACHED_PORT_FILENAME", &ports)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let families = wait_for("the ports", || fs::read_to_string(&ports).ok());
    // It answers when it has said all that it says.
    let port: u16 = families.split_whitespace().nth(2).expect("a port").parse().expect("a number");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    assert!(ask(&mut BufReader::new(stream), "version\r\n").starts_with("VERSION"));
    let is_reached_elsewhere = TcpStream::connect(("127.0.0.2", port)).is_ok();
    child.kill().expect("it runs");
    let output = child.wait_with_output().expect("it is our child");
    let said = [output.stdout, output.stderr].concat();
    let lines = String::from_utf8(said).expect("text").lines().map(str::to_owned).collect();
    let mut families: BTreeSet<_> =
        families.lines().filter_map(|line| line.split(':').next()).map(str::to_owned).collect();
    if is_reached_elsewhere {
        families.insert("elsewhere".into());
    }
    (lines, families)
}

#[test]
fn by_its_own_name_it_listens_to_this_machine_alone_and_says_so() {
    let (lines, places) = first_words(Path::new(PROGRAM), &[]);
    assert_eq!(places, BTreeSet::from(["TCP INET".to_owned()]));
    assert!(lines[0].contains("listens on 127.0.0.1:"), "{lines:?}");
    assert!(lines.len() == 2 && lines[1].starts_with("only this machine can connect"), "{lines:?}");
    // Who asks for an address knows it.
    let (lines, places) = first_words(Path::new(PROGRAM), &["-l", "0.0.0.0"]);
    assert!(lines.len() == 1 && places.contains("elsewhere"), "{lines:?} {places:?}");
}

#[test]
fn by_memcacheds_name_it_listens_on_all_addresses_and_says_nothing() {
    let (_folder, link) = as_memcached();
    for (program, options) in [(&*link, &[][..]), (Path::new(PROGRAM), &["--compat"])] {
        let (lines, places) = first_words(program, options);
        assert_eq!(lines, [""; 0]);
        assert!(places.contains("TCP INET") && places.contains("elsewhere"), "{places:?}");
        if std::net::UdpSocket::bind("[::1]:0").is_ok() {
            assert!(places.contains("TCP INET6"), "{places:?}");
        }
    }
}

#[test]
fn help_and_version_begin_with_the_name() {
    let (_folder, link) = as_memcached();
    let ours = format!("lookaside {}\n", env!("CARGO_PKG_VERSION"));
    for (program, name) in [(&*link, "memcached 1.6.45\n"), (Path::new(PROGRAM), ours.as_str())] {
        for option in ["-h", "--help"] {
            let (code, said, _) = answer(program, &[option]);
            let rest = said.strip_prefix(name).unwrap_or_else(|| panic!("{said}"));
            assert!(code == Some(0) && rest.trim_start().starts_with("-p, --port"), "{said}");
        }
        for option in ["-V", "--version"] {
            assert_eq!(answer(program, &[option]), (Some(0), name.to_owned(), String::new()));
        }
        let (code, said, _) = answer(program, &["-i"]);
        assert!(code == Some(0) && said.starts_with(name) && said.contains("MIT License"), "{said}");
    }
}

/// In memcached's words and with its exit status, by either name.
#[test]
fn unknown_names_of_the_list() {
    let (_folder, link) = as_memcached();
    for list in ["bogus", "modern,bogus=1", ",modern", "no_bogus,maxconns_fast"] {
        let ours = answer(Path::new(PROGRAM), &["-o", list]);
        let word = list.split(',').find(|word| *word != "modern").expect("one is unknown");
        assert_eq!(ours, (Some(1), String::new(), format!("Illegal suboption \"{word}\"\n")));
        assert_eq!(answer(&link, &["-o", list]), ours);
        match memcached().args(["-u", "nobody", "-o", list]).output() {
            Ok(theirs) => assert_eq!(
                (theirs.status.code(), String::from_utf8(theirs.stderr).unwrap()),
                (ours.0, ours.2)
            ),
            Err(_) => outside::skip("memcached is not installed"),
        }
    }
}

/// Every option that the installed memcached's help names is known here.
#[test]
fn whatever_memcacheds_help_names() {
    let Ok(theirs) = memcached().arg("-h").output() else {
        return outside::skip("memcached is not installed");
    };
    let theirs = String::from_utf8(theirs.stdout).expect("text");
    let (_, ours, _) = answer(Path::new(PROGRAM), &["-h"]);
    let (mut options, mut names) = (0, 0);
    for line in theirs.lines() {
        if let Some(name) =
            line.strip_prefix("   - ").and_then(|rest| rest.split_once(':')).map(|(name, _)| name)
            && !name.contains(' ')
            // Of a build with its proxy.
            && !name.starts_with("proxy_")
        {
            names += 1;
            assert!(extended::names().any(|known| known == name), "-o {name}");
        } else if line.starts_with('-') && !line.starts_with("-vv") {
            options += 1;
            let short = line.split([',', ' ']).next().expect("it begins with one");
            let long = line.split_whitespace().nth(1).filter(|word| word.starts_with("--"));
            let long = long.map(|word| word.split('=').next().expect("a name"));
            let shows = |word: &str| ours.split([',', ' ', '\n', '.']).any(|there| there == word);
            // The one is a misprint of theirs, which memcached itself refuses.
            assert!(shows(short) && long.is_none_or(|long| long == "--napi_ids" || shows(long)), "{line}");
        }
    }
    assert!(options > 30 && names > 40, "{options} options and {names} names");
}

/// The page for operators has a row for each option and for each name of `-o`.
#[test]
fn every_option_has_its_row() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/start/memcached.md");
    let page = fs::read_to_string(page).expect("it is of this repository");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
    let has_row = |word: &str| {
        let first_cells = rows.iter().filter_map(|row| row.split('|').nth(1));
        first_cells
            .flat_map(|cell| cell.split('`'))
            .any(|quoted| quoted.split([' ', '=']).next() == Some(word))
    };
    let (_, help, _) = answer(Path::new(PROGRAM), &["-h"]);
    let mut count = 0;
    // An option's line begins with its names.
    for line in help.lines().map(str::trim_start).filter(|line| line.starts_with('-')) {
        for option in line.split([' ', ',', '.']).take_while(|word| word.is_empty() || word.starts_with('-'))
        {
            // Those have no long name in memcached.
            let is_ours = ["", "--delimiter", "--napi-ids"].contains(&option);
            assert!(is_ours || has_row(option), "{option} has no row");
            count += usize::from(!is_ours);
        }
    }
    assert!(count > 60, "{count} options");
    for name in extended::names() {
        let family = &name[..name.find('_').map_or(name.len(), |at| at + 1)];
        let has_family = ["ssl_", "ext_"].contains(&family) && has_row(family);
        assert!(has_row(name) || has_family, "-o {name} has no row");
    }
}

/// A name without a meaning is told once, at the start, by the server's own name; memcached says nothing of it unless
/// it is asked to talk.
#[test]
fn what_has_no_meaning_is_told() {
    let list = ["-f", "1.1", "-o", "hot_lru_pct=30,modern", "-m", "8"];
    let line = "accepted, and without a meaning here: -f, -o hot_lru_pct\n";
    let server = Serving::start(Command::new(PROGRAM).args(list));
    assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION"));
    let log = server.log();
    assert!(log.ends_with(line) && log.lines().count() == 1, "{log}");
    let server = Serving::start(Command::new(PROGRAM).arg("--compat").args(list));
    assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION"));
    assert_eq!(server.log(), "");
    let server = Serving::start(Command::new(PROGRAM).args(["--compat", "-v"]).args(list));
    assert!(server.log().contains(line), "{}", server.log());
}

#[test]
fn what_is_not_offered_yet_is_refused_with_one_sentence() {
    for options in [
        &["-Z"][..],
        &["-S"],
        &["-Y", "/nowhere"],
        &["-U", "11211"],
        &["-e", "/nowhere"],
        &["-o", "ssl_chain_cert=/nowhere"],
        &["-l", "notls:127.0.0.1"],
    ] {
        let (code, out, said) = answer(Path::new(PROGRAM), options);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{options:?}");
        assert!(
            said.starts_with("lookaside: ") && said.contains("not offered yet") && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn a_file_with_options() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("lookaside.toml");
    fs::write(
        &file,
        "conn-limit = 77\nmemory-limit = '16M'\nlisten = '127.0.0.1'\n[extended]\nmaxconns_fast = true\n",
    )
    .expect("a file");
    let mut command = Command::new(PROGRAM);
    let server = Serving::start(command.arg("--config").arg(&file).args(["-m", "8"]));
    let mut client = server.connect();
    assert_eq!((stat(&mut client, "max_connections"), stat(&mut client, "limit_maxbytes")), (77, 8 << 20));
    fs::write(&file, "memory-limit = 16\nconn_limit = 77\n").expect("a file");
    let (code, out, said) = answer(Path::new(PROGRAM), &["--config", file.to_str().expect("text")]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    let mistake = format!(
        "lookaside: {}, line 2: there is no option 'conn_limit'; did you mean 'conn-limit'?\n",
        file.display()
    );
    assert_eq!(said, mistake);
}

/// Connections beyond the most are told so and closed, or wait where they are to.
#[test]
fn one_connection_too_many() {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-c", "1"]));
    let mut first = server.connect();
    assert!(ask(&mut first, "version\r\n").starts_with("VERSION"));
    let mut line = String::new();
    server.connect().read_line(&mut line).expect("it answers");
    assert_eq!(line, "ERROR Too many open connections\r\n");
    drop(server);

    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-c", "1", "-o", "no_maxconns_fast"]));
    let mut first = server.connect();
    assert!(ask(&mut first, "version\r\n").starts_with("VERSION"));
    let mut second = server.connect();
    second.get_mut().write_all(b"stats\r\n").expect("the connection is open");
    wait_for("that it waits", || (stat(&mut first, "accepting_conns") == 0).then_some(()));
    assert_eq!((stat(&mut first, "curr_connections"), stat(&mut first, "rejected_connections")), (1, 0));
    drop(first);
    second.read_line(&mut line).expect("it answers");
    assert!(line.contains("STAT pid"), "{line}");
    assert_eq!(server.log(), "");
}

/// A connection that is silent for too long is closed, and counted.
#[test]
fn a_silent_connection() {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-o", "idle_timeout=1"]));
    let mut silent = server.connect();
    // Half a request is no more than silence.
    silent.get_mut().write_all(b"get hal").expect("the connection is open");
    // Asked anew each time: who asks may be silent, too, where the machine is busy.
    wait_for("its end", || (stat(&mut server.connect(), "idle_kicks") >= 1).then_some(()));
    let mut line = String::new();
    assert_eq!(silent.read_line(&mut line).expect("it is closed in order"), 0, "{line}");
}

/// What `/proc` says of a process, in this file after this name.
fn told(process: u32, file: &str, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("Linux says so");
    line.trim().to_owned()
}

#[test]
fn core_files_and_locked_memory() {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-r", "-k"]));
    assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION"));
    let hard = |limit: &str| limit.split_whitespace().nth(1).map(str::to_owned);
    let limit = told(server.child.id(), "limits", "Max core file size");
    assert_eq!(limit.split_whitespace().next().map(str::to_owned), hard(&limit), "{limit}");
    let locked = told(server.child.id(), "status", "VmLck:");
    let log = server.log();
    // Where it may not lock, it says so.
    assert_eq!(locked == "0 kB", log.contains("memory could not be locked (-k)"), "{locked}: {log}");
}

/// memcached serves without a file for its process id; by its own name, nobody is to find out later that stopping does
/// not work.
#[test]
fn a_file_for_the_process_id_that_cannot_be_written() {
    let options = ["-P", "/nowhere/at/all.pid", "-m", "8"];
    let server = Serving::start(Command::new(PROGRAM).arg("--compat").args(options));
    assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION"));
    assert!(server.log().contains("/nowhere/at/all.pid"), "{}", server.log());
    let (code, _, said) = answer(Path::new(PROGRAM), &[&options[..], &["-p", "-1"]].concat());
    assert!(code == Some(1) && said.contains("/nowhere/at/all.pid"), "{said}");
    // A full disk is known when the file is written.
    let options = ["-P", "/dev/full", "-m", "8"];
    let server = Serving::start(Command::new(PROGRAM).arg("--compat").args(options));
    assert!(ask(&mut server.connect(), "version\r\n").starts_with("VERSION"));
    assert!(server.log().contains("/dev/full"), "{}", server.log());
    let (code, _, said) = answer(Path::new(PROGRAM), &[&options[..], &["-p", "-1"]].concat());
    assert!(code == Some(1) && said.contains("/dev/full"), "{said}");
    // What was there before, and is no file, stays.
    assert!(Path::new("/dev/full").exists());
}

/// A variable that is set to nothing names no file.
#[test]
fn an_empty_name_for_the_ports() {
    let mut command = Command::new(PROGRAM);
    command.args(["-p", "-1", "-m", "8"]).env("MEMCACHED_PORT_FILENAME", "").stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = String::new();
    let out = child.stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut said).expect("text");
    child.kill().expect("it runs");
    child.wait().expect("it is our child");
    assert!(said.contains("listens on"), "{said}");
}

/// What a client is answered by a server with these options.
fn answered(options: &[&str], request: &str) -> String {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8"]).args(options));
    ask(&mut server.connect(), request)
}

#[test]
fn what_clients_may_do_is_the_operators_to_say() {
    assert_eq!(answered(&[], "flush_all\r\n"), "OK\r\n");
    assert_eq!(answered(&["-F"], "flush_all\r\n"), "CLIENT_ERROR flush_all not allowed\r\n");
    assert_eq!(answered(&[], "watch\r\n"), "OK\r\n");
    assert_eq!(answered(&["-W"], "watch\r\n"), "CLIENT_ERROR watch commands not allowed\r\n");
    assert_eq!(answered(&[], "stats cachedump 1 0\r\n"), "END\r\n");
    assert_eq!(answered(&["-X"], "stats cachedump 1 0\r\n"), "CLIENT_ERROR stats cachedump not allowed\r\n");
    assert_eq!(answered(&[], "shutdown\r\n"), "SERVER_ERROR: shutdown not enabled\r\n");
    let crawl = "lru_crawler metadump all\r\n";
    assert_eq!(answered(&["-o", "no_lru_crawler"], crawl), "CLIENT_ERROR lru crawler disabled\r\n");
    let reassign = "slabs reassign 1 2\r\n";
    assert_eq!(
        answered(&["-o", "no_slab_reassign"], reassign),
        "CLIENT_ERROR slab reassignment disabled\r\n"
    );
    assert_eq!(answered(&[], "stats sizes\r\n"), "STAT sizes_status disabled\r\n");
    assert_eq!(answered(&["-o", "track_sizes"], "stats sizes\r\n"), "END\r\n");
}

#[test]
fn a_client_may_stop_it_where_that_is_allowed() {
    let mut server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-A"]));
    server.connect().get_mut().write_all(b"shutdown\r\n").expect("the connection is open");
    assert_eq!(server.child.wait().expect("it is our child").code(), Some(0));
}

/// What is logged of a server with these options, and asked this, as far as it is of requests. `last` ends it, before
/// requests are logged at last, for how much is logged counts when a line is written.
fn logged(options: &[&str], requests: &[&str], last: &str) -> Vec<String> {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8"]).args(options));
    let mut client = server.connect();
    for request in requests {
        assert!(!ask(&mut client, request).is_empty());
    }
    wait_for(last, || Some(server.log()).filter(|log| log.contains(last)));
    ask(&mut client, "verbosity 2\r\n");
    ask(&mut client, "mg last\r\n");
    let log = wait_for("the last line", || Some(server.log()).filter(|log| log.contains(" EN\n")));
    // A socket has some number.
    let lines = log.lines().filter_map(|line| line.split_once("lookaside::requests: "));
    let without_number = |line: &str| {
        let number = line.find(|c: char| c.is_ascii_digit()).unwrap_or(line.len());
        let end = line[number..].find(' ').map_or(line.len(), |end| number + end);
        if line.starts_with("> ") { line.to_owned() } else { format!("{}{}", &line[..number], &line[end..]) }
    };
    lines.map(|(_, line)| without_number(line)).collect()
}

/// As memcached's `-vv` and `-vvv` have them; clients may switch them on and off.
#[test]
fn requests_are_logged() {
    let set_and_get = ["set a 0 0 1\r\nx\r\n", "get b\r\n", "gat 0 a\r\n"];
    let end = ["< mg last", "> EN"];
    assert_eq!(logged(&[], &set_and_get, ""), end);
    assert_eq!(logged(&["-v"], &set_and_get, ""), end);
    let told = ["< set a 0 0 1", "> STORED", "< get b", "> END", "< gat 0 a"];
    let lines = logged(&["-vv"], &set_and_get, "sending key a\n");
    assert!(lines[0].starts_with("< new client connection rip=127.0.0.1 "), "{lines:?}");
    assert_eq!(lines[1..6], told);
    let lines = logged(&["-vvv"], &set_and_get[..2], "NOT FOUND b\n");
    assert_eq!(lines[1..5], ["< set a 0 0 1", "> NOT FOUND a", "> STORED", "< get b"]);
    // And off again.
    let lines = logged(&["-vv"], &["verbosity 1\r\n", "get b\r\n"], "");
    assert!(lines.ends_with(&end.map(str::to_owned)) && !lines.contains(&"< get b".to_owned()), "{lines:?}");
}

/// What an option has set is shown, whether it has a meaning here or not.
#[test]
fn settings_are_shown_as_they_were_asked_for() {
    let list = "hot_lru_pct=30,warm_lru_pct=25,hot_max_factor=0.5,warm_max_factor=3,temporary_ttl=9,\
                tail_repair_time=11,slab_automove=2,slab_automove_ratio=0.5,slab_automove_window=12,\
                slab_automove_freeratio=0.25,lru_crawler_tocrawl=13,no_lru_maintainer,ext_item_size=14,\
                ext_max_frag=0.7,ext_drop_unread";
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-N", "1", "-o", list]));
    let mut client = server.connect();
    let mut shown = vec![ask(&mut client, "stats settings\r\n")];
    while shown.last().is_some_and(|line| line != "END\r\n") {
        shown.push(ask(&mut client, ""));
    }
    for wanted in [
        "hot_lru_pct 30",
        "warm_lru_pct 25",
        "hot_max_factor 0.50",
        "warm_max_factor 3.00",
        "temp_lru yes",
        "temporary_ttl 9",
        "tail_repair_time 11",
        "slab_automove 2",
        "slab_automove_ratio 0.50",
        "slab_automove_window 12",
        "slab_automove_freeratio 0.250",
        "lru_crawler_tocrawl 13",
        "lru_maintainer_thread no",
        "ext_item_size 14",
        "ext_max_frag 0.70",
        "ext_drop_unread yes",
        "num_napi_ids 1",
    ] {
        assert!(shown.contains(&format!("STAT {wanted}\r\n")), "{wanted}: {shown:?}");
    }
}

/// Prefixes are counted from the start, up to the character that was given.
#[test]
fn prefixes_of_keys() {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-D", "#"]));
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "get a:b#c\r\n"), "END\r\n");
    let line = ask(&mut client, "stats detail dump\r\n");
    assert!(line.starts_with("PREFIX a:b get 1 hit 0 "), "{line}");
}

/// Without compare-and-swap an item has no number to compare.
#[test]
fn without_compare_and_swap() {
    let server = Serving::start(Command::new(PROGRAM).args(["-m", "8", "-C"]));
    let mut client = server.connect();
    assert_eq!(ask(&mut client, "set a 0 0 1\r\nx\r\n"), "STORED\r\n");
    assert_eq!(ask(&mut client, "gets a\r\n"), "VALUE a 0 1 0\r\n");
}

#[test]
fn protocols_of_all_sockets_and_of_one() {
    let noop = [0x81, 0x0a];
    for (options, binary, text) in [
        (&[][..], true, true),
        (&["-B", "auto"], true, true),
        (&["-B", "binary"], true, false),
        (&["-B", "ascii"], false, true),
        (&["-B", "ascii", "-l", "proto[binary]:127.0.0.1"], true, false),
        (&["-l", "proto[ascii]:tag[x]:127.0.0.1"], false, true),
    ] {
        let server = Serving::start(Command::new(PROGRAM).args(["-m", "8"]).args(options));
        assert_eq!(answer_to_a_noop(server.port) == noop, binary, "{options:?}");
        let mut client = server.connect();
        // As long as a header, so that either protocol has something to say to it.
        client.get_mut().write_all(b"version\r\nversion\r\nversion\r\n").expect("the connection is open");
        let mut line = Vec::new();
        // Closed, perhaps before all of it was taken.
        let _ = client.read_until(b'\n', &mut line);
        assert_eq!(line.starts_with(b"VERSION 1.6."), text, "{options:?}: {line:?}");
    }
}

//! The command lines that memcached is started with, word for word: they start this server under memcached's name, it
//! answers, and the process that the script knows of ends by SIGTERM.
//!
//! Only where a script names a port or a folder is another one put in, by options behind its own, which win: a machine
//! that runs tests may have something there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::serving::{PATIENCE, PROGRAM, answer_to_a_noop, ask, wait_for};

/// Where a script is run: a folder with the program under memcached's name, and with the files that it writes.
struct Place {
    folder: tempfile::TempDir,
    memcached: PathBuf,
    ports: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a directory");
        // The user that it becomes is to find its files.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("our directory");
        let memcached = folder.path().join("memcached");
        symlink(PROGRAM, &memcached).expect("a link");
        let ports = folder.path().join("ports");
        Place { folder, memcached, ports }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command that runs here.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        let out = |name| Stdio::from(fs::File::create(self.file(name)).expect("a file"));
        command
            .env("MEMCACHED_PORT_FILENAME", &self.ports)
            .stdin(Stdio::null())
            .stdout(out("out"))
            .stderr(out("err"));
        command
    }

    /// What it has written.
    fn said(&self) -> String {
        ["out", "err"].map(|name| fs::read_to_string(self.file(name)).unwrap_or_default()).concat()
    }

    /// The first port that it listens on, once it does, with a look in between at whether it still may.
    fn port(&self, mut look: impl FnMut()) -> u16 {
        wait_for("the port", || {
            look();
            let ports = fs::read_to_string(&self.ports).unwrap_or_default();
            ports.lines().find_map(|line| line.strip_prefix("TCP INET: ")?.parse().ok())
        })
    }
}

fn answers(port: u16) {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let answer = ask(&mut BufReader::new(stream), "version\r\n");
    assert!(answer.starts_with("VERSION 1.6."), "{answer}");
}

fn terminate(pid: Pid) {
    kill_process(pid, Signal::TERM).expect("it runs");
}

/// The process whose number is in a file, once it is.
fn pid_in(file: &Path) -> Pid {
    wait_for("the process id", || {
        let number = fs::read_to_string(file).unwrap_or_default().trim().parse().ok()?;
        Pid::from_raw(number)
    })
}

/// In the foreground, as systemd, Docker and Kubernetes start it.
#[test]
fn lines_of_units_and_containers() {
    let lines = [
        // memcached's own unit, with what its file of variables and an override say.
        "-p 11211 -u nobody -m 64 -c 1024",
        "-p 11211 -u nobody -m 64 -c 1024 -l 127.0.0.1,::1",
        "-p 11211 -u nobody -m 64M -c 1024 -o idle_timeout=300,no_maxconns_fast",
        // What Docker's image runs, and what its page and compose files give it.
        "",
        "-m 64 -o modern",
        "-m 64 -v",
        "--memory-limit=64 --conn-limit=1024 --threads=4 --max-item-size=8m",
        // Charts for Kubernetes.
        "-m 64 -o modern -v",
        "-m 64 -I 5m -c 16384 -v --extended=modern,track_sizes -u 11211",
        "-m 2048 --extended=modern -I 5m -c 1024 -vv",
        "-u nobody -p 11211 -v",
        "-m 64 -p 11211 -l 0.0.0.0 -U 0 -c 5000 -vv",
        // Test suites of clients.
        "-u nobody -p 21345 -U 0 -vv",
        "-p 11211 -A -B binary",
        "-B ascii -t 1 -D : -F",
        // Tuning that pages recommend.
        "-m 64 -c 1024 -t 4 -R 20 -b 1024 -f 1.25 -n 48 -C -k -r -L -M -X -W -N 2",
        "-o slab_reassign,slab_automove,lru_crawler,lru_maintainer,maxconns_fast,hash_algorithm=murmur3",
        "-o no_lru_crawler,no_lru_maintainer,no_slab_reassign,no_modern,no_hashexpand,hashpower=16,tail_repair_time=60",
        "-o hot_lru_pct=20,warm_lru_pct=40,hot_max_factor=0.2,warm_max_factor=2.0,temporary_ttl=61,slab_chunk_max=512",
        "-o ext_path=/nowhere/extstore:64M,ext_page_size=64,ext_threads=1,slab_automove_freeratio=0.01",
        "-vvMkrp 11211 -m64 -omodern --thr=2",
    ];
    for line in lines {
        let place = Place::new();
        let mut command = place.command(&place.memcached);
        let mut child = command.args(line.split_whitespace()).args(["-p", "-1"]).spawn().expect("it starts");
        let port = place.port(|| {
            let ended = child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "{line}: {ended:?}: {}", place.said());
        });
        if line.contains("-B binary") {
            assert_eq!(answer_to_a_noop(port), [0x81, 0x0a], "{line}");
        } else {
            answers(port);
        }
        terminate(Pid::from_child(&child));
        assert_eq!(child.wait().expect("it is our child").code(), Some(0), "{line}");
        let said = place.said();
        assert!(said.is_empty() || line.contains("-v"), "{line}: {said}");
        assert!(!said.contains("ERROR"), "{line}: {said}");
    }
}

/// Into the background, as init scripts and daemon tools start it: the one that ends is not the one that serves.
#[test]
fn lines_of_init_scripts() {
    for line in [
        "-d -m 64 -p 11211 -u nobody -l 127.0.0.1 -P memcached.pid",
        "-d -u nobody -m 64 -c 1024 -P memcached.pid -vv",
        "--daemon --pidfile=memcached.pid --user=nobody --listen=127.0.0.1 --memory-limit=64",
        "-d -k -r -P memcached.pid -o modern,idle_timeout=60",
    ] {
        let place = Place::new();
        let mut command = place.command(&place.memcached);
        command.current_dir(place.folder.path()).args(line.split_whitespace()).args(["-p", "-1"]);
        let status = command.status().expect("it starts");
        assert!(status.success(), "{line}: {status}: {}", place.said());
        answers(place.port(|| {}));
        let pid = pid_in(&place.file("memcached.pid"));
        terminate(pid);
        wait_for("its end", || test_kill_process(pid).is_err().then_some(()));
        let said = place.said();
        assert!(said.is_empty() || line.contains("-v"), "{line}: {said}");
    }
}

/// A Unix socket in place of the network, as shared hosts do it.
#[test]
fn lines_with_a_unix_socket() {
    for line in ["-s memcached.sock -a 0766 -m 64", "-d -s memcached.sock -P memcached.pid -m 64"] {
        let place = Place::new();
        let mut command = place.command(&place.memcached);
        command.current_dir(place.folder.path()).args(line.split_whitespace());
        let mut child = command.spawn().expect("it starts");
        let stream = wait_for("the socket", || UnixStream::connect(place.file("memcached.sock")).ok());
        let mut client = BufReader::new(stream);
        client.get_mut().write_all(b"version\r\n").expect("the connection is open");
        let mut answer = String::new();
        client.read_line(&mut answer).expect("it answers");
        assert!(answer.starts_with("VERSION 1.6."), "{answer}");
        let pid =
            if line.contains("-d") { pid_in(&place.file("memcached.pid")) } else { Pid::from_child(&child) };
        terminate(pid);
        assert_eq!(child.wait().expect("it is our child").code(), Some(0), "{line}");
        wait_for("its end", || (!place.file("memcached.sock").exists()).then_some(()));
        assert_eq!(place.said(), "", "{line}");
    }
}

/// Debian's scripts, which read `/etc/memcached.conf`: the scripts as they are, but for the folder that they know the
/// program in, and the file as it is, but for its port and the folder of its process id.
#[test]
fn debians_scripts() {
    if !rustix::process::geteuid().is_root() {
        return outside::say("Debian's scripts only run as root");
    }
    let scripts = Path::new("/usr/share/memcached/scripts");
    let Ok(options) = fs::read_to_string("/usr/share/memcached/memcached.conf.default") else {
        return outside::skip("Debian's memcached, with its scripts, is not installed");
    };
    for script in ["systemd-memcached-wrapper", "start-memcached"] {
        let place = Place::new();
        let text = fs::read_to_string(scripts.join(script)).expect("it is of the same package");
        let known = "\"/usr/bin/memcached\"";
        assert!(text.contains(known), "{script}");
        let ours = place.file(script);
        fs::write(&ours, text.replace(known, &format!("{:?}", place.memcached))).expect("a file");
        let conf = place.file("memcached.conf");
        let options = options
            .replace("-p 11211", "-p -1")
            .replace("/var/run/memcached", &place.folder.path().display().to_string());
        fs::write(&conf, options.replace("/var/log", &place.folder.path().display().to_string()))
            .expect("a file");
        let starts = script == "start-memcached";
        let pidfile = place.file(if starts { "started.pid" } else { "memcached.pid" });
        let mut command = place.command(Path::new("perl"));
        command.arg(&ours).arg(&conf);
        if starts {
            command.arg(&pidfile);
        }
        let mut child = command.spawn().expect("it starts");
        answers(place.port(|| {}));
        let pid = pid_in(&pidfile);
        let program = fs::read_link(format!("/proc/{}/exe", pid.as_raw_nonzero())).expect("it runs");
        assert_eq!(program, fs::canonicalize(PROGRAM).expect("it is there"), "{script}");
        terminate(pid);
        wait_for("its end", || {
            test_kill_process(pid).is_err().then_some(()).or_else(|| child.try_wait().ok()?.map(|_| ()))
        });
        child.wait().expect("it is our child");
        let log = fs::read_to_string(place.file("memcached.log")).unwrap_or_default();
        assert_eq!(place.said() + &log, "", "{script}");
    }
}

/// Debian's unit leaves root three rights, none of which is to write in the folder that belongs to memcached's user, or
/// to give files away: what lies there is that user's to make.
#[test]
fn root_with_the_rights_that_a_unit_leaves() {
    if !rustix::process::geteuid().is_root() {
        return outside::say("only root has rights to lose");
    }
    let limited = ["--bounding-set", "-all,+setuid,+setgid,+sys_resource"];
    let probe = Command::new("setpriv").args(limited).arg("true").stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return outside::say("no rights can be given up here (setpriv)");
    }
    for line in [
        "-u nobody -m 64 -l 127.0.0.1 -p -1 -P run/memcached.pid",
        "-u nobody -m 64 -P run/memcached.pid -s run/memcached.sock -a 0777",
    ] {
        let place = Place::new();
        let run = place.file("run");
        fs::create_dir(&run).expect("a folder");
        let nobody = Command::new("chown").arg("nobody").arg(&run).status();
        assert!(nobody.is_ok_and(|status| status.success()));
        let mut command = place.command(Path::new("setpriv"));
        command
            .current_dir(place.folder.path())
            .args(limited)
            .arg(&place.memcached)
            .args(line.split_whitespace());
        let mut child = command.spawn().expect("it starts");
        let pid = wait_for("the process id", || {
            let ended = child.try_wait().expect("it is our child");
            assert!(ended.is_none(), "{line}: {ended:?}: {}", place.said());
            fs::read_to_string(run.join("memcached.pid")).ok()?.trim().parse().ok().and_then(Pid::from_raw)
        });
        if line.contains("-s") {
            UnixStream::connect(run.join("memcached.sock")).expect("it listens");
        } else {
            answers(place.port(|| {}));
        }
        terminate(pid);
        assert_eq!(child.wait().expect("it is our child").code(), Some(0), "{line}");
        // They were its own: it could remove them.
        assert_eq!(fs::read_dir(&run).expect("a folder").count(), 0);
        assert_eq!(place.said(), "", "{line}");
    }
}

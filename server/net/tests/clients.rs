//! Clients that real programs use: libmemcached's test of servers, and the main calls of those that are installed with
//! little more than their language. `ci/clients` has many more, with their own suites.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::client::settings;
use crate::peer;
use crate::programs::{Ended, run};
use lookaside_server::{Server, UnixSocket};

const PATIENCE: Duration = Duration::from_secs(120);

/// `memccapable` (Debian's libmemcached-tools) asks a server for all that the text and the binary protocol promise.
#[test]
fn memccapable() {
    for threads in [1, 4] {
        let server = Server::start(settings().with_threads(threads)).expect("it starts");
        let port = server.addresses()[0].port().to_string();
        let mut command = Command::new("memccapable");
        command.args(["-h", "127.0.0.1", "-p", &port]);
        let Some(Ended { said, status }) = run(&mut command, PATIENCE) else { return };
        let passed = said.lines().filter(|line| line.ends_with("[pass]")).count();
        assert!(status.success() && passed == 54, "{passed} of 54 tests passed:\n{said}");
        assert!(said.contains("All tests passed"), "{said}");
        server.stop().expect("no thread has failed");
    }
}

const PYMEMCACHE_TESTS: usize = 21;

#[test]
fn pymemcache() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let unix = UnixSocket::new(path.clone(), 0o700);
    let server = Server::start(settings().with_unix(unix).with_threads(2)).expect("it starts");
    if !run_pymemcache(&server.addresses()[0].to_string()) {
        return;
    }
    run_pymemcache(&path.display().to_string());
    server.stop().expect("no thread has failed");
}

/// What our test asks for is what memcached gives.
#[test]
fn pymemcache_with_memcached() {
    let Some(memcached) = peer::Memcached::start() else { return };
    let address: SocketAddr = memcached.address();
    run_pymemcache(&address.to_string());
}

/// False if there is none.
fn run_pymemcache(address: &str) -> bool {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/pymemcache_test.py");
    let mut import = Command::new("python3");
    let Some(imported) = run(import.args(["-c", "import pymemcache"]), PATIENCE) else { return false };
    if !imported.status.success() {
        outside::skip("python3 has no pymemcache");
        return false;
    }
    let mut command = Command::new("python3");
    // No compiled files beside the script.
    command.args(["-B", script, address]);
    let Some(Ended { said, status }) = run(&mut command, PATIENCE) else { return false };
    assert!(status.success() && said.contains(&format!("Ran {PYMEMCACHE_TESTS} tests")), "{said}");
    true
}

/// Where the programs are that ask a client of another language for all it offers.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/");

/// Runs one of them against a server of its own. `probe` fails where the client is not installed.
fn run_program(language: &str, probe: &[&str], program: &str, arguments: impl Fn(&str, &str) -> Vec<String>) {
    let Some(Ended { status, .. }) = run(Command::new(language).args(probe), PATIENCE) else { return };
    if !status.success() {
        outside::skip(format_args!("{language} {} fails", probe.join(" ")));
        return;
    }
    let server = Server::start(settings().with_threads(2)).expect("it starts");
    let port = server.addresses()[0].port().to_string();
    let mut command = Command::new(language);
    command.arg(format!("{PROGRAMS}{program}")).args(arguments("127.0.0.1", &port));
    let Ended { said, status } = run(&mut command, PATIENCE).expect("the probe has found it");
    assert!(status.success(), "{program}: {status}:\n{said}");
    server.stop().expect("no thread has failed");
}

/// PHP's extension over libmemcached: with its default settings, by the binary protocol, and by text.
#[test]
fn php_memcached() {
    let probe = ["-r", "exit(class_exists('Memcached') ? 0 : 1);"];
    run_program("php", &probe, "client.php", |host, port| vec![host.into(), port.into()]);
}

/// Ruby's client, by the binary protocol and by the meta protocol.
#[test]
fn dalli() {
    for protocol in ["binary", "meta"] {
        run_program("ruby", &["-e", "require 'dalli'"], "dalli.rb", |host, port| {
            vec![format!("{host}:{port}"), protocol.into()]
        });
    }
}

/// Perl's client, which sends much without waiting.
#[test]
fn cache_memcached_fast() {
    run_program("perl", &["-e", "use Cache::Memcached::Fast"], "fast.pl", |host, port| {
        vec![format!("{host}:{port}")]
    });
}

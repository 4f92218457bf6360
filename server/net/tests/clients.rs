//! Clients that real programs use: libmemcached's test of servers, and pymemcache over its main calls.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::client::settings;
use crate::peer;
use crate::programs::{Ended, run};
use lookaside_server::{Server, UnixSocket};

const PATIENCE: Duration = Duration::from_secs(120);

/// `memccapable` (Debian's libmemcached-tools) asks a server for all that the classic protocol promises.
#[test]
fn memccapable() {
    for threads in [1, 4] {
        let server = Server::start(settings().with_threads(threads)).expect("it starts");
        let port = server.addresses()[0].port().to_string();
        let mut command = Command::new("memccapable");
        command.args(["-a", "-h", "127.0.0.1", "-p", &port]);
        let Some(Ended { said, status }) = run(&mut command, PATIENCE) else { return };
        let passed =
            said.lines().filter(|line| line.starts_with("ascii ") && line.ends_with("[pass]")).count();
        assert!(status.success() && passed == 27, "{passed} of 27 tests passed:\n{said}");
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

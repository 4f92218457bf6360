//! Clients that mean harm: however many they are and whatever they leave half done, memory stays within what is stated,
//! others are served as if they were not there, and the silent ones are closed.
//!
//! What is stated: [`SLACK`] and [`PER_THREAD`] beside 1.10 of the memory for items, [`PER_CONNECTION`], and what all
//! connections together may hold. Each attack runs small with all tests. At full size, where the time that others wait
//! is compared, it is one of `ci/nightly attacks`: that wants a machine with nothing else to do.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, wait_until};
use crate::process::{self, ServerProcess, Wanted};

#[test]
#[ignore = "started by other tests, in a process of its own"]
fn a_server_process() {
    process::serve();
}

const MEMORY: usize = 64 << 20;
const BUFFERS: usize = 16 << 20;
const THREADS: usize = 2;
/// What a server has beside all that is counted: its program, the kernel's tables of it, the allocator's rounding.
const SLACK: usize = 4 << 20;
const PER_THREAD: usize = 1 << 20;
const PER_CONNECTION: usize = 1 << 10;

/// How hard it is attacked.
#[derive(Clone, Copy)]
struct Scale {
    clients: usize,
    /// How many times as long as otherwise others may wait at the 99th percentile; `None`: it is not measured.
    patience: Option<f64>,
}

const SMALL: Scale = Scale { clients: 100, patience: None };
const FULL: Scale = Scale { clients: 1000, patience: Some(2.0) };

/// A server under attack, and one who is served meanwhile.
struct Attacked {
    server: ServerProcess,
    other: Client,
    connections: usize,
    scale: Scale,
    /// What the other one waits at the 99th percentile while there is no attack.
    unloaded: Duration,
}

impl Attacked {
    fn start(scale: Scale, idle_timeout: Option<usize>) -> Attacked {
        let connections = scale.clients + 10;
        let wanted = Wanted {
            connections,
            memory: Some(MEMORY),
            buffers: Some(BUFFERS),
            idle_timeout,
            ..Wanted::default()
        };
        let server = ServerProcess::start("attacks::a_server_process", &wanted);
        let mut other = Client::connect(&server.address);
        let value = "x".repeat(8000);
        // Full of items that others want, so that an attack has something to displace.
        for number in 0..12_000 {
            other.send(format!("set other-{number} 0 0 8000 noreply\r\n{value}\r\n").as_bytes());
        }
        other.expect_open();
        let unloaded = waits(&mut other);
        Attacked { server, other, connections, scale, unloaded }
    }

    fn connect(&self) -> Client {
        Client::with_buffers(&self.server.address, Some(4096)).expect("there is room")
    }

    /// Clients of which each has sent as much of these bytes as the server takes.
    fn attack(&self, bytes: impl Fn(usize) -> Vec<u8>) -> Vec<Client> {
        let mut clients: Vec<Client> = (0..self.scale.clients).map(|_| self.connect()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            send_what_is_taken(client, &bytes(number));
        }
        clients
    }

    /// Memory is within what is stated, and the other one is served.
    fn expect_unharmed(&mut self) {
        let stated =
            MEMORY / 10 * 11 + SLACK + THREADS * PER_THREAD + self.connections * PER_CONNECTION + BUFFERS;
        let resident = self.server.resident();
        assert!(resident <= stated, "{} KiB are resident, {} are stated", resident >> 10, stated >> 10);
        let waits = waits(&mut self.other);
        if let Some(times) = self.scale.patience {
            let most = self.unloaded.mul_f64(times);
            assert!(waits <= most, "others wait {waits:?}, and {:?} otherwise", self.unloaded);
        }
        self.other.expect_open();
    }

    /// All have gone, of themselves or not, and what they held is there again.
    fn expect_recovery(&mut self) {
        let Attacked { other, .. } = self;
        wait_until("they are gone", || other.stat("curr_connections") == 1);
        wait_until("their buffers are gone", || {
            let stats = other.stats("");
            (stats["read_buf_count"].as_str(), stats["response_obj_count"].as_str()) == ("2", "0")
        });
        let value = "y".repeat(1_000_000);
        for number in 0..20 {
            let set = format!("set large-{number} 0 0 1000000\r\n{value}\r\n");
            other.ask(set.as_bytes(), b"STORED\r\n");
        }
    }
}

/// What a request waits at the 99th percentile: the least of several times, for neighbours on the machine only add to
/// it.
fn waits(client: &mut Client) -> Duration {
    (0..5).map(|_| waits_once(client)).min().expect("several")
}

fn waits_once(client: &mut Client) -> Duration {
    let mut waits: Vec<Duration> = (0..1000)
        .map(|_| {
            let begun = Instant::now();
            client.ask(b"set mine 0 0 1\r\nx\r\nget mine\r\n", b"STORED\r\nVALUE mine 0 1\r\nx\r\nEND\r\n");
            begun.elapsed()
        })
        .collect();
    waits.sort_unstable();
    waits[waits.len() * 99 / 100]
}

/// Sends until the server takes no more for a while, or closes the connection.
fn send_what_is_taken(client: &mut Client, bytes: &[u8]) {
    client.socket.set_nonblocking(true).expect("a socket");
    let (mut sent, mut in_vain) = (0, 0);
    while sent < bytes.len() && in_vain < 5 {
        match client.socket.write(&bytes[sent..]) {
            Ok(count) => (sent, in_vain) = (sent + count, 0),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                in_vain += 1;
                thread::sleep(Duration::from_millis(1));
            }
            Err(_) => break,
        }
    }
    let _ = client.socket.set_nonblocking(false);
}

fn ask_much_and_read_nothing(scale: Scale) {
    let mut attacked = Attacked::start(scale, None);
    let requests =
        ["get other-11999\r\n".repeat(20_000), format!("get {}\r\n", "other-11999 ".repeat(20_000))];
    let clients = attacked.attack(|number| requests[number % 2].clone().into_bytes());
    attacked.expect_unharmed();
    // They have more unread than all together may: some are closed, and it is told.
    if scale.clients * (32 << 10) > BUFFERS {
        assert!(attacked.other.stat("response_obj_oom") > 0);
    }
    drop(clients);
    attacked.expect_recovery();
}

#[test]
fn those_who_ask_much_and_read_nothing() {
    ask_much_and_read_nothing(SMALL);
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_ask_much_and_read_nothing() {
    ask_much_and_read_nothing(FULL);
}

fn leave_values_half_sent(scale: Scale, bytes: usize) {
    let mut attacked = Attacked::start(scale, None);
    let half = [b"set half 0 0 1000000\r\n".as_slice(), &vec![b'x'; bytes]].concat();
    let clients = attacked.attack(|_| half.clone());
    attacked.expect_unharmed();
    assert!(attacked.other.stat("evictions") > 0);
    drop(clients);
    attacked.expect_recovery();
}

#[test]
fn those_who_leave_values_half_sent() {
    leave_values_half_sent(SMALL, 400_000);
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_leave_values_half_sent() {
    leave_values_half_sent(FULL, 999_999);
}

fn leave_small_requests_half_sent(scale: Scale) {
    let mut attacked = Attacked::start(scale, None);
    // Each just too little to be a request, or to be written into the cache as it comes.
    let halves = [
        [b"set half 0 0 16000\r\n".as_slice(), &[b'x'; 15_900]].concat(),
        [b"set ".as_slice(), &[b'k'; 2000]].concat(),
    ];
    let clients = attacked.attack(|number| halves[number % 2].clone());
    attacked.expect_unharmed();
    if scale.clients / 2 * 16_000 > BUFFERS {
        assert!(attacked.other.stat("read_buf_oom") > 0);
    }
    drop(clients);
    attacked.expect_recovery();
}

#[test]
fn those_who_leave_small_requests_half_sent() {
    leave_small_requests_half_sent(SMALL);
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_leave_small_requests_half_sent() {
    leave_small_requests_half_sent(Scale { clients: 4000, ..FULL });
}

fn send_lists_without_end(scale: Scale) {
    let mut attacked = Attacked::start(scale, None);
    let list = [b"get ".as_slice(), &b"none other-11999 ".repeat(40_000)].concat();
    let clients = attacked.attack(|_| list.clone());
    attacked.expect_unharmed();
    drop(clients);
    attacked.expect_recovery();
}

#[test]
fn those_who_send_lists_without_end() {
    send_lists_without_end(SMALL);
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_send_lists_without_end() {
    send_lists_without_end(FULL);
}

/// What begins as the binary protocol's requests do, with lengths that cannot be, or that never come.
fn send_lengths_that_lie(scale: Scale) {
    let mut attacked = Attacked::start(scale, None);
    let frames: Vec<Vec<u8>> = [0u32, 1, 23, 0xFFFF, 0x10_0000, 0x4000_0000, 0x7FFF_FFFF, 0xFFFF_FFFF]
        .into_iter()
        .flat_map(|body| {
            // Set, Get, Append, Increment, Stat, and what there is not.
            [0x01, 0x00, 0x0e, 0x05, 0x10, 0xff].into_iter().flat_map(move |opcode| {
                [0u16, 3, 250, 251, 0xFFFF].into_iter().map(move |key| {
                    let extras = [0, 8, 20, 255][usize::from(key) % 4];
                    let mut frame = vec![0x80, opcode];
                    frame.extend(key.to_be_bytes());
                    frame.extend([extras, 0, 0, 0]);
                    frame.extend(body.to_be_bytes());
                    frame.extend([0; 12]);
                    frame.extend(vec![b'k'; 5000]);
                    frame
                })
            })
        })
        .collect();
    let clients = attacked.attack(|number| frames[number % frames.len()].clone());
    attacked.expect_unharmed();
    drop(clients);
    attacked.expect_recovery();
}

#[test]
fn those_who_send_lengths_that_lie() {
    send_lengths_that_lie(Scale { clients: 240, ..SMALL });
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_send_lengths_that_lie() {
    send_lengths_that_lie(Scale { clients: 2400, ..FULL });
}

/// A request a byte at a time, over and over: each byte is received, and looked at, alone.
fn send_byte_by_byte(scale: Scale) {
    let mut attacked = Attacked::start(scale, None);
    let mut clients: Vec<Client> = (0..scale.clients).map(|_| attacked.connect()).collect();
    let sending = thread::spawn(move || {
        let request = b"set slow 0 0 20\r\n01234567890123456789\r\nget slow other-11998\r\n";
        for &byte in request.iter().cycle().take(2000) {
            for client in &mut clients {
                let _ = client.socket.write(&[byte]);
            }
        }
        clients
    });
    attacked.expect_unharmed();
    drop(sending.join().expect("it does not panic"));
    attacked.expect_recovery();
}

#[test]
fn those_who_send_byte_by_byte() {
    send_byte_by_byte(Scale { clients: 20, ..SMALL });
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_send_byte_by_byte() {
    send_byte_by_byte(Scale { clients: 50, ..FULL });
}

/// More connections than there may be, again and again, and as many that stay as may.
fn connect_and_connect(scale: Scale) {
    let mut attacked = Attacked::start(scale, None);
    let clients: Vec<Client> = (0..scale.clients + 9).map(|_| attacked.connect()).collect();
    for _ in 0..scale.clients {
        let mut surplus = attacked.connect();
        surplus.expect(b"ERROR Too many open connections\r\n");
        surplus.expect_closed();
    }
    attacked.expect_unharmed();
    assert!(attacked.other.stat("rejected_connections") >= scale.clients as u64);
    drop(clients);
    attacked.expect_recovery();
}

#[test]
fn those_who_connect_and_connect() {
    connect_and_connect(SMALL);
}

#[test]
#[ignore = "ci/nightly attacks"]
fn many_who_connect_and_connect() {
    connect_and_connect(Scale { clients: 10_000, ..FULL });
}

/// Whoever neither sends nor takes anything is closed, in whatever state it is; who does either stays.
#[test]
fn the_silent_are_closed() {
    let attacked = Attacked::start(Scale { clients: 20, patience: None }, Some(2));
    let Attacked { server, mut other, .. } = attacked;
    let silent: Vec<Client> = [
        b"".as_slice(),
        b"get a",
        b"get a\r\n",
        b"set half 0 0 1000\r\nabc",
        b"set half 0 0 100000\r\nabc",
        b"set half x 0 100000\r\nabc",
        b"get other-11999 none",
        &b"get other-11999 other-11998\r\n".repeat(20_000),
    ]
    .into_iter()
    .map(|bytes| {
        let mut client = Client::with_buffers(&server.address, Some(4096)).expect("there is room");
        send_what_is_taken(&mut client, bytes);
        client
    })
    .collect();
    let mut watcher = Client::connect(&server.address);
    watcher.ask(b"watch deletions\r\n", b"OK\r\n");
    // One that sends a byte now and then.
    let mut slow = Client::connect(&server.address);
    let mut bytes = b"get none\r\n".iter().cycle();
    let mut kicks = 0;
    wait_until("they are closed", || {
        thread::sleep(Duration::from_millis(100));
        slow.send(&[*bytes.next().expect("without end")]);
        kicks = other.stat("idle_kicks");
        kicks == silent.len() as u64
    });
    // Who is counted as closed is parted with then.
    wait_until("they are gone", || other.stat("curr_connections") == 3);
    for client in silent {
        client.socket.shutdown(Shutdown::Both).ok();
    }
    other.ask(b"delete other-11999\r\n", b"DELETED\r\n");
    assert!(watcher.receive(3) == b"ts=", "it still watches");
    other.expect_open();
}

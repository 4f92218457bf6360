//! A memcached of a hundred lines, which can be told to misbehave: what a load generator says about servers is believed
//! only if it has been seen to notice.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lookaside_lab::drive::Endpoint;

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// The get number this flips a bit in the last byte of the value.
    Corrupt(u64),
    /// The get number this answers with the value that was stored last, under the key asked for.
    WrongKey(u64),
    /// The get number this answers that nothing is there, although it is.
    Forget(u64),
    /// The get number this is answered twice.
    Twice(u64),
    /// The get number this ends the connection.
    Close(u64),
    /// The get number this waits so long, and everybody else with it.
    Stall(u64, Duration),
    /// Sets are refused.
    Full,
}

#[derive(Default)]
struct State {
    items: HashMap<Vec<u8>, Vec<u8>>,
    last: Vec<u8>,
    asked: HashMap<Vec<u8>, u64>,
    sets: u64,
}

/// A running fake. Dropped, it accepts nobody any more.
pub(crate) struct Fake {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    stopping: Arc<AtomicBool>,
}

impl Fake {
    pub(crate) fn start(fault: Fault) -> Fake {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (state, gets) = (Arc::new(Mutex::new(State::default())), Arc::new(AtomicU64::new(0)));
        let stopping = Arc::new(AtomicBool::new(false));
        let fake = Fake { address, state: state.clone(), stopping: stopping.clone() };
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                let (state, gets) = (state.clone(), gets.clone());
                // A client that goes away ends its thread with an error that is nobody's concern.
                thread::spawn(move || stream.and_then(|stream| converse(stream, fault, &state, &gets)));
            }
        });
        fake
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Tcp(self.address)
    }

    /// How often each key was asked for.
    pub(crate) fn asked(&self) -> HashMap<Vec<u8>, u64> {
        self.state.lock().unwrap().asked.clone()
    }

    /// How many sets came.
    pub(crate) fn sets(&self) -> u64 {
        self.state.lock().unwrap().sets
    }

    /// How many items there are.
    pub(crate) fn items(&self) -> usize {
        self.state.lock().unwrap().items.len()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn converse(stream: TcpStream, fault: Fault, state: &Mutex<State>, gets: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let words: Vec<&[u8]> = line.trim_ascii_end().split(|byte| *byte == b' ').collect();
        let mut reply = Vec::new();
        match words[..] {
            [b"get", ref keys @ ..] => {
                let mut state = state.lock().unwrap();
                for &key in keys {
                    let number = gets.fetch_add(1, Ordering::Relaxed);
                    *state.asked.entry(key.to_vec()).or_default() += 1;
                    let mut value = state.items.get(key).cloned();
                    match fault {
                        Fault::Corrupt(at) if at == number => {
                            let last = value.as_mut().and_then(|value| value.last_mut());
                            *last.expect("there is a value to corrupt") ^= 1;
                        }
                        Fault::WrongKey(at) if at == number => value = Some(state.last.clone()),
                        Fault::Forget(at) if at == number => value = None,
                        Fault::Close(at) if at == number => return Ok(()),
                        // The lock is held: nobody else is served meanwhile.
                        Fault::Stall(at, time) if at == number => thread::sleep(time),
                        Fault::Twice(at) if at == number => reply.extend_from_slice(b"END\r\n"),
                        _ => {}
                    }
                    if let Some(value) = value {
                        reply.extend_from_slice(b"VALUE ");
                        reply.extend_from_slice(key);
                        reply.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
                        reply.extend_from_slice(&value);
                        reply.extend_from_slice(b"\r\n");
                    }
                }
                reply.extend_from_slice(b"END\r\n");
            }
            [b"set", key, _, _, length] => {
                let length: usize = std::str::from_utf8(length).unwrap().parse().unwrap();
                let mut value = vec![0; length + 2];
                reader.read_exact(&mut value)?;
                assert_eq!(value.split_off(length), b"\r\n");
                let mut state = state.lock().unwrap();
                state.sets += 1;
                if fault == Fault::Full {
                    reply.extend_from_slice(b"SERVER_ERROR out of memory storing object\r\n");
                } else {
                    state.last.clone_from(&value);
                    state.items.insert(key.to_vec(), value);
                    reply.extend_from_slice(b"STORED\r\n");
                }
            }
            [b"stats"] => reply.extend_from_slice(b"STAT version fake\r\nSTAT evictions 0\r\nEND\r\n"),
            _ => reply.extend_from_slice(b"ERROR\r\n"),
        }
        // Nothing is held back while more requests are there: replies come in odd pieces, as from a real server.
        writer.write_all(&reply)?;
    }
}

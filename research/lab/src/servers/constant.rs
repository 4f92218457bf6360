//! The least that a server can cost: a loop that parses nothing, stores nothing, and answers what it knew beforehand.
//!
//! It makes the system calls that our server makes, and in the same way: sockets are registered once, edge-triggered; a
//! wait, a receive for each connection that has something, a send for each answer. What our server costs beyond that is
//! its own: parsing, looking up, counting. What this costs nobody can save who waits, receives and sends by these
//! calls.
//!
//! Each piece that comes is taken for whole requests that are as long as its first. That is so of short requests over
//! loopback whose keys and values have one size, as many as a client sends at a time, and of nothing else. One byte is
//! looked at, for a set is answered by another constant than a get, and the first line's end looked for.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Events handled between two waits, as in our server.
const EVENTS: usize = 1024;
/// Bytes received at once, the same.
const RECEIVE: usize = 64 << 10;
/// The token of the socket that is listened on; connections have the numbers below.
const LISTENER: Token = Token(usize::MAX);

/// What is answered, and how.
#[derive(Debug, Clone, Copy)]
pub struct Constants {
    /// Bytes of the key in the answer to a get.
    pub key_size: usize,
    /// Bytes of the value in it.
    pub value_size: usize,
    /// Connections that are received from before the first of them is answered; at least 1.
    pub ahead: usize,
}

impl Constants {
    /// Requests in a piece that are answered, at most.
    pub const MOST: usize = 64;

    /// Answers all who connect to this port on loopback, for ever.
    ///
    /// ```no_run
    /// use lookaside_lab::Constants;
    ///
    /// Constants { key_size: 16, value_size: 32, ahead: 1 }.serve(11211)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the operating system says where it cannot listen, accept or wait.
    pub fn serve(&self, port: u16) -> io::Result<()> {
        self.answer(TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], port)))?)
    }

    /// Answers all who connect, for ever.
    fn answer(&self, mut listener: TcpListener) -> io::Result<()> {
        let mut poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let mut events = Events::with_capacity(EVENTS);
        let mut clients: Vec<Option<TcpStream>> = Vec::new();
        let mut received = vec![0; RECEIVE];
        let (values, stored) = (self.value().repeat(Self::MOST), b"STORED\r\n".repeat(Self::MOST));
        let mut ready = Vec::with_capacity(EVENTS);
        loop {
            match poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome?,
            }
            ready.clear();
            for event in &events {
                if event.token() == LISTENER {
                    accept(&listener, &poll, &mut clients)?;
                } else if event.is_readable() {
                    ready.push(event.token().0);
                }
            }
            for group in ready.chunks(self.ahead.max(1)) {
                let mut answers = [None; EVENTS];
                for (answer, &number) in answers.iter_mut().zip(group) {
                    let Some(client) = &mut clients[number] else { continue };
                    match client.read(&mut received) {
                        Ok(0) => clients[number] = None,
                        Ok(length) => {
                            let answers = if received[0] == b's' { &stored } else { &values };
                            *answer = Some(
                                &answers[..answers.len() / Self::MOST * self.requests(&received[..length])],
                            );
                        }
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => clients[number] = None,
                    }
                }
                for (answer, &number) in answers.iter().zip(group) {
                    if let (Some(answer), Some(client)) = (answer, &mut clients[number])
                        && !client.write(answer).is_ok_and(|sent| sent == answer.len())
                    {
                        clients[number] = None;
                    }
                }
            }
        }
    }

    /// How many requests a piece has.
    fn requests(&self, piece: &[u8]) -> usize {
        let line = piece.iter().position(|&byte| byte == b'\n').map_or(piece.len(), |end| end + 1);
        let first = if piece[0] == b's' { line + self.value_size + 2 } else { line };
        (piece.len() / first).clamp(1, Self::MOST)
    }

    /// The answer to a get.
    fn value(&self) -> Vec<u8> {
        let (key, value) = ("k".repeat(self.key_size), "v".repeat(self.value_size));
        format!("VALUE {key} 0 {}\r\n{value}\r\nEND\r\n", self.value_size).into_bytes()
    }
}

/// Takes in all who wait.
fn accept(listener: &TcpListener, poll: &Poll, clients: &mut Vec<Option<TcpStream>>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((mut client, _)) => {
                client.set_nodelay(true)?;
                let interest = Interest::READABLE | Interest::WRITABLE;
                poll.registry().register(&mut client, Token(clients.len()), interest)?;
                clients.push(Some(client));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream as Blocking;
    use std::thread;

    #[test]
    fn gets_and_sets_are_answered_whatever_they_say() {
        for ahead in [1, 16] {
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
            let address = listener.local_addr().unwrap();
            // It ends with the test's process.
            thread::spawn(move || Constants { key_size: 2, value_size: 3, ahead }.answer(listener).unwrap());
            let connect = || Blocking::connect(address).unwrap();
            let mut clients = [connect(), connect()];
            drop(connect());
            for _ in 0..3 {
                for (request, answer, count) in [
                    ("get nothing\r\n", "VALUE kk 0 3\r\nvvv\r\nEND\r\n", 1),
                    ("set k 0 0 3\r\nabc\r\n", "STORED\r\n", 1),
                    ("get nothing\r\n", "VALUE kk 0 3\r\nvvv\r\nEND\r\n", 32),
                    ("set k 0 0 3\r\nabc\r\n", "STORED\r\n", 32),
                ] {
                    let (request, answer) = (request.repeat(count), answer.repeat(count));
                    clients.iter_mut().for_each(|client| client.write_all(request.as_bytes()).unwrap());
                    for client in &mut clients {
                        let mut received = vec![0; answer.len()];
                        client.read_exact(&mut received).unwrap();
                        assert_eq!(String::from_utf8(received).unwrap(), answer);
                    }
                }
            }
        }
    }
}

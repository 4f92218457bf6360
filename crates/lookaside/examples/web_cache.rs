//! A web handler with a cache: pages that take long to make are kept, and the hot ones are found in one line of memory.
//!
//! ```text
//! cargo run --release -p lookaside --example web_cache                    asks itself, says what it did, and ends
//! cargo run --release -p lookaside --example web_cache 127.0.0.1:8080     serves: curl http://127.0.0.1:8080/page/7
//! ```
//!
//! Worker threads answer one request after the other, without a framework, by the standard library alone. All share one
//! map. A reader that is pinned once for each request sees pages that nobody frees meanwhile. The cache keeps a number
//! of pages; the oldest makes room. `DELETE` forgets a page that is no longer true.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lookaside::Map;

/// Pages that are kept.
const KEPT: usize = 10_000;
const WORKERS: usize = 4;
/// The longest path that is answered.
const LONGEST_LINE: usize = 1024;
/// A client that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all workers share.
struct Site {
    pages: Map<u64, String>,
    /// The pages in the order in which they were made.
    order: Mutex<VecDeque<u64>>,
}

impl Site {
    fn new() -> Site {
        Site { pages: Map::with_capacity(KEPT), order: Mutex::default() }
    }

    /// Takes long, as a query of a database does.
    fn make(number: u64) -> String {
        std::thread::sleep(Duration::from_millis(2));
        format!("<h1>Page {number}</h1>\n")
    }

    /// Makes a page and keeps it. The oldest makes room.
    fn make_and_keep(&self, number: u64) -> String {
        let page = Site::make(number);
        let is_new = self.pages.insert(number, page.clone()).is_none();
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        if is_new {
            order.push_back(number);
        }
        let oldest = if order.len() > KEPT { order.pop_front() } else { None };
        drop(order);
        if let Some(oldest) = oldest {
            self.pages.remove(&oldest);
        }
        page
    }

    fn forget(&self, number: u64) -> bool {
        let was_there = self.pages.remove(&number).is_some();
        if was_there {
            let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            order.retain(|other| *other != number);
        }
        was_there
    }

    /// Answers all requests of one client.
    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        client.set_read_timeout(Some(PATIENCE))?;
        let mut lines = BufReader::new(client);
        while let Some((method, path)) = request(&mut lines)? {
            let number = path.strip_prefix("/page/").and_then(|number| number.parse().ok());
            match (method.as_str(), number) {
                ("GET", Some(number)) => {
                    // Pinned for this request alone: what others replace meanwhile is freed after it.
                    let reader = self.pages.pin();
                    match reader.get(&number) {
                        Some(page) => answer(client, "200 OK", page)?,
                        None => {
                            drop(reader);
                            answer(client, "200 OK", &self.make_and_keep(number))?;
                        }
                    }
                }
                ("DELETE", Some(number)) if self.forget(number) => answer(client, "204 No Content", "")?,
                ("GET" | "DELETE", _) => answer(client, "404 Not Found", "no such page\n")?,
                _ => answer(client, "405 Method Not Allowed", "GET or DELETE\n")?,
            }
        }
        Ok(())
    }
}

/// The method and the path of the next request, whose other lines are not looked at; `None` at the end.
fn request(lines: &mut impl BufRead) -> io::Result<Option<(String, String)>> {
    let mut first = None;
    loop {
        let mut line = String::new();
        io::Read::take(&mut *lines, LONGEST_LINE as u64).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        if !line.ends_with('\n') {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is too long"));
        }
        match (&first, line.trim_end()) {
            (Some(_), "") => return Ok(first),
            (None, line) => {
                let mut words = line.split(' ').map(str::to_owned);
                first = Some((words.next().unwrap_or_default(), words.next().unwrap_or_default()));
            }
            (Some(_), _) => {}
        }
    }
}

fn answer(mut client: &TcpStream, status: &str, page: &str) -> io::Result<()> {
    let length = page.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n");
    client.write_all([head.as_str(), page].concat().as_bytes())
}

/// Starts workers, each of which accepts clients and answers them one after the other.
fn start(listener: TcpListener) -> Result<(SocketAddr, Arc<Site>), Box<dyn std::error::Error>> {
    let address = listener.local_addr()?;
    let (site, listener) = (Arc::new(Site::new()), Arc::new(listener));
    for _ in 0..WORKERS {
        let (site, listener) = (Arc::clone(&site), Arc::clone(&listener));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A client that breaks off is no reason to stop.
                let _ = site.serve(&client);
            }
        });
    }
    Ok((address, site))
}

/// A client of this program's own: the page, and how long it took.
fn get(client: &TcpStream, number: u64) -> io::Result<(String, Duration)> {
    let began = Instant::now();
    (&*client).write_all(format!("GET /page/{number} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes())?;
    let mut lines = BufReader::new(client).lines();
    let empty = lines.by_ref().position(|line| line.is_ok_and(|line| line.is_empty()));
    empty.ok_or(io::ErrorKind::UnexpectedEof)?;
    let page = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
    Ok((page, began.elapsed()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Some(address) = std::env::args().nth(1) {
        let (address, _site) = start(TcpListener::bind(address)?)?;
        println!("http://{address}/page/7; Ctrl-C stops it");
        loop {
            std::thread::park();
        }
    }
    let (address, site) = start(TcpListener::bind(("127.0.0.1", 0))?)?;
    let client = TcpStream::connect(address)?;
    client.set_nodelay(true)?;
    // Made; found in the index, and remembered in the table; found in the table.
    for round in ["made", "kept", "hot"] {
        let mut took = Duration::ZERO;
        for number in 0..100 {
            let (page, time) = get(&client, number)?;
            assert_eq!(page, format!("<h1>Page {number}</h1>"));
            took += time;
        }
        println!("a page that is {round}: {:.0} us", took.as_secs_f64() * 1e6 / 100.0);
    }
    drop(client);
    println!(
        "{} pages are kept; the table answered {} lookups",
        site.pages.len(),
        site.pages.buffer().counts().hits
    );
    Ok(())
}

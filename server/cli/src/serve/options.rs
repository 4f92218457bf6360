//! The options of `lookaside serve`, and the settings they mean.
//!
//! Where memcached has an option, the short and the long name are its own and mean the same; what it would refuse is
//! refused, and so is what only it can do, rather than silently left out. Defaults are its own, but for two: without
//! `-l` only this machine is listened to, and `-R` counts many more requests, because ours are served in batches.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};
use server::{Settings, UnixSocket};

/// The environment variable that names the file which the chosen ports are written to, as with memcached.
const PORT_FILE: &str = "MEMCACHED_PORT_FILENAME";

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// The largest size that an option takes.
const LARGEST: usize = 1 << 30;
/// The most that `-m` takes, in megabytes: a quarter of the addresses that a process has, 32 TB. For an index that
/// takes all of it as many are claimed again, and with half of them there would be none left for anything else.
const MOST_MEGABYTES: i64 = 1 << 25;

#[derive(clap::Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  lookaside                               127.0.0.1:11211, 64 MB, 4 threads
  lookaside -m 1024 -l 10.0.0.7,[::1]     1 GB, on two addresses
  lookaside -s /run/lookaside.sock -t 2   a Unix socket instead of TCP
  lookaside -m 8192 --lookaside 32m       a table of the four million hottest items before the index
  lookaside -p -1                         a free port, told on the first line
                                          and in the file that MEMCACHED_PORT_FILENAME names

See what it does with 'echo stats | nc -q1 127.0.0.1 11211', and what it costs with 'lookaside-lab load --help'."
)]
#[expect(missing_docs, reason = "it would be the command's help")]
pub struct Arguments {
    /// TCP port to listen on; 0 turns TCP off, -1 asks for a free one
    #[arg(short, long, value_name = "NUM", default_value_t = 11211, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i32).range(-1..=65535))]
    port: i32,

    /// Addresses to listen on, as a list with commas; each may have a port of its own [default: 127.0.0.1]
    #[arg(short, long, value_name = "ADDR", value_delimiter = ',')]
    listen: Vec<String>,

    /// Unix socket to listen on, instead of TCP
    #[arg(short = 's', long, value_name = "FILE")]
    unix_socket: Option<PathBuf>,

    /// Permissions of the Unix socket, in octal
    #[arg(short = 'a', long, value_name = "MASK", default_value = "700", value_parser = octal)]
    unix_mask: u32,

    /// UDP port: only 0, off, for now
    #[arg(short = 'U', long, value_name = "NUM", default_value = "0", value_parser = no_udp)]
    udp_port: u16,

    /// Memory for items and index, in megabytes
    #[arg(short, long, value_name = "NUM", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=MOST_MEGABYTES))]
    memory_limit: u32,

    /// Size of a lookaside buffer, beside the memory, from 64 bytes to 1024m: it knows where the hottest items are, one
    /// for every nine bytes. It pays where these get most of the requests; 'stats' tells its hits [default: none]
    #[arg(long, value_name = "SIZE", value_parser = table_size)]
    lookaside: Option<usize>,

    /// Answer with an error when memory is full, instead of evicting
    #[arg(short = 'M', long)]
    disable_evictions: bool,

    /// Connections at the same time
    #[arg(short, long, value_name = "NUM", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    conn_limit: u32,

    /// Threads that serve
    #[arg(short, long, value_name = "NUM", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,

    /// The largest item, from 1k to 1024m and at most half of the memory
    #[arg(short = 'I', long, value_name = "SIZE", default_value = "1m", value_parser = item_size)]
    max_item_size: usize,

    /// Requests served for one connection before others have their turn
    #[arg(short = 'R', long, value_name = "NUM", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_reqs_per_event: u32,

    /// Connections that may wait to be accepted
    #[arg(short = 'b', long, value_name = "NUM", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    listen_backlog: u32,

    /// Protocol; both mean the classic text protocol
    #[arg(short = 'B', long, value_name = "NAME", default_value = "auto")]
    protocol: Protocol,

    /// User to run as, when started by root
    #[arg(short, long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// Run in the background
    #[arg(short, long)]
    pub(super) daemon: bool,

    /// File for the process id, removed at the end
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(super) pidfile: Option<PathBuf>,

    /// Log more: -v, -vv, -vvv
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Protocol {
    Auto,
    Ascii,
}

/// Why options mean no settings.
#[derive(Debug)]
pub(super) enum OptionError {
    Address { given: String, reason: String },
    ItemSize { item: usize, memory: usize },
    Path { path: PathBuf, error: std::io::Error },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Address { given, reason } => write!(f, "cannot listen on '{given}': {reason}"),
            OptionError::ItemSize { item, memory } => write!(
                f,
                "an item of {item} bytes (-I) is more than half of the memory of {memory} bytes (-m): lower the one or \
                 raise the other"
            ),
            OptionError::Path { path, error } => {
                write!(f, "cannot tell where '{}' is: {error}", path.display())
            }
        }
    }
}

impl Error for OptionError {}

impl Arguments {
    /// What the options mean.
    pub(super) fn settings(&self) -> Result<Settings, OptionError> {
        let memory = self.memory_limit as usize * MIB;
        if self.max_item_size > memory / 2 {
            return Err(OptionError::ItemSize { item: self.max_item_size, memory });
        }
        let unix = match &self.unix_socket {
            // Absolute, because the directory changes when it goes into the background.
            Some(path) => Some(UnixSocket::new(absolute(path.clone())?, self.unix_mask)),
            None => None,
        };
        let mut settings = Settings::new()
            .with_tcp(if unix.is_some() { Vec::new() } else { self.addresses()? })
            .with_threads(self.threads.into())
            .with_connections(self.conn_limit as usize)
            .with_memory(memory)
            .with_lookaside(self.lookaside.unwrap_or(0))
            .with_largest_item(self.max_item_size)
            .with_evictions(!self.disable_evictions)
            .with_requests_per_turn(self.max_reqs_per_event as usize)
            .with_backlog(self.listen_backlog);
        settings.unix = unix;
        settings.port_file = std::env::var_os(PORT_FILE).map(PathBuf::from).map(absolute).transpose()?;
        Ok(settings)
    }

    fn addresses(&self) -> Result<Vec<SocketAddr>, OptionError> {
        let port = match self.port {
            0 => return Ok(Vec::new()),
            -1 => 0,
            port => u16::try_from(port).expect("the option's range is that of ports"),
        };
        if self.listen.is_empty() {
            return Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]);
        }
        let mut addresses = Vec::new();
        for given in &self.listen {
            for address in resolve(given, port)? {
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
        Ok(addresses)
    }
}

/// The addresses of this machine that `given` names: an address or a name, with or without a port.
fn resolve(given: &str, port: u16) -> Result<Vec<SocketAddr>, OptionError> {
    let wrong = |reason: String| OptionError::Address { given: given.to_owned(), reason };
    let bare = given.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(given);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    if let Ok(address) = given.parse() {
        return Ok(vec![address]);
    }
    let (name, port) = match given.rsplit_once(':') {
        Some((name, digits)) => (name, digits.parse().map_err(|_| wrong(format!("'{digits}' is no port")))?),
        None => (given, port),
    };
    let named: Vec<SocketAddr> =
        (name, port).to_socket_addrs().map_err(|error| wrong(error.to_string()))?.collect();
    // A name often stands for addresses of both families, one of which this machine may not have. An address is its
    // own if a socket can be bound to it, and a datagram socket disturbs nobody.
    let own: Vec<_> =
        named.iter().copied().filter(|address| UdpSocket::bind((address.ip(), 0)).is_ok()).collect();
    if own.is_empty() { Err(wrong("no address of this machine has that name".into())) } else { Ok(own) }
}

fn absolute(path: PathBuf) -> Result<PathBuf, OptionError> {
    std::path::absolute(&path).map_err(|error| OptionError::Path { path, error })
}

fn octal(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err("permissions are three octal digits, like 700".into()),
    }
}

fn no_udp(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(0) => Ok(0),
        _ => Err("UDP is not offered yet: leave it at 0".into()),
    }
}

fn item_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        size @ KIB..=LARGEST => Ok(size),
        _ => Err("an item may be 1k at least and 1024m at most".into()),
    }
}

fn table_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        size @ 64..=LARGEST => Ok(size),
        _ => Err("a buffer has 64 bytes at least and 1024m at most; leave the option out for none".into()),
    }
}

/// A number of bytes, or of kilobytes or megabytes with a `k` or an `m` behind it.
fn size(text: &str) -> Result<usize, String> {
    let wrong = || "a size is a number with nothing, k or m behind it, like 2m".to_owned();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = match unit {
        "" => 1,
        "k" | "K" => KIB,
        "m" | "M" => MIB,
        _ => return Err(wrong()),
    };
    digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(options: &str) -> Result<Settings, String> {
        let line = std::iter::once("lookaside").chain(options.split_whitespace());
        let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        line.arguments.settings().map_err(|error| error.to_string())
    }

    fn ports(options: &str) -> Vec<String> {
        let settings = parse(options).expect("the options are sound");
        settings.tcp.iter().map(|socket| socket.address.to_string()).collect()
    }

    #[test]
    fn without_options_it_is_memcached_for_this_machine() {
        let settings = parse("").unwrap();
        let default = Settings::default();
        assert_eq!((settings.tcp, settings.threads, settings.memory), (default.tcp, 4, 64 << 20));
        assert_eq!((settings.connections, settings.largest_item, settings.evict), (1024, 1 << 20, true));
        assert_eq!(settings.requests_per_turn, default.requests_per_turn);
    }

    #[test]
    fn addresses_take_the_port_unless_they_have_one() {
        assert_eq!(ports("-p 5000"), ["127.0.0.1:5000"]);
        assert_eq!(ports("-p -1"), ["127.0.0.1:0"]);
        assert_eq!(ports("--port=-1"), ["127.0.0.1:0"]);
        assert_eq!(ports("-p 0"), [""; 0]);
        assert_eq!(ports("-l 127.0.0.1,127.0.0.2:77"), ["127.0.0.1:11211", "127.0.0.2:77"]);
        assert_eq!(ports("-p 1 -l ::1 -l [::1]:7 -l [::1]"), ["[::1]:1", "[::1]:7"]);
        assert!(ports("-l localhost:9").contains(&"127.0.0.1:9".to_owned()));
    }

    #[test]
    fn a_unix_socket_takes_the_place_of_tcp() {
        let settings = parse("-s /run/some.sock -a 770 -p 5000").unwrap();
        assert_eq!(settings.tcp, []);
        assert_eq!(settings.unix, Some(UnixSocket::new("/run/some.sock", 0o770)));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse("-m 100 -I 2m").unwrap().largest_item, 2 << 20);
        assert_eq!(parse("-I 1024").unwrap().largest_item, 1024);
        assert_eq!(parse("-I 512K").unwrap().largest_item, 512 << 10);
        assert_eq!(parse("-m 2048 -I 1024m").unwrap().largest_item, 1 << 30);
        assert_eq!(parse("-m 33554432").unwrap().memory, 1 << 45);
        assert_eq!(parse("").unwrap().lookaside, 0);
        assert_eq!(parse("--lookaside 64").unwrap().lookaside, 64);
        assert_eq!(parse("--lookaside 32m").unwrap().lookaside, 32 << 20);
    }

    #[test]
    fn wrong_values_are_refused_with_a_reason() {
        for (options, reason) in [
            ("-p 65536", "65536"),
            ("-p -2", "-2"),
            ("-p x", "x"),
            ("-U 11211", "UDP is not offered"),
            ("-m 0", "0"),
            ("-m 99999999999", "99999999999"),
            ("-m 33554433", "1..=33554432"),
            ("-m 1", "more than half"),
            ("-c 0", "0"),
            ("-t 0", "0"),
            ("-I 1023", "1k at least"),
            ("-I 1025m", "1024m at most"),
            ("-I 1g", "like 2m"),
            ("-I", "value is required"),
            ("-I 99999999999999999999m", "like 2m"),
            ("--lookaside 0", "leave the option out"),
            ("--lookaside 2000m", "1024m at most"),
            ("--lookaside much", "like 2m"),
            ("-R 0", "0"),
            ("-b 0", "0"),
            ("-a 8", "octal"),
            ("-a 1777", "octal"),
            ("-B binary", "binary"),
            ("-l nowhere.invalid", "nowhere.invalid"),
            ("-l 127.0.0.1:x", "'x' is no port"),
            ("-l 192.0.2.1.example", "192.0.2.1.example"),
            ("-Z", "-Z"),
            ("surplus", "surplus"),
        ] {
            let refusal = parse(options).expect_err(options);
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
    }
}

//! The options of the server.
//!
//! Where memcached has an option, the short and the long name are its own and mean the same; what it would refuse is
//! refused, and so is what is not offered yet, rather than silently left out. Defaults are its own, but for two:
//! without `-l` only this machine is listened to, and `-R` counts many more requests, because ours are served in
//! batches.
//!
//! The order is that of memcached's help; what memcached does not have stands at the end.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Command};
use server::Protocol;

use super::manner::Manner;
use super::values;

// What a doc comment said here would be the command's help.
#[derive(Args)]
pub(super) struct Options {
    /// TCP port to listen on; 0 turns TCP off, -1 asks for a free one
    #[arg(short, long, value_name = "NUM", default_value_t = 11211, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i32).range(-1..=65535))]
    pub(super) port: i32,

    /// UDP port: only 0, off, for now
    #[arg(short = 'U', long, value_name = "NUM", default_value_t = 0)]
    pub(super) udp_port: u16,

    /// Unix socket to listen on, instead of TCP
    #[arg(short = 's', long, value_name = "FILE")]
    pub(super) unix_socket: Option<PathBuf>,

    /// Permissions of the Unix socket, in octal
    #[arg(short = 'a', long, value_name = "MASK", default_value = "700", value_parser = values::octal)]
    pub(super) unix_mask: u32,

    /// Let clients stop the server by 'shutdown'
    #[arg(short = 'A', long)]
    pub(super) enable_shutdown: bool,

    /// Addresses to listen on, as a list with commas; each may have a port of its own, and proto[ascii]: or
    /// proto[binary]: before it; * means all [default: 127.0.0.1, and all with --compat]
    #[arg(short, long, value_name = "ADDR")]
    pub(super) listen: Vec<String>,

    /// Run in the background
    #[arg(short, long)]
    pub(super) daemon: bool,

    /// Let a crash leave as large a core file as it needs
    #[arg(short = 'r', long)]
    pub(super) enable_coredumps: bool,

    /// User to run as, when started by root
    #[arg(short, long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// Memory for items and index, in megabytes
    #[arg(short, long, value_name = "NUM", default_value = "64", value_parser = values::memory)]
    pub(super) memory_limit: usize,

    /// Answer with an error when memory is full, instead of evicting
    #[arg(short = 'M', long)]
    pub(super) disable_evictions: bool,

    /// Connections at the same time
    #[arg(short, long, value_name = "NUM", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) conn_limit: u32,

    /// Keep all memory in RAM once it is touched
    #[arg(short = 'k', long)]
    pub(super) lock_memory: bool,

    /// Log more: -v, -vv, -vvv
    #[arg(short, long, action = ArgAction::Count)]
    pub(super) verbose: u8,

    /// Print the licence and exit
    #[arg(short = 'i', long)]
    pub(super) license: bool,

    /// File for the process id, removed at the end
    #[arg(short = 'P', long, value_name = "FILE")]
    pub(super) pidfile: Option<PathBuf>,

    /// Accepted, without a meaning: chunk sizes are close to each other already
    #[arg(short = 'f', long, value_name = "NUM", value_parser = values::factor)]
    pub(super) slab_growth_factor: Option<f64>,

    /// Accepted, without a meaning: the smallest chunk holds the smallest item
    #[arg(short = 'n', long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) slab_min_size: Option<u32>,

    /// Ask the kernel for large pages, however small the memory is; it is asked for those anyway from 64 MB on
    #[arg(short = 'L', long)]
    pub(super) enable_largepages: bool,

    /// The character that ends a key's prefix, for 'stats detail', which counts from the start then [default: :]
    #[arg(short = 'D', long, value_name = "CHAR", allow_hyphen_values = true, value_parser = values::delimiter)]
    pub(super) delimiter: Option<u8>,

    /// Threads that serve
    #[arg(short, long, value_name = "NUM", default_value_t = 4)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: u16,

    /// Requests served for one connection before others have their turn
    #[arg(short = 'R', long, value_name = "NUM", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_reqs_per_event: u32,

    /// Do without compare-and-swap
    #[arg(short = 'C', long)]
    pub(super) disable_cas: bool,

    /// Connections that may wait to be accepted
    #[arg(short = 'b', long, value_name = "NUM", default_value_t = 1024)]
    pub(super) listen_backlog: u32,

    /// Protocol that clients speak: auto, ascii or binary
    #[arg(short = 'B', long, value_name = "NAME", default_value = "auto", value_parser = values::protocol,
          hide_default_value = true)]
    pub(super) protocol: Protocol,

    /// The largest item, from 1k to 1024m and at most half of the memory
    #[arg(short = 'I', long, value_name = "SIZE", default_value = "1m", value_parser = values::item_size)]
    pub(super) max_item_size: usize,

    /// Not offered yet: authentication by SASL
    #[arg(short = 'S', long)]
    pub(super) enable_sasl: bool,

    /// Refuse 'flush_all'
    #[arg(short = 'F', long)]
    pub(super) disable_flush_all: bool,

    /// Refuse 'stats cachedump' and 'lru_crawler metadump'
    #[arg(short = 'X', long)]
    pub(super) disable_dumping: bool,

    /// Refuse 'watch'
    #[arg(short = 'W', long)]
    pub(super) disable_watch: bool,

    /// Not offered yet: passwords of the text protocol
    #[arg(short = 'Y', long, value_name = "FILE")]
    pub(super) auth_file: Option<PathBuf>,

    /// Not offered yet: a file that the items survive a restart in
    #[arg(short = 'e', long, value_name = "FILE")]
    pub(super) memory_file: Option<PathBuf>,

    /// Not offered yet: TLS
    #[arg(short = 'Z', long)]
    pub(super) enable_ssl: bool,

    /// More options, as a list with commas: idle_timeout=SECONDS, no_maxconns_fast, hashpower=NUM, track_sizes,
    /// read_buf_mem_limit=MEGABYTES, sock_cookie_id=NUM; memcached's others are accepted
    #[arg(short = 'o', long, value_name = "LIST")]
    pub(super) extended: Vec<String>,

    /// Accepted, without a meaning: queues of a network card
    #[arg(short = 'N', long, value_name = "NUM", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) napi_ids: Option<u32>,

    /// Size of a lookaside buffer, beside the memory, from 64 bytes to 1024m: it knows where the hottest items are, one
    /// for every nine bytes. It pays where these get most of the requests; 'stats' tells its hits [default: none]
    #[arg(long, value_name = "SIZE", value_parser = values::table_size)]
    pub(super) lookaside: Option<usize>,

    /// Microseconds for which a thread that has nothing to do looks for requests before it sleeps, at most 1000. Where
    /// clients ask one at a time and soon again, 20 to 50 answer sooner; a core is busy meanwhile [default: 0]
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(super) poll: u32,

    /// A TOML file with options by their long names; what the command line gives wins
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,

    /// Start as memcached does: on all addresses, and without a word unless -v is given. So it is, too, for a program
    /// of the name 'memcached'
    #[arg(long)]
    pub(super) compat: bool,

    /// What is no option, which memcached does not mind.
    #[arg(hide = true, value_name = "WORD")]
    pub(super) surplus: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  lookaside                               127.0.0.1:11211, 64 MB, 4 threads
  lookaside -m 1024 -l 10.0.0.7,[::1]     1 GB, on two addresses
  lookaside -s /run/lookaside.sock -t 2   a Unix socket instead of TCP
  lookaside -m 8192 --lookaside 32m       a table of the four million hottest items before the index
  lookaside --config /etc/lookaside.toml  options from a file
  lookaside -p -1                         a free port, told on the first line
                                          and in the file that MEMCACHED_PORT_FILENAME names

See what it does with 'echo stats | nc -q1 127.0.0.1 11211', and what it costs with 'lookaside-lab load --help'.";

/// What reads the command line: its help begins with the name and the version, as memcached's does.
pub(super) fn command(manner: Manner) -> Command {
    let command = Command::new(manner.program())
        .version(manner.version())
        .help_template("{name} {version}\n{options}\n\n{after-help}")
        .after_help(EXAMPLES)
        .args_override_self(true)
        .infer_long_args(true);
    Options::augment_args(command)
}

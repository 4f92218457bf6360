//! What options mean: the settings of a server, and what is to be said of them at the start.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use server::{Settings, TcpSocket, UnixSocket};

use super::extended::{self, ListError, Named, Suboption};
use super::later::Later;
use super::listen::{self, ListenError};
use super::manner::Manner;
use super::options::Options;

/// The environment variable that names the file which the chosen ports are written to, as with memcached.
const PORT_FILE: &str = "MEMCACHED_PORT_FILENAME";

/// The most that the hot and the warm items have together in memcached, in percent.
const MOST_OF_BOTH: u32 = 80;

/// Why options mean no settings.
#[derive(Debug)]
pub(super) enum OptionError {
    Listen(ListenError),
    ItemSize { item: usize, memory: usize },
    NapiIds { ids: u32, threads: u16 },
    LruShares { hot: u32, warm: u32 },
    Path { path: PathBuf, error: io::Error },
    List(ListError),
    Later { option: &'static str, what: Later },
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Listen(error) => error.fmt(f),
            OptionError::ItemSize { item, memory } => write!(
                f,
                "an item of {item} bytes (-I) is more than half of the memory of {memory} bytes (-m): lower the one or \
                 raise the other"
            ),
            OptionError::NapiIds { ids, threads } => {
                write!(f, "{ids} queues (-N) are more than {threads} threads (-t): ask for as many at most")
            }
            OptionError::LruShares { hot, warm } => write!(
                f,
                "-o hot_lru_pct and warm_lru_pct are {hot} and {warm} percent, and may be {MOST_OF_BOTH} together: \
                 lower one of them"
            ),
            OptionError::Path { path, error } => {
                write!(f, "cannot tell where '{}' is: {error}", path.display())
            }
            OptionError::List(error) => error.fmt(f),
            OptionError::Later { option, what } => write!(f, "{option}: {what}"),
        }
    }
}

impl Error for OptionError {}

/// What options mean.
pub(super) struct Meaning {
    pub(super) settings: Settings,
    /// Options that were given and have no meaning here, as they are written.
    pub(super) moot: Vec<String>,
    /// Whether only this machine is listened to, although nobody asked for that.
    pub(super) is_local_by_default: bool,
}

/// What these options mean.
///
/// # Errors
/// [`OptionError`]: each may be good, and not all of them together, or one is not offered yet.
pub(super) fn of(options: &Options, manner: Manner) -> Result<Meaning, OptionError> {
    refuse_what_comes_later(options)?;
    let Options { memory_limit: memory, max_item_size: item, .. } = *options;
    if item > memory / 2 {
        return Err(OptionError::ItemSize { item, memory });
    }
    if let Some(ids) = options.napi_ids.filter(|&ids| ids > options.threads.into()) {
        return Err(OptionError::NapiIds { ids, threads: options.threads });
    }
    let mut moot = Vec::new();
    let mut settings = Settings::new()
        .with_threads(options.threads.into())
        .with_connections(options.conn_limit as usize)
        .with_memory(memory)
        .with_lookaside(options.lookaside.unwrap_or(0))
        .with_largest_item(item)
        .with_evictions(!options.disable_evictions)
        .with_requests_per_turn(options.max_reqs_per_event as usize)
        .with_poll(Duration::from_micros(options.poll.into()))
        .with_backlog(options.listen_backlog)
        .with_protocol(options.protocol)
        .with_flush_allowed(!options.disable_flush_all)
        .with_dumps_allowed(!options.disable_dumping)
        .with_watch_allowed(!options.disable_watch)
        .with_shutdown_allowed(options.enable_shutdown)
        .with_cas_disabled(options.disable_cas)
        .with_large_pages(options.enable_largepages)
        .with_verbosity(options.verbose.into());
    if let Some(delimiter) = options.delimiter {
        settings = settings.with_detail_by(delimiter);
    }
    if options.slab_growth_factor.is_some() {
        moot.push("-f".into());
    }
    if options.slab_min_size.is_some() {
        moot.push("-n".into());
    }
    if let Some(ids) = options.napi_ids {
        moot.push("-N".into());
        settings = settings.with_asked("num_napi_ids", Some(ids.to_string()));
    }
    let settings = with_extended(settings, &options.extended, &mut moot)?;
    let mut settings = with_sockets(settings, options, manner, &mut moot)?;
    let port_file = std::env::var_os(PORT_FILE).filter(|file| !file.is_empty());
    settings.port_file = port_file.map(PathBuf::from).map(absolute).transpose()?;
    let is_local_by_default =
        manner == Manner::Lookaside && options.listen.is_empty() && !settings.tcp.is_empty();
    Ok(Meaning { settings, moot, is_local_by_default })
}

fn refuse_what_comes_later(options: &Options) -> Result<(), OptionError> {
    let later = [
        (options.enable_ssl, "-Z", Later::Tls),
        (options.enable_sasl, "-S", Later::Sasl),
        (options.auth_file.is_some(), "-Y", Later::AuthFile),
        (options.udp_port != 0, "-U", Later::Udp),
        (options.memory_file.is_some(), "-e", Later::MemoryFile),
    ];
    match later.into_iter().find(|&(is_given, ..)| is_given) {
        Some((_, option, what)) => Err(OptionError::Later { option, what }),
        None => Ok(()),
    }
}

/// The settings with what the lists of `-o` ask for, one after the other: the last of a name wins.
fn with_extended(
    mut settings: Settings,
    lists: &[String],
    moot: &mut Vec<String>,
) -> Result<Settings, OptionError> {
    for list in lists {
        for suboption in extended::parse(list).map_err(OptionError::List)? {
            settings = match suboption {
                Suboption::MaxconnsFast(fast) => settings.with_maxconns_fast(fast),
                Suboption::HashPower(power) => settings.with_hash_power(power),
                Suboption::IdleTimeout(seconds) => settings.with_idle_timeout(seconds),
                Suboption::TrackSizes => settings.with_track_sizes(true),
                Suboption::ReadBuffers(megabytes) => settings.with_read_buffers((megabytes as usize) << 20),
                Suboption::SocketMark(mark) => settings.with_socket_mark(mark),
                Suboption::LruCrawler(enabled) => settings.with_lru_crawler(enabled),
                Suboption::LruCrawlerSleep(microseconds) => settings.with_lru_crawler_sleep(microseconds),
                Suboption::SlabReassign(enabled) => settings.with_slab_reassign(enabled),
                Suboption::Given(Named { name, value }) => settings.with_asked(name, value),
                Suboption::Moot(Named { name, value }) => {
                    moot.push(format!("-o {name}"));
                    settings.with_asked(name, value)
                }
            };
        }
    }
    let share = |name: &str, usual| settings.asked(name).unwrap_or(usual);
    let (hot, warm) = (share("hot_lru_pct", 20), share("warm_lru_pct", 40));
    if hot + warm > MOST_OF_BOTH {
        return Err(OptionError::LruShares { hot, warm });
    }
    Ok(settings)
}

/// The settings with the sockets to listen on.
fn with_sockets(
    settings: Settings,
    options: &Options,
    manner: Manner,
    moot: &mut Vec<String>,
) -> Result<Settings, OptionError> {
    if let Some(path) = &options.unix_socket {
        // Absolute, because the directory changes when it goes into the background.
        let unix = UnixSocket::new(absolute(path.clone())?, options.unix_mask);
        return Ok(settings.with_tcp([]).with_unix(unix));
    }
    let port = match options.port {
        0 => return Ok(settings.with_tcp([])),
        -1 => 0,
        port => u16::try_from(port).expect("the option's range is that of ports"),
    };
    let mut entries = Vec::new();
    for list in &options.listen {
        entries.extend(listen::parse(list).map_err(OptionError::Listen)?);
    }
    if entries.iter().any(|entry| entry.tagged) {
        moot.push("-l tag[]".into());
    }
    if entries.is_empty() {
        if manner == Manner::Lookaside {
            return Ok(settings.with_tcp([(Ipv4Addr::LOCALHOST, port).into()]));
        }
        entries.push(listen::all());
    }
    let mut sockets: Vec<TcpSocket> = Vec::new();
    for entry in &entries {
        for socket in entry.sockets(port).map_err(OptionError::Listen)? {
            if !sockets.iter().any(|there| there.address == socket.address) {
                sockets.push(socket);
            }
        }
    }
    Ok(settings.with_tcp_sockets(sockets))
}

fn absolute(path: PathBuf) -> Result<PathBuf, OptionError> {
    std::path::absolute(&path).map_err(|error| OptionError::Path { path, error })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use server::Protocol;

    use super::*;
    use crate::serve::command_line;

    fn meaning(options: &str, manner: Manner) -> Result<Meaning, String> {
        let words: Vec<_> = options.split_whitespace().map(OsString::from).collect();
        let options = command_line::read(manner, &words).map_err(|error| error.to_string())?;
        of(&options, manner).map_err(|error| error.to_string())
    }

    fn parse(options: &str) -> Result<Settings, String> {
        meaning(options, Manner::Lookaside).map(|meaning| meaning.settings)
    }

    fn addresses(settings: &Settings) -> Vec<String> {
        settings.tcp.iter().map(|socket| socket.address.to_string()).collect()
    }

    fn ports(options: &str) -> Vec<String> {
        addresses(&parse(options).expect("the options are sound"))
    }

    #[test]
    fn without_options_it_is_memcached_for_this_machine() {
        let settings = parse("").unwrap();
        let default = Settings::default();
        // Nothing that is set differs from what a program gets.
        assert_eq!(format!("{settings:?}"), format!("{default:?}"));
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
    fn memcached_listens_on_all_addresses_by_itself() {
        let ours = meaning("", Manner::Lookaside).unwrap();
        assert!(ours.is_local_by_default);
        let theirs = meaning("-p 7", Manner::Memcached).unwrap();
        assert!(!theirs.is_local_by_default && addresses(&theirs.settings).contains(&"0.0.0.0:7".to_owned()));
        for options in ["-l 127.0.0.1", "-s /run/some.sock", "-p 0"] {
            let asked = meaning(options, Manner::Lookaside).unwrap();
            assert!(!asked.is_local_by_default, "{options}");
            let theirs = meaning(options, Manner::Memcached).unwrap();
            assert_eq!(addresses(&theirs.settings), addresses(&asked.settings), "{options}");
        }
    }

    #[test]
    fn a_unix_socket_takes_the_place_of_tcp() {
        let settings = parse("-s /run/some.sock -a 770 -p 5000").unwrap();
        assert_eq!(settings.tcp, []);
        assert_eq!(settings.unix, Some(UnixSocket::new("/run/some.sock", 0o770)));
    }

    #[test]
    fn threads_sleep_at_once_unless_they_are_to_look_around() {
        assert_eq!(parse("").unwrap().poll, Duration::ZERO);
        assert_eq!(parse("--poll 20").unwrap().poll, Duration::from_micros(20));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse("-m 100 -I 2m").unwrap().largest_item, 2 << 20);
        assert_eq!(parse("-I 1024").unwrap().largest_item, 1024);
        assert_eq!(parse("-I 512K").unwrap().largest_item, 512 << 10);
        assert_eq!(parse("-m 2048 -I 1024m").unwrap().largest_item, 1 << 30);
        assert_eq!(parse("-m 33554432").unwrap().memory, 1 << 45);
        assert_eq!(parse("-m 64M").unwrap().memory, 64 << 20);
        assert_eq!(parse("").unwrap().lookaside, 0);
        assert_eq!(parse("--lookaside 64").unwrap().lookaside, 64);
        assert_eq!(parse("--lookaside 32m").unwrap().lookaside, 32 << 20);
    }

    #[test]
    fn switches_set_what_memcacheds_do() {
        let settings = parse("-A -F -X -W -C -L -D # -B ascii -vv -b 0 -M -R 20").unwrap();
        assert!(settings.shutdown_allowed && settings.cas_disabled && settings.large_pages);
        assert!(
            !settings.flush_allowed && !settings.dumps_allowed && !settings.watch_allowed && !settings.evict
        );
        assert_eq!((settings.detail.delimiter, settings.detail.enabled), (b'#', true));
        assert_eq!((settings.protocol, settings.verbosity), (Protocol::Ascii, 2));
        assert_eq!((settings.backlog, settings.requests_per_turn), (0, 20));
        assert_eq!(parse("-B binary").unwrap().protocol, Protocol::Binary);
        let socket = parse("-l proto[binary]:127.0.0.1").unwrap().tcp[0];
        assert_eq!(socket.protocol, Some(Protocol::Binary));
    }

    #[test]
    fn names_of_the_list_set_what_they_do_there_and_the_rest_is_told() {
        let options = "-f 1.5 -n 64 -N 2 -l tag[a]:127.0.0.1 -o modern,idle_timeout=9,no_maxconns_fast,hot_lru_pct=10 \
                       -o hashpower=20,track_sizes,read_buf_mem_limit=3,idle_timeout=7,sock_cookie_id=5 \
                       -o no_lru_crawler,no_slab_reassign,lru_crawler_sleep=9";
        let Meaning { settings, moot, .. } = meaning(options, Manner::Lookaside).unwrap();
        assert_eq!((settings.idle_timeout, settings.maxconns_fast, settings.hash_power), (7, false, 20));
        assert_eq!((settings.track_sizes, settings.read_buffers, settings.socket_mark), (true, 3 << 20, 5));
        assert!(!settings.lru_crawler && !settings.slab_reassign && settings.lru_crawler_sleep == 9);
        assert_eq!(moot, ["-f", "-n", "-N", "-o hot_lru_pct", "-l tag[]"]);
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
            ("--poll 1001", "0..=1000"),
            ("--poll 1001", "--poll"),
            ("--lookaside 0", "leave the option out"),
            ("--lookaside 2000m", "1024m at most"),
            ("--lookaside much", "like 2m"),
            ("-R 0", "0"),
            ("-b -1", "-1"),
            ("-a 8", "octal"),
            ("-a 1777", "octal"),
            ("-B meta", "auto, ascii or binary"),
            ("-f 1", "above 1"),
            ("-n 0", "0"),
            ("-N 5", "more than 4 threads"),
            ("-l nowhere.invalid", "nowhere.invalid"),
            ("-l 127.0.0.1:x", "'x' is no port"),
            ("-l 192.0.2.1.example", "192.0.2.1.example"),
            ("-o bogus", "Illegal suboption \"bogus\""),
            ("-o idle_timeout=x", "which 'x' is not"),
            ("-o hot_lru_pct=50,warm_lru_pct=31", "50 and 31 percent, and may be 80 together"),
            ("-o hot_lru_pct=41", "41 and 40 percent"),
            ("-o ssl_key=x", "TLS is not offered yet"),
            ("-Z", "TLS is not offered yet"),
            ("-S", "SASL is not offered yet"),
            ("-Y /etc/passwords", "passwords are not offered yet"),
            ("-e /mnt/memory", "survives a restart"),
            ("-z", "-z"),
            ("surplus", "surplus"),
        ] {
            let refusal = parse(options).expect_err(options);
            assert!(refusal.contains(reason), "{options}: {refusal}");
        }
    }
}

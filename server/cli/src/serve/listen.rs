//! The list of `-l`: addresses and names of this machine with commas between them, each with or without a port, and
//! before it what clients speak there.
//!
//! ```text
//! list    = entry { ("," | ";") entry }        entries may be empty
//! entry   = { "proto[" protocol "]:" | "tag[" name "]:" } ( "*" | host ) [ ":" port ]
//! host    = IPv4 | IPv6 | "[" IPv6 "]" | name   IPv6 with or without a zone, as in fe80::1%eth0
//! ```
//!
//! A tag tells sockets apart for memcached's proxy, and means nothing here. To take a list apart asks nobody; to find
//! the addresses of its names does.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};

use server::{Protocol, TcpSocket};

use super::later::Later;

/// Why an entry cannot be listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListenError {
    given: String,
    reason: String,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on '{}': {}", self.given, self.reason)
    }
}

impl Error for ListenError {}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    given: String,
    host: Host,
    port: Option<u16>,
    protocol: Option<Protocol>,
    /// Whether it has a tag.
    pub(super) tagged: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// All addresses of this machine.
    All,
    Address(IpAddr),
    Name(String),
}

/// All addresses of this machine, which is where memcached listens by itself.
pub(super) fn all() -> Entry {
    Entry { given: "*".into(), host: Host::All, port: None, protocol: None, tagged: false }
}

/// The entries of a list.
///
/// # Errors
/// [`ListenError`] for the first that is none.
pub(super) fn parse(list: &str) -> Result<Vec<Entry>, ListenError> {
    list.split([',', ';']).filter(|entry| !entry.is_empty()).map(entry).collect()
}

fn entry(given: &str) -> Result<Entry, ListenError> {
    let wrong = |reason: String| ListenError { given: given.to_owned(), reason };
    let (mut protocol, mut tagged, mut place) = (None, false, given);
    loop {
        if place.starts_with("notls:") || place.starts_with("mtls:") {
            return Err(wrong(Later::Tls.to_string()));
        } else if let Some((name, rest)) = bracketed(place, "proto[") {
            protocol = Some(protocol_named(name).ok_or_else(|| {
                wrong(format!("there is no protocol '{name}': it is auto, ascii or binary"))
            })?);
            place = rest;
        } else if let Some((_, rest)) = bracketed(place, "tag[") {
            (tagged, place) = (true, rest);
        } else {
            break;
        }
    }
    let (host, port) = host_and_port(place).map_err(wrong)?;
    Ok(Entry { given: given.to_owned(), host, port, protocol, tagged })
}

/// What stands between `opening` and `]:` at the beginning, and what follows.
fn bracketed<'a>(text: &'a str, opening: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(opening)?.split_once("]:")
}

fn protocol_named(name: &str) -> Option<Protocol> {
    match name {
        "auto" | "negotiate" | "negotiating" => Some(Protocol::Auto),
        "ascii" => Some(Protocol::Ascii),
        "binary" => Some(Protocol::Binary),
        _ => None,
    }
}

fn host_and_port(place: &str) -> Result<(Host, Option<u16>), String> {
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(digits) => (host, Some(digits)),
            None => return Err(format!("'{rest}' is no port")),
        },
        // Its colons are its own.
        None if is_ipv6(place) => (place, None),
        None => place.rsplit_once(':').map_or((place, None), |(host, digits)| (host, Some(digits))),
    };
    let port = port.map(|digits| digits.parse().map_err(|_| format!("'{digits}' is no port"))).transpose()?;
    let host = match host.parse() {
        Ok(address) => Host::Address(address),
        Err(_) if host == "*" => Host::All,
        // Or an address with a zone, whose number the system looks up as it does a name.
        Err(_) => Host::Name(host.to_owned()),
    };
    Ok((host, port))
}

/// Whether it is an address of IPv6, with or without a zone.
fn is_ipv6(place: &str) -> bool {
    place.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
}

impl Entry {
    /// The sockets of this entry, with this port where it has none of its own. A name is looked up.
    ///
    /// # Errors
    /// [`ListenError`], where this machine has no such address.
    pub(super) fn sockets(&self, port: u16) -> Result<Vec<TcpSocket>, ListenError> {
        let wrong = |reason: String| ListenError { given: self.given.clone(), reason };
        let port = self.port.unwrap_or(port);
        let addresses: Vec<SocketAddr> = match &self.host {
            // Asked for by number, so what is wrong with it is for the kernel to say.
            Host::Address(address) => vec![(*address, port).into()],
            Host::All => {
                let families: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
                families
                    .map(|address| (address, port).into())
                    .into_iter()
                    .filter(|&address| is_own(address))
                    .collect()
            }
            Host::Name(name) => {
                let named =
                    (name.as_str(), port).to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
                named.filter(|&address| is_own(address)).collect()
            }
        };
        if addresses.is_empty() {
            return Err(wrong("no address of this machine has that name".into()));
        }
        let socket = |address| match self.protocol {
            Some(protocol) => TcpSocket::new(address).with_protocol(protocol),
            None => TcpSocket::new(address),
        };
        Ok(addresses.into_iter().map(socket).collect())
    }
}

/// Whether this machine has an address. A name often stands for addresses of both families, one of which it may not
/// have. An address is its own if a socket can be bound to it, and a datagram socket disturbs nobody.
fn is_own(mut address: SocketAddr) -> bool {
    address.set_port(0);
    UdpSocket::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(list: &str, port: u16) -> Vec<(String, Option<Protocol>)> {
        let entries = parse(list).expect(list);
        let sockets = entries.iter().flat_map(|entry| entry.sockets(port).expect(list));
        sockets.map(|socket| (socket.address.to_string(), socket.protocol)).collect()
    }

    fn addresses(list: &str) -> Vec<String> {
        sockets(list, 1).into_iter().map(|(address, _)| address).collect()
    }

    #[test]
    fn addresses_have_ports_of_their_own_or_that_of_all() {
        assert_eq!(addresses("127.0.0.1,127.0.0.2:77"), ["127.0.0.1:1", "127.0.0.2:77"]);
        assert_eq!(addresses("::1;[::1]:7,[::1]"), ["[::1]:1", "[::1]:7", "[::1]:1"]);
        assert_eq!(addresses(",127.0.0.1,,"), ["127.0.0.1:1"]);
        assert_eq!(addresses(""), [""; 0]);
        assert!(addresses("localhost:9").contains(&"127.0.0.1:9".to_owned()));
        assert!(addresses("*").contains(&"0.0.0.0:1".to_owned()));
        assert!(addresses("*:9").contains(&"0.0.0.0:9".to_owned()));
    }

    /// An address of one link has a zone that says which: without it the kernel refuses it.
    #[test]
    fn addresses_of_a_link() {
        for (list, port) in [("fe80::1%lo", None), ("[fe80::1%lo]", None), ("[fe80::1%lo]:7", Some(7))] {
            let entry = parse(list).expect(list).remove(0);
            assert_eq!((entry.host, entry.port), (Host::Name("fe80::1%lo".into()), port), "{list}");
        }
        // One of this machine's, if it has any: address, number, prefix, scope, flags, name.
        let links = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        let mut links = links.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let link = links
            .find_map(|link| (link.get(3) == Some(&"20")).then(|| (link[0].to_owned(), link[5].to_owned())));
        let Some((digits, zone)) = link else {
            return outside::say("addresses_of_a_link: this machine has none (fe80::)");
        };
        let address = Ipv6Addr::from(u128::from_str_radix(&digits, 16).expect("hexadecimal digits"));
        let sockets = parse(&format!("[{address}%{zone}]:7")).expect("an entry")[0].sockets(1).expect("ours");
        let [TcpSocket { address: SocketAddr::V6(found), .. }] = sockets[..] else { panic!("{sockets:?}") };
        assert_eq!((*found.ip(), found.port()), (address, 7));
        assert_ne!(found.scope_id(), 0);
    }

    #[test]
    fn what_stands_before_an_address() {
        let socket = |protocol| ("127.0.0.1:5".to_owned(), protocol);
        assert_eq!(sockets("proto[ascii]:127.0.0.1:5", 1), [socket(Some(Protocol::Ascii))]);
        assert_eq!(sockets("tag[a]:proto[binary]:127.0.0.1", 5), [socket(Some(Protocol::Binary))]);
        assert_eq!(sockets("proto[auto]:tag[b]:127.0.0.1", 5), [socket(Some(Protocol::Auto))]);
        assert_eq!(sockets("tag[a:b]:127.0.0.1", 5), [socket(None)]);
        assert_eq!(
            parse("tag[x]:127.0.0.1,::1")
                .expect("sound")
                .iter()
                .map(|entry| entry.tagged)
                .collect::<Vec<_>>(),
            [true, false]
        );
    }

    #[test]
    fn wrong_entries_are_refused_with_a_reason() {
        for (list, reason) in [
            ("127.0.0.1:x", "'x' is no port"),
            ("127.0.0.1:65536", "'65536' is no port"),
            ("unix:/tmp/socket", "'/tmp/socket' is no port"),
            ("[::1]7", "'7' is no port"),
            ("[fe80::1%lo]:x", "'x' is no port"),
            ("proto[proxy]:127.0.0.1", "no protocol 'proxy'"),
            ("notls:127.0.0.1", "TLS is not offered yet"),
            ("tag[a]:mtls:127.0.0.1", "TLS is not offered yet"),
        ] {
            let said = parse(list).expect_err(list).to_string();
            assert!(said.contains(&format!("'{list}'")) && said.contains(reason), "{said}");
        }
        let nowhere = parse("nowhere.invalid").expect("a name");
        assert!(nowhere[0].sockets(1).is_err());
    }
}

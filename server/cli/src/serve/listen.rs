//! The list of `-l`: addresses and names of this machine with commas between them, each with or without a port, and
//! before it what clients speak there.
//!
//! ```text
//! list    = entry { ("," | ";") entry }        entries may be empty
//! entry   = { "proto[" protocol "]:" | "tag[" name "]:" } ( "*" | host ) [ ":" port ]
//! host    = IPv4 | IPv6 | "[" IPv6 "]" | name
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
    let bare = place.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(place);
    if let Ok(address) = bare.parse() {
        return Ok((Host::Address(address), None));
    }
    if let Ok(address) = place.parse::<SocketAddr>() {
        return Ok((Host::Address(address.ip()), Some(address.port())));
    }
    let (name, port) = match place.rsplit_once(':') {
        Some((name, digits)) => (name, Some(digits.parse().map_err(|_| format!("'{digits}' is no port"))?)),
        None => (place, None),
    };
    Ok(if name == "*" { (Host::All, port) } else { (Host::Name(name.to_owned()), port) })
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
                    .into_iter()
                    .filter(|&address| is_own(address))
                    .map(|address| (address, port).into())
                    .collect()
            }
            Host::Name(name) => {
                let named =
                    (name.as_str(), port).to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
                named.filter(|address| is_own(address.ip())).collect()
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
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
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

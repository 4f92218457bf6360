//! Where a server listens, and sockets to it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    /// The endpoint `host:port`; a name is looked up.
    ///
    /// # Errors
    /// What the system says where the name is unknown, or there is no port.
    pub fn tcp(host_and_port: &str) -> io::Result<Endpoint> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("'{host_and_port}' has no address"));
        host_and_port.to_socket_addrs()?.next().map(Endpoint::Tcp).ok_or_else(unknown)
    }

    /// A Unix socket's endpoint.
    #[must_use]
    pub fn unix(path: &Path) -> Endpoint {
        Endpoint::Unix(path.to_owned())
    }

    /// A blocking connection, which gives up where nothing comes for `patience`.
    pub(super) fn connect(&self, patience: Duration) -> io::Result<Box<dyn Wire>> {
        Ok(match self {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, patience)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Box::new(stream)
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                Box::new(stream)
            }
        })
    }

    /// A connection for an event loop, made within `patience`.
    pub(super) fn connect_nonblocking(&self, patience: Duration) -> io::Result<Stream> {
        Ok(match self {
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, patience)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Stream::Tcp(mio::net::TcpStream::from_std(stream))
            }
            Endpoint::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Stream::Unix(mio::net::UnixStream::from_std(stream))
            }
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) => path.display().fmt(f),
        }
    }
}

/// Bytes out and bytes in.
pub(super) trait Wire: Read + Write + Send {
    /// Reads what has come; anew where a signal came between, as when the program was stopped and goes on.
    fn receive(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(into) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl<S: Read + Write + Send> Wire for S {}

/// A socket in an event loop.
pub(super) enum Stream {
    Tcp(mio::net::TcpStream),
    Unix(mio::net::UnixStream),
}

impl Stream {
    pub(super) fn source(&mut self) -> &mut dyn mio::event::Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
        }
    }

    #[inline]
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replay ended with "Interrupted system call" when its program was stopped and went on.
    #[test]
    fn an_interrupted_read_begins_anew() {
        let mut ends = UnixStream::pair().unwrap();
        ends.1.write_all(b"END").unwrap();
        struct Stopped(UnixStream, bool);
        impl Read for Stopped {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                if std::mem::take(&mut self.1) {
                    Err(io::ErrorKind::Interrupted.into())
                } else {
                    self.0.read(into)
                }
            }
        }
        impl Write for Stopped {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes)
            }

            fn flush(&mut self) -> io::Result<()> {
                self.0.flush()
            }
        }
        let mut into = [0; 8];
        assert_eq!(Stopped(ends.0, true).receive(&mut into).unwrap(), 3);
    }

    #[test]
    fn an_address_is_understood_and_nonsense_is_not() {
        let endpoint = Endpoint::tcp("127.0.0.1:11211").unwrap();
        assert_eq!(endpoint, Endpoint::Tcp(([127, 0, 0, 1], 11211).into()));
        assert_eq!(endpoint.to_string(), "127.0.0.1:11211");
        assert!(Endpoint::tcp("127.0.0.1").is_err());
        assert!(Endpoint::tcp("127.0.0.1:99999").is_err());
    }
}

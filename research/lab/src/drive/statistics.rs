//! What a server says of itself: the command `stats`.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

use protocol::response::{Parsed, Response, parse};

use super::DriveError;
use super::endpoint::{Endpoint, Wire};
use super::error::WrongReply;

/// A server's general statistics, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    values: BTreeMap<String, String>,
}

impl Statistics {
    /// Asks the server at `endpoint`.
    ///
    /// # Errors
    /// [`DriveError`]: it cannot be asked, or answers something else.
    pub fn of(endpoint: &Endpoint) -> Result<Statistics, DriveError> {
        Statistics::within(Duration::from_secs(10), endpoint)
    }

    fn within(patience: Duration, endpoint: &Endpoint) -> Result<Statistics, DriveError> {
        let (asked, given_up) = (Instant::now(), |error| DriveError::of_wire(error, patience));
        let refused = |error| DriveError::Connect { endpoint: endpoint.to_string(), error };
        let mut wire = endpoint.connect(patience).map_err(refused)?;
        wire.write_all(b"stats\r\n").map_err(given_up)?;
        let (mut received, mut piece) = (Vec::new(), [0; 4096]);
        let mut statistics = Statistics::default();
        loop {
            match wire.receive(&mut piece).map_err(given_up)? {
                0 => return Err(DriveError::Closed),
                // All of it, not each piece: what answers is no server if it takes longer.
                _ if asked.elapsed() > patience => return Err(DriveError::Silent(patience)),
                count => received.extend_from_slice(&piece[..count]),
            }
            let mut at = 0;
            while let Parsed::Complete { response, consumed } =
                parse(&received[at..]).map_err(WrongReply::from)?
            {
                match response {
                    Response::End => return Ok(statistics),
                    Response::Stat { name, value } => {
                        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                        statistics.values.insert(text(name), text(value));
                    }
                    _ => return Err(WrongReply::unexpected(&received[at..at + consumed]).into()),
                }
                at += consumed;
            }
            received.drain(..at);
        }
    }

    /// The value of `name`, if it is there and a whole number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.values.get(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read};
    use std::net::TcpListener;

    /// A server that was silent ended a replay with "Resource temporarily unavailable", and one that went on sending
    /// something that never was an answer did not end it at all.
    #[test]
    fn a_server_that_says_nothing_or_never_comes_to_an_end_is_given_up() {
        let patience = Duration::from_millis(100);
        for drips in [false, true] {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            let endpoint = Endpoint::Tcp(listener.local_addr().unwrap());
            let server = std::thread::spawn(move || -> io::Result<()> {
                let (mut client, _) = listener.accept()?;
                if !drips {
                    // Until the client has gone.
                    return client.read_to_end(&mut Vec::new()).map(drop);
                }
                loop {
                    client.write_all(b"E")?;
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let error = Statistics::within(patience, &endpoint).unwrap_err().to_string();
            assert_eq!(error, "the server has not answered within 100ms", "drips: {drips}");
            let _ = server.join().unwrap();
        }
    }
}

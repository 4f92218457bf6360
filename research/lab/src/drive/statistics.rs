//! What a server says of itself: the command `stats`.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

use protocol::response::{Parsed, Response, parse};

use super::DriveError;
use super::checker::WrongReply;
use super::endpoint::Endpoint;

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
        const PATIENCE: Duration = Duration::from_secs(10);
        let refused = |error| DriveError::Connect { endpoint: endpoint.to_string(), error };
        let mut wire = endpoint.connect(PATIENCE).map_err(refused)?;
        wire.write_all(b"stats\r\n").map_err(DriveError::System)?;
        let (mut received, mut piece) = (Vec::new(), [0; 4096]);
        let mut statistics = Statistics::default();
        loop {
            match wire.read(&mut piece).map_err(DriveError::System)? {
                0 => return Err(DriveError::Closed),
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

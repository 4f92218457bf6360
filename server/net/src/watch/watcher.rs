//! One who watches: the streams it wants, and lines that wait to be sent to it, bounded.

use std::io::{self, Write};

use protocol::Streams;

use super::event::Event;

/// Bytes of lines that may wait for one watcher: `watcher_logbuf_size`.
pub(crate) const WATCHER_BYTES: usize = 256 << 10;
/// Room that is kept for the line that tells how many were skipped.
const ROOM_FOR_SKIPPED: usize = 64;

/// What is kept of one watcher, but its socket.
pub(crate) struct Watcher {
    streams: Streams,
    /// Events up to this number were before its time.
    seen: u64,
    lines: Vec<u8>,
    /// Bytes of the lines that were sent already.
    sent: usize,
    skipped: u64,
}

impl Watcher {
    /// One who begins to watch after the event of this number.
    pub(crate) fn new(streams: Streams, seen: u64) -> Self {
        Watcher { streams, seen, lines: Vec::new(), sent: 0, skipped: 0 }
    }

    /// What it watches.
    pub(crate) fn streams(&self) -> Streams {
        self.streams
    }

    /// Whether lines wait to be sent.
    pub(crate) fn has_lines(&self) -> bool {
        self.sent < self.lines.len()
    }

    /// Whether the event is told to it.
    pub(crate) fn wants(&self, event: &Event) -> bool {
        event.number > self.seen && self.streams.contains(event.what.stream())
    }

    /// Adds a line; false if there is no room, and it is skipped.
    pub(crate) fn add(&mut self, line: &str) -> bool {
        if self.lines.len() - self.sent + line.len() + ROOM_FOR_SKIPPED > WATCHER_BYTES {
            self.skipped += 1;
            return false;
        }
        if self.sent > WATCHER_BYTES / 2 {
            self.lines.drain(..self.sent);
            self.sent = 0;
        }
        if self.skipped > 0 {
            self.lines.extend_from_slice(format!("skipped={}\n", self.skipped).as_bytes());
            self.skipped = 0;
        }
        self.lines.extend_from_slice(line.as_bytes());
        true
    }

    /// Sends what the socket takes, and says how many bytes that was.
    ///
    /// # Errors
    /// Whatever the socket says, but that it would block.
    pub(crate) fn send(&mut self, socket: &mut impl Write) -> io::Result<usize> {
        let before = self.sent;
        while self.has_lines() {
            match socket.write(&self.lines[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(self.sent - before),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let total = self.sent - before;
        self.lines.clear();
        self.sent = 0;
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_room_for_is_skipped_and_told() {
        let mut watcher = Watcher::new(Streams::FETCHERS, 0);
        let line = format!("{}\n", "x".repeat(999));
        let added = (0..1000).filter(|_| watcher.add(&line)).count();
        assert_eq!(added, (WATCHER_BYTES - ROOM_FOR_SKIPPED) / 1000);
        let mut taken = Vec::new();
        assert_eq!(watcher.send(&mut taken).expect("a vector takes all"), added * 1000);
        assert!(watcher.add("next\n") && watcher.add("after\n"));
        taken.clear();
        watcher.send(&mut taken).expect("a vector takes all");
        assert_eq!(taken, format!("skipped={}\nnext\nafter\n", 1000 - added).as_bytes());
    }

    /// A socket that takes a few bytes and then blocks.
    struct Slow<'a>(&'a mut Vec<u8>, usize);

    impl Write for Slow<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.1 == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = self.1.min(bytes.len());
            self.1 -= count;
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_arrive_whole_and_in_order_at_a_slow_one() {
        let mut watcher = Watcher::new(Streams::FETCHERS, 0);
        let (mut taken, mut expected) = (Vec::new(), Vec::new());
        for number in 0..20_000 {
            let line = format!("line {number}\n");
            assert!(watcher.add(&line));
            expected.extend_from_slice(line.as_bytes());
            watcher.send(&mut Slow(&mut taken, 13)).expect("it only blocks");
        }
        while watcher.has_lines() {
            watcher.send(&mut Slow(&mut taken, 1000)).expect("it only blocks");
        }
        assert!(taken == expected);
        assert!(watcher.lines.capacity() <= 2 * WATCHER_BYTES);
    }
}

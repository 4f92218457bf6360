//! The server's log, on standard error: lines that never hold up who writes them.
//!
//! Who reads a pipe, or the disk behind a file, may stand still. So lines are written by a thread of their own, and a
//! bounded number of them waits; one more is lost, and how many were is told when there is room again. Before there is
//! such a thread, for it would not survive the way into the background, a line is written where it is made.
//!
//! Rejected: tracing-appender, whose thread is there from the beginning on, and whose losses nobody is told of.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use server::REQUESTS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::manner::Manner;

/// Lines that may wait.
const MOST_WAITING: usize = 1024;
/// How long the last lines are waited for at the end.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked meanwhile whether there is room for a mark behind them.
const LOOK: Duration = Duration::from_millis(1);

/// Lines on their way.
#[derive(Clone, Default)]
pub(super) struct Log {
    thread: Arc<OnceLock<SyncSender<Piece>>>,
    lost: Arc<AtomicU64>,
}

enum Piece {
    Line(Vec<u8>),
    /// What came before is written: that is to be told here.
    Mark(SyncSender<()>),
}

impl Log {
    /// Logs what this verbosity asks for, of this thread until [`Log::start`].
    pub(super) fn begin(verbosity: u8, manner: Manner) -> Log {
        let level = match (verbosity, manner) {
            (0, Manner::Memcached) => LevelFilter::ERROR,
            (0, Manner::Lookaside) => LevelFilter::WARN,
            (1, _) => LevelFilter::INFO,
            (2, _) => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        };
        let log = Log::default();
        let lines = log.clone();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(io::stderr().is_terminal() && !no_color)
            // A line that cannot be written, because a disk is full or a reader gone, is lost. Saying so in its place,
            // as is the default, cannot work either, and panics: the server would end for want of a log.
            .log_internal_errors(false)
            .with_writer(move || lines.clone())
            .finish()
            // Whether requests are told is for the server to know: a client may ask for it.
            .with(Targets::new().with_default(level).with_target(REQUESTS, LevelFilter::DEBUG))
            .init();
        log
    }

    /// Has lines written by a thread from now on.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(super) fn start(&self) -> io::Result<()> {
        let (sender, lines) = sync_channel(MOST_WAITING);
        let lost = self.lost.clone();
        thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(&lines, &lost, &mut io::stderr()))?;
        // It is started once.
        let _ = self.thread.set(sender);
        Ok(())
    }

    /// Waits for what was logged to be written, but not for ever.
    pub(super) fn finish(&self) {
        self.finish_within(PATIENCE);
    }

    fn finish_within(&self, patience: Duration) {
        let Some(lines) = self.thread.get() else { return };
        let until = Instant::now() + patience;
        let (told, done) = sync_channel(1);
        // Where there is no room for a mark, those who read are behind, or nobody does.
        let mut mark = Piece::Mark(told);
        while let Err(TrySendError::Full(unsent)) = lines.try_send(mark) {
            if Instant::now() >= until {
                return;
            }
            thread::sleep(LOOK);
            mark = unsent;
        }
        let _ = done.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}

/// Writes lines until there will be no more. What cannot be written is lost: there is nobody to tell.
fn write_all(pieces: &Receiver<Piece>, lost: &AtomicU64, out: &mut impl Write) {
    for piece in pieces {
        // Relaxed, as its like: a count that orders nothing.
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(out, "{missing} lines of this log were lost, for they were not taken");
        }
        match piece {
            Piece::Line(line) => _ = out.write_all(&line),
            Piece::Mark(told) => _ = told.send(()),
        }
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.thread.get() {
            None => return io::stderr().write(line),
            Some(thread) if thread.try_send(Piece::Line(line.to_vec())).is_ok() => {}
            Some(_) => _ = self.lost.fetch_add(1, Ordering::Relaxed),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_nobody_takes_are_lost_and_told() {
        let mut log = Log::default();
        let (sender, lines) = sync_channel(2);
        log.thread.set(sender).expect("it is new");
        for number in 0..5 {
            log.write_all(format!("line {number}\n").as_bytes()).expect("it is not waited for");
        }
        let lost = log.lost.clone();
        drop(log);
        let mut written = Vec::new();
        write_all(&lines, &lost, &mut written);
        let written = String::from_utf8(written).expect("text");
        assert_eq!(written, "3 lines of this log were lost, for they were not taken\nline 0\nline 1\n");
    }
    /// At the end of a server that logs much, more waits than may: nobody waited for any of it then.
    #[test]
    fn the_last_lines_are_waited_for_however_many_they_are() {
        let mut log = Log::default();
        let (sender, lines) = sync_channel(2);
        log.thread.set(sender).expect("it is new");
        for number in 0..3 {
            log.write_all(format!("line {number}\n").as_bytes()).expect("it is not waited for");
        }
        let lost = log.lost.clone();
        let (give_up, given_up) = sync_channel(1);
        let finishing = thread::spawn(move || {
            log.finish_within(Duration::from_secs(60));
            give_up.send(()).expect("it is listened to");
        });
        let early = given_up.recv_timeout(Duration::from_millis(20));
        assert!(early.is_err(), "it was over before anything was written");
        let mut written = Vec::new();
        write_all(&lines, &lost, &mut written);
        finishing.join().expect("it does not panic");
        let written = String::from_utf8(written).expect("text");
        assert_eq!(written, "1 lines of this log were lost, for they were not taken\nline 0\nline 1\n");
    }
}

//! A server without sockets and threads: one client's conversation, and a clock that stands until it is told the time.
//!
//! Requests go the way they go in a server (conversation, executor, cache, output), and what a worker and the
//! housekeeper do around it is done here by hand. So a model can be compared at exact times, and a fuzzer decides at
//! which byte what it sends is cut.

use std::sync::Arc;

use cache::engine::Housekeeper;

use crate::buffers::RECEIVE;
use crate::conversation::{Conversation, Needs};
use crate::error::StartError;
use crate::executor::{Errand, Executor};
use crate::output::Output;
use crate::settings::Settings;
use crate::shared::Shared;

/// A server that is called instead of connected to.
///
/// ```
/// use lookaside_server::{InProcess, Settings};
///
/// let mut server = InProcess::new(Settings::default(), 1_700_000_000)?;
/// assert_eq!(server.receive(b"set k 0 60 4\r\nstar\r\nget"), b"STORED\r\n");
/// assert_eq!(server.receive(b" k\r\n"), b"VALUE k 0 4\r\nstar\r\nEND\r\n");
/// server.set_time(1_700_000_060);
/// assert_eq!(server.receive(b"get k\r\n"), b"END\r\n");
/// # Ok::<(), lookaside_server::StartError>(())
/// ```
pub struct InProcess {
    shared: Arc<Shared>,
    executor: Executor,
    housekeeper: Housekeeper,
    conversation: Conversation,
    /// Received and not yet served.
    left: Vec<u8>,
    output: Output,
    open: bool,
    /// Whether the client watches: it is told nothing here, and nothing that it says is listened to.
    watching: Option<Errand>,
}

impl InProcess {
    /// A server whose clock stands at this Unix time in seconds. What the settings say of sockets and threads has no
    /// meaning here.
    ///
    /// # Errors
    /// [`StartError::Cache`]: the cache could not be made.
    pub fn new(settings: Settings, second: u64) -> Result<Self, StartError> {
        let cache = settings.cache()?;
        let protocol = settings.protocol;
        let housekeeper = cache.housekeeper();
        let shared = Arc::new(Shared::new(settings, cache, second));
        Ok(InProcess {
            executor: Executor::new(shared.clone()),
            shared,
            housekeeper,
            conversation: Conversation::new(protocol),
            left: Vec::new(),
            output: Output::default(),
            open: true,
            watching: None,
        })
    }

    /// Takes what a client sends, or the next piece of it, and returns the replies that are complete with it. A
    /// connection that is closed takes nothing more.
    pub fn receive(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut replies = Vec::new();
        while self.open && self.watching.is_none() && !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(RECEIVE - self.left.len()));
            bytes = rest;
            self.executor.metrics().bytes_read(piece.len() as u64);
            self.left.extend_from_slice(piece);
            self.serve(&mut replies);
        }
        replies
    }

    /// Serves what has been received, until more is needed.
    fn serve(&mut self, replies: &mut Vec<u8>) {
        loop {
            self.executor.begin_turn(0);
            let served = self.conversation.serve(&self.left, &mut self.executor, &mut self.output);
            self.left.drain(..served.consumed);
            let (bytes, sent) = self.output.send(replies);
            sent.expect("a vector takes everything");
            self.output.reset();
            self.executor.metrics().bytes_written(bytes as u64);
            match served.needs {
                Needs::Room | Needs::Turn => {}
                Needs::Aside => match self.executor.take_errand() {
                    Some(Errand::Dump(mut dump)) => while self.executor.step_dump(&mut dump, replies) {},
                    watching => {
                        self.watching = watching;
                        return;
                    }
                },
                Needs::Input => return,
                Needs::Close | Needs::Abort => {
                    self.open = false;
                    return;
                }
            }
        }
    }

    /// Whether the connection is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Connects again: the cache stays, the conversation begins anew.
    pub fn reconnect(&mut self) {
        self.watching = None;
        self.conversation = Conversation::new(self.shared.settings.protocol);
        self.left.clear();
        self.open = true;
    }

    /// Sets the clock to this Unix time in seconds.
    pub fn set_time(&mut self, second: u64) {
        self.shared.set_time(second);
    }

    /// Does one step of housekeeping.
    pub fn keep_house(&mut self) {
        self.housekeeper.step();
    }
}

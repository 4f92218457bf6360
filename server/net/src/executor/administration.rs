//! What operators ask for: how much is logged, how much memory there is, and that the server stops.

use cache::engine::Reassigned;
use protocol::{ErrorReply, LruRequest, Shutdown, SlabsRequest, reply};

use super::{After, Executor, answer};
use crate::output::Output;

impl Executor {
    /// Logs more, or less, from now on.
    pub(super) fn verbosity(&mut self, level: u32, noreply: bool, output: &mut Output) {
        self.shared.set_verbosity(level);
        self.look_around();
        answer(output, noreply, reply::OK);
    }

    /// Sets the limit of memory.
    pub(super) fn memory_limit(&mut self, megabytes: u32, noreply: bool, output: &mut Output) {
        let resized = self.shared.cache.resize((megabytes as usize) << 20);
        answer(output, noreply, if resized.is_ok() { reply::OK } else { ErrorReply::MemlimitUnable.bytes() });
    }

    /// Stops the server, if clients may do that.
    pub(super) fn shutdown(&mut self, how: Shutdown, noreply: bool, output: &mut Output) -> After {
        match how {
            _ if !self.shared.settings.shutdown_allowed => {
                answer(output, noreply, ErrorReply::ShutdownNotEnabled.bytes());
                After::GoOn
            }
            Shutdown::Unknown => {
                answer(output, noreply, ErrorReply::InvalidShutdownMode.bytes());
                After::GoOn
            }
            Shutdown::Now | Shutdown::Graceful => {
                self.shared.shut_down();
                After::Close
            }
        }
    }

    /// Notes a number of memcached's segmented LRU, to show it.
    pub(super) fn lru(&mut self, request: LruRequest, noreply: bool, output: &mut Output) {
        let mut lru = self.shared.tuning.lru.lock();
        match request {
            LruRequest::Tune { hot_percent, warm_percent, hot_factor, warm_factor } => {
                (lru.hot_percent, lru.warm_percent) = (hot_percent, warm_percent);
                (lru.hot_factor, lru.warm_factor) = (hot_factor.value(), warm_factor.value());
            }
            LruRequest::Mode { segmented } => lru.segmented = segmented,
            LruRequest::TemporaryTtl(seconds) => lru.temporary = seconds,
        }
        answer(output, noreply, reply::OK);
    }

    /// Moves a page, or notes a number of memcached's page mover, to show it.
    pub(super) fn slabs(&mut self, request: SlabsRequest, noreply: bool, output: &mut Output) {
        let mut automove = self.shared.tuning.automove.lock();
        match request {
            SlabsRequest::Reassign(classes) => {
                drop(automove);
                let moved = self.reassign(classes);
                return answer(output, noreply, moved.map_or_else(ErrorReply::bytes, |()| reply::OK));
            }
            SlabsRequest::Automove(level) => automove.level = level,
            SlabsRequest::AutomoveRatio(ratio) => automove.ratio = ratio.value(),
            SlabsRequest::AutomoveFreeRatio(ratio) => automove.free_ratio = ratio.value(),
            SlabsRequest::AutomoveWindow(seconds) => automove.window = seconds,
        }
        answer(output, noreply, reply::OK);
    }

    /// Moves a page from a class to another one. -1 stands for a class that has pages, 0 for nobody in particular.
    fn reassign(&self, classes: Option<(i32, i32)>) -> Result<(), ErrorReply> {
        if !self.shared.settings.slab_reassign {
            return Err(ErrorReply::SlabReassignDisabled);
        }
        let (from, to) = classes.ok_or(ErrorReply::BadFormat)?;
        if from == to {
            return Err(ErrorReply::SlabsSame);
        }
        let class = |number: i32| u8::try_from(number - 1).ok().filter(|&class| self.has_class(class));
        let (source, destination) = (class(from), class(to));
        if (source.is_none() && from != -1) || (destination.is_none() && to != 0) {
            return Err(ErrorReply::SlabsBadClass);
        }
        match self.shared.cache.housekeeper().reassign(source, destination) {
            Reassigned::Done => Ok(()),
            Reassigned::NoSpare => Err(ErrorReply::SlabsNoSpare),
            Reassigned::Busy => Err(ErrorReply::SlabsBusy),
        }
    }

    /// Whether there is a class of this number less one.
    pub(super) fn has_class(&self, class: u8) -> bool {
        self.shared.cache.class(usize::from(class)).is_some()
    }
}

//! Reorganising every so often.
//!
//! A thread looks at the access log now and then, asks whether what is hot lies more scattered than it need be, and if
//! so moves it, in small steps, with rests between them for those who write. When it has gained nothing several times
//! in a row, it ends. What a round has gained is looked at, too: places that do not fit the holes of sparse pages leave
//! some of each, and what was moved into them may lie no denser than before ([`crate::mixed`]).

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::key::Key;
use crate::relocation::Reorganized;
use crate::schedule::Schedule;
use crate::tree::Tree;

/// Of the pages that hot keys lay in before a round, they lie in fewer than this after one that has helped.
const HELPS: f64 = 0.9;

/// A thread that keeps a tree organised. Dropped, it ends, and waits for its last step.
#[derive(Debug)]
pub struct Background {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_to_end: bool,
    rounds: VecDeque<Reorganized>,
}

impl State {
    /// Rounds that are remembered.
    const ROUNDS: usize = 64;

    fn remember(&mut self, round: Reorganized) {
        if self.rounds.len() == State::ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(round);
    }
}

impl<K: Key + ?Sized, V: Clone + Send + Sync + 'static> Tree<K, V> {
    /// Starts a thread that reorganises the tree by this schedule. It needs an access log that
    /// [samples](crate::AccessLog::sample_every).
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn keep_organized(self: &Arc<Self>, schedule: Schedule) -> std::io::Result<Background> {
        let shared = Arc::<Shared>::default();
        let (tree, theirs) = (Arc::clone(self), Arc::clone(&shared));
        let thread = std::thread::Builder::new()
            .name("art-reorganise".to_string())
            .spawn(move || keep_organized(&tree, &schedule, &theirs))?;
        Ok(Background { shared, thread: Some(thread) })
    }
}

fn keep_organized<K: Key + ?Sized, V: Clone + Send + Sync + 'static>(
    tree: &Tree<K, V>,
    schedule: &Schedule,
    shared: &Shared,
) {
    let mut useless = 0;
    while schedule.patience == 0 || useless < schedule.patience {
        let mut state = shared.state.lock();
        if !state.is_to_end {
            shared.ended.wait_for(&mut state, schedule.every);
        }
        if state.is_to_end {
            return;
        }
        drop(state);
        let frequencies = tree.log.frequencies();
        if frequencies.is_empty() {
            continue;
        }
        let (hot, before) = tree.worth(frequencies, schedule);
        if hot.is_empty() {
            useless += 1;
            continue;
        }
        let hottest_first = hot.iter().map(|key| Borrow::<K>::borrow(key).to_owned()).collect();
        let mut reorganization = tree.reorganization(hottest_first);
        while reorganization.step_and_rest(schedule.step, schedule.rest).is_continue()
            && !shared.state.lock().is_to_end
        {}
        let done = reorganization.done();
        let after = tree.assess(hot.iter().map(Borrow::borrow));
        let has_helped = !done.full && (after.pages as f64) < before.pages as f64 * HELPS;
        useless = if has_helped { 0 } else { useless + 1 };
        shared.state.lock().remember(done);
    }
}

impl Background {
    /// Whether it has ended by itself, having found nothing to gain any more; or because a value's `clone` panicked.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// What has been done in each round that did something: in the last 64 of them.
    #[must_use]
    pub fn rounds(&self) -> Vec<Reorganized> {
        self.shared.state.lock().rounds.iter().copied().collect()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.state.lock().is_to_end = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there has been told by the hook, and must not become another one in drop.
            drop(thread.join());
        }
    }
}

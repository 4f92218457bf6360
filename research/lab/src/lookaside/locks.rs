//! Kind `slb-locks`: how many of the paper's stripe locks can be taken and given back a second (section 3.1.3), and how
//! many tickets, which a miss takes instead here.
//!
//! Stripes are drawn beforehand. *Own* stripes are a half of them that no other thread locks, *any* stripes may be
//! another's at the moment, and their lines travel between the cores.

use lookaside::{Buffer, Config};
use serde::Deserialize;

use crate::experiment::{ExperimentError, Session, rate};
use crate::measure::name_threads;

/// What the definitions of this kind say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parameters {
    /// Pairs of one thread in one timed part.
    pairs: usize,
    /// Numbers of threads.
    threads: Vec<usize>,
}

/// What is taken.
#[derive(Debug, Clone, Copy)]
enum Taken {
    OwnLocks,
    AnyLocks,
    Tickets,
}

impl Taken {
    const ALL: [Taken; 3] = [Taken::OwnLocks, Taken::AnyLocks, Taken::Tickets];

    fn name(self) -> &'static str {
        match self {
            Taken::OwnLocks => "stripe locks, own stripes",
            Taken::AnyLocks => "stripe locks, any stripes",
            Taken::Tickets => "tickets, any stripes",
        }
    }
}

pub(crate) fn run(parameters: &Parameters, session: &mut Session) -> Result<(), ExperimentError> {
    let buffer = Buffer::new(&Config::with_size(1 << 16))?;
    let threads = session.threads(&parameters.threads)?;
    session.announce(session.runs() * threads.len() * Taken::ALL.len());
    session.take_turns(Taken::ALL.len(), &threads, |session, taken, &threads, _| {
        let taken = Taken::ALL[taken];
        session.begin(taken.name());
        let draw = |thread| draw(taken, thread, threads, parameters.pairs);
        let hashes: Vec<_> = (0..threads).map(draw).collect();
        let take = |hashes: &Vec<u64>| take(&buffer, taken, hashes);
        let rate = rate(&hashes, parameters.pairs, take, |_, ()| Ok(()))?;
        session.record(taken.name(), &name_threads(threads), "pairs", "M/s", rate / 1e6);
        Ok(())
    })
}

/// Hashes whose stripes, bits 52 to 61, are of this thread, or any.
fn draw(taken: Taken, thread: usize, threads: usize, pairs: usize) -> Vec<u64> {
    let random = lookaside::Random::new(thread as u64);
    let draw = |_| {
        let stripe = match taken {
            // Of 1024 stripes as many as fit evenly.
            Taken::OwnLocks => random.below(1024 / threads as u32) * threads as u32 + thread as u32,
            Taken::AnyLocks | Taken::Tickets => random.below(1024),
        };
        u64::from(stripe) << 52
    };
    (0..pairs).map(draw).collect()
}

fn take(buffer: &Buffer, taken: Taken, hashes: &[u64]) {
    let visit = buffer.pinned();
    match taken {
        Taken::OwnLocks | Taken::AnyLocks => {
            for &hash in hashes {
                buffer.lock(hash);
                buffer.unlock(hash);
            }
        }
        Taken::Tickets => {
            for &hash in hashes {
                let _ = std::hint::black_box(visit.ticket(hash));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_stripes_of_their_own_or_all_of_them() {
        let drawn = |taken, thread| -> std::collections::BTreeSet<usize> {
            draw(taken, thread, 2, 50_000).into_iter().map(Buffer::stripe_of).collect()
        };
        let (first, second) = (drawn(Taken::OwnLocks, 0), drawn(Taken::OwnLocks, 1));
        assert!(first.is_disjoint(&second) && first.len() == 512 && second.len() == 512);
        assert_eq!(drawn(Taken::AnyLocks, 0).len(), 1024);
    }
}

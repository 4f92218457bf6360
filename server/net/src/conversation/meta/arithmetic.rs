//! `ma`.

use cache::engine::Expiry;
use protocol::ErrorReply;
use protocol::meta::{Letters, MetaArithmetic, reply};
use protocol::reply::CRLF;

use crate::executor::{Context, Counted, Executor, NumberChange};
use crate::output::Output;

/// With these it is more than counting what is there.
const MORE: Letters = Letters::of(b"CENT");

/// Serves an `ma`.
pub(super) fn count(request: &MetaArithmetic<'_>, key: &[u8], executor: &mut Executor, output: &mut Output) {
    let flags = &request.flags;
    // By the clock of now: it may tick while the item is changed.
    let times = Times::read(request, executor.context());
    let may_be_created = flags.has(b'N');
    let counted = if flags.has_any(MORE) {
        let change = NumberChange {
            operation: request.operation,
            delta: request.delta(),
            if_cas: flags.number(b'C').filter(|&cas| cas != 0),
            own_cas: flags.number(b'E'),
            initial: may_be_created.then(|| request.initial()),
            expiry: |before| times.last(before),
        };
        executor.count(key, &change)
    } else {
        executor.count_plainly(key, request.operation, request.delta())
    };
    let out = output.bytes();
    match counted {
        Counted::Number { .. } if flags.has(b'q') => {}
        Counted::Number { number, cas, before } => {
            if flags.has(b'v') {
                reply::value(out, number.checked_ilog10().unwrap_or(0) as usize + 1);
            } else {
                out.extend_from_slice(reply::DONE);
            }
            let mut expiry = before.unwrap_or(Expiry::Never);
            for flag in flags.iter() {
                match flag.letter {
                    b'c' => reply::number(out, b'c', cas),
                    b't' => reply::ttl(out, executor.context().ttl(expiry)),
                    letter => {
                        expiry = times.after(letter, before, expiry);
                        reply::echo(out, flag, &request.key);
                    }
                }
            }
            out.extend_from_slice(CRLF);
            if flags.has(b'v') {
                protocol::reply::number(out, number);
            }
        }
        Counted::NotFound => reply::line(out, reply::NOT_FOUND, &request.key, flags),
        Counted::Exists => reply::line(out, reply::EXISTS, &request.key, flags),
        // Nothing but an item that is created needs memory that cannot be had.
        Counted::Failed(ErrorReply::OutOfMemory) if may_be_created => {
            out.extend_from_slice(ErrorReply::OutOfMemoryAllocating.bytes());
        }
        Counted::Failed(error) => out.extend_from_slice(error.bytes()),
    }
}

/// The expiries that the flags say, and in which order.
struct Times {
    /// `N`: of an item that is created.
    created: Option<Expiry>,
    /// `T`: of any.
    touched: Option<Expiry>,
    /// Whether `N` comes after `T`.
    created_last: bool,
}

impl Times {
    fn read(request: &MetaArithmetic<'_>, context: Context<'_>) -> Times {
        let flags = &request.flags;
        let expiry = |letter| flags.time(letter).map(|time| context.expiry(time));
        let last = || flags.iter().filter(|flag| matches!(flag.letter, b'N' | b'T')).last();
        Times {
            created: expiry(b'N'),
            touched: expiry(b'T'),
            created_last: flags.has(b'N') && last().is_some_and(|flag| flag.letter == b'N'),
        }
    }

    /// The expiry of an item when all flags have been looked at.
    fn last(&self, before: Option<Expiry>) -> Expiry {
        let created = if before.is_none() { self.created } else { None };
        let said = if self.created_last { created.or(self.touched) } else { self.touched.or(created) };
        said.or(before).unwrap_or(Expiry::Never)
    }

    /// The expiry after this flag.
    fn after(&self, letter: u8, before: Option<Expiry>, now: Expiry) -> Expiry {
        match letter {
            b'N' if before.is_none() => self.created.unwrap_or(now),
            b'T' => self.touched.unwrap_or(now),
            _ => now,
        }
    }
}

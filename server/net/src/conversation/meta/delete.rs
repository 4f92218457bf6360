//! `md`.

use protocol::ErrorReply;
use protocol::meta::{MetaDelete, reply};

use crate::executor::{Executor, Invalidation, Removed};
use crate::output::Output;
use crate::watch::Command;

/// Serves an `md`.
pub(super) fn delete(request: &MetaDelete<'_>, key: &[u8], executor: &mut Executor, output: &mut Output) {
    let flags = &request.flags;
    let context = executor.context();
    let expiry = flags.time(b'T').map(|time| context.expiry(time));
    let if_cas = flags.number(b'C');
    let removed = if flags.has(b'x') || flags.has(b'I') {
        let emptied = || (flags.client_flags(), context.expiry(flags.time(b'T').unwrap_or(0)));
        let invalidation = Invalidation {
            if_cas,
            own_cas: flags.number(b'E'),
            emptied: flags.has(b'x').then(emptied),
            stale: flags.has(b'I').then_some(expiry),
        };
        executor.invalidate(key, &invalidation)
    } else {
        Ok(executor.remove(key, if_cas, Command::MetaDelete))
    };
    let code = match removed {
        Ok(Removed::Done) if flags.has(b'q') => return,
        Ok(Removed::Done) => reply::DONE,
        Ok(Removed::NotFound) => reply::NOT_FOUND,
        Ok(Removed::Exists) => {
            executor.metrics().delete_misses(1);
            reply::EXISTS
        }
        Err(_) => {
            output.bytes().extend_from_slice(ErrorReply::OutOfMemory.bytes());
            return;
        }
    };
    reply::line(output.bytes(), code, &request.key, flags);
}

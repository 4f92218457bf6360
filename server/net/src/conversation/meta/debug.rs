//! `me`.

use protocol::meta::MetaDebug;
use protocol::meta::reply::Facts;

use crate::executor::Executor;
use crate::output::Output;

/// Serves an `me`.
pub(super) fn inspect(request: &MetaDebug<'_>, key: &[u8], executor: &mut Executor, output: &mut Output) {
    let out = output.bytes();
    executor.inspect(key, |hit, context| match hit {
        None => request.write_miss(out),
        Some(hit) => {
            let facts = Facts {
                ttl: context.ttl(hit.expiry()),
                idle: context.idle(hit),
                cas: context.cas(hit),
                is_fetched: hit.was_fetched(),
                class: u64::from(hit.class()) + 1,
                size: hit.size() as u64,
            };
            request.write_hit(out, key, &facts);
        }
    });
}

//! `mg`.

use cache::engine::{Expiry, Hit};
use protocol::meta::{Flags, MetaGet, MetaKey, reply};
use protocol::reply::CRLF;

use crate::executor::{Context, Executor};
use crate::output::Output;

/// Answers an `mg` that is a lookup.
#[inline]
pub(in crate::conversation) fn answer(
    key: &[u8],
    flags: Flags<'_>,
    hit: Option<&Hit<'_>>,
    context: Context<'_>,
    output: &mut Output,
) {
    let request = MetaGet { key: MetaKey::from_plain(key), flags };
    match hit {
        Some(hit) => {
            // A lookup gives no expiry.
            let _ = write_hit(&request, hit, context, output);
        }
        None => request.write_miss(output.bytes()),
    }
}

/// Serves an `mg` of any kind.
pub(super) fn get(request: &MetaGet<'_>, key: &[u8], executor: &mut Executor, output: &mut Output) {
    let flags = &request.flags;
    let unseen = flags.has(b'u');
    loop {
        let found = executor.look(key, unseen, |hit, context| write_hit(request, hit, context, output));
        if found {
            return;
        }
        let created = flags.has(b'N').then(|| {
            let expiry = created_expiry(request, executor.context());
            executor.vivify(key, expiry, flags.number(b'E'))
        });
        match created {
            Some(Ok(Some(cas))) => {
                write_created(request, cas, executor.context(), output.bytes());
                executor.count_vivified(key, unseen, flags.has(b'T'));
                return;
            }
            // Somebody else was faster.
            Some(Ok(None)) => {}
            Some(Err(_)) | None => {
                executor.metrics().gets(1);
                request.write_miss(output.bytes());
                return;
            }
        }
    }
}

/// Writes what there is to say of an item, and says which expiry it gets, if it gets one.
// Always: the class of what is written, which its callers count, takes what is read here.
#[inline(always)]
fn write_hit(
    request: &MetaGet<'_>,
    hit: &Hit<'_>,
    context: Context<'_>,
    output: &mut Output,
) -> Option<Expiry> {
    let flags = &request.flags;
    let is_known = |cas| context.cas(hit) == cas;
    let with_value = request.wants_value() && !flags.number(b'C').is_some_and(is_known);
    // All that is read of the item is read before anything is written: it would be read, and worked out, again after.
    let (length, value) = (hit.value_len(), hit.contiguous());
    let mut is_wanted = hit.is_stale();
    let mut touched = None;
    let out = output.bytes();
    if with_value {
        reply::value(out, length);
    } else {
        out.extend_from_slice(reply::DONE);
    }
    for flag in flags.iter() {
        match flag.letter {
            b'v' | b'q' => {}
            b'k' => reply::key(out, &request.key),
            b'O' => reply::opaque(out, flag.argument),
            b's' => reply::number(out, b's', length as u64),
            b'f' => reply::number(out, b'f', hit.flags().into()),
            b'c' => reply::number(out, b'c', context.cas(hit)),
            b't' => reply::ttl(out, context.ttl(touched.unwrap_or_else(|| hit.expiry()))),
            b'l' => reply::number(out, b'l', context.idle(hit)),
            b'h' => reply::number(out, b'h', hit.was_fetched().into()),
            b'T' => touched = Some(context.expiry(flag.time())),
            b'R' => {
                let expiry = touched.unwrap_or_else(|| hit.expiry());
                is_wanted |= is_before(expiry, context.expiry(flag.time()));
            }
            _ => {}
        }
    }
    if is_wanted || hit.is_won() {
        write_lease(out, hit, is_wanted);
    }
    out.extend_from_slice(CRLF);
    if with_value {
        output.value_of(value, hit);
        output.bytes().extend_from_slice(CRLF);
    }
    touched
}

/// Writes whether the item is stale, and who is to fetch it: one of all who want that.
#[cold]
fn write_lease(out: &mut Vec<u8>, hit: &Hit<'_>, is_wanted: bool) {
    let has_won = is_wanted && !hit.is_won() && hit.win();
    if !has_won {
        out.extend_from_slice(reply::TAKEN);
    }
    if hit.is_stale() {
        out.extend_from_slice(reply::STALE);
    }
    if has_won {
        out.extend_from_slice(reply::WON);
    }
}

/// Whether something expires before then.
fn is_before(expiry: Expiry, then: Expiry) -> bool {
    matches!((expiry, then), (Expiry::At(expiry), Expiry::At(then)) if expiry < then)
}

/// The expiry of an item that is made for who asks: the last that the flags say.
fn created_expiry(request: &MetaGet<'_>, context: Context<'_>) -> Expiry {
    let times = request.flags.iter().filter(|flag| matches!(flag.letter, b'N' | b'T'));
    times.last().map_or(Expiry::Never, |flag| context.expiry(flag.time()))
}

/// Writes what there is to say of an item that was made for who asks.
fn write_created(request: &MetaGet<'_>, cas: u64, context: Context<'_>, out: &mut Vec<u8>) {
    let mut expiry = Expiry::Never;
    if request.wants_value() {
        reply::value(out, 0);
    } else {
        out.extend_from_slice(reply::DONE);
    }
    for flag in request.flags.iter() {
        match flag.letter {
            b's' | b'f' | b'l' | b'h' => reply::number(out, flag.letter, 0),
            b'c' => reply::number(out, b'c', context.told(cas)),
            b't' => reply::ttl(out, context.ttl(expiry)),
            b'N' | b'T' => expiry = context.expiry(flag.time()),
            _ => {
                reply::echo(out, flag, &request.key);
            }
        }
    }
    out.extend_from_slice(reply::WON);
    out.extend_from_slice(CRLF);
    if request.wants_value() {
        out.extend_from_slice(CRLF);
    }
}

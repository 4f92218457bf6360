//! Get, touch, get and touch, with and without keys, quiet or not.

use cache::engine::Hit;
use protocol::binary::{BinaryGet, Header, Status, reply};

use crate::executor::{Asker, Context, Executor};
use crate::output::Output;

/// Who asks for a key.
#[derive(Clone, Copy, Default)]
pub(super) struct Getter<'d>(pub(super) Option<(Header, BinaryGet<'d>)>);

impl Asker for Getter<'_> {
    #[inline(always)]
    fn answer(&self, _: &[u8], hit: Option<&Hit<'_>>, context: Context<'_>, output: &mut Output) {
        if let Some((header, request)) = &self.0 {
            write(header, request, true, hit, context, output);
        }
    }
}

/// Serves a touch, with or without its value.
pub(super) fn touch(
    header: &Header,
    request: &BinaryGet<'_>,
    exptime: u32,
    with_value: bool,
    executor: &mut Executor,
    output: &mut Output,
) {
    let expiry = executor.context().binary_expiry(exptime);
    executor.get_and_touch(request.key, expiry, |hit, context| {
        write(header, request, with_value, hit, context, output);
    });
}

/// Answers a get, or a touch.
#[inline]
fn write(
    header: &Header,
    request: &BinaryGet<'_>,
    with_value: bool,
    hit: Option<&Hit<'_>>,
    context: Context<'_>,
    output: &mut Output,
) {
    let key = request.with_key.then_some(request.key);
    let Some(hit) = hit else {
        if !request.quiet {
            reply::miss(output.bytes(), header, key);
        }
        return;
    };
    let value_length = if with_value { hit.value_len() } else { 0 };
    let lengths = [key.map_or(0, <[u8]>::len), value_length];
    let (flags, cas) = (hit.flags().to_be_bytes(), context.cas(hit));
    reply::begin(output.bytes(), header, Status::Success, &flags, lengths, cas);
    output.bytes().extend_from_slice(key.unwrap_or_default());
    if with_value {
        output.value_of(hit.contiguous(), hit);
    }
}

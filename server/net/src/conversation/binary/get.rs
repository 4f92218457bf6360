//! Get, touch, get and touch, with and without keys, quiet or not.

use cache::engine::Hit;
use protocol::binary::{BinaryGet, BinaryRequest, Frame, Header, Status, parse, reply};

use crate::executor::{Context, Executor};
use crate::gets::{self, Asker};
use crate::output::Output;

/// Who asks for a key.
#[derive(Clone, Copy, Default)]
struct BinaryGetter<'d> {
    request: Option<(Header, BinaryGet<'d>)>,
    /// Where its frame begins.
    at: usize,
}

impl Asker for BinaryGetter<'_> {
    #[inline]
    fn answer(&self, _: &[u8], hit: Option<&Hit<'_>>, context: Context<'_>, output: &mut Output) {
        if let Some((header, request)) = &self.request {
            write(header, request, true, hit, context, output);
        }
    }
}

/// Serves a get, whose frame has `length` bytes at the start of `rest`, and those that follow it at once. Says where
/// the next frame begins.
///
/// # Errors
/// Where the first frame begins that is not answered, for the output is full.
pub(super) fn gather<'d>(
    first: (Header, BinaryGet<'d>),
    length: usize,
    rest: &'d [u8],
    turn: &mut usize,
    executor: &mut Executor,
    output: &mut Output,
) -> Result<usize, usize> {
    let next = |rest| match parse(rest) {
        Frame::Request { header, request: BinaryRequest::Get(next), length } => {
            Some(((header, next), length))
        }
        _ => None,
    };
    gets::serve(
        (first, length),
        rest,
        turn,
        executor,
        output,
        next,
        |request, at, group, executor, output| {
            group.add(request.1.key, BinaryGetter { request: Some(request), at }, executor, output)
        },
    )
    .map_err(|unanswered| unanswered.asker.at)
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
        gets::write_value(hit.contiguous(), hit, output);
    }
}

//! Noop, version, quit: a header and nothing else.

use super::opcode;
use super::parts::Parts;
use super::request::BinaryRequest;

#[inline(always)]
pub(super) fn read<'a>(parts: &Parts<'a>) -> Option<BinaryRequest<'a>> {
    let is_bare = parts.extras.is_empty() && parts.key.is_empty() && parts.value_length == 0;
    is_bare.then_some(match parts.opcode() {
        opcode::NOOP => BinaryRequest::Noop,
        opcode::VERSION => BinaryRequest::Version,
        number => BinaryRequest::Quit { quiet: number == opcode::QUIT_Q },
    })
}

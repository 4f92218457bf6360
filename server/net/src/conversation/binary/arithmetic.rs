//! Increment, decrement.

use protocol::binary::{BinaryArithmetic, Header, Status, reply};

use super::refuse;
use crate::executor::{Counted, Executor, NumberChange};

/// Serves an increment or decrement.
pub(super) fn count(
    header: &Header,
    request: &BinaryArithmetic<'_>,
    executor: &mut Executor,
    out: &mut Vec<u8>,
) {
    let created = executor.context().binary_expiry(request.initial.map_or(0, |(_, exptime)| exptime));
    let change = NumberChange {
        operation: request.operation,
        delta: request.delta,
        if_cas: Some(header.cas()).filter(|&cas| cas != 0),
        own_cas: None,
        initial: request.initial.map(|(initial, _)| initial),
        expiry: |before: Option<_>| before.unwrap_or(created),
    };
    match executor.count(request.key, &change) {
        Counted::Number { .. } if request.quiet => {}
        Counted::Number { number, cas, .. } => reply::number(out, header, number, cas),
        Counted::NotFound => reply::failure(out, header, Status::NotFound),
        Counted::Exists => reply::failure(out, header, Status::Exists),
        Counted::Failed(error) => refuse(out, header, error),
    }
}

//! Delete.

use protocol::binary::{Header, Status, reply};

use crate::executor::{Executor, Removed};
use crate::watch::Command;

/// Serves a delete.
pub(super) fn remove(header: &Header, key: &[u8], quiet: bool, executor: &mut Executor, out: &mut Vec<u8>) {
    match executor.remove(key, Some(header.cas()).filter(|&cas| cas != 0), Command::Delete) {
        Removed::Done if quiet => {}
        Removed::Done => reply::success(out, header, 0),
        Removed::NotFound => reply::failure(out, header, Status::NotFound),
        Removed::Exists => reply::failure(out, header, Status::Exists),
    }
}

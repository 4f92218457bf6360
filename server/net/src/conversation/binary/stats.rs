//! Stat: what `stats` answers, a frame for each line.

use protocol::StatsTopic;
use protocol::binary::{Header, Status, reply};

use crate::executor::Executor;

/// Serves a stat. As in memcached, a topic counts by its beginning, and fewer are known than there are lines for.
pub(super) fn stats(header: &Header, topic: &[u8], executor: &mut Executor, out: &mut Vec<u8>) {
    let topic = match topic {
        b"" => StatsTopic::General,
        b"items" => StatsTopic::Items,
        b"slabs" => StatsTopic::Slabs,
        b"sizes" => StatsTopic::Sizes,
        _ if topic.starts_with(b"reset") => StatsTopic::Reset,
        _ if topic.starts_with(b"settings") => StatsTopic::Settings,
        _ => return reply::failure(out, header, Status::NotFound),
    };
    let mut lines = Vec::new();
    executor.stats(topic, &mut lines);
    for line in lines.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(stat) = line.strip_prefix(b"STAT ") else { continue };
        let end = stat.iter().position(|&byte| byte == b' ').unwrap_or(stat.len());
        let (name, value) = stat.split_at(end);
        reply::stat(out, header, name, value.strip_prefix(b" ").unwrap_or(value));
    }
    reply::stat(out, header, b"", b"");
}

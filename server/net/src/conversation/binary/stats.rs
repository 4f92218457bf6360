//! Stat: what `stats` answers, a frame for each line.

use protocol::binary::{Header, Status, reply};
use protocol::{DetailRequest, StatsTopic};

use crate::executor::Executor;
use crate::output::Output;

/// Serves a stat. As in memcached, a topic counts by its beginning, and fewer are known than there are lines for.
pub(super) fn stats(header: &Header, topic: &[u8], executor: &mut Executor, out: &mut Vec<u8>) {
    let topic = match topic {
        b"" => StatsTopic::General,
        b"items" => StatsTopic::Items,
        b"slabs" => StatsTopic::Slabs,
        b"sizes" => StatsTopic::Sizes,
        _ if topic.starts_with(b"reset") => StatsTopic::Reset,
        _ if topic.starts_with(b"settings") => StatsTopic::Settings,
        _ if topic.starts_with(b"detail on") => return detail(header, DetailRequest::On, executor, out),
        _ if topic.starts_with(b"detail off") => return detail(header, DetailRequest::Off, executor, out),
        _ if topic.starts_with(b"detail dump") => return detail(header, DetailRequest::Dump, executor, out),
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

/// Counts by prefix: all of them are the value of one statistic, lines and all.
fn detail(header: &Header, request: DetailRequest, executor: &mut Executor, out: &mut Vec<u8>) {
    let mut answer = Output::default();
    executor.detail(request, &mut answer);
    if answer.bytes().starts_with(b"CLIENT_ERROR") {
        return reply::failure(out, header, Status::NotFound);
    }
    if request == DetailRequest::Dump {
        reply::stat(out, header, b"detailed", answer.bytes());
    }
    reply::stat(out, header, b"", b"");
}

//! `stats conns`: who is connected, and what is listened on.

use std::fmt::Display;

use protocol::reply;

use crate::shared::Shared;

impl Shared {
    pub(super) fn conns(&self, out: &mut Vec<u8>) {
        for seen in self.connections.seen(self.cache.time()) {
            let mut stat = |name: &str, value: &dyn Display| {
                reply::stat(out, format_args!("{}:{name}", seen.descriptor), value);
            };
            stat("addr", &seen.address);
            if let Some(listener) = &seen.listener {
                stat("listen_addr", listener);
            }
            stat("state", &seen.doing);
            stat("secs_since_last_cmd", &seen.idle);
        }
    }
}

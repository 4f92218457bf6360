//! What a server like Redis does around the lookup of a GET: it reads the command's name and arguments, looks
//! the command up, checks its arity and the client's rights, and writes the value into the reply.
//!
//! That is some seven hundred instructions on data that are nearly always in the first two caches, and a copy of
//! the value. They are modelled as code without surprises: a load in four instructions, a store in ten, a branch
//! in eight of which one in a hundred and twenty-eight goes another way, three chains side by side; loads and
//! stores go round in 24 KiB, one load in 64 in 256 KiB. The paper leaves sockets out; so does this.
//!
//! Without a clock only every sixteenth request does it: its data are warm all the same.

use super::CODE_SERVER;
use super::keys::mix;
use super::processor::{Pen, Processor};
use super::registers::{OTHER, WORD, WORK};

/// Instructions before the lookup, and after it.
const BEFORE: u64 = 420;
const AFTER: u64 = 280;
/// The client's and the server's own data.
const NEAR: u64 = 0x7f00_0000_0000;
const NEAR_BYTES: u64 = 24 << 10;
const FAR: u64 = 0x7f00_1000_0000;
const FAR_BYTES: u64 = 256 << 10;
/// The reply.
const REPLY: u64 = 0x7f00_2000_0000;
const REPLY_BYTES: u64 = 16 << 10;

/// Without a clock, one request in so many does all of this.
const UNTIMED: u64 = 16;

/// The server's state.
#[derive(Debug, Clone, Default)]
pub(super) struct Server {
    requests: u64,
    steps: u64,
    replied: u64,
}

impl Server {
    pub(super) fn before<P: Processor>(&mut self, pen: &mut Pen<'_, P>) {
        self.requests += 1;
        self.work(pen, CODE_SERVER, BEFORE);
    }

    /// With the copy of the value, which was just read.
    pub(super) fn after<P: Processor>(&mut self, pen: &mut Pen<'_, P>, value_bytes: u64) {
        self.work(pen, CODE_SERVER + 4 * BEFORE, AFTER);
        let copy = CODE_SERVER + 4 * (BEFORE + AFTER);
        for word in (0..value_bytes).step_by(8) {
            let address = REPLY + (self.replied + word) % REPLY_BYTES;
            pen.at(copy).store(OTHER, WORK[0], address, 8).branch(&[WORK[0]], word + 8 < value_bytes, copy);
        }
        self.replied += value_bytes.next_multiple_of(8);
    }

    fn work<P: Processor>(&mut self, pen: &mut Pen<'_, P>, code: u64, instructions: u64) {
        if !pen.has_clock() && !self.requests.is_multiple_of(UNTIMED) {
            return;
        }
        pen.at(code);
        for at in 0..instructions {
            self.steps += 1;
            let draw = mix(self.steps);
            let register = WORK[(at % 3) as usize];
            if at % 8 == 7 {
                let unusual = draw.is_multiple_of(128);
                pen.branch(&[register], unusual, code + 4 * (at + 1));
            } else if at % 4 == 1 {
                let far = draw.is_multiple_of(64);
                let address = if far { FAR + draw % FAR_BYTES } else { NEAR + draw % NEAR_BYTES };
                pen.load(if at % 8 == 1 { register } else { WORD }, WORK[3], address & !7, 8);
            } else if at % 10 == 4 {
                pen.store(register, WORK[3], (NEAR + draw % NEAR_BYTES) & !7, 8);
            } else {
                pen.compute(register, &[register]);
            }
        }
    }
}

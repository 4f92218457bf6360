//! Requests on their way: those that have come together are read first, and the memory that they will touch is asked
//! for at once; then each is served in its turn.
//!
//! ```text
//!   read         as many as are complete, at most a group of keys, gets and writes as they come
//!   look ahead   the index lines of all keys, then the items that are there, their cache misses overlapping
//!   serve        in order: gets that stand side by side by one call, writes one after the other
//! ```
//!
//! All gets of keys and all writes go this way, whatever the protocol, whether keys come in one line or in many. What
//! the look ahead has found is an answer for the gets before the first write of the group, and a hint for all behind
//! it: the cache looks again whether it is there still. So requests of one key, and of other connections, need no care.
//!
//! Requests that write are parsed where they stay until they are served, those that are as most clients write them in
//! line. A request that a call has written piece by piece, and that is moved as a whole at once, waits for the pieces:
//! that was a twelfth of what an `incr` took of the server's own time.
//!
//! Rejected: *groups of gets and groups of writes*. Each ended the other, so that a set among gets waited for its
//! memory alone, and so did the gets before and behind it.

use arrayvec::ArrayVec;
use cache::engine::GROUP;

use super::{COPIED_FOR_A_REQUEST, Conversation, Needs, State, Step};
use crate::executor::{Asker, Executor};
use crate::output::Output;

/// A request that writes.
pub(super) struct Written<'d, W> {
    pub(super) request: W,
    pub(super) key: &'d [u8],
    /// Bytes of the request, but for its value.
    pub(super) line: usize,
    /// Bytes of the request.
    pub(super) total: usize,
}

/// How the requests of a protocol are read, and answered.
pub(super) trait Reader<'d> {
    /// Who asks for a key.
    type Asker: Asker;
    /// A request that writes.
    type Write;

    /// Reads keys and requests into `run` as long as it has room for them, they are there, they are such that go this
    /// way, and the turn allows it.
    fn read(&mut self, run: &mut Run<'d, Self::Asker, Self::Write>, turn: &mut usize);

    /// Carries out a request that writes, whose line has `line` bytes at the start of `rest`.
    fn write(
        conversation: &mut Conversation,
        request: &Self::Write,
        line: usize,
        rest: &[u8],
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step;

    /// The state of a conversation that goes on with the keys of a request, from this asker's on.
    fn goes_on(asker: &Self::Asker) -> State;
}

/// A group of keys, and what is wanted of them.
pub(super) struct Run<'d, A, W> {
    /// What was received: requests begin at its start.
    rest: &'d [u8],
    keys: ArrayVec<&'d [u8], GROUP>,
    /// Of those that are asked for.
    askers: ArrayVec<A, GROUP>,
    /// Where in `rest` the requests begin that begin with these keys.
    begins: ArrayVec<usize, GROUP>,
    /// The requests that write, one behind the other.
    writes: ArrayVec<Option<Written<'d, W>>, GROUP>,
    /// The keys with which a request begins, a bit each.
    first: u32,
    /// Those that are written.
    written: u32,
    /// Where in `rest` the requests end that were read.
    end: usize,
}

impl<'d, A: Asker, W> Run<'d, A, W> {
    #[inline(always)]
    pub(super) fn new(rest: &'d [u8]) -> Self {
        Run {
            rest,
            keys: ArrayVec::new_const(),
            askers: ArrayVec::new_const(),
            writes: ArrayVec::new_const(),
            begins: ArrayVec::new_const(),
            first: 0,
            written: 0,
            end: 0,
        }
    }

    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.len() < GROUP
    }

    /// What has not been read.
    #[inline]
    pub(super) fn unread(&self) -> &'d [u8] {
        &self.rest[self.end..]
    }

    /// Adds a key of a request that has begun already.
    #[inline]
    pub(super) fn ask(&mut self, key: &'d [u8], asker: A) {
        self.begins.push(self.end);
        self.keys.push(key);
        self.askers.push(asker);
    }

    /// Adds the first key of a request of `length` bytes.
    #[inline]
    pub(super) fn begin(&mut self, length: usize, key: &'d [u8], asker: A) {
        self.first |= 1 << self.len();
        self.ask(key, asker);
        self.end += length;
    }

    /// Adds a request that writes, if `parse` finds one and all of it is there.
    #[inline(always)]
    pub(super) fn write(&mut self, parse: impl FnOnce(&mut Option<Written<'d, W>>)) -> bool {
        self.writes.push(None);
        let place = self.writes.last_mut().expect("just added");
        parse(place);
        let Some(Written { key, total, .. }) = place else {
            self.writes.pop();
            return false;
        };
        if *total > self.rest.len() - self.end {
            self.writes.pop();
            return false;
        }
        self.first |= 1 << self.keys.len();
        self.written |= 1 << self.keys.len();
        self.keys.push(key);
        self.askers.push(A::default());
        self.begins.push(self.end);
        self.end += *total;
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    #[inline]
    fn len(&self) -> usize {
        self.keys.len()
    }

    /// Begins the next group.
    pub(super) fn clear(&mut self) {
        (self.first, self.written) = (0, 0);
        self.keys.clear();
        self.askers.clear();
        self.writes.clear();
        self.begins.clear();
    }

    /// Requests that begin with a key from this one on.
    fn requests_from(&self, number: usize) -> usize {
        (self.first >> number).count_ones() as usize
    }
}

impl Conversation {
    /// Serves the requests at the start of `rest` that go this way, if there are any, as far as they can be.
    #[inline]
    pub(super) fn run<'d, R: Reader<'d>>(
        &mut self,
        mut reader: R,
        rest: &'d [u8],
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Option<Step> {
        let mut run = Run::new(rest);
        loop {
            reader.read(&mut run, turn);
            if run.is_empty() {
                return (run.end > 0).then_some(Ok(run.end));
            }
            let is_whole = !run.has_room();
            let served = self.serve_run::<R>(&run, turn, executor, output);
            match served {
                Ok(at) if is_whole && at == run.end => run.clear(),
                step => return Some(step),
            }
        }
    }

    /// Serves what was read, as far as it can be.
    #[inline]
    pub(super) fn serve_run<'d, R: Reader<'d>>(
        &mut self,
        run: &Run<'d, R::Asker, R::Write>,
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        // One that comes alone, as all do where nobody pipelines: there is nothing that its memory could be asked for
        // together with.
        if run.len() == 1 && !output.is_full() {
            let begin = run.begins[0];
            let Some(Some(Written { request, line, .. })) = run.writes.first() else {
                executor.get_alone(run.keys[0], run.askers[0], output);
                return Ok(run.end);
            };
            return R::write(self, request, *line, &run.rest[begin..], executor, output)
                .map(|consumed| begin + consumed)
                .map_err(|(consumed, needs)| (begin + consumed, needs));
        }
        executor.begin_batch(&run.keys, run.written.count_ones() as usize);
        let step = self.in_order::<R>(run, turn, executor, output);
        executor.end_batch();
        step
    }

    #[inline]
    fn in_order<'d, R: Reader<'d>>(
        &mut self,
        run: &Run<'d, R::Asker, R::Write>,
        turn: &mut usize,
        executor: &mut Executor,
        output: &mut Output,
    ) -> Step {
        let copied = executor.copied();
        let mut writes = run.writes.iter();
        let mut next = 0;
        while next < run.len() {
            if output.is_full() {
                return self.stop::<R>(run, next, turn);
            }
            let gets = ((run.written >> next).trailing_zeros() as usize).min(run.len() - next);
            if gets > 0 {
                let group = next..next + gets;
                next += executor.get(next, &run.keys[group.clone()], &run.askers[group], output);
                continue;
            }
            while run.written >> next & 1 == 1 && !output.is_full() {
                let Some(Written { request, line, total, .. }) = writes.next().expect("one a bit") else {
                    unreachable!("a place is filled, or taken back")
                };
                let begin = run.begins[next];
                next += 1;
                match R::write(self, request, *line, &run.rest[begin..], executor, output) {
                    // What the caller looks at between two requests.
                    Ok(consumed)
                        if consumed < *total || executor.copied() - copied >= COPIED_FOR_A_REQUEST =>
                    {
                        *turn += run.requests_from(next);
                        return Ok(begin + consumed);
                    }
                    Ok(_) => {}
                    Err((consumed, needs)) => {
                        *turn += run.requests_from(next);
                        return Err((begin + consumed, needs));
                    }
                }
            }
        }
        Ok(run.end)
    }

    /// Stops before a key, for the output is full.
    #[cold]
    fn stop<'d, R: Reader<'d>>(
        &mut self,
        run: &Run<'d, R::Asker, R::Write>,
        next: usize,
        turn: &mut usize,
    ) -> Step {
        *turn += run.requests_from(next);
        if run.first >> next & 1 == 1 {
            return Err((run.begins[next], Needs::Room));
        }
        self.state = R::goes_on(&run.askers[next]);
        Err((super::offset_in(run.rest, run.keys[next]), Needs::Room))
    }
}

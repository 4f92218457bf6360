//! A guest: records, an index, a table in front of it, and requests.
//!
//! ```text
//!   get key:
//!     integer = fast hash of the key
//!     record  = table in front [integer]          SLB: tags and counters; STLT: loadVA
//!     if none, or its key is another:
//!       record = index[key]                       with the index's own hash
//!       tell the table                            SLB: the log; STLT: insertSTLT
//!     read the value
//! ```
//!
//! As in the paper, inserting a record does not tell the table.
//!
//! In batches (module `batch`) the table in front is asked for several keys before any of them is needed.
//!
//! The paper warms up with 80 million requests. Of those that are far from what is measured, only the table in front
//! remembers anything: so they are replayed on it alone ([`Program::replay`]), the last million or so is executed
//! without a clock, and the table is the same as if all were.
//!
//! What happens to a table in use is asked for from outside: it is not used for a while ([`Program::use_table`]), an
//! attacker's keys collide ([`Program::collide`]), records move ([`Program::rewrite`]).

use sim::{HitsAndMisses, Machine};
use workload::DistributionError;

use super::flood::{Collision, Flood};
use super::hash::{execute_hash, hash_of};
use super::processor::{Nobody, Pen, Processor};
use super::records::{Form, Records};
use super::registers::{INTEGER, QUERY, RECORD, WORD};
use super::requests::{Request, Requests, inserts};
use super::server::Server;
use super::{
    BTree, CODE_PROGRAM, Chained, Container, Dictionary, Distribution, Hash, Key, Keys, Lookup,
    OpenAddressing, RedBlackTree, SearchLookaside, Variant,
};

/// What a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The program.
    pub container: Container,
    /// How it looks keys up.
    pub variant: Variant,
    /// Records before the first request.
    pub keys: u32,
    /// Requests that will be made: hash tables have room for what they insert, and do not grow meanwhile.
    pub requests: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// What is asked for.
    pub distribution: Distribution,
    /// The hash of the table in front.
    pub hash: Hash,
    /// Bytes of the SLB, if that is in front.
    pub slb_bytes: u64,
    /// Another seed, other keys and other requests.
    pub seed: u64,
}

/// Why a guest cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// Too few records, or too many.
    #[error("{0} keys: a guest in this process has from 2 to 100 million")]
    Keys(u32),
    /// A value that would not be one.
    #[error("values of {0} bytes: give them from 8 to 4096")]
    ValueBytes(u64),
    /// Records that do not fit its heap.
    #[error(
        "records of {} GiB: a guest in this process has a heap of 64 GiB, so give it fewer or smaller ones",
        bytes >> 30
    )]
    Heap {
        /// What they would take.
        bytes: u64,
    },
    /// It answers requests as they come.
    #[error("a server's requests come one at a time: {0} is looked up in no batches")]
    Batches(&'static str),
    /// It is a compiled program.
    #[error("{0} is a compiled program: run it with --guest qemu")]
    Compiled(&'static str),
    /// The distribution refuses.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

/// Requests that a replay looks ahead: more than a processor has lines on their way.
const AHEAD: usize = 32;

/// Keys of a batch.
pub(super) const BATCH: usize = 16;

/// Records, at first.
const MOST_KEYS: u32 = 100_000_000;

#[derive(Debug, Clone)]
enum Index {
    Chained(Chained),
    OpenAddressing(OpenAddressing),
    RedBlackTree(RedBlackTree),
    BTree(BTree),
    Dictionary(Dictionary),
}

macro_rules! each {
    ($index:expr, $own:ident => $what:expr) => {
        match $index {
            Index::Chained($own) => $what,
            Index::OpenAddressing($own) => $what,
            Index::RedBlackTree($own) => $what,
            Index::BTree($own) => $what,
            Index::Dictionary($own) => $what,
        }
    };
}

/// A guest that is loaded.
#[derive(Debug, Clone)]
pub struct Program {
    shape: Shape,
    pub(super) records: Records,
    index: Index,
    pub(super) lookaside: Option<SearchLookaside>,
    server: Option<Server>,
    requests: Requests,
    pub(super) fast_path: HitsAndMisses,
    uses_table: bool,
    flood: Option<Flood>,
}

impl Program {
    /// Loads all records.
    ///
    /// # Errors
    /// If the shape is impossible.
    pub fn new(shape: Shape) -> Result<Program, GuestError> {
        if !(2..=MOST_KEYS).contains(&shape.keys) {
            return Err(GuestError::Keys(shape.keys));
        }
        if !(8..=4096).contains(&shape.value_bytes) {
            return Err(GuestError::ValueBytes(shape.value_bytes));
        }
        // A record and the index's nodes for it take less than this beyond its value.
        let bytes = u64::from(shape.keys) * (shape.value_bytes + 256);
        if bytes > super::heap::BYTES {
            return Err(GuestError::Heap { bytes });
        }
        let is_server = shape.container == Container::Redis;
        if is_server && shape.variant.in_batches() {
            return Err(GuestError::Batches(shape.container.name()));
        }
        let form = if is_server { Form::Apart } else { Form::Plain };
        let mut records = Records::new(Keys::new(shape.seed), form, shape.value_bytes);
        let inserts = inserts(shape.distribution, shape.requests).max(u64::from(shape.keys / 20));
        let capacity = shape.keys + u32::try_from(inserts).unwrap_or(u32::MAX).min(MOST_KEYS);
        let mut index = match shape.container {
            Container::UnorderedMap => Index::Chained(Chained::new(&mut records, capacity)),
            Container::DenseHashMap => Index::OpenAddressing(OpenAddressing::new(&mut records, capacity)),
            Container::Map => Index::RedBlackTree(RedBlackTree::new()),
            Container::BTree => Index::BTree(BTree::new(&mut records)),
            Container::Redis => Index::Dictionary(Dictionary::new(&mut records, capacity)),
            own @ (Container::Cuckoo | Container::Art | Container::ArtReorganised) => {
                return Err(GuestError::Compiled(own.name()));
            }
        };
        let lookaside = shape.variant.is_slb().then(|| SearchLookaside::new(records.heap(), shape.slb_bytes));
        for _ in 0..shape.keys {
            let record = records.create();
            each!(&mut index, own => own.insert(&mut records, record));
        }
        Ok(Program {
            shape,
            records,
            index,
            lookaside,
            server: is_server.then(Server::default),
            requests: Requests::new(shape.distribution, shape.keys, shape.seed)?,
            fast_path: HitsAndMisses::default(),
            uses_table: true,
            flood: None,
        })
    }

    /// What it is.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Its records.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Lookups that the table in front has answered, and that it has not.
    #[must_use]
    pub fn fast_path(&self) -> HitsAndMisses {
        self.fast_path
    }

    /// Asks for other records from now on, drawn with `seed`.
    ///
    /// # Errors
    /// If the distribution refuses.
    pub fn ask_for(&mut self, distribution: Distribution, seed: u64) -> Result<(), GuestError> {
        self.requests = Requests::new(distribution, self.shape.keys, seed)?;
        Ok(())
    }

    /// Whether lookups go by the STLT from now on, if there is one. What it holds stays; records that move are made
    /// known to it all the same, or it would lead astray when it is used again.
    pub fn use_table(&mut self, uses: bool) {
        self.uses_table = uses;
    }

    /// Loads so many further records, which no request asks for; hash tables have room for a twentieth of their
    /// keys. The first one's number.
    pub fn load_further(&mut self, records: u32) -> u32 {
        let first = self.records.count();
        for _ in 0..records {
            let record = self.records.create();
            each!(&mut self.index, own => own.insert(&mut self.records, record));
        }
        first
    }

    /// From this record on, keys are an attacker's: their integers for the table in front are what he has made of them.
    pub fn collide(&mut self, from: u32, collision: Collision) {
        self.flood = Some(Flood { from, collision });
    }

    /// Executes so many requests.
    pub fn run<P: Processor>(&mut self, processor: &mut P, requests: u64) {
        let mut pen = Pen::new(processor);
        let in_batches = self.shape.variant.in_batches() && self.uses_table;
        let mut gets = Vec::new();
        for done in 1..=requests {
            let request = self.requests.next();
            match request {
                Request::Get(record) if in_batches => gets.push(record),
                Request::Get(record) => self.get(&mut pen, record),
                Request::Insert => {}
            }
            let is_whole = gets.len() == BATCH || request == Request::Insert || done == requests;
            if in_batches && is_whole {
                self.get_many(&mut pen, &gets);
                gets.clear();
            }
            if request == Request::Insert {
                self.insert(&mut pen);
            }
        }
    }

    /// Brings the table in front to the state after so many requests, and the requests to the next one, without
    /// executing anything: nothing else of the machine changes but its page table. The hits and misses are those of the
    /// requests; [`Machine::replay_load_va`] says what is skipped. Batches are replayed key by key: of a key that comes
    /// twice in one and is not in the table, the second lookup finds it.
    ///
    /// Requests are drawn some way ahead, so that the lines of the table that they need are on their way together.
    pub fn replay(&mut self, machine: &mut Machine, requests: u64) {
        let uses_table = !matches!(self.shape.variant, Variant::Alone | Variant::Known);
        let mut gets = Vec::with_capacity(AHEAD);
        for done in 1..=requests {
            let request = self.requests.next();
            if let (Request::Get(record), true) = (request, uses_table) {
                let integer = self.integer_of(record, self.records.key(record));
                match &self.lookaside {
                    Some(lookaside) => lookaside.prefetch(integer),
                    None => machine.prefetch_row(integer),
                }
                self.records.prefetch(record);
                gets.push((record, integer));
            }
            if gets.len() == AHEAD || request == Request::Insert || done == requests {
                for (record, integer) in gets.drain(..) {
                    self.replay_get(machine, record, integer);
                }
            }
            if request == Request::Insert {
                let record = self.records.create();
                each!(&mut self.index, own => own.insert(&mut self.records, record));
            }
        }
    }

    fn replay_get(&mut self, machine: &mut Machine, record: u32, integer: u64) {
        let hit = if let Some(lookaside) = &mut self.lookaside {
            let query = self.records.key(record);
            let mut nobody = Nobody;
            let pen = &mut Pen::new(&mut nobody);
            let hit = lookaside.find(pen, &self.records, integer, query).is_some();
            if !hit {
                lookaside.emit(pen, integer, record);
            }
            hit
        } else {
            let target = self.records.target(record);
            let hit = machine.replay_load_va(integer) == target;
            if !hit {
                machine.replay_insert_stlt(integer, target);
            }
            hit
        };
        *(if hit { &mut self.fast_path.hits } else { &mut self.fast_path.misses }) += 1;
    }

    /// Looks one record up by its key, and reads it.
    ///
    /// # Panics
    /// Never for a record that is there: the index has it.
    pub fn get<P: Processor>(&mut self, pen: &mut Pen<'_, P>, record: u32) {
        let query = self.begin(pen, record);
        let integer = || self.integer_of(record, query);
        let found = match self.shape.variant {
            Variant::Alone => self.find_by_index(pen, query),
            Variant::Known => {
                pen.at(CODE_PROGRAM + 128).compute(RECORD, &[]);
                Some(record)
            }
            Variant::Slb | Variant::SlbBatches => {
                let integer = integer();
                self.find_by_lookaside(pen, query, integer)
            }
            Variant::StltSw | Variant::StltVa | Variant::Stlt | Variant::StltBatches if !self.uses_table => {
                self.find_by_index(pen, query)
            }
            Variant::StltSw | Variant::StltVa | Variant::Stlt | Variant::StltBatches => {
                let integer = integer();
                self.find_by_stlt(pen, record, query, integer)
            }
        };
        debug_assert_eq!(found, Some(record), "the index has every record");
        self.read(pen, record);
    }

    /// Reads what was found.
    pub(super) fn read<P: Processor>(&mut self, pen: &mut Pen<'_, P>, record: u32) {
        self.records.read(pen, record);
        if let Some(server) = &mut self.server {
            server.after(pen, self.shape.value_bytes);
        }
        // Back to whoever asks.
        pen.at(CODE_PROGRAM + 512).compute(WORD, &[WORD]).branch(&[WORD], true, CODE_PROGRAM);
    }

    /// The request arrives: its key is written to the stack.
    pub(super) fn begin<P: Processor>(&mut self, pen: &mut Pen<'_, P>, record: u32) -> Key {
        self.records.prefetch(record);
        if let Some(server) = &mut self.server {
            server.before(pen);
        }
        pen.at(CODE_PROGRAM).compute(WORD, &[]).compute(WORD, &[WORD]);
        for word in 0..3 {
            let address = pen.query() + 8 * word;
            pen.store(WORD, QUERY, address, 8).compute(WORD, &[]);
        }
        pen.compute(WORD, &[WORD]);
        self.records.key(record)
    }

    fn find_by_index<P: Processor>(&self, pen: &mut Pen<'_, P>, query: Key) -> Option<u32> {
        pen.at(CODE_PROGRAM + 256);
        each!(&self.index, own => own.find(pen, &self.records, query))
    }

    /// Makes the integer for the table in front.
    pub(super) fn make_integer<P: Processor>(&self, pen: &mut Pen<'_, P>) {
        pen.at(CODE_PROGRAM + 64);
        execute_hash(self.shape.hash, pen);
        pen.at(CODE_PROGRAM + 96).compute(INTEGER, &[super::registers::HASH]);
    }

    /// A record's integer for the table in front.
    pub(super) fn integer_of(&self, record: u32, query: Key) -> u64 {
        let integer = hash_of(self.shape.hash, &query.bytes());
        self.flood.map_or(integer, |flood| flood.integer(record, integer))
    }

    pub(super) fn find_by_lookaside<P: Processor>(
        &mut self,
        pen: &mut Pen<'_, P>,
        query: Key,
        integer: u64,
    ) -> Option<u32> {
        // The host fetches the line while the guest computes where it is.
        self.lookaside.as_ref()?.prefetch(integer);
        self.make_integer(pen);
        let lookaside = self.lookaside.as_mut()?;
        if let Some(found) = lookaside.find(pen, &self.records, integer, query) {
            self.fast_path.hits += 1;
            return Some(found);
        }
        self.fast_path.misses += 1;
        let found = self.find_by_index(pen, query)?;
        self.lookaside.as_mut()?.emit(pen, integer, found);
        Some(found)
    }

    pub(super) fn find_by_stlt<P: Processor>(
        &mut self,
        pen: &mut Pen<'_, P>,
        record: u32,
        query: Key,
        integer: u64,
    ) -> Option<u32> {
        self.make_integer(pen);
        pen.at(CODE_PROGRAM + 128);
        let address = pen.load_va(RECORD, INTEGER, integer);
        pen.at(CODE_PROGRAM + 136).branch(&[RECORD], address == 0, CODE_PROGRAM + 224);
        // Mostly it is the record that is asked for, and need not be searched.
        let wanted = address == self.records.target(record);
        if let Some(candidate) = if wanted { Some(record) } else { self.records.at(address) } {
            let equal = self.records.compare(pen, candidate, query);
            pen.at(CODE_PROGRAM + 160).branch(&[WORD], !equal, CODE_PROGRAM + 224);
            if equal {
                self.fast_path.hits += 1;
                return Some(candidate);
            }
        }
        self.fast_path.misses += 1;
        let found = self.find_by_index(pen, query)?;
        pen.at(CODE_PROGRAM + 288);
        pen.insert_stlt(INTEGER, RECORD, integer, self.records.target(found));
        Some(found)
    }

    /// Executes the next request, after which its record moves, as if it had outgrown its place: it is written where
    /// there is room, the index leads there (what it stores is what it stores for a new record), and the STLT, if there
    /// is one, is told, as section III-F demands. For records of one object.
    pub fn rewrite<P: Processor>(&mut self, processor: &mut P) {
        let pen = &mut Pen::new(processor);
        let record = match self.requests.next() {
            Request::Get(record) => record,
            Request::Insert => return self.insert(pen),
        };
        self.get(pen, record);
        self.records.relocate(record);
        self.records.write(pen, record);
        each!(&self.index, own => own.execute_insert(pen, &self.records, record));
        if self.shape.variant.stlt().is_some() {
            let integer = self.integer_of(record, self.records.key(record));
            pen.at(CODE_PROGRAM + 320);
            pen.insert_stlt(INTEGER, RECORD, integer, self.records.target(record));
        }
    }

    /// Inserts the next record: a lookup that finds nothing, and the stores.
    fn insert<P: Processor>(&mut self, pen: &mut Pen<'_, P>) {
        let record = self.records.create();
        let query = self.begin(pen, record);
        let none = self.find_by_index(pen, query);
        debug_assert_eq!(none, None, "the record is new");
        each!(&mut self.index, own => own.insert(&mut self.records, record));
        self.records.write(pen, record);
        each!(&self.index, own => own.execute_insert(pen, &self.records, record));
        if let Some(server) = &mut self.server {
            server.after(pen, 0);
        }
    }
}

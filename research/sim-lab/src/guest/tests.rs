//! Guests against closed forms: what a lookup compares, how deep it goes, what it touches.

use std::collections::HashMap;

use sim::{BranchOutcome, Core, Instruction, Machine, MemoryAccess, Profile};

use super::*;

/// Counts instructions by their address, and accesses.
#[derive(Default)]
struct Counting {
    executed: HashMap<u64, u64>,
    accesses: Vec<MemoryAccess>,
    instructions: u64,
}

impl Processor for Counting {
    fn execute(&mut self, instruction: &Instruction, access: Option<MemoryAccess>, _: Option<BranchOutcome>) {
        *self.executed.entry(instruction.address).or_default() += 1;
        self.accesses.extend(access);
        self.instructions += 1;
    }

    fn prefetch(&mut self, instruction: &Instruction, _: u64) {
        self.execute(instruction, None, None);
    }

    fn load_va(&mut self, _: &Instruction, _: u64) -> u64 {
        0
    }

    fn insert_stlt(&mut self, _: &Instruction, _: u64, _: u64) {}
}

const KEYS: u32 = 20_000;

fn shape(container: Container, variant: Variant) -> Shape {
    Shape {
        container,
        variant,
        keys: KEYS,
        requests: 0,
        value_bytes: 64,
        distribution: Distribution::Uniform,
        hash: Hash::Xxh3,
        slb_bytes: 1 << 20,
        seed: 1,
    }
}

/// Looks every record up once.
fn every_record(container: Container, variant: Variant) -> Counting {
    let mut program = Program::new(shape(container, variant)).expect("legal");
    let mut counting = Counting::default();
    for record in 0..KEYS {
        program.get(&mut Pen::new(&mut counting), record);
    }
    counting
}

impl Counting {
    /// How often the instruction at an address of the index's code was executed, for each key.
    fn each(&self, offset: u64) -> f64 {
        self.executed.get(&(CODE_INDEX + offset)).copied().unwrap_or(0) as f64 / f64::from(KEYS)
    }
}

#[test]
fn chains_are_as_long_as_their_load_says() {
    let mut records = Records::new(Keys::new(1), Form::Plain, 64);
    let buckets = Chained::new(&mut records, KEYS + KEYS / 20).buckets();
    // The record looked for, and half of the others of its bucket: 1 + (n - 1) / 2m.
    let expected = 1.0 + f64::from(KEYS - 1) / (2.0 * f64::from(buckets));
    let compared = every_record(Container::UnorderedMap, Variant::Alone).each(128);
    assert!((compared - expected).abs() < 0.01, "{compared} against {expected}");
}

#[test]
fn probes_are_as_many_as_uniform_hashing_says() {
    let mut records = Records::new(Keys::new(1), Form::Plain, 64);
    let slots = OpenAddressing::new(&mut records, KEYS + KEYS / 20).slots();
    let load = f64::from(KEYS) / slots as f64;
    // Knuth, The Art of Computer Programming 3, 6.4: ln(1 / (1 - load)) / load. Triangles cluster a little.
    let expected = -(1.0 - load).ln() / load;
    let probes = every_record(Container::DenseHashMap, Variant::Alone).each(128);
    assert!(probes > expected - 0.01 && probes < expected * 1.05, "{probes} against {expected}");
}

#[test]
fn the_red_black_tree_is_as_deep_as_a_balanced_one() {
    // To a leaf, every time.
    let levels = every_record(Container::Map, Variant::Alone).each(64);
    let balanced = f64::from(KEYS + 1).log2();
    assert!((balanced - 1.0..balanced + 1.0).contains(&levels), "{levels} levels against {balanced}");
}

#[test]
fn the_b_tree_is_as_high_as_its_nodes_are_full() {
    let mut records = Records::new(Keys::new(1), Form::Plain, 64);
    let mut tree = BTree::new(&mut records);
    for _ in 0..KEYS {
        let record = records.create();
        tree.insert(&mut records, record);
    }
    // Bayer and McCreight: between log_8 (n + 1) and 1 + log_4 ((n + 1) / 2).
    let keys = f64::from(KEYS + 1);
    let (least, most) = (keys.log(8.0).ceil(), 1.0 + (keys / 2.0).log(4.0));
    assert!((least..=most).contains(&f64::from(tree.height())), "{} levels", tree.height());
    let visited = every_record(Container::BTree, Variant::Alone).each(64);
    assert!(visited <= f64::from(tree.height()) && visited > f64::from(tree.height()) - 1.5, "{visited}");
}

#[test]
fn a_known_address_costs_the_value_s_lines_and_the_query_s_three_words() {
    let counting = every_record(Container::UnorderedMap, Variant::Known);
    let program = Program::new(shape(Container::UnorderedMap, Variant::Known)).expect("legal");
    let lines = |record| {
        let value = program.records().target(record) + 24;
        (value + 64).div_ceil(64) - value / 64
    };
    let loads: u64 = (0..KEYS).map(lines).sum();
    let stores = 3 * u64::from(KEYS);
    let counted = counting.accesses.iter().filter(|access| !access.store).count() as u64;
    assert_eq!((counted, counting.accesses.len() as u64), (loads, loads + stores));
}

#[test]
fn uniform_requests_miss_the_stlt_as_balls_in_bins_say() {
    // Whichever four of a set's keys are in it, a request for one of its n keys finds it with probability 4 / n.
    let rows = 1_u64 << 14;
    let mut program = Program::new(shape(Container::UnorderedMap, Variant::Stlt)).expect("legal");
    let mut machine = Machine::new(&Profile::stlt_paper()).expect("a machine");
    machine.stlt_alloc(rows, 4, sim::stlt::Variant::Full).expect("a table");
    program.run(&mut machine, 100_000);
    let before = program.fast_path();
    program.run(&mut machine, 200_000);
    let after = program.fast_path();
    let misses = (after.misses - before.misses) as f64 / 200_000.0;
    let lambda = f64::from(KEYS) / (rows as f64 / 4.0);
    let (mut probability, mut beyond) = ((-lambda).exp(), 0.0);
    for n in 0..60_u32 {
        beyond += probability * (f64::from(n) - 4.0).max(0.0);
        probability *= lambda / f64::from(n + 1);
    }
    let expected = beyond / lambda;
    // Two keys of a set that agree in the twelve bits of their sub-integers share a row: n / 4096 of them.
    assert!((misses - expected).abs() < 0.004, "{misses} against {expected}");
    assert_eq!(machine.statistics().stlt.invalid, 0);
}

#[test]
fn a_hash_table_has_room_for_what_is_inserted() {
    // Every twentieth of these requests inserts: at the end there are twice as many records, and chains are no longer
    // than with as many buckets as that.
    let requests = u64::from(KEYS) * 20;
    let shape = Shape {
        requests,
        distribution: Distribution::Latest,
        ..shape(Container::UnorderedMap, Variant::Alone)
    };
    let mut program = Program::new(shape).expect("legal");
    let mut machine = Machine::new(&Profile::stlt_paper()).expect("a machine");
    program.replay(&mut machine, requests);
    let records = program.records().count();
    assert!(records.abs_diff(2 * KEYS) < KEYS / 20, "{records} records");
    let mut counting = Counting::default();
    for record in 0..records {
        program.get(&mut Pen::new(&mut counting), record);
    }
    let compared = counting.executed[&(CODE_INDEX + 128)] as f64 / f64::from(records);
    assert!((1.45..1.55).contains(&compared), "{compared} nodes a lookup");
}

#[test]
fn a_replayed_table_is_a_simulated_one() {
    // One program executes its requests, the other has them replayed. Frames are those of identity, because who
    // touches a page first is another with each.
    let mut profile = Profile::stlt_paper();
    profile.paging.frames = sim::Frames::Identity {};
    for variant in [Variant::Slb, Variant::StltSw, Variant::StltVa, Variant::Stlt] {
        for (container, distribution) in [
            (Container::UnorderedMap, Distribution::Uniform),
            (Container::Redis, Distribution::Zipf),
            (Container::BTree, Distribution::Latest),
        ] {
            let shape = Shape { distribution, slb_bytes: 1 << 17, ..shape(container, variant) };
            let mut program = Program::new(shape).expect("legal");
            let mut replayed = program.clone();
            let mut machines = [(); 2].map(|()| Machine::new(&profile).expect("a machine"));
            let [machine, other] = &mut machines;
            if let Some(variant) = variant.stlt() {
                machine.stlt_alloc(1 << 13, 4, variant).expect("a table");
                other.stlt_alloc(1 << 13, 4, variant).expect("a table");
            }
            program.run(machine, 60_000);
            replayed.replay(other, 60_000);
            let counts = program.fast_path();
            assert_eq!(counts, replayed.fast_path(), "{container:?} {variant:?}");
            assert!(counts.hits > 5_000 && counts.misses > 500, "{container:?} {variant:?} {counts:?}");
            assert!(machine.stlt() == other.stlt(), "{container:?} {variant:?}: every row");
            assert_eq!(machine.statistics().stlt, other.statistics().stlt);
            // What comes afterwards is the same, too: an SLB's rows are its own.
            program.run(machine, 5_000);
            replayed.run(other, 5_000);
            assert_eq!(program.fast_path(), replayed.fast_path(), "{container:?} {variant:?}");
            assert_eq!(program.records().count(), replayed.records().count());
        }
    }
}

#[test]
fn every_program_finds_every_record_by_every_way() {
    for container in Container::ALL.into_iter().filter(|container| !container.is_own()) {
        for variant in Variant::ALL {
            if container == Container::Redis && variant.in_batches() {
                continue;
            }
            for distribution in [Distribution::Zipf, Distribution::Latest] {
                let shape = Shape { keys: 500, distribution, ..shape(container, variant) };
                let mut program = Program::new(shape).expect("legal");
                let mut machine = Machine::new(&Profile::stlt_paper()).expect("a machine");
                if let Some(variant) = variant.stlt() {
                    machine.stlt_alloc(1 << 12, 4, variant).expect("a table");
                }
                // A lookup that ends with another record fails an assertion of the program.
                program.run(&mut machine, 5_000);
                let counts = program.fast_path();
                let in_front = variant.is_slb() || variant.stlt().is_some();
                assert_eq!(counts.total() > 4_000, in_front, "{container:?} {variant:?} {counts:?}");
                if in_front {
                    assert!(counts.hits > counts.misses, "{container:?} {variant:?} {counts:?}");
                }
                let inserted = distribution == Distribution::Latest;
                assert_eq!(program.records().count() > 500, inserted);
            }
        }
    }
}

/// Of so many requests for a set far larger than the caches, the cycles, and what the table in front has answered.
fn cycles(variant: Variant) -> (u64, sim::HitsAndMisses) {
    let shape = Shape { keys: 200_000, slb_bytes: 1 << 24, ..shape(Container::UnorderedMap, variant) };
    let mut program = Program::new(shape).expect("legal");
    let mut machine = Machine::new(&Profile::stlt_paper()).expect("a machine");
    if let Some(variant) = variant.stlt() {
        machine.stlt_alloc(1 << 20, 4, variant).expect("a table");
    }
    program.replay(&mut machine, 1_000_000);
    program.run(&mut machine, 100_000);
    let before = program.fast_path();
    let mut core = Core::with_machine(machine);
    core.resume();
    program.run(&mut core, 10_007);
    let after = program.fast_path();
    let counted = sim::HitsAndMisses { hits: after.hits - before.hits, misses: after.misses - before.misses };
    (core.statistics().cycles, counted)
}

#[test]
fn batches_answer_every_request_and_overlap_what_they_wait_for() {
    for (single, batches, gain) in
        [(Variant::Slb, Variant::SlbBatches, 1.5), (Variant::Stlt, Variant::StltBatches, 1.1)]
    {
        let ((alone, one), (together, many)) = (cycles(single), cycles(batches));
        assert_eq!((one.total(), many.total()), (10_007, 10_007));
        assert!(one.hits.abs_diff(many.hits) < 100, "{one:?} {many:?}");
        assert!(alone as f64 > gain * together as f64, "{single:?}: {alone} cycles, {together} in batches");
    }
}

#[test]
fn impossible_guests_are_refused() {
    let refused = |shape| Program::new(shape).map(|_| ()).expect_err("impossible");
    let sound = shape(Container::Map, Variant::Alone);
    assert_eq!(refused(Shape { keys: 1, ..sound }), GuestError::Keys(1));
    assert_eq!(refused(Shape { value_bytes: 5_000, ..sound }), GuestError::ValueBytes(5_000));
    let batches = Shape { container: Container::Redis, variant: Variant::SlbBatches, ..sound };
    assert_eq!(refused(batches), GuestError::Batches("redis"));
    for container in Container::OWN {
        assert_eq!(refused(Shape { container, ..sound }), GuestError::Compiled(container.name()));
    }
}

//! What the paper says of its tables, at a size that a test can afford: the order of the ways, for every program.

use sim::Window;
use sim_lab::configuration::{Guest, Lengths};
use sim_lab::guest::{Container, Variant};
use sim_lab::run::run;

use crate::shared::configuration;

/// Twice what the second TLB reaches of records, and four times the third cache.
const KEYS: u32 = 100_000;

fn cycles(container: Container, variant: Variant) -> f64 {
    let bytes = if variant == Variant::Slb { 5 << 22 } else { 1 << 23 };
    let lengths = Lengths { warm_up: 300_000, functional: 150_000, settle: 500, windows: 1, window: 4_000 };
    let configuration = configuration(Guest::InProcess, (container, variant), (KEYS, bytes), lengths);
    let run = run(&configuration).expect("it needs nothing");
    run.measurement.estimate(Window::cycles).mean
}

#[test]
fn stlt_is_ahead_of_slb_and_slb_of_nothing_and_trees_gain_most() {
    let mut gains = Vec::new();
    for container in [Container::UnorderedMap, Container::Map, Container::BTree] {
        let [alone, known, slb, stlt] = [Variant::Alone, Variant::Known, Variant::Slb, Variant::Stlt]
            .map(|variant| cycles(container, variant));
        let order = [known, stlt, slb, alone];
        assert!(order.is_sorted(), "{container:?}: known, STLT, SLB, alone take {order:?} cycles");
        gains.push(alone / stlt);
    }
    let [hash, map, btree] = gains[..] else { panic!("three programs") };
    assert!(map > hash && btree > hash, "{gains:?}");
}

#[test]
fn each_part_of_the_stlt_brings_something() {
    let [software, addresses, all] = [Variant::StltSw, Variant::StltVa, Variant::Stlt]
        .map(|variant| cycles(Container::UnorderedMap, variant));
    assert!(all < addresses && addresses < software, "{all} {addresses} {software}");
}

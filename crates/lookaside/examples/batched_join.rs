//! A join of two tables: orders, in the order in which they came in, with the customers who gave them.
//!
//! `cargo run --release -p lookaside --example batched_join [customers]`
//!
//! For each order the customer is looked up by key. One at a time, each lookup waits for memory by itself. In batches,
//! the lines of all are asked for before the first is needed. Most orders come from few customers, so a table in front
//! of the customers' index answers most of the lookups.

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use lookaside::{Config, Map, RwLock};

/// Orders that are joined at once.
const BATCH: usize = 64;

/// A customer, as far as the join needs it.
#[derive(Clone, Copy)]
struct Customer {
    region: usize,
}

#[derive(Clone, Copy)]
struct Order {
    customer: u64,
    cents: u64,
}

const REGIONS: usize = 7;

/// What was ordered in each region, in cents.
type Sales = [u64; REGIONS];

/// Numbers without order (splitmix64).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// Customers have numbers without order. Some orders are of a customer who is not known.
fn number_of(customer: u64) -> u64 {
    customer.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Two for each customer, most of them of few.
fn orders(customers: u64) -> Vec<Order> {
    let mut state = 7;
    let order = |_| {
        let unit = (random(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
        let customer = (unit.powi(4) * customers as f64 * 1.01) as u64;
        Order { customer: number_of(customer), cents: random(&mut state) % 10_000 }
    };
    (0..2 * customers).map(order).collect()
}

fn timed(what: &str, orders: &[Order], join: impl FnOnce() -> Sales) -> Sales {
    let began = Instant::now();
    let sales = join();
    println!("{what:30} {:6.2} M orders a second", orders.len() as f64 / began.elapsed().as_secs_f64() / 1e6);
    sales
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let customers = std::env::args().nth(1).map_or(Ok(1_000_000), |customers| customers.parse())?;
    let customer = |number| Customer { region: (number % REGIONS as u64) as usize };
    let alone: BTreeMap<u64, Customer> =
        (0..customers).map(|number| (number_of(number), customer(number))).collect();
    let map = Map::with_index(RwLock::new(BTreeSet::new()), &Config::with_size(16 << 20))?;
    for number in 0..customers {
        map.insert(number_of(number), customer(number));
    }
    let orders = orders(customers);

    let expected = timed("BTreeMap, one at a time", &orders, || {
        let mut sales = Sales::default();
        for order in &orders {
            if let Some(customer) = alone.get(&order.customer) {
                sales[customer.region] += order.cents;
            }
        }
        sales
    });

    // One reader for the whole join: what is removed meanwhile would be freed after it.
    let reader = map.pin();
    let one_at_a_time = || {
        let mut sales = Sales::default();
        for order in &orders {
            if let Some(customer) = reader.get(&order.customer) {
                sales[customer.region] += order.cents;
            }
        }
        sales
    };
    let in_batches = || {
        let mut sales = Sales::default();
        for orders in orders.chunks(BATCH) {
            let keys: Vec<&u64> = orders.iter().map(|order| &order.customer).collect();
            let mut found = [None; BATCH];
            reader.get_many(&keys, &mut found[..keys.len()]);
            for (order, customer) in orders.iter().zip(found) {
                if let Some(customer) = customer {
                    sales[customer.region] += order.cents;
                }
            }
        }
        sales
    };
    assert_eq!(timed("with a cold table", &orders, one_at_a_time), expected);
    assert_eq!(timed("with a warm table", &orders, one_at_a_time), expected);
    assert_eq!(timed("with a warm table, in batches", &orders, in_batches), expected);
    drop(reader);
    println!("{:?}", map.buffer().counts());
    Ok(())
}

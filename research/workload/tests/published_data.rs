//! The readers on the real files, whose contents were counted with other programs before.
//!
//! The files are not part of the repository. Where they are absent, each test says so and ends. What was restated of
//! them is: the same is asked of that, and, where the files are, whether it is what they give.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::restate;
use lookaside_workload::cachelib::Workload;
use lookaside_workload::data::DataFolder;
use lookaside_workload::generator;
use lookaside_workload::key::Key;
use lookaside_workload::operation::CacheOperation;
use lookaside_workload::sizes::Sizes;
use lookaside_workload::trace::{Format, Record, Trace};
use rand::distr::Distribution;

/// The path of a file or folder of the data, or a line that says what is absent.
fn data(name: &str) -> Option<PathBuf> {
    let found = DataFolder::find().and_then(|folder| folder.file(name));
    // Not a failure where everything has to be there: this is no program that can be installed.
    found.map_err(outside::say).ok()
}

fn read(name: &str, format: Format) -> Option<Vec<Record>> {
    let trace = Trace::open(data(name)?).unwrap();
    assert_eq!(trace.format(), Some(format));
    Some(trace.map(Result::unwrap).collect())
}

fn distinct(records: &[Record]) -> usize {
    records.iter().map(|record| &record.key).collect::<HashSet<_>>().len()
}

#[test]
fn orm_busy_has_five_million_requests() {
    let Some(path) = data("traces/orm-busy.trace.xz") else { return };
    let mut keys = HashSet::new();
    let mut requests = 0;
    for record in Trace::open(path).unwrap() {
        let record = record.unwrap();
        assert_eq!((record.operation, record.count), (CacheOperation::Get, 1));
        keys.insert(record.key);
        requests += 1;
    }
    assert_eq!((requests, keys.len()), (5_000_000, 76_349));
    assert_eq!(keys.iter().min(), Some(&Key::Number(-2_147_449_343)));
    assert_eq!(keys.iter().max(), Some(&Key::Number(2_034_483_712)));
}

#[test]
fn web07_has_76_118_requests() {
    let Some(records) = read("traces/web07.trace.xz", Format::Numbers) else { return };
    assert_eq!((records.len(), distinct(&records)), (76_118, 20_484));
    let first: Vec<&Key> = records.iter().take(5).map(|record| &record.key).collect();
    assert_eq!(first, [0, 1, 2, 0, 1].map(Key::Number).each_ref());
}

#[test]
fn fb_cdn_has_9_999_requests() {
    let Some(records) = read("traces/fb_cdn_short_bigcache_traces.csv", Format::FbCdn) else { return };
    assert_eq!((records.len(), distinct(&records)), (9_999, 3_125));
    let first = &records[0];
    let key = "cdn:v/t42.27313-2/10000000_1247634038958664_2577687475245809664_n.mp4";
    assert_eq!(first.key.to_string(), key);
    assert_eq!(records.iter().map(|record| record.key.to_string().len()).max(), Some(115));
}

#[test]
fn the_key_value_sample_has_99_rows() {
    let Some(records) = read("traces/cachelib_kv_traces_1.csv", Format::CachelibKv) else { return };
    assert_eq!((records.len(), distinct(&records)), (99, 52));
    assert_eq!(records.iter().map(|record| record.count).sum::<u32>(), 691);
    let mut operations = HashMap::new();
    for record in &records {
        *operations.entry(record.operation).or_insert(0) += 1;
    }
    let expected =
        [(CacheOperation::Get, 51 + 37), (CacheOperation::Set, 7 + 2), (CacheOperation::Delete, 2)];
    assert_eq!(operations, HashMap::from(expected));
}

#[test]
fn the_twitter_sample_has_100_rows() {
    let Some(records) = read("traces/twitter_sample_100req.csv", Format::Twitter) else { return };
    assert_eq!((records.len(), distinct(&records)), (100, 85));
    assert_eq!(records.iter().filter(|record| record.operation.is_read()).count(), 93);
}

#[test]
fn kvcache_reg_has_its_published_shape() {
    let mut workload = Workload::published("kvcache_reg").unwrap();
    let popularity = workload.popularity().clone();
    let keys = popularity.records();
    assert_eq!(keys, 10_483_642);
    let percent = |hottest| (popularity.share_of_hottest(hottest) * 1000.0).round() / 10.0;
    assert_eq!(percent(1), 6.6);
    assert_eq!(percent(keys / 100).round(), 72.0);
    assert_eq!(percent(keys / 10).round(), 87.0);
    assert_eq!(percent(keys), 100.0);

    let sizes = workload.value_sizes().clone();
    assert_eq!([0.5, 0.9, 0.99].map(|at| sizes.quantile(at)), [159, 191, 959]);
    assert_eq!(sizes.mean().round(), 335.0);

    let key_sizes = workload.key_sizes();
    assert_eq!((key_sizes.quantile(0.0), key_sizes.quantile(0.999_999)), (16, 254));

    // Drawn, the hottest key and the hottest tenth get the same: five standard deviations.
    const DRAWS: u32 = 500_000;
    let mut rng = generator::seeded(1);
    let drawn: Vec<u64> = (0..DRAWS).map(|_| popularity.sample(&mut rng)).collect();
    for hottest in [1, keys / 100, keys / 10] {
        let share = popularity.share_of_hottest(hottest);
        let found = drawn.iter().filter(|rank| **rank < hottest).count() as f64 / f64::from(DRAWS);
        let tolerance = 5.0 * (share * (1.0 - share) / f64::from(DRAWS)).sqrt();
        assert!((found - share).abs() < tolerance, "{hottest} hottest: {found} instead of {share}");
    }

    // Keys that keep their sizes have the sizes of the file: half of them, and the tail.
    let kept: Vec<u64> = (0..DRAWS).map(|key| sizes.for_key(format!("key:{key}").as_bytes())).collect();
    for size in [127, 159, 191, 959, 10_000] {
        let mut below = (0..1_000_000).map(|i| f64::from(i) / 1e6);
        let share = below.position(|at| sizes.quantile(at) > size).unwrap() as f64 / 1e6;
        let found = kept.iter().filter(|kept| **kept <= size).count() as f64 / f64::from(DRAWS);
        let tolerance = 5.0 * (share * (1.0 - share) / f64::from(DRAWS)).sqrt() + 1e-6;
        assert!((found - share).abs() < tolerance, "up to {size}: {found} instead of {share}");
    }
    // Scaled eightfold, as for a larger cache.
    let scaled = sizes.clone().scaled(8.0).unwrap();
    assert_eq!(scaled.quantile(0.5), 8 * 159);
    assert_eq!(scaled.for_key(b"key:1"), 8 * kept[1]);

    assert!(workload.draw(&mut rng) < keys + 1);
}

#[test]
fn every_published_cachelib_workload_is_read() {
    // Bytes at the median and in the mean, and keys, counted with another program.
    let expected = [
        ("cdn", 13_343, 33_024, 7_489_207),
        ("graph_cache_follower_assocs", 31, 568, 10_129_734),
        ("graph_cache_follower_fbobj", 223, 377, 13_820_359),
        ("graph_cache_leader_assocs", 63, 1423, 27_855_311),
        ("graph_cache_leader_fbobj", 223, 341, 27_564_687),
    ];
    for (name, median, mean, keys) in expected {
        let published = Workload::published(name).unwrap();
        let near = |found: u64, expected: u64| found.abs_diff(expected) <= expected / 20;
        assert!(near(published.value_sizes().quantile(0.5), median), "{name}");
        // Each of the sizes that were put together is rounded.
        assert!((published.value_sizes().mean() - mean as f64).abs() < 2.0, "{name}");
        assert_eq!(published.popularity().records(), keys, "{name}");
        assert_eq!(published.key_sizes().quantile(0.999_999), 63, "{name}");
    }
}

/// What was restated is what the published files give. With `LOOKASIDE_BLESS=1` it is written anew.
#[test]
fn the_tables_are_made_of_the_published_files() {
    let path = |name: &str| data(name);
    let records =
        |name: &str| Some(Trace::open(path(name)?).unwrap().map(Result::unwrap).collect::<Vec<_>>());
    let cache2k = |name: &str, what: &str| {
        format!(
            "# The shape of cache2k's trace {name}, {what}: https://github.com/ben-manes/caffeine, resources of its\n\
             # simulator, {name}.trace.xz. Copyright headissue GmbH, Jens Wilke, CC BY 4.0.\n"
        )
    };
    const FB_CDN: &str = "# The shape of Meta's sample of a content-delivery network: \
        https://github.com/facebook/CacheLib,\n\
        # cachelib/cachebench/test_configs/short_bigcache_traces.csv. Copyright Meta Platforms, Inc. and affiliates, \
        Apache License 2.0.\n";
    let mut tables = vec![
        (
            "words",
            path("keys/surf_words.txt").map(|path| restate::words(&std::fs::read_to_string(path).unwrap())),
        ),
        (
            "orm-busy",
            records("traces/orm-busy.trace.xz").map(|records| {
                restate::requests(&cache2k("orm-busy", "a busy cache of database objects"), &records)
            }),
        ),
        (
            "web07",
            records("traces/web07.trace.xz").map(|records| {
                restate::requests(&cache2k("web07", "requests to a page of products"), &records)
            }),
        ),
        (
            "fb-cdn",
            records("traces/fb_cdn_short_bigcache_traces.csv")
                .map(|records| restate::requests(FB_CDN, &records) + &restate::paths(&records)),
        ),
    ];
    for name in WORKLOADS {
        tables.push((
            name,
            path(&format!("dists/cachelib/{name}")).map(|folder| restate::cachelib(name, &folder)),
        ));
    }
    for (name, made) in tables {
        let Some(made) = made else { continue };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tables").join(format!("{name}.table"));
        if std::env::var_os("LOOKASIDE_BLESS").is_some_and(|bless| bless == "1") {
            std::fs::write(&path, &made).unwrap();
        }
        let checked_in = std::fs::read_to_string(&path).unwrap();
        let differs = made.lines().zip(checked_in.lines()).find(|(made, checked_in)| made != checked_in);
        assert_eq!(
            (differs, made.len()),
            (None, checked_in.len()),
            "{name}: write it anew with LOOKASIDE_BLESS=1"
        );
    }
}

const WORKLOADS: [&str; 6] = [
    "cdn",
    "graph_cache_follower_assocs",
    "graph_cache_follower_fbobj",
    "graph_cache_leader_assocs",
    "graph_cache_leader_fbobj",
    "kvcache_reg",
];

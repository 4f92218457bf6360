//! The tables of `research/workload/tables`, made of the published files: neighbours are put together until some
//! hundred numbers are left.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::path::Path;

use lookaside_workload::key::Key;
use lookaside_workload::trace::Record;
use serde_json::Value;

/// Shares are told in parts of this.
const BILLION: f64 = 1e9;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// Sizes that at least one in 500 has stay as they are; of the others, those within a tenth become their mean.
fn sizes(out: &mut String, sizes: &[f64], weights: &[f64]) {
    let total: f64 = weights.iter().sum();
    let mut rows: Vec<(f64, f64, bool)> = Vec::new();
    let mut from = 0.0;
    for (&size, &weight) in sizes.iter().zip(weights) {
        let alone = weight >= total / 500.0;
        match rows.last_mut() {
            Some((sum, of, false)) if !alone && size <= from * 1.1 => {
                *sum += size * weight;
                *of += weight;
            }
            _ => {
                rows.push((size * weight, weight, alone));
                from = size;
            }
        }
    }
    for (sum, weight, _) in rows {
        writeln!(out, "value {:.0} {:.0}", sum / weight, weight / total * BILLION).unwrap();
    }
}

/// The ends of classes of ranks, the hottest first: ten of one rank, then each a tenth longer than all before it.
fn ends(ranks: u64, factor: f64) -> Vec<u64> {
    let mut ends = Vec::new();
    let mut end = 0u64;
    while end < ranks {
        end = (end + 1).max((end as f64 * factor) as u64).min(ranks);
        ends.push(end);
    }
    ends
}

/// CacheLib's workload `name`, of the folder `folder`.
pub(crate) fn cachelib(name: &str, folder: &Path) -> String {
    let (config, pop) = (&json(&folder.join("config.json"))["test_config"], json(&folder.join("pop.json")));
    let mut out = format!(
        "# The workload {name} of Meta, restated: operations, sizes and popularity as published with CacheLib \
         (Berg et al., OSDI\n\
         # 2020) for its program cachebench: https://github.com/facebook/CacheLib, cachelib/cachebench/test_configs, \
         files config.json,\n\
         # pop.json and sizes.json of this workload. Copyright Meta Platforms, Inc. and \
         affiliates, Apache License 2.0.\n\
         # Changed: popularity is by classes of keys, each a tenth larger than all before it together; sizes that \
         one value in 500\n\
         # has are as published, neighbours among the others within a tenth are their mean. Shares are \
         parts of a billion.\n\
         #\n\
         # get, lone_get: weights     key_sizes: the bounds of ranges, key_shares: their weights\n\
         # popularity: keys, and their requests' share          value: bytes, and its share\n"
    );
    let weight = |name: &str| config[name].as_f64().unwrap_or(0.0);
    writeln!(out, "get {}\nlone_get {}", weight("getRatio"), weight("loneGetRatio")).unwrap();
    for other in ["setRatio", "delRatio", "addChainedRatio"] {
        assert_eq!(weight(other), 0.0, "{name} has gets alone");
    }
    writeln!(out, "set_on_miss {}", u8::from(config["enableLookaside"].as_bool().unwrap_or(false))).unwrap();
    let list = |values: &Value| numbers(values).iter().map(|number| format!(" {number}")).collect::<String>();
    writeln!(out, "key_sizes{}", list(&config["keySizeRange"])).unwrap();
    writeln!(out, "key_shares{}", list(&config["keySizeRangeProbability"])).unwrap();
    writeln!(out, "original_keys {}", config["numKeys"]).unwrap();
    writeln!(out, "one_hits {}", pop["oneHits"]).unwrap();

    let mut buckets: Vec<_> =
        numbers(&pop["popularityBuckets"]).into_iter().zip(numbers(&pop["popularityWeights"])).collect();
    buckets.retain(|(keys, _)| *keys > 0.0);
    buckets.sort_by(|a, b| (b.1 / b.0).total_cmp(&(a.1 / a.0)));
    let total: f64 = buckets.iter().map(|(_, weight)| weight).sum();
    let keys: f64 = buckets.iter().map(|(keys, _)| keys).sum();
    // The requests of so many of the hottest keys.
    let up_to = |ranks: f64| {
        let mut before = 0.0;
        buckets
            .iter()
            .map(|&(keys, weight)| {
                let part = (ranks - before).clamp(0.0, keys) / keys;
                before += keys;
                weight * part
            })
            .sum::<f64>()
    };
    let mut from = 0;
    for end in ends(keys as u64, 1.1) {
        let share = (up_to(end as f64) - up_to(from as f64)) / total * BILLION;
        writeln!(out, "popularity {} {share:.0}", end - from).unwrap();
        from = end;
    }
    let file = json(&folder.join("sizes.json"));
    sizes(&mut out, &numbers(&file["valSizeRange"]), &numbers(&file["valSizeRangeProbability"]));
    out
}

/// Quantiles of gaps that a class has.
const QUANTILES: usize = 16;

/// What a recorded trace's requests are like; `about` is the head.
pub(crate) fn requests(about: &str, records: &[Record]) -> String {
    let mut out = format!(
        "{about}\
         # Changed: keys are by classes, the hottest first, each three tenths larger than all before it together. Of \
         a class there are\n\
         # its keys, their requests, and seventeen evenly spaced quantiles of the requests from one for a key to \
         the next for it.\n"
    );
    let mut times: HashMap<&Key, Vec<u64>> = HashMap::new();
    for (at, record) in (0..).zip(records) {
        times.entry(&record.key).or_default().push(at);
    }
    let mut times: Vec<_> = times.into_values().collect();
    times.sort_by_key(|times| (usize::MAX - times.len(), times[0]));
    let mut from = 0;
    for end in ends(times.len() as u64, 1.3) {
        let class = &times[from as usize..end as usize];
        let mut gaps: Vec<_> =
            class.iter().flat_map(|times| times.windows(2).map(|pair| pair[1] - pair[0])).collect();
        gaps.sort_unstable();
        let requests: usize = class.iter().map(Vec::len).sum();
        write!(out, "class {} {requests}", end - from).unwrap();
        if let Some(last) = gaps.len().checked_sub(1) {
            (0..=QUANTILES).for_each(|at| write!(out, " {}", gaps[last * at / QUANTILES]).unwrap());
        }
        writeln!(out).unwrap();
        from = end;
    }
    out
}

/// The paths of objects, behind what [`requests`] tells.
pub(crate) fn paths(records: &[Record]) -> String {
    let mut out = String::from(
        "# path: so many keys are of this form. Six digits or more in a row are zeros here. Forms of fewer than four \
         keys are left out.\n",
    );
    let (mut known, mut forms) = (HashSet::new(), BTreeMap::new());
    for record in records {
        let Key::Text(text) = &record.key else { panic!("keys are texts") };
        if !known.insert(text) {
            continue;
        }
        let mut form = text.clone();
        for digits in form.chunk_by_mut(|a, b| a.is_ascii_digit() && b.is_ascii_digit()) {
            if digits.len() >= 6 {
                digits.fill(b'0');
            }
        }
        *forms.entry(String::from_utf8(form.into()).unwrap()).or_insert(0) += 1;
    }
    for (form, keys) in forms.into_iter().filter(|(_, keys)| *keys >= 4) {
        writeln!(out, "path {keys} {form}").unwrap();
    }
    out
}

/// How letters follow each other in a list of words.
pub(crate) fn words(text: &str) -> String {
    let mut out = String::from(
        "# English words, restated: which letters follow which in the \
         234,369 words of https://github.com/efficient/SuRF,\n\
         # test/words.txt, Apache License 2.0. Changed: the words themselves are not here.\n\
         #\n\
         # lengths: words of one letter, of two, and so on     first: words that begin with a, with b, and so on\n\
         # next: one row a letter, how often a, b and so on follow it\n",
    );
    let (mut lengths, mut first, mut next) = ([0; 32], [0; 26], [[0; 26]; 26]);
    let letter = |byte: u8| usize::from(byte - b'a');
    let mut words = 0;
    for word in text.lines().filter(|line| !line.is_empty()) {
        let word = word.as_bytes();
        words += 1;
        lengths[word.len() - 1] += 1;
        first[letter(word[0])] += 1;
        word.windows(2).for_each(|pair| next[letter(pair[0])][letter(pair[1])] += 1);
    }
    let row = |numbers: &[i32]| numbers.iter().map(|number| format!(" {number}")).collect::<String>();
    writeln!(out, "words {words}\nlengths{}\nfirst{}", row(&lengths), row(&first)).unwrap();
    next.iter().for_each(|letters| writeln!(out, "next{}", row(letters)).unwrap());
    out
}

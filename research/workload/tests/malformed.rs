//! Input that is not what it should be: an error with its place, never a panic, and the next row is read.

use std::fs;
use std::io::{self, Cursor, Read};

use liblzma::read::XzEncoder;
use lookaside_workload::key::Key;
use lookaside_workload::operation::CacheOperation;
use lookaside_workload::trace::{Choice, Format, Record, Trace, TraceError};
use proptest::prelude::*;

const FB_CDN: &str = "timestamp,cacheKey,OpType,objectSize,responseSize,responseHeaderSize,rangeStart,rangeEnd,TTL,\
                      SamplingRate\n";
const CACHELIB_KV: &str = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n";

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    XzEncoder::new(bytes, 6).read_to_end(&mut compressed).unwrap();
    compressed
}

/// Each row as its key, or its error in words.
fn rows(trace: impl Iterator<Item = Result<Record, TraceError>>) -> Vec<Result<String, String>> {
    trace.map(|row| row.map(|record| record.key.to_string()).map_err(|error| error.to_string())).collect()
}

/// The rows of a file of numbers, compressed or not.
fn numbers(file: &[u8]) -> Vec<Result<String, String>> {
    let choice = Choice { format: Some(Format::Numbers), ..Choice::default() };
    match Trace::read(Cursor::new(file.to_vec()), "numbers".as_ref(), &choice) {
        Ok(trace) => rows(trace),
        Err(error) => vec![Err(error.to_string())],
    }
}

#[track_caller]
fn assert_error(row: &Result<String, String>, parts: &[&str]) {
    let message = row.as_ref().unwrap_err();
    assert!(parts.iter().all(|part| message.contains(part)), "{message:?} without one of {parts:?}");
}

#[test]
fn a_bad_row_of_the_cdn_trace_is_an_error_and_the_next_one_is_read() {
    let text = format!(
        "{FB_CDN}1,a,1,10,2,3,-1,-1,60,0.001\n\
         1,a,1,10\n\
         1,,1,10,2,3,-1,-1,60,0.001\n\
         1,a,2,10,2,3,-1,-1,60,0.001\n\
         2,with,comma,1,10,2,3,-1,-1,-1,0.001\r\n"
    );
    let found = rows(Format::FbCdn.records(text.as_bytes()));
    assert_eq!(found.len(), 5);
    assert_eq!(found[0], Ok("a".into()));
    assert_error(&found[1], &["line 3", "1,a,1,10", "ten columns"]);
    assert_error(&found[2], &["line 4", "cacheKey"]);
    assert_error(&found[3], &["line 5", "OpType", "\"2\""]);
    assert_eq!(found[4], Ok("with,comma".into()));

    let headless = rows(Format::FbCdn.records(&b"1,a,1,10,2,3,-1,-1,60,0.001\n"[..]));
    assert_eq!(headless.len(), 1, "nothing comes after a wrong header");
    assert_error(&headless[0], &["line 1", "cacheKey"]);
    assert_eq!(rows(Format::FbCdn.records(&b""[..])), []);
}

#[test]
fn a_bad_row_of_the_key_value_trace_is_an_error_and_the_next_one_is_read() {
    let text = format!(
        "{CACHELIB_KV}1,aa,48,GET,1,87,1,0,3,4\n\
         1,aa,48,GET,1,87,1,0,3\n\
         1,aa,48,GET,1,87,1,0,3,4,5\n\
         1,aa,48,FETCH,1,87,1,0,3,4\n\
         1,aa,48,GET,0,87,1,0,3,4\n\
         1,,48,GET,1,87,1,0,3,4\n\
         1,bb,48,SET_LEASE,5,0,1,90,3,4\n"
    );
    let found = rows(Format::CachelibKv.records(text.as_bytes()));
    assert_eq!(found.len(), 7);
    assert_eq!(found[0], Ok("aa".into()));
    assert_error(&found[1], &["line 3", "columns"]);
    assert_error(&found[2], &["line 4", "columns"]);
    assert_error(&found[3], &["line 5", "op", "\"FETCH\""]);
    assert_error(&found[4], &["line 6", "op_count"]);
    assert_error(&found[5], &["line 7", "key"]);
    let last = Format::CachelibKv.records(text.as_bytes()).last().unwrap().unwrap();
    let expected = Record { key: Key::Text((*b"bb").into()), operation: CacheOperation::Set, count: 5 };
    assert_eq!(last, expected);

    // Another year: fewer columns in another order.
    let record = Format::CachelibKv
        .records(&b"key,op,size,op_count,key_size\nk,GET,0,2,9\n"[..])
        .next()
        .unwrap()
        .unwrap();
    assert_eq!((record.key.to_string().as_str(), record.count), ("k", 2));
    let wrong = rows(Format::CachelibKv.records(&b"key,op,op_count\nk,GET,2\n"[..]));
    assert_eq!(wrong.len(), 1);
    assert_error(&wrong[0], &["line 1", "key_size"]);
    let wide = format!("key,key_size,op,size{}\n", ",x".repeat(13));
    assert_error(&rows(Format::CachelibKv.records(wide.as_bytes()))[0], &["16 columns"]);
}

#[test]
fn a_bad_row_of_the_twitter_trace_is_an_error_and_the_next_one_is_read() {
    let text = "0,k,1,0,7,get,0\n0,k,1,0,7,get\n0,k,1,0,seven,get,0\n0,k,1,0,7,fetch,0\n\
                0,k,99999999999999999999,0,7,get,0\n\n0,a,b,3,5,7,set,60";
    let found = rows(Format::Twitter.records(text.as_bytes()));
    assert_eq!(found.len(), 6);
    assert_eq!(found[0], Ok("k".into()));
    assert_error(&found[1], &["line 2", "seven columns"]);
    assert_error(&found[2], &["line 3", "client"]);
    assert_error(&found[3], &["line 4", "operation", "fetch"]);
    assert_error(&found[4], &["line 5", "key size"]);
    assert_eq!(found[5], Ok("a,b".into()));
}

#[test]
fn numbers_that_end_inside_a_number_are_told() {
    let found = rows(Format::Numbers.records(&[0, 0, 0, 9, 1, 2][..]));
    assert_eq!(found[0], Ok("9".into()));
    assert_error(&found[1], &["2 bytes", "after 1 requests"]);
    assert_eq!(found.len(), 2);
    assert_eq!(rows(Format::Numbers.records(&[][..])), []);
}

#[test]
fn xz_that_is_cut_or_changed_is_told() {
    let keys: Vec<u8> = (0..50_000i32).flat_map(|key| (key.wrapping_mul(7919)).to_be_bytes()).collect();
    let whole = xz(&keys);
    assert_eq!(numbers(&whole).len(), 50_000);

    // Two streams one behind the other are one file.
    let twice = [whole.clone(), whole.clone()].concat();
    assert_eq!(numbers(&twice).iter().filter(|row| row.is_ok()).count(), 100_000);

    for cut in [6, 20, whole.len() / 2, whole.len() - 1] {
        let found = numbers(&whole[..cut]);
        assert_error(found.last().unwrap(), &["cannot"]);
        assert!(found[..found.len() - 1].iter().all(Result::is_ok));
    }
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 0x55;
    assert_error(numbers(&changed).last().unwrap(), &["cannot"]);
}

/// A reader that gives one byte at a time, is interrupted between two, and fails in the end.
struct Hesitant<'a> {
    bytes: &'a [u8],
    interrupted: bool,
}

impl Read for Hesitant<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let Some((first, rest)) = self.bytes.split_first() else {
            return Err(io::Error::other("the disk is gone"));
        };
        self.bytes = rest;
        buffer[0] = *first;
        Ok(1)
    }
}

#[test]
fn interruptions_are_survived_and_a_failing_disk_ends_the_trace() {
    let found = rows(
        Format::Numbers
            .records(io::BufReader::new(Hesitant { bytes: &[0, 0, 0, 1, 0, 0, 0, 2], interrupted: false })),
    );
    assert_eq!(found[..2], [Ok("1".into()), Ok("2".into())]);
    assert_error(&found[2], &["the disk is gone"]);
    assert_eq!(found.len(), 3);

    let text = b"0,k,1,0,7,get,0\n0,l,1,0,7,get,0\n";
    let reader = io::BufReader::new(Hesitant { bytes: text, interrupted: false });
    let found = rows(Format::Twitter.records(reader));
    assert_eq!(found[..2], [Ok("k".into()), Ok("l".into())]);
    assert_error(&found[2], &["the disk is gone"]);
    assert_eq!(found.len(), 3);
}

#[test]
fn a_file_is_recognised_by_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let keys = [0, 0, 0, 1, 0, 0, 0, 2];
    let cases = [
        // The format has no mark, and the published files are known.
        (file("orm-busy.trace.xz", &xz(&keys)), Format::Numbers, 2),
        (file("c", format!("{FB_CDN}1,a,1,10,2,3,-1,-1,60,0.001\n").as_bytes()), Format::FbCdn, 1),
        (file("d", format!("{CACHELIB_KV}1,aa,48,GET,1,87,1,0,3,4\n").as_bytes()), Format::CachelibKv, 1),
        (file("e", b"0,k,1,0,7,get,0\r\n0,k,1,0,7,get,0"), Format::Twitter, 2),
        (file("f.trace", b"hello\nworld\nhello\n"), Format::Keys, 3),
        (file("empty.trace", b""), Format::Keys, 0),
    ];
    for (path, format, records) in cases {
        let trace = Trace::open(&path).unwrap();
        assert_eq!(trace.format(), Some(format));
        assert_eq!(trace.map(Result::unwrap).count(), records, "{}", path.display());
    }
    for content in [&b"\x89PNG\r\n"[..], &keys, &xz(&keys)] {
        let path = file("unknown.csv", content);
        let error = Trace::open(&path).unwrap_err();
        assert!(matches!(&error, TraceError::Unrecognised { path: named } if *named == path), "{error}");
        assert!(error.to_string().contains("unknown.csv"));
    }
    let absent = folder.path().join("absent");
    let error = Trace::open(&absent).unwrap_err();
    assert!(matches!(&error, TraceError::Open { path, .. } if *path == absent), "{error}");
    assert!(Trace::open(folder.path()).is_err(), "a folder is no trace");
}

/// Text that comes close to rows of the formats, so that the readers get beyond their first check.
fn nearly_rows() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        Just(b"get".to_vec()),
        Just(b"SET".to_vec()),
        Just(b"1".to_vec()),
        Just(b"0".to_vec()),
        Just(b"-1".to_vec()),
        Just(b"18446744073709551616".to_vec()),
        Just(b"N/A".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"\r".to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let row = prop::collection::vec(field, 0..16).prop_map(|fields| fields.join(&b','));
    prop::collection::vec(row, 0..6).prop_map(|rows| rows.join(&b'\n'))
}

/// Reads `bytes` to the end as every format, and returns how many rows and errors there were.
fn read_as_everything(bytes: &[u8]) -> usize {
    let mut seen = rows(Format::Numbers.records(bytes)).len();
    seen += numbers(bytes).len();
    seen += rows(Format::OracleGeneral.records(bytes)).len();
    seen += rows(Format::Keys.records(bytes)).len();
    let column = Choice { column: Some("1".into()), ..Choice::default() };
    seen +=
        Trace::read(Cursor::new(bytes.to_vec()), "keys".as_ref(), &column).map_or(1, |keys| rows(keys).len());
    seen += rows(Format::Twitter.records(bytes)).len();
    for header in ["", FB_CDN, CACHELIB_KV] {
        let text = [header.as_bytes(), bytes].concat();
        seen += rows(Format::FbCdn.records(Cursor::new(&text))).len();
        seen += rows(Format::CachelibKv.records(&text[..])).len();
    }
    seen
}

proptest! {
    /// No panic, and an end: an iterator that repeated its error would not come back.
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read_as_everything(&bytes) > 0);
    }

    #[test]
    fn text_that_is_nearly_right_never_panics(bytes in nearly_rows()) {
        prop_assert!(read_as_everything(&bytes) > 0);
    }

    /// Every changed byte of an xz file is noticed or harmless: the keys before the error are the true ones.
    #[test]
    fn a_changed_xz_file_never_gives_other_keys(at: prop::sample::Index, change in 1u8..) {
        let keys: Vec<u8> = (0..3000i32).flat_map(|key| (key.wrapping_mul(7919)).to_be_bytes()).collect();
        let mut bytes = xz(&keys);
        // Without its mark it is none.
        let at = 6 + at.index(bytes.len() - 6);
        bytes[at] ^= change;
        let found = numbers(&bytes);
        let errors = found.iter().filter(|row| row.is_err()).count();
        prop_assert!(errors <= 1);
        if errors == 0 {
            let truth = rows(Format::Numbers.records(&keys[..]));
            prop_assert_eq!(found, truth);
        }
    }

    /// What is written is what is read.
    #[test]
    fn every_good_row_is_read_as_it_is(
        keys in prop::collection::vec("[!-~]{1,100}", 1..20),
        size in 1u64..1_000_000_000,
        ttl in 1u32..,
        time: u64,
    ) {
        let mut text = String::new();
        for key in &keys {
            text += &format!("{time},{key},{},{size},5,set,{ttl}\n", key.len());
        }
        let records: Vec<Record> = Format::Twitter.records(text.as_bytes()).map(Result::unwrap).collect();
        prop_assert_eq!(records.len(), keys.len());
        for (record, key) in records.iter().zip(&keys) {
            prop_assert_eq!(&record.key, &Key::Text(key.as_bytes().into()));
            prop_assert_eq!((record.operation, record.count), (CacheOperation::Set, 1));
        }
    }
}

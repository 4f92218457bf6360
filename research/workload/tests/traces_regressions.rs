//! What went wrong with traces once, each with its story.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use lookaside_workload::trace::{Choice, Format, Trace, TraceError};

fn read(name: &str, file: &[u8], choice: &Choice) -> Result<Trace, TraceError> {
    Trace::read(Cursor::new(file.to_vec()), Path::new(name), choice)
}

fn as_format(format: Format) -> Choice {
    Choice { format: Some(format), ..Choice::default() }
}

/// The keys, or the first error in words.
fn keys(name: &str, file: &[u8], choice: &Choice) -> Result<Vec<String>, String> {
    let trace = read(name, file, choice).map_err(|error| error.to_string())?;
    trace.map(|row| row.map(|record| record.key.to_string()).map_err(|error| error.to_string())).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = Vec::new();
    liblzma::read::XzEncoder::new(bytes, 6).read_to_end(&mut compressed).unwrap();
    compressed
}

fn zstandard(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// A list of keys in a .txt.xz was decoded as 32-bit binary records, and small .gz and .zst files were counted as lines
/// of text: the advice on them looked plausible. A compressed file is read whole, all parts of it, and one that is cut
/// is an error.
#[test]
fn compressed_texts_were_taken_for_numbers_and_for_lines() {
    let lines: Vec<String> = (0..30_000).map(|key| format!("user:{}", key % 977)).collect();
    let text = lines.join("\n") + "\n";
    let (first, second) = text.split_at(text.len() / 3);
    for (compress, name) in
        [(gzip as fn(&[u8]) -> Vec<u8>, "keys.txt.gz"), (xz, "keys.txt.xz"), (zstandard, "keys.txt.zst")]
    {
        let whole = compress(text.as_bytes());
        // The name tells nothing.
        for name in [name, "keys.trace", "keys"] {
            assert_eq!(keys(name, &whole, &Choice::default()).as_ref(), Ok(&lines), "{name}");
        }
        let parts = [compress(first.as_bytes()), compress(second.as_bytes())].concat();
        assert_eq!(keys(name, &parts, &Choice::default()).as_ref(), Ok(&lines), "{name}, two parts");
        for cut in [7, whole.len() / 2, whole.len() - 1] {
            assert!(
                keys(name, &whole[..cut], &Choice::default()).is_err(),
                "{name}, {cut} of {} bytes",
                whole.len()
            );
        }
        assert_eq!(keys(name, &compress(b"a\nb\n"), &Choice::default()), Ok(vec!["a".into(), "b".into()]));
    }
}

fn oracle_general(records: impl IntoIterator<Item = (u32, u64, u32, i64)>) -> Vec<u8> {
    let mut file = Vec::new();
    for (time, object, size, next) in records {
        file.extend_from_slice(&time.to_le_bytes());
        file.extend_from_slice(&object.to_le_bytes());
        file.extend_from_slice(&size.to_le_bytes());
        file.extend_from_slice(&next.to_le_bytes());
    }
    file
}

/// A file in libCacheSim's oracleGeneral that happens to have no commas in it was read as a text, and every piece
/// between two line feeds counted as a key. It is told by its content, by which it can be told from most others.
#[test]
fn oracle_general_without_commas_was_read_as_text() {
    let sound = [(1, 70, 4096, 2), (1, 71, 512, -1), (2, 70, 4096, i64::MAX)];
    let file = oracle_general(sound);
    assert!(!file.contains(&b','));
    let trace = read("requests.txt", &file, &Choice::default()).unwrap();
    assert_eq!(trace.format(), Some(Format::OracleGeneral));
    let found: Vec<_> = trace.map(|record| record.unwrap().key.to_string()).collect();
    assert_eq!(found, ["70", "71", "70"]);
    assert_eq!(keys("x", &zstandard(&file), &Choice::default()).unwrap().len(), 3);

    // What does not fit is refused, with the request, also where it is said to be one.
    let choice = as_format(Format::OracleGeneral);
    let backwards = oracle_general([(1, 70, 4096, 2), (1, 71, 512, 0)]);
    assert!(matches!(read("x", &backwards, &Choice::default()), Err(TraceError::Unrecognised { .. })));
    assert!(keys("x", &backwards, &choice).unwrap_err().contains("request 2"));
    assert!(keys("x", &file[..50], &choice).unwrap_err().contains("2 bytes of a request after 2"));
    assert!(matches!(read("x", b"a\nb\n", &choice), Err(TraceError::IsText { .. })));
    let zeros = [0; 24 * 4];
    assert!(matches!(read("x", &zeros, &Choice::default()), Err(TraceError::Unrecognised { .. })));
}

/// Whatever was called .trace, or was in an xz file, was taken for 32-bit keys: a trace of instructions, too. Now the
/// format has to be named, and the refusal says how.
#[test]
fn any_binary_file_was_taken_for_keys() {
    let instructions: Vec<u8> = (0..64u64).flat_map(|at| (0x40_0000 + at * 64).to_le_bytes()).collect();
    for (name, file) in [("run.trace", instructions.clone()), ("run.champsim.trace.xz", xz(&instructions))] {
        let refused = keys(name, &file, &Choice::default()).unwrap_err();
        assert!(
            refused.contains("--format") && refused.contains("be32") && refused.contains("oracleGeneral"),
            "{refused}"
        );
        assert_eq!(keys(name, &file, &as_format(Format::Numbers)).unwrap().len(), instructions.len() / 4);
    }
    let utf16: Vec<u8> = "one\ntwo\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(matches!(read("keys.txt", &utf16, &Choice::default()), Err(TraceError::Unrecognised { .. })));
    for format in [Format::Numbers, Format::OracleGeneral] {
        assert!(matches!(read("keys.txt", b"user:1\n", &as_format(format)), Err(TraceError::IsText { .. })));
    }
}

/// A text is refused with the line that is none, however late it comes.
#[test]
fn bytes_behind_a_text_were_keys() {
    let mut file = "user:1\n".repeat(20_000).into_bytes();
    file.extend_from_slice(b"user:2\nuser\x003\n");
    let refused = keys("keys.txt", &file, &Choice::default()).unwrap_err();
    assert!(refused.contains("line 20002") && refused.contains("0x00"), "{refused}");
    let refused = keys("keys.bin", b"\x00\x01\n", &as_format(Format::Keys)).unwrap_err();
    assert!(refused.contains("line 1"), "{refused}");
    let column = Choice { column: Some("id".into()), ..Choice::default() };
    assert_eq!(keys("k", &gzip(b"id,n\nx,1\ny,2\n"), &column), Ok(vec!["x".into(), "y".into()]));
    assert!(keys("k", b"id,n\nx,1\ny\n", &column).unwrap_err().contains("line 3"));
}

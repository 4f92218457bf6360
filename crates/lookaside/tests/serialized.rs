//! serde: what was written is read, and what is no map is an error.

use lookaside::{Map, OwnedMap};

#[test]
fn what_was_written_is_read() {
    let text = r#"{"moon":2,"sun":1}"#;
    let map: Map<String, u64> = serde_json::from_str(text).unwrap();
    let owned: OwnedMap<String, u64> = serde_json::from_str(text).unwrap();
    assert_eq!((map.pin().get("sun"), owned.get("moon")), (Some(&1), Some(&2)));
    let written =
        [serde_json::to_string(&map), serde_json::to_string(&owned), serde_json::to_string(&map.pin())];
    assert_eq!(written.map(Result::unwrap), [text; 3]);
    let twice: Map<String, u64> = serde_json::from_str(r#"{"sun":1,"sun":3}"#).unwrap();
    assert_eq!((twice.len(), twice.pin().get("sun")), (1, Some(&3)));
}

#[test]
fn what_is_no_map_is_an_error() {
    for text in ["[1]", r#"{"sun":"one"}"#, r#"{"sun":1"#] {
        assert!(serde_json::from_str::<Map<String, u64>>(text).is_err(), "{text}");
        assert!(serde_json::from_str::<OwnedMap<String, u64>>(text).is_err(), "{text}");
    }
}

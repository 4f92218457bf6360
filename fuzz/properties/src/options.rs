//! Text to the parser of `-o` lists: it takes them apart without a panic, what one name comes to does not depend on its
//! neighbours, and what is refused is a name of the list.

use arbitrary::{Arbitrary, Unstructured};
use lookaside_cli::serve::extended::{self, ListError, Suboption};

/// What the parser of `-o` lists makes of bytes, as far as they are text.
pub fn options(data: &[u8]) {
    let list =
        <&str>::arbitrary_take_rest(Unstructured::new(data)).expect("bytes begin with text, if an empty one");
    // The empty list has no name; one comma may stand at the end.
    let words: Vec<&str> = match list {
        "" => Vec::new(),
        _ => list.strip_suffix(',').unwrap_or(list).split(',').collect(),
    };
    // Alone, an empty name would be an empty list; two commas have one between them.
    let alone = |word: &&str| if word.is_empty() { extended::parse(",") } else { extended::parse(word) };
    let first_refused = words.iter().map(alone).find_map(Result::err);
    match extended::parse(list) {
        Ok(suboptions) => {
            assert_eq!(first_refused, None);
            assert_eq!(suboptions.len(), words.len());
            for (suboption, word) in suboptions.iter().zip(&words) {
                assert_eq!(alone(word), Ok(vec![suboption.clone()]));
                if let Suboption::Moot(named) = suboption {
                    assert!(word.starts_with(named.name));
                }
            }
        }
        Err(refusal) => {
            assert_eq!(first_refused.as_ref(), Some(&refusal));
            match &refusal {
                ListError::Unknown(given) => {
                    let name = given.split('=').next().unwrap_or(given);
                    assert!(words.contains(&given.as_str()) && !extended::names().any(|known| known == name));
                }
                ListError::Missing { name, .. }
                | ListError::Value { name, .. }
                | ListError::Later { name, .. } => {
                    assert!(words.iter().any(|word| word.starts_with(name)));
                }
                _ => {}
            }
            assert!(!refusal.to_string().is_empty());
        }
    }
}

//! Completes words: those of a text that begin with what is typed, the most frequent first.
//!
//!     cargo run --release -p lookaside-art --example complete -- TEXT [BEGINNING]...
//!
//! Without a beginning it reads beginnings from its input, a line each. The tree keeps the words in order: all that
//! begin alike lie side by side, and are found by one walk down, however many others there are.

use std::cmp::Reverse;
use std::error::Error;
use std::io::{BufRead, stdin};

use lookaside_art::{OwnedTree, encode};

/// Completions that are shown.
const SHOWN: usize = 5;

/// How often each word of a text is in it.
fn words(text: &str) -> Result<OwnedTree<[u8], u64>, Box<dyn Error>> {
    let mut words = OwnedTree::<[u8], u64>::new()?;
    for word in text.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        match words.get_mut(encode::text(&word)) {
            Some(count) => *count += 1,
            None => {
                words.insert(encode::text(&word), 1)?;
            }
        }
    }
    Ok(words)
}

/// The most frequent words that begin so, with how often they are there.
fn completions(words: &OwnedTree<[u8], u64>, beginning: &str) -> Vec<(String, u64)> {
    let beginning = beginning.to_lowercase();
    let found = words.prefix(encode::text(&beginning));
    let mut found: Vec<_> =
        found.map(|(word, count)| (String::from_utf8_lossy(word).into_owned(), *count)).collect();
    found.sort_by_key(|(_, count)| Reverse(*count));
    found.truncate(SHOWN);
    found
}

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let text = std::fs::read_to_string(arguments.next().ok_or("complete TEXT [BEGINNING]...")?)?;
    let words = words(&text)?;
    let typed: Vec<String> = arguments.collect();
    let from_input = typed.is_empty().then(|| stdin().lock().lines());
    for beginning in typed.into_iter().map(Ok).chain(from_input.into_iter().flatten()) {
        let beginning = beginning?;
        let found = completions(&words, beginning.trim());
        let shown = found.iter().map(|(word, count)| format!("{word} ({count})"));
        println!("{}: {}", beginning.trim(), shown.collect::<Vec<_>>().join(", "));
    }
    Ok(())
}

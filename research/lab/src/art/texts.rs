//! Keys of any length, that others have made: words, and the paths of objects, much like URLs.
//!
//! A recorded trace has few thousand different paths. *Varied* ones are made of them: each long number in a path is
//! replaced by another of as many digits, so that there are as many paths as one likes, with the same beginnings,
//! lengths and endings. They are no recorded ones, and are named so.

use std::collections::HashSet;

use rand::RngExt;
use serde::Deserialize;
use workload::data::{DataError, DataFolder};
use workload::generated::words;
use workload::generator;
use workload::key::Key;
use workload::stand_in::recorded_or_generated;

use crate::experiment::{ExperimentError, Session};

/// Digits in a row that are replaced where paths are varied: numbers that name an object have more, those of formats
/// have fewer.
const LONG_NUMBER: usize = 6;
/// Which numbers: any.
const SEED: u64 = 31;

/// The file of words.
const WORDS: &str = "keys/surf_words.txt";

/// A key.
pub(super) type Text = Box<[u8]>;

/// Where keys come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    /// Its name: a point in results.
    pub(super) name: String,
    /// The file, in the folder of the data: lines of text, or a trace.
    file: String,
    /// So many keys, varied.
    varied: Option<usize>,
    /// At most so many of them.
    #[serde(default)]
    most: Option<usize>,
}

impl Source {
    /// The keys, each once; or what is absent.
    pub(super) fn keys(
        &self,
        session: &mut Session,
    ) -> Result<Result<Vec<Text>, DataError>, ExperimentError> {
        let mut keys = if self.file == WORDS {
            match DataFolder::find().and_then(|folder| folder.file(&self.file)) {
                Ok(path) => {
                    let text = std::fs::read(&path).map_err(|error| ExperimentError::Io { path, error })?;
                    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
                    distinct(lines.map(Text::from))
                }
                Err(absent) => {
                    let said = format!("as written; generated ones are in their place ({absent})");
                    session.skip(&self.name, said);
                    words()
                }
            }
        } else {
            let (records, instead) = match recorded_or_generated(&self.file)? {
                Ok(found) => found,
                Err(absent) => return Ok(Err(absent)),
            };
            if let Some(stand_in) = instead {
                session.skip(&self.name, stand_in.to_string());
            }
            let records = records.map(|record| Ok(record?.key));
            let keys = records.collect::<Result<Vec<Key>, workload::trace::TraceError>>();
            distinct(keys?.into_iter().filter_map(|key| match key {
                Key::Text(text) => Some(text),
                Key::Number(_) => None,
            }))
        };
        if keys.is_empty() {
            return Err(ExperimentError::machine(format!("no texts in {}", self.file)));
        }
        if let Some(varied) = self.varied {
            keys = vary(&keys, varied)?;
        }
        keys.truncate(self.most.unwrap_or(usize::MAX));
        Ok(Ok(keys))
    }
}

/// Each once, in the order in which they come first.
fn distinct(texts: impl Iterator<Item = Text>) -> Vec<Text> {
    let mut known = HashSet::new();
    texts.filter(|text| known.insert(text.clone())).collect()
}

/// So many different texts, made of these in turn.
pub(super) fn vary(texts: &[Text], count: usize) -> Result<Vec<Text>, ExperimentError> {
    let mut random = generator::seeded(SEED);
    let mut known = HashSet::with_capacity(count);
    let mut varied = Vec::with_capacity(count);
    // A text without a long number gives itself once; there have to be others.
    for text in texts.iter().cycle().take(count.saturating_mul(4)) {
        let mut text = text.clone();
        for number in text.chunk_by_mut(|a, b| a.is_ascii_digit() && b.is_ascii_digit()) {
            if number.len() >= LONG_NUMBER {
                number.iter_mut().for_each(|digit| *digit = b'0' + random.random_range(0..10u8));
            }
        }
        if known.insert(text.clone()) {
            varied.push(text);
        }
        if varied.len() == count {
            return Ok(varied);
        }
    }
    Err(ExperimentError::machine(format!("{} varied texts of {} that were wanted", varied.len(), count)))
}

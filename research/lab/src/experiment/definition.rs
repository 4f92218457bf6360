//! The definition of an experiment: a TOML file.
//!
//! ```toml
//! name = "memc3-table2"                  # the file's own name
//! title = "Space and construction speed of hash tables"
//! reproduces = { paper = "MemC3 (NSDI 2013)", exhibit = "Table 2" }
//! kind = "index-space"                   # which code runs it
//! about = "How it is measured, and where that differs from the paper."
//! differs = "Why our numbers are not the paper's, in a paragraph or several."   # optional
//! heap = "huge"                          # pages of the C library's allocator, or "plain"; optional
//! runs = 5
//!
//! [parameters]                           # the kind's own
//! bytes = 1_073_741_824
//!
//! [quick]                                # replaces parameters of the same name, for the run that is a test
//! bytes = 1_048_576
//!
//! [rows]                                 # what it measures: all of this and nothing else, or the run fails
//! configurations = ["chaining", "cuckoo"]
//! metrics = ["bytes per key"]
//!
//! [picture]                              # what `report --svg` draws, of the rows; optional
//! configurations = ["chaining", "cuckoo"]
//! metrics = ["bytes per key"]
//!
//! [[expectations]]                       # checked on the medians of a full run
//! statement = "cuckoo needs less space than chaining"
//! quantity = { configuration = "cuckoo", metric = "bytes per key", over = [{ configuration = "chaining" }] }
//! at_most = 0.75
//!
//! [[references]]                         # the paper's number, beside ours
//! file = "papers/memc3.csv"
//! filter = { configuration = "chaining", metric = "bytes per key" }
//! ours = { configuration = "chaining", metric = "bytes per key" }
//! differs = "Why ours is another number, where it is."
//! ```
//!
//! Unknown fields are refused everywhere: a mistyped parameter must not quietly run something else.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ExperimentError;
use super::files;
use super::quantity::Expectation;
use super::reference::Reference;
use crate::allocator::Malloc;

/// A definition; the fields are described in the module.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The name: that of the file, without `.toml`.
    pub name: String,
    /// What is measured, in a line.
    pub title: String,
    /// What it reproduces; none where the question is our own.
    pub reproduces: Option<Exhibit>,
    /// The kind of experiment.
    pub kind: String,
    /// How it is measured and what to know when reading the numbers.
    pub about: String,
    /// Why our numbers are not the paper's, all in all; paragraphs are parted by empty lines.
    pub differs: Option<String>,
    /// The pages that the C library's allocator takes memory in; as the program has them where nothing is said.
    pub heap: Option<Malloc>,
    /// How often everything is measured: medians and extremes are over these runs.
    pub runs: usize,
    /// The kind's parameters.
    #[serde(default)]
    pub parameters: toml::Table,
    /// Parameters that take the place of those above in a quick run.
    #[serde(default)]
    pub quick: toml::Table,
    /// The rows that the experiment measures.
    pub rows: Promise,
    /// Those of them that are drawn as one picture.
    pub picture: Option<Promise>,
    /// What is expected of a full run.
    #[serde(default)]
    pub expectations: Vec<Expectation>,
    /// The paper's numbers.
    #[serde(default)]
    pub references: Vec<Reference>,
    /// Where the definition was read from.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A table or figure of a paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exhibit {
    /// The paper.
    pub paper: String,
    /// The table or figure.
    pub exhibit: String,
}

/// The rows an experiment measures: every configuration and every metric occurs, and no others do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Promise {
    /// What is compared.
    pub configurations: Vec<String>,
    /// What is measured of it.
    pub metrics: Vec<String>,
}

/// How large an experiment is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// As the definition says: these numbers count.
    Full,
    /// Once, with the quick parameters: to see that it runs, not how fast.
    Quick,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// [`ExperimentError::Io`], or [`ExperimentError::Definition`] where it is not a definition.
    pub fn read(path: &Path) -> Result<Definition, ExperimentError> {
        let text = files::read(path).map_err(|error| ExperimentError::Io { path: path.to_owned(), error })?;
        Self::parse(&text, path)
    }

    /// The definition in `text`, which came from `path`.
    ///
    /// # Errors
    /// [`ExperimentError::Definition`]
    pub fn parse(text: &str, path: &Path) -> Result<Definition, ExperimentError> {
        let wrong = |reason: String| ExperimentError::Definition { path: path.to_owned(), reason };
        let mut definition: Definition = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        definition.path = path.to_owned();
        let file = path.file_stem().unwrap_or_default();
        if definition.name.as_str() != file {
            return Err(wrong(format!(
                "its name is '{}': give it the name of its file, or rename the file",
                definition.name
            )));
        }
        if definition.runs == 0 {
            return Err(wrong("it asks for no runs: ask for at least one".into()));
        }
        if let Some(surplus) = definition.quick.keys().find(|key| !definition.parameters.contains_key(*key)) {
            return Err(wrong(format!("its quick parameter '{surplus}' takes the place of none")));
        }
        if let Some(picture) = &definition.picture {
            let rows = &definition.rows;
            let strange =
                |names: &[String], known: &[String]| names.iter().find(|name| !known.contains(name)).cloned();
            let name = strange(&picture.configurations, &rows.configurations);
            if let Some(name) = name.or_else(|| strange(&picture.metrics, &rows.metrics)) {
                return Err(wrong(format!("its picture shows '{name}', which is none of its rows")));
            }
        }
        if let Some(reason) = definition.expectations.iter().find_map(|expectation| expectation.defect()) {
            return Err(wrong(reason));
        }
        Ok(definition)
    }

    /// The parameters for a run of this scale.
    #[must_use]
    pub fn parameters_for(&self, scale: Scale) -> toml::Table {
        let mut parameters = self.parameters.clone();
        if scale == Scale::Quick {
            parameters.extend(self.quick.clone());
        }
        parameters
    }

    /// The runs for a run of this scale.
    #[must_use]
    pub fn runs_for(&self, scale: Scale) -> usize {
        match scale {
            Scale::Full => self.runs,
            Scale::Quick => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
name = "sound"
title = "A sound definition"
reproduces = { paper = "MemC3 (NSDI 2013)", exhibit = "Table 2" }
kind = "none"
about = "Nothing is measured."
runs = 3
[parameters]
size = 10
depth = 2
[quick]
size = 1
[rows]
configurations = ["a"]
metrics = ["m"]
[[expectations]]
statement = "a is fast"
quantity = { configuration = "a", metric = "m" }
at_least = 2
"#;

    fn parse(text: &str) -> Result<Definition, ExperimentError> {
        Definition::parse(text, Path::new("somewhere/sound.toml"))
    }

    fn refusal(text: &str) -> String {
        parse(text).expect_err("it is defective").to_string()
    }

    #[test]
    fn quick_parameters_take_the_place_of_full_ones() {
        let definition = parse(SOUND).unwrap();
        let number = |scale, name| definition.parameters_for(scale)[name].as_integer().unwrap();
        assert_eq!((number(Scale::Full, "size"), number(Scale::Full, "depth")), (10, 2));
        assert_eq!((number(Scale::Quick, "size"), number(Scale::Quick, "depth")), (1, 2));
        assert_eq!((definition.runs_for(Scale::Full), definition.runs_for(Scale::Quick)), (3, 1));
    }

    #[test]
    fn unknown_fields_are_refused_at_every_depth() {
        for (sound, defective) in [
            ("runs = 3", "runs = 3\nrepeats = 4"),
            ("exhibit = ", "figure = 1, exhibit = "),
            ("[rows]", "[rows]\nunits = []"),
            ("at_least = 2", "at_least = 2\nat_lest = 3"),
            ("metric = \"m\"", "metric = \"m\", metrics = 1"),
        ] {
            assert!(refusal(&SOUND.replace(sound, defective)).contains("unknown field"), "{defective}");
        }
    }

    #[test]
    fn defects_are_named() {
        assert!(refusal(&SOUND.replace("name = \"sound\"", "name = \"other\"")).contains("rename the file"));
        assert!(refusal(&SOUND.replace("runs = 3", "runs = 0")).contains("at least one"));
        assert!(
            refusal(&SOUND.replace("[quick]\nsize", "[quick]\nsise"))
                .contains("'sise' takes the place of none")
        );
        assert!(refusal(&SOUND.replace("at_least = 2", "")).contains("bound"));
        let picture = |metric: &str| {
            format!("[picture]\nconfigurations = ['a']\nmetrics = ['{metric}']\n[[expectations]]")
        };
        assert!(parse(&SOUND.replace("[[expectations]]", &picture("m"))).is_ok());
        assert!(
            refusal(&SOUND.replace("[[expectations]]", &picture("n"))).contains("shows 'n', which is none")
        );
    }
}

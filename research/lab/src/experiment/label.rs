//! What the points of a quick run are called.
//!
//! A definition names its points by their sizes, "10 M keys", and its expectations and references find the numbers by
//! those names. A quick run has the same points, smaller: in rows they keep the names, so that all that is expected can
//! be found, and wherever they are shown they are called what they are.

use toml::{Table, Value};

use super::{Definition, Scale};

/// Fields that say how large a point is.
const SIZES: [&str; 6] = ["keys", "records", "range", "bytes", "stlt_bytes", "slb_bytes"];

/// Names that are not true of a quick run, and those that are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<(String, String)>);

impl Labels {
    /// The labels of `definition` at this scale: none but in a quick run.
    pub(crate) fn of(definition: &Definition, scale: Scale) -> Labels {
        let mut labels = Vec::new();
        let quick = if scale == Scale::Quick { definition.quick.iter().collect() } else { Vec::new() };
        for (parameter, points) in quick {
            let full = definition.parameters.get(parameter).and_then(Value::as_array);
            for (number, point) in (1..).zip(points.as_array().into_iter().flatten()) {
                let Some((name, point)) = point.as_table().and_then(|point| Some((name_of(point)?, point)))
                else {
                    continue;
                };
                let full = full.into_iter().flatten().filter_map(Value::as_table);
                let full = full.into_iter().find(|full| name_of(full) == Some(name));
                let sizes = SIZES.into_iter().filter_map(|size| Some((size, point.get(size)?)));
                let differs =
                    sizes.clone().any(|(size, value)| full.and_then(|full| full.get(size)) != Some(value));
                if differs && name.contains(|character: char| character.is_ascii_digit()) {
                    let sizes: Vec<_> = sizes.map(|(size, value)| format!("{size} {value}")).collect();
                    let label = format!("quick {parameter} {number} ({})", sizes.join("; "));
                    labels.push((name.to_owned(), label));
                }
            }
        }
        // "1 M keys" is a part of "1 M keys, 16 MB".
        labels.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Labels(labels)
    }

    /// The text with true names.
    pub(crate) fn apply(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::with_capacity(text.len()), text);
        let within = |character: char| character.is_alphanumeric() || character == '.';
        while let Some(next) = rest.chars().next() {
            let begins = !out.ends_with(within);
            let found = self.0.iter().find(|(name, _)| {
                begins && rest.strip_prefix(name.as_str()).is_some_and(|after| !after.starts_with(within))
            });
            let taken = match found {
                Some((name, label)) => {
                    out.push_str(label);
                    name.len()
                }
                None => {
                    out.push(next);
                    next.len_utf8()
                }
            };
            rest = &rest[taken..];
        }
        out
    }
}

fn name_of(point: &Table) -> Option<&str> {
    point.get("name")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn points_of_a_quick_run_are_called_what_they_are() {
        let text = "name = 'x'\ntitle = 't'\nkind = 'none'\nabout = 'a'\nruns = 5\n[parameters]\n\
            points = [{ name = '0.1 M keys', range = 100_000 }, { name = '1 M keys', range = 1_000_000 }, \
            { name = '1 M keys, 16 MB', range = 1_000_000 }, { name = 'one', range = 7 }]\n\
            servers = [{ name = 'x2' }]\n[quick]\n\
            points = [{ name = '0.1 M keys', range = 30 }, { name = '1 M keys', range = 30 }, \
            { name = '1 M keys, 16 MB', range = 30 }, { name = 'one', range = 7 }]\nservers = [{ name = 'x2' }]\n\
            [rows]\nconfigurations = ['a']\nmetrics = ['speed']";
        let definition = Definition::parse(text, Path::new("x.toml")).unwrap();
        let labels = Labels::of(&definition, Scale::Quick);
        for (name, label) in [
            ("0.1 M keys, 1 thread", "quick points 1 (range 30), 1 thread"),
            ("1 M keys", "quick points 2 (range 30)"),
            ("at 1 M keys, 16 MB", "at quick points 3 (range 30)"),
            ("1 M keystrokes, x2, one, 11 M keys", "1 M keystrokes, x2, one, 11 M keys"),
        ] {
            assert_eq!(labels.apply(name), label);
        }
        assert_eq!(Labels::of(&definition, Scale::Full), Labels::default());
    }
}

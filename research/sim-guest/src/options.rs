//! What the guest is told: a file of requests, then name=value.

/// All that can be said; what only concerns other programs is not looked at.
const NAMES: [&str; 14] = [
    "index",
    "variant",
    "records",
    "value",
    "rows",
    "ways",
    "slb",
    "slb-options",
    "hash",
    "load",
    "functional",
    "detailed",
    "window",
    "windows",
];

pub(crate) struct Options {
    pub(crate) requests: Vec<u32>,
    names: Vec<(String, String)>,
}

impl Options {
    pub(crate) fn read() -> Result<Options, String> {
        let mut arguments = std::env::args().skip(1);
        let path = arguments.next().ok_or("the first argument is a file of requests")?;
        let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
        let word = |word: &[u8]| u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let requests = bytes.chunks_exact(4).map(word).collect();
        let names = arguments
            .map(|argument| {
                let pair = argument.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
                pair.ok_or_else(|| format!("{argument} is not name=value"))
            })
            .collect::<Result<Vec<_>, String>>()?;
        for (name, value) in &names {
            if !NAMES.contains(&name.as_str()) {
                return Err(format!("{name}={value}: there is no such option, but {}", NAMES.join(", ")));
            }
        }
        Ok(Options { requests, names })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn number(&self, name: &str, otherwise: u64) -> Result<u64, String> {
        let text = self.text(name);
        text.map_or(Ok(otherwise), |text| text.parse().map_err(|_| format!("{name}={text} is not a number")))
    }
}

//! The parser once more, as plainly as it can be said: all tokens in a vector, numbers through `i128`, and the rules of
//! memcached 1.6.45 one after the other. The outcome is the plainest line that means the same request, or a refusal.
#![allow(dead_code, reason = "each test file uses a part of this")]

mod meta;

use lookaside_protocol::ErrorReply;

/// What has become of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// A request, as the plainest line that means the same.
    Request(Vec<u8>),
    /// An answer or none, and so many bytes to swallow.
    Refused(Option<ErrorReply>, usize),
    /// An answer, after which the connection is closed.
    Ended(ErrorReply),
    /// The connection is closed.
    Closed,
}

use Outcome::{Closed, Refused, Request};

/// What stands behind the key of a delete, but for the `noreply` at the end.
fn surplus_of_delete<'a>(tokens: &[(usize, &'a [u8])]) -> Vec<&'a [u8]> {
    tokens.iter().skip(2).map(|(_, token)| *token).collect()
}

/// All tokens with their offsets, without a limit.
pub(crate) fn all_tokens(text: &[u8]) -> Vec<(usize, &[u8])> {
    let mut tokens = Vec::new();
    let mut offset = 0;
    for piece in text.split(|byte| *byte == b' ') {
        if !piece.is_empty() {
            tokens.push((offset, piece));
        }
        offset += piece.len() + 1;
    }
    tokens
}

/// The line without `\n` or `\r\n`.
pub(crate) fn text_of(line: &[u8]) -> &[u8] {
    match line {
        [text @ .., b'\r', b'\n'] | [text @ .., b'\n'] => text,
        text => text,
    }
}

fn digits(text: &[u8]) -> Option<i128> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    String::from_utf8_lossy(text).parse().ok()
}

/// The strict reader of 32 bits with a sign.
pub(crate) fn strict_i32(token: &[u8]) -> Option<i128> {
    let number = match token {
        [b'-'] => 0,
        [b'-', rest @ ..] => -digits(rest)?,
        _ => digits(token)?,
    };
    (token.len() <= 11 && i32::try_from(number).is_ok()).then_some(number)
}

/// The strict reader of 32 bits without a sign.
pub(crate) fn strict_u32(token: &[u8]) -> Option<i128> {
    digits(token).filter(|number| token.len() <= 11 && u32::try_from(*number).is_ok())
}

/// The strict reader of 64 bits without a sign.
pub(crate) fn strict_u64(token: &[u8]) -> Option<i128> {
    digits(token).filter(|number| token.len() <= 22 && u64::try_from(*number).is_ok())
}

/// C's readers: the number with its sign, if it is well delimited.
pub(crate) fn c_number(text: &[u8]) -> Option<i128> {
    let space = |byte: &u8| [b' ', b'\t', b'\n', 11, 12, b'\r'].contains(byte);
    let start = text.iter().position(|byte| !space(byte))?;
    let text = &text[start..];
    let (sign, text) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    let length = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let ended = text.get(length).is_none_or(|byte| *byte == 0 || space(byte));
    // Thirty digits are far beyond 64 bits and still fit the 128 used here.
    let zeros = text[..length].iter().take_while(|byte| **byte == b'0').count();
    if length == 0 || !ended || length - zeros > 30 {
        return None;
    }
    Some(if zeros == length { 0 } else { sign * digits(&text[zeros..length])? })
}

/// `strtoull` and memcached's check.
pub(crate) fn c_unsigned(text: &[u8]) -> Option<u64> {
    let number = c_number(text)?;
    let value = u64::try_from(number.unsigned_abs()).ok()?;
    match number {
        0.. => Some(value),
        _ => Some(value.wrapping_neg()).filter(|wrapped| *wrapped < 1 << 63),
    }
}

/// `strtol` and memcached's check.
pub(crate) fn c_signed(text: &[u8]) -> Option<i64> {
    i64::try_from(c_number(text)?).ok()
}

/// A number with a fraction, to three digits behind the point.
fn factor(token: &[u8]) -> Option<f64> {
    let number: f64 = String::from_utf8(token.to_vec()).ok()?.parse().ok()?;
    (0.0..4e6).contains(&number).then(|| (number * 1000.0).round() / 1000.0)
}

/// `slabs`, `lru` and `lru_crawler`: the plainest line, `noreply` included.
fn steering(words: &[&[u8]], noreply: bool) -> Result<String, ErrorReply> {
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let is = |name: &str| words.get(1).is_some_and(|word| name.as_bytes().starts_with(word));
    let silently = |line: String| if noreply { line + " noreply" } else { line };
    match words[0] {
        b"slabs" if is("reassign") && words.len() == 4 => {
            Ok(match (strict_i32(words[2]), strict_i32(words[3])) {
                (Some(from), Some(to)) => silently(format!("slabs reassign {from} {to}")),
                _ if noreply => "slabs reassign x noreply".into(),
                _ => "slabs reassign x x".into(),
            })
        }
        b"slabs" if is("automove") && words.len() == 3 + usize::from(noreply && words.len() == 4) => {
            match strict_u32(words[2]) {
                Some(level @ 0..=2) => Ok(silently(format!("slabs automove {level}"))),
                Some(_) => Err(ErrorReply::Error),
                None => Err(ErrorReply::BadFormat),
            }
        }
        b"slabs" if is("automove") && words.len() == 4 => match (words[2], factor(words[3])) {
            (b"ratio" | b"freeratio", Some(ratio)) => {
                Ok(format!("slabs automove {} {ratio}", text(words[2])))
            }
            (b"window", _) => match strict_u32(words[3]) {
                Some(seconds @ 1..=86_400) => Ok(format!("slabs automove window {seconds}")),
                Some(_) => Err(ErrorReply::AutomoveWindow),
                None => Err(ErrorReply::BadFormat),
            },
            _ => Err(ErrorReply::Error),
        },
        b"lru" => {
            let known = &words[1..words.len() - usize::from(noreply)];
            match *known {
                [b"mode", mode @ (b"flat" | b"segmented")] => {
                    Ok(silently(format!("lru mode {}", text(mode))))
                }
                [b"temp_ttl", seconds] => {
                    let seconds = strict_i32(seconds).ok_or(ErrorReply::Error)?;
                    Ok(silently(format!("lru temp_ttl {}", seconds.max(-1))))
                }
                [b"tune", hot, warm, one, other] => {
                    let numbers = strict_u32(hot).zip(strict_u32(warm)).zip(factor(one).zip(factor(other)));
                    match numbers {
                        None => Err(ErrorReply::Error),
                        Some(((hot, warm), _)) if hot + warm > 80 => Err(ErrorReply::LruPercents),
                        Some((_, (one, other))) if one == 0.0 || other == 0.0 => Err(ErrorReply::LruFactors),
                        Some(((hot, warm), (one, other))) => {
                            Ok(silently(format!("lru tune {hot} {warm} {one} {other}")))
                        }
                    }
                }
                _ => Err(ErrorReply::Error),
            }
        }
        b"lru_crawler" if words.len() == 2 && (is("enable") || is("disable")) => {
            Ok(format!("lru_crawler {}", if is("enable") { "enable" } else { "disable" }))
        }
        b"lru_crawler" if words.len() == 3 => {
            let walks = ["crawl", "metadump", "mgdump"].into_iter().find(|name| is(name));
            if let Some(name) = walks {
                return Ok(format!("lru_crawler {name} ") + &text(words[2]));
            }
            let number = strict_u32(words[2]).ok_or(ErrorReply::BadFormat);
            match number {
                Ok(number) if is("tocrawl") => Ok(format!("lru_crawler tocrawl {number}")),
                Ok(1_000_001..) if is("sleep") => Err(ErrorReply::CrawlerSleepTooLong),
                Ok(number) if is("sleep") => Ok(format!("lru_crawler sleep {number}")),
                Err(error) if is("tocrawl") || is("sleep") => Err(error),
                _ => Err(ErrorReply::Error),
            }
        }
        _ => Err(ErrorReply::Error),
    }
}

/// Parses a line the slow way.
pub(crate) fn parse(line: &[u8]) -> Outcome {
    let bad = |noreply: bool, swallow| Refused((!noreply).then_some(ErrorReply::BadFormat), swallow);
    if line.len() < 4 {
        return bad(false, 0);
    }
    let text = text_of(line);
    let mut tokens = all_tokens(text);
    let every = tokens.clone();
    tokens.truncate(23);
    let count = tokens.len();
    let token = |at: usize| tokens.get(at).map_or(b"".as_slice(), |(_, token)| *token);
    let from = |at: usize| tokens.get(at).map_or(b"".as_slice(), |(offset, _)| &text[*offset..]);
    let ends_in_noreply = count > 0 && token(count - 1) == b"noreply";
    let refuse = |reply| Refused((!ends_in_noreply).then_some(reply), 0);
    let canonical = |pieces: Vec<Vec<u8>>, noreply: bool| {
        let mut line = pieces.join(b" ".as_slice());
        line.extend_from_slice(if noreply { b" noreply\r\n" } else { b"\r\n" });
        Request(line)
    };
    let number = |number: i128| number.to_string().into_bytes();
    let name = text.split(|byte| *byte == b' ').next().unwrap_or_default();
    match name {
        b"get" | b"gets" => {
            let keys: Vec<Vec<u8>> = every.iter().skip(1).map(|(_, key)| key.to_vec()).collect();
            if keys.is_empty() || keys.iter().any(|key| key.len() > 250) {
                return bad(false, 0);
            }
            canonical([vec![name.to_vec()], keys].concat(), false)
        }
        b"gat" | b"gats" => {
            let keys: Vec<Vec<u8>> = every.iter().skip(2).map(|(_, key)| key.to_vec()).collect();
            if keys.is_empty() {
                return bad(false, 0);
            }
            let Some(exptime) = strict_i32(token(1)) else {
                return Refused(Some(ErrorReply::InvalidExptime), 0);
            };
            if keys.iter().any(|key| key.len() > 250) {
                return bad(false, 0);
            }
            canonical([vec![name.to_vec(), number(exptime)], keys].concat(), false)
        }
        b"set" | b"add" | b"replace" | b"append" | b"prepend" | b"cas" => {
            let length = strict_i32(token(4)).filter(|length| (0..=2_147_483_645).contains(length));
            let Some(length) = length.filter(|_| count >= 5) else { return bad(false, 0) };
            let swallow = length as usize + 2;
            if token(1).len() > 250 {
                return bad(ends_in_noreply, swallow);
            }
            let (Some(flags), Some(exptime)) = (c_unsigned(from(2)), c_signed(from(3))) else {
                return bad(ends_in_noreply, swallow);
            };
            let mut pieces = vec![
                name.to_vec(),
                token(1).to_vec(),
                number(i128::from(flags % (1 << 32))),
                number(i128::from(exptime as i32)),
                number(length),
            ];
            if name == b"cas" {
                let Some(id) = strict_u64(token(5)).filter(|_| count > 5) else {
                    return bad(ends_in_noreply, swallow);
                };
                pieces.push(number(id));
            }
            // The last token is one of those read above only if the line has no more than five or six tokens, and then
            // it was read as a number; so the `noreply` is one behind them.
            canonical(pieces, ends_in_noreply)
        }
        b"delete" if count < 2 => bad(false, 0),
        b"incr" | b"decr" | b"touch" if count < 3 => bad(false, 0),
        b"delete" if !ends_in_noreply && !matches!(surplus_of_delete(&tokens)[..], [] | [b"0"]) => {
            refuse(ErrorReply::DeleteUsage)
        }
        b"delete" | b"incr" | b"decr" | b"touch" if token(1).len() > 250 => bad(ends_in_noreply, 0),
        b"delete" if token(1) == b"noreply" && !ends_in_noreply => Request(b"delete noreply 0\r\n".to_vec()),
        b"delete" => canonical(vec![name.to_vec(), token(1).to_vec()], ends_in_noreply),
        b"incr" | b"decr" => match strict_u64(token(2)) {
            Some(delta) => canonical(vec![name.to_vec(), token(1).to_vec(), number(delta)], ends_in_noreply),
            None => refuse(ErrorReply::InvalidDelta),
        },
        b"touch" => match strict_i32(token(2)) {
            Some(exptime) => {
                canonical(vec![name.to_vec(), token(1).to_vec(), number(exptime)], ends_in_noreply)
            }
            None => refuse(ErrorReply::InvalidExptime),
        },
        b"mg" | b"ms" | b"md" | b"ma" | b"me" | b"mn" => {
            let words: Vec<&[u8]> = every.iter().map(|(_, word)| *word).collect();
            meta::parse(&words).expect("these are the meta commands")
        }
        b"stats" if count == 1 => canonical(vec![b"stats".to_vec()], false),
        b"stats" => {
            let shortens = |name: &str| name.as_bytes().starts_with(token(1));
            let topic = match token(1) {
                _ if shortens("reset") => "reset",
                _ if shortens("detail") => match token(2) {
                    b"on" => "detail on",
                    b"off" => "detail off",
                    b"dump" => "detail dump",
                    _ => "detail",
                },
                _ if shortens("settings") => "settings",
                _ if shortens("cachedump") && count < 4 => "cachedump",
                _ if shortens("cachedump") => match (strict_u32(token(2)), strict_u32(token(3))) {
                    (Some(class), Some(most)) => {
                        let words = format!("stats cachedump {class} {most}");
                        return canonical(vec![words.into_bytes()], false);
                    }
                    _ => "cachedump x x",
                },
                _ if shortens("conns") => "conns",
                b"items" => "items",
                b"slabs" => "slabs",
                b"sizes" => "sizes",
                _ => return Refused(Some(ErrorReply::Error), 0),
            };
            canonical(vec![b"stats".to_vec(), topic.into()], false)
        }
        b"version" | b"quit" => canonical(vec![name.to_vec()], false),
        b"watch" => {
            const NAMES: [&str; 7] =
                ["fetchers", "mutations", "evictions", "connevents", "deletions", "sysevents", "rawcmds"];
            let asked: Vec<&[u8]> = tokens.iter().skip(1).map(|(_, name)| *name).collect();
            let known = |name: &&&[u8]| NAMES.iter().any(|known| known.as_bytes() == **name);
            let mut pieces = vec![b"watch".to_vec()];
            if asked.is_empty() {
                pieces.push(b"fetchers".to_vec());
            } else if asked.iter().filter(known).count() < asked.len() {
                pieces.push(b"unknown".to_vec());
            } else {
                let wanted = NAMES.iter().filter(|name| asked.contains(&name.as_bytes()));
                pieces.extend(wanted.map(|name| name.as_bytes().to_vec()));
            }
            canonical(pieces, false)
        }
        _ => match token(0) {
            b"flush_all" => {
                let delay =
                    if count == 1 + usize::from(ends_in_noreply) { Some(0) } else { strict_i32(token(1)) };
                match delay {
                    Some(delay) => canonical(vec![b"flush_all".to_vec(), number(delay)], ends_in_noreply),
                    None => refuse(ErrorReply::InvalidExptime),
                }
            }
            b"verbosity" => match strict_u32(token(1)).filter(|_| count > 1) {
                Some(level) => canonical(vec![b"verbosity".to_vec(), number(level)], ends_in_noreply),
                None => refuse(ErrorReply::BadFormat),
            },
            b"cache_memlimit" => match strict_u32(token(1)).filter(|_| count > 1) {
                Some(..8) => refuse(ErrorReply::MemlimitTooSmall),
                Some(1_000_000_001..) => refuse(ErrorReply::MemlimitNotMegabytes),
                Some(limit) => canonical(vec![b"cache_memlimit".to_vec(), number(limit)], ends_in_noreply),
                None => refuse(ErrorReply::Error),
            },
            b"shutdown" => {
                let how = match count - usize::from(ends_in_noreply) {
                    1 => "shutdown",
                    2 if token(1) == b"graceful" => "shutdown graceful",
                    _ => "shutdown unknown",
                };
                canonical(vec![how.into()], ends_in_noreply)
            }
            b"slabs" | b"lru" | b"lru_crawler" => {
                let words: Vec<&[u8]> = tokens.iter().map(|(_, word)| *word).collect();
                match steering(&words, ends_in_noreply) {
                    Ok(line) => canonical(vec![line.into_bytes()], false),
                    Err(reply) => refuse(reply),
                }
            }
            _ if count > 1 && token(count - 1).starts_with(b"HTTP/") => Closed,
            _ => refuse(ErrorReply::Error),
        },
    }
}

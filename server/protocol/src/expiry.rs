//! What the times in requests mean.
//!
//! A time is a signed 32-bit number of seconds. 0 is never; up to thirty days it counts from now; above that it is a
//! Unix time; below 0 it has passed already. memcached keeps seconds since shortly before its start in 32 bits, in
//! which an absolute time from before the start has no place, and stands for "expired": hence the third argument here.
//!
//! `flush_all` has a rule of its own. memcached notes the second *before* the given time, and from that second on every
//! item stored in that second or earlier is gone; so `flush_all 1` acts at once, on whatever is stored in the rest of
//! this second too. An absolute time that has passed since the start acts on what is there now. One from before the
//! start acts on nothing, and is still taken in place of an earlier `flush_all`.

/// The longest time in seconds that counts from now: thirty days. A larger one is a Unix time.
pub const LONGEST_RELATIVE_EXPTIME: i32 = 60 * 60 * 24 * 30;

/// When an item expires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// Not by itself.
    Never,
    /// It is expired as it is stored. (It is stored all the same: what it replaces is gone, and the reply is `STORED`.)
    Already,
    /// At this Unix time, in seconds: it is gone as soon as the clock shows it. The time may have passed.
    At(u64),
}

/// What the time in a storage command, `touch` or `gat` means, at Unix time `now` in a server started at `started`.
///
/// ```
/// # use lookaside_protocol::{Expiry, expiry};
/// let (now, started) = (1_700_000_000, 1_699_000_000);
/// assert_eq!(expiry(0, now, started), Expiry::Never);
/// assert_eq!(expiry(60, now, started), Expiry::At(1_700_000_060));
/// assert_eq!(expiry(1_800_000_000, now, started), Expiry::At(1_800_000_000));
/// assert_eq!(expiry(-1, now, started), Expiry::Already);
/// ```
pub fn expiry(exptime: i32, now: u64, started: u64) -> Expiry {
    match u64::try_from(exptime) {
        Err(_) => Expiry::Already,
        Ok(0) => Expiry::Never,
        Ok(seconds) if exptime <= LONGEST_RELATIVE_EXPTIME => Expiry::At(now.saturating_add(seconds)),
        Ok(time) if time <= started => Expiry::Already,
        Ok(time) => Expiry::At(time),
    }
}

/// The same of a time in a frame of the binary protocol, which has no sign: what would be negative is a Unix time from
/// 2038 on.
///
/// ```
/// # use lookaside_protocol::{Expiry, binary_expiry};
/// let (now, started) = (1_700_000_000, 1_699_000_000);
/// assert_eq!(binary_expiry(60, now, started), Expiry::At(1_700_000_060));
/// assert_eq!(binary_expiry(u32::MAX, now, started), Expiry::At(4_294_967_295));
/// ```
pub fn binary_expiry(exptime: u32, now: u64, started: u64) -> Expiry {
    match i32::try_from(exptime) {
        Ok(exptime) => expiry(exptime, now, started),
        Err(_) if u64::from(exptime) <= started => Expiry::Already,
        Err(_) => Expiry::At(exptime.into()),
    }
}

/// What a `flush_all` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// Nothing, except that an earlier `flush_all` that is still to come is forgotten.
    Nothing,
    /// Every item that is there now is gone; one stored in the next moment stays, even if it is the same second.
    Now,
    /// From this Unix time on (it may be now), every item last stored in that second or earlier is gone.
    At(u64),
}

/// What the delay in a `flush_all` means, at Unix time `now` in a server started at `started`.
///
/// ```
/// # use lookaside_protocol::{Flush, flush};
/// let (now, started) = (1_700_000_000, 1_699_000_000);
/// assert_eq!(flush(0, now, started), Flush::Now);
/// assert_eq!(flush(60, now, started), Flush::At(1_700_000_059));
/// ```
pub fn flush(delay: i32, now: u64, started: u64) -> Flush {
    match u64::try_from(delay) {
        Err(_) | Ok(0) => Flush::Now,
        Ok(seconds) if delay <= LONGEST_RELATIVE_EXPTIME => Flush::At(now.saturating_add(seconds - 1)),
        Ok(time) if time <= started => Flush::Nothing,
        Ok(time) if time <= now => Flush::Now,
        Ok(time) => Flush::At(time - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED: u64 = 1_700_000_000;
    const NOW: u64 = STARTED + 1000;

    #[test]
    fn times() {
        let table = [
            (0, Expiry::Never),
            (1, Expiry::At(NOW + 1)),
            (LONGEST_RELATIVE_EXPTIME, Expiry::At(NOW + 2_592_000)),
            (LONGEST_RELATIVE_EXPTIME + 1, Expiry::Already),
            (STARTED as i32 - 1, Expiry::Already),
            (STARTED as i32, Expiry::Already),
            (STARTED as i32 + 1, Expiry::At(STARTED + 1)),
            (NOW as i32, Expiry::At(NOW)),
            (i32::MAX, Expiry::At(i32::MAX as u64)),
            (-1, Expiry::Already),
            (i32::MIN, Expiry::Already),
        ];
        for (exptime, meaning) in table {
            assert_eq!(expiry(exptime, NOW, STARTED), meaning, "{exptime}");
        }
        assert_eq!(expiry(1, u64::MAX, 0), Expiry::At(u64::MAX));
    }

    #[test]
    fn delays() {
        let table = [
            (-1, Flush::Now),
            (i32::MIN, Flush::Now),
            (0, Flush::Now),
            (1, Flush::At(NOW)),
            (2, Flush::At(NOW + 1)),
            (LONGEST_RELATIVE_EXPTIME, Flush::At(NOW + 2_592_000 - 1)),
            (LONGEST_RELATIVE_EXPTIME + 1, Flush::Nothing),
            (STARTED as i32, Flush::Nothing),
            (STARTED as i32 + 1, Flush::Now),
            (NOW as i32, Flush::Now),
            (NOW as i32 + 1, Flush::At(NOW)),
            (i32::MAX, Flush::At(i32::MAX as u64 - 1)),
        ];
        for (delay, meaning) in table {
            assert_eq!(flush(delay, NOW, STARTED), meaning, "{delay}");
        }
    }
}

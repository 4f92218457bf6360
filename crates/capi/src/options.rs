//! Making a buffer: what can be chosen, one buffer for several indexes, another size while it is used; and why not.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use lookaside::{Admission, Config, CounterPolicy, PageKind};

use crate::handle::{Callbacks, Handle, SLB, Shared, hashfunc, matchfunc};
use crate::layout::check_layout;
use crate::refusal::{self, fail, made};

/// Every emission enters, or a share of them; a newcomer takes the place of the coldest.
pub const LOOKASIDE_ADMIT_SAMPLED: u32 = 0;
/// The paper's: a share of the emissions is logged, and a key is admitted that stands in the Log Table often enough.
pub const LOOKASIDE_ADMIT_LOGGED: u32 = 1;

/// Hits warm their entry until it is as warm as any becomes, after 15: then hot lines stay clean. A newcomer's victim
/// cools all others by what it was warm.
pub const LOOKASIDE_COUNT_FALLING: u32 = 0;
/// The paper's: every hit counts.
pub const LOOKASIDE_COUNT_EVERY_HIT: u32 = 1;
/// Hits write nothing; victims are drawn at random.
pub const LOOKASIDE_COUNT_NEVER: u32 = 2;

/// 2 MiB pages where the kernel can assemble them.
pub const LOOKASIDE_PAGES_TRANSPARENT: u32 = 0;
/// 4 KiB pages.
pub const LOOKASIDE_PAGES_BASE: u32 = 1;
/// 2 MiB pages set aside by the operator, or else smaller ones.
pub const LOOKASIDE_PAGES_2M: u32 = 2;
/// 1 GiB pages set aside by the operator, or else smaller ones.
pub const LOOKASIDE_PAGES_1G: u32 = 3;

/// What can be chosen. Fill it with lookaside_default_options() or lookaside_paper_options() and change what you like.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct lookaside_options {
    /// Bytes of this struct as the caller knows it: newer libraries add fields at the end, and older ones accept those
    /// that are zero.
    pub struct_size: usize,
    /// Bytes of the Cache Table, 64 at least. A Log Table comes on top.
    pub size: usize,
    /// As in SLB_create(); may be NULL, for those who look up by `lookaside_inline.h` only: no entry then matches.
    pub r#match: matchfunc,
    /// As in SLB_create(); may be NULL: all keys then have one hash.
    pub keyhash: hashfunc,
    /// As in SLB_create(); may be NULL, for those who emit by lookaside_emit_key() only.
    pub entryhash: hashfunc,
    /// Share of the emissions that are logged, or enter: above 0, at most 1.
    pub sampling: f64,
    /// LOOKASIDE_ADMIT_...
    pub admission: u32,
    /// How often a key must have been logged before the emission that admits it: 0 to 14.
    pub threshold: u32,
    /// Bytes of the Log Table for each of the Cache Table: 1 to 64.
    pub log_ratio: u32,
    /// LOOKASIDE_COUNT_...
    pub counters: u32,
    /// The count that a newcomer begins with: 0 to 255.
    pub newcomer: u32,
    /// LOOKASIDE_PAGES_...
    pub pages: u32,
    /// Indexes that the buffer can stand before, 1 to 256: see lookaside_share().
    pub indexes: u32,
    /// Bytes at the beginning of an entry that a batch asks for ahead: the key at least, at most 4096.
    pub entry_bytes: u32,
    /// Whether the monitor watches, and switches the table off where it does not pay.
    pub monitor: bool,
    /// The layout of the buckets that the caller's `lookaside_inline.h` knows, or 0 if it has none.
    pub layout: u32,
    /// Whether each bit of a hash depends on the whole key, as in a random number, so that hashes are used as they are:
    /// wyhash, XXH3 and SipHash are such, integers that are their own hashes are not. A lie costs hits.
    pub avalanching: bool,
}

/// What [`Config::default`] has, but no size yet.
impl Default for lookaside_options {
    fn default() -> lookaside_options {
        lookaside_options::from(&Config::with_size(0))
    }
}

/// All that a [`Config`] says. What it does not say is the default.
impl From<&Config> for lookaside_options {
    fn from(config: &Config) -> lookaside_options {
        let (admission, threshold, sampling) = match config.admission {
            Admission::Logged { threshold, sampling } => (LOOKASIDE_ADMIT_LOGGED, threshold, sampling),
            Admission::Sampled { sampling } => (LOOKASIDE_ADMIT_SAMPLED, 3, sampling),
            _ => unreachable!("there is no other"),
        };
        lookaside_options {
            struct_size: size_of::<lookaside_options>(),
            size: config.size,
            r#match: None,
            keyhash: None,
            entryhash: None,
            sampling,
            admission,
            threshold: threshold.into(),
            log_ratio: config.log_ratio as u32,
            counters: match config.counters {
                CounterPolicy::Falling => LOOKASIDE_COUNT_FALLING,
                CounterPolicy::EveryHit => LOOKASIDE_COUNT_EVERY_HIT,
                _ => LOOKASIDE_COUNT_NEVER,
            },
            newcomer: config.newcomer.into(),
            pages: number_of(config.pages),
            indexes: 1,
            entry_bytes: 128,
            monitor: true,
            layout: 0,
            avalanching: false,
        }
    }
}

fn number_of(pages: PageKind) -> u32 {
    match pages {
        PageKind::Base => LOOKASIDE_PAGES_BASE,
        PageKind::Huge2M => LOOKASIDE_PAGES_2M,
        PageKind::Huge1G => LOOKASIDE_PAGES_1G,
        _ => LOOKASIDE_PAGES_TRANSPARENT,
    }
}

/// A field that is not one of the numbers that it can be.
fn wrong(field: &str, value: u32, range: &str) -> String {
    format!("{field} is {value}: it must be {range}")
}

impl lookaside_options {
    fn page_kind(&self) -> Result<PageKind, String> {
        match self.pages {
            LOOKASIDE_PAGES_TRANSPARENT => Ok(PageKind::Transparent),
            LOOKASIDE_PAGES_BASE => Ok(PageKind::Base),
            LOOKASIDE_PAGES_2M => Ok(PageKind::Huge2M),
            LOOKASIDE_PAGES_1G => Ok(PageKind::Huge1G),
            other => Err(wrong("pages", other, "one of LOOKASIDE_PAGES_...")),
        }
    }

    fn config(&self) -> Result<Config, String> {
        let narrow = |field, value| u8::try_from(value).map_err(|_| wrong(field, value, "at most 255"));
        let admission = match self.admission {
            LOOKASIDE_ADMIT_SAMPLED => Admission::Sampled { sampling: self.sampling },
            LOOKASIDE_ADMIT_LOGGED => {
                Admission::Logged { threshold: narrow("threshold", self.threshold)?, sampling: self.sampling }
            }
            other => return Err(wrong("admission", other, "one of LOOKASIDE_ADMIT_...")),
        };
        let counters = match self.counters {
            LOOKASIDE_COUNT_FALLING => CounterPolicy::Falling,
            LOOKASIDE_COUNT_EVERY_HIT => CounterPolicy::EveryHit,
            LOOKASIDE_COUNT_NEVER => CounterPolicy::Never,
            other => return Err(wrong("counters", other, "one of LOOKASIDE_COUNT_...")),
        };
        let config = Config::with_size(self.size).log_ratio(self.log_ratio as usize).admission(admission);
        let config = config.counters(counters).newcomer(narrow("newcomer", self.newcomer)?);
        Ok(config.pages(self.page_kind()?))
    }

    fn callbacks(&self) -> Callbacks {
        callbacks(self.r#match, self.keyhash, self.entryhash)
    }

    pub(crate) fn handle(&self) -> Result<Handle, String> {
        if self.entry_bytes > 4096 {
            return Err(wrong("entry_bytes", self.entry_bytes, "at most 4096"));
        }
        let (indexes, entry_bytes) = (self.indexes as usize, self.entry_bytes as usize);
        let shared = Shared::new(&self.config()?, indexes, entry_bytes, !self.avalanching)
            .map_err(|error| error.to_string())?;
        shared.buffer.monitor(self.monitor);
        Ok(Handle::new(Arc::new(shared), self.callbacks()).expect("the first has a number"))
    }

    /// More than any version will have: who says more has filled nothing in.
    const MOST_BYTES: usize = 4096;

    /// What the caller gave. One who knows more fields than this library may leave them zero, which is what was so
    /// before there were any; one who knows fewer there cannot be yet, for this is the first version of them.
    ///
    /// # Safety
    /// Null, or points to as many bytes as it begins by saying.
    pub(crate) unsafe fn read(given: *const lookaside_options) -> Option<lookaside_options> {
        if given.is_null() {
            fail(format_args!("no options were given: pass a lookaside_options"));
            return None;
        }
        // SAFETY: the caller's promise.
        let bytes = unsafe { (&raw const (*given).struct_size).read() };
        let known = size_of::<lookaside_options>();
        if !(known..=Self::MOST_BYTES).contains(&bytes) {
            fail(format_args!(
                "options of {bytes} bytes, but the library knows those of {known}: \
                 fill them by lookaside_default_options()"
            ));
            return None;
        }
        // SAFETY: the caller's promise: they go on for so many bytes.
        let newer = unsafe { std::slice::from_raw_parts(given.cast::<u8>().add(known), bytes - known) };
        if newer.iter().any(|&byte| byte != 0) {
            fail(format_args!(
                "something was chosen that only a newer library knows, with {bytes} bytes of options: leave it zero"
            ));
            return None;
        }
        // SAFETY: the caller's promise; a bool that C wrote is one.
        let options = unsafe { *given };
        (options.layout == 0 || check_layout(options.layout)).then_some(options)
    }
}

fn callbacks(matches: matchfunc, key_hash: hashfunc, entry_hash: hashfunc) -> Callbacks {
    extern "C-unwind" fn matches_nothing(_: *mut c_void, _: *mut c_void) -> bool {
        false
    }
    extern "C-unwind" fn one_hash(_: *mut c_void) -> u64 {
        0
    }
    Callbacks {
        matches: matches.unwrap_or(matches_nothing),
        key_hash: key_hash.unwrap_or(one_hash),
        entry_hash,
    }
}

/// A buffer for the paper's functions, which need all callbacks.
pub(crate) fn create(options: &lookaside_options) -> *mut SLB {
    if options.r#match.is_none() || options.keyhash.is_none() || options.entryhash.is_none() {
        fail(format_args!("a callback is missing: give match, keyhash and entryhash"));
        return null_mut();
    }
    made(|| options.handle()).map_or(null_mut(), Handle::into_raw)
}

/// Writes what fits into `bytes` bytes, and zeroes behind it, for a caller who knows more fields than this library.
///
/// # Safety
/// `to` points to `bytes` bytes; `T` is made of plain fields.
pub(crate) unsafe fn write_known<T: Copy>(what: &T, to: *mut T, bytes: usize) {
    let known = bytes.min(size_of::<T>());
    let to = to.cast::<u8>();
    // SAFETY: the caller's promise; plain fields, byte by byte.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *what).cast::<u8>(), to, known);
        to.add(known).write_bytes(0, bytes - known);
    }
}

/// Writes what fits, and how much that is.
///
/// # Safety
/// `options` is null, or points to `bytes` bytes.
unsafe fn fill(options: *mut lookaside_options, bytes: usize, with: lookaside_options) {
    if !options.is_null() {
        let with = lookaside_options { struct_size: bytes, ..with };
        // SAFETY: the caller's promise.
        unsafe { write_known(&with, options, bytes) };
    }
}

/// What measured best, as SLB_create() has it: no Log Table, every emission enters, counters that rise to 15, a table
/// of one size, and the monitor on. `size` and the callbacks are for the caller to fill in. `bytes` is
/// sizeof *options as the caller knows it. Nothing if `options` is NULL.
///
/// # Safety
/// `options` is NULL, or points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_default_options(options: *mut lookaside_options, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { fill(options, bytes, lookaside_options::default()) };
}

/// The paper to the letter: a Log Table four times the Cache Table, 5 % of the emissions logged, a threshold of three,
/// every hit counted, a table of one size, no monitor. The rest as lookaside_default_options().
///
/// # Safety
/// `options` is NULL, or points to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_paper_options(options: *mut lookaside_options, bytes: usize) {
    let paper = lookaside_options { monitor: false, ..lookaside_options::from(&Config::paper(0)) };
    // SAFETY: the caller's promise.
    unsafe { fill(options, bytes, paper) };
}

/// Makes a buffer. NULL if `options` is NULL or has a field that cannot be, or without memory: lookaside_last_error()
/// says why. To be ended by SLB_destroy().
///
/// # Safety
/// `options` is NULL, or points to one. For the callbacks: as SLB_create().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_create(options: *const lookaside_options) -> *mut SLB {
    // SAFETY: the caller's promise.
    let Some(options) = (unsafe { lookaside_options::read(options) }) else { return null_mut() };
    made(|| options.handle()).map_or(null_mut(), Handle::into_raw)
}

/// The same buffer in front of one more index, with its own callbacks: equal keys of the two never meet. Table, locks,
/// pins and counts are shared, and live until the last of them is destroyed; each is ended by SLB_destroy(). Callbacks
/// may be NULL as in lookaside_options.
///
/// NULL if `b` is NULL, or if it was made for fewer indexes (lookaside_options.indexes, rounded up to a power of two).
/// An index that was destroyed does not give its number back.
///
/// # Safety
/// `b` is NULL, or a buffer. For the callbacks: as SLB_create().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_share(
    b: *mut SLB,
    r#match: matchfunc,
    keyhash: hashfunc,
    entryhash: hashfunc,
) -> *mut SLB {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { Handle::of(b) }) else {
        fail(format_args!("no buffer to share was given"));
        return null_mut();
    };
    let shared = Arc::clone(&handle.shared);
    made(|| {
        Handle::new(shared, callbacks(r#match, keyhash, entryhash)).ok_or_else(|| {
            "all numbers of this buffer are taken: make it with room for more indexes".to_string()
        })
    })
    .map_or(null_mut(), Handle::into_raw)
}

/// Replaces the table by an empty one of `size` bytes, while other threads use it: under locks, or pinned. False if `b`
/// is NULL, if this thread holds a lock of the buffer, if `size` is less than 64 or absurd, or without memory:
/// lookaside_last_error() says why, and the old one stays.
///
/// Takes each lock once, and has them all for a moment. So it must not be called under a lock that others take after
/// SLB_lock(), nor while a thread has the locks of two keys. May free what was retired.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_resize(b: *mut SLB, size: usize) -> bool {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { Handle::of(b) }) else {
        fail(format_args!("no buffer to resize was given"));
        return false;
    };
    resize(handle, |_| size)
}

fn resize(handle: &Handle, size: impl FnOnce(&Handle) -> usize) -> bool {
    let session = handle.session();
    made(|| {
        if session.holds_any() {
            return Err("this thread holds a lock of the buffer: unlock first".to_string());
        }
        handle.shared.resize(size(handle)).map_err(|error| error.to_string())
    })
    .is_some()
}

/// Forgets all entries, while other threads use the buffer: those of all indexes that share it. False, and nothing is
/// forgotten, as lookaside_resize() to the size that it has.
///
/// # Safety
/// `b` is NULL, or a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lookaside_clear(b: *mut SLB) -> bool {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { Handle::of(b) }) else {
        fail(format_args!("no buffer to clear was given"));
        return false;
    };
    resize(handle, |handle| {
        // SAFETY: no thread lets go of what this one has pinned.
        let _guard = handle.shared.buffer.pin();
        handle.table().config().size
    })
}

/// Why the last call of this thread that can fail did so, in words; empty if none has. Good until the next that fails.
#[unsafe(no_mangle)]
pub extern "C" fn lookaside_last_error() -> *const c_char {
    refusal::last()
}

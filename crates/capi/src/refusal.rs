//! Why a call was refused, in words, for the thread that made it. C has no other way to tell.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::panic::catch_unwind;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Keeps a message for `lookaside_last_error()`.
pub(crate) fn fail(message: fmt::Arguments<'_>) {
    let message = CString::new(message.to_string()).unwrap_or_default();
    // Refused when the thread is past its destructors: then nobody is told.
    let _ = LAST_ERROR.try_with(|last| last.replace(message));
}

/// The message kept last; it stays where it is until the next.
pub(crate) fn last() -> *const c_char {
    const GONE: &CStr = c"the thread is ending: why is not known any more";
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(GONE.as_ptr())
}

/// Runs what makes something, and keeps why it did not.
pub(crate) fn made<T>(make: impl FnOnce() -> Result<T, String>) -> Option<T> {
    // Nothing of what it touches is seen again if it panics.
    match catch_unwind(std::panic::AssertUnwindSafe(make)) {
        Ok(Ok(made)) => Some(made),
        Ok(Err(message)) => {
            fail(format_args!("{message}"));
            None
        }
        Err(_) => {
            fail(format_args!("a mistake of the library: please report it"));
            None
        }
    }
}

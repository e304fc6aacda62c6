//! Standard output, which may be closed (`paceline flows | head`) or on a full disk.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// The first write error.
static FAILED: Mutex<Option<io::Error>> = Mutex::new(None);

/// Like `println!`, but [`finish`] reports a failed write, where `println!` panics.
#[macro_export]
macro_rules! say {
    () => { $crate::output::line(format_args!("")) };
    ($($argument:tt)*) => { $crate::output::line(format_args!($($argument)*)) };
}
pub use crate::say;

/// Writes a line. Used by [`say`].
pub fn line(text: fmt::Arguments<'_>) {
    note(writeln!(io::stdout().lock(), "{text}"));
}

/// Returns an error if a write failed. A reader that stopped reading is no error.
pub fn finish() -> Result<()> {
    note(io::stdout().flush());
    match FAILED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::io("write to standard output", &error))
        }
        _ => Ok(()),
    }
}

fn note(written: io::Result<()>) {
    if let Err(error) = written {
        FAILED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

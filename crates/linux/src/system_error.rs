//! Errors of system calls, with advice.

use std::fmt;
use std::io;

/// A failed system call, and the action to which it belongs.
#[derive(Debug)]
pub struct SystemError {
    action: String,
    source: io::Error,
}

impl SystemError {
    /// Creates an error. `action` completes the sentence "cannot ...".
    pub fn new(action: impl Into<String>, source: impl Into<io::Error>) -> Self {
        SystemError { action: action.into(), source: source.into() }
    }

    /// Returns the last error of the C library in this thread.
    pub fn last(action: impl Into<String>) -> Self {
        Self::new(action, io::Error::last_os_error())
    }

    /// True if root would have had the permission.
    pub fn is_permission(&self) -> bool {
        matches!(self.source.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EROFS))
    }

    /// The error number, if the kernel gave one.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.action, self.source)?;
        if self.is_permission() {
            write!(f, "; run as root of the machine (not of a user namespace or a restricted container)")?;
        }
        Ok(())
    }
}

impl std::error::Error for SystemError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Adds the action to a result that has only an error number.
pub trait Context<T> {
    /// Adds the failed action, which completes the sentence "cannot ...".
    ///
    /// # Errors
    /// The original error, with the action.
    fn context(self, action: impl FnOnce() -> String) -> Result<T, SystemError>;
}

impl<T, E: Into<io::Error>> Context<T> for Result<T, E> {
    fn context(self, action: impl FnOnce() -> String) -> Result<T, SystemError> {
        self.map_err(|error| SystemError::new(action(), error))
    }
}

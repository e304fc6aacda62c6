//! Errors as one line: what failed, where, and what to do.

use std::fmt;
use std::process::ExitCode;

use paceline_linux::SystemError;

/// Result of a command.
pub type Result<T> = std::result::Result<T, Error>;

/// The class of an error decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A run failed, or a file could not be written.
    Failed,
    /// Bad arguments, or a file with wrong content.
    Input,
    /// The system refuses an action that only root, or `CAP_NET_ADMIN`, may do.
    Privilege,
    /// Ctrl-C or SIGTERM.
    Interrupted,
}

/// An error with its exit code.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
}

impl Error {
    /// Exit code 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Error { kind: Kind::Failed, message: message.into() }
    }

    /// Exit code 2.
    pub fn input(message: impl Into<String>) -> Self {
        Error { kind: Kind::Input, message: message.into() }
    }

    /// Exit code 3.
    pub fn privilege(message: impl Into<String>) -> Self {
        Error { kind: Kind::Privilege, message: message.into() }
    }

    /// Exit code 130.
    pub fn interrupted() -> Self {
        Error { kind: Kind::Interrupted, message: "interrupted; everything is cleaned up".into() }
    }

    /// An I/O error with the action: "cannot read x.toml: No such file or directory".
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> Self {
        let message = format!("cannot {doing}: {error}");
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                Error::privilege(format!("{message}; run as root (sudo), or choose a place you may write to"))
            }
            _ => Error::failed(message),
        }
    }

    /// An error of the system. Errors that root would not get have their own exit code.
    pub fn system(error: SystemError) -> Self {
        if error.is_permission() {
            Error::privilege(error.to_string())
        } else {
            Error::failed(error.to_string())
        }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Exit code: 1 failed, 2 bad input (as for clap), 3 privilege, 130 interrupted (128 + SIGINT).
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.kind {
            Kind::Failed => 1,
            Kind::Input => 2,
            Kind::Privilege => 3,
            Kind::Interrupted => 130,
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

//! Code that all commands share, whether for the operator or for experiments: standard output, tables, Ctrl-C, and
//! the named profiles of the gateway.

pub mod interrupt;
pub mod output;
pub mod profile;
pub mod table;

use paceline_service::error;

//! What commands have in common, whether they serve the operator or run experiments: standard output, tables, Ctrl-C, and the named
//! profiles of the gateway.

pub mod interrupt;
pub mod output;
pub mod profile;
pub mod table;

use paceline_service::error;

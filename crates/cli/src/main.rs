//! `paceline`: the program is in this crate's library, so that tests and fuzz targets can use its parts.

use std::process::ExitCode;

fn main() -> ExitCode {
    paceline::main()
}

//! `paceline`: the program is the library of this crate, so that tests and fuzz targets reach its parts.

use std::process::ExitCode;

fn main() -> ExitCode {
    paceline::main()
}

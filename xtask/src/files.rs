//! Files of the repository, and what programs print.

use std::path::Path;
use std::process::Command;

/// What the program prints, or an error that names it.
pub(crate) fn output_of(program: &str, arguments: &[&str], directory: &Path) -> Result<String, String> {
    let command = format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .current_dir(directory)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("{command}: {error}"))
}

/// A file of the repository as text.
pub(crate) fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

//! Files of the repository, and output of programs.

use std::path::Path;
use std::process::Command;

use serde::de::DeserializeOwned;

/// Returns the program's output, or an error that names the program.
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

/// Reads a file of the repository as text.
pub(crate) fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

/// Reads a file of the repository as TOML.
pub(crate) fn read_toml<T: DeserializeOwned>(root: &Path, file: &str) -> Result<T, String> {
    toml::from_str(&read(root, file)?).map_err(|error| format!("{file}: {error}"))
}

/// Reads a file of the repository, or of results, as JSON.
pub(crate) fn read_json<T: DeserializeOwned>(root: &Path, file: &str) -> Result<T, String> {
    serde_json::from_str(&read(root, file)?).map_err(|error| format!("{file}: {error}"))
}

/// Writes a file of the repository.
pub(crate) fn write(root: &Path, file: &str, text: &str) -> Result<(), String> {
    std::fs::write(root.join(file), text).map_err(|error| format!("{file}: {error}"))
}

//! Kernel settings of the calling thread's network namespace, through `/proc/sys`.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use crate::system_error::{Context, SystemError};

/// Sets `name` (`net.ipv4.tcp_sack` or `net/ipv4/conf/br0/rp_filter`) in the calling thread's network namespace.
pub fn set(name: &str, value: impl Display) -> Result<(), SystemError> {
    let value = value.to_string();
    fs::write(path_of(name), &value).context(|| format!("set {name} to '{value}'"))
}

/// Reads `name` in the calling thread's network namespace.
pub fn get(name: &str) -> Result<String, SystemError> {
    fs::read_to_string(path_of(name)).map(|text| text.trim().to_owned()).context(|| format!("read {name}"))
}

/// Lets sockets of every namespace choose these congestion controls. The list of controls for processes without
/// privilege belongs to the machine, not to a namespace. Missing names are added, and none is removed.
pub fn allow_congestion_controls(names: &[&str]) -> Result<(), SystemError> {
    let allowed = get(ALLOWED)?;
    let missing: Vec<_> =
        names.iter().filter(|name| !allowed.split_whitespace().any(|a| a == **name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut list = allowed.clone();
    missing.iter().for_each(|name| list.extend([" ", **name]));
    set(ALLOWED, list.trim())
}

/// Replaces dots by slashes only in names without slashes, because an interface name may contain dots.
fn path_of(name: &str) -> PathBuf {
    let relative = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    PathBuf::from("/proc/sys").join(relative)
}

const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";

//! Checks of this process's privileges, and of the machine's clock.

use std::fs;
use std::path::Path;
use std::thread;

use paceline_linux::timer;

use super::super::control;
use super::Findings;
use crate::units::counted;

/// Capability numbers of `capability.h`.
const CAPABILITIES: [(&str, u32, &str); 3] = [
    ("CAP_NET_ADMIN", 12, "routes, rules and TUN devices need it"),
    ("CAP_NET_RAW", 13, "packet sockets need it"),
    ("CAP_SYS_NICE", 23, "without it some packets leave a millisecond late"),
];

pub(super) fn capabilities() -> Vec<Findings> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = effective(&status).unwrap_or(0);
    let each = CAPABILITIES.iter().map(|&(name, number, why)| {
        let findings = Findings::of("capability", name);
        match effective >> number & 1 {
            1 => findings.ok("held"),
            _ if name == "CAP_SYS_NICE" => findings.warn(format!("missing: {why}"), remedy(name)),
            _ => findings.problem(format!("missing: {why}"), remedy(name)),
        }
    });
    each.collect()
}

fn remedy(name: &str) -> String {
    format!("run as root, or AmbientCapabilities={name} in the unit")
}

fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Tries real-time scheduling on a thread that ends at once.
pub(super) fn scheduling() -> Vec<Findings> {
    let findings = Findings::of("real-time priority", "machine");
    let tried = thread::spawn(timer::schedule_realtime).join();
    vec![match tried {
        Ok(Ok(())) => findings.ok("SCHED_FIFO is allowed"),
        Ok(Err(error)) => findings.warn(
            format!("SCHED_FIFO is refused ({error}): some packets leave a millisecond late"),
            "allow CAP_SYS_NICE; in a container, let its control group have real-time time",
        ),
        Err(_) => findings.warn("SCHED_FIFO could not be tried", "look at the system's log"),
    }]
}

/// Checks a gateway that runs between these interfaces.
pub(super) fn running(socket: &Path) -> Option<Findings> {
    let report = control::ask(Some(socket)).ok()?;
    let findings = Findings::of("running gateway", "both");
    Some(match report.absent {
        None => findings.ok(format!("in place, {}", counted(report.flows.len(), "flow"))),
        Some(reason) => findings.problem(
            format!("not in place, so nothing is accelerated: {reason}"),
            "bring the interface back; the gateway then takes its place by itself",
        ),
    })
}

pub(super) fn clock_source() -> Vec<Findings> {
    let read = |name: &str| {
        let path = format!("/sys/devices/system/clocksource/clocksource0/{name}_clocksource");
        fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    vec![judge_clock(&read("current"), &read("available"))]
}

/// With these sources each reading of the clock accesses a device, which takes some microseconds.
const SLOW_CLOCKS: [&str; 3] = ["hpet", "acpi_pm", "jiffies"];

fn judge_clock(current: &str, available: &str) -> Findings {
    let findings = Findings::of("clock source", "machine");
    if current.is_empty() {
        return findings.ok("unknown: this machine offers no choice");
    }
    if !SLOW_CLOCKS.contains(&current) {
        return findings.ok(current);
    }
    let better = available.split_whitespace().find(|name| !SLOW_CLOCKS.contains(name));
    let remedy = match better {
        Some(name) => {
            format!("echo {name} > /sys/devices/system/clocksource/clocksource0/current_clocksource")
        }
        None => "the machine has no better one; expect more CPU per packet".into(),
    };
    findings.warn(format!("{current} is slow to read, and the gateway reads it for each batch"), remedy)
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;

    #[test]
    fn capabilities_are_read_as_the_kernel_writes_them() {
        assert_eq!(effective("Name:\tx\nCapEff:\t0000000000803000\n"), Some(0x80_3000));
        assert_eq!(effective("nothing"), None);
    }

    #[test]
    fn a_slow_clock_is_told_with_a_better_one() {
        let slow = judge_clock("hpet", "hpet tsc acpi_pm");
        assert_eq!(slow.found[0].status, Status::Warning);
        assert!(slow.found[0].remedy.as_ref().unwrap().starts_with("echo tsc >"));
        assert_eq!(judge_clock("kvm-clock", "kvm-clock").found[0].status, Status::Ok);
    }
}

//! The sysctls that scripts set in their network namespace before they begin, as the configuration of an endpoint.

use std::fs;

use paceline_tcp::{Config, DetectionName, HystartName, ReceiveBuffer};
use paceline_wire::Duration;

/// Reads the sysctls of the namespace. Missing values are as in Linux.
pub(crate) fn config() -> Config {
    let [_, receive, receive_max] = three("tcp_rmem", [4_096, 131_072, 6 << 20]);
    let [_, send, send_max] = three("tcp_wmem", [4_096, 16_384, 4 << 20]);
    let is_on = |name: &str, default: u64| one(name, default) != 0;
    let text = |name: &str| fs::read_to_string(format!("{FOLDER}/{name}")).unwrap_or_default();
    let default = Config::default();
    // Here RACK includes tail loss probes. Without them only RFC 6675 is available.
    let probes = is_on("tcp_early_retrans", 3);
    let detection = if probes { default.detection } else { DetectionName::Rfc6675 };
    Config {
        detection,
        congestion: text("tcp_congestion_control").trim().parse().unwrap_or(default.congestion),
        // Linux counts the memory of segments. Half of it is payload here (tcp_adv_win_scale 1).
        receive_buffer: ReceiveBuffer::Auto { initial: (receive / 2) as u32, max: receive_max as u32 },
        send_buffer_initial: send,
        send_buffer_max: send_max,
        timestamps: is_on("tcp_timestamps", 1),
        sack: is_on("tcp_sack", 1),
        window_scaling: is_on("tcp_window_scaling", 1),
        ecn: one("tcp_ecn", 2) == 1,
        slow_start_after_idle: is_on("tcp_slow_start_after_idle", 1),
        frto: is_on("tcp_frto", 2),
        syn_retries: one("tcp_syn_retries", 6) as u32,
        // Properties of the scripts' kernel that no sysctl shows: 1,000 Hz, and a HyStart older than the rounds of
        // 6.14.
        tick: Duration::from_millis(1),
        hystart: HystartName::Linux516,
        ..default
    }
}

/// Minimum number of segments of a burst that leave as one super-packet.
pub(crate) fn min_tso_segments() -> u64 {
    one("tcp_min_tso_segs", 2)
}

fn one(name: &str, default: u64) -> u64 {
    numbers(name).first().copied().unwrap_or(default)
}

fn three(name: &str, default: [u64; 3]) -> [u64; 3] {
    numbers(name).try_into().unwrap_or(default)
}

fn numbers(name: &str) -> Vec<u64> {
    let text = fs::read_to_string(format!("{FOLDER}/{name}")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

const FOLDER: &str = "/proc/sys/net/ipv4";

//! The configuration of a connection.

use paceline_wire::{Duration, Instant};

use crate::congestion::{CongestionName, HystartName};
use crate::detection::{DetectionName, NclConfig};
use crate::names::named;
use crate::receive_window::ReceiveWindowName;
use crate::reduction::ReductionName;
use crate::schedule::ScheduleName;
use crate::send_buffer::SendBufferName;

named! {
    /// When the congestion window counts as used, so that it may grow.
    ValidationName {
        /// As Linux since 3.16: when it was filled during the last round trip; in slow start half of it is enough.
        #[default]
        Linux = "linux",
        /// As Linux 3.10 without segmentation offload: when three packets or fewer were missing before the ACK.
        Linux310 = "linux-3.10",
    }
}

named! {
    /// How the retransmission timeout follows the RTT.
    RtoName {
        /// As Linux: SRTT and a variance that is never below the shortest timeout (tcp_rtt_estimator).
        #[default]
        Linux = "linux",
        /// As RFC 6298 says: the timeout as a whole is never below the shortest one.
        Rfc6298 = "rfc6298",
    }
}

/// All settings. The default is Linux's, with limits of buffers that no test reaches.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Config {
    /// Congestion control.
    pub congestion: CongestionName,
    /// How slow start ends, for CUBIC.
    pub hystart: HystartName,
    /// Rate reduction.
    pub reduction: ReductionName,
    /// New data may go beyond the advertised window during recovery (OR, Section IV).
    pub opportunistic: bool,
    /// Hack 1 of OR: duplicate ACKs without news by SACK indicate that a retransmission was lost.
    pub hack1: bool,
    /// Hack 1 as printed, without our changes. It includes `hack1`.
    #[serde(default)]
    pub hack1_text: bool,
    /// Our changes that the printed Hack 1 has nevertheless. For experiments that show what each is worth.
    #[serde(default)]
    pub hack1_changes: Hack1Changes,
    /// The limit of outstanding data, besides the congestion window.
    pub schedule: ScheduleName,
    /// Loss detection.
    pub detection: DetectionName,
    /// Parameters of TCP-NCL.
    pub ncl: NclConfig,
    /// How the send buffer grows.
    pub send_buffer: SendBufferName,
    /// Its initial size in bytes of payload (Linux, second value of `tcp_wmem`).
    pub send_buffer_initial: u64,
    /// Its largest size (Linux, third value of `tcp_wmem`).
    pub send_buffer_max: u64,
    /// The receive buffer.
    pub receive_buffer: ReceiveBuffer,
    /// The part of it that is advertised.
    pub receive_window: ReceiveWindowName,
    /// DRWA's lambda in hundredths. DRWA keeps the RTT near lambda times the shortest.
    pub drwa_lambda_percent: u32,
    /// The largest segment to receive, announced in the SYN. Options are subtracted from it (RFC 9293, Section 3.7.1).
    pub mss: u16,
    /// Initial window in packets (RFC 6928).
    pub initial_cwnd: u32,
    /// When the congestion window counts as used.
    pub validation: ValidationName,
    /// cwnd never exceeds this many packets.
    pub cwnd_clamp: u32,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// The clock that they show.
    pub timestamp_clock: TimestampClock,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Selective acknowledgements (RFC 2018), D-SACK included (RFC 2883).
    pub sack: bool,
    /// Explicit congestion notification (RFC 3168). The endpoint asks for it in its SYN, and accepts it from a peer's
    /// SYN.
    #[serde(default)]
    pub ecn: bool,
    /// Nagle's algorithm (RFC 9293, Section 3.7.4).
    pub nagle: bool,
    /// ACKs for every second segment (RFC 9293, Section 3.8.6.3).
    pub delayed_ack: bool,
    /// Fewer duplicate ACKs, as Linux since 4.18 (__tcp_ack_snd_check).
    pub sack_compression: bool,
    /// F-RTO (RFC 5682).
    pub frto: bool,
    /// Slow start after an idle time (RFC 5681, Section 4.1).
    pub slow_start_after_idle: bool,
    /// How the retransmission timeout follows the RTT.
    pub rto: RtoName,
    /// The shortest retransmission timeout; in Linux's way, its least margin above SRTT. Linux: 200 ms; RFC 6298 says
    /// 1 s.
    pub rto_min: Duration,
    /// The clock tick of the host, by which its timers run late (Linux: 1 / HZ).
    #[serde(default = "tick")]
    pub tick: Duration,
    /// Reductions are undone if D-SACK or timestamps show that they were spurious (RFC 3708, RFC 3522), as in Linux.
    pub undo: bool,
    /// Retransmissions of the same data before the connection is given up (Linux tcp_retries2).
    pub retries: u32,
    /// Number of timeouts in a row that do not lengthen the timeout (Linux has six for thin streams,
    /// tcp_thin_linear_timeouts).
    #[serde(default)]
    pub linear_timeouts: u32,
    /// Retransmissions of a SYN or SYN-ACK (Linux tcp_syn_retries).
    pub syn_retries: u32,
    /// Probes of an idle peer.
    pub keep_alive: Option<KeepAlive>,
    /// How long TIME-WAIT lasts (Linux TCP_TIMEWAIT_LEN; RFC 9293: twice the MSL).
    pub time_wait: Duration,
}

/// Our changes to Hack 1, one switch each (crates/tcp/src/sender/hack1.rs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Hack1Changes {
    /// The third duplicate is enough; as printed their number has to exceed DupThresh.
    pub at_third: bool,
    /// A duplicate without news marks a segment beyond the window as lost.
    pub marks: bool,
    /// Nothing new goes beyond the window while a lost retransmission is repaired.
    pub holds: bool,
}

impl Hack1Changes {
    /// As printed.
    pub const NONE: Hack1Changes = Hack1Changes { at_third: false, marks: false, holds: false };
    /// As we recommend.
    pub const ALL: Hack1Changes = Hack1Changes { at_third: true, marks: true, holds: true };
}

/// The receive buffer, in bytes of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ReceiveBuffer {
    /// Always this size. The receive window decides how it is offered: Linux's opens as data comes, `fixed` is whole
    /// from the start.
    Fixed(u32),
    /// Tuned as in Linux: twice the bytes that the application read in a round trip (tcp_rcv_space_adjust).
    Auto {
        /// Initial size.
        initial: u32,
        /// Largest size.
        max: u32,
    },
}

/// The clock of a host's timestamps (RFC 7323, Section 5.4). Its offset is drawn for each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TimestampClock {
    /// Time between two values: 1 ms in Linux, 1 us with its tcp_usec_ts, 4 and 10 ms in kernels before 4.13.
    pub tick: Duration,
    /// Drift in billionths; positive if it runs fast, negative if slow.
    pub drift_ppb: i32,
}

/// Keep-alive (RFC 9293, Section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeepAlive {
    /// Silence before the first probe (Linux tcp_keepalive_time, 2 h).
    pub time: Duration,
    /// Time between probes (Linux tcp_keepalive_intvl, 75 s).
    pub interval: Duration,
    /// Number of probes (Linux tcp_keepalive_probes, 9).
    pub probes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            congestion: CongestionName::Cubic,
            hystart: HystartName::Linux,
            reduction: ReductionName::Prr,
            opportunistic: false,
            hack1: false,
            hack1_text: false,
            hack1_changes: Hack1Changes::NONE,
            schedule: ScheduleName::Window,
            detection: DetectionName::RackTlp,
            ncl: NclConfig::default(),
            send_buffer: SendBufferName::Linux,
            send_buffer_initial: 16 << 10,
            send_buffer_max: 64 << 20,
            receive_buffer: ReceiveBuffer::Fixed(4 << 20),
            receive_window: ReceiveWindowName::DrsLinux,
            drwa_lambda_percent: 300,
            mss: 1_460,
            initial_cwnd: 10,
            validation: ValidationName::Linux,
            cwnd_clamp: u32::MAX,
            timestamps: true,
            timestamp_clock: TimestampClock::default(),
            window_scaling: true,
            sack: true,
            ecn: false,
            nagle: true,
            delayed_ack: true,
            sack_compression: true,
            frto: true,
            slow_start_after_idle: true,
            rto: RtoName::Linux,
            rto_min: Duration::from_millis(200),
            tick: tick(),
            undo: true,
            retries: 15,
            linear_timeouts: 0,
            syn_retries: 6,
            keep_alive: None,
            time_wait: Duration::from_secs(60),
        }
    }
}

/// The tick of Linux at 250 Hz, the default of its configuration.
fn tick() -> Duration {
    Duration::from_millis(4)
}

impl Config {
    /// The shortest timer for losses (Linux TCP_TIMEOUT_MIN: two jiffies).
    pub(crate) fn timeout_min(&self) -> Duration {
        self.tick * 2
    }
}

impl Default for TimestampClock {
    fn default() -> Self {
        TimestampClock { tick: Duration::from_millis(1), drift_ppb: 0 }
    }
}

impl TimestampClock {
    /// Ticks until `now`.
    pub(crate) fn ticks(&self, now: Instant) -> u32 {
        let mut ns = now.as_nanos();
        if self.drift_ppb != 0 {
            ns = ns.saturating_add_signed((ns / 1_000) as i64 * i64::from(self.drift_ppb) / 1_000_000);
        }
        // Divides by a constant if possible, because this is done for every packet.
        match self.tick.as_nanos() {
            1_000_000 => (ns / 1_000_000) as u32,
            _ => self.odd_ticks(ns),
        }
    }

    /// A separate function, because the compiler would merge the two divisions.
    #[inline(never)]
    fn odd_ticks(&self, ns: u64) -> u32 {
        (ns / self.tick.as_nanos().max(1)) as u32
    }
}

impl Default for KeepAlive {
    fn default() -> Self {
        KeepAlive { time: Duration::from_secs(7_200), interval: Duration::from_secs(75), probes: 9 }
    }
}

impl ReceiveBuffer {
    /// The initial size.
    pub fn initial(self) -> u32 {
        match self {
            ReceiveBuffer::Fixed(bytes) | ReceiveBuffer::Auto { initial: bytes, .. } => bytes,
        }
    }

    /// The largest size.
    pub fn max(self) -> u32 {
        match self {
            ReceiveBuffer::Fixed(bytes) => bytes,
            ReceiveBuffer::Auto { initial, max } => max.max(initial),
        }
    }
}

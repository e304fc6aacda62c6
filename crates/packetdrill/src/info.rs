//! `struct tcp_info` as `include/uapi/linux/tcp.h` lays it out.

use paceline_tcp::{CaState, State, Status};
use paceline_wire::Instant;

/// Number of bytes filled in. The kernel's struct may grow at its end.
pub(crate) const LEN: usize = 256;

/// The struct of a connection that last received data at `last_data`.
pub(crate) fn tcp_info(status: &Status, now: Instant, last_data: Instant) -> [u8; LEN] {
    let mut info = Info([0; LEN]);
    let small = |number: u32| number.min(255) as u8;
    info.bytes(0, &[state(status.state), ca_state(status.ca_state), small(status.timing.retransmits)]);
    info.bytes(3, &[small(status.timing.probes), small(status.timing.backoff)]);
    info.bytes(6, &[status.snd_wscale | status.rcv_wscale << 4]);
    let infinite = 0x7fff_ffff;
    let since_data = now.saturating_since(last_data).as_millis();
    for (at, number) in [
        (8, status.timing.rto),
        (16, status.snd_mss.into()),
        (24, status.pulse.unacked.into()),
        (28, status.pulse.sacked.into()),
        (32, status.pulse.lost.into()),
        (36, status.pulse.retrans.into()),
        (52, since_data),
        (68, status.pulse.rtt),
        (72, status.timing.rttvar),
        (76, u64::from(status.window.snd_ssthresh).min(infinite)),
        (80, status.window.snd_cwnd.into()),
        (88, status.window.reordering.into()),
        (92, status.receiver.rcv_rtt),
        (100, status.sent.total_retrans),
        (144, status.window.notsent_bytes),
        (148, status.timing.min_rtt),
        (152, status.receiver.data_segs_in),
        (156, status.sent.data_segs_out),
        (192, status.sent.delivered),
        (216, status.sent.dsack_dups),
        (220, status.window.reord_seen.into()),
        (224, status.receiver.rcv_ooopack),
        (228, status.window.snd_wnd),
    ] {
        info.bytes(at, &(number as u32).to_ne_bytes());
    }
    for (at, number) in [
        (104, status.window.pacing_rate),
        (112, u64::MAX),
        (120, status.sent.bytes_acked),
        (128, status.receiver.bytes_received),
        (168, status.busy.busy_time),
        (176, status.busy.rwnd_limited),
        (184, status.busy.sndbuf_limited),
        (200, status.sent.bytes_sent),
        (208, status.sent.bytes_retrans),
    ] {
        info.bytes(at, &number.to_ne_bytes());
    }
    info.0
}

struct Info([u8; LEN]);

impl Info {
    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// `enum` of `net/tcp_states.h`.
fn state(state: State) -> u8 {
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// `enum tcp_ca_state`.
fn ca_state(state: CaState) -> u8 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}

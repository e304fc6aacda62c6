//! Counters of the gateway.

use crate::auto::Reason;

/// Why a packet or flow passes unedited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// Not a whole TCP segment over IP.
    NotTcp,
    /// No SYN was seen: the flow is older than the gateway, or one direction takes another way. Or its SYN passed
    /// unedited.
    MidFlow,
    /// The flow table is full.
    TableFull,
    /// TCP-MD5 or TCP-AO covers the header.
    Authenticated,
    /// MPTCP: the window belongs to the connection, not to the flow.
    Mptcp,
    /// The SYN has no room for another option.
    NoOptionRoom,
    /// A rule says so.
    Rule,
    /// The checksum is wrong.
    BadChecksum,
    /// No memory to keep another packet.
    BufferFull,
    /// Local repair has failed too often.
    GaveUp,
    /// Its sequence or acknowledgement numbers are not those of the flow (RFC 5961).
    Unacceptable,
    /// The subscriber has more than its fair number of flows.
    TooManyFlows,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }
    };
}

counters! {
    /// Packets received. A super-packet counts as one.
    packets_in,
    /// Packets sent.
    packets_out,
    /// Flows seen from their SYN and accelerated.
    flows_accelerated,
    /// Flows whose windows are rescaled.
    flows_rescaled,
    /// Flows resumed after a restart.
    flows_resumed,
    /// Flows forgotten, before both ends had answered, to make room for others.
    half_open_dropped,
    /// Flows forgotten because they were idle.
    flows_expired,
    /// Segments sent again by the gateway.
    local_retransmissions,
    /// Of these, segments resent because the client must have discarded them.
    proactive_retransmissions,
    /// Timeouts of the gateway's own timers.
    local_timeouts,
    /// Probes for a lost tail.
    tail_probes,
    /// Probes of a closed window.
    window_probes,
    /// Duplicate ACKs withheld from the server.
    duplicate_acks_withheld,
    /// SACK and D-SACK blocks removed.
    sack_blocks_removed,
    /// Retransmissions of servers not passed on, because the gateway has or had the data.
    server_retransmissions_absorbed,
    /// Retransmissions of servers passed on.
    server_retransmissions_passed,
    /// Segments of servers whose bytes differ from an earlier copy of the same range. The later bytes count.
    differing_copies,
    /// Segments of servers dropped because they used an old window promise while too much waited.
    stale_promises_dropped,
    /// Segments of servers marked by ECN for the same reason.
    stale_promises_marked,
    /// Clients that dropped data after they had reported it by SACK.
    reneged,
    /// The most bytes of payload that were kept at one time.
    peak_buffered_bytes,
    /// Number of times that kept packets of a flow proved too large for its path. They leave as smaller packets.
    path_mtus_lowered,
    /// Flows split.
    flows_split,
    /// Flows that were to be split, but an end refused them or gave up first.
    split_refused,
    /// Split flows of another process that could not be taken over.
    split_let_go,
    /// Packets of split flows dropped because payload memory is used up.
    split_drops_no_memory,
    /// Packets of split flows dropped because their checksum is wrong.
    split_bad_checksums,
    /// Packets other than TCP received for clients.
    other_downlink_packets,
    /// Their bytes.
    other_downlink_bytes,
    /// Packets other than TCP received from clients.
    other_uplink_packets,
    /// Their bytes.
    other_uplink_bytes,
    /// QUIC bytes, of both directions: UDP from or to port 443 of the server.
    quic_bytes,
    /// Packets other than TCP that waited for their turn.
    other_queued,
    /// Packets other than TCP that were dropped because they exceeded their share of a subscriber's link.
    other_dropped,
    /// Passed: not TCP.
    passed_not_tcp,
    /// Passed: first seen in the middle, or seen in one direction only.
    passed_mid_flow,
    /// Passed: table full.
    passed_table_full,
    /// Passed: TCP-MD5 or TCP-AO.
    passed_authenticated,
    /// Passed: MPTCP.
    passed_mptcp,
    /// Passed without window scaling: the SYN has no room.
    passed_no_option_room,
    /// Passed: by rule.
    passed_rule,
    /// Passed: wrong checksum.
    passed_bad_checksum,
    /// Passed: no memory to keep it.
    passed_buffer_full,
    /// Passed: repair failed.
    passed_gave_up,
    /// Passed but not believed: numbers that are not those of the flow.
    passed_unacceptable,
    /// Passed: the subscriber has more than its fair number of flows.
    passed_too_many_flows,
    /// Decisions of `auto`: nothing was known of the client.
    auto_unknown,
    /// Decisions of `auto`: nothing spoke against the default.
    auto_ordinary,
    /// Decisions of `auto`, also in the profile `full`: acknowledgements wait on the uplink.
    auto_late_acks,
    /// Decisions of `auto`: data is lost on a long path.
    auto_lossy_path,
    /// Decisions of `auto`: repairs were needless.
    auto_needless_repairs,
    /// Decisions of `auto`: the client acknowledges data that it cannot have.
    auto_optimistic_acks,
    /// Decisions of `auto`: the server recovers from losses equally well.
    auto_server_recovers,
}

impl Counters {
    /// Counts a packet or flow that passes.
    pub(crate) fn pass(&mut self, reason: PassReason) {
        let counter = match reason {
            PassReason::NotTcp => &mut self.passed_not_tcp,
            PassReason::MidFlow => &mut self.passed_mid_flow,
            PassReason::TableFull => &mut self.passed_table_full,
            PassReason::Authenticated => &mut self.passed_authenticated,
            PassReason::Mptcp => &mut self.passed_mptcp,
            PassReason::NoOptionRoom => &mut self.passed_no_option_room,
            PassReason::Rule => &mut self.passed_rule,
            PassReason::BadChecksum => &mut self.passed_bad_checksum,
            PassReason::BufferFull => &mut self.passed_buffer_full,
            PassReason::GaveUp => &mut self.passed_gave_up,
            PassReason::Unacceptable => &mut self.passed_unacceptable,
            PassReason::TooManyFlows => &mut self.passed_too_many_flows,
        };
        *counter += 1;
    }

    /// Returns the number of decisions of `auto` for this reason.
    pub fn decisions(&self, reason: Reason) -> u64 {
        // `decisions_mut` needs a mutable value: a copy of these plain numbers.
        *self.clone().decisions_mut(reason)
    }

    /// Counts a decision of `auto`.
    pub(crate) fn decide(&mut self, reason: Reason) {
        *self.decisions_mut(reason) += 1;
    }

    fn decisions_mut(&mut self, reason: Reason) -> &mut u64 {
        match reason {
            Reason::Unknown => &mut self.auto_unknown,
            Reason::Ordinary => &mut self.auto_ordinary,
            Reason::LateAcks => &mut self.auto_late_acks,
            Reason::LossyPath => &mut self.auto_lossy_path,
            Reason::NeedlessRepairs => &mut self.auto_needless_repairs,
            Reason::OptimisticAcks => &mut self.auto_optimistic_acks,
            Reason::ServerRecovers => &mut self.auto_server_recovers,
        }
    }
}

//! What the gateway counts.

use crate::auto::Reason;

/// Why a packet or flow passes unedited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// Not a whole TCP segment over IP.
    NotTcp,
    /// No SYN was seen: the flow started before the gateway, or takes another way in one direction. Or its SYN passed before.
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
    /// No memory for another packet.
    BufferFull,
    /// Local repair has failed too often.
    GaveUp,
    /// Its numbers are not those of the flow (RFC 5961).
    Unacceptable,
    /// The subscriber has more flows than is fair.
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
    /// Packets in, super-packets as one.
    packets_in,
    /// Packets out.
    packets_out,
    /// Flows seen from their SYN and accelerated.
    flows_accelerated,
    /// Flows whose windows are rescaled.
    flows_rescaled,
    /// Flows resumed after a restart.
    flows_resumed,
    /// Flows that not both ends had answered, forgotten to make room for others.
    half_open_dropped,
    /// Flows forgotten because they were idle.
    flows_expired,
    /// Segments sent again by the gateway.
    local_retransmissions,
    /// Of these, resent because the client must have discarded them.
    proactive_retransmissions,
    /// Timeouts of the gateway's own timers.
    local_timeouts,
    /// Probes for a lost tail.
    tail_probes,
    /// Probes of a closed window.
    window_probes,
    /// Duplicate ACKs withheld from the server.
    duplicate_acks_withheld,
    /// SACK and D-SACK blocks taken out.
    sack_blocks_removed,
    /// Segments that the server sent again and that were not passed on, being here already.
    server_retransmissions_absorbed,
    /// Segments that the server sent again and that were passed on.
    server_retransmissions_passed,
    /// Segments of servers whose bytes differ from those that came before in their place: the later ones count.
    differing_copies,
    /// Segments of servers dropped, as they came on an old promise and too much waited.
    stale_promises_dropped,
    /// Segments of servers marked by ECN for that.
    stale_promises_marked,
    /// Clients that dropped data which they had reported by SACK.
    reneged,
    /// Bytes of payload that were kept at most.
    peak_buffered_bytes,
    /// Times that kept packets of a flow proved too large for its path, and leave as smaller ones.
    path_mtus_lowered,
    /// Flows split: both ends are answered from here.
    flows_split,
    /// Flows that were to be split, and that an end refused or gave up before.
    split_refused,
    /// Split flows that another process had, and that could not be taken over.
    split_let_go,
    /// Packets of split flows dropped because payload memory is used up.
    split_drops_no_memory,
    /// Packets of split flows dropped because their checksum is wrong.
    split_bad_checksums,
    /// Packets other than TCP that came for clients.
    other_downlink_packets,
    /// Their bytes.
    other_downlink_bytes,
    /// Packets other than TCP that came from clients.
    other_uplink_packets,
    /// Their bytes.
    other_uplink_bytes,
    /// Of the bytes of both directions, those of QUIC: UDP to or from the server's port 443.
    quic_bytes,
    /// Packets other than TCP that waited for their turn.
    other_queued,
    /// Packets other than TCP that were dropped, because they were more than their share of a subscriber's link.
    other_dropped,
    /// Passed: not TCP.
    passed_not_tcp,
    /// Passed: seen in the middle or in one direction only.
    passed_mid_flow,
    /// Passed: table full.
    passed_table_full,
    /// Passed: TCP-MD5 or TCP-AO.
    passed_authenticated,
    /// Passed: MPTCP.
    passed_mptcp,
    /// Passed without window scaling: no room in the SYN.
    passed_no_option_room,
    /// Passed: by rule.
    passed_rule,
    /// Passed: wrong checksum.
    passed_bad_checksum,
    /// Passed: no buffer.
    passed_buffer_full,
    /// Passed: repair failed.
    passed_gave_up,
    /// Passed and not believed: numbers that are not the flow's.
    passed_unacceptable,
    /// Passed: the subscriber has more flows than is fair.
    passed_too_many_flows,
    /// Decisions of `auto`: nothing was known of the client.
    auto_unknown,
    /// Decisions: nothing spoke against the default.
    auto_ordinary,
    /// Decisions, of `full` as well: acknowledgements wait on the uplink.
    auto_late_acks,
    /// Decisions, of `full` as well: the link's buffer is too short for a bound to be of use.
    auto_short_buffer,
    /// Decisions: data is lost on a long path.
    auto_lossy_path,
    /// Decisions: repairs were needless.
    auto_needless_repairs,
    /// Decisions: the client acknowledges what it cannot have.
    auto_optimistic_acks,
    /// Decisions: the server recovers from losses as well by itself.
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

    /// Decisions of `auto` for this reason.
    pub fn decisions(&self, reason: Reason) -> u64 {
        // A copy: the counters are plain numbers.
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
            Reason::ShortBuffer => &mut self.auto_short_buffer,
            Reason::LossyPath => &mut self.auto_lossy_path,
            Reason::NeedlessRepairs => &mut self.auto_needless_repairs,
            Reason::OptimisticAcks => &mut self.auto_optimistic_acks,
            Reason::ServerRecovers => &mut self.auto_server_recovers,
        }
    }
}

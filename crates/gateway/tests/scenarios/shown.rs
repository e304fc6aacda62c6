//! The client's acknowledgements as the server sees them, packet by packet. The rules are in flow/ack_filter.rs.
//!
//! In each trace a round trip to the server takes 40 ms and one to the client 60 ms. kit/trace.rs has the notation.

use paceline_gateway::GatewayConfig;

use crate::kit::trace::{plays, plays_with, plays_without_sack};

/// Segment 5 was lost before the gateway. The server hears all that the client reports until its repair is answered.
#[test]
fn a_gap_before_the_gateway_is_shown() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         62   client lacks 5 has 6-7  -> lacks 5 has 6-7
         80   server 8                -> data 8
         101  server 5                -> data 5
         102  server 9                -> data 9
         140  client lacks 5 has 6-8  -> window 5 has 6-8
         161  client lacks 9          -> lacks 9
         162  client lacks 10         -> lacks 10",
    );
}

/// Segment 5 was lost behind the gateway.
#[test]
fn a_hole_behind_the_gateway_is_hidden() {
    plays(
        "0    server 4                -> data 4
         1    server 5                -> data 5
         2    server 6                -> data 6
         3    server 7                -> data 7
         60   client lacks 5          -> lacks 5
         62   client lacks 5 has 6    -> data 5
         63   client lacks 5 has 6-7  -> nothing
         80   server 8                -> data 8
         122  client lacks 8          -> lacks 8
         140  client lacks 9          -> lacks 9",
    );
}

/// A gap at 5 and above it a radio hole at 7. The server hears of both, and its copy of 7 is not needed.
#[test]
fn a_gap_below_a_hole_is_shown_with_it() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         3    server 8                -> data 8
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         63   client lacks 5 has 8 6  -> lacks 5 has 8 6, data 7
         101  server 5                -> data 5
         103  server 7                -> nothing
         123  client lacks 5 has 6-8  -> lacks 5 has 6-8
         161  client lacks 9          -> lacks 9",
    );
}

/// A gap at 5. The client has 7, but its report of that was lost, so 7 leaves again. A D-SACK above the gap tells that
/// the copy was needless (RFC 2883, Section 4.2). The server has sent no copy and does not hear of it.
#[test]
fn a_needless_copy_of_the_gateways_own_above_a_gap_is_hidden() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         3    server 8                -> data 8
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         63   client lacks 5 has 8 6  -> lacks 5 has 8 6, data 7
         123  client lacks 5 has 7 6-8 -> lacks 5 has 6-8",
    );
}

/// A radio hole at 5 and above it a gap at 7. Once the client has 7, the hole is hidden again.
#[test]
fn a_gap_above_a_hole_is_shown_with_it() {
    plays(
        "0    server 4                -> data 4
         1    server 5                -> data 5
         2    server 6                -> data 6
         3    server 8                -> data 8
         60   client lacks 5          -> lacks 5
         62   client lacks 5 has 6    -> lacks 5 has 6, data 5
         63   client lacks 5 has 8 6  -> lacks 5 has 8 6
         70   server 9                -> data 9
         71   server 10               -> data 10
         103  server 7                -> data 7
         104  server 5                -> nothing
         130  client lacks 5 has 8-9 6 -> window 5 has 8-9 6, data 5
         131  client lacks 5 has 8-10 6 -> lacks 5 has 8-10 6
         163  client lacks 5 has 6-10 -> nothing
         190  client lacks 11         -> lacks 11",
    );
}

/// The link fades, and the server sends its newest segment again (RFC 8985, Section 7.3). The copy passes, and so does
/// the D-SACK that tells the server that nothing was lost. A copy of an older segment, which the gateway keeps, does
/// not.
#[test]
fn a_tail_loss_probe_passes_and_is_answered() {
    plays(
        "0    server 4                -> data 4
         1    server 5                -> data 5
         2    server 6                -> data 6
         60   client lacks 5          -> lacks 5
         62   server 5                -> nothing
         64   server 6                -> data 6
         66   client lacks 7          -> lacks 7
         124  client lacks 7 has 6    -> lacks 7 has 6",
    );
}

/// Three segments overtake segment 5, but it comes before the client's answer to them. For the server nothing has
/// happened.
#[test]
fn what_was_only_overtaken_is_hidden() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         3    server 8                -> data 8
         20   server 5                -> data 5
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> nothing
         62   client lacks 5 has 6-7  -> nothing
         63   client lacks 5 has 6-8  -> nothing
         80   client lacks 9          -> lacks 9",
    );
}

/// Segment 5 comes after the client's answer. The server has heard of the gap and may have sent 5 again, so it also
/// hears the rest.
#[test]
fn what_was_overtaken_for_longer_is_shown() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         3    server 8                -> data 8
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         62   server 5                -> data 5
         63   client lacks 5 has 6-7  -> lacks 5 has 6-7
         64   client lacks 5 has 6-8  -> lacks 5 has 6-8
         122  client lacks 9          -> lacks 9",
    );
}

/// The radio link loses a segment that was overtaken before. It is a hole like any other.
#[test]
fn what_was_overtaken_and_then_lost_is_repaired_unseen() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         20   server 5                -> data 5
         30   server 8                -> data 8
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> nothing
         62   client lacks 5 has 6-7  -> nothing
         90   client lacks 5 has 6-8  -> data 5
         150  client lacks 9          -> lacks 9",
    );
}

/// The radio link loses the server's repair. The gateway sends it again, and the server still hears all, as it would
/// without a gateway.
#[test]
fn a_lost_repair_of_the_servers_is_shown() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         62   client lacks 5 has 6-7  -> lacks 5 has 6-7
         101  server 5                -> data 5
         102  server 8                -> data 8
         120  server 9                -> data 9
         162  client lacks 5 has 6-8  -> window 5 has 6-8, data 5
         180  client lacks 5 has 6-9  -> lacks 5 has 6-9
         203  server 5                -> nothing
         222  client lacks 10         -> lacks 10
         230  server 10               -> data 10
         231  server 11               -> data 11
         291  client lacks 10 has 11  -> window 10, data 10
         351  client lacks 12         -> lacks 12",
    );
}

/// The radio link loses a segment and the gateway's copy of it.
#[test]
fn a_lost_repair_of_the_gateways_own_is_hidden() {
    plays(
        "0    server 4                -> data 4
         1    server 5                -> data 5
         2    server 6                -> data 6
         60   client lacks 5          -> lacks 5
         62   client lacks 5 has 6    -> data 5
         70   server 7                -> data 7
         130  client lacks 5 has 6-7  -> window 5, data 5
         140  server 8                -> data 8
         190  client lacks 8          -> lacks 8
         200  client lacks 9          -> lacks 9",
    );
}

/// The client gets segment 5 by another way. Until then the gateway shows the gap. After that it hides holes as before.
#[test]
fn a_gap_that_is_never_filled_ends_with_the_clients_acknowledgement() {
    plays(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         62   client lacks 5 has 6-7  -> lacks 5 has 6-7
         150  client lacks 8          -> lacks 8
         151  server 8                -> data 8
         152  server 9                -> data 9
         153  server 10               -> data 10
         211  client lacks 9          -> lacks 9
         213  client lacks 9 has 10   -> data 9
         273  client lacks 11         -> lacks 11",
    );
}

/// There is no room for what fills the gap, so it passes and is not kept. The server hears of it until the client has
/// it.
#[test]
fn a_repair_that_is_not_kept_is_shown() {
    let mut config = GatewayConfig::default();
    config.limits.max_flow_buffer_bytes = 3 * 1_024;
    plays_with(
        &config,
        true,
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         3    server 5                -> data 5
         60   client lacks 5          -> lacks 5
         61   client lacks 5 has 6    -> lacks 5 has 6
         62   client lacks 5 has 6-7  -> lacks 5 has 6-7
         63   client lacks 8          -> lacks 8
         70   server 8                -> data 8
         71   server 9                -> data 9
         131  client lacks 8 has 9    -> window 8, data 8
         191  client lacks 10         -> lacks 10",
    );
}

/// Without SACK the server counts duplicates. An ACK that moves the window is no duplicate (RFC 5681, Section 2).
#[test]
fn a_gap_is_shown_without_sack_by_duplicates() {
    plays_without_sack(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 7                -> data 7
         3    server 8                -> data 8
         60   client lacks 5          -> lacks 5
         61   client lacks 5          -> lacks 5
         62   client lacks 5          -> lacks 5
         70   server 9                -> data 9
         71   server 10               -> data 10
         72   client lacks 5          -> lacks 5
         101  server 5                -> data 5
         130  client lacks 5          -> lacks 5
         131  client lacks 5          -> lacks 5
         161  client lacks 11         -> lacks 11",
    );
}

/// A server that repairs after a timeout sends everything again, in packets that also contain what the gateway keeps.
/// Only the missing part leaves.
#[test]
fn of_a_repair_across_what_is_kept_the_rest_leaves() {
    plays_without_sack(
        "0    server 4                -> data 4
         1    server 6                -> data 6
         2    server 8                -> data 8
         60   client lacks 5          -> lacks 5
         61   client lacks 5          -> lacks 5
         62   client lacks 5          -> lacks 5
         160  server 5-8              -> data 5, data 7
         220  client lacks 7          -> lacks 7
         221  client lacks 9          -> lacks 9",
    );
}

/// A second copy at the client says nothing of what is on its way. Once each needless copy counted as a segment of
/// that, and asked for another one. Over 1.1 Mbit/s and 7 ms 1,700 left again, although nothing was lost.
#[test]
fn a_duplicate_loses_nothing_that_is_on_its_way() {
    plays(
        "0    server 4                -> data 4
         60   client lacks 5          -> lacks 5
         100  server 5                -> data 5
         101  server 6                -> data 6
         140  server 4                -> data 4
         200  client lacks 5 has 4    -> window 5 has 4
         210  client lacks 6          -> lacks 6",
    );
}

/// Segment 5 was lost before the gateway, where buffers may be short. While 16 is repaired, the server does not hear
/// of the rest. Then it hears of it in steps, a quarter faster than the client reported it: eight segments in 28 ms.
/// When something is missing again, it hears of the remainder at once.
#[test]
fn what_was_hidden_is_told_in_steps_where_a_server_lost_something() {
    plays(
        "0    server 4                  -> data 4
         1    server 6                  -> data 6
         60   client lacks 5            -> lacks 5
         61   client lacks 5 has 6      -> lacks 5 has 6
         101  server 5                  -> data 5
         161  client lacks 7            -> lacks 7
         201  server 7-14               -> data 7-14
         261  client lacks 9            -> lacks 9
         266  client lacks 11           -> lacks 11
         271  client lacks 13           -> lacks 13
         276  client lacks 15           -> lacks 15
         301  server 15-24              -> data 15-24
         361  client lacks 16           -> lacks 16
         363  client lacks 16 has 17-20 -> data 16
         391  client lacks 16 has 17-24 -> nothing
         423  client lacks 25           -> lacks 18
         429  wait                      -> lacks 20
         430  server 28                 -> data 28
         435  wait                      -> lacks 22
         438  client lacks 25 has 28    -> lacks 25, lacks 25 has 28",
    );
}

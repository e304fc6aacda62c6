//! Tests of links that retransmit lost packets.

use super::*;
use crate::link_layer::LinkRetransmission;

fn repeating(limit: u8, loss: Loss) -> Link {
    link(LinkConfig {
        rate: byte_per_us(),
        delay: Delay::Constant(ms(10)),
        loss,
        link_retransmission: Some(LinkRetransmission { limit, after: ms(2) }),
        ..LinkConfig::default()
    })
}

fn lost(packet: u64, count: u64) -> Loss {
    Loss::Scripted(alloc::vec![ScriptedLoss { packet, count }])
}

#[test]
fn what_is_sent_again_is_overtaken_and_goes_before_what_waits() {
    let mut link = repeating(3, lost(1, 1));
    for number in 1..=5 {
        link.send(at_us(0), numbered(number, 1_000));
    }
    // The first packet ends at 1 ms. Its loss is known at 3 ms, when the third has been sent, so it goes before the
    // fourth.
    let arrived: Vec<(u32, u64)> = drain(&mut link).into_iter().map(|(number, at, _)| (number, at)).collect();
    assert_eq!(arrived, [(2, 12_000), (3, 13_000), (1, 14_000), (4, 15_000), (5, 16_000)]);
    let counters = link.counters();
    assert_eq!((counters.retried.packets, counters.transmitted.packets), (1, 6));
}

#[test]
fn an_idle_link_sends_again_when_it_knows() {
    let mut link = repeating(3, lost(1, 2));
    link.send(at_us(0), numbered(1, 1_000));
    // 1 + 2 + 1 + 2 + 1 ms and the delay.
    assert_eq!(drain(&mut link), [(1, 17_000, 6_000)]);
}

#[test]
fn after_the_last_attempt_it_is_gone() {
    let mut link = repeating(3, lost(1, 4));
    link.send(at_us(0), numbered(1, 1_000));
    assert_eq!(drain(&mut link), []);
    let counters = *link.counters();
    assert_eq!(
        (counters.retried.packets, counters.dropped_by_loss.packets, counters.transmitted.packets),
        (3, 1, 4)
    );
}

/// With loss p and three retransmissions, p^4 of the packets stay lost, and each packet takes (1 - p^4) / (1 - p)
/// attempts.
#[test]
fn loss_and_attempts_are_those_of_independent_trials() {
    let mut link = repeating(3, Loss::Independent(Probability::from_ppm(300_000)));
    for number in 0..20_000 {
        link.send(at_us(u64::from(number) * 2_000), numbered(number, 1_000));
    }
    let arrived = drain(&mut link).len() as f64;
    assert!((arrived / 20_000.0 - (1.0 - 0.3f64.powi(4))).abs() < 2e-3, "{arrived}");
    let attempts = link.counters().transmitted.packets as f64 / 20_000.0;
    assert!((attempts - (1.0 - 0.3f64.powi(4)) / 0.7).abs() < 0.02, "{attempts}");
}

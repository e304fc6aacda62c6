//! What can go wrong on a link, drawn from a seed: which faults there are, and how strong.

use paceline_path::random::{Probability, Random};
use paceline_path::{
    Delay, DelayStep, GilbertElliott, Jitter, LinkConfig, Loss, OutageEffect, OutageWindow, Outages,
    QueueLimit, RateProcess, RateStep, Reorder,
};
use paceline_wire::{Duration, Rate};

/// Draws a link and its faults. The faults last until `until`; after that a run goes on without them. Each fault is
/// absent from half of all links. So single faults are met as well as combinations.
pub fn draw_link(random: &mut Random, until: Duration) -> LinkConfig {
    let half = Probability::from_fraction(0.5);
    let mbps = 0.3 * 300f64.powf(random.unit());
    let delay = random.duration_up_to(Duration::from_millis(150));
    let mut link = LinkConfig {
        rate: RateProcess::Constant(Rate::from_mbps(mbps)),
        queue: QueueLimit::Packets(5 + random.below(200) as u32),
        delay: Delay::Constant(delay),
        ..LinkConfig::default()
    };
    if random.chance(half) {
        link.loss = draw_loss(random);
    }
    if random.chance(half) {
        let by = random.duration_up_to(Duration::from_millis(60));
        link.reorder = Some(Reorder { probability: Probability::from_ppm(random.below(30_000)), by });
    }
    if random.chance(half) {
        link.duplicate = Probability::from_ppm(random.below(20_000));
    }
    if random.chance(half) {
        let up_to = random.duration_up_to(Duration::from_millis(30));
        link.jitter = Some(Jitter { up_to, keep_order: random.chance(half) });
    }
    if random.chance(half) {
        link.outage = draw_outages(random, until);
    }
    if random.chance(half) {
        let at = random.duration_up_to(until);
        let later = random.duration_up_to(Duration::from_millis(600));
        link.delay = Delay::Steps(vec![
            DelayStep { at: Duration::ZERO, delay },
            DelayStep { at: at.max(Duration::from_nanos(1)), delay: later },
        ]);
    }
    if random.chance(half) {
        let at = random.duration_up_to(until).max(Duration::from_nanos(1));
        let later = Rate::from_mbps(0.3 * 300f64.powf(random.unit()));
        link.rate = RateProcess::Steps(vec![
            RateStep { at: Duration::ZERO, rate: Rate::from_mbps(mbps) },
            RateStep { at, rate: later },
        ]);
    }
    link
}

/// Returns the same link without faults. It keeps its rate, its delay and its queue.
pub fn without_faults(link: &LinkConfig) -> LinkConfig {
    LinkConfig {
        rate: link.rate.clone(),
        queue: link.queue,
        delay: link.delay.clone(),
        ..LinkConfig::default()
    }
}

fn draw_loss(random: &mut Random) -> Loss {
    let loss = Probability::from_fraction(1e-4 * 1_000f64.powf(random.unit()));
    match random.below(2) {
        0 => Loss::Independent(loss),
        _ => Loss::GilbertElliott(GilbertElliott::bursts(loss, 2 + random.below(30) as u32)),
    }
}

fn draw_outages(random: &mut Random, until: Duration) -> Outages {
    let mut windows = Vec::new();
    let mut at = Duration::ZERO;
    for _ in 0..1 + random.below(3) {
        let start = at + random.duration_up_to(until / 4) + Duration::from_millis(1);
        at = start + random.duration_up_to(Duration::from_secs(5)) + Duration::from_millis(1);
        windows.push(OutageWindow { start, end: at });
    }
    let effect = if random.below(2) == 0 { OutageEffect::Hold } else { OutageEffect::Drop };
    Outages { windows, periodic: None, effect }
}

use super::*;

fn process(loss: Loss) -> LossProcess {
    LossProcess::new(loss, Random::named(3, "loss"))
}

/// Returns the lost ones of `n` packets. The predicate tells whether the k-th packet, counted from 1, is in scope.
fn lost(process: &mut LossProcess, n: u64, in_scope: impl Fn(u64) -> bool) -> Vec<u64> {
    (1..=n)
        .filter(|k| {
            let at = Duration::from_millis(*k);
            process.loses(Candidate { at, bytes: 1_500, in_scope: in_scope(*k) })
        })
        .collect()
}

#[test]
fn independent_loss_meets_its_probability() {
    let mut process = process(Loss::Independent(Probability::from_ppm(10_000)));
    let count = lost(&mut process, 100_000, |_| true).len();
    assert!((900..1_100).contains(&count), "{count}");
}

#[test]
fn packets_out_of_scope_do_not_reshuffle_the_others() {
    let loss = Loss::Independent(Probability::from_ppm(100_000));
    let all = lost(&mut process(loss.clone()), 1_000, |_| true);
    let odd = lost(&mut process(loss), 1_000, |k| k % 2 == 1);
    assert_eq!(odd, all.into_iter().filter(|k| k % 2 == 1).collect::<Vec<_>>());
}

#[test]
fn scripted_packets_are_lost_and_no_others() {
    let script = |packet, count| ScriptedLoss { packet, count };
    let loss = Loss::Scripted(alloc::vec![script(20, 3), script(7, 1), script(21, 1)]);
    assert_eq!(lost(&mut process(loss.clone()), 1_000, |_| true), [7, 20, 21, 22]);
    // Every second packet counts.
    assert_eq!(lost(&mut process(loss), 1_000, |k| k % 2 == 0), [14, 40, 42, 44]);
}

#[test]
fn bursts_have_the_asked_mean_and_length() {
    let channel = GilbertElliott::bursts(Probability::from_ppm(20_000), 5);
    let lost = lost(&mut process(Loss::GilbertElliott(channel)), 500_000, |_| true);
    let bursts = lost.windows(2).filter(|pair| pair[1] != pair[0] + 1).count() + 1;
    let (share, length) = (lost.len() as f64 / 500_000.0, lost.len() as f64 / bursts as f64);
    assert!((share - 0.02).abs() < 0.002, "{share}");
    assert!((length - 5.0).abs() < 0.3, "{length}");
}

#[test]
fn loss_rises_with_load() {
    // 1,500 bytes per millisecond are 12 Mbit/s, beyond the table: 47 %. The first second counts as little load.
    let mut process = process(Loss::Load(LoadLoss::hspa_cell()));
    let lost = lost(&mut process, 20_000, |_| true);
    let early = lost.iter().filter(|k| **k <= 100).count();
    let late = lost.iter().filter(|k| **k > 10_000).count();
    assert!(early <= 5 && (4_500..4_900).contains(&late), "{early} {late}");
}

use proptest::prelude::*;

use super::*;

fn window() -> Duration {
    Duration::from_millis(100)
}

fn assert_as_asked(model: &TraceModel, tolerance: f64) {
    let trace = model.generate().unwrap();
    let stats = trace.rate_stats(window());
    let mean = stats.mean.as_bytes_per_sec() as f64 / model.mean.as_bytes_per_sec() as f64;
    assert!((mean - 1.0).abs() < 0.01, "mean {mean} of that asked for: {model:?}");
    let variation = stats.variation / model.variation;
    assert!((variation - 1.0).abs() < tolerance, "variation {variation} of that asked for: {model:?}");
}

#[test]
fn the_models_have_their_mean_and_variation() {
    for seed in 1..6 {
        for model in [TraceModel::hspa(), TraceModel::lte_driving(), TraceModel::five_g()] {
            assert_as_asked(&TraceModel { seed, ..model }, 0.05);
        }
    }
}

#[test]
fn a_seed_always_gives_the_same_trace() {
    let trace = TraceModel::lte_driving().generate().unwrap();
    assert_eq!(trace, TraceModel::lte_driving().generate().unwrap());
    assert_ne!(trace, TraceModel { seed: 2, ..TraceModel::lte_driving() }.generate().unwrap());
    // Pinned, because published runs must repeat on every machine and with every version of the libraries.
    let sum: u64 = trace.counts().map(|(at_ms, count)| u64::from(at_ms) * u64::from(count)).sum();
    assert_eq!((trace.opportunities(), sum), (79_999, 4_815_787_982));
}

#[test]
fn hand_overs_pause_the_link() {
    let handover = Handover {
        every: Duration::from_secs(3),
        pause_min: Duration::from_millis(200),
        pause_max: Duration::from_millis(400),
        other_cell: Probability::ONE,
    };
    let model = TraceModel { handover: Some(handover), variation: 0.5, ..TraceModel::lte_driving() };
    let pauses = model.generate().unwrap().pauses(Duration::from_millis(150));
    assert!((20..60).contains(&pauses.len()), "{} in 120 s", pauses.len());
    let longest = pauses.iter().map(|pause| pause.length.as_millis()).max().unwrap();
    // Two pauses may follow each other closely.
    assert!((300..900).contains(&longest), "{longest} ms");
}

#[test]
fn impossible_models_are_refused() {
    let refuse = |model: TraceModel| model.generate().unwrap_err();
    assert!(matches!(
        refuse(TraceModel { variation: 0.1, ..TraceModel::five_g() }),
        ConfigError::TraceVariation { lowest, .. } if lowest > 0.3
    ));
    assert_eq!(
        refuse(TraceModel { duration: Duration::from_secs(1), ..TraceModel::hspa() }),
        ConfigError::TraceDuration
    );
    assert_eq!(refuse(TraceModel { mean: Rate::ZERO, ..TraceModel::hspa() }), ConfigError::TraceMean);
    assert_eq!(refuse(TraceModel { interval_ms: 0, ..TraceModel::hspa() }), ConfigError::TraceSchedule);
    let every_zero =
        TraceModel::hspa().handover.map(|handover| Handover { every: Duration::ZERO, ..handover });
    assert_eq!(refuse(TraceModel { handover: every_zero, ..TraceModel::hspa() }), ConfigError::TraceHandover);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn mean_and_variation_are_as_asked(
        mbps in 2.0f64..100.0,
        variation in 0.35f64..1.0,
        correlation_ms in 300u64..20_000,
        seconds in 30u64..120,
        seed: u64,
    ) {
        let model = TraceModel {
            mean: Rate::from_mbps(mbps),
            variation,
            correlation: Duration::from_millis(correlation_ms),
            duration: Duration::from_secs(seconds),
            seed,
            handover: None,
            ..TraceModel::lte_driving()
        };
        assert_as_asked(&model, 0.10);
    }
}

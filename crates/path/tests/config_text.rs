//! Links as written in scenario files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use paceline_path::random::Probability;
use paceline_path::{
    Aqm, CodelConfig, Delay, DelayStep, GilbertElliott, Handover, Jitter, LinkConfig, LinkRetransmission,
    LoadLoss, LoadPoint, Loss, LossScope, OutageEffect, OutageWindow, Outages, PeriodicOutage, Policer,
    QueueLimit, RateProcess, RateSource, RateStep, Reorder, ScriptedLoss, TraceModel,
};
use paceline_wire::{Duration, Rate};

type Source = LinkConfig<RateSource>;

fn read(text: &str) -> Source {
    toml::from_str(text).unwrap()
}

fn error(text: &str) -> String {
    toml::from_str::<Source>(text).unwrap_err().to_string()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_sec(mbit * 1_000_000)
}

#[test]
fn nothing_written_is_a_wire() {
    assert_eq!(read(""), Source::default());
}

#[test]
fn a_whole_link_is_read() {
    let config = read(
        r#"
        rate = "7.2mbit"
        framing = "15b"
        queue = "300kb"
        aqm = { name = "codel", target = "10ms", ecn = true }
        policer = { rate = "10mbit", burst = "100kb" }
        delay = "50ms"
        jitter = { up-to = "5ms" }
        loss = { independent = "0.6%" }
        loss-on = "originals"
        link-retransmission = { limit = 3, after = "20ms" }
        reorder = { probability = "1%", by = "10ms" }
        duplicate = "0.5%"
        hold-out-of-order = true
        outage = { periodic = { first = "5s", every = "10s", length = "1s" }, effect = "drop" }
        "#,
    );
    let expected = LinkConfig {
        rate: RateSource::Constant(Rate::from_bytes_per_sec(900_000)),
        framing_bytes: 15,
        queue: QueueLimit::Bytes(300_000),
        aqm: Aqm::Codel(CodelConfig { target: ms(10), interval: ms(100), ecn: true }),
        policer: Some(Policer { rate: mbit(10), burst_bytes: 100_000 }),
        delay: Delay::Constant(ms(50)),
        jitter: Some(Jitter { up_to: ms(5), keep_order: true }),
        loss: Loss::Independent(Probability::from_ppm(6_000)),
        loss_on: LossScope::Originals,
        link_retransmission: Some(LinkRetransmission { limit: 3, after: ms(20) }),
        reorder: Some(Reorder { probability: Probability::from_ppm(10_000), by: ms(10) }),
        duplicate: Probability::from_ppm(5_000),
        hold_out_of_order: true,
        outage: Outages {
            windows: Vec::new(),
            periodic: Some(PeriodicOutage { first: ms(5_000), every: ms(10_000), length: ms(1_000) }),
            effect: OutageEffect::Drop,
        },
    };
    assert_eq!(config, expected);
}

#[test]
fn disciplines_are_read_by_name_or_as_tables() {
    assert_eq!(read("").aqm, Aqm::DropTail);
    for name in ["drop-tail", "codel", "fq-codel", "pie", "red", "abc"] {
        let by_name = read(&format!("aqm = \"{name}\"")).aqm;
        assert_eq!(Some(by_name), Aqm::named(name));
        assert_eq!(read(&format!("aqm = {{ name = \"{name}\" }}")).aqm, by_name);
    }
    let Aqm::FqCodel(fq) = read(r#"aqm = { name = "fq-codel", queues = 16, quantum = "300b" }"#).aqm else {
        panic!("no FQ-CoDel");
    };
    assert_eq!((fq.queues, fq.quantum, fq.target), (16, 300, ms(5)));
    let Aqm::Red(red) = read(r#"aqm = { name = "red", min = "5%", max-p = "10%", gentle = false }"#).aqm
    else {
        panic!("no RED");
    };
    assert_eq!(
        (red.min, red.max_p, red.gentle),
        (Probability::from_ppm(50_000), Probability::from_ppm(100_000), false)
    );
}

#[test]
fn other_disciplines_are_refused() {
    let text = error("aqm = \"fifo\"");
    assert!(
        text.contains("`fifo`: write \"codel\", \"fq-codel\", \"pie\", \"red\" or \"drop-tail\""),
        "{text}"
    );
    let text = error(r#"aqm = { name = "cake" }"#);
    assert!(
        text.contains(
            "unknown variant `cake`, expected one of `drop-tail`, `codel`, `fq-codel`, `pie`, `red`"
        ),
        "{text}"
    );
    let text = error(r#"aqm = { name = "pie", interval = "5ms" }"#);
    assert!(
        text.contains("unknown field `interval`, expected one of `target`, `update`, `burst`, `ecn`"),
        "{text}"
    );
    let text = error(r#"aqm = { target = "5ms" }"#);
    assert!(text.contains("missing field `name`"), "{text}");
    let text = error(r#"policer = { rate = "5mbit" }"#);
    assert!(text.contains("missing field `burst`"), "{text}");
}

#[test]
fn steps_and_scripts_are_read() {
    let config = read(
        r#"
        rate = { steps = [{ at = "0s", rate = "20mbit" }, { at = "10s", rate = "5mbit" }] }
        delay = { steps = [{ at = "0s", delay = "20ms" }, { at = "10s", delay = "40ms" }] }
        queue = "200packets"
        loss = { scripted = [{ packet = 7 }, { packet = 20, count = 3 }] }
        outage = { windows = [{ start = "3s", end = "4s" }] }
        "#,
    );
    assert_eq!(
        config.rate,
        RateSource::Steps(vec![
            RateStep { at: ms(0), rate: mbit(20) },
            RateStep { at: ms(10_000), rate: mbit(5) }
        ])
    );
    assert_eq!(
        config.delay,
        Delay::Steps(vec![
            DelayStep { at: ms(0), delay: ms(20) },
            DelayStep { at: ms(10_000), delay: ms(40) }
        ])
    );
    assert_eq!(config.queue, QueueLimit::Packets(200));
    assert_eq!(
        config.loss,
        Loss::Scripted(vec![ScriptedLoss { packet: 7, count: 1 }, ScriptedLoss { packet: 20, count: 3 }])
    );
    assert_eq!(config.outage.windows, [OutageWindow { start: ms(3_000), end: ms(4_000) }]);
    assert_eq!(config.outage.effect, OutageEffect::Hold);
}

#[test]
fn channels_and_load_are_read() {
    let channel = read(r#"loss = { gilbert-elliott = { good-to-bad = "1%", bad-to-good = "20%" } }"#);
    let expected = GilbertElliott {
        good_to_bad: Probability::from_ppm(10_000),
        bad_to_good: Probability::from_ppm(200_000),
        loss_in_good: Probability::ZERO,
        loss_in_bad: Probability::ONE,
    };
    assert_eq!(channel.loss, Loss::GilbertElliott(expected));
    let load = read(
        r#"loss = { load = { table = [{ rate = "3mbit", loss = "1%" }, { rate = "7mbit", loss = "47%" }] } }"#,
    );
    let point =
        |rate, percent: u64| LoadPoint { rate: mbit(rate), loss: Probability::from_ppm(percent * 10_000) };
    assert_eq!(load.loss, Loss::Load(LoadLoss { window: ms(1_000), table: vec![point(3, 1), point(7, 47)] }));
}

#[test]
fn traces_come_from_files_or_models() {
    let file = read(r#"rate = { trace = { file = "train.down", gaps = "hold" } }"#);
    let resolved = file.resolve(|name| {
        assert_eq!(name, "train.down");
        Ok::<_, String>("0\n10\n".to_string())
    });
    let RateProcess::Opportunities(trace) = resolved.unwrap().rate else { panic!("a trace") };
    assert_eq!(trace.opportunities(), 2);

    let broken =
        read(r#"rate = { trace = { file = "train.down" } }"#).resolve(|_| Ok::<_, String>("0\nx\n".into()));
    assert_eq!(
        broken.unwrap_err().to_string(),
        "train.down: line 2: `x` is not a whole number of milliseconds"
    );

    let generated = read(
        r#"
        [rate.generate]
        model = "5g"
        mean = "100mbit"
        variation = "90%"
        duration = "30s"
        handover = { every = "5s", pause-min = "50ms", pause-max = "100ms" }
        "#,
    );
    let handover =
        Handover { every: ms(5_000), pause_min: ms(50), pause_max: ms(100), other_cell: Probability::ONE };
    let model = TraceModel {
        mean: mbit(100),
        variation: 0.9,
        duration: ms(30_000),
        handover: Some(handover),
        ..TraceModel::five_g()
    };
    assert_eq!(generated.rate, RateSource::Generate(model));
    let resolved = generated.resolve(|_| Err("no file is read")).unwrap();
    assert_eq!(resolved.check(), Ok(()));
}

#[test]
fn mistakes_are_refused_with_their_line() {
    let unknown = error("rate = \"1mbit\"\nqeue = \"3kb\"\n");
    assert!(unknown.contains("line 2") && unknown.contains("unknown field `qeue`"), "{unknown}");
    let nested = error("\n[rate.generate]\nmodel = \"hspa\"\nmeen = \"1mbit\"\n");
    assert!(nested.contains("unknown field `meen`"), "{nested}");
    assert!(error("rate = 7.2").contains("a rate such as \"7.2mbit\""));
    assert!(error("rate = \"7.2\"").contains("`7.2`: write a rate such as"));
    assert!(error("rate = { stairs = [] }").contains("unknown variant `stairs`"));
    assert!(error("queue = \"200\"").contains("a number such as \"200packets\""));
    assert!(error("loss = { independent = 0.006 }").contains("line 1"));
}

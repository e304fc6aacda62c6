//! Numbers that stand in the text beside its figures, and the run that answers each.

use serde_json::json;

use super::cells::{Measure, Published};

/// Those that belong to a figure.
pub(super) fn published() -> Vec<Published> {
    let rows = FIGURES.iter().map(|row| Published {
        table: json!(format!("Fig. {}", row.figure)),
        figure: Some(row.figure),
        case: row.case.into(),
        metric: row.metric,
        accelerator: if row.scenario == "datagrams" || row.variant.starts_with("unaccelerated") {
            "without"
        } else {
            "with"
        },
        sending_rate_mbps: None,
        published: row.published,
        scenario: row.scenario,
        variant: row.variant,
        measure: row.measure,
        note: row.note,
    });
    rows.collect()
}

/// A number of the text.
struct InText {
    figure: u8,
    case: &'static str,
    metric: &'static str,
    published: Option<f64>,
    scenario: &'static str,
    variant: &'static str,
    measure: Measure,
    note: &'static str,
}

const GOODPUT: Measure = Measure::Metric("goodput_mbps", 1.0);
const STEPS: InText = InText {
    figure: 0,
    case: "",
    metric: "throughput_mbps",
    published: None,
    scenario: "steps",
    variant: "",
    measure: GOODPUT,
    note: "",
};
const BLACKOUT: InText = InText {
    metric: "blackout_s",
    measure: Measure::Metric("longest_gap_s", 1.0),
    note: "the longest stretch with less than a tenth of the link; published: more than that. It lasts until all that the client \
           discarded is repaired, a packet in a round trip or a timeout: the server's timers decide",
    ..STEPS
};
const BUFFER: InText = InText {
    figure: 25,
    scenario: "load",
    note: "read off no figure: only 17 KB and 192 KB are in the text; losses as a function of load are chosen, see the scenario",
    ..STEPS
};

const FIGURES: [InText; 23] = [
    InText {
        figure: 4,
        case: "17 KB window",
        published: Some(1.41),
        variant: "unaccelerated,loss=0%",
        ..STEPS
    },
    InText {
        figure: 5,
        case: "largest congestion window",
        metric: "cwnd_mb",
        published: Some(3.0),
        variant: "window,loss=0%",
        measure: Measure::LargestWindow,
        ..STEPS
    },
    InText {
        figure: 5,
        case: "first repair",
        metric: "time_s",
        published: Some(8.49),
        variant: "window,loss=0%",
        measure: Measure::FirstRepair,
        note: "published: when duplicate ACKs begin; the queue of netem is not said, 1,000 packets are its default",
        ..STEPS
    },
    InText { figure: 6, case: "window alone", published: Some(600.0), variant: "window,loss=0%", ..BLACKOUT },
    InText {
        figure: 8,
        case: "window and schedule",
        published: Some(6.71),
        variant: "schedule,loss=0%",
        note: "payload; published without: 1.34",
        ..STEPS
    },
    InText {
        figure: 8,
        case: "paceline's default",
        published: Some(6.71),
        variant: "accelerated,loss=0%",
        note: "with a sized window in place of 10 MB",
        ..STEPS
    },
    InText {
        figure: 9,
        case: "window and schedule",
        published: Some(400.0),
        variant: "schedule,loss=0.01%",
        ..BLACKOUT
    },
    InText {
        figure: 13,
        case: "and proactive retransmission",
        metric: "blackout_s",
        variant: "proactive,loss=0.01%",
        measure: Measure::Metric("longest_gap_s", 1.0),
        note: "published: none",
        ..STEPS
    },
    InText { figure: 13, case: "and proactive retransmission", variant: "proactive,loss=0.01%", ..STEPS },
    InText {
        figure: 15,
        case: "timeouts without modulation",
        metric: "timeouts",
        scenario: "rtt-modulation",
        variant: "accelerated,modulation=none,server=rto-20ms",
        measure: Measure::Metric("timeouts", 1.0),
        note: "published: a loss leads to one",
        ..STEPS
    },
    InText {
        figure: 15,
        case: "timeouts with modulation",
        metric: "timeouts",
        published: Some(0.0),
        scenario: "rtt-modulation",
        variant: "accelerated,modulation=modulated,server=rto-20ms",
        measure: Measure::Metric("timeouts", 1.0),
        ..STEPS
    },
    InText {
        figure: 22,
        case: "weight 2 to weight 1, 20 to 40 s",
        metric: "ratio",
        published: Some(2.0001),
        scenario: "fairness",
        variant: "accelerated,weights",
        measure: Measure::Ratio("weight-2", "weight-1", 20.0, 40.0),
        ..STEPS
    },
    InText {
        figure: 22,
        case: "weight 3 to weight 1, 20 to 40 s",
        metric: "ratio",
        published: Some(3.0003),
        scenario: "fairness",
        variant: "accelerated,weights",
        measure: Measure::Ratio("weight-3", "weight-1", 20.0, 40.0),
        ..STEPS
    },
    InText {
        figure: 24,
        case: "3 Mbit/s",
        metric: "loss_fraction",
        published: Some(0.006),
        scenario: "datagrams",
        variant: "fig-24,rate=3mbit",
        measure: Measure::Missing(3.0),
        note: "a link of 5.4 Mbit/s with 0.6 % loss below it and a queue of 60 packets, which is chosen",
    },
    InText {
        figure: 24,
        case: "6.5 Mbit/s",
        metric: "loss_fraction",
        scenario: "datagrams",
        variant: "fig-24,rate=6.5mbit",
        measure: Measure::Missing(6.5),
        note: "above the limit of 5.4 Mbit/s; the figure's value is not in the text",
        ..STEPS
    },
    InText { case: "17 KB", published: Some(1.62), variant: "unaccelerated,client=17kb", ..BUFFER },
    InText { case: "32 KB", variant: "unaccelerated,client=32kb", ..BUFFER },
    InText { case: "64 KB", variant: "unaccelerated,client=64kb", ..BUFFER },
    InText { case: "128 KB", variant: "unaccelerated,client=128kb", ..BUFFER },
    InText { case: "192 KB", published: Some(3.80), variant: "unaccelerated,client=192kb", ..BUFFER },
    InText { case: "17 KB", published: Some(4.03), variant: "accelerated,client=17kb", ..BUFFER },
    InText { case: "192 KB", variant: "accelerated,client=192kb", ..BUFFER },
    InText {
        case: "192 KB, losses independent of load",
        published: Some(3.80),
        scenario: "receiver-buffers",
        variant: "unaccelerated,client=192kb",
        note: "0.6 % of all packets leave CUBIC less than published, on Linux 6.1 as here: the losses that TCP saw were fewer",
        ..BUFFER
    },
];

//! The figures: which runs they show, what the text leaves open, and the plots.

use std::path::Path;

use serde_json::{Value, json};

use super::scenarios::{Outcome, Outcomes, Wanted};
use super::series::{Series, panel};
use crate::error::Result;
use crate::plot::{self, Panel};
use crate::reproduce::report::{Section, number};
use crate::result::values;

/// One figure, or several that show the same runs.
#[derive(Debug)]
pub(super) struct Figure {
    pub(super) numbers: &'static [u8],
    name: &'static str,
    title: &'static str,
    scenario: &'static str,
    /// Plotted one after the other.
    variants: &'static [&'static str],
    /// What is open in the text, what was chosen, what is seen.
    text: &'static str,
    panels: Option<fn(&Series) -> Vec<Panel>>,
}

impl Figure {
    pub(super) fn want(&self, wanted: &mut Wanted) {
        self.variants.iter().for_each(|variant| wanted.add(self.scenario, variant));
    }

    /// The figure as a table of its runs, and its plots in `out`.
    pub(super) fn section(&self, outcomes: &Outcomes, out: &Path) -> Result<Section> {
        let (mut rows, mut files) = (Vec::new(), Vec::new());
        if let Some(outcome) = outcomes.get(self.scenario) {
            for (number, variant) in self.variants.iter().enumerate() {
                rows.extend(row(outcome, variant));
                if let (Some(panels), Some(series)) = (self.panels, outcome.files(variant)) {
                    let file = format!("accelerator-{}-{}.svg", self.name, number + 1);
                    let title = format!("{}: {variant}", self.title);
                    plot::write(&out.join(&file), &title, &panels(&Series::read(&series)?))?;
                    files.push(file);
                }
            }
        }
        Ok(Section {
            name: self.name,
            title: self.title.into(),
            text: format!("Scenario `{}`. {}", self.scenario, self.text),
            columns: COLUMNS.to_vec(),
            rows,
            files,
        })
    }
}

const COLUMNS: [&str; 7] =
    ["variant", "runs", "goodput Mbit/s", "RTT p50 ms", "path delay p95 ms", "longest gap s", "timeouts"];

fn row(outcome: &Outcome, variant: &str) -> Option<Vec<Value>> {
    let mean = |metric: &str, digits: i32| {
        let found: Vec<f64> = outcome.of(variant).flat_map(|run| values(run, metric, None)).collect();
        number(found.iter().sum::<f64>() / found.len() as f64, digits)
    };
    let runs = outcome.of(variant).count();
    (runs > 0).then(|| {
        vec![
            json!(variant),
            json!(runs),
            mean("goodput_mbps", 3),
            mean("rtt_ms.p50", 1),
            mean("path_delay_ms.p95", 1),
            mean("longest_gap_s", 1),
            mean("timeouts", 1),
        ]
    })
}

fn windows(series: &Series, until_s: f64) -> Panel {
    panel(
        "Windows (KB)",
        vec![
            ("AWnd shown to the sender", series.of_sender(until_s, |row| row.peer_window_bytes / 1e3)),
            ("CWnd", series.of_sender(until_s, |row| row.cwnd_segments * SEGMENT_BYTES / 1e3)),
        ],
    )
}

fn cwnd(series: &Series, until_s: f64) -> Panel {
    let cwnd = series.of_sender(until_s, |row| row.cwnd_segments * SEGMENT_BYTES / 1e3);
    panel("CWnd (KB)", vec![("CWnd", cwnd)])
}

fn rates(series: &Series, bin_s: f64, until_s: f64) -> Panel {
    panel(
        "Rates (Mbit/s)",
        vec![
            ("throughput", series.throughput("download", bin_s, until_s)),
            ("sending rate", series.link_rate("wired_down", bin_s, until_s)),
        ],
    )
}

fn fig_4(series: &Series) -> Vec<Panel> {
    vec![windows(series, 20.0), rates(series, 0.5, 20.0)]
}

fn fig_5(series: &Series) -> Vec<Panel> {
    vec![cwnd(series, 15.0), rates(series, 0.5, 15.0)]
}

fn whole(series: &Series) -> Vec<Panel> {
    vec![cwnd(series, WHOLE_S), rates(series, 5.0, WHOLE_S)]
}

fn fig_8(series: &Series) -> Vec<Panel> {
    let until_s = 60.0;
    let gateway = panel(
        "Gateway (KB)",
        vec![
            ("virtual AWnd", series.of_gateway(until_s, |row| row.virtual_window_bytes / 1e3)),
            ("buffer", series.of_gateway(until_s, |row| row.waiting_bytes / 1e3)),
            ("client's AWnd", series.of_gateway(until_s, |row| row.client_window_bytes / 1e3)),
        ],
    );
    vec![cwnd(series, until_s), gateway, rates(series, 0.5, until_s)]
}

fn fig_13(series: &Series) -> Vec<Panel> {
    vec![cwnd(series, 60.0), rates(series, 0.5, 60.0)]
}

fn modulation(series: &Series, until_s: f64) -> Vec<Panel> {
    let times = panel(
        "Of the sender (ms)",
        vec![
            ("RTO", series.of_sender(until_s, |row| row.rto_ms)),
            ("RTT", series.of_sender(until_s, |row| row.rtt_ms)),
        ],
    );
    let delay = series.of_gateway(until_s, |row| row.ack_delay_ms);
    vec![times, panel("Delay added to ACKs (ms)", vec![("D", delay)]), cwnd(series, until_s)]
}

fn fig_15(series: &Series) -> Vec<Panel> {
    modulation(series, 20.0)
}

fn shares(series: &Series, flows: &[&str], until_s: f64) -> Vec<Panel> {
    let of_bin = |bin_s: f64, title: &str| {
        let lines = flows.iter().map(|flow| (*flow, series.throughput(flow, bin_s, until_s)));
        panel(title, lines.collect())
    };
    vec![of_bin(1.0, "Over 1 s (Mbit/s)"), of_bin(0.1, "Over 100 ms (Mbit/s)")]
}

fn fig_18(series: &Series) -> Vec<Panel> {
    shares(series, &["first", "second"], 45.0)
}

fn fig_22(series: &Series) -> Vec<Panel> {
    shares(series, &["weight-1", "weight-2", "weight-3"], 60.0)
}

const SEGMENT_BYTES: f64 = 1_460.0;
const WHOLE_S: f64 = 700.0;

pub(super) const ALL: [Figure; 12] = [
    Figure {
        numbers: &[4],
        name: "fig-4",
        title: "Fig. 4: without accelerator",
        scenario: "steps",
        variants: &["unaccelerated,loss=0%"],
        text: "As published: the window of 17 KB is the limit, CWnd stops soon after it has passed it.",
        panels: Some(fig_4),
    },
    Figure {
        numbers: &[5],
        name: "fig-5",
        title: "Fig. 5: the window alone, first 15 s",
        scenario: "steps",
        variants: &["window,loss=0%"],
        text: "Not said: the queue of the emulator (chosen: 1,000 packets, netem's default), whether slow start ended early \
               (chosen: not, because the published CWnd reaches 3 MB), SACK (chosen: none, because the sender repairs one packet \
               in a round trip). With today's endpoints there is no blackout, see the scenario `blackout`.",
        panels: Some(fig_5),
    },
    Figure {
        numbers: &[6],
        name: "fig-6",
        title: "Fig. 6: the window alone",
        scenario: "steps",
        variants: &["window,loss=0%"],
        text: "The same run as Fig. 5, whole: what the client had to discard is repaired one packet in a round trip.",
        panels: Some(whole),
    },
    Figure {
        numbers: &[8],
        name: "fig-8",
        title: "Fig. 8: window and schedule",
        scenario: "steps",
        variants: &["schedule,loss=0%", "accelerated,loss=0%"],
        text: "Not said: the rate between server and accelerator (chosen: no limit, so the buffer of 10 MB is full sooner than the \
               published 25 s), k of Eqs. (3) and (5) (16 ACKs). The second plot is Paceline's default, whose window is sized.",
        panels: Some(fig_8),
    },
    Figure {
        numbers: &[9],
        name: "fig-9",
        title: "Fig. 9: window and schedule, 0.01 % loss",
        scenario: "steps",
        variants: &["schedule,loss=0.01%"],
        text: "Where the losses fall is drawn; hosts as in Fig. 5.",
        panels: Some(whole),
    },
    Figure {
        numbers: &[13],
        name: "fig-13",
        title: "Fig. 13: and proactive retransmission, 0.01 % loss",
        scenario: "steps",
        variants: &["proactive,loss=0.01%", "thesis,loss=0.01%"],
        text: "Published: two losses pass unnoticed, the third leads to a timeout of the server, which Linux's minimum of 200 ms \
               prevents as long as a round trip is shorter; the scenario `rtt-modulation` shows it with a minimum of 20 ms. The \
               second plot adds RTT modulation.",
        panels: Some(fig_13),
    },
    Figure {
        numbers: &[15, 16],
        name: "fig-15",
        title: "Figs. 15, 16: RTT modulation",
        scenario: "rtt-modulation",
        variants: &[
            "accelerated,modulation=none,server=rto-20ms",
            "accelerated,modulation=modulated,server=rto-20ms",
        ],
        text: "Not said: L (chosen: 1), the server's minimum timeout (chosen: 20 ms, as Eq. (13) has none). Lost are every 5,000th \
               packet and its first repair. The first plot is without modulation, the second with it: the delay D grows until the \
               timeout leaves room for a repair.",
        panels: Some(fig_15),
    },
    Figure {
        numbers: &[18, 19, 20, 21],
        name: "fig-18",
        title: "Figs. 18 to 21: two flows of 16 MB, 5 s apart",
        scenario: "fairness",
        variants: &["unaccelerated,equal", "accelerated,equal"],
        text: "Not said: the queue (chosen: 1,000 packets). The first plot is Figs. 18 (1 s) and 20 (100 ms), the second Figs. 19 \
               and 21.",
        panels: Some(fig_18),
    },
    Figure {
        numbers: &[22],
        name: "fig-22",
        title: "Fig. 22: weights 1, 2 and 3",
        scenario: "fairness",
        variants: &["accelerated,weights"],
        text: "Clients with 17 KB, as in the text's other experiments.",
        panels: Some(fig_22),
    },
    Figure {
        numbers: &[24],
        name: "fig-24",
        title: "Fig. 24: losses of datagrams",
        scenario: "datagrams",
        variants: &["fig-24"],
        text: "A link of 5.4 Mbit/s that loses 0.6 % of what it carries, and beyond its rate what its queue does not hold; \
               the measured network lost more below its rate, too. See the cells.",
        panels: None,
    },
    Figure {
        numbers: &[25],
        name: "fig-25",
        title: "Fig. 25: client buffers",
        scenario: "load",
        variants: &[
            "unaccelerated,client=17kb",
            "unaccelerated,client=32kb",
            "unaccelerated,client=64kb",
            "unaccelerated,client=128kb",
            "unaccelerated,client=192kb",
            "accelerated,client=17kb",
            "accelerated,client=192kb",
        ],
        text: "With losses that grow with the load (chosen, see the scenario), because independent losses of 0.6 % do not allow what \
               was published with 192 KB; `receiver-buffers` has those.",
        panels: None,
    },
    Figure {
        numbers: &[],
        name: "sender",
        title: "Section 9.4: the schedule in the sending endpoint",
        scenario: "sender",
        variants: &[
            "unaccelerated,loss=0%",
            "sender,loss=0%",
            "suppressing,loss=0%",
            "gateway,loss=0%",
            "unaccelerated,loss=0.1%",
            "sender,loss=0.1%",
            "suppressing,loss=0.1%",
            "gateway,loss=0.1%",
            "unaccelerated,loss=0.6%",
            "sender,loss=0.6%",
            "suppressing,loss=0.6%",
            "gateway,loss=0.6%",
        ],
        text: "A client with 17 KB of window. `sender` counts with what the client will have freed when data arrives (Eqs. (3), \
               (5), (10)), as the gateway does, and so passes the offered window. `suppressing` keeps losses that \
               it repairs in time from its congestion control as well. Neither can repair from the edge of the radio link: with losses \
               the gateway is ahead. Beyond RFC 9293 and RFC 5681; off by default.",
        panels: None,
    },
];

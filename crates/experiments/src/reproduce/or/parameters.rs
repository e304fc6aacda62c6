//! Table 3: the parameters of the experiments, which are no cells.

use crate::reproduce::report::Section;

pub(super) fn section(runs: u64) -> Section {
    let runs = runs.to_string();
    let rows = [
        ("U, propagation delay", "50, 100, 150, 200 ms", "the same, half of it in each direction"),
        ("L, link buffer", "4.3 MB", "3,000 packets"),
        ("P, period", "200 s", "200 s, slow start included"),
        ("C, rate", "20, 100 Mbit/s", "20, 100 Mbit/s; 200 to 1,000 in Table 15"),
        ("S, packet", "1,515 bytes", "1,500 bytes and 15 of framing that the link charges; 1,448 of payload"),
        (
            "AW, receive window",
            "C x U",
            "180 segments at 20 Mbit/s and 100 ms, as the tables imply, in proportion elsewhere",
        ),
        ("runs", "10", &runs),
        (
            "loss",
            "0.01, 0.05, 0.1 %",
            "the same; 0.5 % in Table 14; 15 s between bursts in Tables 1, 2, 4, 5",
        ),
    ];
    Section {
        name: "table-3",
        title: "Table 3: parameters".into(),
        text: "What the text says, and what is simulated. Where the loss varies the delay is 100 ms, where the delay varies the loss is 0.1 %."
            .into(),
        columns: vec!["parameter", "published", "ours"],
        rows: rows.map(|(what, published, ours)| vec![what.into(), published.into(), ours.into()]).to_vec(),
        files: Vec::new(),
    }
}

//! docs/evidence/compare.md: every sender, receiver and gateway over recorded links, from the results of
//! scripts/compare-traces in results/compare.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

const RESULTS: &str = "results/compare";
const REPORT: &str = "docs/evidence/compare.md";
const PLOTS: &str = "docs/evidence/compare";
/// Traces that are shown with a plot: 3G and LTE on the road, and a link of a fixed place.
const TYPICAL: [&str; 3] = ["umts-driving", "lte-driving", "nyc-home"];

/// The gateways, in the order of the columns.
const GATEWAYS: [&str; 4] = ["none", "gateway", "gateway-drwa", "gateway-split"];

const INTRODUCTION: &str = include_str!("../pages/compare.txt");

#[derive(Deserialize)]
struct Compared {
    schemes: Vec<Scheme>,
}

#[derive(Clone, Deserialize)]
struct Scheme {
    sender: String,
    receiver: String,
    gateway: String,
    throughput_mbps: f64,
    delay_ms: Delay,
    retransmitted_share: f64,
}

#[derive(Clone, Deserialize)]
struct Delay {
    p95: Option<f64>,
}

/// A scheme's results over all traces.
struct Overall {
    /// Sender, receiver, gateway.
    name: [String; 3],
    /// Mean share of each trace's highest throughput.
    share: f64,
    /// Geometric mean of p95, in milliseconds.
    delay_ms: f64,
}

/// Writes the page, and copies its plots.
pub(crate) fn write(root: &Path) -> Result<Vec<String>, String> {
    let mut traces: Vec<(String, Vec<Scheme>)> = Vec::new();
    let folder = std::fs::read_dir(root.join(RESULTS)).map_err(|error| format!("{RESULTS}: {error}"))?;
    for name in folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        let file = format!("{RESULTS}/{name}/compare.json");
        if root.join(&file).exists() {
            let compared: Compared = crate::read_json(root, &file)?;
            traces.push((name, compared.schemes));
        }
    }
    traces.sort_by(|a, b| a.0.cmp(&b.0));
    let mut page = String::from(INTRODUCTION);
    let overall = overall(&traces);
    write_in_short(&mut page, &overall);
    write_overall(&mut page, &overall, traces.len());
    write_matrices(&mut page, &overall);
    write_traces(&mut page, &traces);
    for name in TYPICAL {
        if let Some((_, schemes)) = traces.iter().find(|(trace, _)| trace == name) {
            write_typical(&mut page, name, schemes);
            let plot = format!("{name}.svg");
            std::fs::create_dir_all(root.join(PLOTS)).map_err(|error| format!("{PLOTS}: {error}"))?;
            std::fs::copy(
                root.join(RESULTS).join(name).join("throughput-delay.svg"),
                root.join(PLOTS).join(&plot),
            )
            .map_err(|error| format!("{PLOTS}/{plot}: {error}"))?;
        }
    }
    let origin = crate::seal::Origin::of_folder(root, &root.join(RESULTS));
    crate::write(root, REPORT, &crate::seal::sealed(&page, &origin))?;
    Ok(Vec::new())
}

impl Scheme {
    fn name(&self) -> [String; 3] {
        [self.sender.clone(), self.receiver.clone(), self.gateway.clone()]
    }

    fn delay_ms(&self) -> f64 {
        // A delay below one packet's time counts as 1 ms.
        self.delay_ms.p95.unwrap_or(0.0).max(1.0)
    }

    fn row(&self) -> String {
        let Scheme { sender, receiver, gateway, throughput_mbps, retransmitted_share, .. } = self;
        let (delay_ms, resent) = (self.delay_ms(), retransmitted_share * 100.0);
        format!("| {sender} | {receiver} | {gateway} | {throughput_mbps:.2} | {delay_ms:.0} | {resent:.2} |")
    }
}

fn overall(traces: &[(String, Vec<Scheme>)]) -> Vec<Overall> {
    let mut sums: BTreeMap<[String; 3], (f64, f64, usize)> = BTreeMap::new();
    for (_, schemes) in traces {
        let most = schemes.iter().map(|scheme| scheme.throughput_mbps).fold(0.0, f64::max);
        for scheme in schemes {
            let sum = sums.entry(scheme.name()).or_default();
            sum.0 += scheme.throughput_mbps / most;
            sum.1 += scheme.delay_ms().ln();
            sum.2 += 1;
        }
    }
    let everywhere = sums.into_iter().filter(|(_, (.., count))| *count == traces.len());
    everywhere
        .map(|(name, (share, delay, count))| Overall {
            name,
            share: share / count as f64,
            delay_ms: (delay / count as f64).exp(),
        })
        .collect()
}

fn is_undominated(place: (f64, f64), others: impl Iterator<Item = (f64, f64)>) -> bool {
    !others.into_iter().any(|other| other != place && other.0 >= place.0 && other.1 <= place.1)
}

fn write_overall(page: &mut String, overall: &[Overall], traces: usize) {
    let _ = write!(
        page,
        "\n## Over all {traces} traces\n\nSchemes that no other one betters in both: share of the highest throughput of each trace, mean; delay, \
         geometric mean.\n\n| sender | receiver | gateway | throughput, % of the highest | delay, ms |\n|---|---|---|---:|---:|\n"
    );
    let place = |one: &Overall| (one.share, one.delay_ms);
    let mut best: Vec<&Overall> =
        overall.iter().filter(|one| is_undominated(place(one), overall.iter().map(place))).collect();
    best.sort_by(|a, b| b.share.total_cmp(&a.share));
    // Senders with equal figures share a row.
    let mut rows: Vec<(String, String)> = Vec::new();
    for one in best {
        let [sender, receiver, gateway] = &one.name;
        let figures = format!("{receiver} | {gateway} | {:.1} | {:.0}", one.share * 100.0, one.delay_ms);
        match rows.iter_mut().find(|(_, same)| *same == figures) {
            Some((senders, _)) => *senders += &format!(", {sender}"),
            None => rows.push((sender.clone(), figures)),
        }
    }
    for (senders, figures) in rows {
        let _ = writeln!(page, "| {senders} | {figures} |");
    }
}

/// Writes what a gateway changes for present hosts.
fn write_in_short(page: &mut String, overall: &[Overall]) {
    let of = |gateway: &str| {
        let wanted = ["cubic", "drs-linux", gateway].map(String::from);
        let found = overall.iter().find(|one| one.name == wanted);
        found.map(|one| {
            format!("{:.0} % of the highest throughput and {:.0} ms", one.share * 100.0, one.delay_ms)
        })
    };
    if let [Some(none), Some(gateway), Some(drwa)] = ["none", "gateway", "gateway-drwa"].map(of) {
        let _ = write!(
            page,
            "\nIn short, over all traces: hosts of today have CUBIC and a client as Linux is. They reach {none} of delay. Behind the gateway they reach {gateway}. \
             Behind one that only lowers windows it is {drwa}, without a change to either host.\n"
        );
    }
}

/// Writes throughput and delay by receiver or sender, with a column for each gateway.
fn write_matrices(page: &mut String, overall: &[Overall]) {
    let has = |gateway: &&str| overall.iter().any(|one| one.name[2] == **gateway);
    let gateways: Vec<&str> = GATEWAYS.into_iter().filter(has).collect();
    let matrix = |page: &mut String, title: &str, row: usize, fixed: (usize, &str)| {
        let of: Vec<&Overall> = overall.iter().filter(|one| one.name[fixed.0] == fixed.1).collect();
        let mut rows: Vec<&str> = of.iter().map(|one| one.name[row].as_str()).collect();
        rows.sort_unstable();
        rows.dedup();
        let _ = write!(
            page,
            "\n### {title}\n\nThroughput in % of the highest, and delay in ms, over all traces.\n\n| | {} |\n|---|{}\n",
            gateways.join(" | "),
            "---:|".repeat(gateways.len())
        );
        for name in rows {
            let cell = |gateway: &str| {
                let found = of.iter().find(|one| one.name[row] == name && one.name[2] == gateway);
                found.map_or("-".into(), |one| format!("{:.1}, {:.0} ms", one.share * 100.0, one.delay_ms))
            };
            let cells: Vec<String> = gateways.iter().map(|gateway| cell(gateway)).collect();
            let _ = writeln!(page, "| {name} | {} |", cells.join(" | "));
        }
    };
    matrix(page, "Receivers, the server with CUBIC", 1, (0, "cubic"));
    matrix(page, "Senders, the client as Linux is (drs-linux)", 0, (1, "drs-linux"));
}

fn write_traces(page: &mut String, traces: &[(String, Vec<Scheme>)]) {
    page.push_str(
        "\n## Trace by trace\n\nThe pick is the scheme of least delay among those with 95 % or more of the highest throughput. Beside it what is \
         ordinary today: CUBIC, a Linux client, no gateway; and the same with the gateway.\n\n| trace | pick | Mbit/s | delay, ms | ordinary, \
         Mbit/s | delay, ms | with gateway, Mbit/s | delay, ms |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for (name, schemes) in traces {
        let most = schemes.iter().map(|scheme| scheme.throughput_mbps).fold(0.0, f64::max);
        let enough = schemes.iter().filter(|scheme| scheme.throughput_mbps >= 0.95 * most);
        let Some(pick) = enough.min_by(|a, b| a.delay_ms().total_cmp(&b.delay_ms())) else { continue };
        let ordinary = |gateway: &str| {
            let wanted = ["cubic", "drs-linux", gateway].map(String::from);
            let found = schemes.iter().find(|scheme| scheme.name() == wanted);
            found.map_or("- | -".into(), |s| format!("{:.2} | {:.0}", s.throughput_mbps, s.delay_ms()))
        };
        let _ = writeln!(
            page,
            "| {name} | {} | {:.2} | {:.0} | {} | {} |",
            pick.name().join(", "),
            pick.throughput_mbps,
            pick.delay_ms(),
            ordinary("none"),
            ordinary("gateway")
        );
    }
}

fn write_typical(page: &mut String, name: &str, schemes: &[Scheme]) {
    let _ = write!(
        page,
        "\n## {name}\n\n![Throughput and delay of every scheme: {name}](compare/{name}.svg)\n\nColour is the sender, shape the receiver; the line \
         joins the schemes that none betters in both, which are these:\n\n| sender | receiver | gateway | Mbit/s | delay, ms | sent again, \
         % |\n|---|---|---|---:|---:|---:|\n"
    );
    let place = |scheme: &Scheme| (scheme.throughput_mbps, scheme.delay_ms());
    let mut best: Vec<&Scheme> =
        schemes.iter().filter(|one| is_undominated(place(one), schemes.iter().map(place))).collect();
    best.sort_by(|a, b| b.throughput_mbps.total_cmp(&a.throughput_mbps));
    for scheme in best {
        let _ = writeln!(page, "{}", scheme.row());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(sender: &str, mbps: f64, p95: f64) -> Scheme {
        Scheme {
            sender: sender.into(),
            receiver: "drs-linux".into(),
            gateway: "none".into(),
            throughput_mbps: mbps,
            delay_ms: Delay { p95: Some(p95) },
            retransmitted_share: 0.0,
        }
    }

    #[test]
    fn means_are_over_traces_and_the_best_are_listed() {
        let traces = [
            ("a".to_string(), vec![scheme("cubic", 10.0, 100.0), scheme("bbr", 5.0, 10.0)]),
            ("b".to_string(), vec![scheme("cubic", 1.0, 400.0), scheme("bbr", 2.0, 1_000.0)]),
        ];
        let overall = overall(&traces);
        let cubic = overall.iter().find(|one| one.name[0] == "cubic").unwrap();
        assert!((cubic.share - 0.75).abs() < 1e-9 && (cubic.delay_ms - 200.0).abs() < 1e-6);
        let mut page = String::new();
        write_traces(&mut page, &traces);
        assert!(page.contains("| b | bbr, drs-linux, none | 2.00 | 1000 | 1.00 | 400 | - | - |"), "{page}");
    }
}

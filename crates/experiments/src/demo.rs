//! `paceline demo`: one download without acceleration and one with it, and the difference as a table and a plot.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::common::{PROGRAM, json};
use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::interrupt;
use crate::options::DemoOptions;
use crate::output::say;
use crate::plot::{self, Line, Panel};
use crate::result::{Results, Run, RunFiles, SCHEMA, Store, summary_table};
use crate::run::lab::{self, Watch};
use crate::scenario::{ScenarioFile, Variant, parse};

/// Runs both downloads, then prints and draws the difference.
pub(crate) fn command(options: &DemoOptions) -> Result<()> {
    let file: ScenarioFile = parse(Path::new("demo.toml"), SCENARIO, Some(options.duration))?;
    interrupt::watch()?;
    paceline_lab::netns::check_permitted().map_err(Error::system)?;
    let store = Store::open(&options.out)?;
    if !options.json {
        eprintln!(
            "server ---- gateway ---- 7.2 Mbit/s, 100 ms ---- client with 17 KB of window, no window scaling"
        );
    }
    let mut runs = Vec::new();
    for variant in &file.variants {
        let watch = Bar::new(variant, options);
        let files = store.files(variant, file.base.seed);
        let run = lab::execute(variant, file.base.seed, &file.folder, &files, &watch)?;
        watch.bar.finish();
        if let Some(error) = run.flows.iter().find_map(|flow| flow.error.clone()) {
            return Err(Error::failed(format!("the {} download did not complete: {error}", variant.name)));
        }
        runs.push(run);
    }
    let plot = options.out.join("demo.svg");
    draw(&plot, &store, &file)?;
    report(options, runs, &plot)
}

fn report(options: &DemoOptions, runs: Vec<Run>, plot: &Path) -> Result<()> {
    let results =
        Results { schema: SCHEMA, program: PROGRAM.into(), scenario: "demo".into(), on: "lab".into(), runs };
    let text = json(&results)?;
    write_whole(&options.out.join("results.json"), &format!("{text}\n"))?;
    if options.json {
        say!("{text}");
        return Ok(());
    }
    say!("{}", summary_table(&results.runs));
    let goodput = |index: usize| results.runs[index].flows[0].goodput_mbps;
    say!("{:.1} times as fast. SHA-256 of what was received: as sent, both times.", goodput(1) / goodput(0));
    say!("Each download is given {} and ends then: compare goodput, not completion.", options.duration);
    say!(
        "The longer RTT of the accelerated one is intended. The gateway delays ACKs to the server, so that its own repairs fit \
         into the server's timeout. The path delay shows what packets really wait."
    );
    let shown = fs::canonicalize(plot).unwrap_or_else(|_| plot.to_path_buf());
    say!("Plot of throughput, window and RTT over time: {}", shown.display());
    Ok(())
}

/// A progress bar for one download; lines of text if there is no terminal.
struct Bar {
    bar: ProgressBar,
    last: Mutex<(f64, u64)>,
    /// Interval between lines of text, in seconds.
    line_s: Option<f64>,
}

impl Bar {
    fn new(variant: &Variant, options: &DemoOptions) -> Self {
        let bar = match options.json {
            true => ProgressBar::hidden(),
            false => ProgressBar::new((options.duration.seconds() * 10.0) as u64),
        };
        if let Ok(style) = ProgressStyle::with_template("{prefix:14} {bar:30} {msg}") {
            bar.set_style(style);
        }
        bar.set_prefix(variant.name.clone());
        bar.set_message("preparing");
        let line_s = (!options.json && !io::stderr().is_terminal()).then_some(LINE_S);
        if line_s.is_some() {
            eprintln!("{}: {} to go", variant.name, options.duration);
        }
        Bar { bar, last: Mutex::new((0.0, 0)), line_s }
    }
}

impl Watch for Bar {
    fn progress(&self, seconds: f64, received_bytes: u64) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.set_position((seconds * 10.0) as u64);
        if seconds - last.0 >= self.line_s.unwrap_or(0.5) {
            let mbps = (received_bytes - last.1) as f64 * 8e-6 / (seconds - last.0);
            match self.line_s {
                Some(_) => eprintln!("{}: {seconds:.0} s, {mbps:.2} Mbit/s", self.bar.prefix()),
                None => self.bar.set_message(format!("{mbps:5.2} Mbit/s")),
            }
            *last = (seconds, received_bytes);
        }
    }
}

/// A row of `senders.csv`.
#[derive(Debug, Deserialize)]
struct Sample {
    time_s: f64,
    cwnd_segments: f64,
    rtt_ms: f64,
    peer_window_bytes: f64,
    received_mbps: f64,
}

fn draw(path: &Path, store: &Store, file: &ScenarioFile) -> Result<()> {
    let mut throughput = Vec::new();
    let mut window = Vec::new();
    let mut rtt = Vec::new();
    for (colour, variant) in file.variants.iter().enumerate() {
        let samples = samples(&store.files(variant, file.base.seed))?;
        let line = |what: &str, value: &dyn Fn(&Sample) -> f64| Line {
            label: format!("{}{what}", variant.name),
            colour,
            points: samples.iter().map(|sample| (sample.time_s, value(sample))).collect(),
        };
        throughput.push(line("", &|sample| sample.received_mbps));
        window.push(line(": advertised", &|sample| sample.peer_window_bytes / 1e3));
        let cwnd = line(": cwnd", &|sample| sample.cwnd_segments * SEGMENT_KB);
        window.push(Line { colour: colour + 2, ..cwnd });
        rtt.push(line("", &|sample| sample.rtt_ms));
    }
    let panel = |title: &str, lines| Panel { title: title.into(), lines };
    let panels = [
        panel("throughput at the client (Mbit/s)", throughput),
        panel("windows at the server (KB)", window),
        panel("round-trip time at the server (ms)", rtt),
    ];
    plot::write(path, "A 17 KB client behind a link of 7.2 Mbit/s and 100 ms", &panels)
}

fn samples(files: &RunFiles) -> Result<Vec<Sample>> {
    let path = files.with("senders.csv");
    let read = || -> csv::Result<Vec<Sample>> { csv::Reader::from_path(&path)?.deserialize().collect() };
    read().map_err(|error| Error::failed(format!("cannot read {}: {error}", path.display())))
}

const SCENARIO: &str = include_str!("demo.toml");
const SEGMENT_KB: f64 = 1.46;
/// Our choice: a few lines per download.
const LINE_S: f64 = 5.0;

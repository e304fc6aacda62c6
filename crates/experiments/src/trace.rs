//! `paceline trace`: inspects, generates, converts and draws traces of link rates.

use std::fmt;
use std::fs;
use std::path::Path;

use comfy_table::{Table, presets};
use paceline_path::{Gaps, ModelName, Trace, TraceFormat, TraceModel, TraceOptions};
use paceline_wire::{Duration, Rate};

use crate::choices::{GapsChoice, ModelChoice, TraceFormatChoice};
use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::options::{TraceCommand, TraceConvert, TraceGenerate, TraceInput, TracePlot};
use crate::output::say;
use crate::plot::{self, Line, Panel};

/// Runs the task.
pub(crate) fn command(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Info(input) => info(input),
        TraceCommand::Generate(options) => generate(options),
        TraceCommand::Convert(options) => convert(options),
        TraceCommand::Plot(options) => draw(options),
    }
}

fn info(input: &TraceInput) -> Result<()> {
    let trace = read(input)?;
    let stats = trace.rate_stats(input.window.to_wire());
    let mbps = |rate: Rate| format!("{:.3} Mbit/s", rate.as_mbps());
    let outages = trace.pauses(OUTAGE);
    let longest = outages.iter().map(|outage| outage.length).max().unwrap_or_default();
    let window = input.window;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    for (what, value) in [
        ("length".to_string(), format!("{:.3} s, then it repeats", trace.period().as_secs_f64())),
        ("opportunities of 1500 bytes".into(), trace.opportunities().to_string()),
        ("mean rate".into(), mbps(stats.mean)),
        (format!("variation in windows of {window}"), format!("{:.1} %", stats.variation * 100.0)),
        ("slowest window".into(), mbps(stats.min)),
        (
            "5 % / 50 % / 95 % of windows below".into(),
            format!("{} / {} / {}", mbps(stats.p5), mbps(stats.p50), mbps(stats.p95)),
        ),
        ("fastest window".into(), mbps(stats.max)),
        (
            "pauses of 100 ms and more".into(),
            format!("{}, the longest {:.3} s", outages.len(), longest.as_secs_f64()),
        ),
    ] {
        table.add_row([what, value]);
    }
    say!("{table}");
    Ok(())
}

fn generate(options: &TraceGenerate) -> Result<()> {
    let mut model = TraceModel::from(match options.model {
        ModelChoice::Hspa => ModelName::Hspa,
        ModelChoice::LteDriving => ModelName::LteDriving,
        ModelChoice::FiveG => ModelName::FiveG,
    });
    model.duration = options.length.to_wire();
    model.seed = options.seed;
    if let Some(mean) = options.mean {
        model.mean = mean.to_wire();
    }
    if let Some(variation) = options.variation {
        model.variation = variation;
    }
    let trace = model.generate().map_err(|error| Error::input(format!("no such trace: {error}")))?;
    emit(&trace, options.to, options.window.to_wire(), options.out.as_deref())
}

fn convert(options: &TraceConvert) -> Result<()> {
    emit(&read(&options.input)?, options.to, options.input.window.to_wire(), options.out.as_deref())
}

fn draw(options: &TracePlot) -> Result<()> {
    let trace = read(&options.input)?;
    let points = trace.rates(options.input.window.to_wire()).flat_map(|(start, end, rate)| {
        [(start.as_secs_f64(), rate.as_mbps()), (end.as_secs_f64(), rate.as_mbps())]
    });
    let line =
        Line { label: format!("mean of {}", options.input.window), colour: 0, points: points.collect() };
    let panel = Panel { title: "rate (Mbit/s)".into(), lines: vec![line] };
    plot::write(&options.out, &options.input.file.display().to_string(), &[panel])?;
    say!("{}", options.out.display());
    Ok(())
}

fn read(input: &TraceInput) -> Result<Trace> {
    let name = input.file.display();
    let text = fs::read_to_string(&input.file).map_err(|error| {
        Error::input(format!("cannot read trace {name}: {error}; give the path of a trace file"))
    })?;
    let format = input.format.map_or_else(|| TraceFormat::detect(&text), format_of);
    let gaps = match input.gaps {
        GapsChoice::Refuse => Gaps::Refuse,
        GapsChoice::Hold => Gaps::Hold,
        GapsChoice::Zero => Gaps::Zero,
    };
    Trace::parse(&text, format, &TraceOptions { column: input.column.as_deref(), gaps })
        .map_err(|error| Error::input(format!("{name}: {error}")))
}

fn emit(trace: &Trace, format: TraceFormatChoice, window: Duration, out: Option<&Path>) -> Result<()> {
    let mut text = String::new();
    let written: fmt::Result = match format {
        TraceFormatChoice::Mahimahi => trace.write_mahimahi(&mut text),
        TraceFormatChoice::Csv => trace.write_csv(&mut text, window),
        TraceFormatChoice::OneSecond => trace.write_one_second(&mut text),
    };
    written.map_err(|error| Error::failed(error.to_string()))?;
    match out {
        Some(path) => write_whole(path, &text),
        None => {
            say!("{}", text.trim_end());
            Ok(())
        }
    }
}

fn format_of(format: TraceFormatChoice) -> TraceFormat {
    match format {
        TraceFormatChoice::Mahimahi => TraceFormat::Mahimahi,
        TraceFormatChoice::Csv => TraceFormat::Csv,
        TraceFormatChoice::OneSecond => TraceFormat::OneSecond,
    }
}

/// A pause that a user notices.
const OUTAGE: Duration = Duration::from_millis(100);

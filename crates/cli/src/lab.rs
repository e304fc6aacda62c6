//! The commands that run experiments: arguments become options, and `crates/experiments` does the rest.

use paceline_experiments::options::{self, TraceTask};
use paceline_experiments::{
    bench, compare, demo, emulate, map, predict, profiles, reproduce, run, sweep, trace,
};

use crate::args::{
    Batch, BenchArgs, BenchCommand, CompareArgs, DemoArgs, EmulateArgs, LabCommand, MapArgs, PredictArgs,
    ProfilesArgs, ReproduceAcceleratorArgs, ReproduceCommand, ReproduceDrwaArgs, ReproduceHow, ReproduceKept,
    ReproduceNclArgs, ReproduceOrArgs, ReproducePrintedArgs, ReproduceRreArgs, RunArgs, Selection, SweepArgs,
    TraceCommand, TraceConvert, TraceGenerate, TraceInput, TracePlot,
};
use crate::error::Result;

pub(crate) fn command(command: LabCommand) -> Result<()> {
    match command {
        LabCommand::Demo(args) => demo::command(&args.into()),
        LabCommand::Run(args) => run::command(&args.into()),
        LabCommand::Sweep(args) => sweep::command(&args.into()),
        LabCommand::Compare(args) => compare::command(&args.into()),
        LabCommand::Profiles(args) => profiles::command(&args.into()),
        LabCommand::Map(args) => map::command(&args.into()),
        LabCommand::Reproduce(command) => reproduced(command),
        LabCommand::Predict(args) => predict::command(&args.into()),
        LabCommand::Emulate(args) => emulate::command(&args.into()),
        LabCommand::Trace(command) => trace::command(&task(command)),
        LabCommand::Bench(BenchCommand::Gateway(args)) => bench::command(&args.into()),
    }
}

fn reproduced(command: ReproduceCommand) -> Result<()> {
    match command {
        ReproduceCommand::Or(args) => reproduce::or::command(&args.into()),
        ReproduceCommand::Ncl(args) => reproduce::ncl::command(&args.into()),
        ReproduceCommand::Accelerator(args) => reproduce::accelerator::command(&args.into()),
        ReproduceCommand::Rre(args) => reproduce::rre::command(&args.into()),
        ReproduceCommand::Drwa(args) => reproduce::drwa::command(&args.into()),
        ReproduceCommand::Printed(args) => reproduce::printed::command(&args.into()),
    }
}

fn task(command: TraceCommand) -> TraceTask {
    match command {
        TraceCommand::Info(input) => TraceTask::Info(input.into()),
        TraceCommand::Generate(args) => TraceTask::Generate(args.into()),
        TraceCommand::Convert(args) => TraceTask::Convert(args.into()),
        TraceCommand::Plot(args) => TraceTask::Plot(args.into()),
    }
}

/// Field by field; one that is forgotten on either side does not compile.
macro_rules! become_options {
    ($($arguments:ident => $options:ident { $($field:ident),* };)*) => {$(
        impl From<$arguments> for options::$options {
            fn from($arguments { $($field),* }: $arguments) -> Self {
                options::$options { $($field: $field.into()),* }
            }
        }
    )*};
}

become_options! {
    DemoArgs => DemoOptions { out, duration, json };
    RunArgs => RunOptions { scenario, on, runs, of, jobs, out, fresh, json, list, check };
    Selection => Selection { seed, duration, only };
    SweepArgs => SweepOptions { scenario, vary, runs, of, out, batch };
    CompareArgs => CompareOptions { scenario, sender, receiver, gateway, flows, rtt, queue, runs, of, out, batch };
    PredictArgs => PredictOptions { rate, rtt, loss, burst, window, packet, congestion_control, lost_repair, efficiency, json };
    EmulateArgs => EmulateOptions { up, down, link, rtt, rate, up_rate, queue, loss, seed, stats_json };
    TraceInput => TraceInput { file, format, column, gaps, window };
    TraceGenerate => TraceGenerate { model, out, to, length, mean, variation, window, seed };
    TraceConvert => TraceConvert { input, to, out };
    TracePlot => TracePlot { input, out };
    BenchArgs => BenchOptions { runs, duration, flows, clients, offered, wire_size, mtu, out, json, check };
    MapArgs => MapOptions { kind, seed, from, count, point, show, mode, runs, recheck, duration, rate_max, out, batch, check };
    ProfilesArgs => ProfilesOptions { files, profile, rtt, queue, runs, of, out, batch, check };
    Batch => Batch { jobs, fresh, json };
    ReproduceHow => How { runs, jobs, out, json, check };
    ReproduceKept => KeptHow { fresh, how };
    ReproduceAcceleratorArgs => AcceleratorOptions { figure, table, part, how };
    ReproducePrintedArgs => PrintedOptions { only, kept };
    ReproduceRreArgs => RreOptions { figure, kept };
    ReproduceDrwaArgs => DrwaOptions { figure, part, kept };
    ReproduceOrArgs => OrOptions { table, part, detection, kept };
    ReproduceNclArgs => NclOptions { figure, part, seconds, kept };
}

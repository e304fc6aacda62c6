//! One run: both hosts' threads from start to end.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;

use paceline_linux::SystemError;
use paceline_wire::Instant;
use socket2::Socket;

use super::control::Control;
use super::host::{Host, HostReport, Shared, Side};
use super::report::{TrafficReport, join};
use super::socket;
use super::traffic::Traffic;
use super::udp;
use crate::netns::Netns;

/// Runs all traffic between two namespaces. Returns the measurements when the last transfer has ended. The run begins
/// at `start`, or at once if that is past. An error means that nothing ran. A failure of one transfer is in its
/// report.
pub fn run(
    traffic: &Traffic,
    server: &Netns,
    client: &Netns,
    start: Instant,
    control: &Control,
) -> Result<TrafficReport, SystemError> {
    let listen_all = || -> Result<Vec<Option<Socket>>, SystemError> {
        let transfers = traffic.transfers.iter();
        transfers.map(|transfer| socket::listen(transfer.server, &transfer.server_socket).map(Some)).collect()
    };
    let listeners = server.run(listen_all)??;
    let shared = Shared { traffic, control, start, client_done: AtomicBool::new(false) };
    thread::scope(|scope| {
        let shared = &shared;
        let server_thread = scope.spawn(move || host_thread(shared, server, Side::Server, listeners));
        let client_thread = scope.spawn(move || host_thread(shared, client, Side::Client, Vec::new()));
        let mut streams = Vec::new();
        for stream in &traffic.streams {
            let (sender, receiver) = mpsc::channel();
            let source = scope
                .spawn(move || udp::source(shared, stream, udp::sending(stream, server, client), receiver));
            let sink = scope
                .spawn(move || udp::sink(shared, stream, udp::receiving(stream, server, client), sender));
            streams.push((stream, source, sink));
        }
        let server_report = joined(server_thread.join());
        let client_report = joined(client_thread.join());
        let stream_reports = streams
            .into_iter()
            .map(|(stream, source, sink)| udp::join(stream, source.join().ok(), sink.join().ok()))
            .collect();
        let mut report = join(traffic, start, server_report?, client_report?);
        report.streams = stream_reports;
        Ok(report)
    })
}

fn host_thread(
    shared: &Shared<'_>,
    namespace: &Netns,
    side: Side,
    listeners: Vec<Option<Socket>>,
) -> Result<HostReport, SystemError> {
    let report = namespace.enter().and_then(|()| Host::new(shared, side, listeners)).and_then(Host::run);
    if report.is_err() {
        // Otherwise the other host would wait until its patience ends.
        shared.control.cancel();
    }
    report
}

fn joined(result: thread::Result<Result<HostReport, SystemError>>) -> Result<HostReport, SystemError> {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

//! Records the time series of a simulated run.

use std::cell::RefCell;
use std::rc::Rc;

use paceline_gateway::Event;
use paceline_lab::emulator::Series;
use paceline_path::Delivered;
use paceline_sim::measure::PathProbe;
use paceline_sim::{RunObserver, Tap, transfer_of};
use paceline_tcp::Status;
use paceline_wire::{Duration, Instant};

use crate::interrupt;
use crate::profile::Profile;
use crate::run::hosts::SAMPLE_INTERVAL;
use crate::run::lab::Watch;
use crate::run::series::{GatewayRow, SenderRow};
use crate::run::traces::{LinkTrace, Traces, TransferTrace};
use crate::scenario::{Direction, Scenario};

/// Recorders at the links of one run.
#[derive(Debug)]
pub(super) struct Recorder {
    links: Vec<Shared<LinkTrace>>,
    transfers: Shared<Vec<TransferTrace>>,
    /// For each transfer: true if its data flows down.
    down: Rc<[bool]>,
    path_delay: Shared<Series>,
    has_gateway: bool,
}

type Shared<T> = Rc<RefCell<T>>;

const LINKS: [&str; 4] = ["wired_down", "wired_up", "radio_down", "radio_up"];

impl Recorder {
    pub(super) fn new(scenario: &Scenario) -> Recorder {
        let link = |name: &str| LinkTrace {
            name: name.into(),
            delivered_bytes: Series::new(Instant::ZERO),
            queue_delay_max_us: Series::new(Instant::ZERO),
        };
        let transfers: Vec<TransferTrace> =
            numbered(scenario).map(|(flow, index)| TransferTrace { flow, index, delivered: None }).collect();
        let down = transfers.iter().map(|t| scenario.flows[t.flow].direction == Direction::Down).collect();
        Recorder {
            links: LINKS.iter().map(|name| shared(link(name))).collect(),
            transfers: shared(transfers),
            down,
            path_delay: shared(Series::new(Instant::ZERO)),
            has_gateway: scenario.gateway.profile != Profile::Off,
        }
    }

    /// Returns the taps, with the names of their links.
    pub(super) fn taps(&self) -> Vec<(&'static str, Box<dyn Tap>)> {
        let mut taps: Vec<(&'static str, Box<dyn Tap>)> = Vec::new();
        for (name, trace) in LINKS.iter().zip(&self.links) {
            let flows = name.starts_with("radio").then(|| FlowTap {
                transfers: self.transfers.clone(),
                down: self.down.clone(),
                towards_client: *name == "radio_down",
            });
            let path_delay = (*name == "radio_down" && !self.has_gateway).then(|| self.path_delay.clone());
            taps.push((name, Box::new(LinkTap { trace: trace.clone(), flows, path_delay })));
        }
        if self.has_gateway {
            let series = self.path_delay.clone();
            let probe = PathProbe::with_listener(move |at, delay| {
                series.borrow_mut().raise(at, micros(delay));
            });
            taps.push(("wired_down", Box::new(probe.wired_side())));
            taps.push(("radio_down", Box::new(probe.radio_side())));
        }
        taps
    }

    pub(super) fn finish(self) -> Traces {
        Traces {
            links: self.links.iter().map(|link| link.borrow().clone()).collect(),
            path_delay_max_us: Some(self.path_delay.borrow().clone()),
            transfers: self.transfers.take(),
        }
    }
}

/// Returns the flow and the index within the flow for every transfer of the scenario, in order.
fn numbered(scenario: &Scenario) -> impl Iterator<Item = (usize, u32)> + '_ {
    let flows = scenario.flows.iter().enumerate();
    flows.flat_map(|(number, flow)| (0..flow.count).map(move |index| (number, index)))
}

fn shared<T>(value: T) -> Shared<T> {
    Rc::new(RefCell::new(value))
}

/// Records one direction of a link.
struct LinkTap {
    trace: Shared<LinkTrace>,
    flows: Option<FlowTap>,
    /// Without a gateway, the radio link's queue is the path's delay.
    path_delay: Option<Shared<Series>>,
}

impl Tap for LinkTap {
    fn delivered(&mut self, delivered: &Delivered) {
        let us = micros(delivered.queue_delay);
        let mut trace = self.trace.borrow_mut();
        trace.delivered_bytes.add(delivered.at, delivered.packet.ip_len() as u32);
        trace.queue_delay_max_us.raise(delivered.at, us);
        if let Some(flows) = &mut self.flows {
            flows.delivered(delivered);
        }
        let has_data = delivered.packet.tcp().is_some_and(|tcp| tcp.payload_len() > 0);
        if let Some(series) = self.path_delay.as_ref().filter(|_| has_data) {
            series.borrow_mut().raise(delivered.sent + delivered.queue_delay, us);
        }
    }
}

/// Records the payload that each transfer got.
struct FlowTap {
    transfers: Shared<Vec<TransferTrace>>,
    down: Rc<[bool]>,
    towards_client: bool,
}

impl FlowTap {
    fn delivered(&mut self, delivered: &Delivered) {
        let Some(payload) = delivered.packet.tcp().map(|tcp| tcp.payload_len()).filter(|len| *len > 0) else {
            return;
        };
        let number = delivered.packet.flow_key().as_ref().and_then(transfer_of);
        let Some(number) = number.filter(|number| self.down.get(*number) == Some(&self.towards_client))
        else {
            return;
        };
        if let Some(transfer) = self.transfers.borrow_mut().get_mut(number) {
            let series = transfer.delivered.get_or_insert_with(|| Series::new(Instant::ZERO));
            series.add(delivered.at, payload as u32);
        }
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// Every 100 ms: records the senders' rows, reports progress, and watches for Ctrl-C.
pub(super) struct Steps<'a> {
    pub(super) rows: Vec<SenderRow>,
    pub(super) gateway: Vec<GatewayRow>,
    names: Vec<(String, u32)>,
    read: Vec<u64>,
    total: u64,
    watch: &'a dyn Watch,
}

impl<'a> Steps<'a> {
    pub(super) fn new(scenario: &Scenario, watch: &'a dyn Watch) -> Self {
        let names: Vec<(String, u32)> =
            numbered(scenario).map(|(flow, index)| (scenario.flows[flow].name.clone(), index)).collect();
        Steps { rows: Vec::new(), gateway: Vec::new(), read: vec![0; names.len()], total: 0, names, watch }
    }
}

impl RunObserver for Steps<'_> {
    fn sender(&mut self, now: Instant, transfer: usize, status: &Status, read_bytes: u64) {
        let (Some((flow, index)), Some(before)) = (self.names.get(transfer), self.read.get_mut(transfer))
        else {
            return;
        };
        let received = read_bytes.saturating_sub(*before);
        *before = read_bytes;
        self.total += received;
        self.rows.push(SenderRow {
            flow: flow.clone(),
            index: *index,
            time_s: now.saturating_since(Instant::ZERO).as_secs_f64(),
            cwnd_segments: status.window.snd_cwnd,
            ssthresh_segments: status.window.snd_ssthresh,
            rtt_ms: status.pulse.rtt as f64 / 1e3,
            rto_ms: status.timing.rto as f64 / 1e3,
            peer_window_bytes: status.window.snd_wnd,
            retransmitted_segments: status.sent.total_retrans,
            acknowledged_bytes: status.sent.bytes_acked,
            received_mbps: received as f64 * 8e-6 / SAMPLE_INTERVAL.as_secs_f64(),
        });
    }

    fn gateway(&mut self, now: Instant, transfer: usize, event: &Event) {
        let Event::Acked { client_window, virtual_window, in_flight, waiting, rate, rtt, delay } = event
        else {
            return;
        };
        let Some((flow, index)) = self.names.get(transfer) else { return };
        self.gateway.push(GatewayRow {
            flow: flow.clone(),
            index: *index,
            time_s: now.saturating_since(Instant::ZERO).as_secs_f64(),
            client_window_bytes: *client_window,
            virtual_window_bytes: *virtual_window,
            in_flight_bytes: *in_flight,
            waiting_bytes: *waiting,
            rate_mbps: rate.as_mbps(),
            rtt_ms: rtt.as_secs_f64() * 1e3,
            ack_delay_ms: delay.as_secs_f64() * 1e3,
        });
    }

    fn goes_on(&mut self, now: Instant) -> bool {
        self.watch.progress(now.saturating_since(Instant::ZERO).as_secs_f64(), self.total);
        !interrupt::requested()
    }
}

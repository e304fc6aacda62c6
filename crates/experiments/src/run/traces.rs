//! Time series of the data that arrived in a run, in the lab or in the simulator.

use paceline_lab::emulator::{EmulatorReport, Series};

use super::hosts::Plan;
use crate::scenario::{Direction, Scenario};

/// Values for each 10 ms.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    pub(super) links: Vec<LinkTrace>,
    /// The largest delay in gateway and radio link together, by the time at which the radio link began to send.
    pub(super) path_delay_max_us: Option<Series>,
    /// All transfers and streams, in the scenario's order.
    pub(super) transfers: Vec<TransferTrace>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(super) struct LinkTrace {
    /// The link's name, such as `radio_down`.
    pub(super) name: String,
    pub(super) delivered_bytes: Series,
    pub(super) queue_delay_max_us: Series,
}

/// One transfer.
#[derive(Clone, Debug)]
pub(super) struct TransferTrace {
    /// Index of the flow in the scenario.
    pub(super) flow: usize,
    /// Index among the transfers of the same flow.
    pub(super) index: u32,
    /// Payload that the radio link delivered in the direction of the data; `None` if there never was any.
    pub(super) delivered: Option<Series>,
}

impl Traces {
    /// The time series of the live lab.
    pub(super) fn of_lab(report: &EmulatorReport, plan: &Plan, scenario: &Scenario) -> Traces {
        let links = report.directions.iter().map(|direction| LinkTrace {
            name: direction.name.clone(),
            delivered_bytes: direction.delivered_series.clone(),
            queue_delay_max_us: direction.queue_delay_max_us.clone(),
        });
        let transfers = plan.planned.iter().map(|planned| {
            let down = scenario.flows[planned.flow].direction == Direction::Down;
            // Every transfer has its own server port.
            let server_port =
                |key: &paceline_wire::FlowKey| if down { key.src.port() } else { key.dst.port() };
            let own = report.flows.iter().find(|flow| server_port(&flow.key) == planned.port);
            TransferTrace {
                flow: planned.flow,
                index: planned.index,
                delivered: own.map(|flow| flow.series.clone()),
            }
        });
        Traces {
            links: links.collect(),
            path_delay_max_us: report.path_delay.as_ref().map(|path| path.delay_max_us.clone()),
            transfers: transfers.collect(),
        }
    }

    /// Returns the link direction of that name.
    pub(super) fn link(&self, name: &str) -> Option<&LinkTrace> {
        self.links.iter().find(|link| link.name == name)
    }
}

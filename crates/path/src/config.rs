//! Everything that can be set on one direction of a link.

use crate::aqm::Aqm;
use crate::delay::{Delay, Jitter};
use crate::error::ConfigError;
use crate::link_layer::LinkRetransmission;
use crate::loss::{Loss, LossScope};
use crate::outage::Outages;
use crate::policer::Policer;
use crate::queue_limit::QueueLimit;
use crate::random::Probability;
use crate::rate::RateProcess;
use crate::reorder::Reorder;
use crate::source::{RateSource, SourceError};

/// One direction of a link. The default is a wire: no limit, no delay, no loss.
///
/// `LinkConfig<RateSource>` is read from text such as
///
/// ```toml
/// rate = "7.2mbit"                           # or { steps = [..] }, { trace = {..} }, { generate = {..} }, "unlimited"
/// framing = "15b"                            # what the rate is charged for each packet beside its IP bytes
/// queue = "300kb"                            # or "200packets", "unlimited"
/// aqm = "codel"                              # or { name = "codel", target = "5ms", ecn = true }, fq-codel, pie, red, drop-tail
/// policer = { rate = "10mbit", burst = "100kb" }
/// delay = "50ms"                             # or { steps = [{ at = "0s", delay = "20ms" }, ..] }
/// jitter = { up-to = "5ms", keep-order = true }
/// loss = { independent = "0.6%" }            # or gilbert-elliott, load, scripted
/// loss-on = "originals"                      # or "all", "acks"
/// link-retransmission = { limit = 3, after = "10ms" }
/// reorder = { probability = "1%", by = "10ms" }
/// duplicate = "0.5%"
/// hold-out-of-order = true                   # a middlebox that lets nobody know of a hole
/// outage = { periodic = { first = "5s", every = "10s", length = "1s" }, effect = "drop" }
/// ```
///
/// and [`resolve`](LinkConfig::resolve) turns the source into a rate.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LinkConfig<R = RateProcess> {
    /// What it can carry.
    pub rate: R,
    /// Bytes that the link sends with each packet beside its IP bytes: headers of the layers below. The rate counts them,
    /// the queue does not.
    #[serde(rename = "framing", deserialize_with = "crate::units::de::bytes")]
    pub framing_bytes: u64,
    /// What may wait.
    pub queue: QueueLimit,
    /// Who is dropped or marked before the queue is full.
    pub aqm: Aqm,
    /// What exceeds a rate is dropped before it comes to the queue.
    pub policer: Option<Policer>,
    /// Propagation.
    pub delay: Delay,
    /// A further delay, other for each packet.
    pub jitter: Option<Jitter>,
    /// Packets that do not arrive.
    pub loss: Loss,
    /// Which packets can be lost.
    pub loss_on: LossScope,
    /// What is lost is sent again by the link itself. Without, it is gone.
    pub link_retransmission: Option<LinkRetransmission>,
    /// Packets that are overtaken.
    pub reorder: Option<Reorder>,
    /// How many arrive twice.
    pub duplicate: Probability,
    /// What arrives out of order within a TCP connection is held back until what is missing has arrived.
    pub hold_out_of_order: bool,
    /// When the link does not work.
    pub outage: Outages,
}

impl LinkConfig<RateSource> {
    /// Turns the source of the rate into the rate. `read` gives the text of a trace file by its name.
    pub fn resolve<E>(
        self,
        read: impl FnOnce(&str) -> Result<alloc::string::String, E>,
    ) -> Result<LinkConfig<RateProcess>, SourceError<E>> {
        Ok(LinkConfig {
            rate: self.rate.resolve(read)?,
            framing_bytes: self.framing_bytes,
            queue: self.queue,
            aqm: self.aqm,
            policer: self.policer,
            delay: self.delay,
            jitter: self.jitter,
            loss: self.loss,
            loss_on: self.loss_on,
            link_retransmission: self.link_retransmission,
            reorder: self.reorder,
            duplicate: self.duplicate,
            hold_out_of_order: self.hold_out_of_order,
            outage: self.outage,
        })
    }
}

impl LinkConfig<RateProcess> {
    /// Whether there can be such a link.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.rate.check()?;
        self.queue.check()?;
        self.aqm.check(self.queue)?;
        self.policer.map_or(Ok(()), Policer::check)?;
        self.delay.check()?;
        self.loss.check()?;
        self.outage.check()
    }
}

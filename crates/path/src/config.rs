//! The configuration of one direction of a link.

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

/// One direction of a link. The default is a wire without limit, delay or loss.
///
/// `LinkConfig<RateSource>` is read from text such as
///
/// ```toml
/// rate = "7.2mbit"                           # or { steps = [..] }, { trace = {..} }, { generate = {..} }, "unlimited"
/// framing = "15b"                            # further bytes of each packet that count against the rate
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
/// hold-out-of-order = true                   # a middlebox that hides gaps in the sequence
/// outage = { periodic = { first = "5s", every = "10s", length = "1s" }, effect = "drop" }
/// ```
///
/// and [`resolve`](LinkConfig::resolve) turns the source into a rate.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LinkConfig<R = RateProcess> {
    /// The rate of the link.
    pub rate: R,
    /// Bytes of lower layers' headers that the link sends with each packet, besides its IP bytes. They count against
    /// the rate, not against the queue.
    #[serde(rename = "framing", deserialize_with = "crate::units::de::bytes")]
    pub framing_bytes: u64,
    /// The limit of the queue.
    pub queue: QueueLimit,
    /// Queue management: drops and marks before the queue is full.
    pub aqm: Aqm,
    /// Drops packets that exceed a rate, before they reach the queue.
    pub policer: Option<Policer>,
    /// Propagation delay.
    pub delay: Delay,
    /// A further delay that differs from packet to packet.
    pub jitter: Option<Jitter>,
    /// Packets that do not arrive.
    pub loss: Loss,
    /// Which packets can be lost.
    pub loss_on: LossScope,
    /// The link itself retransmits lost packets. If absent, they stay lost.
    pub link_retransmission: Option<LinkRetransmission>,
    /// Packets that others overtake.
    pub reorder: Option<Reorder>,
    /// The share of packets that arrive twice.
    pub duplicate: Probability,
    /// Holds packets of a TCP connection that are out of order, until the missing ones have arrived.
    pub hold_out_of_order: bool,
    /// Times when the link does not work.
    pub outage: Outages,
}

impl LinkConfig<RateSource> {
    /// Replaces the source of the rate by the rate. `read` returns the text of a trace file by its name.
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
    /// Returns an error if there can be no such link.
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

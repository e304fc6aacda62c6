//! Decides what happens to a packet besides waiting, when it is handed to the link.
//!
//! Early decisions keep the random choices independent of everything else. Each packet takes one draw for each
//! configured purpose, even if the queue drops it.

use paceline_wire::{Duration, Flags, Packet};

use crate::config::LinkConfig;
use crate::delay::Jitter;
use crate::loss::{Candidate, Loss, LossProcess, LossScope};
use crate::originals::Originals;
use crate::policer::TokenBucket;
use crate::random::{Probability, Random};

/// The decisions about a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Impairment {
    pub(crate) jitter: Duration,
    /// The number of attempts of the link layer that fail before the last one.
    pub(crate) failures: u32,
    pub(crate) faults: Faults,
}

/// Faults of a packet other than delay. They are bits of a word, so that fates are copied as words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults(u32);

impl Faults {
    pub(crate) const LOST: Faults = Faults(1);
    pub(crate) const DUPLICATED: Faults = Faults(2);
    pub(crate) const HELD_BACK: Faults = Faults(4);
    /// Dropped by the policer before the queue.
    pub(crate) const POLICED: Faults = Faults(8);

    pub(crate) fn contains(self, fault: Faults) -> bool {
        self.0 & fault.0 != 0
    }

    fn with(self, fault: Faults, befalls: bool) -> Faults {
        if befalls { Faults(self.0 | fault.0) } else { self }
    }
}

impl Impairment {
    /// True if the packet has a fault other than jitter.
    #[inline(always)]
    pub(crate) fn is_impaired(self) -> bool {
        self.failures | self.faults.0 != 0
    }
}

/// Draws fates.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    /// True if nothing can happen to any packet. Then no draw is made.
    none: bool,
    policer: Option<TokenBucket>,
    scope: LossScope,
    loss: LossProcess,
    /// The most retransmissions of the link layer per packet.
    retries: u8,
    /// Present only if the loss applies to originals.
    originals: Option<Originals>,
    jitter: Option<(Jitter, Random)>,
    reorder: Option<(Probability, Random)>,
    duplicate: Option<(Probability, Random)>,
}

/// Our choice: about 10 MB of memory, and more flows than any test has.
const FLOWS_MAX: usize = 65_536;

impl Impairments {
    pub(crate) fn new<R>(config: &LinkConfig<R>, seed: u64) -> Self {
        let named = |name| Random::named(seed, name);
        Impairments {
            none: config.policer.is_none()
                && config.loss == Loss::None
                && config.jitter.is_none()
                && config.reorder.is_none()
                && config.duplicate.is_zero(),
            policer: config.policer.map(|policer| TokenBucket::new(policer, config.framing_bytes)),
            scope: config.loss_on,
            loss: LossProcess::new(config.loss.clone(), named("loss")),
            retries: config.link_retransmission.map_or(0, |link_layer| link_layer.limit),
            originals: (config.loss_on == LossScope::Originals).then(|| Originals::new(FLOWS_MAX)),
            jitter: config.jitter.map(|jitter| (jitter, named("jitter"))),
            reorder: config.reorder.map(|reorder| (reorder.probability, named("reorder"))),
            duplicate: (!config.duplicate.is_zero()).then(|| (config.duplicate, named("duplicate"))),
        }
    }

    /// Returns the fate of a packet that is handed over at a time since the start of the link.
    #[inline]
    pub(crate) fn decide(&mut self, at: Duration, packet: &Packet) -> Impairment {
        if self.none { Impairment::default() } else { self.draw(at, packet) }
    }

    fn draw(&mut self, at: Duration, packet: &Packet) -> Impairment {
        let in_scope = match self.scope {
            LossScope::All => true,
            LossScope::Originals => {
                self.originals.as_mut().is_none_or(|originals| originals.is_original(packet))
            }
            LossScope::Acks => is_pure_ack(packet),
        };
        let bytes = packet.ip_len() as u64;
        let policed = self.policer.as_mut().is_some_and(|bucket| bucket.exceeds(at, bytes));
        let chance = |choice: &mut Option<(Probability, Random)>| {
            choice.as_mut().is_some_and(|(probability, random)| random.chance(*probability))
        };
        let candidate = Candidate { at, bytes, in_scope };
        let mut lost = self.loss.loses(candidate);
        let mut failures = 0;
        while lost && failures < u32::from(self.retries) {
            failures += 1;
            lost = self.loss.loses(candidate);
        }
        let faults = Faults::default()
            .with(Faults::POLICED, policed)
            .with(Faults::LOST, lost)
            .with(Faults::DUPLICATED, chance(&mut self.duplicate))
            .with(Faults::HELD_BACK, chance(&mut self.reorder));
        Impairment {
            failures,
            faults,
            jitter: self
                .jitter
                .as_mut()
                .map_or(Duration::ZERO, |(jitter, random)| random.duration_up_to(jitter.up_to)),
        }
    }
}

/// True for a TCP segment that only acknowledges.
fn is_pure_ack(packet: &Packet) -> bool {
    packet.tcp().is_some_and(|tcp| {
        let others = Flags::SYN | Flags::FIN | Flags::RST;
        tcp.seq_len() == 0 && tcp.flags().contains(Flags::ACK) && !tcp.flags().intersects(others)
    })
}

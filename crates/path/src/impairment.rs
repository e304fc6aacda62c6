//! What happens to a packet beyond waiting, decided when it is handed to the link.
//!
//! Deciding early keeps the random choices apart from everything else: each packet takes one draw of every purpose that is
//! configured, whether it is dropped by the queue or not.

use paceline_wire::{Duration, Flags, Packet};

use crate::config::LinkConfig;
use crate::delay::Jitter;
use crate::loss::{Candidate, Loss, LossProcess, LossScope};
use crate::originals::Originals;
use crate::policer::Bucket;
use crate::random::{Probability, Random};

/// What will happen to a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) jitter: Duration,
    /// So many attempts of the link layer fail before the one that decides.
    pub(crate) failures: u32,
    pub(crate) faults: Faults,
}

/// What befalls a packet beside a delay: as bits of a word, so that fates are copied by words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults(u32);

impl Faults {
    pub(crate) const LOST: Faults = Faults(1);
    pub(crate) const DUPLICATED: Faults = Faults(2);
    pub(crate) const HELD_BACK: Faults = Faults(4);
    /// Dropped where it is handed over.
    pub(crate) const POLICED: Faults = Faults(8);

    pub(crate) fn contains(self, fault: Faults) -> bool {
        self.0 & fault.0 != 0
    }

    fn with(self, fault: Faults, befalls: bool) -> Faults {
        if befalls { Faults(self.0 | fault.0) } else { self }
    }
}

impl Fate {
    /// More than a delay befalls it.
    #[inline(always)]
    pub(crate) fn is_odd(self) -> bool {
        self.failures | self.faults.0 != 0
    }
}

/// Draws fates.
#[derive(Clone, Debug)]
pub(crate) struct Impairments {
    /// Nothing ever befalls a packet, and no draw is made.
    none: bool,
    policer: Option<Bucket>,
    scope: LossScope,
    loss: LossProcess,
    /// How often the link layer sends a packet again at most.
    retries: u8,
    /// Only where originals are treated otherwise.
    originals: Option<Originals>,
    jitter: Option<(Jitter, Random)>,
    reorder: Option<(Probability, Random)>,
    duplicate: Option<(Probability, Random)>,
}

/// Our choice: some 10 MB of memory, and more flows than any test has.
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
            policer: config.policer.map(|policer| Bucket::new(policer, config.framing_bytes)),
            scope: config.loss_on,
            loss: LossProcess::new(config.loss.clone(), named("loss")),
            retries: config.link_retransmission.map_or(0, |link_layer| link_layer.limit),
            originals: (config.loss_on == LossScope::Originals).then(|| Originals::new(FLOWS_MAX)),
            jitter: config.jitter.map(|jitter| (jitter, named("jitter"))),
            reorder: config.reorder.map(|reorder| (reorder.probability, named("reorder"))),
            duplicate: (!config.duplicate.is_zero()).then(|| (config.duplicate, named("duplicate"))),
        }
    }

    /// The fate of a packet handed over at a time since the start of the link.
    #[inline]
    pub(crate) fn decide(&mut self, at: Duration, packet: &Packet) -> Fate {
        if self.none { Fate::default() } else { self.draw(at, packet) }
    }

    fn draw(&mut self, at: Duration, packet: &Packet) -> Fate {
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
        Fate {
            failures,
            faults,
            jitter: self
                .jitter
                .as_mut()
                .map_or(Duration::ZERO, |(jitter, random)| random.duration_up_to(jitter.up_to)),
        }
    }
}

/// A TCP segment that does nothing but acknowledge.
fn is_pure_ack(packet: &Packet) -> bool {
    packet.tcp().is_some_and(|tcp| {
        let others = Flags::SYN | Flags::FIN | Flags::RST;
        tcp.seq_len() == 0 && tcp.flags().contains(Flags::ACK) && !tcp.flags().intersects(others)
    })
}

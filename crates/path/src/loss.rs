//! Loss of packets after they have left the bottleneck.

mod load;

use alloc::vec::Vec;

use paceline_wire::Duration;

use crate::error::ConfigError;
use crate::random::{Probability, Random};
use load::LoadMeter;

pub use load::{LoadLoss, LoadPoint};

/// The model of loss. A lost packet has used the link, because a radio frame that cannot be decoded also takes time.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// The same probability for each packet.
    Independent(Probability),
    /// Loss in bursts.
    GilbertElliott(GilbertElliott),
    /// Loss that rises with the load.
    Load(LoadLoss),
    /// Loss of the listed packets.
    Scripted(Vec<ScriptedLoss>),
}

/// The packets to which loss applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossScope {
    /// Every packet.
    #[default]
    All,
    /// All packets except TCP segments without a sequence number beyond the highest of their flow so far.
    Originals,
    /// TCP segments that only acknowledge.
    Acks,
}

/// A channel with two states (Gilbert, BSTJ 1960; Elliott, BSTJ 1963). It starts in the good state. With every packet
/// it may first change its state. Then the state decides with its probability whether the packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of the change from the good to the bad state.
    pub good_to_bad: Probability,
    /// Probability of the change from the bad to the good state. A bad spell lasts 1 / this packets on average.
    pub bad_to_good: Probability,
    /// Loss in the good state.
    #[serde(default)]
    pub loss_in_good: Probability,
    /// Loss in the bad state.
    #[serde(default = "always")]
    pub loss_in_bad: Probability,
}

fn always() -> Probability {
    Probability::ONE
}

/// A run of lost packets. Only packets within the scope count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedLoss {
    /// The first lost packet, counted from 1 in the order in which packets are handed to the link.
    pub packet: u64,
    /// The number of lost packets.
    #[serde(default = "one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

impl GilbertElliott {
    /// A channel that loses `loss` of all packets. It loses all packets in bad spells of `burst_packets` on average.
    pub fn bursts(loss: Probability, burst_packets: u32) -> Self {
        let (one, loss) = (u64::from(Probability::ONE.as_ppb()), u64::from(loss.as_ppb()));
        let bad_to_good = one / u64::from(burst_packets.max(1));
        GilbertElliott {
            good_to_bad: Probability::from_ppb(bad_to_good * loss / (one - loss).max(1)),
            bad_to_good: Probability::from_ppb(bad_to_good),
            loss_in_good: Probability::ZERO,
            loss_in_bad: Probability::ONE,
        }
    }
}

impl Loss {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            Loss::Load(load) => load.check(),
            _ => Ok(()),
        }
    }
}

/// A packet that may be lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// Time at which it is handed to the link, since the start of the link.
    pub(crate) at: Duration,
    pub(crate) bytes: u64,
    pub(crate) in_scope: bool,
}

/// Draws losses.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    loss: Loss,
    random: Random,
    bad: bool,
    meter: LoadMeter,
    packets: u64,
}

impl LossProcess {
    pub(crate) fn new(mut loss: Loss, random: Random) -> Self {
        let mut window = Duration::ZERO;
        match &mut loss {
            // The next script is last, so that it can be popped.
            Loss::Scripted(scripts) => {
                scripts.sort_by_key(|script| core::cmp::Reverse(script.packet));
            }
            Loss::Load(load) => window = load.window,
            _ => {}
        }
        LossProcess { loss, random, bad: false, meter: LoadMeter::new(window), packets: 0 }
    }

    /// Returns true if a packet will be lost. Called once for each packet, in the order in which they are handed over.
    /// Packets out of scope also advance the channel and the load.
    pub(crate) fn loses(&mut self, candidate: Candidate) -> bool {
        let lost = match &mut self.loss {
            Loss::None => return false,
            Loss::Independent(probability) => self.random.chance(*probability),
            Loss::GilbertElliott(channel) => {
                let change = if self.bad { channel.bad_to_good } else { channel.good_to_bad };
                self.bad ^= self.random.chance(change);
                self.random.chance(if self.bad { channel.loss_in_bad } else { channel.loss_in_good })
            }
            Loss::Load(load) => {
                let rate = self.meter.offered(candidate.at, candidate.bytes);
                self.random.chance(load.at(rate))
            }
            Loss::Scripted(scripts) => {
                if !candidate.in_scope {
                    return false;
                }
                self.packets += 1;
                let number = self.packets;
                while scripts
                    .last()
                    .is_some_and(|script| script.packet.saturating_add(script.count) <= number)
                {
                    scripts.pop();
                }
                scripts.last().is_some_and(|script| script.packet <= number)
            }
        };
        lost && candidate.in_scope
    }
}

#[cfg(test)]
mod tests;

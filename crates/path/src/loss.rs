//! Packets that leave the bottleneck and do not arrive.

mod load;

use alloc::vec::Vec;

use paceline_wire::Duration;

use crate::error::ConfigError;
use crate::random::{Probability, Random};
use load::LoadMeter;

pub use load::{LoadLoss, LoadPoint};

/// Which packets are lost. Whatever is lost has used the link: a radio frame that cannot be decoded takes its time.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with the same probability.
    Independent(Probability),
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// The more is sent, the more is lost.
    Load(LoadLoss),
    /// These.
    Scripted(Vec<ScriptedLoss>),
}

/// To whom loss applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossScope {
    /// Every packet.
    #[default]
    All,
    /// All but TCP segments that bring no sequence number beyond the highest of their flow so far.
    Originals,
    /// TCP segments that do nothing but acknowledge.
    Acks,
}

/// A channel of two states (Gilbert, BSTJ 1960; Elliott, BSTJ 1963). It starts in the good one; with every packet it may
/// change its state first, then the packet is lost as the state has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GilbertElliott {
    /// From the good state to the bad.
    pub good_to_bad: Probability,
    /// From the bad state to the good: a bad spell lasts 1 / this packets on average.
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

/// Packets that follow each other. Only packets within the scope count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedLoss {
    /// The first one lost, counted from 1 in the order in which packets are handed to the link.
    pub packet: u64,
    /// How many are lost.
    #[serde(default = "one")]
    pub count: u64,
}

fn one() -> u64 {
    1
}

impl GilbertElliott {
    /// Everything is lost in bad spells of `burst_packets` on average, such that `loss` of all packets is lost.
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

/// A packet on its way to its fate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    /// When it is handed to the link, since the start of the link.
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
            // The next one comes last, so that it can be popped.
            Loss::Scripted(scripts) => {
                scripts.sort_by_key(|script| core::cmp::Reverse(script.packet));
            }
            Loss::Load(load) => window = load.window,
            _ => {}
        }
        LossProcess { loss, random, bad: false, meter: LoadMeter::new(window), packets: 0 }
    }

    /// Whether a packet will be lost. Asked once for each, in the order in which they are handed over. The channel and
    /// the load go on with packets out of scope, too.
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

//! TCP-NCL: C. Lai, K.-C. Leung, V. O. K. Li, "Enhancing Wireless TCP: A Serialized-Timer Approach", Section IV.

use alloc::collections::VecDeque;

use paceline_wire::{Duration, Instant};

use super::rtt_record::RttRecord;
use super::sts::{Loss, Sts};
use super::tracked::Tracked;
use super::{CongestionResponse, DetectionName, LossDetection, LossOutcome, LossSample, Sent};
use crate::scoreboard::{Scoreboard, Segment};

/// A packet not acknowledged within tau_RD of its transmission is retransmitted. If it is not acknowledged within
/// tau_CD after that, this is a sign of congestion. Names are as in the paper's pseudocode.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Ncl {
    name: DetectionName,
    config: NclConfig,
    packets: Tracked<Packet>,
    /// rdPkts: numbers, and the start of their RD timers. Outdated entries are skipped.
    rd_pkts: VecDeque<(u32, Instant)>,
    /// cdPkts, likewise.
    cd_pkts: VecDeque<(u32, Instant)>,
    /// ePkts: all packets before this number. A number suffices: only members of rdPkts and cdPkts are looked up, and
    /// they are added all at once.
    e_pkts_end: Option<u32>,
    rtt_rcd: RttRecord,
    /// Replaces `rtt_rcd` in `ncl-adaptive`.
    sts: Option<Sts>,
}

/// Parameters of TCP-NCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NclConfig {
    /// MRRL: the number of RTTs that are remembered.
    pub mrrl: u32,
    /// Beta in percent. An ACK within this part of tau_CD after a retransmission is for the original.
    pub beta_percent: u32,
    /// The length of tau_CD.
    pub tau_cd: TauCd,
}

/// The length of the congestion response decision timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub enum TauCd {
    /// The shortest RTT of the record, as the paper has it.
    #[default]
    Shortest,
    /// This time, whatever the RTT. For experiments that find the best one.
    Fixed(Duration),
    /// 0, Case I of Eq. (23). For experiments that find which part of it fails.
    AtOnce {
        /// Beta applies to the shortest RTT, so that RTTs beyond tau_RD are still learnt. Of a tau_CD of 0, beta leaves
        /// nothing.
        learns: bool,
    },
    /// As in `ncl-adaptive`, but at least the shortest RTT. For experiments that show whether a tau_CD of 0 is useful.
    AtLeastShortest,
}

impl Default for NclConfig {
    /// Section V-C.
    fn default() -> Self {
        NclConfig { mrrl: 1_000, beta_percent: 80, tau_cd: TauCd::Shortest }
    }
}

/// State of a packet that has not been acknowledged.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
struct Packet {
    /// txTime.
    tx_time: Instant,
    /// rtxTime.
    rtx_time: Instant,
    /// When it entered rdPkts.
    rd: Option<Instant>,
    /// When it entered cdPkts.
    cd: Option<Instant>,
    /// Its RD timer has expired, and it is about to be retransmitted.
    expired: bool,
    /// The kind of its loss, if kinds are told apart.
    loss: Option<Loss>,
    /// Its retransmission has had an RD timer, too.
    second: bool,
    /// It was retransmitted after a timeout. No ACK shows which transmission it is for (Karn).
    ambiguous: bool,
}

impl Ncl {
    /// An instance of the algorithm or of one of its variants.
    pub fn new(name: DetectionName, config: NclConfig) -> Self {
        Ncl {
            name,
            config,
            packets: Tracked::default(),
            rd_pkts: VecDeque::new(),
            cd_pkts: VecDeque::new(),
            e_pkts_end: None,
            rtt_rcd: RttRecord::new(config.mrrl),
            sts: (name == DetectionName::NclAdaptive).then(|| Sts::new(config.mrrl)),
        }
    }

    /// tauRD; `None` without a sample. Then only the timeout repairs losses.
    fn tau_rd(&self) -> Option<Duration> {
        self.sts.as_ref().map_or(self.rtt_rcd.max(), |sts| sts.rtts.max())
    }

    /// tauCD.
    fn tau_cd(&self) -> Option<Duration> {
        match self.config.tau_cd {
            TauCd::Shortest => self.sts.as_ref().map_or(self.rtt_rcd.min(), Sts::tau_cd),
            TauCd::Fixed(tau) => Some(tau),
            TauCd::AtOnce { .. } => Some(Duration::ZERO),
            TauCd::AtLeastShortest => self.sts.as_ref().and_then(Sts::tau_cd).max(self.shortest()),
        }
    }

    fn shortest(&self) -> Option<Duration> {
        self.sts.as_ref().map_or(self.rtt_rcd.min(), |sts| sts.rtts.min())
    }

    /// The time to which beta applies: tauCD, or the shortest RTT if tauCD may be shorter. No ACK of a retransmission
    /// comes earlier.
    fn least_answer(&self) -> Option<Duration> {
        if self.learns_late() { self.shortest() } else { self.tau_cd() }
    }

    /// True if packets that have left cdPkts give RTTs, too, because tau_CD may be shorter than any RTT. Without these
    /// RTTs a tau_RD that is too short would never grow again.
    fn learns_late(&self) -> bool {
        match self.config.tau_cd {
            TauCd::AtOnce { learns } => learns,
            _ => self.sts.is_some(),
        }
    }

    /// The NRU process: takes the RTT if this ACK is certainly for the original.
    fn nru(&mut self, now: Instant, packet: &Packet) {
        let retransmitted = packet.cd.is_some() || (self.learns_late() && packet.rtx_time != Instant::ZERO);
        let in_cd_pkts = retransmitted
            && self.least_answer().is_some_and(|tau_cd| {
                let beta = u64::from(self.config.beta_percent);
                now <= packet.rtx_time + Duration::from_nanos(tau_cd.as_nanos() / 100 * beta)
            });
        // In rdPkts, or about to leave it: it was sent once.
        let original = packet.rtx_time == Instant::ZERO && (packet.rd.is_some() || packet.expired);
        if !packet.ambiguous && (original || in_cd_pkts) {
            let rtt = now.saturating_since(packet.tx_time);
            match &mut self.sts {
                Some(sts) => sts.on_rtt(rtt, packet.loss),
                None => self.rtt_rcd.add(rtt),
            }
        }
    }

    /// RD_i expires.
    fn expire_rd(&mut self, sample: &LossSample, board: &mut Scoreboard, outcome: &mut LossOutcome) {
        let Some(tau_rd) = self.tau_rd() else { return };
        while let Some(&(number, since)) = self.rd_pkts.front() {
            if let Some(packet) = self.packets.get_mut(number).filter(|packet| packet.rd == Some(since)) {
                if sample.now.saturating_since(since) <= tau_rd {
                    return;
                }
                packet.rd = None;
                packet.expired = true;
                outcome.marked |= board.mark_lost(number);
                if let Some(sts) = &mut self.sts {
                    packet.loss = Some(sts.on_loss(sample.cwnd));
                }
            }
            self.rd_pkts.pop_front();
        }
    }

    /// CD_i expires.
    fn expire_cd(&mut self, now: Instant, outcome: &mut LossOutcome) {
        let Some(tau_cd) = self.tau_cd() else { return };
        while let Some(&(number, since)) = self.cd_pkts.front() {
            if let Some(packet) = self.packets.get_mut(number).filter(|packet| packet.cd == Some(since)) {
                if now.saturating_since(since) <= tau_cd {
                    return;
                }
                packet.cd = None;
                if self.e_pkts_end.is_none_or(|end| (number.wrapping_sub(end) as i32) >= 0) {
                    outcome.response = CongestionResponse::Reduce;
                    self.e_pkts_end = Some(self.packets.end());
                }
            }
            self.cd_pkts.pop_front();
        }
    }

    fn expire(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        let mut outcome = LossOutcome::default();
        self.expire_rd(sample, board, &mut outcome);
        self.expire_cd(sample.now, &mut outcome);
        outcome
    }

    /// Removes outdated entries at the front, so that no timer is set for them.
    fn tidy(&mut self) {
        let Ncl { packets, rd_pkts, cd_pkts, .. } = self;
        while rd_pkts.front().is_some_and(|&(n, since)| packets.get(n).is_none_or(|p| p.rd != Some(since))) {
            rd_pkts.pop_front();
        }
        while cd_pkts.front().is_some_and(|&(n, since)| packets.get(n).is_none_or(|p| p.cd != Some(since))) {
            cd_pkts.pop_front();
        }
        let all_newer = |end: u32| (self.packets.first().wrapping_sub(end) as i32) >= 0;
        self.e_pkts_end = self.e_pkts_end.filter(|&end| !all_newer(end));
    }

    fn on_resent(&mut self, sent: &Sent) {
        let second_rd = self.name != DetectionName::Ncl;
        let Some(packet) = self.packets.get_mut(sent.number) else { return };
        if packet.expired {
            packet.expired = false;
            packet.rtx_time = sent.now;
            packet.cd = Some(sent.now);
            self.cd_pkts.push_back((sent.number, sent.now));
            if second_rd && !packet.second {
                // Not in the paper: a lost retransmission is found as its original was. Our choice: only once, because
                // these timers have no backoff. A packet that is lost three times may meet an outage.
                packet.second = true;
                packet.rd = Some(sent.now);
                self.rd_pkts.push_back((sent.number, sent.now));
            }
        } else if packet.rd.is_none() && packet.cd.is_none() {
            // A timeout has cleared the lists. Our choice: the packet counts as sent for the first time. Otherwise only
            // a further timeout would repair it.
            *packet = Packet { rd: Some(sent.now), tx_time: sent.now, ambiguous: true, ..*packet };
            self.rd_pkts.push_back((sent.number, sent.now));
        }
    }
}

impl LossDetection for Ncl {
    fn name(&self) -> DetectionName {
        self.name
    }

    fn owns_response(&self) -> bool {
        true
    }

    fn retransmits_at_once(&self) -> bool {
        true
    }

    fn on_sent(&mut self, sent: &Sent) {
        if sent.retransmission {
            self.on_resent(sent);
            return;
        }
        let packet = Packet {
            tx_time: sent.now,
            rtx_time: Instant::ZERO,
            rd: Some(sent.now),
            cd: None,
            expired: false,
            loss: None,
            second: false,
            ambiguous: false,
        };
        self.packets.push(sent.number, sent.end, packet);
        self.rd_pkts.push_back((sent.number, sent.now));
    }

    fn on_delivered(&mut self, now: Instant, segment: &Segment) {
        if let Some((_, packet)) = self.packets.remove(segment.end) {
            self.nru(now, &packet);
            self.tidy();
        }
    }

    fn on_ack(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        self.expire(board, sample)
    }

    fn on_timeout(&mut self, board: &mut Scoreboard, sample: &LossSample) -> LossOutcome {
        self.expire(board, sample)
    }

    /// Clears all three lists.
    fn on_retransmission_timeout(&mut self) {
        self.rd_pkts.clear();
        self.cd_pkts.clear();
        self.e_pkts_end = None;
        for packet in self.packets.iter_mut() {
            (packet.rd, packet.cd, packet.expired, packet.second) = (None, None, false, false);
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let rd = self.rd_pkts.front().zip(self.tau_rd()).map(|(&(_, since), tau)| since + tau);
        let cd = self.cd_pkts.front().zip(self.tau_cd()).map(|(&(_, since), tau)| since + tau);
        // "More than": when exactly its time has passed, a timer has not expired.
        rd.into_iter().chain(cd).min().map(|at| at + Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests;

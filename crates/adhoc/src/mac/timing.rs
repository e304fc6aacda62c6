//! The arithmetic of IEEE 802.11 with direct-sequence radio: lengths of frames, gaps and slots.

use paceline_wire::{Duration, Rate};

/// Parameters of the medium access. The default is a card of 2 Mbit/s by IEEE 802.11-1999, Section 15.3.2 (slot, SIFS,
/// windows, preamble). As in ns-2, short frames have the basic rate of 1 Mbit/s, and RTS precedes every data frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Rate of data frames to one station.
    pub data_rate: Rate,
    /// Rate of RTS, CTS, ACK and broadcasts.
    pub basic_rate: Rate,
    /// Preamble and header of the physical layer, before each frame.
    pub preamble: Duration,
    /// aSlotTime.
    pub slot: Duration,
    /// aSIFSTime.
    pub sifs: Duration,
    /// aCWmin.
    pub cw_min: u32,
    /// aCWmax.
    pub cw_max: u32,
    /// If true, RTS and CTS precede data frames to one station.
    pub rts: bool,
    /// Number of times that an RTS, or a data frame without one, is sent (dot11ShortRetryLimit).
    pub short_retries: u32,
    /// Number of times that a data frame after an RTS is sent (dot11LongRetryLimit).
    pub long_retries: u32,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            data_rate: Rate::from_mbps(2.0),
            basic_rate: Rate::from_mbps(1.0),
            preamble: Duration::from_micros(192),
            slot: Duration::from_micros(20),
            sifs: Duration::from_micros(10),
            cw_min: 31,
            cw_max: 1_023,
            rts: true,
            short_retries: 7,
            long_retries: 4,
        }
    }
}

/// IEEE 802.11-1999, Sections 7.2.1.1 to 7.2.1.3.
const RTS_BYTES: u64 = 20;
const CTS_BYTES: u64 = 14;
const ACK_BYTES: u64 = 14;
/// Header and check sum of a data frame (Section 7.2.2, three addresses). LLC and SNAP, 8 bytes, are left out as in
/// ns-2.
const DATA_BYTES: u64 = 28;

impl Timing {
    /// DIFS (Section 9.2.10).
    pub fn difs(&self) -> Duration {
        self.sifs + self.slot * 2
    }

    /// EIFS follows a frame that could not be understood. Its receiver may have understood it and answer (Section
    /// 9.2.10).
    pub fn eifs(&self) -> Duration {
        self.sifs + self.ack() + self.difs()
    }

    /// Airtime of an RTS.
    pub fn rts_time(&self) -> Duration {
        self.preamble + self.basic_rate.time_for(RTS_BYTES)
    }

    /// Airtime of a CTS.
    pub fn cts(&self) -> Duration {
        self.preamble + self.basic_rate.time_for(CTS_BYTES)
    }

    /// Airtime of an ACK.
    pub fn ack(&self) -> Duration {
        self.preamble + self.basic_rate.time_for(ACK_BYTES)
    }

    /// Airtime of a data frame to one station, with this many bytes for the layers above.
    pub fn data(&self, bytes: u32) -> Duration {
        self.preamble + self.data_rate.time_for(DATA_BYTES + u64::from(bytes))
    }

    /// Airtime of a data frame to all.
    pub fn broadcast(&self, bytes: u32) -> Duration {
        self.preamble + self.basic_rate.time_for(DATA_BYTES + u64::from(bytes))
    }

    /// Time for which a sender waits after its own frame for an answer of this length. Our choice: a slot more than the
    /// answer needs. The answer comes after a SIFS or not at all.
    pub(super) fn patience(&self, answer: Duration) -> Duration {
        self.sifs + answer + self.slot
    }

    pub(crate) fn is_sound(&self) -> bool {
        !self.data_rate.is_zero()
            && !self.basic_rate.is_zero()
            && !self.slot.is_zero()
            && self.cw_min <= self.cw_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usual table: ACK 304 us, CTS 304 us, RTS 352 us, DIFS 50 us; 1,500 bytes with 28 of header 6,304 us.
    #[test]
    fn times_are_those_of_the_standard() {
        let timing = Timing::default();
        let us = |time: Duration| time.as_micros();
        assert_eq!([us(timing.ack()), us(timing.cts()), us(timing.rts_time())], [304, 304, 352]);
        assert_eq!([us(timing.difs()), us(timing.eifs())], [50, 364]);
        assert_eq!([us(timing.data(1_500)), us(timing.broadcast(1_500))], [6_304, 12_416]);
    }
}

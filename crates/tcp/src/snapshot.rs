//! Snapshots of the algorithms behind their traits: to be copied and, with the feature `serde`, to be written down and read.

use alloc::boxed::Box;

use crate::congestion::{Abc, Bbr, CongestionControl, Copa, Cubic, Reno, Rre, Vegas, Veno, Westwood};
use crate::detection::{Fack, LossDetection, Ncl, Rack, Rfc6675, RrTcp, TcpDcr, TcpDoor, TcpPr};
use crate::receive_window::{Drs, DrsLinux, Drwa, Fixed, ReceiveWindow};
use crate::reduction::{Barr, Halving, Opportunistic, Prr, Qarr, RateHalving, RateReduction};

/// What gives a snapshot of itself as a value of type `S`, everything that it knows included.
pub trait Snapshot<S> {
    /// The snapshot.
    fn to_state(&self) -> S;
}

impl<S, T: Clone + Into<S>> Snapshot<S> for T {
    fn to_state(&self) -> S {
        self.clone().into()
    }
}

/// All that implement a trait.
macro_rules! snapshot {
    ($(#[$doc:meta])* $state:ident of $seam:ident { $($type:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum $state {
            $(#[doc = concat!("[`", stringify!($type), "`].")] $type(Box<$type>),)+
        }

        impl $state {
            /// The algorithm, which goes on from here.
            pub fn build(self) -> Box<dyn $seam> {
                match self { $($state::$type(algorithm) => algorithm,)+ }
            }
        }

        $(impl From<$type> for $state {
            fn from(algorithm: $type) -> Self {
                $state::$type(Box::new(algorithm))
            }
        })+

        impl Clone for Box<dyn $seam> {
            fn clone(&self) -> Self {
                (**self).to_state().build()
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for dyn $seam {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_state().serialize(serializer)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for Box<dyn $seam> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $state::deserialize(deserializer).map($state::build)
            }
        }
    };
}

snapshot! {
    /// A congestion control.
    CongestionState of CongestionControl { Reno, Cubic, Veno, Westwood, Vegas, Bbr, Rre, Copa, Abc, }
}

snapshot! {
    /// A rate reduction.
    ReductionState of RateReduction { Halving, RateHalving, Prr, Qarr, Barr, Opportunistic, }
}

snapshot! {
    /// A loss detection.
    DetectionState of LossDetection { Rfc6675, Fack, Rack, Ncl, TcpDcr, TcpDoor, TcpPr, RrTcp, }
}

snapshot! {
    /// A receive window.
    ReceiveWindowState of ReceiveWindow { DrsLinux, Fixed, Drs, Drwa, }
}

/// Arrays of any length; serde itself goes as far as 32.
#[cfg(feature = "serde")]
pub(crate) mod array {
    use alloc::vec::Vec;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, T: Serialize, const N: usize>(
        array: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(array)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        let values = Vec::deserialize(deserializer)?;
        <[T; N]>::try_from(values).map_err(|values| D::Error::invalid_length(values.len(), &"another length"))
    }
}

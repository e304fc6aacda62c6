//! Serialisable snapshots of the algorithms behind their traits.

/// An enum of all types that implement a trait.
macro_rules! snapshot {
    ($state:ident of $any:ident, $seam:ident: $($type:ident,)+) => {
        #[doc = concat!("A [`", stringify!($seam), "`] of the list, everything that it knows included.")]
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
        pub enum $state {
            $(#[doc = concat!("[`", stringify!($type), "`].")] $type(Box<$type>),)+
        }

        impl $state {
            /// The algorithm, which continues from here.
            pub fn build(self) -> Box<dyn $any> {
                match self { $($state::$type(algorithm) => algorithm,)+ }
            }
        }

        $(impl From<$type> for $state {
            fn from(algorithm: $type) -> Self {
                $state::$type(Box::new(algorithm))
            }
        })+

        #[doc = concat!("A [`", stringify!($seam), "`] that can be copied and written down.")]
        pub trait $any: $seam {
            /// A snapshot.
            fn to_state(&self) -> $state;
        }

        impl<T: $seam + Clone + Into<$state>> $any for T {
            fn to_state(&self) -> $state {
                self.clone().into()
            }
        }

        impl Clone for Box<dyn $any> {
            fn clone(&self) -> Self {
                (**self).to_state().build()
            }
        }

        impl serde::Serialize for dyn $any {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.to_state().serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for Box<dyn $any> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $state::deserialize(deserializer).map($state::build)
            }
        }
    };
}

pub(crate) use snapshot;

/// Arrays of any length. serde itself stops at 32.
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

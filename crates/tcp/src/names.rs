//! Choices that are made by name at run time.

use alloc::string::String;
use core::fmt;

/// A name that is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName {
    /// The requested name.
    pub name: String,
    /// The known names.
    pub known: &'static [&'static str],
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown name {:?}; known are", self.name)?;
        for (n, name) in self.known.iter().enumerate() {
            write!(f, "{} {name}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownName {}

/// An enum whose variants have names.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
        pub enum $type { $($(#[$variant_doc])* $variant,)+ }

        impl $type {
            /// Every choice.
            pub const ALL: &'static [$type] = &[$($type::$variant,)+];
            const NAMES: &'static [&'static str] = &[$($name,)+];

            /// The name.
            pub const fn as_str(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl core::str::FromStr for $type {
            type Err = crate::names::UnknownName;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                $type::ALL.iter().copied().find(|choice| choice.as_str() == name).ok_or_else(|| {
                    crate::names::UnknownName { name: name.into(), known: $type::NAMES }
                })
            }
        }
    };
}

pub(crate) use named;

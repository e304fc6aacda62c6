//! C. Lai et al., "Enhancing Wireless TCP: A Serialized-Timer Approach": TCP-NCL and what it was compared with.

mod scheme;

pub use scheme::Scheme;

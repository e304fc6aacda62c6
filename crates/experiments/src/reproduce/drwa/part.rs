//! What a part of the reproduction yields.

use crate::reproduce::report::{Bound, Section};

/// A section and what must hold of it.
pub(super) type Part = (Section, Vec<Bound>);

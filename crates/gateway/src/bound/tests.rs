//! Behaviour on synthetic links.

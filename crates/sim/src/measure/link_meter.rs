//! Queueing delay at a link.

use std::cell::RefCell;
use std::rc::Rc;

use paceline_path::Delivered;

use super::Quantiles;
use crate::network::Tap;

/// Measures each delivered packet's wait in the queue of a link. Clones share the measurement.
#[derive(Clone, Debug, Default)]
pub struct LinkMeter(Rc<RefCell<Quantiles>>);

impl LinkMeter {
    /// The waits measured so far.
    pub fn queue_delay(&self) -> Quantiles {
        self.0.borrow().clone()
    }
}

impl Tap for LinkMeter {
    fn delivered(&mut self, delivered: &Delivered) {
        self.0.borrow_mut().record(delivered.queue_delay);
    }

    fn hears_sent(&self) -> bool {
        false
    }
}

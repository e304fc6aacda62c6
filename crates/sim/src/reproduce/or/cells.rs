//! The published cells, and the experiment of each cell (Section VII.A, Table 3).

/// One cell of Tables 1 to 15.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Number of its table.
    pub table: u8,
    /// Congestion control. It is empty in Tables 1 to 5, which do not depend on it.
    pub congestion_control: String,
    /// RH, PRR, QARR or BARR.
    pub loss_recovery: String,
    /// Changes to the sender.
    pub variant: Variant,
    /// True if the paper's model computed the value; false if it was measured.
    pub numerical: bool,
    /// The parameter that the table varies.
    pub axis: String,
    /// The value of that parameter.
    pub axis_value: f64,
    /// The published value: a share of the link in Tables 1 to 5, Mbit/s in the others.
    pub published: f64,
    /// The published percentage of the link, if there is one.
    pub published_percent: Option<f64>,
}

/// Changes to the sender or to the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Linux 3.10 with the loss recovery named.
    Original,
    /// With opportunistic retransmission alone.
    Opportunistic,
    /// Also with the refined growth of the send buffer.
    Optimized,
    /// Also with a link that drops no retransmission.
    OptimizedNoRetransmissionLoss,
    /// `Optimized` with Hack 1.
    OptimizedHack1,
}

/// The path of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setup {
    /// C: the rate of IP bytes and 15 bytes of framing per packet.
    pub mbps: f64,
    /// U in milliseconds.
    pub rtt_ms: u64,
    /// The losses.
    pub loss: SetupLoss,
}

/// The losses on the path of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SetupLoss {
    /// Each packet, with this probability in percent.
    Random(f64),
    /// A number of consecutive packets, at intervals.
    Burst(u32),
}

impl Variant {
    const NAMES: [(&str, Variant); 5] = [
        ("original", Variant::Original),
        ("opportunistic", Variant::Opportunistic),
        ("optimized", Variant::Optimized),
        ("optimized_no_retransmission_loss", Variant::OptimizedNoRetransmissionLoss),
        ("optimized_hack1", Variant::OptimizedHack1),
    ];

    /// The name in the published numbers.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, variant)| *variant == self).map_or("", |(name, _)| name)
    }

    fn from_name(name: &str) -> Option<Variant> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, variant)| *variant)
    }

    /// True if new data may go beyond the receive window.
    pub fn is_opportunistic(self) -> bool {
        self != Variant::Original
    }

    /// True if the send buffer grows to three windows instead of two.
    pub fn has_refined_buffer(self) -> bool {
        !matches!(self, Variant::Original | Variant::Opportunistic)
    }
}

impl Cell {
    /// All published cells, in the order of the file.
    pub fn all() -> Vec<Cell> {
        include_str!("../../../../../published/opportunistic-retransmission.csv")
            .lines()
            .skip(1)
            .filter_map(Cell::parse)
            .collect()
    }

    fn parse(line: &str) -> Option<Cell> {
        let columns: Vec<&str> = line.split(',').collect();
        let [table, congestion_control, loss_recovery, variant, kind, axis, axis_value, value, percent] =
            columns[..]
        else {
            return None;
        };
        Some(Cell {
            table: table.parse().ok()?,
            congestion_control: congestion_control.into(),
            loss_recovery: loss_recovery.into(),
            variant: Variant::from_name(variant)?,
            numerical: kind == "numerical",
            axis: axis.into(),
            axis_value: axis_value.parse().ok()?,
            published: value.parse().ok()?,
            published_percent: percent.parse().ok(),
        })
    }

    /// The path of the cell.
    pub fn setup(&self) -> Setup {
        let rtt = |otherwise: u64| {
            if self.axis == "propagation_delay_ms" { self.axis_value as u64 } else { otherwise }
        };
        let loss = |otherwise: f64| if self.axis == "loss_percent" { self.axis_value } else { otherwise };
        let (mbps, loss) = match self.table {
            1 | 4 => (20.0, SetupLoss::Burst(self.axis_value as u32)),
            // Section IV.B: if the delay varies, ten packets are lost.
            2 | 5 => (20.0, SetupLoss::Burst(10)),
            6..=9 => (20.0, SetupLoss::Random(loss(0.1))),
            10..=13 => (100.0, SetupLoss::Random(loss(0.1))),
            14 => (100.0, SetupLoss::Random(0.5)),
            _ => (self.axis_value, SetupLoss::Random(0.1)),
        };
        Setup { mbps, rtt_ms: rtt(100), loss }
    }
}

impl Setup {
    /// AW in segments. The text has C x U; its tables imply 180 at 20 Mbit/s and 100 ms.
    pub fn window_segments(&self) -> u32 {
        (180.0 * self.mbps / 20.0 * self.rtt_ms as f64 / 100.0).round() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_cell_is_read() {
        let cells = Cell::all();
        assert_eq!(cells.len(), 488);
        assert_eq!(cells.iter().filter(|cell| cell.numerical).count(), 72);
        let percent_of = |cell: &Cell| cell.published / cell.setup().mbps * 100.0;
        // Each published percentage fits the rate of its setup. Three cells differ in the text itself.
        let odd = |cell: &&Cell| cell.published_percent.is_some_and(|p| (p - percent_of(cell)).abs() > 0.6);
        let odd: Vec<String> = cells.iter().filter(odd).map(|cell| format!("{cell:?}")).collect();
        assert!(odd.len() <= 6, "{odd:#?}");
    }

    #[test]
    fn setups_are_those_of_table_3() {
        let of = |table, value| Cell::all().into_iter().find(|c| c.table == table && c.axis_value == value);
        let setup = |table, value| of(table, value).map(|cell| cell.setup()).unwrap();
        let hspa = Setup { mbps: 20.0, rtt_ms: 100, loss: SetupLoss::Burst(50) };
        assert_eq!(setup(4, 50.0), hspa);
        assert_eq!(hspa.window_segments(), 180);
        assert_eq!(setup(5, 150.0), Setup { rtt_ms: 150, loss: SetupLoss::Burst(10), ..hspa });
        assert_eq!(setup(6, 0.05), Setup { loss: SetupLoss::Random(0.05), ..hspa });
        let lte = Setup { mbps: 100.0, rtt_ms: 200, loss: SetupLoss::Random(0.1) };
        assert_eq!((setup(13, 200.0), lte.window_segments()), (lte, 1_800));
        assert_eq!(setup(14, 200.0), Setup { loss: SetupLoss::Random(0.5), ..lte });
        assert_eq!(setup(15, 400.0), Setup { mbps: 400.0, rtt_ms: 100, ..lte });
    }
}

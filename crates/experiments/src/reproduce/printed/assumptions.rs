//! Cells that the printed forms of QARR and BARR miss. The text leaves details open; this tries other readings, one at
//! a time.

use paceline_sim::Scenario;
use paceline_sim::reproduce::or::{Cell, Setup, Variant};
use paceline_tcp::{DetectionName, ReceiveBuffer, ReductionName};
use serde_json::Value;

use super::tables::{OFF_POINTS, as_printed, case, is_wanted, name, with_client, with_server};
use super::{Case, GOODPUT, Measured, TIMEOUTS};
use crate::reproduce::report::{Bound, Section, number};

/// A published cell as printed, and with other readings of the text.
pub(super) struct Row {
    pub(super) name: String,
    cell: Cell,
    pub(super) printed: Case,
    pub(super) others: [Case; 2],
}

/// Tables 6, 7, 10, 11, 14 and 15, original variant.
pub(super) fn all() -> Vec<Row> {
    let is_one = |cell: &Cell| is_wanted(cell) && cell.variant == Variant::Original;
    Cell::all().into_iter().filter(is_one).map(row).collect()
}

fn row(cell: Cell) -> Row {
    let form = as_printed(&cell);
    let setup = cell.setup();
    let others = match form {
        ReductionName::QarrText => [
            case(&cell, "qarr-text-cumulative", Some(ReductionName::QarrTextCumulative), |scenario| scenario),
            case(
                &cell,
                "qarr-text-record, AW = C x U",
                Some(ReductionName::QarrTextRecord),
                move |scenario| with_exact_window(scenario, setup),
            ),
        ],
        _ => [
            case(&cell, "barr-text-keeps", Some(ReductionName::BarrTextKeeps), |scenario| scenario),
            case(&cell, "as printed, rfc6675", Some(form), |scenario| {
                with_server(scenario, |server| server.detection = DetectionName::Rfc6675)
            }),
        ],
    };
    let printed = case(&cell, "as printed", Some(form), |scenario| scenario);
    Row { name: format!("read otherwise: {}", name(&cell)), cell, printed, others }
}

/// Sets AW to C x U, in packets as the link carries them. A full window then leaves no queue.
fn with_exact_window(scenario: Scenario, setup: Setup) -> Scenario {
    let per_rtt = setup.rate().as_bytes_per_sec() * setup.rtt_ms / 1_000;
    let window = u32::try_from(per_rtt / PACKET_BYTES).unwrap_or(u32::MAX).saturating_mul(SEGMENT_BYTES);
    with_client(scenario, |client| client.receive_buffer = ReceiveBuffer::Fixed(window))
}

const PACKET_BYTES: u64 = 1_500;
const SEGMENT_BYTES: u32 = 1_448;

impl Row {
    /// Our utilization in a case minus the published one, in points, and half of the interval.
    fn off(&self, measured: &Measured<'_>, case: &Case) -> [f64; 2] {
        let goodput = measured.sample(case, GOODPUT).estimate();
        let points = |mbps: f64| mbps / self.cell.setup().mbps * 100.0;
        let published = self.cell.published_percent.unwrap_or(f64::NAN);
        [points(goodput.mean) - published, points(goodput.half_width)]
    }

    fn is_off(&self, measured: &Measured<'_>, case: &Case) -> bool {
        self.off(measured, case)[0].abs() > OFF_POINTS
    }

    fn to_row(&self, measured: &Measured<'_>) -> Vec<Value> {
        let mut row: Vec<Value> =
            vec![name(&self.cell).into(), number(self.cell.published_percent.unwrap_or(f64::NAN), 1)];
        for case in std::iter::once(&self.printed).chain(&self.others) {
            row.extend(self.off(measured, case).map(|value| number(value, 1)));
            row.push(number(measured.sample(case, TIMEOUTS).mean(), 1));
        }
        row
    }
}

/// Reports only cells that differ as printed. The bound counts those that differ with every other reading, too.
pub(super) fn report(rows: &[Row], measured: &Measured<'_>) -> (Section, Vec<Bound>) {
    let off: Vec<&Row> = rows.iter().filter(|row| row.is_off(measured, &row.printed)).collect();
    let is_open = |row: &&&Row| row.others.iter().all(|case| row.is_off(measured, case));
    let open: Vec<String> = off.iter().filter(is_open).map(|row| name(&row.cell)).collect();
    let section = Section {
        rows: off.iter().map(|row| row.to_row(measured)).collect(),
        ..Section::of("printed", "printed-assumptions")
    };
    let bound = Bound::at_most(
        format!("of {} cells off as printed: those that no other reading brings within 10 points", off.len()),
        0.0,
        open.len() as f64,
    );
    (section, vec![if open.is_empty() { bound } else { bound.with_note(open.join("; ")) }])
}

//! Published tables of opportunistic retransmission and ours:
//! `cargo run --release -p paceline-sim --example or_tables [RUNS [TABLE...]]`

use paceline_sim::reproduce::or::{Cell, measure};
use paceline_tcp::DetectionName;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let runs: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let tables: Vec<u8> = arguments.map(|text| text.parse()).collect::<Result<_, _>>()?;
    let wanted = |cell: &Cell| tables.is_empty() || tables.contains(&cell.table);
    let cells: Vec<Cell> = Cell::all().into_iter().filter(wanted).collect();
    println!(
        "| table | congestion control | loss recovery | variant | | published | ours | 95 % | stalled | timeouts |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for outcome in measure(&cells, runs, DetectionName::Fack)? {
        let (cell, ours) = (&outcome.cell, outcome.values.estimate());
        println!(
            "| {} | {} | {} | {} | {} {} | {} | {:.3} | ± {:.3} | {:.0} % | {} |",
            cell.table,
            cell.congestion_control,
            cell.loss_recovery,
            cell.variant.name(),
            cell.axis,
            cell.axis_value,
            cell.published,
            ours.mean,
            ours.half_width,
            outcome.stalled_share * 100.0,
            outcome.timeouts,
        );
    }
    Ok(())
}

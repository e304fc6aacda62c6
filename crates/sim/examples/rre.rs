use paceline_sim::reproduce::rre::*;
use paceline_tcp::CongestionName as C;
fn main() {
    let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
    let (down, up, delay) = (a[0], a[1], a[2]);
    for scheme in [C::Rre, C::Cubic, C::Reno, C::Vegas, C::Westwood, C::Bbr] {
        let mut transfers = vec![Transfer::download(scheme, Some(1_000_000)).after(delay)];
        if delay > 0.0 {
            transfers.push(Transfer::upload());
        }
        let s = Setup::new(down, up, 100.0);
        let w = s.run(&transfers, 600.0, 1, &mut ()).unwrap();
        let f = &w.result.flows[0];
        println!(
            "{scheme:>9} goodput {:.3} util1 {:.3} done {:?} rtx {} rto {} overflow {} wait {:.3} events {}",
            w.goodput_mbps(0),
            w.downlink.utilization(down),
            f.completion_s,
            f.retransmitted_segments,
            f.timeouts,
            w.overflow(),
            w.downlink.mean_wait_s(),
            w.result.events
        );
    }
}

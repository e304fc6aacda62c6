use paceline_sim::reproduce::rre::*;
use paceline_tcp::CongestionName as C;
fn main() {
    let step: usize = std::env::args().nth(1).map_or(1, |x| x.parse().unwrap());
    let mut ratios = vec![vec![]; 5];
    let schemes = [C::Rre, C::Cubic, C::Reno, C::Vegas, C::Westwood];
    let mut n = 0;
    let mut vutil = vec![];
    for up in 1..=12 {
        for down in 1..=16 {
            for delay in 1..=10 {
                n += 1;
                if n % step != 0 {
                    continue;
                }
                let (up, down, delay) = (up as f64 * 0.25, down as f64 * 0.5, delay as f64);
                let g: Vec<(f64, f64, u64)> = schemes
                    .iter()
                    .map(|&scheme| {
                        let transfers =
                            [Transfer::download(scheme, Some(1_000_000)).after(delay), Transfer::upload()];
                        let w = Setup::new(down, up, 100.0).run(&transfers, 600.0, 1, &mut ()).unwrap();
                        (w.goodput_mbps(0), w.downlink.utilization(down), w.result.flows[0].timeouts)
                    })
                    .collect();
                println!(
                    "up {up:.2} down {down:.1} delay {delay} {}",
                    g.iter().map(|x| format!("{:.3}/{:.2}/{}", x.0, x.1, x.2)).collect::<Vec<_>>().join("  ")
                );
                for i in 1..5 {
                    ratios[i].push(g[0].0 / g[i].0);
                }
                vutil.push(g[3].1);
                ratios[0].push(g[0].0);
            }
        }
    }
    let mut u: Vec<f64> = vutil.clone();
    u.sort_by(f64::total_cmp);
    println!("vegas util quantiles {:?}", (0..=20).map(|i| u[(u.len() - 1) * i / 20]).collect::<Vec<_>>());
    for i in 1..5 {
        let r = &mut ratios[i];
        r.sort_by(f64::total_cmp);
        let q = |f: f64| r[((r.len() - 1) as f64 * f) as usize];
        println!(
            "{} p5 {:.2} p10 {:.2} p25 {:.2} p50 {:.2} p75 {:.2} p90 {:.2} >5 {:.3} >10 {:.3}",
            schemes[i],
            q(0.05),
            q(0.1),
            q(0.25),
            q(0.5),
            q(0.75),
            q(0.9),
            r.iter().filter(|x| **x > 5.).count() as f64 / r.len() as f64,
            r.iter().filter(|x| **x > 10.).count() as f64 / r.len() as f64
        );
    }
}

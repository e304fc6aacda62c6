use paceline_sim::reproduce::rre::*;
use paceline_tcp::CongestionName as C;
fn jain(a: f64, b: f64) -> f64 {
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}
fn main() {
    let what = std::env::args().nth(1).unwrap();
    if what == "normal" {
        for down in 1..=16 {
            let down = down as f64 * 0.5;
            let g: Vec<String> = [C::Rre, C::Cubic, C::Reno, C::Vegas, C::Westwood]
                .iter()
                .map(|&s| {
                    let w = Setup::new(down, 1.0, 100.0)
                        .run(&[Transfer::download(s, Some(10_000_000))], 600.0, 1, &mut ())
                        .unwrap();
                    format!("{:.3} ({:.3} of {})", w.goodput_mbps(0), w.downlink.mean_wait_s(), w.overflow())
                })
                .collect();
            println!("{down} {}", g.join("  "));
        }
    }
    if what == "fair" {
        for (a, b) in [
            (C::Rre, C::Rre),
            (C::Rre, C::Cubic),
            (C::Cubic, C::Rre),
            (C::Vegas, C::Vegas),
            (C::Cubic, C::Cubic),
        ] {
            let mut js = vec![];
            let (mut x, mut y) = (0.0, 0.0);
            let verbose = std::env::args().nth(2).is_some();
            for down in (1..=16).step_by(3) {
                for delay in (1..=10).step_by(3) {
                    let down = down as f64 * 0.5;
                    let w = Setup::new(down, 1.0, 100.0)
                        .run(
                            &[
                                Transfer::download(a, Some(10_000_000)),
                                Transfer::download(b, Some(10_000_000)).after(delay as f64),
                            ],
                            900.0,
                            1,
                            &mut (),
                        )
                        .unwrap();
                    let (p, q) = (w.goodput_mbps(0), w.goodput_mbps(1));
                    if verbose {
                        println!(
                            "{a} {b} {down} {delay}: {p:.3} {q:.3} jain {:.3} wait {:.2}",
                            jain(p, q),
                            w.downlink.mean_wait_s()
                        );
                    }
                    js.push(jain(p, q));
                    x += p / down;
                    y += q / down;
                }
            }
            js.sort_by(f64::total_cmp);
            let n = js.len();
            println!(
                "{a} {b} jain min {:.3} p10 {:.3} p50 {:.3}; shares {:.3} {:.3}",
                js[0],
                js[n / 10],
                js[n / 2],
                x / n as f64,
                y / n as f64
            );
        }
    }
    if what == "steps" {
        for s in [C::Rre, C::Cubic] {
            let setup = Setup {
                down_mbps: vec![(0.0, 3.0), (15.0, 2.0), (24.0, 5.0), (30.0, 3.0)],
                rtt_ms: vec![(0.0, 100.0), (4.0, 150.0), (8.0, 200.0), (20.0, 100.0)],
                ..Setup::new(3.0, 1.0, 100.0)
            };
            let w = setup.run(&[Transfer::download(s, None)], 40.0, 1, &mut ()).unwrap();
            println!("{s} mean wait {:.3}", w.downlink.mean_wait_s());
            for (i, b) in w.downlink.bins().iter().enumerate().filter(|(i, _)| i % 2 == 0) {
                print!("{:.1}:{:.2}/{:.0}  ", i as f64 / 10.0, b.mbps(), b.mean_wait_s() * 1e3);
            }
            println!();
        }
    }
    if what == "long" {
        for up in [0.25, 0.5, 1.0, 2.0, 3.0] {
            for down in [0.5, 2.0, 4.0, 8.0] {
                for delay in [1.0, 5.0, 10.0] {
                    let t = [Transfer::download(C::Rre, None).after(delay), Transfer::upload()];
                    let w = Setup::new(down, up, 100.0).run(&t, 90.0, 1, &mut ()).unwrap();
                    let max = w.downlink.bins().iter().map(|b| b.wait.as_secs_f64()).fold(0.0, f64::max);
                    println!(
                        "up {up} down {down} delay {delay}: goodput {:.3} util {:.3} overflow {} max queue {:.0} kB mean wait {:.3} rto {}",
                        w.goodput_mbps(0),
                        w.downlink.utilization(down),
                        w.overflow(),
                        max * down * 125.0,
                        w.downlink.mean_wait_s(),
                        w.result.flows[0].timeouts
                    );
                }
            }
        }
    }
    if what == "phone" {
        use experiments::*;
        for phone in PHONES {
            for tick in [10_000, 1_000] {
                for seed in 1..=8 {
                    let mut setup = phone.setup(seed);
                    setup.clock.tick = paceline_wire::Duration::from_micros(tick);
                    let mut line = format!(
                        "Fig {} tick {tick} seed {seed} down {:.2} up {:.2}",
                        phone.figure,
                        setup.first_mbps(),
                        setup.up_mbps
                    );
                    for scheme in [C::Rre, C::Cubic] {
                        let w = setup.run(&phone.transfers(scheme, true), 600.0, seed, &mut ()).unwrap();
                        let f = &w.result.flows[0];
                        line += &format!(
                            "  {scheme} {:.3} {:?} util {:.3} rto {} up drops {}",
                            w.goodput_mbps(0),
                            f.completion_s,
                            w.downlink.utilization(setup.first_mbps()),
                            f.timeouts,
                            w.result.links["radio_up"].drops
                        );
                    }
                    println!("{line}");
                }
            }
        }
    }
    if what == "trace" {
        use experiments::*;
        struct W(u64);
        impl paceline_sim::Watch for W {
            fn sender(
                &mut self,
                now: paceline_wire::Instant,
                t: usize,
                st: &paceline_tcp::Status,
                read: u64,
            ) {
                if t == 0 && now.as_nanos() / 100_000_000 % self.0 == 0 {
                    println!(
                        "{:.1} cwnd {} inflight {} unacked {} sacked {} lost {} retrans {} rtt {:.3} rto {} pacing {:?} read {}",
                        now.as_secs_f64(),
                        st.snd_cwnd,
                        st.in_flight,
                        st.unacked,
                        st.sacked,
                        st.lost,
                        st.retrans,
                        st.rtt as f64 / 1e6,
                        st.total_rto,
                        st.pacing_rate,
                        read
                    );
                }
            }
        }
        let seed = 2;
        let phone = PHONES[1];
        let w = phone.setup(seed).run(&phone.transfers(C::Rre, true), 600.0, seed, &mut W(10)).unwrap();
        println!("{}", w.goodput_mbps(0));
    }
}

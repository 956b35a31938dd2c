//! What schedulers cost: the published table, and QFQ beside a walk through the same memory.
//!
//! `cargo bench -p narrows-lab --bench schedulers [-- PACKETS]`, 20m if nothing is said.

mod common;

use common::{Walk, workload};
use narrows_core::sched::Qfq;
use narrows_lab::bench::{BENCHED, Chain, PerFlow, Plan, columns, quantity, table, time};

const RUNS: u32 = 5;

fn main() {
    let packets = std::env::args().skip(1).find(|argument| argument != "--bench");
    let packets = quantity(packets.as_deref().unwrap_or("20m")).ok().and_then(|packets| packets.fixed());
    let packets = packets.expect("a number of packets, such as 20m");
    published(packets);
    walk();
}

/// The table of the slides, for 0 to 20 packets a flow.
fn published(packets: u64) {
    let columns = columns("1,8,64,512,4k,32k,mix").expect("these are loads");
    let thresholds = (quantity("0").expect("a number"), quantity("20n").expect("a number"));
    let plan = Plan::new(BENCHED.to_vec(), columns, thresholds, packets, RUNS).expect("it fits");
    let figures =
        plan.run(&mut |_| std::ops::ControlFlow::Continue(())).expect("every algorithm takes these flows");
    println!("{}", table(&plan, &figures));
}

/// QFQ, the walk in QFQ's own order, and the harness alone, by turns.
fn walk() {
    let packets = 5 << 20;
    println!("flows        NONE    walk     QFQ   QFQ/walk   net, ns a packet, least of {RUNS} runs");
    for flows in ["1", "10", "100", "1000", "10000", "100000"] {
        let workload = workload(flows);
        let mut least = [f64::INFINITY; 3];
        for _ in 0..RUNS {
            let qfq = || PerFlow::join(Qfq::default(), &workload).expect("QFQ takes these flows");
            let runs = [
                time(&workload, packets, &mut Chain::default()),
                time(&workload, packets, &mut Walk::like_qfq(&workload, packets)),
                time(&workload, packets, &mut qfq()),
            ];
            for (least, run) in least.iter_mut().zip(runs) {
                *least = least.min(run.expect("all serve").nanoseconds_per_packet());
            }
        }
        let [none, walk, qfq] = least;
        let (ratio, net) = (qfq / walk, (qfq - none) / (walk - none));
        println!("{flows:>6}  {none:>9.1}  {walk:>6.1}  {qfq:>6.1}  {ratio:>9.2}  {net:>5.2}");
    }
}

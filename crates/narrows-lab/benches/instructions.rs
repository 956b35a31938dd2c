//! Runs one algorithm for so many packets, to count instructions: see `instructions.sh`.

use narrows_lab::Algorithm;
use narrows_lab::bench::{BENCHED, Workload, columns, quantity, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [name, flows, packets] = arguments.as_slice() else {
        println!("to count instructions a packet, run crates/narrows-lab/benches/instructions.sh");
        return;
    };
    let column = columns(flows).expect("a number of flows").remove(0);
    let (qmin, qmax) = (quantity("0").expect("a number"), quantity("20n").expect("a number"));
    let workload = Workload::new(&column, qmin, qmax).expect("it fits");
    let packets = packets.parse().expect("a number");
    for algorithm in Algorithm::parse_list(name, BENCHED).expect("an algorithm") {
        run(algorithm, &workload, packets).expect("it takes these flows");
    }
}

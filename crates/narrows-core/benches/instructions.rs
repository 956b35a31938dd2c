//! Runs one case for so many packets, to count instructions: see `instructions.sh`.

mod common;

use common::{Case, Run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [case, in_flight, packets] = arguments.as_slice() else {
        println!("to count instructions a packet, run crates/narrows-core/benches/instructions.sh");
        return;
    };
    let (in_flight, packets) = (in_flight.parse().expect("a number"), packets.parse().expect("a number"));
    let mut run = match case.as_str() {
        "heap-random" => Run::new(Case::HeapRandom, in_flight),
        "heap-growing" => Run::new(Case::HeapGrowing, in_flight),
        "constant" => Run::new(Case::Constant, in_flight),
        "jitter" => Run::new(Case::Jitter, in_flight),
        "normal" => Run::new(Case::Normal, in_flight),
        "gilbert-elliott" => Run::new(Case::GilbertElliott, in_flight),
        "slots" => Run::new(Case::Slots, in_flight),
        "netem" => Run::new(Case::Netem, in_flight),
        "fed" => Run::new(Case::Fed, in_flight),
        "trace" => Run::new(Case::Trace, in_flight),
        "opportunities" => Run::new(Case::Opportunities, in_flight),
        "unlimited" => Run::new(Case::Unlimited, in_flight),
        "100000-links" => Run::among(100_000, Case::Constant, in_flight),
        other => panic!("no case `{other}`"),
    };
    run.packets(packets);
}

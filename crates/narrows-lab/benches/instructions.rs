//! Runs one algorithm for so many packets, to count instructions: see `instructions.sh`. The algorithm `plugin` is the module
//! of that name in `NARROWS_PLUGIN`.

use narrows_lab::Algorithm;
use narrows_lab::bench::{BENCHED, Plugin, Workload, columns, quantity, run};
use narrows_plugin::Module;
use narrows_scenario::SchedulerKind;

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
    let plugin = std::env::var_os("NARROWS_PLUGIN").map(|file| {
        let module = Module::new(&std::fs::read(file).expect("a file")).expect("a module");
        Plugin { module, parameters: Vec::new() }
    });
    let known = [BENCHED, &[Algorithm::Of(SchedulerKind::Plugin)]].concat();
    for algorithm in Algorithm::parse_list(name, &known).expect("an algorithm") {
        run(algorithm, plugin.as_ref(), &workload, packets).expect("it takes these flows");
    }
}

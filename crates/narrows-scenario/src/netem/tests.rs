use super::*;

/// The keys that a text comes to.
fn keys(text: &str) -> Vec<String> {
    let qdisc = parse(text).unwrap_or_else(|error| panic!("{error}"));
    qdisc.assignments().unwrap().iter().map(|(key, value)| format!("{key} = {value}")).collect()
}

fn error(text: &str) -> String {
    parse(text).map(|qdisc| qdisc.text()).unwrap_err().to_string()
}

#[test]
fn show() {
    for t in [
        "delay 100ms 20ms 25% distribution normal loss 0.3% 25% rate 1mbit limit 50",
        "gap 5 delay 20ms",
        "rate 5kbit 20 100 5",
        "delay 5 10 slot 800us 10ms bytes 64k packets 42 loss gemodel 1 ecn",
        "root delay limit 1500 reorder true",
        "dely 10ms",
        "delay 10mss",
        "loss gemodl 1%",
        "loss",
        "distribution normal",
        "d 10ms",
        "delay 10ms 5ms distribution nromal",
        "root tbf rate 1mbit",
        "delay 10ms 25%",
        "loss 120%",
    ] {
        match parse(t) {
            Ok(q) => println!("=== {t}\n{}\n{}\n{}", q.explain(), keys(t).join("\n"), q.text()),
            Err(e) => println!("=== {t}\n{e}"),
        }
    }
}

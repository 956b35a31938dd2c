//! What live runs reach on this host, measured with `iperf3` and `ping` (which must be installed), as tables.
//!
//! ```text
//! cargo bench -p narrows-cli --bench live -- [rate] [latency] [tcp] [speed] [lateness] [--seconds N]
//! ```
//!
//! Nothing is asserted: a busy host is slow. `speed` puts the bare forwarder of narrows-io beside the whole program, in
//! the same run; build it first with `cargo build --release -p narrows-io --example forwarder`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

const NARROWS: &str = env!("CARGO_BIN_EXE_narrows");
/// An IP packet of `iperf3 -u -l 1470`.
const PACKET: u64 = 1498;

fn main() -> Outcome<()> {
    let mut arguments: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    let mut seconds = 5;
    if let Some(at) = arguments.iter().position(|a| a == "--seconds") {
        seconds = arguments.get(at + 1).ok_or("--seconds N")?.parse()?;
        arguments.drain(at..at + 2);
    }
    let wants = |what: &str| arguments.is_empty() || arguments.iter().any(|a| a == what);
    if wants("rate") {
        rate_matrix(seconds)?;
    }
    if wants("latency") {
        latency_matrix()?;
    }
    if wants("tcp") {
        tcp_matrix(seconds)?;
    }
    if wants("lateness") {
        lateness(seconds)?;
    }
    if wants("speed") {
        speed(seconds)?;
    }
    Ok(())
}

/// A run of the program: what CMD printed, and the report.
struct Run {
    output: String,
    report: Value,
}

fn narrows(flags: &[&str], server: Option<&str>, command: &str) -> Outcome<Run> {
    let json = env::temp_dir().join(format!("narrows-bench-{}.json", std::process::id()));
    let mut run = Command::new(NARROWS);
    run.arg("run").args(flags).arg("--quiet").arg("--json").arg(&json);
    if let Some(server) = server {
        run.args(["--on", "server", server]);
    }
    let output = run.args(["--", "sh", "-c", command]).stderr(Stdio::null()).output()?;
    let report = serde_json::from_slice(&fs::read(&json)?)?;
    fs::remove_file(json)?;
    Ok(Run { output: text(output), report })
}

fn text(output: Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const SERVER: &str = "iperf3 -s -1 >/dev/null 2>&1";

impl Run {
    fn number(&self, pointer: &str) -> f64 {
        self.report.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    fn iperf(&self) -> Outcome<Value> {
        Ok(serde_json::from_str(&self.output)?)
    }

    fn late(&self, quantile: &str) -> String {
        micros(self.number(&format!("/lateness/{quantile}")) / 1e3)
    }
}

fn micros(micros: f64) -> String {
    if micros >= 1000.0 { format!("{:.2} ms", micros / 1e3) } else { format!("{micros:.1} µs") }
}

/// Moe's rate matrix: 1470 bytes of UDP payload at 120 % of the rate.
fn rate_matrix(seconds: u64) -> Outcome<()> {
    println!("\nrate matrix: iperf3 UDP, 1470-byte payload at 120 % of the rate, {seconds} s");
    println!(
        "{:>10} {:>8} {:>12} {:>14} {:>9}   lateness median, 99 %",
        "rate", "delay", "queue", "received", "error"
    );
    let rows = [
        ("1.5mbit", 1_500_000, [2, 3, 13]),
        ("0.5mbit", 500_000, [2, 3, 13]),
        ("10mbit", 10_000_000, [2, 17, 84]),
        ("100mbit", 100_000_000, [17, 167, 834]),
    ];
    for (rate, bits, queues) in rows {
        for (delay, queue) in ["0ms", "10ms", "50ms"].into_iter().zip(queues) {
            let offered = bits as f64 * 1.2 * 1470.0 / PACKET as f64;
            let command = format!(
                "iperf3 -J --get-server-output -u -b {offered:.0} -l 1470 -t {seconds} -c $NARROWS_SERVER"
            );
            let queue = format!("{queue} packets");
            let flags = ["--rate", rate, "--delay", delay, "--queue", &queue];
            let run = narrows(&flags, Some("iperf3 -s -1 -J >/dev/null 2>&1"), &command)?;
            let received = steady_rate(&run.iperf()?);
            let error = 100.0 * (received / bits as f64 - 1.0);
            let (median, p99) = (run.late("p50_ns"), run.late("p99_ns"));
            println!(
                "{rate:>10} {delay:>8} {queue:>12} {:>9.4} Mbit {error:>+7.2} %   {median}, {p99}",
                received / 1e6
            );
        }
    }
    Ok(())
}

/// What the server received, with headers, in its own one-second intervals but for the first and what follows the last
/// whole one, in which traffic begins and ends.
fn steady_rate(iperf: &Value) -> f64 {
    let intervals = iperf["server_output_json"]["intervals"].as_array().map_or(&[][..], Vec::as_slice);
    let whole = intervals.iter().map(|interval| &interval["sum"]).skip(1);
    let (mut bits, mut seconds) = (0.0, 0.0);
    for sum in whole.filter(|sum| sum["seconds"].as_f64().is_some_and(|length| length > 0.9)) {
        bits += sum["bytes"].as_f64().unwrap_or(f64::NAN) / 1470.0 * (PACKET * 8) as f64;
        seconds += sum["seconds"].as_f64().unwrap_or(f64::NAN);
    }
    bits / seconds
}

const LATENCY: [(&str, &str); 3] = [("10ms", "17 packets"), ("50ms", "84 packets"), ("200ms", "334 packets")];

/// 1,000 pings at 10 ms through 10 Mbit/s.
fn latency_matrix() -> Outcome<()> {
    println!("\nlatency matrix: 1,000 pings at 10 ms through 10 Mbit/s");
    println!(
        "{:>9} {:>12} {:>12} {:>12} {:>16}   release late: median, 99 %",
        "one way", "queue", "ping min", "ping mean", "engine's median"
    );
    for (delay, queue) in LATENCY {
        let command = "ping -q -c 1000 -i 0.01 $NARROWS_SERVER";
        let run = narrows(&["--rate", "10mbit", "--delay", delay, "--queue", queue], None, command)?;
        let times = run.output.split(" = ").nth(1).unwrap_or_default();
        let times: Vec<&str> = times.split('/').collect();
        let median = run.number("/pairs/0/delay/p50_ns") / 1e6;
        let time = |at: usize| times.get(at).copied().unwrap_or("?").to_owned();
        let (late, p99) = (run.late("p50_ns"), run.late("p99_ns"));
        println!(
            "{delay:>9} {queue:>12} {:>9} ms {:>9} ms {median:>13.4} ms   {late}, {p99}",
            time(0),
            time(1)
        );
    }
    Ok(())
}

/// TCP over the same three: the longer flight of the two queues.
fn tcp_matrix(seconds: u64) -> Outcome<()> {
    println!("\nTCP through the same three, {seconds} s: headers counted, the wire carries 10 Mbit/s");
    println!(
        "{:>9} {:>12} {:>14} {:>12} {:>14} {:>10}",
        "one way", "queue", "goodput", "wire", "mean RTT", "resent"
    );
    for (delay, queue) in LATENCY {
        let command = format!("iperf3 -J -t {seconds} -c $NARROWS_SERVER");
        let run = narrows(&["--rate", "10mbit", "--delay", delay, "--queue", queue], Some(SERVER), &command)?;
        let json = run.iperf()?;
        let goodput = json["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(f64::NAN) / 1e6;
        let rtt = json["end"]["streams"][0]["sender"]["mean_rtt"].as_f64().unwrap_or(f64::NAN) / 1e3;
        let resent = json["end"]["sum_sent"]["retransmits"].as_u64().unwrap_or(0);
        let wire = run.number("/directions/0/wire_bps") / 1e6;
        println!("{delay:>9} {queue:>12} {goodput:>9.3} Mbit {wire:>7.3} Mbit {rtt:>11.1} ms {resent:>10}");
    }
    Ok(())
}

/// The program's own probes, from socket to socket.
fn lateness(seconds: u64) -> Outcome<()> {
    println!(
        "\nprobes through 2 ms, both ways, {seconds} s: one way from socket to socket beyond 2 ms, and release late"
    );
    println!("{:>10} {:>12} {:>12} {:>14} {:>12}", "a second", "median", "99 %", "late median", "late 99 %");
    for rate in [100, 1_000, 10_000] {
        let probe = format!("--probe={rate}");
        let run = narrows(&["--delay", "2ms", &probe], None, &format!("sleep {seconds}"))?;
        let over = |quantile: &str| micros(run.number(&format!("/probes/0/delay/{quantile}")) / 1e3 - 2000.0);
        let (late, p99) = (run.late("p50_ns"), run.late("p99_ns"));
        println!("{rate:>10} {:>12} {:>12} {late:>14} {p99:>12}", over("p50_ns"), over("p99_ns"));
    }
    Ok(())
}

/// As fast as it goes, beside the bare forwarder.
fn speed(seconds: u64) -> Outcome<()> {
    let forwarder = forwarder();
    println!(
        "\nspeed: through an unlimited link without delay, beside the bare forwarder of narrows-io, {seconds} s"
    );
    let tcp = format!("iperf3 -J -t {seconds} -c SERVER");
    let udp = |rate: &str| format!("iperf3 -J -u -b {rate} -l 64 -w 4M -t {seconds} -c SERVER");
    let cases = [("TCP", tcp), ("UDP 64 B, 180,000/s", udp("92.16M")), ("UDP 64 B, unpaced", udp("0"))];
    for (name, command) in cases {
        let run = narrows(&[], Some(SERVER), &command.replace("SERVER", "$NARROWS_SERVER"))?;
        println!("{name:>22}  narrows    {}", summary(&run.iperf()?));
        let lost = run.number("/losses/receive_ring_dropped_packets");
        let failed = run.number("/losses/send_failed_packets");
        let (delivered, offered) =
            (run.number("/directions/0/delivered/packets"), run.number("/directions/0/offered/packets"));
        println!(
            "{:>22}  its report: {offered} taken, {delivered} delivered, {lost} lost to full receive buffers, {failed} refused",
            ""
        );
        if let Some(forwarder) = &forwarder {
            let bare = Command::new(forwarder)
                .args(["--server", "iperf3 -s -1", "--", "sh", "-c"])
                .arg(format!("sleep 0.3; {}", command.replace("SERVER", "10.99.0.2")))
                .stderr(Stdio::null())
                .output()?;
            let output = text(bare);
            let start = output.find("{\n").unwrap_or(0);
            let mut values = serde_json::Deserializer::from_str(&output[start..]).into_iter::<Value>();
            let client = values.by_ref().flatten().find(|value| value["end"]["sum_received"].is_object());
            println!("{:>22}  forwarder  {}", "", client.map_or_else(|| "no result".into(), |v| summary(&v)));
        }
    }
    Ok(())
}

fn summary(iperf: &Value) -> String {
    let end = &iperf["end"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let received = &end["sum_received"];
    match received["packets"].as_f64() {
        Some(packets) => {
            let seconds = number(&received["seconds"]);
            let arrived = packets - number(&received["lost_packets"]);
            format!(
                "{:.0} offered/s, {:.0} received/s, {:.2} % lost",
                packets / seconds,
                arrived / seconds,
                number(&received["lost_percent"])
            )
        }
        None => format!("{:.3} Gbit/s", number(&received["bits_per_second"]) / 1e9),
    }
}

fn forwarder() -> Option<PathBuf> {
    let path = Path::new(NARROWS).parent()?.join("examples/forwarder");
    if !path.exists() {
        println!("(no {}: the bare forwarder is left out)", path.display());
        return None;
    }
    Some(path)
}

//! How late packets leave, what a round trip takes, and what waiting costs.

use std::net::SocketAddr;

use narrows_frame::MacAddress;
use narrows_frame::craft::Udp;
use narrows_io::clock::clock_monotonic;
use narrows_io::link::{VethEnd, create_veth};
use narrows_io::namespace::Namespace;
use narrows_io::packet_socket::PacketSocket;
use narrows_io::route_socket::RouteSocket;

use crate::row::{Aim, head, left_out, row};
use crate::udp::offered;
use crate::way::{Way, narrows, number};
use crate::{Effort, Outcome};

/// Bytes of a frame, as `narrows calibrate` sends.
const LENGTH: usize = 769;
const RATE: u32 = 130_000;
/// Where the knee is looked for, packets a second.
const RATES: [u32; 6] = [65_000, RATE, 195_000, 260_000, 325_000, 390_000];
/// All but one packet in a hundred are to be within this of their instant, up to the knee.
const KNEE_NANOS: f64 = 50_000.0;

/// How late a loop is, in nanoseconds, that looks at the clock without pause and sends a frame at each instant: until the call
/// has returned. Median, and 99 %.
fn floor(seconds: u32) -> Outcome<(f64, f64)> {
    let (near, far) = (Namespace::create()?, Namespace::create()?);
    let end = |namespace| VethEnd { namespace, name: "eth0", mac: None };
    create_veth(&end(&near), &end(&far), 1500)?;
    for namespace in [&near, &far] {
        RouteSocket::open(namespace)?.set_up("eth0")?;
    }
    RouteSocket::open(&far)?.wait_for_carrier("eth0", std::time::Duration::from_secs(5))?;
    let mut socket = PacketSocket::open(&near, "eth0")?;
    let address = |host: u8| SocketAddr::from(([192, 0, 2, host], 9));
    let (nobody, sender) = (MacAddress([2, 0, 0, 0, 0, 9]), MacAddress([2, 0, 0, 0, 0, 8]));
    let frame = Udp::new(address(1), address(2)).ethernet(nobody, sender, &[0; LENGTH - 42]);
    let start = clock_monotonic().as_nanos();
    let mut late = Vec::new();
    for number in 0..u64::from(RATE) * u64::from(seconds) {
        let due = start + number * 1_000_000_000 / u64::from(RATE);
        while clock_monotonic().as_nanos() < due {
            std::hint::spin_loop();
        }
        if socket.send(&[&frame]).count == 1 {
            late.push(clock_monotonic().as_nanos() - due);
        }
    }
    late.sort_unstable();
    let at = |percent: usize| late.get(late.len() * percent / 100).map_or(f64::NAN, |&nanos| nanos as f64);
    Ok((at(50), at(99)))
}

pub(crate) fn lateness(effort: Effort) -> Outcome<()> {
    let seconds = effort.seconds;
    head(
        &format!(
            "Lateness through 1 ms, until the call that sends has returned, at {RATE} a second, {seconds} s each"
        ),
        "µs over it",
        "",
    );
    let (median, p99) = floor(seconds)?;
    let figure = |median: f64, p99: f64| format!("{:.2} µs, 99 % {:.2} µs", median / 1e3, p99 / 1e3);
    row("a bare loop that looks at the clock and sends", f64::NAN, Aim::None, &figure(median, p99));
    for flags in ["--wait hybrid", "--wait spin --backend af_packet", "--wait spin --backend af_xdp"] {
        let name = format!("narrows {flags}");
        match offered(&narrows(&format!("--delay 1ms {flags}")), seconds, RATE, LENGTH) {
            Ok((_, report)) => {
                let late = |quantile| number(&report, &format!("/sent_lateness/{quantile}"));
                let (own, own99) = (late("p50_ns"), late("p99_ns"));
                row(&format!("{name}: median"), (own - median) / 1e3, Aim::AtMost(0.5), &figure(own, own99));
                row(&format!("{name}: 99 %"), (own99 - p99) / 1e3, Aim::AtMost(5.0), "");
            }
            Err(why) => left_out(&name, &why),
        }
    }
    head("The knee: the highest rate at which 99 % are within 50 µs of their instant", "99 %, µs", "");
    let mut knee = 0;
    for rate in RATES {
        let name = format!("{rate} a second");
        match offered(&narrows("--delay 1ms --wait spin"), seconds.min(5), rate, LENGTH) {
            Ok((seen, report)) => {
                let late = |quantile| number(&report, &format!("/sent_lateness/{quantile}"));
                if late("p99_ns") <= KNEE_NANOS && seen.sent > 0.98 * f64::from(rate) {
                    knee = rate;
                }
                let figure = format!("median {:.2} µs, {:.0} sent", late("p50_ns") / 1e3, seen.sent);
                row(&name, late("p99_ns") / 1e3, Aim::None, &figure);
            }
            Err(why) => left_out(&name, &why),
        }
    }
    row("the knee", f64::NAN, Aim::None, &if knee > 0 { knee.to_string() } else { "none of these".into() });
    Ok(())
}

pub(crate) fn round_trips(effort: Effort) -> Outcome<()> {
    let count = effort.seconds * 100;
    head(&format!("Round trips through 2 ms, {count} pings: median over the bare cable and 2 ms"), "µs", "");
    let median = |way: &Way| -> Outcome<f64> {
        let done = way.run("sleep 600", &format!("ping -c {count} -i 0.01 SERVER"))?;
        let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse::<f64>().ok();
        let mut times: Vec<f64> = done.output.lines().filter_map(time).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).map(|millis| millis * 1e3).ok_or_else(|| "no answer came".into())
    };
    let cable = median(&Way::Cable)?;
    let figure = |micros: f64| format!("{micros:.0} µs");
    row("a bare cable", f64::NAN, Aim::None, &figure(cable));
    match median(&Way::Forwarder(&[])) {
        Ok(micros) => row("a bare forwarder, no delay", micros - cable, Aim::None, &figure(micros)),
        Err(why) => left_out("a bare forwarder", &why),
    }
    for flags in ["", "--wait spin", "--backend af_packet", "--backend af_xdp", "--backend tap"] {
        let name = format!("narrows --delay 1ms {flags}");
        match median(&narrows(&format!("--delay 1ms {flags}"))) {
            Ok(micros) => row(&name, micros - cable - 2000.0, Aim::AtMost(20.0), &figure(micros)),
            Err(why) => left_out(&name, &why),
        }
    }
    Ok(())
}

pub(crate) fn idle(effort: Effort) -> Outcome<()> {
    // So long that what a program's start takes is little beside it.
    let seconds = 7 * effort.seconds;
    head(&format!("What an idle run takes of a processor, {seconds} s each"), "%", "");
    for (wait, aim) in [("hybrid", Aim::AtMost(2.0)), ("timer", Aim::AtMost(0.1)), ("spin", Aim::None)] {
        let name = format!("narrows --delay 1ms --wait {wait}");
        match narrows(&format!("--delay 1ms --wait {wait}")).run("sleep 600", &format!("sleep {seconds}")) {
            Ok(done) => row(&name, 100.0 * done.number("/host/loop_processor_share"), aim, ""),
            Err(why) => left_out(&name, &why),
        }
    }
    Ok(())
}

//! The engine in virtual time, fed with the instants at which datagrams were sent in the guest.

use std::net::{Ipv4Addr, SocketAddr};

use narrows_core::{Engine, Time, Verdict};
use narrows_frame::craft::{Other, Udp};
use narrows_frame::parse::{parse, tcp_options};
use narrows_frame::{LinkLayer, MacAddress};
use narrows_scenario::{Scenario, ScenarioError};

use crate::case::Case;
use crate::trace::{Came, Trace};
use crate::traffic::Datagram;

/// What the engine makes of the datagrams, when they are handed in at these instants of the wall clock, in nanoseconds, a
/// second after the beginning of the run.
///
/// # Errors
/// When narrows does not understand the case.
///
/// # Panics
/// When the scenario is none between a client and a server.
pub fn run(case: &Case, sent: &[u64]) -> Result<Trace, ScenarioError> {
    run_from(case, sent, sent.first().map_or(0, |first| first - 1_000_000_000))
}

/// The same in a run that begins then: controllers act at whole multiples of their period from there.
///
/// # Errors
/// When narrows does not understand the case.
///
/// # Panics
/// When the scenario is none between a client and a server.
pub fn run_from(case: &Case, sent: &[u64], begin: u64) -> Result<Trace, ScenarioError> {
    let scenario = Scenario::parse(&case.scenario()?, case.name)?;
    let mut engine = Engine::new(scenario.network()).expect("a scenario that was understood can be built");
    let port = engine.port("client.link").expect("the link begins at the client");
    let mut came = Vec::new();
    let mut poll = |engine: &mut Engine<usize>, until: u64| {
        while let Some(event) = engine.poll(Time::from_nanos(until)) {
            // One with a flipped bit comes, and its checksum is wrong.
            if matches!(event.verdict, Verdict::Delivered(_)) && event.flips.is_empty() {
                came.push(Came {
                    number: *event.body.get() as u32,
                    at: begin + event.at.nanos(),
                    traffic_class: event.key.traffic_class,
                });
            }
        }
    };
    for (number, (datagram, at)) in case.traffic.iter().zip(sent).enumerate() {
        let frame = frame(datagram, number as u32);
        let options = tcp_options(LinkLayer::Ethernet, &frame, frame.len() as u32);
        engine.set_tcp_options(options.unwrap_or_default());
        engine.hand_in(Time::from_nanos(at - begin), port, parse(LinkLayer::Ethernet, &frame).with(number));
        poll(&mut engine, at - begin);
    }
    poll(&mut engine, u64::MAX / 2);
    Ok(Trace { sent: sent.to_vec(), came })
}

fn frame(datagram: &Datagram, number: u32) -> Vec<u8> {
    let Datagram { traffic_class, ends, .. } = *datagram;
    let source = ends.source.unwrap_or(Ipv4Addr::new(10, 213, 0, 1));
    let destination = ends.destination.unwrap_or(Ipv4Addr::new(10, 213, 0, 2));
    let [source_port, destination_port] = datagram.ports();
    let (source, destination) =
        (SocketAddr::from((source, source_port)), SocketAddr::from((destination, destination_port)));
    let macs = [MacAddress([2, 0, 0, 0, 0, 2]), MacAddress([2, 0, 0, 0, 0, 1])];
    let bytes = datagram.bytes(number);
    if datagram.segment.is_none() {
        let udp = Udp { traffic_class, ..Udp::new(source, destination) };
        return udp.ethernet(macs[0], macs[1], &bytes);
    }
    let mut frame = [&macs[0].0[..], &macs[1].0, &[8, 0]].concat();
    let tcp = Other { traffic_class, ..Other::new(source, destination, 6) };
    let headers = frame.len() + 20;
    tcp.append(&bytes[20..], &mut frame);
    // In place of a header without options.
    frame[headers..].copy_from_slice(&bytes);
    frame
}

//! The engine in virtual time, fed with the instants at which datagrams were sent in the guest.

use std::net::{Ipv4Addr, SocketAddr};

use narrows_core::{Engine, Time, Verdict};
use narrows_frame::craft::Udp;
use narrows_frame::parse::parse;
use narrows_frame::{LinkLayer, MacAddress};
use narrows_scenario::{Scenario, ScenarioError};

use crate::case::Case;
use crate::sender::{FIRST_FLOW, PORT};
use crate::trace::{Came, Trace};
use crate::traffic::{Datagram, HEADERS};

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
        let frame = frame(datagram);
        engine.hand_in(Time::from_nanos(at - begin), port, parse(LinkLayer::Ethernet, &frame).with(number));
        poll(&mut engine, at - begin);
    }
    poll(&mut engine, u64::MAX / 2);
    Ok(Trace { sent: sent.to_vec(), came })
}

fn frame(datagram: &Datagram) -> Vec<u8> {
    let ends = datagram.ends;
    let source = SocketAddr::from((
        ends.source.unwrap_or(Ipv4Addr::new(10, 213, 0, 1)),
        ends.source_port.unwrap_or(FIRST_FLOW + datagram.flow),
    ));
    let destination = SocketAddr::from((
        ends.destination.unwrap_or(Ipv4Addr::new(10, 213, 0, 2)),
        ends.destination_port.unwrap_or(PORT),
    ));
    let udp = Udp { traffic_class: datagram.traffic_class, ..Udp::new(source, destination) };
    let payload = vec![0; (datagram.length - HEADERS) as usize];
    udp.ethernet(MacAddress([2, 0, 0, 0, 0, 2]), MacAddress([2, 0, 0, 0, 0, 1]), &payload)
}

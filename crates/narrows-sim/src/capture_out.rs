//! What left the network and what was dropped, as pcapng.
//!
//! There is an interface for each port. A delivered packet is on the interface of the port where it left, at the instant
//! at which it did, with everything that the network did to it. A dropped one is on that of the port where it had come
//! in, at the instant of the drop, with a comment that says where and why: `dropped at access.down: queue full`. Instants
//! count from the start of 1970 unless the run has a start on the wall clock.
//!
//! A packet from a capture has its bytes, as far as that kept them. One that was generated becomes a packet of its protocol
//! full of zeros, with the addresses and ports of its flow; where its length leaves no room for the headers, they are cut
//! off.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use narrows_core::{Event, FlowKey, PortId, Protocol, Verdict};
use narrows_frame::capture::{CaptureWriter, Captured, Interface};
use narrows_frame::craft::{Other, Udp};
use narrows_frame::edit::Edits;
use narrows_frame::{LinkLayer, WallTime};

use crate::error::SimError;
use crate::input::{Body, Frame};
use crate::names::Names;
use crate::output::Output;
use crate::tcp::ethernet_header;

pub(crate) struct CaptureOut {
    writer: CaptureWriter<Output>,
    start: WallTime,
    /// One for each port and link layer that came up, in that order.
    interfaces: Vec<(PortId, Interface)>,
    crafted: Vec<u8>,
    rendered: Vec<u8>,
    zeros: Vec<u8>,
}

impl CaptureOut {
    /// Instants count from `start`; `title` says what runs.
    pub(crate) fn new(output: Output, title: &str, start: WallTime) -> Result<Self, SimError> {
        let name = output.name().to_owned();
        let writer = CaptureWriter::new(name, output, title)?;
        let (crafted, rendered, zeros) = Default::default();
        Ok(Self { writer, start, interfaces: Vec::new(), crafted, rendered, zeros })
    }

    pub(crate) fn event(&mut self, names: &Names, event: &Event<'_, Body>) -> Result<(), SimError> {
        let (port, comment) = match event.verdict {
            Verdict::Delivered(port) => (port, None),
            Verdict::Dropped { at, reason } => {
                let place = at.map_or(String::new(), |at| format!(" at {}", names.element(at)));
                (event.id.port(), Some(format!("dropped{place}: {}", reason.name())))
            }
        };
        let body = event.body.get();
        let layer = body.frame.as_ref().map_or(LinkLayer::Ethernet, |frame| frame.layer);
        let interface = self.interface(port, layer, names)?;
        if body.frame.is_none() {
            self.craft(event, port, body.length);
        }
        let (bytes, whole) = match body.frame.as_deref() {
            Some(Frame { bytes, original, .. }) => (&bytes[..], *original),
            None => (&self.crafted[..], self.crafted.len() as u32),
        };
        Edits::of(event).render(bytes, &mut self.rendered);
        let length = match event.fragment {
            Some(_) => u32::from(event.link_header) + event.length,
            None => whole,
        };
        let instant = self.start + event.at.since(narrows_core::Time::ZERO);
        let bytes = &self.rendered[..];
        self.writer.write(&Captured { instant, interface, length, bytes, comment: comment.as_deref() })?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), SimError> {
        self.writer.finish()?.finish()
    }

    fn interface(&mut self, port: PortId, layer: LinkLayer, names: &Names) -> Result<Interface, SimError> {
        let is = |(of, interface): &&(PortId, Interface)| *of == port && interface.layer() == layer;
        if let Some((_, interface)) = self.interfaces.iter().find(is) {
            return Ok(*interface);
        }
        let interface = self.writer.interface(names.port(port), layer)?;
        self.interfaces.push((port, interface));
        Ok(interface)
    }

    /// Makes an Ethernet frame whose IP packet has `length` bytes.
    fn craft(&mut self, event: &Event<'_, Body>, to: PortId, length: u32) {
        let FlowKey {
            source,
            destination,
            source_port,
            destination_port,
            traffic_class,
            network,
            transport,
            ..
        } = event.key;
        let address = |bytes: [u8; 16]| -> IpAddr {
            let wide = Ipv6Addr::from(bytes);
            match network {
                Protocol::Ipv6 => wide.into(),
                _ => wide.to_ipv4_mapped().map_or(IpAddr::from([0; 4]), IpAddr::from),
            }
        };
        let (source, destination): (SocketAddr, SocketAddr) =
            ((address(source), source_port).into(), (address(destination), destination_port).into());
        let dont_fragment = network == Protocol::Ipv4DontFragment;
        let identification = event.id.number() as u16;
        let udp = Udp { traffic_class, dont_fragment, identification, ..Udp::new(source, destination) };
        let other = Other {
            traffic_class,
            dont_fragment,
            identification,
            ..Other::new(source, destination, transport)
        };
        let header = if transport == UDP { 8 } else { other.header() };
        let headers = if network == Protocol::Ipv6 { 40 } else { 20 } + header;
        let payload = (length as usize).saturating_sub(headers).min(udp.most_payload() + 8 - header);
        if self.zeros.len() < payload {
            self.zeros.resize(payload, 0);
        }
        self.crafted.clear();
        self.crafted.extend_from_slice(&ethernet_header(to, event.id.port(), network));
        match transport {
            UDP => udp.append(&self.zeros[..payload], &mut self.crafted),
            _ => other.append(&self.zeros[..payload], &mut self.crafted),
        }
        self.crafted.truncate(LINK_HEADER + length as usize);
    }
}

const LINK_HEADER: usize = 14;
const UDP: u8 = 17;

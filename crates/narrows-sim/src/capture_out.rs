//! Writes delivered and dropped packets as pcapng ([`narrows_frame::capture::verdicts`]). Instants count from the
//! start of 1970 unless the run has a wall-clock start.
//!
//! A packet from a capture has its bytes, as far as the capture kept them. A generated packet becomes a packet of its
//! protocol with a payload of zeros and the addresses and ports of its flow; if its length leaves no room for the
//! headers, they are truncated.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use narrows_core::{Event, FlowKey, PortId, Protocol, Verdict};
use narrows_frame::capture::verdicts::{Fate, Outcome, VerdictWriter};
use narrows_frame::craft::{Other, Udp};
use narrows_frame::edit::Edits;
use narrows_frame::{LinkLayer, WallTime};

use crate::error::SimError;
use crate::names::Names;
use crate::output::Output;
use narrows_traffic::ethernet_header;
use narrows_traffic::{Body, Frame};

pub(crate) struct CaptureOut {
    writer: VerdictWriter<Output>,
    crafted: Vec<u8>,
    rendered: Vec<u8>,
    zeros: Vec<u8>,
}

impl CaptureOut {
    /// Instants count from `start`; `title` describes the run.
    pub(crate) fn new(output: Output, title: &str, start: WallTime) -> Result<Self, SimError> {
        let name = output.name().to_owned();
        let writer = VerdictWriter::new(name, output, title, start)?;
        let (crafted, rendered, zeros) = Default::default();
        Ok(Self { writer, crafted, rendered, zeros })
    }

    pub(crate) fn event(&mut self, names: &Names, event: &Event<'_, Body>) -> Result<(), SimError> {
        let (port, fate) = match event.verdict {
            Verdict::Delivered(port) => (port, Fate::Delivered),
            Verdict::Dropped { at, reason } => (event.id.port(), Fate::Dropped { at, reason }),
        };
        let body = event.body.get();
        let layer = body.frame.as_ref().map_or(LinkLayer::Ethernet, |frame| frame.layer);
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
        let bytes = &self.rendered[..];
        self.writer.write(names, &Outcome { at: event.at, port, layer, length, bytes, fate, missing: 0 })?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), SimError> {
        self.writer.finish()?.finish()
    }

    /// Builds an Ethernet frame whose IP packet has `length` bytes.
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

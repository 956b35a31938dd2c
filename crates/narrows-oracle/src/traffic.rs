//! What is sent: datagrams at given instants, of several flows.

use std::net::Ipv4Addr;

use narrows_core::{Seed, Stream};

use crate::segment::Segment;

/// The port that datagrams are for.
pub const PORT: u16 = 7000;
/// The port that those of flow 0 come from; those of the others come from the ports after it.
pub const FIRST_FLOW: u16 = 4000;

/// Bytes of Ethernet, IPv4 and UDP headers in a frame.
pub const HEADERS: u32 = 14 + 20 + 8;
/// Bytes of the shortest frame: the datagram has its number and nothing else.
pub const SHORTEST: u32 = HEADERS + 4;
/// Bytes of the longest frame that an MTU of 1500 lets through.
pub const LONGEST: u32 = 1514;

/// A datagram to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// When, in nanoseconds since the first instant.
    pub at: u64,
    /// Its flow, which its source port tells.
    pub flow: u16,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Bytes of the frame with its Ethernet header, which is what the kernel's disciplines count.
    pub length: u32,
    /// Addresses and ports that filters look at.
    pub ends: Ends,
    /// Its header, if it is a TCP segment. All of a case are, or none.
    pub segment: Option<Segment>,
}

impl Datagram {
    /// What follows its IP header: of a UDP datagram only the payload, which begins with its number.
    pub fn bytes(&self, number: u32) -> Vec<u8> {
        match self.segment {
            None => {
                let mut payload = number.to_be_bytes().to_vec();
                payload.resize((self.length - HEADERS) as usize, 0);
                payload
            }
            Some(segment) => {
                let header = segment.bytes(number, self.ports(), 0).len();
                segment.bytes(number, self.ports(), (self.length - 14 - 20) as usize - header)
            }
        }
    }

    /// Source and destination.
    pub fn ports(&self) -> [u16; 2] {
        let Ends { source_port, destination_port, .. } = self.ends;
        [source_port.unwrap_or(FIRST_FLOW + self.flow), destination_port.unwrap_or(PORT)]
    }
}

/// Addresses and ports of a datagram, where they are not those of the cable and the flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends {
    /// The source address.
    pub source: Option<Ipv4Addr>,
    /// The source port.
    pub source_port: Option<u16>,
    /// The destination address.
    pub destination: Option<Ipv4Addr>,
    /// The destination port.
    pub destination_port: Option<u16>,
}

/// Milliseconds in nanoseconds.
pub const fn ms(milliseconds: u64) -> u64 {
    milliseconds * 1_000_000
}

/// Datagrams of a flow, all alike.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Its number, from 0 on.
    pub number: u16,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Bytes of each frame.
    pub length: u32,
    /// Addresses and ports.
    pub ends: Ends,
}

impl Flow {
    /// Best effort that cannot be marked, in frames of 1000 bytes.
    pub const fn new(number: u16) -> Self {
        let ends = Ends { source: None, source_port: None, destination: None, destination_port: None };
        Self { number, traffic_class: 0, length: 1000, ends }
    }

    /// With this traffic class.
    pub const fn class(self, traffic_class: u8) -> Self {
        Self { traffic_class, ..self }
    }

    /// With frames of this many bytes.
    pub const fn length(self, length: u32) -> Self {
        Self { length, ..self }
    }

    /// Between these ends.
    pub const fn between(self, ends: Ends) -> Self {
        Self { ends, ..self }
    }

    fn datagram(self, at: u64, length: u32) -> Datagram {
        let (flow, traffic_class, ends) = (self.number, self.traffic_class, self.ends);
        Datagram { at, flow, traffic_class, length, ends, segment: None }
    }

    /// One TCP segment.
    pub fn segment(self, at: u64, segment: Segment) -> Datagram {
        Datagram { segment: Some(segment), ..self.datagram(at, self.length) }
    }

    /// At a constant number of kilobits a second.
    pub fn constant(self, from: u64, until: u64, kilobits: u64) -> Vec<Datagram> {
        let gap = u64::from(self.length) * 8_000_000 / kilobits;
        (0..)
            .map(|n| from + n * gap)
            .take_while(|at| *at < until)
            .map(|at| self.datagram(at, self.length))
            .collect()
    }

    /// That many at once.
    pub fn burst(self, at: u64, count: usize) -> Vec<Datagram> {
        vec![self.datagram(at, self.length); count]
    }

    /// At gaps that vary evenly between half and one and a half of their mean.
    pub fn varied(self, from: u64, until: u64, kilobits: u64) -> Vec<Datagram> {
        self.drawn(from, until, kilobits, |_| self.length)
    }

    /// The same in frames of any length from the shortest to the longest.
    pub fn mixed(self, from: u64, until: u64, kilobits: u64) -> Vec<Datagram> {
        let lengths = Stream::new(Seed(2), "oracle", "lengths");
        self.drawn(from, until, kilobits, |n| {
            SHORTEST + lengths.nth(n).below(u64::from(LONGEST - SHORTEST + 1)) as u32
        })
    }

    fn drawn(self, from: u64, until: u64, kilobits: u64, length: impl Fn(u64) -> u32) -> Vec<Datagram> {
        let gaps = Stream::new(Seed(1), "oracle", "gaps");
        let mut datagrams = Vec::new();
        let mut at = from;
        let mut number = u64::from(self.number) << 32;
        while at < until {
            let length = length(number);
            datagrams.push(self.datagram(at, length));
            let mean = u64::from(length) * 8_000_000 / kilobits;
            at += mean / 2 + gaps.nth(number).below(mean.max(1));
            number += 1;
        }
        datagrams
    }
}

/// Several flows in order of time, those of one instant in the order of the parts.
pub fn merge(parts: impl IntoIterator<Item = Vec<Datagram>>) -> Vec<Datagram> {
    let mut all: Vec<Datagram> = parts.into_iter().flatten().collect();
    all.sort_by_key(|datagram| datagram.at);
    all
}

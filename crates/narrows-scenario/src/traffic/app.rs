//! Applications: what they send, when, and how long they wait for it.

pub(super) mod read;
mod rows;

pub(crate) use rows::tables;

use narrows_core::source::{Pace, Period, Sizes};
use narrows_core::{Bytes, Duration, Protocol, Rate, Time};

/// An application that has transactions between a client and a server.
#[derive(Clone, Debug, PartialEq)]
pub struct AppConfig {
    /// What it is called in a scenario.
    pub kind: AppKind,
    /// What clients and servers have to say to each other in a transaction.
    pub dialogue: Dialogue,
    /// When transactions begin.
    pub demand: Demand,
    /// The most that begin, if there is a most.
    pub transactions: Option<u64>,
    /// The most that are open at once; at least 1, at most 16,384, which is how many ports clients have.
    pub parallel: u32,
    /// How long a client waits before it gives a transaction up; of a call, for its set-up.
    pub patience: Option<Duration>,
    /// When the first transaction begins, or the first gap.
    pub start: Time,
    /// None begins at or after this instant.
    pub stop: Time,
    /// The hosts' TCP; nothing over UDP.
    pub tcp: Option<TcpConfig>,
}

/// The applications that scenarios know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppKind {
    /// Requests and responses, each transaction on a connection of its own.
    Web,
    /// A transfer of a file.
    File,
    /// Calls: small messages at even intervals both ways.
    Voip,
    /// A datagram and its answer.
    Dns,
    /// Many small exchanges on a connection.
    Telnet,
}

impl AppKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Web, Self::File, Self::Voip, Self::Dns, Self::Telnet];

    /// The key of a scenario, and the name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::File => "file",
            Self::Voip => "voip",
            Self::Dns => "dns",
            Self::Telnet => "telnet",
        }
    }

    /// The server's port, if nothing else is said: HTTP, FTP's data, SIP, DNS, telnet (IANA).
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Web => 80,
            Self::File => 20,
            Self::Voip => 5060,
            Self::Dns => 53,
            Self::Telnet => 23,
        }
    }
}

/// When transactions begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Whatever becomes of those before.
    Open {
        /// Whether gaps are exponential, or all alike.
        poisson: bool,
        /// How many in how long, or, as bits, the application data that is offered in the mean: requests and responses
        /// of both ways, without headers.
        pace: Pace,
    },
    /// Each of these users begins the next one when the last one has ended and the pause after it has passed.
    Users {
        /// How many; at least 1.
        users: u32,
        /// The pause.
        think: Period,
    },
}

/// What clients and servers say to each other in a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Dialogue {
    /// Over a connection of TCP that the client opens, and the server closes after its last response.
    Exchanges(Exchanges),
    /// A file, over such a connection.
    Transfer(Transfer),
    /// A datagram that is answered by one.
    Query(Query),
    /// A call, set up by a request and its answer.
    Call(Call),
}

/// Requests and responses on a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchanges {
    /// How many; at least 1.
    pub count: u32,
    /// What the client sends.
    pub request: Sizes,
    /// What the server sends when it has the whole request.
    pub response: Sizes,
    /// From a response to the next request.
    pub pause: Period,
    /// From a request to its response, at the server.
    pub service: Period,
}

/// A file from the server to the client, or the other way. A line of 100 bytes asks for it, or says that it is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Its size; without an end if nothing is said.
    pub size: Option<Sizes>,
    /// Whether it goes from the client to the server.
    pub put: bool,
}

impl Transfer {
    /// The line that asks for it, or says that it is there.
    pub const LINE: Bytes = Bytes::new(100);
}

/// A question and its answer, in UDP.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Payload of the question.
    pub request: u16,
    /// Payload of the answer.
    pub response: u16,
    /// How long after the question it is asked again.
    pub timeout: Duration,
    /// How often it is asked in all; at least 1.
    pub tries: u32,
    /// From the question to its answer, at the server.
    pub service: Period,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// How long it lasts, from its set-up on.
    pub duration: Period,
    /// Bytes of a message, which is the payload of a datagram or a part of the stream.
    pub payload: u16,
    /// From a message to the next one; not zero.
    pub interval: Duration,
    /// How long somebody talks and is silent in turn; nothing if messages never pause.
    pub spurts: Option<(Period, Period)>,
    /// Whether messages go from the client to the server alone.
    pub one_way: bool,
}

/// What hosts' TCP does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// What the window of the sender follows.
    pub congestion: Congestion,
    /// The longest IP packet.
    pub mtu: u16,
    /// Room at each end for what is to be sent, and for what has arrived: the greatest window.
    pub buffer: Bytes,
    /// How long an acknowledgement may wait for another segment; nothing if each segment has one at once.
    pub delayed_ack: Option<Duration>,
    /// Whether a small segment waits while others are under way (RFC 896).
    pub nagle: bool,
}

/// What the window of a sender follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
    /// Nothing but the receiver's window.
    None,
}

impl Congestion {
    pub(crate) const NAMES: &[(&str, Self)] =
        &[("cubic", Self::Cubic), ("reno", Self::Reno), ("none", Self::None)];

    /// As it stands in a file.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

impl AppConfig {
    /// Bytes of application data that a transaction comes to in the mean, both ways together, if it has an end.
    pub fn mean_bytes(&self) -> Option<f64> {
        self.dialogue.mean_bytes()
    }

    /// How many transactions begin in a second in the mean; nothing where users wait for each other's end.
    pub fn transactions_a_second(&self) -> Option<f64> {
        match self.demand {
            Demand::Open { pace: Pace::Packets { count, per }, .. } => Some(count as f64 / per.seconds()),
            Demand::Open { pace: Pace::Bits(rate), .. } => {
                self.mean_bytes().map(|bytes| rate.bits_per_second() as f64 / (8.0 * bytes))
            }
            Demand::Users { .. } => None,
        }
    }

    /// The load that its transactions come to, if it does not hang on how they fare.
    pub fn offered(&self) -> Option<Rate> {
        let bits = self.transactions_a_second()? * self.mean_bytes()? * 8.0;
        Some(Rate::from_bits_per_second((bits + 0.5) as u64))
    }

    /// The length of its longest packets, from the network header on.
    pub fn longest_packet(&self, network: Protocol) -> u16 {
        let header = if network == Protocol::Ipv6 { 48 } else { 28 };
        match (&self.tcp, &self.dialogue) {
            (Some(tcp), _) => tcp.mtu,
            (None, Dialogue::Query(query)) => header + query.request.max(query.response),
            (None, Dialogue::Call(call)) => header + call.payload.max(Transfer::LINE.get() as u16),
            (None, Dialogue::Exchanges(_) | Dialogue::Transfer(_)) => header,
        }
    }

    /// Whether it ends by itself.
    pub fn ends(&self) -> bool {
        let endless = matches!(&self.dialogue, Dialogue::Transfer(Transfer { size: None, .. }));
        self.stop < Time::NEVER || self.transactions.is_some() && !endless
    }
}

impl Dialogue {
    fn mean_bytes(&self) -> Option<f64> {
        match self {
            Self::Exchanges(Exchanges { count, request, response, .. }) => {
                Some(f64::from(*count) * (request.mean() + response.mean()))
            }
            Self::Transfer(transfer) => Some(transfer.size.as_ref()?.mean() + Transfer::LINE.get() as f64),
            Self::Query(Query { request, response, .. }) => Some(f64::from(*request) + f64::from(*response)),
            Self::Call(call) => {
                let talking = call.spurts.map_or(1.0, |(talk, silence)| {
                    talk.mean().seconds() / (talk.mean().seconds() + silence.mean().seconds())
                });
                let messages = call.duration.mean().seconds() / call.interval.seconds() * talking;
                let ways = if call.one_way { 1.0 } else { 2.0 };
                Some((messages * ways * f64::from(call.payload)).max(1.0))
            }
        }
    }
}

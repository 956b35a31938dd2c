//! Applications: message sizes, timing and timeouts.

pub(super) mod read;
mod rows;

pub(crate) use rows::tables;

use narrows_core::source::{Pace, Period, Sizes};
use narrows_core::{Bytes, Duration, Protocol, Rate, Time};

/// An application with transactions between a client and a server.
#[derive(Clone, Debug, PartialEq)]
pub struct AppConfig {
    /// Kind of application in a scenario.
    pub kind: AppKind,
    /// What client and server exchange in a transaction.
    pub dialogue: Dialogue,
    /// When transactions start.
    pub demand: Demand,
    /// Maximum number of transactions, if limited.
    pub transactions: Option<u64>,
    /// Maximum number of concurrent transactions: 1 to 16,384, the number of client ports.
    pub parallel: u32,
    /// How long a client waits before it abandons a transaction; for a call, before it abandons the set-up.
    pub patience: Option<Duration>,
    /// Start of the first transaction, or of the gap before it.
    pub start: Time,
    /// No transaction starts at or after this instant.
    pub stop: Time,
    /// TCP settings of the hosts; `None` over UDP.
    pub tcp: Option<TcpConfig>,
}

/// Kinds of applications in scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AppKind {
    /// Requests and responses, each transaction on its own connection.
    Web,
    /// A file transfer.
    File,
    /// Calls: small messages at regular intervals both ways.
    Voip,
    /// A datagram and its answer.
    Dns,
    /// Many small exchanges on one connection.
    Telnet,
}

impl AppKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Web, Self::File, Self::Voip, Self::Dns, Self::Telnet];

    /// Its key in a scenario, and its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::File => "file",
            Self::Voip => "voip",
            Self::Dns => "dns",
            Self::Telnet => "telnet",
        }
    }

    /// Default port of the server: HTTP, FTP data, SIP, DNS, telnet (IANA).
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

/// When transactions start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// Open loop: independent of earlier transactions.
    Open {
        /// Exponential gaps if `true`, constant gaps otherwise.
        poisson: bool,
        /// Transactions per time; or, as a rate, the mean offered load of application data: requests and
        /// responses of both directions, without headers.
        pace: Pace,
    },
    /// Closed loop: each user starts the next transaction after the last one has ended and a pause has
    /// passed.
    Users {
        /// Number of users; at least 1.
        users: u32,
        /// Pause between transactions.
        think: Period,
    },
}

/// What client and server exchange in a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Dialogue {
    /// Messages over a TCP connection that the client opens; the server closes it after its last response.
    Exchanges(Exchanges),
    /// A file, over such a connection.
    Transfer(Transfer),
    /// A datagram and its answer.
    Query(Query),
    /// A call, set up by a request and its answer.
    Call(Call),
}

/// Requests and responses on a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchanges {
    /// Number of exchanges; at least 1.
    pub count: u32,
    /// Size of a request.
    pub request: Sizes,
    /// Size of a response, sent when the server has the whole request.
    pub response: Sizes,
    /// Time from a response to the next request.
    pub pause: Period,
    /// Service time at the server, from a request to its response.
    pub service: Period,
}

/// A file from the server to the client, or the other way. A line of 100 bytes requests or announces it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// File size; unlimited if `None`.
    pub size: Option<Sizes>,
    /// Whether the file goes from the client to the server.
    pub put: bool,
}

impl Transfer {
    /// Size of the line that requests or announces the file.
    pub const LINE: Bytes = Bytes::new(100);
}

/// A question and its answer over UDP.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Payload of the question in bytes.
    pub request: u16,
    /// Payload of the answer in bytes.
    pub response: u16,
    /// Retransmission timeout of the question.
    pub timeout: Duration,
    /// Maximum number of transmissions of the question; at least 1.
    pub tries: u32,
    /// Service time at the server, from the question to its answer.
    pub service: Period,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Duration of the call after its set-up.
    pub duration: Period,
    /// Message size in bytes: the payload of a datagram, or a part of the stream.
    pub payload: u16,
    /// Interval between messages; not zero.
    pub interval: Duration,
    /// Durations of alternating talk and silence; `None` if messages never pause.
    pub spurts: Option<(Period, Period)>,
    /// Whether only the client sends messages.
    pub one_way: bool,
}

/// TCP settings of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Congestion control of the sender.
    pub congestion: Congestion,
    /// Maximum length of an IP packet.
    pub mtu: u16,
    /// Size of the send buffer and of the receive buffer at each end; the largest window.
    pub buffer: Bytes,
    /// How long an acknowledgement may wait for another segment; `None` acknowledges each segment at once.
    pub delayed_ack: Option<Duration>,
    /// Whether a small segment waits while others are in flight (Nagle, RFC 896).
    pub nagle: bool,
}

/// Congestion control of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// CUBIC (RFC 9438).
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// No congestion control: only the receiver's window applies.
    None,
}

impl Congestion {
    pub(crate) const NAMES: &[(&str, Self)] =
        &[("cubic", Self::Cubic), ("reno", Self::Reno), ("none", Self::None)];

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, value)| *value == self).map_or("", |(name, _)| name)
    }
}

impl AppConfig {
    /// Mean application data of a transaction in bytes, both directions together, if it is finite.
    pub fn mean_bytes(&self) -> Option<f64> {
        self.dialogue.mean_bytes()
    }

    /// Mean number of transactions per second; `None` if users wait for the end of each.
    pub fn transactions_a_second(&self) -> Option<f64> {
        match self.demand {
            Demand::Open { pace: Pace::Packets { count, per }, .. } => Some(count as f64 / per.seconds()),
            Demand::Open { pace: Pace::Bits(rate), .. } => {
                self.mean_bytes().map(|bytes| rate.bits_per_second() as f64 / (8.0 * bytes))
            }
            Demand::Users { .. } => None,
        }
    }

    /// Mean offered load, if it does not depend on how transactions fare.
    pub fn offered(&self) -> Option<Rate> {
        let bits = self.transactions_a_second()? * self.mean_bytes()? * 8.0;
        Some(Rate::from_bits_per_second((bits + 0.5) as u64))
    }

    /// Length of its longest packets, from the network header on.
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

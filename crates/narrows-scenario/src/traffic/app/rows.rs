//! The keys of applications.

use std::ops::Range;

use narrows_core::source::{Pace, Period, Sizes};
use narrows_core::{Bytes, Duration, Rate};
use serde_json::Value as Json;

use super::{AppConfig, AppKind, Call, Congestion, Demand, Dialogue, Exchanges, Query, TcpConfig, Transfer};
use crate::keys::compound::Group;
use crate::keys::kind::{Boolean, ByHand, Choice, Form, Given, Integer, Kind, Or, text};
use crate::keys::quantity::{Size, Time};
use crate::keys::schema::{self, Definitions};
use crate::keys::{self, Key, Keyed, Parameters, Row, row};
use crate::node::{Table, Value};
use crate::problem::Problem;
use crate::traffic::quantity::{PACE, PAUSE, PERIOD, SIZES};
use crate::units;
use crate::value::mtu::MtuBytes;

/// Maximum number of concurrent transactions: the number of client ports (RFC 6335).
const MOST_PARALLEL: i64 = 16_384;
/// Maximum UDP payload of an IPv4 packet of 1500 bytes.
const MOST_PAYLOAD: u64 = 1472;
/// A 20 ms message of G.711 with its RTP header (RFC 3551).
const VOICE: u16 = 172;
pub(super) const NO_TIME: Period = Period::Fixed(Duration::ZERO);

const fn size(bytes: u64) -> Sizes {
    Sizes::Fixed(Bytes::new(bytes))
}

const fn count(what: &'static str) -> Integer {
    Integer { what, low: 1, high: 1_000_000 }
}

/// The keys of every application: start and number of transactions.
#[derive(Default)]
pub(super) struct Common {
    pub(super) load: Option<Rate>,
    pub(super) pace: Option<Pace>,
    pub(super) users: Option<u32>,
    pub(super) poisson: Option<bool>,
    pub(super) think: Option<Period>,
    pub(super) transactions: Option<u64>,
    pub(super) parallel: Option<u32>,
}

const LOAD: ByHand<Rate> = ByHand {
    words: || "rate".into(),
    schema: schema::rate,
    read: |node, _| units::finite_rate(node),
    write: |rate| Some(text(rate)),
};
const TRANSACTIONS_IN_TIME: ByHand<Pace> = ByHand {
    words: || "transactions in a time, such as `\"10/s\"`".into(),
    read: |node, around| match PACE.read(node, around)? {
        Pace::Bits(_) => {
            Err(node.expected("transactions in a time, such as \"10/s\"").help("a rate is a `load`"))
        }
        pace => Ok(pace),
    },
    ..PACE
};
const USERS: Integer = Integer { what: "a number of users", low: 1, high: MOST_PARALLEL };
const ARRIVALS: Choice<bool> =
    Choice { what: "value of `arrivals`", choices: &[("poisson", true), ("constant", false)] };
const TRANSACTIONS: Integer = Integer { what: "a number of transactions", low: 1, high: Integer::NO_END };
const PARALLEL: Integer = Integer { high: MOST_PARALLEL, ..TRANSACTIONS };

impl Keyed for Common {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "load",
            load,
            Given(LOAD),
            "Mean offered load in application data, requests and responses together, without headers: load / (8 × mean bytes per transaction) transactions per second."
        ),
        row!("pace", pace, Given(TRANSACTIONS_IN_TIME), "Transaction rate."),
        row!(
            "users",
            users,
            Given(USERS),
            "Number of users. Each starts its next transaction `think` after the previous one ends. The first user starts at `start`, the others at random within the first second."
        ),
        row!(
            "arrivals",
            poisson,
            Given(ARRIVALS),
            "Arrival process with `load` and `pace`: independent exponential gaps, or even spacing."
        )
        .default("`\"poisson\"`"),
        row!("think", think, Given(PERIOD), "Think time: pause of a user between two transactions.")
            .default("no time"),
        row!("transactions", transactions, Given(TRANSACTIONS), "Maximum number of transactions.")
            .default("no end"),
        row!(
            "parallel",
            parallel,
            Given(PARALLEL),
            "Maximum number of open transactions. Further ones are refused and counted."
        )
        .default("`1000`"),
    ];
}

impl Common {
    fn of(config: &AppConfig) -> Self {
        let common = Self { transactions: config.transactions, ..Self::default() };
        match config.demand {
            Demand::Open { poisson, pace } => {
                let load = match pace {
                    Pace::Bits(rate) => Some(rate),
                    Pace::Packets { .. } => None,
                };
                let pace = Some(pace).filter(|_| load.is_none());
                let poisson = (!poisson).then_some(false);
                Self { load, pace, poisson, parallel: Some(config.parallel), ..common }
            }
            Demand::Users { users, think } => {
                Self { users: Some(users), think: Some(think).filter(|think| *think != NO_TIME), ..common }
            }
        }
    }
}

/// Transport settings of both hosts.
pub(super) struct Hosts {
    pub(super) patience: Option<Duration>,
    pub(super) tcp: TcpConfig,
}

impl Default for Hosts {
    fn default() -> Self {
        Self::of(AppKind::Web)
    }
}

impl Hosts {
    /// The defaults for this kind of application.
    pub(super) fn of(kind: AppKind) -> Self {
        let patience = match kind {
            AppKind::Web | AppKind::Telnet => Some(Duration::from_secs(30)),
            AppKind::Voip => Some(Duration::from_secs(10)),
            AppKind::File | AppKind::Dns => None,
        };
        let tcp = TcpConfig {
            congestion: Congestion::Cubic,
            mtu: 1500,
            buffer: Bytes::new(if kind == AppKind::File { 1 << 20 } else { 1 << 16 }),
            delayed_ack: Some(Duration::from_millis(10)),
            nagle: kind != AppKind::Voip,
        };
        Self { patience, tcp }
    }
}

const OR_NONE: Or<Time> = Or("none", Time::POSITIVE);
const TIME_OR_NONE: ByHand<Option<Duration>> = ByHand {
    words: || OR_NONE.words(),
    schema: |definitions| OR_NONE.schema(definitions),
    read: |node, around| OR_NONE.read(node, around).map_err(|p| p.help("or \"none\"")),
    write: |time| OR_NONE.write(time),
};
const TCP: Group<TcpConfig> = Group::new("Tcp", "TCP parameters of hosts.", "{ congestion = \"reno\" }");

impl Keyed for Hosts {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "patience",
            patience,
            TIME_OR_NONE,
            "Timeout of a transaction: the client resets the connection, and the transaction fails."
        )
        .default("`\"30s\"`, of `voip` `\"10s\"`, of `file` `\"none\"`"),
        Row::new(
            "tcp",
            &TCP,
            "TCP parameters of both hosts; not over UDP.",
            |hosts: &Self| TCP.write(&hosts.tcp),
            |hosts: &mut Self, node, around| {
                let table = node.table("a table: { congestion = \"reno\" }")?;
                keys::only(table, &keys::keys::<TcpConfig>())?;
                // Keys that are left out keep the defaults of the application.
                hosts.tcp.read(table, &node.span, around)
            },
        )
        .default("see below"),
    ];
}

impl Default for TcpConfig {
    /// The default for `web`.
    fn default() -> Self {
        Hosts::of(AppKind::Web).tcp
    }
}

const CONGESTION: Choice<Congestion> = Choice { what: "congestion control", choices: Congestion::NAMES };
const MTU: MtuBytes = MtuBytes { low: 576 };
const BUFFER: Size = Size { low: 2048, high: 1 << 30, expected: "a size from 2 KiB to 1 GiB" };

impl Keyed for TcpConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "congestion",
            congestion,
            CONGESTION,
            "Congestion control: RFC 9438, RFC 5681, or none (the receiver's window only)."
        ),
        row!(
            "mtu",
            mtu,
            MTU,
            "Maximum IP packet length. Packets are not fragmented, and there is no path MTU discovery."
        ),
        row!("buffer", buffer, BUFFER, "Socket buffer at each end, per direction; it limits the window.")
            .default("`\"64 KiB\"`, of `file` `\"1 MiB\"`"),
        row!("delayed-ack", delayed_ack, TIME_OR_NONE, "Delayed-ACK timeout."),
        row!(
            "nagle",
            nagle,
            Boolean,
            "Nagle's algorithm: hold back small segments while data is unacknowledged (RFC 896)."
        )
        .default("`true`, of `voip` `false`"),
    ];
}

/// The keys of `web`.
pub(super) struct Web {
    pub(super) exchanges: Exchanges,
}

impl Default for Web {
    fn default() -> Self {
        let (pause, service) = (NO_TIME, NO_TIME);
        Self { exchanges: Exchanges { count: 1, request: size(300), response: size(0), pause, service } }
    }
}

const REQUESTS: Integer = count("a number of requests");

impl Keyed for Web {
    const ROWS: &'static [Row<Self>] = &[
        row!("request", exchanges.request, SIZES, "Bytes the client sends."),
        row!("response", exchanges.response, SIZES, "Bytes the server sends.").required_with(ALLOWED_SIZES),
        row!("requests", exchanges.count, REQUESTS, "Requests per connection."),
        row!("pause", exchanges.pause, PAUSE, "Pause between a response and the next request."),
        row!("service", exchanges.service, PAUSE, "Service time at the server, from request to response."),
    ];
}

/// The keys of `telnet`.
pub(super) struct Telnet {
    pub(super) exchanges: Exchanges,
}

impl Default for Telnet {
    fn default() -> Self {
        let (pause, service) = (Period::Fixed(Duration::from_millis(200)), NO_TIME);
        Self { exchanges: Exchanges { count: 10, request: size(2), response: size(20), pause, service } }
    }
}

const EXCHANGES: Integer = count("a number of exchanges");

impl Keyed for Telnet {
    const ROWS: &'static [Row<Self>] = &[
        row!("exchanges", exchanges.count, EXCHANGES, "Exchanges per connection."),
        row!("request", exchanges.request, SIZES, "Bytes the client sends."),
        row!("response", exchanges.response, SIZES, "Bytes the server answers."),
        row!("pause", exchanges.pause, PAUSE, "Pause between an answer and the next request."),
    ];
}

const ALLOWED_SIZES: &str = "\"10 kB\", { exponential = \"10 kB\" }, { pareto = { mean = \"10 kB\", shape = 1.5 } } or { mix = [{ size = \"1 kB\", weight = 3 }, …] }";

impl Default for Transfer {
    /// An unlimited file to the client.
    fn default() -> Self {
        Self { size: None, put: false }
    }
}

const OR_ENDLESS: Or<ByHand<Sizes>> = Or("endless", SIZES);
const SIZES_OR_ENDLESS: ByHand<Option<Sizes>> = ByHand {
    words: || OR_ENDLESS.words(),
    schema: |definitions| OR_ENDLESS.schema(definitions),
    read: |node, around| {
        OR_ENDLESS.read(node, around).map_err(|p| p.help(format!("{ALLOWED_SIZES}, or \"endless\"")))
    },
    write: |sizes| OR_ENDLESS.write(sizes),
};

impl Keyed for Transfer {
    const ROWS: &'static [Row<Self>] = &[
        row!("size", size, SIZES_OR_ENDLESS, "File size."),
        row!("put", put, Boolean, "Whether to upload (client to server)."),
    ];
}

impl Default for Query {
    fn default() -> Self {
        // The resolver's defaults: resolv.conf(5).
        let (timeout, tries) = (Duration::from_secs(5), 2);
        Self { request: 40, response: 120, timeout, tries, service: NO_TIME }
    }
}

const PAYLOAD: ByHand<u16> = ByHand {
    words: || format!("size, 1 to {MOST_PAYLOAD} bytes"),
    schema: schema::size,
    read: |node, _| match units::size(node)?.get() {
        bytes @ 1..=MOST_PAYLOAD => Ok(bytes as u16),
        _ => Err(node.expected("a size from 1 to 1472 bytes").help("what a packet of 1500 bytes holds")),
    },
    write: |bytes| Some(Value::String(Bytes::new((*bytes).into()).to_string())),
};
const TRIES: Integer = count("a number of tries");

impl Keyed for Query {
    const ROWS: &'static [Row<Self>] = &[
        row!("request", request, PAYLOAD, "Query, as UDP payload."),
        row!("response", response, PAYLOAD, "Answer, as UDP payload."),
        row!("timeout", timeout, Time::POSITIVE, "Retry timeout."),
        row!("tries", tries, TRIES, "Maximum number of tries."),
        row!("service", service, PAUSE, "Service time at the server, from query to answer."),
    ];
}

impl Default for Call {
    fn default() -> Self {
        let interval = Duration::from_millis(20);
        Self { duration: NO_TIME, payload: VOICE, interval, spurts: None, one_way: false }
    }
}

impl Keyed for Call {
    const ROWS: &'static [Row<Self>] = &[
        row!("duration", duration, PERIOD, "Call duration.")
            .required_with("how long a call lasts, such as \"30s\" or { exponential = \"3min\" }"),
        row!("payload", payload, PAYLOAD, "Message size."),
        row!("interval", interval, Time::POSITIVE, "Interval between messages."),
        Row::new(
            "talk",
            &PERIOD,
            "Duration of a talk spurt; with `silence`.",
            |call: &Self| PERIOD.write(&call.spurts?.0),
            |call: &mut Self, node, around| {
                call.spurts.get_or_insert((NO_TIME, NO_TIME)).0 = PERIOD.read(node, around)?;
                Ok(())
            },
        )
        .default("always"),
        Row::new(
            "silence",
            &PERIOD,
            "Duration of the silence between talk spurts.",
            |call: &Self| PERIOD.write(&call.spurts?.1),
            |call: &mut Self, node, around| {
                call.spurts.get_or_insert((NO_TIME, NO_TIME)).1 = PERIOD.read(node, around)?;
                Ok(())
            },
        ),
        row!("one-way", one_way, Boolean, "Whether only the client sends."),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        match (table.key("talk"), table.key("silence")) {
            (Some(key), None) | (None, Some(key)) => {
                Err(Problem::new("`talk` and `silence` require each other").at(&key.span))
            }
            _ => Ok(()),
        }
    }
}

impl AppKind {
    /// The keys of this kind, except `patience` and `tcp`.
    pub(crate) fn own_keys(self) -> Vec<&'static dyn Key> {
        match self {
            Self::Web => keys::keys::<Web>(),
            Self::File => keys::keys::<Transfer>(),
            Self::Voip => keys::keys::<Call>(),
            Self::Dns => keys::keys::<Query>(),
            Self::Telnet => keys::keys::<Telnet>(),
        }
    }

    /// Whether it has `patience` and `tcp`.
    pub(super) const fn has_hosts(self) -> bool {
        !matches!(self, Self::Dns)
    }

    /// All its keys.
    pub(super) fn keys(self) -> Vec<&'static dyn Key> {
        let hosts = if self.has_hosts() { keys::keys::<Hosts>() } else { Vec::new() };
        [keys::keys::<Common>(), self.own_keys(), hosts].concat()
    }

    /// The schema of its table.
    pub(in crate::traffic) fn schema(self, definitions: &mut Definitions) -> Json {
        let (name, doc) = match self {
            Self::Web => ("Web", "A connection, a request, a response, and so on."),
            Self::File => ("FileTransfer", "A file."),
            Self::Voip => ("Voip", "A call."),
            Self::Dns => ("Dns", "A question and its answer."),
            Self::Telnet => ("Telnet", "A connection with many small exchanges."),
        };
        schema::define(definitions, name, |definitions| schema::object(doc, &self.keys(), definitions))
    }
}

impl AppConfig {
    /// The table under its key, as written in a file.
    pub(in crate::traffic) fn table(&self) -> Table {
        let mut table = keys::written(&Common::of(self));
        table.extend(match &self.dialogue {
            Dialogue::Exchanges(exchanges) if self.kind == AppKind::Telnet => {
                keys::written(&Telnet { exchanges: exchanges.clone() })
            }
            Dialogue::Exchanges(exchanges) => keys::written(&Web { exchanges: exchanges.clone() }),
            Dialogue::Transfer(transfer) => keys::written(transfer),
            Dialogue::Query(query) => keys::written(query),
            Dialogue::Call(call) => keys::written(call),
        });
        if self.kind.has_hosts() {
            let hosts = Hosts { patience: self.patience, tcp: self.tcp.unwrap_or_default() };
            table.extend(keys::whole(&hosts));
            if self.tcp.is_none() {
                table.remove("tcp");
            }
        }
        table
    }
}

/// The keys of applications, by the names of their tables in the reference.
pub(crate) fn tables() -> Vec<(&'static str, Vec<&'static dyn Key>)> {
    let own = AppKind::ALL.into_iter().map(|kind| (kind.name(), kind.own_keys()));
    let common = [keys::keys::<Common>(), keys::keys::<Hosts>()].concat();
    own.chain([("application", common), ("tcp", keys::keys::<TcpConfig>())]).collect()
}

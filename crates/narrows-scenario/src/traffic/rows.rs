//! The keys of `[[traffic]]`.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;
use std::path::Path;

use narrows_core::source::{Arrivals, Lengths, Pace, Period};
use narrows_core::{Bytes, Duration, FlowKey, Time as Instant};
use serde_json::json;

use super::protocol::{TCP, UDP, has_ports};
use super::quantity::{LENGTHS, PACE, PERIOD, SIZE};
use super::{AimdConfig, AppConfig, AppKind, Marks, Traffic, TrafficSource};
use crate::keys::compound::Group;
use crate::keys::kind::{Boolean, ByHand, Described, Form, Given, Integer, Text, text};
use crate::keys::quantity::Time;
use crate::keys::schema;
use crate::keys::{self, Key, Keyed, Row, row};
use crate::node::{self, Table, Value, check_name};
use crate::problem::{Found, Problem};
use crate::value;

/// The values of a table, key by key. Their meaning depends on the network.
#[derive(Default)]
pub(super) struct Said {
    pub(super) name: Option<String>,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) constant: Option<Pace>,
    pub(super) poisson: Option<Pace>,
    pub(super) on_off: Option<OnOff>,
    pub(super) aimd: Option<Aimd>,
    app: Option<AppConfig>,
    pub(super) capture: Option<String>,
    pub(super) length: Option<Lengths>,
    pub(super) start: Duration,
    pub(super) stop: Option<Duration>,
    pub(super) packets: Option<u64>,
    pub(super) source: Option<IpAddr>,
    pub(super) destination: Option<IpAddr>,
    pub(super) source_port: Option<u16>,
    pub(super) destination_port: Option<u16>,
    pub(super) protocol: Option<u8>,
    pub(super) dscp: u8,
    pub(super) ecn: u8,
    pub(super) sim_only: bool,
}

/// Evenly spaced packets during the on periods.
pub(super) struct OnOff {
    pub(super) pace: Pace,
    pub(super) on: Period,
    pub(super) off: Period,
}

impl Default for OnOff {
    fn default() -> Self {
        let (pace, never) = (Pace::Packets { count: 1, per: Duration::MAX }, Period::Fixed(Duration::ZERO));
        Self { pace, on: never, off: never }
    }
}

/// The table of a congestion-responsive sender.
pub(super) struct Aimd {
    pub(super) marks: Marks,
    pub(super) size: Option<Bytes>,
    pub(super) window: u32,
}

impl Default for Aimd {
    fn default() -> Self {
        Self { marks: Marks::None, size: None, window: 10 } // RFC 6928
    }
}

const NAME: ByHand<String> = ByHand {
    words: || "name".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        let name = node.text("a name")?.to_string();
        check_name(&node::Key { name: name.clone(), span: node.span.clone() }, "source of traffic")?;
        Ok(name)
    },
    write: |name| Some(text(name)),
};
const END: Text = Text("the name of a host or port");
const ON_OFF: Group<OnOff> =
    Group::new("OnOff", "On and off periods.", "{ pace = \"1000/s\", on = \"1s\", off = \"2s\" }");
const AIMD: Group<Aimd> = Group::new(
    "Aimd",
    "A sender whose window grows by a packet a round trip, and is halved when there is congestion.",
    "a table of how it sends, which may be empty: aimd = {}",
);
const CAPTURE: ByHand<String> = ByHand {
    words: || "name of a file".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| match node.text("the path of a pcap or pcapng file")? {
        "" => Err(node.expected("the path of a pcap or pcapng file")),
        path => Ok(path.into()),
    },
    write: |path| Some(text(path)),
};
const PACKETS: Integer = Integer { what: "a number of packets", low: 1, high: Integer::NO_END };
const ADDRESS: ByHand<IpAddr> = ByHand {
    words: || "IP address".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        let text = node.text("an address")?;
        text.parse().map_err(|_| {
            Problem::new(format!("{} is not an address", Found(text)))
                .at(&node.span)
                .help("write \"10.1.2.3\" or \"fd00::1\"")
        })
    },
    write: |address| Some(text(address)),
};
const PORT: Integer = Integer { what: "a port", low: 0, high: 65_535 };
const PROTOCOL: ByHand<u8> = ByHand {
    words: || "name such as `\"udp\"`, or a number from 0 to 255, as in `match`".into(),
    schema: schema::named_number,
    read: |node, _| value::protocol(node),
    write: |number| Some(value::protocol_name(*number).map_or(Value::Integer(number.to_string()), text)),
};
const DSCP: ByHand<u8> = ByHand {
    words: || "name such as `\"ef\"`, or a number from 0 to 63, as in `match`".into(),
    schema: schema::named_number,
    read: |node, _| value::code_point(node),
    write: |point| Some(Value::Integer(point.to_string())),
};
/// A table of an application.
macro_rules! app {
    ($kind:ident) => {
        Described { words: || "table".into(), schema: |definitions| AppKind::$kind.schema(definitions) }
    };
}

impl Keyed for Said {
    const ROWS: &'static [Row<Self>] = &[
        row!("name", name, Given(NAME), "Name in records and series; the source's random draws are keyed by it.")
            .default("`traffic-1`, `traffic-2`, …"),
        row!(
            "from",
            from,
            END,
            "Sending host; for an application, the clients' host. A host with several links needs the port: `\"client.access\"`."
        )
        .required(),
        row!(
            "to",
            to,
            END,
            "Receiving host; for an application, the servers' host. Packets are addressed to it and routed there; packets of a capture keep their own addresses."
        )
        .required(),
        row!("constant", constant, Given(PACE), "Constant bit rate: evenly spaced packets, with remainders carried so that the rate is exact."),
        row!("poisson", poisson, Given(PACE), "Poisson process: independent, exponentially distributed gaps."),
        row!("on-off", on_off, Given(ON_OFF), "On/off source: evenly spaced packets while on. It starts on, with a packet at the start of each on period."),
        row!("aimd", aimd, Given(AIMD), "AIMD sender: responds to congestion; see below."),
        Row::apart("web", &app!(Web), "Web [application](#applications): requests and responses.", |said: &Self| said.app(AppKind::Web)),
        Row::apart("file", &app!(File), "Application: file transfers.", |said: &Self| said.app(AppKind::File)),
        Row::apart("voip", &app!(Voip), "Application: voice calls.", |said: &Self| said.app(AppKind::Voip)),
        Row::apart("dns", &app!(Dns), "Application: queries and answers over UDP.", |said: &Self| said.app(AppKind::Dns)),
        Row::apart("telnet", &app!(Telnet), "Application: many small exchanges on one connection.", |said: &Self| said.app(AppKind::Telnet)),
        row!("capture", capture, Given(CAPTURE), "Packets of a pcap or pcapng file with their timing, the earliest one first; the path is relative to the scenario file. Packets that are more than 1024 places away from their order in time are an error, in a pipe all that are not in order."),
        row!("length", length, Given(LENGTHS), "IP packet length; no mix for `aimd`; not for applications.")
            .default("`\"1498 bytes\"`"),
        row!(
            "start",
            start,
            Time::ANY,
            "Start time: of the first packet (constant, on-off, `aimd`, capture), the first gap (Poisson) or the first transaction."
        ),
        row!("stop", stop, Given(Time::ANY), "Stop time: no packet is sent, and no transaction started, at or after it.")
            .default("never"),
        row!("packets", packets, Given(PACKETS), "Maximum number of packets. `aimd` has `size` instead, applications have `transactions`.")
            .default("no end"),
        row!("source", source, Given(ADDRESS), "Source address, of the same family as `destination`.")
            .default("the first address of the port"),
        row!("destination", destination, Given(ADDRESS), "Destination address.")
            .default("the first address of the port"),
        row!(
            "source-port",
            source_port,
            Given(PORT),
            "Source port, for protocols with ports. Applications use the next port for each transaction, cycling through up to 16,384."
        )
        .default("49152, and one more for each source before it; 49152 for applications"),
        row!("destination-port", destination_port, Given(PORT), "Destination port, for protocols with ports.")
            .default("9 (discard); of `web` 80, `file` 20, `voip` 5060, `dns` 53, `telnet` 23"),
        row!(
            "protocol",
            protocol,
            Given(PROTOCOL),
            "IP protocol. Of the applications only `voip` has a choice: `\"udp\"` or `\"tcp\"`."
        )
        .default("`\"udp\"`; `\"tcp\"` for `aimd`, `web`, `file`, `telnet`"),
        row!("dscp", dscp, DSCP, "Differentiated services code point; for applications, both ways."),
        row!("ecn", ecn, value::ECN, "ECN field (RFC 3168). Not for `aimd`, which has a key of its own, and applications, which ignore marks."),
        row!("sim-only", sim_only, Boolean, "Send in `narrows sim` only; live runs leave this source out."),
    ];
}

impl Keyed for OnOff {
    const ROWS: &'static [Row<Self>] = &[
        row!("pace", pace, PACE, "Rate while on.").required(),
        row!("on", on, PERIOD, "Duration of an on period.").required(),
        row!("off", off, PERIOD, "Duration of an off period.").required(),
    ];
}

/// Upper limit against typing errors: a burst of 100 Gbit/s times 100 ms.
const WINDOW: Integer = Integer { what: "a number of packets", low: 1, high: 1_000_000 };

impl Keyed for Aimd {
    const ROWS: &'static [Row<Self>] = &[
        Row::new(
            "ecn",
            &Boolean,
            "Send ECT(0); a mark halves the window, as a loss does (RFC 3168).",
            |aimd: &Self| match aimd.marks {
                Marks::None => Boolean.write(&false),
                Marks::Classic => Boolean.write(&true),
                Marks::Scalable => None,
            },
            |aimd: &mut Self, node, _| {
                aimd.marks = if node.boolean()? { Marks::Classic } else { Marks::None };
                Ok(())
            },
        ),
        Row::new(
            "scalable",
            &Boolean,
            "Send ECT(1) and reduce the window by half the moving average of the marked share (RFC 8257), as DualPI2's low-latency queue expects.",
            |aimd: &Self| Boolean.write(&(aimd.marks == Marks::Scalable)),
            |aimd: &mut Self, node, _| {
                if node.boolean()? {
                    aimd.marks = Marks::Scalable;
                }
                Ok(())
            },
        ),
        row!("size", size, Given(SIZE), "Amount to transfer, in IP packets of `length`, rounded up.")
            .default("no end"),
        row!("window", window, WINDOW, "Initial window, in packets."),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        let is_refused = |node: &node::Node| node.boolean().is_ok_and(|is_on| !is_on);
        match table.key("ecn").zip(table.get("ecn")) {
            Some((key, node)) if self.marks == Marks::Scalable && is_refused(node) => {
                Err(Problem::new("a scalable sender responds to marks, so that its packets are ECN-capable")
                    .at(&key.span)
                    .help("leave `ecn` out, or `scalable`"))
            }
            _ => Ok(()),
        }
    }
}

impl Said {
    /// The keys of a traffic source. `folder` is that of the scenario's file.
    fn of(Traffic { name, from, to, source, sim_only }: &Traffic, folder: &Path) -> Self {
        let (name, sim_only) = (Some(name.clone()), *sim_only);
        let said = Self { name, from: from.clone(), to: to.clone(), sim_only, ..Self::default() };
        match source {
            TrafficSource::Aimd { config, key } => {
                let AimdConfig { length, size, start, stop, window, marks } = *config;
                Self {
                    aimd: Some(Aimd { marks, size, window }),
                    length: Some(Lengths::Fixed(length)),
                    ..said.within(start, stop).with_key(key, TCP)
                }
            }
            TrafficSource::App { config, key } => {
                let usual = if config.kind == AppKind::Voip { UDP } else { key.transport };
                Self {
                    app: Some((**config).clone()),
                    ..said.within(config.start, config.stop).with_key(key, usual)
                }
            }
            TrafficSource::Capture { file, start } => {
                let file = file.strip_prefix(folder).unwrap_or(file).display().to_string();
                Self { capture: Some(file), ..said.within(*start, Instant::NEVER) }
            }
            TrafficSource::Generated { config, key } => {
                let said = Self {
                    length: Some(config.lengths.clone()),
                    packets: config.packets,
                    ecn: key.ecn(),
                    ..said.within(config.start, config.stop).with_key(key, UDP)
                };
                match config.arrivals {
                    Arrivals::Constant(pace) => Self { constant: Some(pace), ..said },
                    Arrivals::Poisson(pace) => Self { poisson: Some(pace), ..said },
                    Arrivals::OnOff { pace, on, off } => {
                        Self { on_off: Some(OnOff { pace, on, off }), ..said }
                    }
                }
            }
        }
    }

    fn within(self, start: Instant, stop: Instant) -> Self {
        let stop = Some(stop).filter(|stop| *stop < Instant::NEVER).map(|stop| stop.since(Instant::ZERO));
        Self { start: start.since(Instant::ZERO), stop, ..self }
    }

    /// `protocol` is the default, which is not written.
    fn with_key(self, key: &FlowKey, protocol: u8) -> Self {
        let address = |bytes| Some(IpAddr::V6(Ipv6Addr::from_octets(bytes)).to_canonical());
        let port = |port| Some(port).filter(|_| has_ports(key.transport));
        Self {
            source: address(key.source),
            destination: address(key.destination),
            source_port: port(key.source_port),
            destination_port: port(key.destination_port),
            protocol: Some(key.transport).filter(|transport| *transport != protocol),
            dscp: key.dscp(),
            ..self
        }
    }

    /// The table of an application of this kind.
    fn app(&self, kind: AppKind) -> Option<Value> {
        self.app.as_ref().filter(|app| app.kind == kind).map(|app| Value::Table(app.table()))
    }
}

/// A traffic source as written in a file in this folder.
pub(crate) fn table(traffic: &Traffic, folder: &Path) -> Table {
    keys::written(&Said::of(traffic, folder))
}

/// The schema of a traffic source.
pub(crate) const TRAFFIC: Described = Described {
    words: || "list of tables `[[traffic]]`".into(),
    schema: |definitions| {
        let doc = "Packets from one host to another: one of `constant`, `poisson`, `on-off`, `aimd`, `web`, `file`, `voip`, `dns`, `telnet` and `capture`.";
        let one = schema::define(definitions, "Traffic", |definitions| {
            schema::object(doc, &keys::keys::<Said>(), definitions)
        });
        json!({ "type": "array", "items": one })
    },
};

/// The keys of traffic, by the names of their tables in the reference.
pub(crate) fn tables() -> Vec<(&'static str, Vec<&'static dyn Key>)> {
    [("traffic", keys::keys::<Said>()), ("aimd", keys::keys::<Aimd>())].into()
}

//! Traffic that a scenario brings.

#![expect(dead_code, reason = "the types are there for their schema alone")]

mod app;

use schemars::JsonSchema;

use super::from_rows::{NameOrNumber, Size, Time};
use app::{Dns, FileTransfer, Telnet, Voip, Web};

/// Packets from one host to another: one of `constant`, `poisson`, `on-off`, `aimd`, `web`, `file`, `voip`, `dns`, `telnet`
/// and `capture`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Traffic {
    /// Unique; `traffic-1` and so on if it is not given.
    name: Option<String>,
    /// The host, or the port `HOST.LINK`, where it enters.
    from: String,
    /// The host, or the port, where it gets.
    to: String,
    /// Evenly spaced packets.
    constant: Option<Pace>,
    /// A Poisson process.
    poisson: Option<Pace>,
    /// Evenly spaced while on, silent while off.
    on_off: Option<OnOff>,
    /// As many as get through, from a sender that responds to congestion.
    aimd: Option<Aimd>,
    /// Requests and responses, each transaction on a TCP connection of its own.
    web: Option<Web>,
    /// Transfers of files over TCP.
    file: Option<FileTransfer>,
    /// Calls, over UDP or TCP.
    voip: Option<Voip>,
    /// Questions and answers in UDP.
    dns: Option<Dns>,
    /// Many small exchanges on a TCP connection.
    telnet: Option<Telnet>,
    /// The packets of a pcap or pcapng file, relative to this file's folder.
    capture: Option<String>,
    /// The length of the IP packets; 1498 bytes if it is not given.
    length: Option<Length>,
    /// When it begins.
    start: Option<Time>,
    /// When it ends.
    stop: Option<Time>,
    /// The most packets.
    packets: Option<u64>,
    /// The source address; that of the port if it is not given.
    source: Option<String>,
    /// The destination address; that of the port if it is not given.
    destination: Option<String>,
    /// The source port; one of its own if it is not given.
    source_port: Option<u16>,
    /// The destination port; 9 if it is not given.
    destination_port: Option<u16>,
    /// The IP protocol; UDP if it is not given, and TCP with `aimd`.
    protocol: Option<NameOrNumber>,
    /// The differentiated services code point: a name such as `ef`, or a number.
    dscp: Option<NameOrNumber>,
    /// The ECN field; not for `aimd`.
    ecn: Option<Ecn>,
}

/// The ECN field of a packet.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Ecn {
    /// Cannot be marked.
    NotEct,
    /// Can be marked.
    Ect0,
    /// Can be marked, by a queue for low latency.
    Ect1,
    /// Is marked.
    Ce,
}

/// A sender whose window grows by a packet a round trip, and is halved when there is congestion.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Aimd {
    /// Its packets can be marked, and a mark is as good as a loss.
    ecn: Option<bool>,
    /// Its packets can be marked, with ECT(1), and the window is reduced by half of the share that is.
    scalable: Option<bool>,
    /// How much is to get there; without an end if it is not given.
    size: Option<Size>,
    /// How many packets go at once in the beginning; 10 if it is not given.
    #[schemars(range(min = 1, max = 1_000_000))]
    window: Option<u32>,
}

/// How fast packets come: `1000/s`, `1/20ms`, or a rate of IP packets such as `12mbit`.
#[derive(JsonSchema)]
struct Pace(#[schemars(regex(pattern = r"^[^/]*[a-zA-Z/]"))] String);

/// On and off periods.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct OnOff {
    /// The pace while on.
    pace: Pace,
    /// How long it is on.
    on: Period,
    /// How long it is off.
    off: Period,
}

/// How long an on or off period is.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Period {
    /// Always the same.
    Fixed(Time),
    /// Drawn from a distribution.
    Random(RandomPeriod),
}

/// One of them.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct RandomPeriod {
    /// Exponential with this mean.
    exponential: Option<Time>,
    /// Pareto.
    pareto: Option<Pareto>,
}

/// A Pareto distribution.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Pareto {
    /// The mean.
    mean: Time,
    /// Above 1; at 2 and below the variance is infinite.
    #[schemars(range(min = 1, max = 1000))]
    shape: f64,
}

/// How long IP packets are.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Length {
    /// All alike.
    Fixed(Size),
    /// Drawn from a mix.
    Mix(LengthMix),
}

/// Lengths with their weights.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LengthMix {
    /// The lengths.
    #[schemars(length(min = 1, max = 10_000))]
    mix: Vec<LengthWeight>,
}

/// A length and how often it comes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct LengthWeight {
    /// The length.
    length: Size,
    /// How often, compared with the others.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    weight: u64,
}

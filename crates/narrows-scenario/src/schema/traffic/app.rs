//! Applications.

use schemars::JsonSchema;

use super::super::from_rows::{Rate, Size, Time};
use super::{Pace, Period};

/// How transactions come.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum AppArrivals {
    /// With independent, exponential gaps.
    Poisson,
    /// Evenly spaced.
    Constant,
}

/// A table of an application: the keys that all of them have, and its own.
macro_rules! application {
    ($(#[$about:meta])* $name:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[derive(JsonSchema)]
        #[schemars(rename_all = "kebab-case", deny_unknown_fields)]
        pub(in crate::schema) struct $name {
            /// The application data that is offered in the mean, requests and responses of both ways, without headers.
            load: Option<Rate>,
            /// How many transactions begin in a time, such as `10/s`.
            pace: Option<Pace>,
            /// How many users have one transaction after the other.
            #[schemars(range(min = 1, max = 16_384))]
            users: Option<u32>,
            /// How transactions come with `load` and `pace`; Poisson if it is not given.
            arrivals: Option<AppArrivals>,
            /// How long a user waits from the end of a transaction to the next one; not at all if it is not given.
            think: Option<Period>,
            /// The most transactions.
            #[schemars(range(min = 1))]
            transactions: Option<u64>,
            /// The most that are open at once; 1000 if it is not given.
            #[schemars(range(min = 1, max = 16_384))]
            parallel: Option<u32>,
            $($own)*
        }
    };
}

application! {
    /// A connection, a request, a response, and so on.
    Web {
        /// What the client sends; 300 bytes if it is not given.
        request: Option<Sizes>,
        /// What the server sends.
        response: Sizes,
        /// Requests on a connection; 1 if it is not given.
        #[schemars(range(min = 1, max = 1_000_000))]
        requests: Option<u32>,
        /// From a response to the next request; no time if it is not given.
        pause: Option<Period>,
        /// From a request to its response, at the server; no time if it is not given.
        service: Option<Period>,
        /// How long a transaction may take before it is given up, or `none`; 30 s if it is not given.
        patience: Option<TimeOrNone>,
        /// The hosts' TCP.
        tcp: Option<Tcp>,
    }
}

application! {
    /// A file.
    FileTransfer {
        /// How long the file is; `endless` if it is not given.
        size: Option<SizesOrEndless>,
        /// Whether it goes from the client to the server.
        put: Option<bool>,
        /// How long a transaction may take before it is given up, or `none`; without an end if it is not given.
        patience: Option<TimeOrNone>,
        /// The hosts' TCP.
        tcp: Option<Tcp>,
    }
}

application! {
    /// A call.
    Voip {
        /// How long a call lasts.
        duration: Period,
        /// Bytes of a message; 172 if it is not given.
        payload: Option<Size>,
        /// From a message to the next one; 20 ms if it is not given.
        interval: Option<Time>,
        /// How long somebody talks; always if it is not given.
        talk: Option<Period>,
        /// How long somebody is silent between.
        silence: Option<Period>,
        /// Whether messages go from the client to the server alone.
        one_way: Option<bool>,
        /// How long a transaction may take before it is given up, or `none`; over TCP, the last messages also have so long; 10 s if it is not given.
        patience: Option<TimeOrNone>,
        /// The hosts' TCP.
        tcp: Option<Tcp>,
    }
}

application! {
    /// A question and its answer.
    Dns {
        /// Bytes of the question; 40 if it is not given.
        request: Option<Size>,
        /// Bytes of the answer; 120 if it is not given.
        response: Option<Size>,
        /// When it is asked again; after 5 s if it is not given.
        timeout: Option<Time>,
        /// How often it is asked in all; twice if it is not given.
        #[schemars(range(min = 1, max = 1_000_000))]
        tries: Option<u32>,
        /// From a question to its answer, at the server; no time if it is not given.
        service: Option<Period>,
    }
}

application! {
    /// A connection with many small exchanges.
    Telnet {
        /// How many exchanges; 10 if it is not given.
        #[schemars(range(min = 1, max = 1_000_000))]
        exchanges: Option<u32>,
        /// What the client sends; 2 bytes if it is not given.
        request: Option<Sizes>,
        /// What the server answers; 20 bytes if it is not given.
        response: Option<Sizes>,
        /// From an answer to what is sent next; 200 ms if it is not given.
        pause: Option<Period>,
        /// How long a transaction may take before it is given up, or `none`; 30 s if it is not given.
        patience: Option<TimeOrNone>,
        /// The hosts' TCP.
        tcp: Option<Tcp>,
    }
}

/// What hosts' TCP does.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct Tcp {
    /// What the sender's window follows; `cubic` if it is not given.
    congestion: Option<Congestion>,
    /// Bytes of the longest IP packet; 1500 if it is not given.
    #[schemars(range(min = 576, max = 65_535))]
    mtu: Option<u32>,
    /// Room at each end, each way; 64 KiB if it is not given, for files 1 MiB.
    buffer: Option<Size>,
    /// How long an acknowledgement may wait, or `none`; 10 ms if it is not given.
    delayed_ack: Option<TimeOrNone>,
    /// Whether small segments wait while others are under way; true if it is not given, but for `voip`.
    nagle: Option<bool>,
}

/// What the sender's window follows.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 5681.
    Reno,
    /// The receiver's window alone.
    None,
}

/// A time, or none.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum TimeOrNone {
    /// A time.
    Time(Time),
    /// No end.
    None(NoTime),
}

/// The word for it.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum NoTime {
    /// None.
    None,
}

/// Bytes, or no end.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum SizesOrEndless {
    /// Bytes.
    Sizes(Sizes),
    /// No end.
    Endless(Endless),
}

/// The word for it.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Endless {
    /// Without an end.
    Endless,
}

/// How many bytes are sent.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Sizes {
    /// Always the same.
    Fixed(Size),
    /// Drawn from a distribution.
    Random(RandomSizes),
}

/// One of them.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct RandomSizes {
    /// Exponential with this mean.
    exponential: Option<Size>,
    /// Pareto.
    pareto: Option<ParetoSizes>,
    /// A mix of sizes.
    #[schemars(length(min = 1, max = 10_000))]
    mix: Option<Vec<SizeWeight>>,
}

/// A Pareto distribution.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ParetoSizes {
    /// The mean without a cut.
    mean: Size,
    /// Above 1; at 2 and below the variance is infinite.
    #[schemars(range(min = 1, max = 1000))]
    shape: f64,
    /// No size is greater.
    most: Option<Size>,
}

/// A size and how often it comes.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SizeWeight {
    /// The size.
    size: Size,
    /// How often, compared with the others.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    weight: u64,
}

//! Reading `web = { … }` and its like.

use std::ops::Range;

use narrows_core::source::{Pace, Period, Sizes};
use narrows_core::{Bytes, Duration, Rate, Time};

use super::{AppConfig, AppKind, Call, Congestion, Demand, Dialogue, Exchanges, Query, TcpConfig, Transfer};
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::traffic::read::{pace, period, shape};
use crate::units;

/// Keys of every application.
const COMMON: &[&str] = &["load", "pace", "users", "arrivals", "think", "transactions", "parallel"];
const WEB: &[&str] = &["request", "response", "requests", "pause", "service", "patience", "tcp"];
const FILE: &[&str] = &["size", "put", "patience", "tcp"];
const VOIP: &[&str] = &["duration", "payload", "interval", "talk", "silence", "one-way", "patience", "tcp"];
const DNS: &[&str] = &["request", "response", "timeout", "tries", "service"];
const TELNET: &[&str] = &["exchanges", "request", "response", "pause", "patience", "tcp"];
const TCP: &[&str] = &["congestion", "mtu", "buffer", "delayed-ack", "nagle"];

/// As many ports as clients have (RFC 6335).
const MOST_PARALLEL: i64 = 16_384;
const PARALLEL: u32 = 1000;
/// What an IPv4 packet of 1500 bytes holds behind the header of UDP.
const MOST_PAYLOAD: u64 = 1472;
/// What a full-sized message of 20 ms of G.711 takes with its RTP header (RFC 3551).
const VOICE: u64 = 172;

const SIZES: &str = "\"10 kB\", { exponential = \"10 kB\" }, { pareto = { mean = \"10 kB\", shape = 1.5 } } \
                     or { mix = [{ size = \"1 kB\", weight = 3 }, …] }";

/// Reads the table under the key of an application; the rest stands beside it.
pub(in crate::traffic) fn read(
    kind: AppKind,
    node: &Node,
    (start, stop): (Time, Time),
    udp: bool,
) -> Result<AppConfig, Problem> {
    let table = node.table("a table of what it does")?;
    let own = match kind {
        AppKind::Web => WEB,
        AppKind::File => FILE,
        AppKind::Voip => VOIP,
        AppKind::Dns => DNS,
        AppKind::Telnet => TELNET,
    };
    table.only(&[COMMON, own].concat())?;
    let dialogue = match kind {
        AppKind::Web => Dialogue::Exchanges(web(table, node)?),
        AppKind::File => Dialogue::Transfer(file(table)?),
        AppKind::Voip => Dialogue::Call(call(table, node)?),
        AppKind::Dns => Dialogue::Query(query(table)?),
        AppKind::Telnet => Dialogue::Exchanges(telnet(table)?),
    };
    if let (true, Some(key)) = (udp, table.key("tcp")) {
        let problem = Problem::new("`tcp` does not go with UDP").at(&key.span);
        return Err(if kind == AppKind::Voip {
            problem.help("say protocol = \"tcp\" beside it")
        } else {
            problem
        });
    }
    let tcp = if udp { None } else { Some(tcp(kind, table)?) };
    let patience = table.optional("patience", unless_none)?.unwrap_or(match kind {
        AppKind::Web | AppKind::Telnet => Some(Duration::from_secs(30)),
        AppKind::Voip => Some(Duration::from_secs(10)),
        AppKind::File | AppKind::Dns => None,
    });
    let transactions = table
        .optional("transactions", |node| node.integer("a number of transactions", 1..i64::MAX))?
        .map(|number| number as u64);
    let parallel = table
        .optional("parallel", |node| node.integer("a number of transactions", 1..MOST_PARALLEL + 1))?
        .map_or(PARALLEL, |number| number as u32);
    let demand = demand(kind, table, node, &dialogue)?;
    if let (Demand::Users { users, .. }, Some(key)) = (demand, table.key("parallel"))
        && users > parallel
    {
        return Err(Problem::new(format!("{users} users, and no more than {parallel} transactions at once"))
            .at(&key.span)
            .help("leave `parallel` out: users have no more than one transaction each"));
    }
    let parallel = match demand {
        Demand::Users { users, .. } => users,
        Demand::Open { .. } => parallel,
    };
    Ok(AppConfig { kind, dialogue, demand, transactions, parallel, patience, start, stop, tcp })
}

fn demand(kind: AppKind, table: &Table, node: &Node, dialogue: &Dialogue) -> Result<Demand, Problem> {
    const HELP: &str = "say one of: load = \"4mbit\", pace = \"10/s\", users = 20";
    let load = table.optional("load", |node| match units::rate(node)? {
        Rate::DOWN | Rate::UNLIMITED => Err(node.expected("a rate above zero")),
        rate => Ok(Pace::Bits(rate)),
    })?;
    let pace = table.optional("pace", |node| match pace(node) {
        Ok(Pace::Bits(_)) => {
            Err(node.expected("transactions in a time, such as \"10/s\"").help("a rate is a `load`"))
        }
        other => other,
    })?;
    let users = table
        .optional("users", |node| node.integer("a number of users", 1..MOST_PARALLEL + 1))?
        .map(|users| users as u32);
    let think = table.optional("think", period)?;
    let poisson = table.optional("arrivals", |node| {
        node.choice("way in which transactions come", &[("poisson", true), ("constant", false)])
    })?;
    let misplaced = |key: &str, other: &str| {
        let span = table.key(key).map_or(0..0, |key| key.span.clone());
        Problem::new(format!("`{key}` goes with {other}")).at(&span)
    };
    let users = match (load.is_some(), pace.is_some(), users) {
        (false, false, None) if kind == AppKind::File => Some(1),
        (false, false, Some(users)) => Some(users),
        (true, false, None) | (false, true, None) => None,
        (false, false, None) => {
            return Err(Problem::new("it is not said when transactions begin").at(&node.span).help(HELP));
        }
        _ => {
            return Err(Problem::new("transactions begin in more than one way").at(&node.span).help(HELP));
        }
    };
    if let Some(users) = users {
        return match poisson {
            Some(_) => Err(misplaced("arrivals", "`load` and `pace`")),
            None => Ok(Demand::Users { users, think: think.unwrap_or(Period::Fixed(Duration::ZERO)) }),
        };
    }
    if think.is_some() {
        return Err(misplaced("think", "`users`"));
    }
    if let (Some(key), None) = (table.key("load"), dialogue.mean_bytes()) {
        return Err(Problem::new("a transfer without an end has no load")
            .at(&key.span)
            .help("give it a `size`"));
    }
    let pace = load.or(pace).unwrap_or(Pace::Packets { count: 1, per: Duration::MAX });
    Ok(Demand::Open { poisson: poisson.unwrap_or(true), pace })
}

fn web(table: &Table, node: &Node) -> Result<Exchanges, Problem> {
    let response =
        table.required("response", &node.span, sizes).map_err(|p| p.help(format!("such as {SIZES}")))?;
    Ok(Exchanges {
        count: count(table, "requests", "a number of requests", 1)?,
        request: table.optional("request", sizes)?.unwrap_or(Sizes::Fixed(Bytes::new(300))),
        response,
        pause: pause(table, "pause", Duration::ZERO)?,
        service: pause(table, "service", Duration::ZERO)?,
    })
}

fn file(table: &Table) -> Result<Transfer, Problem> {
    let size = table.optional("size", |node| match &node.value {
        Value::String(text) if text == "endless" => Ok(None),
        _ => sizes(node).map(Some).map_err(|p| p.help(format!("{SIZES}, or \"endless\""))),
    })?;
    let put = table.optional("put", Node::boolean)?.unwrap_or(false);
    Ok(Transfer { size: size.flatten(), put })
}

fn telnet(table: &Table) -> Result<Exchanges, Problem> {
    let size = |key, default| {
        let given = table.optional(key, sizes)?;
        Ok(given.unwrap_or(Sizes::Fixed(Bytes::new(default))))
    };
    Ok(Exchanges {
        count: count(table, "exchanges", "a number of exchanges", 10)?,
        request: size("request", 2)?,
        response: size("response", 20)?,
        pause: pause(table, "pause", Duration::from_millis(200))?,
        service: Period::Fixed(Duration::ZERO),
    })
}

fn query(table: &Table) -> Result<Query, Problem> {
    Ok(Query {
        request: payload(table, "request", 40)?,
        response: payload(table, "response", 120)?,
        // What resolvers do: resolv.conf(5).
        timeout: table.optional("timeout", units::positive_time)?.unwrap_or(Duration::from_secs(5)),
        tries: count(table, "tries", "a number of tries", 2)?,
        service: pause(table, "service", Duration::ZERO)?,
    })
}

fn call(table: &Table, node: &Node) -> Result<Call, Problem> {
    let (talk, silence) = (table.optional("talk", period)?, table.optional("silence", period)?);
    let spurts = match (talk, silence) {
        (Some(talk), Some(silence)) => Some((talk, silence)),
        (None, None) => None,
        _ => {
            let key = table.key("talk").or(table.key("silence")).map_or(0..0, |key| key.span.clone());
            return Err(Problem::new("`talk` and `silence` go together").at(&key));
        }
    };
    Ok(Call {
        duration: table
            .required("duration", &node.span, period)
            .map_err(|p| p.help("how long a call lasts, such as \"30s\" or { exponential = \"3min\" }"))?,
        payload: payload(table, "payload", VOICE)?,
        interval: table.optional("interval", units::positive_time)?.unwrap_or(Duration::from_millis(20)),
        spurts,
        one_way: table.optional("one-way", Node::boolean)?.unwrap_or(false),
    })
}

fn tcp(kind: AppKind, table: &Table) -> Result<TcpConfig, Problem> {
    const MOST_BUFFER: Range<u64> = 2048..(1 << 30) + 1;
    let bulk = kind == AppKind::File;
    let mut tcp = TcpConfig {
        congestion: Congestion::Cubic,
        mtu: 1500,
        buffer: Bytes::new(if bulk { 1 << 20 } else { 1 << 16 }),
        delayed_ack: Some(Duration::from_millis(10)),
        nagle: kind != AppKind::Voip,
    };
    let given = |node: &Node| {
        let table = node.table("a table: { congestion = \"reno\" }")?;
        table.only(TCP)?;
        if let Some(congestion) =
            table.optional("congestion", |node| node.choice("congestion control", Congestion::NAMES))?
        {
            tcp.congestion = congestion;
        }
        if let Some(mtu) = table.optional("mtu", |node| node.integer("a number of bytes", 576..65_536))? {
            tcp.mtu = mtu as u16;
        }
        let buffer = table.optional("buffer", |node| match units::size(node)? {
            size if MOST_BUFFER.contains(&size.get()) => Ok(size),
            _ => Err(node.expected("a size from 2 KiB to 1 GiB")),
        })?;
        tcp.buffer = buffer.unwrap_or(tcp.buffer);
        if let Some(delay) = table.optional("delayed-ack", unless_none)? {
            tcp.delayed_ack = delay;
        }
        if let Some(nagle) = table.optional("nagle", Node::boolean)? {
            tcp.nagle = nagle;
        }
        Ok(())
    };
    table.optional("tcp", given)?;
    Ok(tcp)
}

/// A time above zero, or `"none"`.
fn unless_none(node: &Node) -> Result<Option<Duration>, Problem> {
    match &node.value {
        Value::String(text) if text == "none" => Ok(None),
        _ => units::positive_time(node).map(Some).map_err(|p| p.help("or \"none\"")),
    }
}

fn count(table: &Table, key: &str, what: &str, default: u32) -> Result<u32, Problem> {
    let given = table.optional(key, |node| node.integer(what, 1..1_000_001))?;
    Ok(given.map_or(default, |number| number as u32))
}

/// A period that may be no time at all.
fn pause(table: &Table, key: &str, default: Duration) -> Result<Period, Problem> {
    let given = table.optional(key, |node| match &node.value {
        Value::Table(_) => period(node),
        _ => units::time(node).map(Period::Fixed),
    })?;
    Ok(given.unwrap_or(Period::Fixed(default)))
}

fn payload(table: &Table, key: &str, default: u64) -> Result<u16, Problem> {
    let given = table.optional(key, |node| match units::size(node)?.get() {
        bytes @ 1..=MOST_PAYLOAD => Ok(bytes),
        _ => Err(node.expected("a size from 1 to 1472 bytes").help("what a packet of 1500 bytes holds")),
    })?;
    Ok(given.unwrap_or(default) as u16)
}

fn sizes(node: &Node) -> Result<Sizes, Problem> {
    let Value::Table(table) = &node.value else { return positive_size(node).map(Sizes::Fixed) };
    table.only(&["exponential", "pareto", "mix"])?;
    let exponential = table.optional("exponential", positive_size)?.map(Sizes::Exponential);
    let pareto = table.optional("pareto", |node| {
        let table = node.table("{ mean = \"10 kB\", shape = 1.5 }")?;
        table.only(&["mean", "shape", "most"])?;
        let mean = table.required("mean", &node.span, positive_size)?;
        let shape = table.required("shape", &node.span, shape)?;
        Ok(Sizes::Pareto { mean, shape, most: table.optional("most", positive_size)? })
    })?;
    let mix = table.optional("mix", |node| {
        let items = node.list("a list of sizes with weights")?;
        if items.is_empty() || items.len() > 10_000 {
            return Err(Problem::new(format!("a mix of {} sizes", items.len()))
                .at(&node.span)
                .help("1 to 10000"));
        }
        let item = |node: &Node| {
            let table = node.table("a size and its weight")?;
            table.only(&["size", "weight"])?;
            let weight =
                table.required("weight", &node.span, |node| node.integer("a weight", 1..1_000_000_001))?;
            Ok((table.required("size", &node.span, positive_size)?, weight as u64))
        };
        items.iter().map(item).collect::<Result<_, _>>().map(Sizes::Mix)
    })?;
    let mut all = [exponential, pareto, mix].into_iter().flatten();
    match (all.next(), all.next()) {
        (Some(sizes), None) => Ok(sizes),
        _ => Err(node.expected("one of `exponential`, `pareto` and `mix`")),
    }
}

fn positive_size(node: &Node) -> Result<Bytes, Problem> {
    match units::size(node)? {
        size if size.get() > 0 => Ok(size),
        _ => Err(node.expected("a size above zero")),
    }
}

//! Parses `web = { … }` and the tables of other applications.

use narrows_core::source::Pace;
use narrows_core::{Duration, Time};

use super::rows::{Common, Hosts, NO_TIME, Telnet, Web};
use super::{AppConfig, AppKind, Demand, Dialogue};
use crate::keys::{self, Parameters};
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::surroundings::Surroundings;

/// Default maximum of concurrent transactions.
const PARALLEL: u32 = 1000;

/// Parses the table under the key of an application; other keys are next to it.
pub(in crate::traffic) fn read(
    kind: AppKind,
    node: &Node,
    (start, stop): (Time, Time),
    udp: bool,
    around: Surroundings<'_>,
) -> Result<AppConfig, Problem> {
    let table = node.table("a table of what it does")?;
    keys::only(table, &kind.keys())?;
    let common: Common = keys::read(node, table, around)?;
    let dialogue = match kind {
        AppKind::Web => Dialogue::Exchanges(keys::read::<Web>(node, table, around)?.exchanges),
        AppKind::File => Dialogue::Transfer(keys::read(node, table, around)?),
        AppKind::Voip => Dialogue::Call(keys::read(node, table, around)?),
        AppKind::Dns => Dialogue::Query(keys::read(node, table, around)?),
        AppKind::Telnet => Dialogue::Exchanges(keys::read::<Telnet>(node, table, around)?.exchanges),
    };
    if let (true, Some(key)) = (udp, table.key("tcp")) {
        let problem = Problem::new("`tcp` cannot be used with UDP").at(&key.span);
        return Err(if kind == AppKind::Voip { problem.help("add protocol = \"tcp\"") } else { problem });
    }
    let mut hosts = Hosts::of(kind);
    if kind.has_hosts() {
        hosts.read(table, &node.span, around)?;
    }
    let parallel = common.parallel.unwrap_or(PARALLEL);
    let demand = demand(kind, &common, table, node, &dialogue)?;
    if let (Demand::Users { users, .. }, Some(key)) = (demand, table.key("parallel"))
        && users > parallel
    {
        return Err(Problem::new(format!("{users} users, but at most {parallel} transactions at once"))
            .at(&key.span)
            .help("remove `parallel`: each user has at most one transaction"));
    }
    let parallel = match demand {
        Demand::Users { users, .. } => users,
        Demand::Open { .. } => parallel,
    };
    let (transactions, patience) = (common.transactions, hosts.patience);
    let tcp = (!udp).then_some(hosts.tcp);
    Ok(AppConfig { kind, dialogue, demand, transactions, parallel, patience, start, stop, tcp })
}

fn demand(
    kind: AppKind,
    common: &Common,
    table: &Table,
    node: &Node,
    dialogue: &Dialogue,
) -> Result<Demand, Problem> {
    const HELP: &str = "use one of: load = \"4mbit\", pace = \"10/s\", users = 20";
    let load = common.load.map(Pace::Bits);
    let Common { pace, users, poisson, think, .. } = *common;
    let misplaced = |key: &str, other: &str| {
        let span = table.key(key).map_or(0..0, |key| key.span.clone());
        Problem::new(format!("`{key}` requires {other}")).at(&span)
    };
    let users = match (load.is_some(), pace.is_some(), users) {
        (false, false, None) if kind == AppKind::File => Some(1),
        (false, false, Some(users)) => Some(users),
        (true, false, None) | (false, true, None) => None,
        (false, false, None) => {
            return Err(Problem::new("no start of transactions is given").at(&node.span).help(HELP));
        }
        _ => {
            return Err(Problem::new("several starts of transactions are given").at(&node.span).help(HELP));
        }
    };
    if let Some(users) = users {
        return match poisson {
            Some(_) => Err(misplaced("arrivals", "`load` or `pace`")),
            None => Ok(Demand::Users { users, think: think.unwrap_or(NO_TIME) }),
        };
    }
    if think.is_some() {
        return Err(misplaced("think", "`users`"));
    }
    if let (Some(key), None) = (table.key("load"), dialogue.mean_bytes()) {
        return Err(Problem::new("an endless transfer has no load").at(&key.span).help("give it a `size`"));
    }
    let pace = load.or(pace).unwrap_or(Pace::Packets { count: 1, per: Duration::MAX });
    Ok(Demand::Open { poisson: poisson.unwrap_or(true), pace })
}

//! Routers: connect any number of links and forward packets by destination.

use std::collections::BTreeSet;
use std::ops::Range;

use narrows_core::Spread;
use narrows_core::sched::Weight;
use serde_json::json;

use crate::host::{self, ADDRESSES, Address, HostAddress};
use crate::keys::compound::{Group, Items};
use crate::keys::kind::{ByHand, Choice, Described, Integer, text};
use crate::keys::{self, Form, Keyed, Row, row};
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem, one_of};

/// A router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Router {
    /// Name, unique among hosts, junctions, routers and links.
    pub name: String,
    /// The configured addresses. See [`Interface::addresses`](crate::Interface) for the effective ones.
    pub addresses: Vec<HostAddress>,
    /// How packets are spread over several shortest paths. `None` uses the path whose link name sorts
    /// first.
    pub multipath: Option<Spread>,
    /// Routes that override the shortest paths.
    pub routes: Vec<ExplicitRoute>,
}

/// An explicit route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplicitRoute {
    /// Destination of the packets.
    pub to: Destination,
    /// The links by which they leave, each with its weight.
    pub via: Vec<(String, Weight)>,
    /// How packets are spread over several links.
    pub spread: Spread,
}

/// Destination of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// All addresses of this host or router.
    Node(String),
    /// All addresses in this network.
    Network(Address),
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(name) => f.write_str(name),
            Self::Network(network) => network.fmt(f),
        }
    }
}

/// Maximum number of links of one route.
const MOST_WAYS: usize = 64;
/// Maximum weight; the weights of a route add up within 32 bits.
const MOST_WEIGHT: i64 = 1_000_000;

/// The word for a spread.
pub(crate) const fn spread_name(spread: Spread) -> &'static str {
    match spread {
        Spread::Flow => "flow",
        Spread::Packet => "packet",
    }
}

const MULTIPATH: Choice<Option<Spread>> = Choice {
    what: "kind of multipath",
    choices: &[("none", None), ("flow", Some(Spread::Flow)), ("packet", Some(Spread::Packet))],
};
const SPREAD: Choice<Spread> =
    Choice { what: "way to spread packets", choices: &[("flow", Spread::Flow), ("packet", Spread::Packet)] };
const ROUTES: Items<Group<ExplicitRoute>> = Items {
    words: "list of tables",
    expected: "a list of routes",
    of: Group::new("Route", "Where packets go.", "{ to = \"server\", via = \"upper\" }"),
};
const TO: ByHand<Destination> = ByHand {
    words: || "a host, another router, or a network such as `\"10.0.0.0/8\"`".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| destination(node),
    write: |to| Some(text(to)),
};
const VIA: Described = Described {
    words: || format!("a link of this router, or a list of 1 to {MOST_WAYS}"),
    schema: |_| {
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": MOST_WAYS },
        ] })
    },
};
const WEIGHTS: Items<Integer> = Items {
    words: "list of whole numbers, 1 to 1000000",
    expected: "a list of weights, such as [2, 1]",
    of: Integer { what: "a weight", low: 1, high: MOST_WEIGHT },
};

impl Keyed for Router {
    const ROWS: &'static [Row<Self>] = &[
        row!("addresses", addresses, ADDRESSES, "IP addresses of the router, as for [hosts](#hosts).")
            .default("one of IPv4 and one of IPv6 for each link"),
        row!(
            "multipath",
            multipath,
            MULTIPATH,
            "With several shortest paths: use the link whose name sorts first, or spread over all, by flow or by packet."
        ),
        Row::new(
            "routes",
            &ROUTES,
            "[Static routes](#routes), which override shortest paths.",
            |router: &Self| {
                let usual = router.multipath.unwrap_or_default();
                let written = |route: &ExplicitRoute| {
                    let mut table = keys::written(route);
                    if let Some(spread) = SPREAD.write(&route.spread).filter(|_| route.spread != usual) {
                        table.set("spread", Node::new(spread));
                    }
                    Node::new(Value::Table(table))
                };
                let routes: Vec<_> = router.routes.iter().map(written).collect();
                (!routes.is_empty()).then_some(Value::Array(routes))
            },
            |router: &mut Self, node, around| {
                router.routes = ROUTES
                    .read(node, around)
                    .map_err(|p| p.help("write routes = [{ to = \"server\", via = \"upper\" }]"))?;
                for (route, table) in router.routes.iter_mut().zip(tables(node)) {
                    if table.get("spread").is_none() {
                        route.spread = router.multipath.unwrap_or_default();
                    }
                }
                Ok(())
            },
        )
        .default("none"),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        let mut seen = BTreeSet::new();
        for (route, table) in self.routes.iter().zip(route_tables(table)) {
            if !seen.insert(&route.to) {
                return Err(Problem::new(format!("a second route to `{}`", route.to))
                    .at(&place(table, "to"))
                    .inside("routes")
                    .help("put several links into one route: via = [\"upper\", \"lower\"]"));
            }
        }
        Ok(())
    }
}

impl Default for ExplicitRoute {
    /// A route without a destination.
    fn default() -> Self {
        Self { to: Destination::Node(String::new()), via: Vec::new(), spread: Spread::default() }
    }
}

impl Keyed for ExplicitRoute {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "to",
            to,
            TO,
            "Destination: all addresses of a host or router, or a network. `\"0.0.0.0/0\"` and `\"::/0\"` are default routes."
        )
        .required(),
        Row::new(
            "via",
            &VIA,
            "Outgoing links.",
            |route: &Self| {
                let names = route.via.iter().map(|(link, _)| Node::new(text(link)));
                Some(Value::Array(names.collect()))
            },
            |route: &mut Self, node, _| {
                route.via = via(node)?.into_iter().map(|link| (link, Weight::ONE)).collect();
                Ok(())
            },
        )
        .required(),
        Row::new(
            "weights",
            &WEIGHTS,
            "Relative share of each link in `via`.",
            |route: &Self| {
                let weights: Vec<i64> = route.via.iter().map(|(_, weight)| weight.get().into()).collect();
                WEIGHTS.write(&weights).filter(|_| weights.iter().any(|weight| *weight != 1))
            },
            |route: &mut Self, node, around| {
                let weights: Vec<u32> = WEIGHTS.read(node, around)?;
                if weights.len() != route.via.len() {
                    return Err(Problem::new(format!("`via` and `weights` differ in length: {} and {}", route.via.len(), weights.len()))
                        .at(&node.span)
                        .help("give one weight for each link, in the order of `via`"));
                }
                for ((_, weight), given) in route.via.iter_mut().zip(weights) {
                    *weight = Weight::new(given).unwrap_or(Weight::ONE); // at least 1
                }
                Ok(())
            },
        )
        .default("all alike"),
        row!(
            "spread",
            spread,
            SPREAD,
            "Whether to spread by flow or by packet."
        )
        .default("as `multipath`, or else `\"flow\"`"),
    ];
}

/// The tables of a list.
fn tables(list: &Node) -> impl Iterator<Item = &Table> {
    list.list("").into_iter().flatten().filter_map(|node| node.table("").ok())
}

/// The tables of the routes of a router's table.
fn route_tables(table: &Table) -> impl Iterator<Item = &Table> {
    table.get("routes").into_iter().flat_map(tables)
}

/// The place of the value of an existing key.
fn place(table: &Table, key: &str) -> Range<usize> {
    table.get(key).map_or(0..0, |node| node.span.clone())
}

/// A name, or a network.
fn destination(node: &Node) -> Result<Destination, Problem> {
    const ALLOWED: &str = "the name of a host or router, or a network such as \"10.0.0.0/8\"";
    let text = node.text(ALLOWED)?;
    if !text.contains(['/', '.', ':']) {
        return Ok(Destination::Node(text.into()));
    }
    let address = host::read_address(node)?;
    let network = address.network();
    if network.ip != address.ip {
        return Err(Problem::new(format!("{} has bits set beyond its prefix", Found(text)))
            .at(&node.span)
            .help(format!("the network is {network}")));
    }
    Ok(Destination::Network(network))
}

/// Reads one link or several.
fn via(node: &Node) -> Result<Vec<String>, Problem> {
    const ALLOWED: &str = "a link of this router, or a list of them";
    let items = one_or_several(node);
    if items.is_empty() || items.len() > MOST_WAYS {
        return Err(Problem::new(format!("a route with {} ways", items.len()))
            .at(&node.span)
            .help(format!("1 to {MOST_WAYS}")));
    }
    let mut names = Vec::new();
    for item in items {
        let name = item.text(ALLOWED)?.to_string();
        if names.contains(&name) {
            return Err(Problem::new(format!("{} is here twice", Found(&name)))
                .at(&item.span)
                .help("give it more weight: weights = [2, 1]"));
        }
        names.push(name);
    }
    Ok(names)
}

fn one_or_several(node: &Node) -> &[Node] {
    match &node.value {
        Value::Array(items) => items,
        _ => std::slice::from_ref(node),
    }
}

/// Checks the routes of a router that was read from this table: each must lead to a host or another router,
/// by links of this router. `known` has the name and kind of every possible end of a link; `here` are the
/// links that end at this router.
pub(crate) fn check(router: &Router, table: &Table, known: &[(&str, &str)], here: &[&str]) -> Vec<Problem> {
    let is_node = |(name, kind): &&(&str, &str)| *kind != "junction" && *name != router.name;
    let nodes: Vec<&str> = known.iter().filter(is_node).map(|(name, _)| *name).collect();
    let inside = |problem: Problem, key: &str| {
        problem.inside(key).inside("routes").inside(&router.name).inside("routers")
    };
    let mut problems = Vec::new();
    for (route, table) in router.routes.iter().zip(route_tables(table)) {
        match &route.to {
            Destination::Node(name) if *name == router.name => {
                let problem = Problem::new(format!("a route of `{name}` to itself"));
                problems.push(inside(problem.at(&place(table, "to")), "to"));
            }
            Destination::Node(name) if !nodes.contains(&name.as_str()) => {
                let problem = Problem::new(format!("there is no host or router {}", Found(name)));
                let problem = problem.did_you_mean(name, nodes.iter().copied());
                problems.push(inside(problem.at(&place(table, "to")), "to"));
            }
            _ => {}
        }
        let via = table.get("via").map_or(&[][..], one_or_several);
        for ((name, _), node) in route.via.iter().zip(via) {
            if !here.contains(&name.as_str()) {
                let problem =
                    Problem::new(format!("no link {} at the router `{}`", Found(name), router.name));
                let problem = problem.did_you_mean(name, here.iter().copied()).at(&node.span);
                problems.push(inside(problem.help(format!("links here: {}", one_of(here))), "via"));
            }
        }
    }
    problems
}

//! Routers: where any number of links meet, and packets go on by their destination.

use std::collections::BTreeSet;
use std::ops::Range;

use narrows_core::Spread;
use narrows_core::sched::Weight;

use crate::host::{self, Address, HostAddress};
use crate::link;
use crate::node::{Key, Node};
use crate::problem::{Found, Problem, one_of};

/// A router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Router {
    /// Unique among hosts, junctions, routers and links.
    pub name: String,
    /// The addresses that were given; see [`Interface::addresses`](crate::Interface) for those in force.
    pub addresses: Vec<HostAddress>,
    /// How packets are spread where several paths are shortest; nothing for the path whose link comes first by name.
    pub multipath: Option<Spread>,
    /// Routes that count for more than the shortest paths.
    pub routes: Vec<ExplicitRoute>,
}

/// A route that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplicitRoute {
    /// Where packets are to get.
    pub to: Destination,
    /// By which links they leave, and how much weight each has.
    pub via: Vec<(String, Weight)>,
    /// How they are spread over several.
    pub spread: Spread,
}

/// Where packets are to get.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destination {
    /// To any address of this host or router.
    Node(String),
    /// To any address of this network.
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

pub(crate) const KEYS: &[&str] = &["addresses", "multipath", "routes"];
pub(crate) const ROUTE_KEYS: &[&str] = &["to", "via", "weights", "spread"];

/// The words for [`Router::multipath`].
pub(crate) const MULTIPATHS: &[(&str, Option<Spread>)] =
    &[("none", None), ("flow", Some(Spread::Flow)), ("packet", Some(Spread::Packet))];

/// The most ways of one route.
const MOST_WAYS: usize = 64;
/// The greatest weight: all those of a route together fit in 32 bits.
const MOST_WEIGHT: u32 = 1_000_000;

/// The word for a spread.
pub(crate) const fn spread_name(spread: Spread) -> &'static str {
    match spread {
        Spread::Flow => "flow",
        Spread::Packet => "packet",
    }
}

/// A router from a file, with the places that later errors point at.
pub(crate) struct Placed {
    pub(crate) router: Router,
    /// For each route: the place of `to`, and of each of `via`.
    pub(crate) routes: Vec<(Range<usize>, Vec<Range<usize>>)>,
}

/// Reads `[routers.NAME]`.
pub(crate) fn read(key: &Key, node: &Node) -> Result<Placed, Problem> {
    let table = node.table("a table, which may be empty")?;
    table.only(KEYS)?;
    let addresses = table.optional("addresses", host::read_addresses)?.unwrap_or_default();
    let multipath =
        table.optional("multipath", |node| node.choice("kind of multipath", MULTIPATHS))?.unwrap_or(None);
    let read_all = |node: &Node| {
        let items = node.list("a list of routes")?.iter();
        items.map(|item| read_route(item, multipath.unwrap_or_default())).collect::<Result<Vec<_>, _>>()
    };
    let read_all = |node: &Node| {
        read_all(node).map_err(|p| p.help("write routes = [{ to = \"server\", via = \"upper\" }]"))
    };
    let (mut routes, mut places) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for (route, place) in table.optional("routes", read_all)?.unwrap_or_default() {
        if !seen.insert(route.to.clone()) {
            return Err(Problem::new(format!("a second route to `{}`", route.to))
                .at(&place.0)
                .inside("routes")
                .help("several ways stand in one route: via = [\"upper\", \"lower\"]"));
        }
        routes.push(route);
        places.push(place);
    }
    let router = Router { name: key.name.clone(), addresses, multipath, routes };
    Ok(Placed { router, routes: places })
}

type PlacedRoute = (ExplicitRoute, (Range<usize>, Vec<Range<usize>>));

fn read_route(node: &Node, spread: Spread) -> Result<PlacedRoute, Problem> {
    let table = node.table("a table such as { to = \"server\", via = \"upper\" }")?;
    table.only(ROUTE_KEYS)?;
    let mut to_span = node.span.clone();
    let to = table.required("to", &node.span, |node| {
        to_span = node.span.clone();
        destination(node)
    })?;
    let (names, spans) = table.required("via", &node.span, via)?;
    let mut weights = vec![Weight::ONE; names.len()];
    if let Some(given) = table.optional("weights", |node| given_weights(node, names.len()))? {
        weights = given;
    }
    const SPREADS: &[(&str, Spread)] = &[("flow", Spread::Flow), ("packet", Spread::Packet)];
    let spread =
        table.optional("spread", |node| node.choice("way to spread packets", SPREADS))?.unwrap_or(spread);
    let via = names.into_iter().zip(weights).collect();
    Ok((ExplicitRoute { to, via, spread }, (to_span, spans)))
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
        return Err(Problem::new(format!("{} has bits behind its prefix", Found(text)))
            .at(&node.span)
            .help(format!("the network is {network}")));
    }
    Ok(Destination::Network(network))
}

/// One link or several.
fn via(node: &Node) -> Result<(Vec<String>, Vec<Range<usize>>), Problem> {
    const ALLOWED: &str = "a link of this router, or a list of them";
    let one = std::slice::from_ref(node);
    let items = match node.list(ALLOWED) {
        Ok(items) => items,
        Err(_) => one,
    };
    if items.is_empty() || items.len() > MOST_WAYS {
        return Err(Problem::new(format!("a route with {} ways", items.len()))
            .at(&node.span)
            .help(format!("1 to {MOST_WAYS}")));
    }
    let (mut names, mut spans) = (Vec::new(), Vec::new());
    for item in items {
        let name = item.text(ALLOWED)?.to_string();
        if names.contains(&name) {
            return Err(Problem::new(format!("{} is here twice", Found(&name)))
                .at(&item.span)
                .help("give it more weight: weights = [2, 1]"));
        }
        names.push(name);
        spans.push(item.span.clone());
    }
    Ok((names, spans))
}

fn given_weights(node: &Node, ways: usize) -> Result<Vec<Weight>, Problem> {
    let items = node.list("a list of weights, such as [2, 1]")?;
    if items.len() != ways {
        return Err(Problem::new(format!("{} weights for {ways} links", items.len()))
            .at(&node.span)
            .help("give each of `via` one, in that order"));
    }
    let weight = |node: &Node| {
        let weight = node.integer("a weight", 1..i64::from(MOST_WEIGHT) + 1)?;
        Ok(Weight::new(weight as u32).unwrap_or(Weight::ONE))
    };
    items.iter().map(weight).collect()
}

/// What is wrong with routes: each leads to a host or another router, by links of this router. `known` has the name and kind of
/// everything that links may end at.
pub(crate) fn check(placed: &Placed, known: &[(&str, &str)], links: &[link::Placed]) -> Vec<Problem> {
    let Placed { router, routes: places } = placed;
    let is_node = |(name, kind): &&(&str, &str)| *kind != "junction" && *name != router.name;
    let nodes: Vec<&str> = known.iter().filter(is_node).map(|(name, _)| *name).collect();
    let here = links.iter().map(|placed| &placed.link).filter(|link| link.between.contains(&router.name));
    let here: Vec<&str> = here.map(|link| link.name.as_str()).collect();
    let inside = |problem: Problem, key: &str| {
        problem.inside(key).inside("routes").inside(&router.name).inside("routers")
    };
    let mut problems = Vec::new();
    for (route, (to, via)) in router.routes.iter().zip(places) {
        match &route.to {
            Destination::Node(name) if *name == router.name => {
                let problem = Problem::new(format!("a route of `{name}` to itself"));
                problems.push(inside(problem.at(to), "to"));
            }
            Destination::Node(name) if !nodes.contains(&name.as_str()) => {
                let problem = Problem::new(format!("no host or router is called {}", Found(name)));
                let problem = problem.did_you_mean(name, nodes.iter().copied());
                problems.push(inside(problem.at(to), "to"));
            }
            _ => {}
        }
        for ((name, _), span) in route.via.iter().zip(via) {
            if !here.contains(&name.as_str()) {
                let problem = Problem::new(format!(
                    "no link called {} ends at the router `{}`",
                    Found(name),
                    router.name
                ));
                let problem = problem.did_you_mean(name, here.iter().copied()).at(span);
                problems.push(inside(problem.help(format!("links here: {}", one_of(&here))), "via"));
            }
        }
    }
    problems
}

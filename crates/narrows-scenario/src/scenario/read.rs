//! Parses a scenario. Reports all problems at once, except where one hides another.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::Scenario;
use crate::files::Files;
use crate::host::{Host, HostAddress};
use crate::keys::{self, Form};
use crate::link::{self, Link, MOST_STATIONS, Medium};
use crate::node::{Key, Node, Table, check_name};
use crate::problem::{Found, Problem, Problems, nearest};
use crate::router::{self, Router};
use crate::rules_link::RulesLink;
use crate::surroundings::Surroundings;
use crate::switch::{self, Switch};
use crate::timeline::{ENTRY, Entry};
use crate::topology::Fault;
use crate::traffic;

/// Number of timeline steps that are tried while a scenario is read; a longer timeline repeats itself by
/// then.
const TRIED_STEPS: usize = 1000;
/// Steps with commands take as long as there are rules: the sum of rules over the steps that are tried.
pub(crate) const TRIED_RULES: usize = 1_000_000;

/// Parses a whole file. Later parts are parsed only if the parts that they need are valid.
pub(super) fn read(
    table: &Table,
    text: &str,
    file: &str,
    files: &Files,
    problems: &mut Problems,
) -> Option<Scenario> {
    problems.extend(table.unknown_keys(&keys::names::<Scenario>()));
    let mut scenario = Scenario { file: file.into(), files: files.clone(), ..Scenario::default() };
    let around = Surroundings::of_files(files);
    problems.extend(keys::read_all(&mut scenario, table, &(0..0), around));

    let mut places: Places = BTreeMap::new();
    let mut hosts = Vec::new();
    for (key, node) in section(table, "hosts", problems) {
        problems.catch(check_name(key, "host").map_err(|p| p.inside("hosts")));
        places.insert(key.name.clone(), ("host", key.span.clone()));
        let host = keys::read_named(Host::plain(&key.name), key, node, around)
            .map_err(|p| p.inside(&key.name).inside("hosts"));
        hosts.extend(problems.catch(host));
    }
    let mut junctions = Vec::new();
    for (key, node) in section(table, "junctions", problems) {
        let read = check_name(key, "junction")
            .and_then(|()| node.table("a table, which may be empty"))
            .and_then(|table| table.only(&[]).map_err(|p| p.inside(&key.name)));
        problems.catch(read.map_err(|p| p.inside("junctions")));
        if problems.catch(place(&mut places, "junction", key)).is_some() {
            junctions.push(key.name.clone());
        }
    }
    let mut routers = Vec::new();
    for (key, node) in section(table, "routers", problems) {
        problems.catch(check_name(key, "router").map_err(|p| p.inside("routers")));
        problems.catch(place(&mut places, "router", key));
        let router = Router { name: key.name.clone(), ..Router::default() };
        let router = keys::read_named(router, key, node, around);
        let router = router.map_err(|p| p.inside(&key.name).inside("routers"));
        routers.extend(problems.catch(router).map(|router| (router, node)));
    }
    let mut switches = Vec::new();
    for (key, node) in section(table, "switches", problems) {
        problems.catch(check_name(key, "switch").map_err(|p| p.inside("switches")));
        problems.catch(place(&mut places, "switch", key));
        let switch = keys::read_named(Switch::plain(&key.name), key, node, around);
        let switch = switch.map_err(|p| p.inside(&key.name).inside("switches"));
        switches.extend(problems.catch(switch).map(|switch| (switch, key, node)));
    }
    // Includes hosts that failed to parse: a reference to such a host is not an error of its own.
    let known: BTreeMap<&str, &Host> = hosts.iter().map(|host| (host.name.as_str(), host)).collect();
    let named: Vec<Host> = section(table, "hosts", &mut Problems::default())
        .into_iter()
        .map(|(key, _)| {
            let read = known.get(key.name.as_str()).copied();
            read.cloned().unwrap_or_else(|| Host::plain(&key.name))
        })
        .collect();
    let names: Vec<String> = named.iter().map(|host| host.name.clone()).collect();
    let stations = stations(table);
    let mut links: Vec<(Link, &Key, &Node)> = Vec::new();
    // Those that switches name by their hosts, with the places of the hosts.
    let mut made: Vec<(Link, Key)> = Vec::new();
    let mut wrong_ends = false;
    for (key, node) in section(table, "links", problems) {
        problems.catch(check_name(key, "link").map_err(|p| p.inside("links")));
        // The engine uses the names of all these, so they must differ.
        if places.get(&key.name).is_some_and(|(kind, _)| matches!(*kind, "router" | "switch")) {
            problems.catch(place(&mut places, "link", key));
        }
        match link::read(key, node, &named, &names, stations_of(&stations, &key.name), files) {
            Ok(link) => links.push((link, key, node)),
            Err(all) => {
                problems.extend(all.into_iter().map(|p| p.inside(&key.name).inside("links")).collect());
                wrong_ends = true;
            }
        }
    }
    for (_, key, node) in &switches {
        let inside = |problem: Problem| problem.inside(&key.name).inside("switches");
        let Ok(table) = node.table("") else { continue };
        match switch::links_of(key, table, &named, &names, files) {
            Ok(own) => {
                for (link, node) in own {
                    if let Some((_, other, _)) = links.iter().find(|(other, ..)| other.name == link.name) {
                        let problem = Problem::new(format!("there is a link `{}` already", link.name))
                            .at(&node.span)
                            .also(&other.span, "here")
                            .help("a link of its own may join the host and the switch: leave the host out of `hosts`");
                        problems.extend(vec![inside(problem.inside("hosts"))]);
                        continue;
                    }
                    let key = Key { name: link.name.clone(), span: node.span.clone() };
                    made.push((link, key));
                }
            }
            Err(all) => {
                problems.extend(all.into_iter().map(inside).collect());
                wrong_ends = true;
            }
        }
    }
    for (link, _, node) in &links {
        let ends = link::places_of_ends(node);
        for (name, span) in link.between.iter().zip(&ends) {
            if !places.contains_key(name) {
                wrong_ends = true;
                let problem = no_such_host(name, &places).at(span).inside("between").inside(&link.name);
                problems.extend(vec![problem.inside("links")]);
            }
        }
        let is_host = |name: &String| places.get(name).is_none_or(|(kind, _)| *kind == "host");
        let forwarding = link.rules().and_then(RulesLink::forwards);
        if let Some(rule) = forwarding.filter(|_| link.between.iter().all(is_host)) {
            let title = format!("rule {} sets a next hop, but the link has no router", rule.number);
            let help =
                "`fwd` is obeyed by the next router that the packet reaches: put one at an end of the link";
            let problem = Problem::new(title).at(&ends[0]).help(help).inside("between").inside(&link.name);
            problems.extend(vec![problem.inside("links")]);
        }
        let rule = link.rules().and_then(RulesLink::says_me);
        let nat = link.rules().and_then(RulesLink::needs_own_address);
        let is_junction = places.get(&link.between[0]).is_some_and(|(kind, _)| *kind == "junction");
        let who = rule.map(|rule| format!("rule {} uses `me`", rule.number));
        let who = who.or_else(|| nat.map(|nat| format!("translator {nat} has no `address`")));
        if let (Some(who), true) = (who, is_junction) {
            let [first, _] = &link.between;
            let title = format!("{who}, but `{first}` is a junction without addresses");
            let help =
                "rules apply at the first end of the link: make it a host or a router, or write addresses";
            let problem = Problem::new(title).at(&ends[0]).help(help).inside("between").inside(&link.name);
            problems.extend(vec![problem.inside("links")]);
        }
    }
    if links.is_empty() && made.is_empty() && !wrong_ends && problems.is_empty() {
        problems.extend(vec![
            Problem::new("there is no link")
                .at(&(0..text.len().min(1)))
                .help("a scenario has at least two hosts and a link: [links.access] with between = [\"client\", \"server\"]"),
        ]);
    }
    let all_links: Vec<&Link> =
        links.iter().map(|(link, ..)| link).chain(made.iter().map(|(link, _)| link)).collect();
    if !wrong_ends {
        problems.extend(media(&all_links, links.len(), table));
    }
    let links_at = links_at(&all_links);
    let owners = hosts.iter().map(|host| ("host", &host.name, &host.addresses));
    let owners = owners.chain(routers.iter().map(|(router, _)| ("router", &router.name, &router.addresses)));
    owners.for_each(|owner| check_addresses(table, owner, &links_at, problems));
    let kinds: Vec<(&str, &str)> = places.iter().map(|(name, (kind, _))| (name.as_str(), *kind)).collect();
    for (router, node) in &routers {
        let here = links_at.get(router.name.as_str()).map_or(&[][..], Vec::as_slice);
        let checked = node.table("").map(|table| router::check(router, table, &kinds, here));
        problems.extend(checked.unwrap_or_default());
    }
    for (switch, key, node) in &switches {
        let is_here = |link: &&&Link| link.between.contains(&switch.name);
        let here: Vec<&Link> = all_links.iter().filter(is_here).copied().collect();
        let checked = node.table("").map(|table| switch::check(switch, table, &here)).unwrap_or_default();
        problems.extend(checked.into_iter().map(|p| p.inside(&key.name).inside("switches")).collect());
    }
    if wrong_ends || !problems.is_empty() {
        return None;
    }

    let keys: Vec<&Key>;
    (scenario.hosts, scenario.junctions) = (hosts, junctions);
    let (made, made_keys): (Vec<Link>, Vec<Key>) = made.into_iter().unzip();
    (scenario.links, keys) =
        (links.into_iter().map(|(link, key, _)| (link, key))).chain(made.into_iter().zip(&made_keys)).unzip();
    number_stations(&mut scenario.links);
    scenario.switches = switches.into_iter().map(|(switch, ..)| switch).collect();
    scenario.routers = routers.into_iter().map(|(router, _)| router).collect();
    if let Err(faults) = scenario.wire() {
        problems.extend(
            faults
                .into_iter()
                .map(|fault| match fault {
                    Fault::Junction(name, problem) => {
                        problem.at(&places[&name].1).inside(&name).inside("junctions")
                    }
                    Fault::Router(name, problem) => {
                        problem.at(&places[&name].1).inside(&name).inside("routers")
                    }
                    Fault::Link(index, problem) => problem.at(&keys[index].span).inside("links"),
                })
                .collect(),
        );
        return None;
    }
    read_traffic(table, &mut scenario, around, problems);
    read_timeline(table, &mut scenario, around, problems);
    Some(scenario)
}

fn read_traffic(table: &Table, scenario: &mut Scenario, around: Surroundings<'_>, problems: &mut Problems) {
    let folder = scenario.folder().to_owned();
    let places = traffic::Places::of(&scenario.topology);
    let mut names: BTreeSet<String> = scenario.traffic.iter().map(|traffic| traffic.name.clone()).collect();
    for (index, node) in list(table, "traffic", problems).iter().enumerate() {
        let traffic = traffic::read(index, node, &places, &folder, around).map_err(|p| p.inside("traffic"));
        let Some(traffic) = problems.catch(traffic) else { continue };
        if !names.insert(traffic.name.clone()) {
            problems.extend(vec![
                Problem::new(format!("duplicate traffic source `{}`", traffic.name))
                    .at(&node.span)
                    .help("give each a unique `name`"),
            ]);
        }
        scenario.traffic.push(traffic);
    }
}

fn read_timeline(table: &Table, scenario: &mut Scenario, around: Surroundings<'_>, problems: &mut Problems) {
    let items = list(table, "timeline", problems);
    let mut all = true;
    for node in items {
        let entry = ENTRY.read(node, around).map_err(|p| p.inside("timeline"));
        match problems.catch(entry) {
            Some(entry) => scenario.timeline.push(entry),
            None => all = false,
        }
    }
    if !all {
        return;
    }
    // Try the change: its validity may depend on changes before it.
    let mut copy = scenario.clone();
    let mut steps = scenario.timeline();
    steps.first_packet(narrows_core::Time::ZERO);
    let mut wrong = vec![false; items.len()];
    let most = TRIED_STEPS.max(2 * items.len());
    let mut rules = 0;
    for (at, index) in std::iter::from_fn(|| steps.pop()).take(most) {
        if wrong[index] {
            continue;
        }
        if !scenario.timeline[index].ipfw.is_empty() {
            rules += copy.count_of_rules();
            if rules > TRIED_RULES {
                break;
            }
        }
        let entry = &scenario.timeline[index];
        if let Err(problem) = copy.try_entry(entry, at) {
            wrong[index] = true;
            problems.extend(vec![problem.inside("timeline")]);
        }
    }
}

impl Scenario {
    /// The rules and pipes of all links.
    pub(crate) fn count_of_rules(&self) -> usize {
        self.links.iter().filter_map(Link::rules).map(|rules| rules.rules.len() + rules.pipes.len()).sum()
    }

    /// Makes the changes of an entry of the timeline, at their places in the file.
    fn try_entry(&mut self, entry: &Entry, at: narrows_core::Time) -> Result<(), Problem> {
        if let [first, ..] = &entry.set[..] {
            self.apply(&entry.set, at).map_err(|problem| problem.at(first.place()).inside("set"))?;
        }
        self.try_commands(at, &entry.ipfw).map_err(|problem| problem.inside("ipfw"))
    }
}

/// The tables of a list.
fn list<'a>(table: &'a Table, name: &str, problems: &mut Problems) -> &'a [Node] {
    let items = table.optional(name, |node| {
        node.list("a list of tables").map_err(|p| p.help(format!("write [[{name}]] with double brackets")))
    });
    problems.catch(items).flatten().unwrap_or_default()
}

/// The entries of a table of named objects.
fn section<'a>(table: &'a Table, name: &str, problems: &mut Problems) -> Vec<(&'a Key, &'a Node)> {
    let Some(node) = table.get(name) else { return Vec::new() };
    let one = match name {
        "switches" => "switch",
        other => other.trim_end_matches('s'),
    };
    let inner = node
        .table("a table of tables")
        .map_err(|p| p.help(format!("write [{name}.NAME] for each {one}")).inside(name));
    problems.catch(inner).map(|table| table.iter().collect()).unwrap_or_default()
}

/// Names that links may end at, each with its kind and place.
type Places = BTreeMap<String, (&'static str, Range<usize>)>;

/// Registers a name, unless it is taken.
fn place(places: &mut Places, kind: &'static str, key: &Key) -> Result<(), Problem> {
    if let Some((other, span)) = places.get(&key.name) {
        return Err(Problem::new(format!("a {other} and a {kind} share the name `{}`", key.name))
            .at(&key.span)
            .also(span, format!("the {other}")));
    }
    places.insert(key.name.clone(), (kind, key.span.clone()));
    Ok(())
}

fn no_such_host(name: &str, places: &Places) -> Problem {
    let problem = Problem::new(format!("there is no host, junction, router or switch {}", Found(name)));
    match nearest(name, places.keys().map(String::as_str)) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!("add a line for it: [hosts.{name}]")),
    }
}

/// For each link whose medium others join: the first ends of all links on it, its own first.
fn stations(table: &Table) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let Some(links) = table.get("links").and_then(|node| node.table("").ok()) else { return all };
    let first_end = |node: &Node| {
        let ends = node.table("").ok()?.get("between")?.list("").ok()?;
        ends.first()?.text("").ok().map(str::to_owned)
    };
    for (_, node) in links.iter() {
        let medium = node.table("").ok().and_then(|table| table.get("medium")?.text("").ok());
        let (Some(medium), Some(end)) = (medium, first_end(node)) else { continue };
        let own = links.get(medium).and_then(first_end);
        all.entry(medium.to_owned()).or_insert_with(|| own.into_iter().collect()).push(end);
    }
    all
}

fn stations_of<'a>(stations: &'a BTreeMap<String, Vec<String>>, link: &str) -> &'a [String] {
    stations.get(link).map_or(&[], Vec::as_slice)
}

/// Checks that links join media that there are. The first `written` links are those of the file, the others those of
/// switches.
fn media(links: &[&Link], written: usize, table: &Table) -> Vec<Problem> {
    let place = |link: &str| {
        let links = table.get("links").and_then(|node| node.table("").ok());
        let own = links.and_then(|links| links.get(link)).and_then(|node| node.table("").ok());
        own.and_then(|table| table.get("medium")).map_or(0..0, |node| node.span.clone())
    };
    let mut problems = Vec::new();
    for link in &links[..written] {
        let Medium::Joined(joined) = &link.medium else { continue };
        let is_written = |link: &Link| links[..written].iter().any(|other| other.name == link.name);
        let problem = match links.iter().find(|other| other.name == joined.medium) {
            // Its stations have been counted already.
            Some(other) if !is_written(other) => {
                Problem::new(format!("the medium of `{}` is for the hosts of a switch only", other.name))
                    .help("add the host to `hosts`, or write these links out instead")
            }
            Some(other) if matches!(other.medium, Medium::Shared(_)) => continue,
            Some(other) => Problem::new(format!("`{}` is not a shared medium", other.name))
                .help(format!("write shared = true in [links.{}]", other.name)),
            None => {
                let names = links.iter().map(|link| link.name.as_str());
                Problem::new(format!("there is no link {}", Found(&joined.medium)))
                    .did_you_mean(&joined.medium, names)
            }
        };
        problems.push(problem.at(&place(&link.name)).inside("medium").inside(&link.name).inside("links"));
    }
    for link in links {
        let twice = link.stations.iter().enumerate().find(|(at, name)| link.stations[..*at].contains(name));
        if let Some((_, name)) = twice {
            let problem = Problem::new(format!("two links of `{name}` are on the medium of `{}`", link.name));
            problems
                .push(problem.help("`from` names a station by its host: give each link a host of its own"));
        }
    }
    for link in links.iter().filter(|link| link.stations.len() > MOST_STATIONS) {
        let problem = Problem::new(format!("{} links on the medium of `{}`", link.stations.len(), link.name));
        problems.push(problem.help(format!("at most {MOST_STATIONS}")));
    }
    problems
}

/// Numbers the links on each medium, in order.
fn number_stations(links: &mut [Link]) {
    let mut counts: BTreeMap<String, u8> = BTreeMap::new();
    for link in links {
        if let Medium::Joined(joined) = &mut link.medium {
            let count = counts.entry(joined.medium.clone()).or_default();
            *count += 1;
            joined.station = *count;
        }
    }
}

/// The names of the links that end at each host or router, in order.
type LinksAt<'a> = BTreeMap<&'a str, Vec<&'a str>>;

fn links_at<'a>(links: &[&'a Link]) -> LinksAt<'a> {
    let mut all = LinksAt::new();
    for link in links {
        let [one, other] = &link.between;
        all.entry(one).or_default().push(&link.name);
        if other != one {
            all.entry(other).or_default().push(&link.name);
        }
    }
    all
}

/// Checks that addresses name their link if a host or router has several.
fn check_addresses(
    table: &Table,
    (kind, name, addresses): (&str, &String, &Vec<HostAddress>),
    links: &LinksAt<'_>,
    problems: &mut Problems,
) {
    let at = links.get(name.as_str()).map_or(&[][..], Vec::as_slice);
    for given in addresses {
        let wrong = match &given.link {
            Some(link) => !at.contains(&link.as_str()),
            None => at.len() > 1,
        };
        if !wrong {
            continue;
        }
        let section = format!("{kind}s");
        let all = table.get(&section).and_then(|node| node.table("").ok());
        let key = all.and_then(|all| all.key(name)).map_or(0..0, |key| key.span.clone());
        let title = match &given.link {
            Some(link) => format!("the {kind} `{name}` is not on a link {}", Found(link)),
            None => {
                format!(
                    "the {kind} `{name}` is on {} links: name the one that has {}",
                    at.len(),
                    given.address
                )
            }
        };
        let help =
            format!("write addresses = {{ {} = [\"{}\"] }}", at.first().unwrap_or(&"LINK"), given.address);
        let problem = Problem::new(title).at(&key).inside("addresses").inside(name).inside(&section);
        problems.extend(vec![problem.help(help)]);
        break;
    }
}

//! The scenario for one container of a project.
//!
//! ```text
//! container ─ client │ rules │ server ─ its networks
//!   out:  to a service, by the table of its addresses → the link of the pair     (pipes 11 …)
//!         to other addresses of a link                → that link
//!         everything else                             → the own link             (pipe 1)
//!   in:   from a service with a link to this one      → passes: it was shaped where it was sent
//!         from other addresses of a link              → that link
//!         everything else                             → the own link             (pipe 2)
//! ```
//!
//! Without links to others it is a plain link.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use narrows_scenario::{Scenario, ScenarioError};
use toml::{Table, Value};

use crate::labels::Wish;
use crate::link_keys::LINK;
use crate::project::{End, Pair, Project, Whose};

/// The name of the link with rules.
pub const NET: &str = "net";
/// Pipes of the own link, out and in, and the first of the others.
const OUT: u32 = 1;
const IN: u32 = 2;
const FIRST: u32 = 11;

/// The addresses of each service.
pub type Addresses = BTreeMap<String, BTreeSet<IpAddr>>;

/// A scenario for a container.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its text.
    pub scenario: String,
    /// The services whose addresses its rules look up, each in the table of its name.
    pub tables: BTreeSet<String>,
}

impl Plan {
    /// The plan for a container with its own labels.
    ///
    /// # Errors
    /// If the labels contradict the file.
    pub fn of_labels(wish: &Wish, files: &narrows_scenario::Files) -> Result<Self, ScenarioError> {
        let mut scenario = wish.keys.scenario(files)?;
        scenario.seed = wish.seed.as_ref().and_then(|seed| seed.parse().ok()).unwrap_or(scenario.seed);
        Ok(Self { scenario: scenario.to_toml(), tables: BTreeSet::new() })
    }

    /// Whether containers of this service get anything.
    pub fn is_needed(project: &Project, service: &str, wish: &Wish) -> bool {
        let mut net = Net::default();
        net.pairs(project, service);
        !net.pipes.is_empty() || has_own(project, service, wish)
    }

    /// The plan for a container of this service, `elapsed_ns` after the start of the timeline; `None` if nothing is
    /// to be done there. `wish` is what file and labels say of it.
    ///
    /// # Errors
    /// If they contradict each other.
    pub fn of_service(
        project: &Project,
        service: &str,
        wish: &Wish,
        addresses: &Addresses,
        elapsed_ns: u64,
    ) -> Result<Option<Self>, ScenarioError> {
        let has_own = has_own(project, service, wish);
        let mut net = Net::default();
        net.pairs(project, service);
        // What others send here was shaped there.
        if net.pipes.is_empty() && !has_own {
            return Ok(None);
        }
        let links = if net.rules.is_empty() {
            let text = wish.keys.scenario(&project.files)?.to_toml();
            text.parse::<Table>().unwrap_or_default().remove("links").unwrap_or(Value::Table(Table::new()))
        } else {
            if has_own {
                let [up, down] = wish.keys.pipes(&project.files)?;
                net.pipes.insert(OUT, up);
                net.pipes.insert(IN, down);
                net.rules.push(format!("{} pipe {OUT} ip from any to any out // {service}", 60_000));
                net.rules.push(format!("{} pipe {IN} ip from any to any in // {service}", 60_010));
            }
            Value::Table(Table::from_iter([(NET.to_owned(), Value::Table(net.table(addresses)))]))
        };
        let mut all = Table::new();
        let given = wish.seed.as_ref().and_then(|seed| seed.parse().ok()).or(project.seed);
        if let Some(seed) = given.and_then(|seed| i64::try_from(seed).ok()) {
            all.insert("seed".into(), Value::Integer(seed));
        }
        let hosts = ["client", "server"].map(|host| (host.to_owned(), Value::Table(Table::new())));
        all.insert("hosts".into(), Value::Table(Table::from_iter(hosts)));
        all.insert("links".into(), links);
        let mut before = Vec::new();
        let mut after = Vec::new();
        for step in &project.timeline {
            let set = net.assignments(&step.set, service);
            match step.at_ns.checked_sub(elapsed_ns) {
                _ if set.is_empty() => {}
                Some(left) if left > 0 || elapsed_ns == 0 => after.push((left, set)),
                _ => before.extend(set.into_iter().map(|(path, value)| format!("{path}={value}"))),
            }
        }
        if !after.is_empty() {
            let steps = after.into_iter().map(|(at_ns, set)| {
                let set = set.into_iter().map(|(path, value)| (path, typed(&value)));
                Value::Table(Table::from_iter([
                    ("at".to_owned(), Value::String(format!("{at_ns}ns"))),
                    ("set".to_owned(), Value::Table(set.collect())),
                ]))
            });
            all.insert("timeline".into(), Value::Array(steps.collect()));
        }
        let name = format!("the network of {service}");
        let mut scenario = Scenario::parse_with(&all.to_string(), &name, project.files.clone())?;
        scenario.set(&before)?;
        Ok(Some(Self { scenario: scenario.to_toml(), tables: net.tables }))
    }
}

impl Project {
    /// The scenario of each service, before any container runs; `None` where nothing is to be done.
    ///
    /// # Errors
    /// If keys contradict each other.
    pub fn plans(&self) -> Result<Vec<(String, Option<String>)>, ScenarioError> {
        let plan = |service: &String| {
            let wish = self.wish(service);
            let plan = Plan::of_service(self, service, &wish, &Addresses::new(), 0)?;
            Ok((service.clone(), plan.map(|plan| plan.scenario)))
        };
        self.services.iter().map(plan).collect()
    }

    /// What the file says of a service.
    pub fn wish(&self, service: &str) -> Wish {
        self.labels.get(service).cloned().unwrap_or_default().over(self.own_wish(service))
    }
}

/// Whether a service has an own link, or gets one over time.
fn has_own(project: &Project, service: &str, wish: &Wish) -> bool {
    let whose = Whose::Service(service.into());
    let changes = || project.timeline.iter().any(|step| step.set.iter().any(|(other, ..)| *other == whose));
    !wish.keys.is_empty() || changes()
}

/// A value as a file has it, from one as it is typed.
fn typed(value: &str) -> Value {
    let parsed = format!("x = {value}").parse::<Table>();
    parsed.ok().and_then(|mut table| table.remove("x")).unwrap_or_else(|| Value::String(value.into()))
}

/// The link with rules, as it grows.
#[derive(Default)]
struct Net {
    rules: Vec<String>,
    pipes: BTreeMap<u32, Table>,
    tables: BTreeSet<String>,
    /// The pipes of each pair in `links`: `*` stands for several.
    of_pair: Vec<(Pair, u32)>,
}

impl Net {
    /// The rules and pipes between this service and others.
    fn pairs(&mut self, project: &Project, service: &str) {
        for other in &project.services {
            if let Some(link) = best(project, |pair| pair.covers(service, other)) {
                let pipe = self.pipe(link.pair.clone(), link.pipe.clone());
                self.rule(format!("pipe {pipe} ip from any to table({other}) out // {service} -> {other}"));
                self.tables.insert(other.clone());
            }
            if best(project, |pair| pair.covers(other, service)).is_some() {
                self.rule(format!(
                    "allow ip from table({other}) to any in // {other} -> {service}, where it is sent"
                ));
                self.tables.insert(other.clone());
            }
        }
        let mut networks: Vec<_> = project
            .pairs
            .iter()
            .filter_map(|link| {
                let Pair { from, to } = &link.pair;
                match (from, to) {
                    (from, End::Network(network)) if from.covers(service) => {
                        Some((network.length, true, link))
                    }
                    (End::Network(network), to) if to.covers(service) => Some((network.length, false, link)),
                    _ => None,
                }
            })
            .collect();
        // The longest prefix first, and a service before `*`.
        networks.sort_by_key(|(length, _, link)| std::cmp::Reverse((*length, link.pair.rank())));
        for (_, is_out, link) in networks {
            let pipe = self.pipe(link.pair.clone(), link.pipe.clone());
            self.rule(match is_out {
                true => format!("pipe {pipe} ip from any to {} out // {}", link.pair.to, link.pair),
                false => format!("pipe {pipe} ip from {} to any in // {}", link.pair.from, link.pair),
            });
        }
    }

    fn pipe(&mut self, pair: Pair, settings: Table) -> u32 {
        let number = FIRST + self.pipes.len() as u32;
        self.pipes.insert(number, settings);
        self.of_pair.push((pair, number));
        number
    }

    fn rule(&mut self, text: String) {
        let number = 100 + 10 * self.rules.len();
        self.rules.push(format!("{number} {text}"));
    }

    /// The table `links.net`.
    fn table(&self, addresses: &Addresses) -> Table {
        let strings = |all: Vec<String>| Value::Array(all.into_iter().map(Value::String).collect());
        let tables = self.tables.iter().map(|service| {
            let of_service = addresses.get(service).into_iter().flatten().map(ToString::to_string);
            (service.clone(), strings(of_service.collect()))
        });
        let pipes = self.pipes.iter().map(|(number, pipe)| (number.to_string(), Value::Table(pipe.clone())));
        Table::from_iter([
            ("between".to_owned(), strings(vec!["client".into(), "server".into()])),
            ("rules".to_owned(), strings(self.rules.clone())),
            ("tables".to_owned(), Value::Table(tables.collect())),
            ("pipes".to_owned(), Value::Table(pipes.collect())),
        ])
    }

    /// The paths and values of those changes that concern this service.
    fn assignments(&self, set: &[(Whose, String, String)], service: &str) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (whose, key, value) in set {
            let paths = match whose {
                Whose::Service(name) if name != service => Vec::new(),
                Whose::Service(_) if self.rules.is_empty() => vec![format!("{LINK}.{key}")],
                Whose::Service(_) => match (key.strip_prefix("up."), key.strip_prefix("down.")) {
                    (Some(key), _) => vec![format!("{NET}.{OUT}.{key}")],
                    (_, Some(key)) => vec![format!("{NET}.{IN}.{key}")],
                    (None, None) => vec![format!("{NET}.{OUT}.{key}"), format!("{NET}.{IN}.{key}")],
                },
                Whose::Pair(pair) => {
                    let pipes = self.of_pair.iter().filter(|(other, _)| other == pair);
                    pipes.map(|(_, number)| format!("{NET}.{number}.{key}")).collect()
                }
            };
            all.extend(paths.into_iter().map(|path| (path, value.clone())));
        }
        all
    }
}

/// The link of the highest rank whose pair is meant.
fn best(project: &Project, meant: impl Fn(&Pair) -> bool) -> Option<&crate::project::PairLink> {
    project.pairs.iter().filter(|link| meant(&link.pair)).max_by_key(|link| link.pair.rank())
}

#[cfg(test)]
mod tests {
    use narrows_scenario::Files;

    use super::*;

    const FILE: &str = r#"
services: { web: {}, db: {}, cache: {} }
x-narrows:
  services: { web: { delay: 1ms, up: { loss: 1% } } }
  links:
    "web -> db": { delay: 20ms }
    "* -> db": { delay: 30ms }
    "web -> 10.0.0.0/8": { delay: 40ms }
    "web -> 10.1.0.0/16": { delay: 50ms }
  timeline:
    - { at: 10s, set: { "web -> db": { delay: 200ms }, web: { up: { loss: 5% } } } }
    - { at: 20s, set: { "* -> db": { outage: true } } }
"#;

    fn plan(file: &str, service: &str, elapsed_ns: u64) -> Option<Plan> {
        let project = Project::parse_with(file, "x.yml", None, Files::given::<&str>([])).unwrap();
        let wish = project.wish(service);
        let addresses = Addresses::from([("db".into(), ["172.18.0.2".parse().unwrap()].into())]);
        Plan::of_service(&project, service, &wish, &addresses, elapsed_ns).unwrap()
    }

    #[test]
    fn each_pair_has_a_pipe_where_it_is_sent() {
        let web = plan(FILE, "web", 0).unwrap();
        assert_eq!(web.tables, ["db".to_owned()].into());
        for part in [
            "pipe 11 ip from any to table(db) out",
            "from any to 10.1.0.0/16 out",
            "pipe 1 ip from any to any out",
            "pipe 2 ip from any to any in",
            "db = [\"172.18.0.2\"]",
            "[links.net.pipes.11]\ndelay = \"20ms\"",
            "[links.net.pipes.1]\ndelay = \"1ms\"\nloss = \"1%\"",
            "at = \"10s\"",
        ] {
            assert!(web.scenario.contains(part), "{part} is not in\n{}", web.scenario);
        }
        let place = |part: &str| web.scenario.find(part).unwrap();
        assert!(place("10.1.0.0/16 out") < place("10.0.0.0/8 out"), "the longest prefix first");
        let cache = plan(FILE, "cache", 0).unwrap().scenario;
        assert!(cache.contains("delay = \"30ms\"") && !cache.contains("pipes.1]"), "{cache}");
    }

    #[test]
    fn a_service_that_only_receives_needs_nothing_or_lets_pass_what_was_shaped() {
        let alone = FILE
            .replace("    \"* -> db\": { delay: 30ms }\n", "")
            .replace("\"* -> db\": { outage", "\"web -> db\": { outage");
        assert_eq!(plan(&alone, "db", 0), None);
        let both = alone
            .replace("services: { web: { delay: 1ms,", "services: { db: { delay: 3ms }, web: { delay: 1ms,");
        let db = plan(&both, "db", 0).unwrap();
        assert!(db.scenario.contains("allow ip from table(web) to any in"), "{}", db.scenario);
        assert!(db.scenario.contains("delay = \"3ms\""), "{}", db.scenario);
    }

    #[test]
    fn a_container_that_starts_later_finds_the_timeline_where_it_is() {
        let web = plan(FILE, "web", 12_000_000_000).unwrap().scenario;
        assert!(web.contains("delay = \"200ms\"") && web.contains("loss = \"5%\""), "{web}");
        assert!(!web.contains("timeline"), "{web}");
        let cache = plan(FILE, "cache", 12_000_000_000).unwrap().scenario;
        assert!(cache.contains("at = \"8s\""), "{cache}");
    }
}

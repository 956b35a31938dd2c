//! The difference between two scenarios: what a running network can change, and what needs a new run.

use std::fmt;

use serde::Serialize;

use super::Scenario;
use crate::direction::Direction;
use crate::keys::{self, Keyed};
use crate::link::{Link, Medium};
use crate::node::{Node, Table, Value, toml_key};

/// The difference between two scenarios.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Assignments for `narrows set`, all at one instant, that bring a run of the first scenario as close
    /// as possible to the second.
    pub assignments: Vec<String>,
    /// Differences that need a new run.
    pub others: Vec<Differing>,
}

/// A key whose value differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differing {
    /// Its path in a file: `hosts.client.addresses`.
    pub path: String,
    /// Its value in the first scenario, as written in a file; `None` if unset.
    pub before: Option<String>,
    /// Its value in the second scenario.
    pub after: Option<String>,
}

impl Scenario {
    /// The difference from this scenario to `to`.
    ///
    /// ```
    /// # use narrows_scenario::{LinkFlags, Scenario};
    /// let slow = Scenario::from_flags(&LinkFlags::default().with("rate", "1mbit").with("delay", "20ms"))?;
    /// let fast = Scenario::from_flags(&LinkFlags::default().with("rate", "10mbit").with("loss", "1%"))?;
    /// let assignments = slow.difference(&fast).assignments;
    /// assert_eq!(assignments, ["link.rate=10mbit", "link.delay=0ms", "link.loss=1%"]);
    /// # Ok::<(), narrows_scenario::ScenarioError>(())
    /// ```
    pub fn difference(&self, to: &Self) -> Difference {
        let mut found = Difference::default();
        let (mut before, mut after) = (keys::written(self), keys::written(to));
        for link in &self.links {
            let Some(now) = to.links.iter().find(|now| now.name == link.name) else { continue };
            if found.of_link(link, now) {
                without_link(&mut before, &link.name);
                without_link(&mut after, &link.name);
            }
        }
        found.of_tables("", Some(&before), Some(&after));
        found
    }
}

/// Removes a link whose difference is already known.
fn without_link(document: &mut Table, name: &str) {
    if let Some(Value::Table(links)) = document.get_mut("links").map(|node| &mut node.value) {
        links.remove(name);
    }
}

impl Difference {
    /// Whether there is no difference.
    pub fn is_none(&self) -> bool {
        self.assignments.is_empty() && self.others.is_empty()
    }

    /// Adds the difference of two links with the same name, if a run can change all of it.
    fn of_link(&mut self, before: &Link, after: &Link) -> bool {
        let joins_alike =
            before.between == after.between && before.cost == after.cost && before.stations == after.stations;
        match (&before.medium, &after.medium) {
            _ if !joins_alike => return false,
            (Medium::Shared(then), Medium::Shared(now)) => {
                self.assign(&after.name, &assigned(then, now));
                self.of_default_bounds(&after.name, then, now);
            }
            (Medium::Duplex { up, down }, Medium::Duplex { up: up_now, down: down_now }) => {
                self.of_default_bounds(&format!("{}.up", after.name), up, up_now);
                self.of_default_bounds(&format!("{}.down", after.name), down, down_now);
                let (up, down) = (assigned(up, up_now), assigned(down, down_now));
                let (both, up): (Vec<_>, Vec<_>) = up.into_iter().partition(|one| down.contains(one));
                let down: Vec<_> = down.into_iter().filter(|one| !both.contains(one)).collect();
                self.assign(&after.name, &both);
                self.assign(&format!("{}.up", after.name), &up);
                self.assign(&format!("{}.down", after.name), &down);
            }
            (Medium::Rules(then), Medium::Rules(now)) => return then == now,
            (Medium::Joined(then), Medium::Joined(now)) => {
                return then.medium == now.medium && then.station == now.station;
            }
            _ => return false,
        }
        true
    }

    /// Adds the difference of default bounds, which a running network keeps from its start.
    fn of_default_bounds(&mut self, path: &str, before: &Direction, after: &Direction) {
        let is_default = |direction: &Direction| direction.queue.bound.is_none();
        if is_default(before) && is_default(after) && before.bound() != after.bound() {
            let text = |direction: &Direction| Some(format!("{} by default", direction.bound()));
            let path = format!("links.{path}.queue");
            self.others.push(Differing { path, before: text(before), after: text(after) });
        }
    }

    fn assign(&mut self, link: &str, all: &[(&str, String)]) {
        self.assignments.extend(all.iter().map(|(key, value)| format!("{link}.{key}={value}")));
    }

    /// Adds the differences of two tables at the same path, key by key. A key that only one table has is
    /// one difference.
    fn of_tables(&mut self, path: &str, before: Option<&Table>, after: Option<&Table>) {
        let names = |table: Option<&Table>| -> Vec<String> {
            table.into_iter().flat_map(Table::iter).map(|(key, _)| key.name.clone()).collect()
        };
        let mut all = names(before);
        all.extend(
            names(after).into_iter().filter(|name| before.is_none_or(|table| table.get(name).is_none())),
        );
        for name in all {
            let path = if path.is_empty() { toml_key(&name) } else { format!("{path}.{}", toml_key(&name)) };
            let get = |table: Option<&Table>| table.and_then(|table| table.get(&name)).cloned();
            match (get(before), get(after)) {
                (then, now) if then == now => {}
                (
                    Some(Node { value: Value::Table(then), .. }),
                    Some(Node { value: Value::Table(now), .. }),
                ) => self.of_tables(&path, Some(&then), Some(&now)),
                (then, now) => {
                    let text = |node: Option<Node>| node.map(|node| node.toml());
                    self.others.push(Differing { path, before: text(then), after: text(now) });
                }
            }
        }
    }
}

/// The keys of a direction that differ, each with its new value as typed.
fn assigned(before: &Direction, after: &Direction) -> Vec<(&'static str, String)> {
    let differing = Direction::ROWS.iter().filter(|row| row.get(before) != row.get(after));
    // Only for delay and jitter does "not given" have no value to assign.
    let typed = |value: Option<Value>| value.map_or("0ms".into(), |value| Node::new(value).typed_text());
    differing.map(|row| (keys::Key::name(row), typed(row.get(after)))).collect()
}

/// One line for each difference, for people.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return writeln!(f, "no difference");
        }
        if !self.assignments.is_empty() {
            writeln!(f, "applicable while running:")?;
            self.assignments.iter().try_for_each(|assignment| writeln!(f, "  {assignment}"))?;
        }
        if !self.others.is_empty() {
            writeln!(f, "needs a new run:")?;
        }
        for Differing { path, before, after } in &self.others {
            match (before, after) {
                (Some(before), Some(after)) => writeln!(f, "  {path}: {before} → {after}")?,
                (Some(before), None) => writeln!(f, "  {path}: {before} → nothing")?,
                (None, after) => writeln!(f, "  {path}: nothing → {}", after.as_deref().unwrap_or_default())?,
            }
        }
        Ok(())
    }
}

//! Delays by packet class: `{ classes = [ { match = "udp", delay = "5ms" }, { delay = "10ms" } ] }`.

use std::net::IpAddr;

use narrows_core::Duration;
use narrows_core::model::{ByClass, Constant, DelayModel};

use super::{DELAY, Delay, DelaySource, TimeOrDelay};
use crate::keys::compound::{Group, List, Short};
use crate::keys::kind::{Given, Like};
use crate::keys::{Form, Keyed, Row, row};
use crate::problem::Problem;
use crate::value::condition::{Match, not_here};

/// A class of packets, and its delay.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayClass {
    /// Condition of the class; `None` matches every packet that no earlier class takes.
    pub matches: Option<Match>,
    /// Its delay.
    pub delay: Delay,
}

const MATCH: Short<Match> = Short { key: "protocol", words: "protocol", table: Match::FORM };
const DELAY_OF_CLASS: Like<TimeOrDelay, Delay> = Like {
    kind: DELAY,
    read: |node, around| match super::read(node, around)? {
        (_, Some(_)) => Err(Problem::new("packet order is a property of the link, not of a class")
            .at(&node.span)
            .help("set `order` next to `classes`")),
        (Delay { source: DelaySource::Classes(_), .. }, _) => {
            Err(Problem::new("classes within a class").at(&node.span).help("a packet belongs to one class"))
        }
        (delay, None) => Ok(delay),
    },
    write: |delay| Some(delay.value()),
};

impl Default for DelayClass {
    /// Has no delay, which is required.
    fn default() -> Self {
        Self { matches: None, delay: Delay::constant(Duration::ZERO) }
    }
}

impl Keyed for DelayClass {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "match",
            matches,
            Given(MATCH),
            "Packets of the class; by default all that no earlier class matches."
        ),
        row!("delay", delay, DELAY_OF_CLASS, "Delay of the class, without `order`.").required(),
    ];
}

/// The conditions are tried one by one for each packet, so the list is short.
const LIST: List<Group<DelayClass>> = List {
    what: "a list of classes, such as [{ match = \"udp\", delay = \"5ms\" }, { delay = \"10ms\" }]",
    most: 1000,
    one: Group::new(
        "DelayClass",
        "Packets of one kind, and their delay.",
        "{ match = \"udp\", delay = \"5ms\" }",
    ),
};

pub(super) const CLASSES: Like<List<Group<DelayClass>>, Vec<DelayClass>> = Like {
    kind: LIST,
    read: |node, around| {
        let classes: Vec<DelayClass> = LIST.read(node, around)?;
        let about_headers = |class: &DelayClass| class.matches.as_ref().and_then(not_here);
        if let Some((at, problem)) =
            classes.iter().enumerate().find_map(|(at, class)| Some((at, about_headers(class)?)))
        {
            return Err(problem.at(node.list(LIST.what)?.get(at).map_or(&node.span, |item| &item.span)));
        }
        let all = classes.iter().position(|class| class.matches.is_none());
        if let Some(item) = all.and_then(|all| node.list(LIST.what).ok()?.get(all + 1)) {
            return Err(Problem::new("no packet is left for this class")
                .at(&item.span)
                .help("the class before it has no `match` and takes every packet; it must be last"));
        }
        let names: Vec<&str> =
            classes.iter().flat_map(|class| class.delay.feeds()).map(|feed| feed.name.as_str()).collect();
        if let Some((_, name)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
            return Err(Problem::new(format!("two classes have the feed `{name}`"))
                .at(&node.span)
                .help("give each feed of a link a unique name"));
        }
        Ok(classes)
    },
    write: |classes| LIST.write(classes),
};

pub(super) fn build(classes: &[DelayClass], addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Box<dyn DelayModel> {
    let mut conditions = Vec::new();
    for class in classes {
        let model = class.delay.build(addresses);
        match &class.matches {
            Some(matches) => conditions.push((matches.condition(addresses), model)),
            None => return Box::new(ByClass::new(conditions, model)),
        }
    }
    Box::new(ByClass::new(conditions, Box::new(Constant(Duration::ZERO))))
}

/// The mean, if it is the same for all classes: how packets divide among the classes is unknown.
pub(super) fn mean(classes: &[DelayClass]) -> Option<Duration> {
    let rest = classes.last().is_some_and(|class| class.matches.is_some()).then_some(Duration::ZERO);
    let mut means = classes.iter().map(|class| class.delay.mean()).chain(rest.map(Some));
    let first = means.next()??;
    means.all(|mean| mean == Some(first)).then_some(first)
}

/// For display.
pub(super) fn words(classes: &[DelayClass]) -> String {
    let class = |class: &DelayClass| match &class.matches {
        Some(matches) => format!("{matches}: {}", class.delay),
        None => format!("other packets: {}", class.delay),
    };
    let rest =
        classes.last().is_some_and(|class| class.matches.is_some()).then(|| "other packets: none".into());
    let classes: Vec<String> = classes.iter().map(class).chain(rest).collect();
    format!("by class ({})", classes.join("; "))
}

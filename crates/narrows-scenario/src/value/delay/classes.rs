//! Delays by what a packet is: `{ classes = [ { match = "udp", delay = "5ms" }, { delay = "10ms" } ] }`.

use std::net::IpAddr;

use narrows_core::Duration;
use narrows_core::model::{ByClass, Constant, DelayModel};

use super::{Delay, DelaySource};
use crate::node::Node;
use crate::problem::Problem;
use crate::value::condition::{Match, Surroundings};
use crate::value::inline::Inline;

/// Packets of one kind, and their delay.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayClass {
    /// Which packets; nothing for all that no class before takes.
    pub matches: Option<Match>,
    /// Their delay.
    pub delay: Delay,
}

/// Conditions are tried one by one for each packet.
const MOST_CLASSES: usize = 1000;

pub(super) fn read(node: &Node, around: Surroundings<'_>) -> Result<Vec<DelayClass>, Problem> {
    const ALLOWED: &str = "a list such as [{ match = \"udp\", delay = \"5ms\" }, { delay = \"10ms\" }]";
    let items = node.list(ALLOWED)?;
    if items.is_empty() || items.len() > MOST_CLASSES {
        return Err(node.expected(&format!("{ALLOWED}, of 1 to {MOST_CLASSES}")));
    }
    let mut classes: Vec<DelayClass> = Vec::new();
    for item in items {
        if classes.last().is_some_and(|class| class.matches.is_none()) {
            return Err(Problem::new("no packet is left for this class")
                .at(&item.span)
                .help("the class before it has no `match`, so that it takes every packet; it stands last"));
        }
        classes.push(class(item, around)?);
    }
    let names: Vec<&str> =
        classes.iter().flat_map(|class| class.delay.feeds()).map(|feed| feed.name.as_str()).collect();
    if let Some(name) =
        names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)).map(|(_, name)| name)
    {
        return Err(Problem::new(format!("two classes have the feed `{name}`"))
            .at(&node.span)
            .help("give each feed of a link a name of its own"));
    }
    Ok(classes)
}

fn class(node: &Node, around: Surroundings<'_>) -> Result<DelayClass, Problem> {
    let table = node.table("a table such as { match = \"udp\", delay = \"5ms\" }")?;
    table.only(&["match", "delay"])?;
    let matches = table.optional("match", |node| Match::read_short(node, around))?;
    let delay = table.required("delay", &node.span, |inner| match super::read(inner, around)? {
        (_, Some(_)) => Err(Problem::new("the order of packets is the link's, not that of a class")
            .at(&inner.span)
            .help("write `order` beside `classes`")),
        (Delay { source: DelaySource::Classes(_), .. }, _) => {
            Err(Problem::new("classes within a class").at(&inner.span).help("a packet is of one class"))
        }
        (delay, None) => Ok(delay),
    })?;
    Ok(DelayClass { matches, delay })
}

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

/// How packets divide among the classes is not known: their mean is known where it is the same.
pub(super) fn mean(classes: &[DelayClass]) -> Option<Duration> {
    let rest = classes.last().is_some_and(|class| class.matches.is_some()).then_some(Duration::ZERO);
    let mut means = classes.iter().map(|class| class.delay.mean()).chain(rest.map(Some));
    let first = means.next()??;
    means.all(|mean| mean == Some(first)).then_some(first)
}

pub(super) fn text(classes: &[DelayClass]) -> String {
    let class = |class: &DelayClass| {
        let mut table = Inline::default();
        table.plain("match", class.matches.as_ref().map(Match::text));
        table.plain("delay", Some(class.delay.text()));
        table.finish()
    };
    let classes: Vec<String> = classes.iter().map(class).collect();
    format!("[{}]", classes.join(", "))
}

/// For people.
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

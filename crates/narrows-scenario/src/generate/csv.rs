//! Imports lists of links in CSV: columns `a,b` and optionally `rate`, `delay`, `jitter`, `loss`, `queue`
//! and `mtu`, in any order.
//!
//! A name with one link is a host, one with several is a router.

use std::collections::BTreeMap;
use std::ops::Range;

use super::MOST_READ_LINKS;
use super::graph::{Graph, KEYS, Role};
use crate::node::{Key, check_name};
use crate::problem::{Found, Problem, ScenarioError, article};
use crate::scenario::Scenario;

const ENDS: [&str; 2] = ["a", "b"];

pub(super) fn read(list: &str, file: &str) -> Result<Graph, ScenarioError> {
    let links = links(list).map_err(|problem| ScenarioError::new(file, list, vec![problem]))?;
    let mut graph = Graph::default();
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    for Link { ends, keys } in links {
        let [a, b] =
            ends.map(|(name, _)| *nodes.entry(name).or_insert_with(|| graph.node(name, Role::ByLinks)));
        graph.link(a, b, keys);
    }
    Ok(graph)
}

/// A line.
struct Link<'a> {
    ends: [(&'a str, Range<usize>); 2],
    keys: Vec<(&'static str, String)>,
}

fn links(list: &str) -> Result<Vec<Link<'_>>, Problem> {
    let mut lines = lines(list);
    let head = lines
        .next()
        .ok_or_else(|| Problem::new("the list is empty").help("start it with: a,b,rate,delay"))?;
    let known = |name: &str| ENDS.into_iter().chain(KEYS).find(|known| *known == name);
    let columns = head
        .iter()
        .map(|(name, span)| {
            let others = ENDS.into_iter().chain(KEYS);
            known(name).ok_or_else(|| {
                Problem::new(format!("unknown column {}", Found(name)))
                    .at(span)
                    .help(format!("columns: a, b, {}", KEYS.join(", ")))
                    .did_you_mean(name, others)
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    for end in ENDS {
        if !columns.contains(&end) {
            return Err(Problem::new(format!("there is no column `{end}`"))
                .help("the first line names the columns: a,b,rate,delay,loss,queue"));
        }
    }
    let links: Vec<_> =
        lines.take(MOST_READ_LINKS + 1).map(|fields| link(&columns, &fields)).collect::<Result<_, _>>()?;
    match links.len() > MOST_READ_LINKS {
        true => Err(Problem::new(format!("more than {MOST_READ_LINKS} links"))),
        false => Ok(links),
    }
}

fn link<'a>(columns: &[&'static str], fields: &[(&'a str, Range<usize>)]) -> Result<Link<'a>, Problem> {
    let whole = fields.first().map_or(0, |field| field.1.start)..fields.last().map_or(0, |field| field.1.end);
    if fields.len() != columns.len() {
        let title = format!("{} values in a line, and {} columns", fields.len(), columns.len());
        return Err(Problem::new(title).at(&whole));
    }
    let mut keys = Vec::new();
    let mut ends = ENDS.map(|_| ("", 0..0));
    for (&column, (value, span)) in columns.iter().zip(fields) {
        if let Some(end) = ENDS.iter().position(|end| *end == column) {
            check_name(&Key { name: (*value).into(), span: span.clone() }, "host or router")?;
            ends[end] = (*value, span.clone());
            continue;
        }
        if value.is_empty() {
            continue;
        }
        let alone =
            format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{column} = {value:?}\n");
        if Scenario::parse(&alone, "list").is_err() {
            return Err(Problem::new(format!("{} is not {} {column}", Found(value), article(column)))
                .at(span)
                .help(format!("write it as for the key `{column}` of a link: docs/scenario.md")));
        }
        keys.push((column, (*value).to_owned()));
    }
    if ends[0].0 == ends[1].0 {
        return Err(Problem::new(format!("a link from {} to itself", Found(ends[0].0))).at(&whole));
    }
    Ok(Link { ends, keys })
}

/// The fields of each line, with their places; skips empty lines and lines that start with #.
fn lines(list: &str) -> impl Iterator<Item = Vec<(&str, Range<usize>)>> {
    let offset = |part: &str| part.as_ptr() as usize - list.as_ptr() as usize;
    list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(move |line| {
        let field = |field| {
            let field: &str = str::trim(field);
            (field, offset(field)..offset(field) + field.len())
        };
        line.split(',').map(field).collect()
    })
}

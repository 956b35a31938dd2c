//! A group of runs, such as a lab, as one model: the directions of all of its runs, named by the ends of their links in the
//! group, and its links without a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use narrows_live::control::{CurrentScenario, KnownRun, Stats};
use narrows_live::group::{KnownGroup, node};

use super::graph::{Edge, Graph};
use super::model::{Key, Line, Model};

/// The answers of a group.
#[derive(Debug)]
pub(super) struct GroupAnswer {
    pub(super) name: String,
    pub(super) group: KnownGroup,
    /// Those of its runs, by their names.
    pub(super) answers: BTreeMap<String, (Box<Stats>, Arc<CurrentScenario>)>,
}

impl Model {
    /// Processes the answers of a group.
    pub(super) fn take_group(&mut self, answer: &GroupAnswer) {
        self.parts.retain(|run, _| answer.answers.contains_key(run));
        for (run, (stats, settings)) in &answer.answers {
            self.parts.entry(run.clone()).or_default().take(stats, settings);
        }
        self.lines.clear();
        let mut graph =
            Graph { name: answer.name.clone(), nodes: answer.group.nodes.clone(), edges: Vec::new() };
        for link in &answer.group.links {
            let run = link.run.as_ref().map(KnownRun::name);
            let answered = run.as_ref().filter(|run| self.parts.contains_key(*run));
            match answered.and_then(|run| Some((run, answer.answers.get(run)?))) {
                Some((run, (_, settings))) => self.lines_of(run, settings, &link.ends),
                None => self.lines.push(Line::unshaped(&link.ends)),
            }
            graph.edges.push(Edge { nodes: link.ends.each_ref().map(|end| node(end).to_owned()), run });
        }
        self.graph = Some(graph);
        let parts = || self.parts.values();
        // The least trustworthy speaks for all.
        self.trust = parts().filter_map(|part| part.trust.clone()).max_by_key(|(trust, _)| *trust as u8);
        self.delivered_bps = parts().map(|part| part.delivered_bps).sum();
        self.inside_packets = parts().map(|part| part.inside_packets).sum();
        self.late = parts().filter_map(|part| part.late).max_by_key(|late| late.p99_ns);
    }

    /// The directions of a run that is the link between these ends.
    fn lines_of(&mut self, run: &str, settings: &CurrentScenario, ends: &[String; 2]) {
        let Some(part) = self.parts.get(run) else { return };
        let near = settings.ports.first().map(|port| port.host.as_str());
        let is_plain = part.lines.len() <= 2;
        let named = part.lines.iter().map(|line| {
            let [from, to] = if Some(line.from.as_str()) == near { [0, 1] } else { [1, 0] };
            let name = format!("{} → {}", ends[from], ends[to]);
            Line {
                key: (format!("{run}/{}", line.key.0), line.key.1),
                name: if is_plain { name } else { format!("{} {name}", line.name) },
                from: node(&ends[from]).to_owned(),
                to: node(&ends[to]).to_owned(),
                run: run.to_owned(),
                ..line.clone()
            }
        });
        self.lines.extend(named.collect::<Vec<_>>());
    }

    /// The model that has the history of this line, and its key there.
    pub(super) fn origin(&self, line: &Line) -> (&Self, Key) {
        let part = self.parts.get(&line.run);
        let own = line.key.0.strip_prefix(&line.run).and_then(|rest| rest.strip_prefix('/'));
        match (part, own) {
            (Some(part), Some(own)) => (part, (own.to_owned(), line.key.1)),
            _ => (self, line.key.clone()),
        }
    }
}

impl Line {
    /// A link that no run shapes.
    fn unshaped([from, to]: &[String; 2]) -> Self {
        Self {
            key: (format!("{from} {to}"), 0),
            name: format!("{from} – {to}"),
            from: node(from).to_owned(),
            to: node(to).to_owned(),
            is_unshaped: true,
            ..Self::default()
        }
    }
}

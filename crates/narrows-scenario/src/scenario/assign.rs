//! Assignments to the settings of a scenario.

use std::collections::BTreeMap;

use narrows_core::{Change, Seed, Time};

use super::Scenario;
use crate::assign::{Assignment, Of};
use crate::direction::Site;
use crate::link::{Link, Medium};
use crate::problem::{Found, Problem, ScenarioError, one_of};

impl Scenario {
    /// Changes a setting during a run and updates the scenario. Returns the changes for the engine: names
    /// of its links, and their changes. Changes nothing on error.
    ///
    /// ```
    /// # use narrows_scenario::{LinkFlags, Scenario};
    /// let flags = LinkFlags::default().with("rate", "1mbit");
    /// let mut scenario = Scenario::from_flags(&flags).unwrap();
    /// let changes = scenario.assign("link.down.rate=2mbit").unwrap();
    /// assert_eq!(changes[0].0, "link.down");
    /// assert_eq!(scenario.links[0].directions()[1].1.rate.to_string(), "2mbit");
    /// ```
    ///
    /// # Errors
    /// If the text names no link or key, or the value is not valid for the key.
    pub fn assign(&mut self, text: &str) -> Result<Vec<(String, Change)>, ScenarioError> {
        self.assign_all(&[text])
    }

    /// Applies several changes at one instant: all of them, or none on error. A trace starts at the start
    /// of the run, as with [`Scenario::assign_at`] at time zero.
    ///
    /// # Errors
    /// As [`Scenario::assign`].
    pub fn assign_all<T: AsRef<str>>(&mut self, texts: &[T]) -> Result<Vec<(String, Change)>, ScenarioError> {
        self.assign_at(Time::ZERO, texts)
    }

    /// Applies several changes at this instant of the run: all of them, or none on error. A trace starts at
    /// this instant. Reads the files that the values name; files read before come from memory.
    ///
    /// # Errors
    /// As [`Scenario::assign`].
    pub fn assign_at<T: AsRef<str>>(
        &mut self,
        at: Time,
        texts: &[T],
    ) -> Result<Vec<(String, Change)>, ScenarioError> {
        let (mut all, mut lines) = (Vec::new(), String::new());
        let mut read = || {
            for text in texts {
                all.push(Assignment::parse(text.as_ref(), lines.len())?);
                lines += text.as_ref();
                lines.push('\n');
            }
            Ok(std::mem::take(&mut all))
        };
        let assignments = read();
        let result = assignments.and_then(|assignments| self.apply(&assignments, at));
        result.map_err(|problem| {
            let lines: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
            ScenarioError::new("set", &lines.join("\n"), vec![problem])
        })
    }

    /// Applies assignments: all of them, or none if there is a problem. As they share one instant, an
    /// assignment that is valid only after another one (a `min` of RED above the old `max`, a scheduler
    /// for the new rate) is applied after it.
    pub(crate) fn apply(
        &mut self,
        assignments: &[Assignment],
        at: Time,
    ) -> Result<Vec<(String, Change)>, Problem> {
        let mut changed: BTreeMap<usize, Link> = BTreeMap::new();
        let mut waiting: Vec<&Assignment> = assignments.iter().collect();
        while !waiting.is_empty() {
            let (mut put_off, mut wrong) = (Vec::new(), None);
            for &assignment in &waiting {
                match self.changed(assignment, at, &changed) {
                    Ok((index, link)) => {
                        changed.insert(index, link);
                    }
                    Err(problem) => {
                        put_off.push(assignment);
                        wrong.get_or_insert(problem);
                    }
                }
            }
            match wrong {
                Some(problem) if put_off.len() == waiting.len() => return Err(problem),
                _ => waiting = put_off,
            }
        }
        if let Some(part) = &self.part {
            for (&index, link) in &changed {
                part.allows(&self.links[index], link)?;
            }
        }
        let mut changes = Vec::new();
        for (index, link) in changed {
            let before = std::mem::replace(&mut self.links[index], link);
            if let Medium::Rules(then) = &before.medium {
                let site = self.site(&before);
                if let Medium::Rules(now) = &self.links[index].medium {
                    changes.extend(now.changes_since(then, &before.name, &site));
                }
                continue;
            }
            let (seed, addresses) = (Seed(self.seed), |host: &str| self.addresses(host));
            for ((name, now), (_, then)) in
                self.links[index].directions().into_iter().zip(before.directions())
            {
                let site = Site { seed, link: &name, addresses: &addresses };
                changes
                    .extend(now.changes_since(then, site).into_iter().map(|change| (name.clone(), change)));
            }
        }
        self.copy_media();
        Ok(changes)
    }

    /// The index of the link that an assignment concerns, and the link's new settings, on top of the
    /// changes so far.
    fn changed(
        &self,
        assignment: &Assignment,
        at: Time,
        changed: &BTreeMap<usize, Link>,
    ) -> Result<(usize, Link), Problem> {
        let hosts = self.host_names();
        let Assignment { link: name, of, key, place, node } = assignment;
        let index = self.links.iter().position(|link| link.name == *name).ok_or_else(|| {
            let names: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
            let problem = Problem::new(format!("there is no link {}", Found(name))).at(place);
            problem.did_you_mean(name, names.iter().copied()).help(format!("links: {}", one_of(&names)))
        })?;
        let mut link = changed.get(&index).unwrap_or(&self.links[index]).clone();
        let stations = link.stations.clone();
        let around = link.surroundings(&hosts, &stations, &self.files, at);
        let inside = |problem: Problem| match of {
            Of::Whole => problem.inside(name),
            of => problem.inside(of.text().trim_start_matches('.')).inside(name),
        };
        let way = match (of, &mut link.medium) {
            (Of::Pipe(number), Medium::Rules(rules)) => {
                rules.assign_pipe(*number, key, node, around).map_err(|p| inside(p).at(place))?;
                return Ok((index, link));
            }
            (Of::Queue(number), Medium::Rules(rules)) => {
                rules.assign_queue(*number, key, node, around).map_err(|p| inside(p).at(place))?;
                return Ok((index, link));
            }
            (_, Medium::Rules(rules)) => {
                let problem =
                    Problem::new(format!("`{name}` is a link with rules, and has no `{key}` of its own"));
                let pipe = rules.pipes.keys().next().copied().unwrap_or(1);
                return Err(problem.at(place).help(format!("write {name}.{pipe}.{key} for pipe {pipe}")));
            }
            (Of::Pipe(_) | Of::Queue(_), _) => {
                let problem = Problem::new(format!("`{name}` has no pipes and queues: it has no rules"));
                return Err(problem.at(place));
            }
            (_, Medium::Joined(joined)) => {
                let problem = Problem::new(format!("`{name}` is on the medium of `{}`", joined.medium));
                return Err(problem.at(place).help(format!("write {}.{key}, for all on it", joined.medium)));
            }
            (Of::Way(way), Medium::Shared(_)) => {
                let way = way.name();
                let problem = Problem::new(format!("the shared medium `{name}` has no `{way}` of its own"));
                return Err(problem.at(place).help(format!("write {name}.{key}, for both directions")));
            }
            (Of::Way(way), _) => Some(*way),
            (Of::Whole, _) => None,
        };
        for direction in link.directions_mut(way) {
            direction.set(key, node, around).map_err(|problem| inside(problem).at(&node.span))?;
        }
        if let Some((_, _, problem)) = link.conflict() {
            return Err(inside(problem.inside(key)).at(&node.span));
        }
        Ok((index, link))
    }
}

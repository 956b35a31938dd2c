//! Commands of ipfw that change a link with rules while it runs.

use narrows_core::Time;

use super::Scenario;
use super::ipfw_commands::CommandsAt;
use crate::engine_change::EngineChange;
use crate::ipfw::Command;
use crate::link::Medium;
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::rules_link::{Batch, Done, RulesLink};
use crate::surroundings::Surroundings;

impl Scenario {
    /// Does what a command of ipfw asks for at this instant of a run, on the link with rules of this name, or the only one.
    /// The scenario's own values follow. Gives what to tell the engine, in this order; nothing where the command only prints.
    /// Nothing changes where there is an error.
    ///
    /// A rule may lead to a pipe or queue that is not there, as in ipfw: until it is, its packets are dropped and counted. A
    /// pipe whose mask changes is made anew. A pipe that is deleted takes its queues with it; what is inside leaves it.
    ///
    /// ```
    /// # use narrows_scenario::Scenario;
    /// let text = "[hosts.a]\n[hosts.b]\n[links.net]\nbetween = [\"a\", \"b\"]\nrules = []";
    /// let mut scenario = Scenario::parse(text, "net.toml")?;
    /// let text = "pipe 1 config bw 3Mbit/s delay 32ms\nadd pipe 1 ip from any to any";
    /// for (command, _) in scenario.ipfw_commands(None, "ipfw", text)?.commands {
    ///     scenario.ipfw_at(narrows_core::Time::ZERO, None, &command)?;
    /// }
    /// let rules = scenario.links[0].rules().expect("it has rules");
    /// assert_eq!((rules.rules.len(), rules.pipes[&1].direction.rate.to_string()), (1, "3mbit".to_string()));
    /// # Ok::<(), narrows_scenario::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such link, or the command asks for what cannot be.
    pub fn ipfw_at(
        &mut self,
        at: Time,
        link: Option<&str>,
        command: &Command,
    ) -> Result<Vec<EngineChange>, ScenarioError> {
        let wrong = |problem| ScenarioError::new(NAME, "", vec![problem]);
        let (index, _) = self.rules_link(link).map_err(wrong)?;
        let mut changed = IpfwChange::none(&self.links[index].name);
        if !command.prints() {
            changed.done = Some(self.batch(at, index, |batch| batch.command(command).map_err(wrong))?);
        }
        Ok(self.take_up(changed))
    }

    /// Works out what commands come to that are done one after the other at this instant of a run, as
    /// [`Scenario::ipfw_at`] does each of them. This scenario stays as it is until it [takes that up](Scenario::take_up). It
    /// may take some time, and needs no engine.
    ///
    /// # Errors
    /// As [`Scenario::ipfw_at`], with the line of the first command that cannot be done: then none of them is.
    pub fn ipfw_change(&self, at: Time, commands: &CommandsAt) -> Result<IpfwChange, ScenarioError> {
        let wrong = |problem| ScenarioError::new(NAME, "", vec![problem]);
        let (index, _) = self.rules_link(Some(&commands.link)).map_err(wrong)?;
        let mut changed = IpfwChange::none(&commands.link);
        let all = commands.commands.iter().enumerate().filter(|(_, (command, _))| !command.prints());
        changed.texts = all.clone().map(|(_, (_, text))| format!("ipfw {} {text}", commands.link)).collect();
        if changed.changes_something() {
            changed.done = Some(self.batch(at, index, |batch| {
                all.clone().try_for_each(|(number, (command, _))| {
                    batch.command(command).map_err(|problem| commands.refused(number, wrong(problem)))
                })
            })?);
        }
        Ok(changed)
    }

    /// Makes what commands come to the scenario's own, and gives what to tell the engine, in this order. Nothing else may
    /// have changed the link since it was worked out.
    pub fn take_up(&mut self, change: IpfwChange) -> Vec<EngineChange> {
        let Some(done) = change.done else { return Vec::new() };
        let link = self.links.iter_mut().find(|link| link.name == change.link);
        if let Some(Medium::Rules(own)) = link.map(|link| &mut link.medium) {
            let rules = done.rules.unwrap_or_else(|| std::mem::take(&mut own.rules));
            let tables = done.tables.unwrap_or_else(|| std::mem::take(&mut own.tables));
            **own = RulesLink { rules, tables, ..done.link };
        }
        done.changes
    }

    fn batch(
        &self,
        at: Time,
        index: usize,
        commands: impl FnOnce(&mut Batch<'_>) -> Result<(), ScenarioError>,
    ) -> Result<Box<Done>, ScenarioError> {
        let link = &self.links[index];
        let Medium::Rules(rules) = &link.medium else {
            let problem = Problem::new(format!("{} has no rules", Found(&link.name)));
            return Err(ScenarioError::new(NAME, "", vec![problem]));
        };
        let hosts = self.host_names();
        let around = Surroundings { hosts: &hosts, shared: true, files: &self.files, at };
        let mut batch = Batch::new(rules, &link.name, self.site(link), around);
        commands(&mut batch)?;
        Ok(Box::new(batch.finish()))
    }

    /// The link with rules of this name, or the only one: its index, and the rules.
    pub(crate) fn rules_link(&self, link: Option<&str>) -> Result<(usize, &RulesLink), Problem> {
        let all = self.links.iter().enumerate().filter_map(|(index, link)| Some((index, link.rules()?)));
        let all: Vec<(usize, &RulesLink)> = all.collect();
        let names: Vec<&str> = all.iter().map(|(index, _)| self.links[*index].name.as_str()).collect();
        match (link, &all[..]) {
            (_, []) => Err(Problem::new("no link has rules")
                .help("set `rules` in a link, or load a script with `run --ipfw FILE`")),
            (None, [only]) => Ok(*only),
            (None, _) => Err(Problem::new("several links have rules: name one")
                .help(format!("links with rules: {}", one_of(&names)))),
            (Some(name), all) => {
                let found = names.iter().position(|known| *known == name).map(|at| all[at]);
                found.ok_or_else(|| {
                    let problem = Problem::new(format!("there is no link {} with rules", Found(name)));
                    problem
                        .did_you_mean(name, names.iter().copied())
                        .help(format!("links with rules: {}", one_of(&names)))
                })
            }
        }
    }
}

/// What errors call the text of a command.
const NAME: &str = "ipfw";

/// Commands of one request that a note for people shows.
const SHOWN: usize = 16;

/// What commands come to: worked out in one place, such as a thread that can wait, and made in another.
#[derive(Debug)]
pub struct IpfwChange {
    link: String,
    texts: Vec<String>,
    done: Option<Box<Done>>,
}

impl IpfwChange {
    fn none(link: &str) -> Self {
        Self { link: link.into(), texts: Vec::new(), done: None }
    }

    /// The link with rules.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// The commands that change something, as the input log has them: `ipfw net delete 100`.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The same for people: the first few of them, and how many more there are.
    pub fn summary(&self) -> String {
        let (shown, others) = self.texts.split_at(self.texts.len().min(SHOWN));
        let more = (!others.is_empty()).then(|| format!("and {} more", others.len()));
        shown.iter().cloned().chain(more).collect::<Vec<_>>().join(", ")
    }

    /// Whether any command does more than print.
    pub fn changes_something(&self) -> bool {
        !self.texts.is_empty()
    }
}

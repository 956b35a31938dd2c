//! ipfw commands that change a link with rules during a run.

use narrows_core::Time;

use super::Scenario;
use super::ipfw_commands::CommandsAt;
use crate::engine_change::EngineChange;
use crate::ipfw::{Command, Written, split_written};
use crate::link::Medium;
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::rules_link::{Batch, Done, RulesLink};
use crate::surroundings::Surroundings;

impl Scenario {
    /// Executes an ipfw command at this instant of a run, on the named link with rules or on the only one.
    /// Updates the scenario and returns the changes for the engine, in order; empty for a command that only
    /// prints. Changes nothing on error.
    ///
    /// As in ipfw, a rule may lead to a pipe or queue that does not exist: its packets are dropped and
    /// counted until it does. A pipe is rebuilt when its mask changes. Deleting a pipe also deletes its
    /// queues; the packets inside leave it.
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
    /// If there is no such link, or the command cannot be executed.
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

    /// Computes the result of several commands executed in order at this instant of a run, each as by
    /// [`Scenario::ipfw_at`]. The scenario itself changes only when it [takes up](Scenario::take_up) the
    /// result. This may take some time, and needs no engine.
    ///
    /// # Errors
    /// As [`Scenario::ipfw_at`], with the line of the first command that fails; then none is executed.
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

    /// Makes changes at this instant of a run, in order: all of them, or none on error. Each is a value as for
    /// [`Scenario::assign_at`], or a command of ipfw and its link, as in `ipfw net delete 100`. Values that follow each other
    /// apply together, and so do commands. Returns the changes for the engine.
    ///
    /// # Errors
    /// As [`Scenario::assign_at`], [`Scenario::ipfw_commands`] and [`Scenario::ipfw_change`].
    pub fn change_at<T: AsRef<str>>(
        &mut self,
        at: Time,
        texts: &[T],
    ) -> Result<Vec<EngineChange>, ScenarioError> {
        let link = |text: &T| split_written(text.as_ref()).map(|(link, _)| link.to_owned());
        let groups: Vec<&[T]> = texts.chunk_by(|one, other| link(one) == link(other)).collect();
        if let [] | [_] = groups[..] {
            return groups.first().map_or(Ok(Vec::new()), |group| self.change_together(at, group));
        }
        let mut copy = self.clone();
        let mut changes = Vec::new();
        for group in groups {
            changes.extend(copy.change_together(at, group)?);
        }
        *self = copy;
        Ok(changes)
    }

    /// Makes changes that are all values, or all commands for one link.
    fn change_together<T: AsRef<str>>(
        &mut self,
        at: Time,
        texts: &[T],
    ) -> Result<Vec<EngineChange>, ScenarioError> {
        let commands: Option<Vec<(&str, &str)>> =
            texts.iter().map(|text| split_written(text.as_ref())).collect();
        let Some(commands @ [(link, _), ..]) = commands.as_deref() else {
            let changes = self.assign_at(at, texts)?.into_iter();
            return Ok(changes.map(|(link, change)| EngineChange::Link { link, change }).collect());
        };
        let lines: Vec<&str> = commands.iter().map(|(_, command)| *command).collect();
        self.execute(at, link, &lines).map(|(_, changes)| changes)
    }

    /// Executes commands; returns the number of those that do more than print, and the changes for the engine.
    fn execute(
        &mut self,
        at: Time,
        link: &str,
        lines: &[&str],
    ) -> Result<(usize, Vec<EngineChange>), ScenarioError> {
        let commands = self.ipfw_commands(Some(link), NAME, &lines.join("\n"))?;
        let change = self.ipfw_change(at, &commands)?;
        let count = change.texts().len();
        Ok((count, self.take_up(change)))
    }

    /// Executes written commands, each of which must change something. A problem is at the place of its command.
    pub(crate) fn try_commands(&mut self, at: Time, commands: &[Written]) -> Result<(), Problem> {
        for of_link in commands.chunk_by(|one, other| one.link == other.link) {
            let before = self.clone();
            let lines: Vec<&str> = of_link.iter().map(|command| command.text.as_str()).collect();
            if self.execute(at, &of_link[0].link, &lines).is_ok_and(|(count, _)| count >= lines.len()) {
                continue;
            }
            *self = before;
            // One by one, to find which it is.
            for Written { link, text, place } in of_link {
                let placed = |problem: Problem| problem.at(place).inside(link);
                let done = self.execute(at, link, &[text]);
                if done.map_err(|error| placed(error.without_place()))?.0 == 0 {
                    return Err(placed(Problem::new(format!("{} changes nothing", Found(text)))));
                }
            }
        }
        Ok(())
    }

    /// Applies a computed result to the scenario, and returns the changes for the engine, in order. The
    /// link must not have changed since the result was computed.
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
        let around = Surroundings { hosts: &hosts, shared: true, stations: &[], files: &self.files, at };
        let mut batch = Batch::new(rules, &link.name, self.site(link), around);
        commands(&mut batch)?;
        Ok(Box::new(batch.finish()))
    }

    /// The named link with rules, or the only one: its index, and the rules.
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

/// Name of a command's text in errors.
const NAME: &str = "ipfw";

/// Number of commands of one request that a note for people shows.
const SHOWN: usize = 16;

/// The result of commands: computed in one place, such as a thread that can wait, and applied in another.
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

    /// The name of the link with rules.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// The commands that change something, as written to the input log: `ipfw net delete 100`.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// Summary for people: the first few commands, and how many more there are.
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

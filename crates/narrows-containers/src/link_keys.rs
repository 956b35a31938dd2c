//! The keys of a link, as labels and compose files give them.
//!
//! | key | means |
//! |---|---|
//! | `delay` | both directions; or `DOWN/UP`, as the flag `--delay` |
//! | `up.delay`, `down.delay` | one direction |
//! | `loss.correlation`, `up.queue.bound` | a part of a value, as in `narrows set` |

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::OnceLock;

use narrows_scenario::{Fault, Files, LinkFlags, Scenario, ScenarioError, nearest};
use toml::{Table, Value};

/// The name of the link that [`LinkKeys::scenario`] makes.
pub const LINK: &str = "link";

/// Keys with their values, each with its place in the text that gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkKeys(BTreeMap<String, Given>);

/// A value, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    text: String,
    span: Range<usize>,
}

/// How a key is set.
#[derive(PartialEq, Eq)]
enum Means {
    Flag,
    Assignment,
}

impl LinkKeys {
    /// Adds a key.
    ///
    /// # Errors
    /// If there is no such key.
    pub fn add(&mut self, name: &str, text: impl Into<String>, span: Range<usize>) -> Result<(), Fault> {
        match means(name) {
            Some(_) => {
                self.0.insert(name.into(), Given { text: text.into(), span });
                Ok(())
            }
            None => Err(unknown(name, known(), span)),
        }
    }

    /// Whether no key is given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this key is given.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The keys and values, as the arguments of a command.
    pub fn words(&self) -> String {
        let words = self.0.iter().map(|(name, given)| match given.text.contains(' ') {
            true => format!("{name} \"{}\"", given.text),
            false => format!("{name} {}", given.text),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    /// These keys, and those of `below` that they do not replace. A preset replaces all.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        if self.has("preset") {
            return self.clone();
        }
        let replaced: BTreeSet<&str> = self.0.keys().map(String::as_str).collect();
        let stays = |name: &str| {
            let key = name.strip_prefix("up.").or_else(|| name.strip_prefix("down.")).unwrap_or(name);
            let whole = key.split('.').next().unwrap_or(key);
            ![name, key, whole].iter().any(|name| replaced.contains(name))
        };
        let kept = below.0.iter().filter(|(name, _)| stays(name));
        Self(kept.chain(&self.0).map(|(name, given)| (name.clone(), given.clone())).collect())
    }

    /// The scenario of one such link, [`LINK`], between `client` and `server`.
    ///
    /// # Errors
    /// If a value is wrong, or keys contradict one another.
    pub fn scenario(&self, files: &Files) -> Result<Scenario, ScenarioError> {
        self.scenario_of(|_| true, files)
    }

    fn scenario_of(&self, meant: impl Fn(&str) -> bool, files: &Files) -> Result<Scenario, ScenarioError> {
        let given = || self.0.iter().filter(|(name, _)| meant(name));
        let flags = given()
            .filter(|(name, _)| means(name) == Some(Means::Flag))
            .fold(LinkFlags::default(), |flags, (name, given)| flags.with(name, given.text.clone()));
        let mut scenario = Scenario::from_flags_with(&flags, files.clone())?;
        let assignments = given()
            .filter(|(name, _)| means(name) == Some(Means::Assignment))
            .map(|(name, given)| format!("{LINK}.{name}={}", given.text));
        scenario.set(&assignments.collect::<Vec<_>>())?;
        Ok(scenario)
    }

    /// What is wrong with these keys, each fault at its key, or at `whole` if it is about several.
    pub fn faults(&self, files: &Files, whole: &Range<usize>) -> Vec<Fault> {
        let is_flag = |name: &str| means(name) == Some(Means::Flag);
        let mut faults = Vec::new();
        let (flags, parts): (Vec<_>, Vec<_>) = self.0.iter().partition(|(name, _)| is_flag(name));
        for (name, given) in flags.into_iter().chain(parts) {
            // Parts of a value are checked with the value.
            let tried = match is_flag(name) {
                true => self.scenario_of(|other| other == name, files),
                // A fault of a flag is told once, at the flag.
                false if !faults.is_empty() => self.scenario_of(|other| other == name, files),
                false => self.scenario_of(|other| other == name || is_flag(other), files),
            };
            if let Err(error) = tried {
                faults.extend(error.faults().into_iter().map(|fault| placed(fault, name, &given.span)));
            }
        }
        if faults.is_empty()
            && let Err(error) = self.scenario(files)
        {
            faults.extend(error.faults().into_iter().map(|fault| placed(fault, "", whole)));
        }
        faults
    }

    /// The settings of the two directions, up and down, as the tables of pipes.
    ///
    /// # Errors
    /// Those of [`LinkKeys::scenario`].
    pub fn pipes(&self, files: &Files) -> Result<[Table; 2], ScenarioError> {
        let text = self.scenario(files)?.to_toml();
        let mut all: Table = text.parse().unwrap_or_default();
        let mut link =
            table(&mut all, "links").and_then(|links| table(links, LINK)).cloned().unwrap_or_default();
        let own = ["up", "down"].map(|way| match link.remove(way) {
            Some(Value::Table(own)) => own,
            _ => Table::new(),
        });
        link.retain(|key, _| !["between", "cost"].contains(&key));
        Ok(own.map(|own| link.clone().into_iter().chain(own).collect()))
    }
}

fn table<'a>(of: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    of.get_mut(name)?.as_table_mut()
}

fn placed(fault: Fault, key: &str, span: &Range<usize>) -> Fault {
    Fault { key: key.into(), span: Some(span.clone()), ..fault }
}

/// The names of all flags of a link.
fn known() -> &'static [&'static str] {
    // With the flags come their help texts.
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| LinkFlags::known().into_iter().map(|flag| flag.name).collect())
}

fn means(name: &str) -> Option<Means> {
    if known().contains(&name) {
        return Some(Means::Flag);
    }
    let key = name.strip_prefix("up.").or_else(|| name.strip_prefix("down."));
    let is_of_way = key.is_some();
    let key = key.unwrap_or(name);
    let first = key.split('.').next().unwrap_or(key);
    let is_key = known().contains(&first) && first != "preset" && !first.starts_with("netem-");
    (is_key && (is_of_way || key != first)).then_some(Means::Assignment)
}

/// The fault of an unknown name.
pub(crate) fn unknown(name: &str, known: &[&str], span: Range<usize>) -> Fault {
    let known = known.iter().copied();
    // Keys of one direction have the same names.
    let of_way = name.strip_prefix("up.").or_else(|| name.strip_prefix("down.")).unwrap_or(name);
    let near = nearest(of_way, known.clone()).map(|near| format!("did you mean `{near}`?"));
    let all = format!("allowed: {}", known.collect::<Vec<_>>().join(", "));
    let help = near.into_iter().chain([all]).collect();
    Fault { title: format!("unknown key `{name}`"), help, key: String::new(), span: Some(span) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(given: &[(&str, &str)]) -> LinkKeys {
        let mut keys = LinkKeys::default();
        given.iter().for_each(|(name, text)| keys.add(name, *text, 0..1).unwrap());
        keys
    }

    #[test]
    fn keys_mean_what_flags_mean() {
        let none = Files::default();
        let given = keys(&[("rate", "10mbit/1mbit"), ("delay", "20ms"), ("up.loss", "1%")]);
        let [up, down] = given.pipes(&none).unwrap();
        assert_eq!(up.to_string(), "delay = \"20ms\"\nloss = \"1%\"\nrate = \"1mbit\"\n");
        assert_eq!(down.to_string(), "delay = \"20ms\"\nrate = \"10mbit\"\n");
        let [up, down] = keys(&[("preset", "dsl")]).pipes(&none).unwrap();
        assert!(up.contains_key("rate") && down.contains_key("delay") && up != down, "{up} {down}");
    }

    #[test]
    fn upper_keys_replace_lower_ones_and_a_preset_all() {
        let below =
            keys(&[("delay", "5ms"), ("up.delay", "7ms"), ("loss", "1%"), ("loss.correlation", "5%")]);
        let all = keys(&[("delay", "9ms"), ("up.loss", "2%")]).over(&below);
        assert_eq!(
            all,
            keys(&[("delay", "9ms"), ("up.loss", "2%"), ("loss", "1%"), ("loss.correlation", "5%")])
        );
        assert_eq!(keys(&[("preset", "4g")]).over(&below), keys(&[("preset", "4g")]));
    }

    #[test]
    fn each_fault_is_at_its_key() {
        let fault = LinkKeys::default().add("dealy", "5ms", 3..8).unwrap_err();
        assert_eq!(fault.help[0], "did you mean `delay`?");
        let mut wrong = LinkKeys::default();
        wrong.add("delay", "5 parsecs", 3..8).unwrap();
        wrong.add("down.rate", "-1", 13..18).unwrap();
        let faults = wrong.faults(&Files::default(), &(0..20));
        let places: Vec<_> = faults.iter().map(|fault| (fault.key.as_str(), fault.span.clone())).collect();
        assert_eq!(places[0], ("delay", Some(3..8)), "{faults:?}");
        assert!(places.contains(&("down.rate", Some(13..18))), "{faults:?}");
        for odd in ["up", "up.preset", "down.x", "delay.", "x.delay", ""] {
            let added = LinkKeys::default().add(odd, "1", 0..1);
            let tried = added.is_err() || !keys(&[(odd, "1")]).faults(&Files::default(), &(0..1)).is_empty();
            assert!(tried, "{odd}");
        }
    }

    #[test]
    fn without_permission_no_file_is_read() {
        let faults = keys(&[("trace", "/etc/passwd")]).faults(&Files::given::<&str>([]), &(0..1));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].title.contains("/etc/passwd"), "{faults:?}");
    }
}

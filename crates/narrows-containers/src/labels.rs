//! The labels of a container: `narrows.KEY=VALUE`, and those of docker-tc.

use std::collections::BTreeMap;
use std::ops::Range;

use narrows_io::detour::Diverted;
use narrows_scenario::{Fault, Files, ScenarioError};

use crate::link_keys::{LinkKeys, unknown};

/// What our labels begin with.
pub const PREFIX: &str = "narrows.";
/// What labels of docker-tc begin with.
const DOCKER_TC: &str = "com.docker-tc.";
/// Names behind [`PREFIX`] that are no keys of a link.
pub const OTHERS: [&str; 4] = ["interface", "network", "direction", "seed"];

/// The network that a container wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Its link: up is what the container sends.
    pub keys: LinkKeys,
    /// At which of its interfaces.
    pub at: Pick,
    /// Which frames cross it.
    pub direction: Direction,
    /// The seed, if it is given.
    pub seed: Option<String>,
}

/// Which interfaces of a container are meant; all of them by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// The one with this name.
    pub interface: Option<String>,
    /// The one in this network of the engine.
    pub network: Option<String>,
}

/// Which frames cross a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// What the container receives.
    In,
    /// What the container sends.
    Out,
    /// Both.
    #[default]
    Both,
}

impl Direction {
    const ALL: [Self; 3] = [Self::In, Self::Out, Self::Both];

    /// Its name, as in `narrows attach --direction`.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
            Self::Both => "both",
        }
    }

    /// The frames that are redirected.
    pub fn diverted(self) -> Diverted {
        match self {
            Self::In => Diverted::In,
            Self::Out => Diverted::Out,
            Self::Both => Diverted::Both,
        }
    }
}

impl Wish {
    /// Reads labels, which errors call `title`; `None` if none of them is for narrows. Files that they name are taken
    /// from `files`.
    ///
    /// # Errors
    /// All faults of the labels.
    pub fn of_labels(
        title: &str,
        labels: &BTreeMap<String, String>,
        files: &Files,
    ) -> Result<Option<Self>, ScenarioError> {
        let mut text = String::new();
        let mut wish = Self::default();
        let mut faults = Vec::new();
        let mut docker_tc = BTreeMap::new();
        for (label, value) in labels {
            let Some((prefix, name)) = [PREFIX, DOCKER_TC]
                .into_iter()
                .find_map(|prefix| Some((prefix, label.strip_prefix(prefix)?)))
            else {
                continue;
            };
            let start = text.len();
            text += &format!("{label}={value}\n");
            let span = start..text.len() - 1;
            if prefix == DOCKER_TC {
                docker_tc.insert(name, (value.trim(), span));
            } else if let Err(fault) = wish.set(name, value, span) {
                faults.push(fault);
            }
        }
        if wish == Self::default() && faults.is_empty() {
            match of_docker_tc(&docker_tc) {
                Ok(keys) => wish.keys = keys,
                Err(fault) => faults.push(fault),
            }
        }
        faults.extend(wish.keys.faults(files, &(0..text.len())));
        match faults.is_empty() {
            true => Ok((wish != Self::default()).then_some(wish)),
            false => {
                let named = faults.into_iter().map(|fault| Fault { key: label(&fault.key), ..fault });
                Err(ScenarioError::of_faults(title, &text, named))
            }
        }
    }

    /// This, and what it leaves open from `below`.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            keys: self.keys.over(&below.keys),
            at: Pick {
                interface: self.at.interface.or(below.at.interface),
                network: self.at.network.or(below.at.network),
            },
            direction: if self.direction == Direction::Both { below.direction } else { self.direction },
            seed: self.seed.or(below.seed),
        }
    }

    /// Sets a key, or one of [`OTHERS`].
    ///
    /// # Errors
    /// If there is no such name, or the value is wrong.
    pub fn set(&mut self, name: &str, value: &str, span: Range<usize>) -> Result<(), Fault> {
        self.set_one_of(name, value, span, &OTHERS)
    }

    /// Sets a key, or one of these of [`OTHERS`].
    ///
    /// # Errors
    /// If there is no such name, or the value is wrong.
    pub fn set_one_of(
        &mut self,
        name: &str,
        value: &str,
        span: Range<usize>,
        others: &[&str],
    ) -> Result<(), Fault> {
        let wrong = |title: String, help: &str| Fault {
            title,
            help: vec![help.into()],
            key: name.into(),
            span: Some(span.clone()),
        };
        match name {
            _ if !others.contains(&name) => {
                return self.keys.add(name, value, span.clone()).map_err(|fault| match fault.help.len() {
                    // No key of a link is near.
                    1 => {
                        let near = unknown(name, others, span);
                        let help = near.help.into_iter().take_while(|help| help.contains("mean"));
                        Fault { help: help.chain(fault.help).collect(), ..fault }
                    }
                    _ => fault,
                });
            }
            "interface" => self.at.interface = Some(value.into()),
            "network" => self.at.network = Some(value.into()),
            "seed" => match value.parse::<u64>() {
                Ok(_) => self.seed = Some(value.into()),
                Err(_) => {
                    return Err(wrong(format!("`{value}` is not a seed"), "write a whole number, such as 7"));
                }
            },
            // `direction`, the last of them.
            _ => match Direction::ALL.into_iter().find(|direction| direction.name() == value) {
                Some(direction) => self.direction = direction,
                None => {
                    return Err(wrong(format!("`{value}` is not a direction"), "allowed: in, out or both"));
                }
            },
        }
        Ok(())
    }
}

fn label(key: &str) -> String {
    if key.is_empty() || key.starts_with("com.") { key.into() } else { format!("{PREFIX}{key}") }
}

/// The bytes that wait at most for a rate in tc's units: its token bucket drops what would wait longer than 50 ms.
fn waiting(rate: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 10] = [
        ("tbit", 1e12),
        ("gbit", 1e9),
        ("mbit", 1e6),
        ("kbit", 1e3),
        ("bit", 1.0),
        ("tbps", 8e12),
        ("gbps", 8e9),
        ("mbps", 8e6),
        ("kbps", 8e3),
        ("bps", 8.0),
    ];
    let rate = rate.to_lowercase();
    let (number, unit) = UNITS.iter().find_map(|(name, unit)| Some((rate.strip_suffix(name)?, *unit)))?;
    let bits: f64 = number.trim().parse::<f64>().ok()? * unit;
    // At least a packet.
    Some(((bits / 8.0 * 0.05) as u64).max(1514))
}

/// The keys that labels of docker-tc mean: it shapes what the container receives, in tc's units.
fn of_docker_tc(labels: &BTreeMap<&str, (&str, Range<usize>)>) -> Result<LinkKeys, Fault> {
    const WORDS: [(&str, &str); 5] = [
        ("delay", "delay"),
        ("loss", "loss"),
        ("duplicate", "duplicate"),
        ("corrupt", "corrupt"),
        ("limit", "rate"),
    ];
    let mut keys = LinkKeys::default();
    if labels.get("enabled").is_none_or(|(value, _)| *value != "1") {
        return Ok(keys);
    }
    let known: Vec<&str> = WORDS.iter().map(|(name, _)| *name).chain(["enabled"]).collect();
    if let Some((name, (_, span))) = labels.iter().find(|(name, _)| !known.contains(*name)) {
        return Err(unknown(name, &known, span.clone()));
    }
    let given = WORDS.iter().filter_map(|(name, word)| Some((word, labels.get(name)?)));
    let words: Vec<_> = given.clone().map(|(word, (value, _))| format!("{word} {value}")).collect();
    let span = given
        .map(|(_, (_, span))| span.clone())
        .reduce(|first, last| first.start.min(last.start)..first.end.max(last.end));
    match span {
        Some(span) => {
            keys.add("netem-down", words.join(" "), span.clone())?;
            if let Some(bytes) = labels.get("limit").and_then(|(rate, _)| waiting(rate)) {
                keys.add("down.queue", format!("{bytes} bytes"), span)?;
            }
        }
        None => return Ok(keys),
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(labels: &[(&str, &str)]) -> Result<Option<Wish>, String> {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Wish::of_labels("labels of web", &labels, &Files::given::<&str>([]))
            .map_err(|error| error.to_string())
    }

    fn pipes(labels: &[(&str, &str)]) -> [String; 2] {
        read(labels).unwrap().unwrap().keys.pipes(&Files::default()).unwrap().map(|table| table.to_string())
    }

    #[test]
    fn labels_are_keys_of_a_link() {
        assert_eq!(read(&[("maintainer", "x"), ("narrowspath.delay", "y")]), Ok(None));
        let labels = [("narrows.delay", "25ms"), ("narrows.up.loss", "1%"), ("narrows.direction", "out")];
        let wish = read(&labels).unwrap().unwrap();
        assert_eq!(wish.direction, Direction::Out);
        assert_eq!(pipes(&labels), ["delay = \"25ms\"\nloss = \"1%\"\n", "delay = \"25ms\"\n"]);
    }

    #[test]
    fn docker_tcs_labels_shape_what_the_container_receives() {
        let labels = [
            ("com.docker-tc.enabled", "1"),
            ("com.docker-tc.limit", "1mbps"),
            ("com.docker-tc.delay", "100ms"),
            ("com.docker-tc.loss", "50%"),
            ("com.docker-tc.duplicate", "10%"),
            ("com.docker-tc.corrupt", "5%"),
        ];
        let [up, down] = pipes(&labels);
        assert_eq!(up, "");
        for part in [
            "rate = \"8mbit\"",
            "delay = \"100ms\"",
            "ingress = \"50%\"",
            "duplicate",
            "corrupt",
            "queue = \"50000 bytes\"",
        ] {
            assert!(down.contains(part), "{part}: {down}");
        }
        assert_eq!(read(&labels[1..]), Ok(None), "not enabled");
        let error = read(&[labels[0], ("com.docker-tc.dely", "1ms")]).unwrap_err();
        assert!(error.contains("did you mean `delay`?"), "{error}");
        // Our own labels go first.
        assert_eq!(pipes(&[labels[0], labels[1], ("narrows.delay", "1ms")])[1], "delay = \"1ms\"\n");
    }

    #[test]
    fn every_fault_is_told_with_its_label() {
        let error = read(&[("narrows.dealy", "5ms"), ("narrows.rate", "fast"), ("narrows.direction", "up")]);
        let error = error.unwrap_err();
        for part in [
            "labels of web:1",
            "narrows.dealy=5ms",
            "did you mean `delay`?",
            "narrows.rate=fast",
            "in `narrows.rate`",
            "allowed: in, out or both",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = read(&[("narrows.interfce", "eth0")]).unwrap_err();
        assert!(error.contains("did you mean `interface`?"), "{error}");
    }

    #[test]
    fn a_label_opens_no_file() {
        for (label, value) in [
            ("narrows.trace", "/etc/passwd"),
            ("narrows.delay", "{ samples = { file = \"/etc/passwd\" } }"),
            ("narrows.loss", "{ pattern = \"/etc/passwd\" }"),
        ] {
            let error = read(&[(label, value)]).unwrap_err();
            assert!(!error.contains("root:"), "{error}");
        }
    }
}

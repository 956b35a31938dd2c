//! The configuration of the plugin for one network, as it comes on standard input, or in a file as one of a chain.
//!
//! ```json
//! { "type": "narrows-cni",
//!   "capabilities": { "io.kubernetes.cri.pod-annotations": true, "bandwidth": true },
//!   "link": { "delay": "5ms", "up": { "loss": "0.1%" } },
//!   "fail": "closed" }
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use narrows_scenario::{Fault, Files, ScenarioError, nearest};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Attachment, PLUGIN, Task, VERSIONS};
use crate::labels::Wish;
use crate::link_block;
use crate::yaml::{Node, fault};

/// Our keys.
const OWN: [&str; 2] = ["link", "fail"];
/// Keys that every configuration may have, and those that runtimes add.
const COMMON: [&str; 13] = [
    "cniVersion",
    "cniVersions",
    "name",
    "type",
    "args",
    "capabilities",
    "ipMasq",
    "ipam",
    "dns",
    "prevResult",
    "runtimeConfig",
    "disableCheck",
    "disableGC",
];
/// What keys of the specification for plugins begin with.
const RESERVED: &str = "cni.dev/";
/// Names besides keys of a link in `link`.
const OTHERS: [&str; 3] = ["interface", "direction", "seed"];

/// A configuration. Its own keys are read by [`task`](Self::task) alone, so that an error in them does not keep a
/// network from being removed.
#[derive(Debug)]
pub struct Config<'a> {
    file: String,
    text: &'a str,
    /// The version of the specification.
    pub version: Cow<'a, str>,
    /// The network's name.
    pub network: Cow<'a, str>,
    /// The result of the plugin before, as it was.
    pub previous: Option<&'a RawValue>,
    /// Attachments that exist, for GC: container and interface.
    pub valid: Vec<(String, String)>,
    runtime: Runtime,
}

/// The keys of the specification.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(borrow, default)]
    cni_version: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    prev_result: Option<&'a RawValue>,
    #[serde(default)]
    runtime_config: Option<Runtime>,
    #[serde(rename = "cni.dev/valid-attachments", default)]
    valid: Option<Vec<Valid>>,
}

#[derive(Deserialize)]
struct Valid {
    #[serde(rename = "containerID")]
    container: String,
    ifname: String,
}

/// What a runtime says of one container, as far as capabilities ask for it.
#[derive(Debug, Default, Deserialize)]
struct Runtime {
    #[serde(rename = "io.kubernetes.cri.pod-annotations", default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    bandwidth: Option<Bandwidth>,
}

/// Rates in bits a second: ingress is what the container receives. Bursts are not used: the link's queue is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bandwidth {
    #[serde(default)]
    ingress_rate: u64,
    #[serde(default)]
    egress_rate: u64,
}

/// The highest rate of a link, in bits a second.
const MOST_RATE: u64 = 1_000_000_000_000_000;

/// A configuration that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no JSON, or has values of other kinds than the specification says.
    #[error("{file}: {cause}")]
    Json {
        /// The file.
        file: String,
        /// The parser's words, with line and column.
        cause: serde_json::Error,
    },
    /// Its version is none that has chains.
    #[error("{file}: cniVersion is `{found}`; supported: {}", VERSIONS.join(", "))]
    Version {
        /// The file.
        file: String,
        /// The version.
        found: String,
    },
    /// It is no list of plugins, where one is expected.
    #[error(
        "{file}: no list of `plugins`: {PLUGIN} is one of a chain (*.conflist), behind the plugin that makes the interface"
    )]
    NoList {
        /// The file.
        file: String,
    },
    /// A name that is missing, or that could not be one.
    #[error(
        "{file}: `name` is `{found}`: expected letters, digits, `_`, `.` and `-`, a letter or digit first"
    )]
    Name {
        /// The file.
        file: String,
        /// The name.
        found: String,
    },
}

impl<'a> Config<'a> {
    /// Reads what the specification defines.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn read(text: &'a str, file: &str) -> Result<Self, ConfigError> {
        let file = file.to_owned();
        let raw: Raw<'a> = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(cause) => return Err(ConfigError::Json { file, cause }),
        };
        let (version, network) = (raw.cni_version, raw.name);
        if !VERSIONS.contains(&&*version) {
            return Err(ConfigError::Version { file, found: version.into() });
        }
        let is_known = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        if !network.starts_with(|c: char| c.is_ascii_alphanumeric()) || !network.chars().all(is_known) {
            return Err(ConfigError::Name { file, found: network.into() });
        }
        let valid =
            raw.valid.unwrap_or_default().into_iter().map(|one| (one.container, one.ifname)).collect();
        let (previous, runtime) = (raw.prev_result, raw.runtime_config.unwrap_or_default());
        Ok(Self { file, text, version, network, previous, valid, runtime })
    }

    /// The keys of ours that hold for every attachment.
    ///
    /// # Errors
    /// All faults of them.
    pub fn own_keys(&self) -> Result<Task, ScenarioError> {
        own_keys(&self.file, self.text)
    }

    /// What is to be at an attachment: pod annotations `narrows.KEY` before the capability `bandwidth`, and both before
    /// `link`.
    ///
    /// # Errors
    /// All faults of `link` and `fail`, or of the annotations.
    pub fn task(&self, attachment: &Attachment) -> Result<Task, ScenarioError> {
        let Task { wish: own, fails_closed } = self.own_keys()?;
        let files = Files::given::<&str>([]);
        let is_here = |wish: &Wish| {
            wish.at.interface.as_ref().is_none_or(|name| *name == attachment.interface)
                && wish.at.network.as_ref().is_none_or(|name| *name == *self.network)
        };
        let title = format!("annotations of {attachment}");
        let annotations = match &self.runtime.annotations {
            Some(all) => Wish::of_labels(&title, all, &files)?,
            None => None,
        };
        let wishes = [annotations, self.bandwidth()?, own];
        let mut found = wishes.into_iter().flatten().filter(is_here);
        let wish = found.next().map(|first| found.fold(first, Wish::over));
        Ok(Task { wish: wish.filter(|wish| !wish.keys.is_empty()), fails_closed })
    }

    fn bandwidth(&self) -> Result<Option<Wish>, ScenarioError> {
        let Some(given) = &self.runtime.bandwidth else { return Ok(None) };
        let mut wish = Wish::default();
        let rates =
            [("down.rate", "ingressRate", given.ingress_rate), ("up.rate", "egressRate", given.egress_rate)];
        for (key, name, rate) in rates {
            if rate > MOST_RATE {
                let digits = rate.to_string();
                let span = self.text.find(&digits).map_or(0..0, |at| at..at + digits.len());
                let title = format!("{digits} bit/s is too large for a rate");
                let fault =
                    Fault { key: name.into(), ..fault(title, &span, &["at most 1000000000000000 bit/s"]) };
                return Err(ScenarioError::of_faults(&self.file, self.text, [fault]));
            }
            if rate > 0 {
                // A key that exists.
                let _ = wish.keys.add(key, format!("{rate}bit"), 0..0);
            }
        }
        Ok(Some(wish))
    }
}

/// The keys of ours.
pub(super) fn own_keys(file: &str, text: &str) -> Result<Task, ScenarioError> {
    // Indentation by tabs is JSON, and no YAML.
    own_keys_of(file, text, &Node::document(&text.replace('\t', " "), file)?)
}

/// The same for a configuration inside of a text.
pub(super) fn own_keys_of(file: &str, text: &str, node: &Node) -> Result<Task, ScenarioError> {
    let files = Files::given::<&str>([]);
    let mut faults = Vec::new();
    for (key, _) in node.map().unwrap_or_default() {
        let name = key.name.as_str();
        if !OWN.contains(&name) && !COMMON.contains(&name) && !name.starts_with(RESERVED) {
            let near = nearest(name, OWN.iter().chain(&COMMON).copied())
                .map(|near| format!("did you mean `{near}`?"));
            let help = near.into_iter().chain([format!("keys of {}: {}", PLUGIN, OWN.join(", "))]).collect();
            faults.push(Fault { help, ..fault(format!("unknown key `{name}`"), &key.span, &[]) });
        }
    }
    let wish = node.get("link").and_then(|link| link_block::wish(&files, link, "link", &OTHERS, &mut faults));
    let fails_closed = match node.get("fail").map(|node| (node, node.text())) {
        None | Some((_, Some("open"))) => false,
        Some((_, Some("closed"))) => true,
        Some((node, _)) => {
            let title =
                format!("`fail` is {}", node.text().map_or(node.kind().into(), |text| format!("`{text}`")));
            faults.push(fault(title, &node.span, &["allowed: \"open\" or \"closed\""]));
            false
        }
    };
    match faults.is_empty() {
        true => Ok(Task { wish, fails_closed }),
        false => Err(ScenarioError::of_faults(file, text, faults)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment() -> Attachment {
        Attachment {
            container: "c0ffee".into(),
            interface: "eth0".into(),
            namespace: Some("/run/netns/x".into()),
            pod: Some("default/web".into()),
        }
    }

    fn task(text: &str) -> Result<Task, String> {
        let config = Config::read(text, "network").map_err(|error| error.to_string())?;
        config.task(&attachment()).map_err(|error| error.to_string())
    }

    /// The link up and down.
    fn pipes(text: &str) -> [String; 2] {
        let wish = task(text).unwrap().wish.unwrap();
        wish.keys.pipes(&Files::default()).unwrap().map(|table| table.to_string())
    }

    fn with(keys: &str) -> String {
        format!(
            r#"{{"cniVersion":"1.1.0","name":"net","type":"narrows-cni",{keys}"prevResult":{{"ips":[]}}}}"#
        )
    }

    #[test]
    fn annotations_go_before_bandwidth_and_both_before_the_configuration() {
        let own = r#""link":{"delay":"5ms","rate":"1mbit","up":{"loss":"1%"}},"#;
        let runtime = |annotations: &str| {
            let bandwidth =
                r#""bandwidth":{"ingressRate":8000000,"ingressBurst":9,"egressRate":0,"egressBurst":0}"#;
            format!(
                r#""runtimeConfig":{{"io.kubernetes.cri.pod-annotations":{{{annotations}}},{bandwidth}}},"#
            )
        };
        assert_eq!(
            pipes(&with(own)),
            ["delay = \"5ms\"\nloss = \"1%\"\nrate = \"1mbit\"\n", "delay = \"5ms\"\nrate = \"1mbit\"\n"]
        );
        let [up, down] = pipes(&with(&(own.to_owned() + &runtime(r#""narrows.delay":"20ms","other":"x""#))));
        assert!(up.contains("20ms") && up.contains("loss") && down.contains("20ms"), "{up}{down}");
        assert!(down.contains("rate = \"8000000bit\"") || down.contains("rate = \"8mbit\""), "{down}");
        let elsewhere = runtime(r#""narrows.delay":"20ms","narrows.network":"other""#);
        assert!(pipes(&with(&(own.to_owned() + &elsewhere)))[0].contains("5ms"));
        assert!(task(&with("")).unwrap().wish.is_none());
        assert!(task(&with(r#""link":{"delay":"5ms","interface":"eth1"},"#)).unwrap().wish.is_none());
        assert!(task(&with(r#""fail":"closed","#)).unwrap().fails_closed);
    }

    #[test]
    fn the_result_before_stays_as_it_is() {
        let text = with("");
        let config = Config::read(&text, "network").unwrap();
        assert_eq!(config.previous.unwrap().get(), r#"{"ips":[]}"#);
    }

    #[test]
    fn faults_are_told_with_their_place() {
        for (text, parts) in [
            (with(r#""link":{"dealy":"5ms"},"#), &["unknown key `dealy`", "did you mean `delay`?"][..]),
            (with(r#""lnik":{},"#), &["unknown key `lnik`", "did you mean `link`?", "network:1:"]),
            (with(r#""fail":"shut","#), &["`fail` is `shut`", "\"open\" or \"closed\""]),
            (
                with(r#""runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"narrows.rate":"fast"}},"#),
                &["annotations of pod default/web", "narrows.rate=fast"],
            ),
            (
                with(r#""runtimeConfig":{"bandwidth":{"ingressRate":1,"egressRate":1000000000000001}},"#),
                &[
                    "1000000000000001 bit/s is too large for a rate",
                    "network:1:",
                    "`egressRate`",
                    "at most 1000000000000000 bit/s",
                ],
            ),
            (with("").replace("1.1.0", "0.2.0"), &["cniVersion is `0.2.0`", "0.3.0, 0.3.1"]),
            (with("").replace("\"net\"", "\"a/b\""), &["`name` is `a/b`"]),
            (with("").replace('}', ""), &["network: EOF while parsing"]),
            (
                with(
                    r#""runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"narrows.trace":"/etc/passwd"}},"#,
                ),
                &["narrows.trace"],
            ),
        ] {
            let error = task(&text).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{part}: {error}");
            }
            assert!(!error.contains("root:"), "{error}");
        }
    }

    #[test]
    fn an_error_in_our_keys_does_not_keep_a_network_from_being_removed() {
        assert!(Config::read(&with(r#""link":{"dealy":"5ms"},"#), "network").is_ok());
    }
}

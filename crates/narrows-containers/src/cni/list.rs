//! A chain of plugins (`*.conflist`), and our place at its end.
//!
//! Files are edited as texts: whatever else they say, and how it is laid out, stays.

use std::borrow::Cow;
use std::ops::Range;

use narrows_scenario::ScenarioError;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::config::{ConfigError, own_keys, own_keys_of};
use super::{PLUGIN, Task, VERSIONS};
use crate::yaml::Node;

/// The plugin of the CNI project that shapes by the same annotations as our capability `bandwidth`.
const BANDWIDTH: &str = "bandwidth";

/// A chain.
#[derive(Debug)]
pub struct ConfigList<'a> {
    file: String,
    text: &'a str,
    /// The network's name.
    pub network: String,
    /// The type of each plugin, and its place in the text.
    plugins: Vec<(String, Range<usize>)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw<'a> {
    #[serde(borrow, default)]
    cni_version: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    plugins: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct Plugin<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
}

impl<'a> ConfigList<'a> {
    /// Reads a chain.
    ///
    /// # Errors
    /// If it is none.
    pub fn read(text: &'a str, file: &str) -> Result<Self, ConfigError> {
        let file = file.to_owned();
        let json = |cause| ConfigError::Json { file: file.clone(), cause };
        let raw: Raw<'a> = serde_json::from_str(text).map_err(json)?;
        let Some(all) = raw.plugins.filter(|all| !all.is_empty()) else {
            return Err(ConfigError::NoList { file });
        };
        if !VERSIONS.contains(&&*raw.cni_version) {
            return Err(ConfigError::Version { file, found: raw.cni_version.into() });
        }
        let mut plugins = Vec::new();
        for one in all {
            let Plugin { kind } = serde_json::from_str(one.get()).map_err(json)?;
            // It is a part of the text.
            let start = one.get().as_ptr() as usize - text.as_ptr() as usize;
            plugins.push((kind.into(), start..start + one.get().len()));
        }
        Ok(Self { file, text, network: raw.name.into(), plugins })
    }

    /// Our own keys; `None` if we are not in the chain.
    ///
    /// # Errors
    /// All faults of them.
    pub fn ours(&self) -> Result<Option<Task>, ScenarioError> {
        let Some(position) = self.position() else { return Ok(None) };
        let whole = self.text.replace('\t', " ");
        let root = Node::document(&whole, &self.file)?;
        let node = root.get("plugins").and_then(Node::list).and_then(|all| all.get(position));
        node.map(|node| own_keys_of(&self.file, self.text, node)).transpose()
    }

    /// Our place in the chain.
    fn position(&self) -> Option<usize> {
        self.plugins.iter().position(|(kind, _)| kind == PLUGIN)
    }

    /// The text with us at the end of the chain, or in our place, with these keys of `link`.
    ///
    /// # Errors
    /// If the keys have errors.
    pub fn with(&self, link: &[(String, String)], fails_closed: bool) -> Result<String, ScenarioError> {
        let mut capabilities = vec!["io.kubernetes.cri.pod-annotations"];
        if self.plugins.iter().all(|(kind, _)| kind != BANDWIDTH) {
            capabilities.push(BANDWIDTH);
        }
        let capabilities: Vec<_> = capabilities.iter().map(|name| format!("\"{name}\": true")).collect();
        let mut ours =
            format!("{{ \"type\": \"{PLUGIN}\", \"capabilities\": {{ {} }}", capabilities.join(", "));
        if !link.is_empty() {
            let json = |text: &String| Value::from(text.as_str());
            let keys: Vec<_> =
                link.iter().map(|(key, value)| format!("{}: {}", json(key), json(value))).collect();
            ours += &format!(", \"link\": {{ {} }}", keys.join(", "));
        }
        if fails_closed {
            ours += ", \"fail\": \"closed\"";
        }
        ours += " }";
        own_keys("--link", &ours)?;
        let mut text = self.text.to_owned();
        match (self.position(), self.plugins.last()) {
            (Some(position), _) => text.replace_range(self.plugins[position].1.clone(), &ours),
            (None, Some((_, last))) => {
                let line = self.text[..last.start].rfind('\n').map_or(0, |end| end + 1);
                let before = &self.text[line..last.start];
                let gap =
                    if line > 0 && before.trim().is_empty() { format!("\n{before}") } else { " ".into() };
                text.insert_str(last.end, &format!(",{gap}{ours}"));
            }
            // A chain that was read has plugins.
            (None, None) => {}
        }
        Ok(text)
    }

    /// The text without us; `None` if we are not in the chain.
    pub fn without(&self) -> Option<String> {
        let position = self.position()?;
        let own = self.plugins[position].1.clone();
        let gone = match (position.checked_sub(1), self.plugins.get(position + 1)) {
            (Some(before), _) => self.plugins[before].1.end..own.end,
            (None, Some((_, after))) => own.start..after.start,
            (None, None) => own,
        };
        let mut text = self.text.to_owned();
        text.replace_range(gone, "");
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLANNEL: &str = r#"{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {
      "type": "flannel",
      "delegate": { "hairpinMode": true, "isDefaultGateway": true }
    },
	{ "type": "portmap", "capabilities": { "portMappings": true } }
  ]
}
"#;

    #[test]
    fn the_plugin_is_put_at_the_end_and_taken_away_again() {
        let list = ConfigList::read(FLANNEL, "10-flannel.conflist").unwrap();
        assert_eq!((&*list.network, list.without()), ("cbr0", None));
        let link = [("delay".to_owned(), "5ms".to_owned()), ("up.loss".into(), "1%".into())];
        let text = list.with(&link, true).unwrap();
        assert!(text.contains("true } },\n\t{ \"type\": \"narrows-cni\", \"capabilities\": {"), "{text}");
        let with = ConfigList::read(&text, "x").unwrap();
        let ours = with.ours().unwrap().unwrap();
        assert!(ours.fails_closed && ours.wish.unwrap().keys.has("up.loss"));
        assert_eq!(with.without().as_deref(), Some(FLANNEL));
        // A second time, it is replaced.
        let again = with.with(&[], false).unwrap();
        assert_eq!(again.matches(PLUGIN).count(), 1);
        assert!(!again.contains("5ms"), "{again}");
    }

    #[test]
    fn a_chain_on_one_line_stays_on_it() {
        let text = r#"{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"bridge"},{"type":"bandwidth"}]}"#;
        let list = ConfigList::read(text, "x").unwrap();
        let with = list.with(&[], false).unwrap();
        assert!(
            with.ends_with("annotations\": true } }]}") && !with.contains("\"bandwidth\": true"),
            "{with}"
        );
        assert_eq!(ConfigList::read(&with, "x").unwrap().without().as_deref(), Some(text));
        let first = r#"{"cniVersion":"1.0.0","name":"n","plugins":[ {"type":"narrows-cni"}, {"type":"x"}]}"#;
        let without = ConfigList::read(first, "x").unwrap().without().unwrap();
        assert_eq!(without, r#"{"cniVersion":"1.0.0","name":"n","plugins":[ {"type":"x"}]}"#);
    }

    #[test]
    fn what_is_no_chain_is_refused_and_faults_have_their_lines() {
        for (text, part) in [
            ("{", "x: EOF"),
            (r#"{"cniVersion":"1.0.0","name":"n","type":"bridge"}"#, "no list of `plugins`"),
            (r#"{"cniVersion":"2.0.0","name":"n","plugins":[{"type":"bridge"}]}"#, "cniVersion is `2.0.0`"),
        ] {
            let error = ConfigList::read(text, "x").unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        let list = ConfigList::read(FLANNEL, "x").unwrap();
        assert!(list.with(&[("dealy".into(), "5ms".into())], false).is_err());
        let bad = list.with(&[("delay".into(), "5ms".into())], false).unwrap().replace("delay", "dealy");
        let error = ConfigList::read(&bad, "net.d/x").unwrap().ours().unwrap_err().to_string();
        assert!(error.contains("net.d/x:10:") && error.contains("did you mean `delay`?"), "{error}");
    }
}

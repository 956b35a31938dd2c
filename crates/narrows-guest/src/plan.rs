//! A plan, which one process of a machine passes to the next: names and values, each terminated by a zero byte, which
//! no argument, path or variable can contain.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Names and values in order; a name may occur several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    entries: Vec<(String, OsString)>,
}

impl Plan {
    pub(crate) fn add(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.entries.push((name.into(), value.as_ref().into()));
    }

    /// The values of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a OsStr> {
        self.entries.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_os_str())
    }

    /// The first value of a name.
    pub(crate) fn text(&self, name: &str) -> io::Result<&OsStr> {
        let found = self.entries.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_os_str()).ok_or_else(|| lacking(name))
    }

    /// The first value of a name, as a number.
    pub(crate) fn number(&self, name: &str) -> io::Result<u64> {
        self.text(name)?.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| lacking(name))
    }

    /// Whether the name exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, value) in &self.entries {
            for part in [name.as_bytes(), value.as_bytes()] {
                bytes.extend(part);
                bytes.push(0);
            }
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> io::Result<Self> {
        let mut parts = bytes.split(|byte| *byte == 0);
        let mut plan = Self::default();
        while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            let name = str::from_utf8(name).map_err(io::Error::other)?;
            plan.add(name, OsString::from_vec(value.to_vec()));
        }
        Ok(plan)
    }
}

fn lacking(name: &str) -> io::Error {
    io::Error::other(format!(
        "the plan of a machine lacks `{name}`: its parts are of different versions of narrows"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_survive_the_way() {
        let mut plan = Plan::default();
        plan.add("argument", "sh");
        plan.add("argument", "");
        plan.add("argument", OsStr::from_bytes(b"\xff\n"));
        plan.add("seed", "7");
        let back = Plan::decode(&plan.encode()).unwrap();
        assert_eq!(back, plan);
        assert_eq!(back.all("argument").count(), 3);
        assert_eq!(back.number("seed").unwrap(), 7);
        assert!(back.number("memory").is_err());
    }
}

//! Names of runs: `lab`, or a generated name such as `quiet-otter`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The maximum length of a name.
pub const LONGEST: usize = 32;

/// The name of a run: letters, digits and `-`, starting with a letter. So it cannot be confused with a process ID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunName(String);

/// Not a valid run name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid run name: letters (a-z, A-Z), digits and `-`, starting with a letter, at most {LONGEST} characters, as in dsl-lab-2"
)]
pub struct RunNameError(String);

impl FromStr for RunName {
    type Err = RunNameError;

    fn from_str(text: &str) -> Result<Self, RunNameError> {
        let is_known = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
        if begins && text.len() <= LONGEST && text.chars().all(is_known) {
            Ok(Self(text.into()))
        } else {
            Err(RunNameError(text.into()))
        }
    }
}

impl TryFrom<String> for RunName {
    type Error = RunNameError;

    fn try_from(text: String) -> Result<Self, RunNameError> {
        text.parse()
    }
}

impl From<RunName> for String {
    fn from(name: RunName) -> Self {
        name.0
    }
}

impl fmt::Display for RunName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl RunName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A name that is not in `taken`. The same number gives the same name, or if that is taken, the next free one.
    pub fn pick(number: u128, taken: &BTreeSet<Self>) -> Self {
        let pairs = ADJECTIVES.len() * ANIMALS.len();
        let first = (number % pairs as u128) as usize;
        let pair = |at: usize| (ADJECTIVES[at % ADJECTIVES.len()], ANIMALS[at / ADJECTIVES.len()]);
        let once = (0..pairs).map(|step| pair((first + step) % pairs));
        let plain = once.map(|(adjective, animal)| format!("{adjective}-{animal}"));
        let (adjective, animal) = pair(first);
        let numbered = (2_u64..).map(|more| format!("{adjective}-{animal}-{more}"));
        let mut all = plain.chain(numbered).map(Self);
        // There are more names than runs.
        all.find(|name| !taken.contains(name)).expect("the list of names has no end")
    }
}

const ADJECTIVES: [&str; 32] = [
    "able", "brave", "brisk", "broad", "bright", "calm", "clear", "cool", "crisp", "deep", "early", "even",
    "fair", "fleet", "fresh", "gentle", "grand", "keen", "kind", "late", "lively", "merry", "mild", "neat",
    "proud", "quick", "quiet", "ready", "steady", "sunny", "swift", "warm",
];
const ANIMALS: [&str; 32] = [
    "badger", "beaver", "bison", "crane", "curlew", "dolphin", "eider", "falcon", "ferret", "finch",
    "gannet", "grebe", "hare", "heron", "ibex", "kestrel", "lark", "lynx", "marten", "osprey", "otter",
    "pika", "plover", "puffin", "raven", "salmon", "seal", "stoat", "stork", "tern", "vole", "wren",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_letters_digits_and_hyphens() {
        for good in ["lab", "a", "DSL-2", "x--", &"a".repeat(32)] {
            assert_eq!(good.parse::<RunName>().unwrap().as_str(), good);
        }
        for bad in ["", "7", "4711", "-a", "2-lab", "a b", "a/b", "a.b", "é", "a\n", &"a".repeat(33)] {
            let error = bad.parse::<RunName>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{bad}` is not a valid run name: ")), "{error}");
        }
        assert!(serde_json::from_str::<RunName>("\"../x\"").is_err());
    }

    #[test]
    fn a_picked_name_is_free_and_the_same_each_time() {
        let mut taken = BTreeSet::new();
        let first = RunName::pick(7, &taken);
        assert_eq!(first, RunName::pick(7, &taken));
        let all = ADJECTIVES.len() * ANIMALS.len();
        for number in 0..all + 3 {
            let name = RunName::pick(7 * number as u128, &taken);
            assert_eq!(name.as_str().parse::<RunName>().unwrap(), name);
            assert!(taken.insert(name));
        }
        assert!(taken.contains(&RunName("able-badger-2".into())), "{taken:?}");
    }
}

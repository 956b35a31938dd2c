//! The algorithms that the lab knows: the schedulers of scenarios, and "none".

use std::fmt;

use narrows_scenario::SchedulerKind;

/// A scheduling algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// No scheduler: the cost of generating the packets.
    None,
    /// A scheduler that scenarios can name.
    Of(SchedulerKind),
}

/// Alternative names of algorithms.
const ALIASES: [(&str, Algorithm); 1] = [("wf2q", Algorithm::Of(SchedulerKind::Wf2q))];

impl Algorithm {
    /// All schedulers available in scenarios.
    pub const SCHEDULERS: [Self; SchedulerKind::ALL.len()] = {
        let mut all = [Self::None; SchedulerKind::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = Self::Of(SchedulerKind::ALL[at]);
            at += 1;
        }
        all
    };

    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Of(kind) => kind.name(),
        }
    }

    /// Parses a list such as `fifo,drr,qfq`: case-insensitive names separated by commas; `all` stands for all of
    /// `known`. Duplicates count once.
    ///
    /// # Errors
    /// If a name is not in `known`.
    ///
    /// ```
    /// # use narrows_lab::Algorithm;
    /// use narrows_scenario::SchedulerKind::{Fifo, Qfq, Wf2q};
    /// let known = [Fifo, Qfq, Wf2q].map(Algorithm::Of);
    /// assert_eq!(Algorithm::parse_list("wf2q,FIFO", &known).unwrap(), [Wf2q, Fifo].map(Algorithm::Of));
    /// let error = Algorithm::parse_list("qfq,sjf", &known).unwrap_err();
    /// assert_eq!(error.to_string(), "`sjf` is not an algorithm that can be used here: fifo, qfq, wf2q+, all");
    /// ```
    pub fn parse_list(text: &str, known: &[Self]) -> Result<Vec<Self>, UnknownAlgorithm> {
        let mut list = Vec::new();
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let lower = name.to_ascii_lowercase();
            let named = |&&algorithm: &&Self| {
                algorithm.name() == lower || ALIASES.contains(&(lower.as_str(), algorithm))
            };
            let found = match lower.as_str() {
                "all" => known,
                _ => match known.iter().find(named) {
                    Some(one) => std::slice::from_ref(one),
                    None => return Err(UnknownAlgorithm { found: name.into(), known: known.into() }),
                },
            };
            for &algorithm in found {
                if !list.contains(&algorithm) {
                    list.push(algorithm);
                }
            }
        }
        if list.is_empty() {
            return Err(UnknownAlgorithm { found: text.into(), known: known.into() });
        }
        Ok(list)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name is not one of the available algorithms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownAlgorithm {
    found: String,
    known: Vec<Algorithm>,
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not an algorithm that can be used here: ", self.found)?;
        for algorithm in &self.known {
            write!(f, "{algorithm}, ")?;
        }
        write!(f, "all")
    }
}

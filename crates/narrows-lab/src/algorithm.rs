//! The algorithms that the lab knows, by name.

use std::fmt;

/// A scheduling algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// No scheduler at all: what generating the packets costs by itself.
    None,
    /// In the order of arrival.
    Fifo,
    /// Strict priorities.
    Prio,
    /// Strict priorities of three bands, by the type of service.
    PfifoFast,
    /// Deficit round robin.
    Drr,
    /// Worst-case fair weighted fair queueing.
    Wf2q,
    /// Quick fair queueing.
    Qfq,
    /// Group fair queueing.
    Gfq,
    /// Stochastic fair queueing.
    Sfq,
    /// Fair queueing with CoDel.
    FqCodel,
    /// Fair queueing with PIE.
    FqPie,
    /// The contention of 802.11 stations.
    Dcf,
}

/// Names that stand for an algorithm that the lab calls otherwise: KPS has no public source, and GFQ is in its place.
const ALIASES: [(&str, Algorithm); 2] = [("kps", Algorithm::Gfq), ("wf2q", Algorithm::Wf2q)];

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::None,
        Self::Fifo,
        Self::Prio,
        Self::PfifoFast,
        Self::Drr,
        Self::Wf2q,
        Self::Qfq,
        Self::Gfq,
        Self::Sfq,
        Self::FqCodel,
        Self::FqPie,
        Self::Dcf,
    ];

    /// Its name, as scenarios have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fifo => "fifo",
            Self::Prio => "prio",
            Self::PfifoFast => "pfifo_fast",
            Self::Drr => "drr",
            Self::Wf2q => "wf2q+",
            Self::Qfq => "qfq",
            Self::Gfq => "gfq",
            Self::Sfq => "sfq",
            Self::FqCodel => "fq_codel",
            Self::FqPie => "fq_pie",
            Self::Dcf => "dcf",
        }
    }

    /// Reads a list such as `fifo,drr,qfq`: names in any case, separated by commas; `all` is all of `known`. What is
    /// named twice counts once.
    ///
    /// # Errors
    /// When a name is none of `known`.
    ///
    /// ```
    /// # use narrows_lab::Algorithm;
    /// let known = [Algorithm::Fifo, Algorithm::Qfq, Algorithm::Gfq];
    /// assert_eq!(Algorithm::parse_list("kps,FIFO", &known).unwrap(), [Algorithm::Gfq, Algorithm::Fifo]);
    /// let error = Algorithm::parse_list("qfq,sjf", &known).unwrap_err();
    /// assert_eq!(error.to_string(), "`sjf` is no algorithm that can be used here: fifo, qfq, gfq (or kps), all");
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

/// A name is none of the algorithms that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownAlgorithm {
    found: String,
    known: Vec<Algorithm>,
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no algorithm that can be used here: ", self.found)?;
        for algorithm in &self.known {
            write!(f, "{algorithm}")?;
            if *algorithm == Algorithm::Gfq {
                write!(f, " (or kps)")?;
            }
            write!(f, ", ")?;
        }
        write!(f, "all")
    }
}

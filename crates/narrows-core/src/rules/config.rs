//! The configuration of a rule set.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Masked, NatConfig, Rule, StateConfig, Table};

/// The configuration of a rule set. The default has no rules, so all packets pass.
#[derive(Clone, Debug, Default)]
pub struct RuleSetConfig {
    /// The rules in any order; rules with the same number keep theirs. The number 0 stands for 100 more than the
    /// greatest before, as in [`RuleChange::Add`](super::RuleChange::Add).
    pub rules: Vec<Rule>,
    /// Tables by name. Tables that rules use but that are not listed are empty.
    pub tables: Vec<(String, Table)>,
    /// Translators by number.
    pub nats: Vec<(u32, NatConfig)>,
    /// The addresses of the host that the rules are on (`me`).
    pub me: Vec<Masked>,
    /// Lifetimes and limits of dynamic rules.
    pub states: StateConfig,
    /// The disabled sets, one bit each. Set 31 cannot be disabled.
    pub disabled_sets: u32,
}

//! What a rule set is made of.

use alloc::string::String;
use alloc::vec::Vec;

use super::{Masked, Rule, StateConfig, Table};

/// What a rule set is made of. The default has no rules, and all packets pass.
#[derive(Clone, Debug, Default)]
pub struct RuleSetConfig {
    /// The rules, in any order: those of one number stay in theirs. A number of 0 stands for 100 more than the greatest
    /// before, as with [`RuleChange::Add`](super::RuleChange::Add).
    pub rules: Vec<Rule>,
    /// Tables by name. Others that rules name have no entries.
    pub tables: Vec<(String, Table)>,
    /// The addresses of the host that the rules are on.
    pub me: Vec<Masked>,
    /// Lifetimes and bounds of dynamic rules.
    pub states: StateConfig,
    /// A bit for each set whose rules are not tried. Set 31 must not be among them.
    pub disabled_sets: u32,
}

//! Where a packet continues in the rules.

/// A position in a rule set: after the rule that sent a packet into a pipe or queue. It stays valid when
/// rules are added or removed, even that rule itself. The default is the position before the first rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The position is after the rule with this number …
    pub(crate) number: u16,
    /// The calls from which the packet has not returned: the number of a call stack that the rule set keeps.
    pub(crate) calls: u16,
    /// … and with this place in the order of insertion.
    pub(crate) order: u32,
}

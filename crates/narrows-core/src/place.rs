//! Where a packet goes on in the rules.

/// A place in a rule set: behind the rule that sent a packet into a pipe or queue. It stays what it is when rules are added
/// or taken out, also that very rule. The default is the place before the first rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Behind the rule of this number …
    pub(crate) number: u16,
    /// Which calls the packet has not returned from: it is the number of a stack that the rule set keeps.
    pub(crate) calls: u16,
    /// … that was the so-manieth to be added.
    pub(crate) order: u32,
}

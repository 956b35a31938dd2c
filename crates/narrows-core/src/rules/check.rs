//! Checks a rule.

use super::{Action, Addresses, Argument, Keep, Rule, RuleError, Tag, Test};

/// The number of the default rule.
pub(super) const DEFAULT: u16 = u16::MAX;
/// The set of the default rule, which is never disabled.
pub(super) const ALWAYS: u8 = 31;

/// Returns what is wrong with a rule, if anything.
pub(super) fn check(rule: &Rule) -> Result<(), RuleError> {
    let number = rule.number;
    if number == DEFAULT {
        return Err(RuleError::Number);
    }
    if rule.set > ALWAYS {
        return Err(RuleError::Set { rule: number, set: rule.set });
    }
    if let Some(Tag::Add(tag) | Tag::Remove(tag)) = rule.tag
        && (tag == 0 || tag == u16::MAX)
    {
        return Err(RuleError::Tag { rule: number, tag });
    }
    if let Some(Keep::Limit { most: 0, .. }) = rule.keep {
        return Err(RuleError::NoFlows { rule: number });
    }
    match rule.action {
        Action::SkipTo(Argument::Number(to)) if to <= number.into() => {
            return Err(RuleError::SkipsBackwards { rule: number, to });
        }
        Action::SkipTo(Argument::Number(to)) | Action::Call(Argument::Number(to)) if to > DEFAULT.into() => {
            return Err(RuleError::NoSuchNumber { rule: number, to });
        }
        Action::SetDscp(Argument::Number(dscp)) if dscp > 63 => {
            return Err(RuleError::CodePoint { rule: number, dscp });
        }
        Action::CheckState if rule.keep.is_some() => {
            return Err(RuleError::KeepsNothing { rule: number });
        }
        _ => {}
    }
    if takes_argument(rule.action) && !looks_up(rule) {
        return Err(RuleError::NoLookup { rule: number });
    }
    Ok(())
}

/// Whether an action uses the value of a table lookup.
pub(super) const fn takes_argument(action: Action) -> bool {
    use Action::{Call, Pipe, Queue, SetDscp, SkipTo};
    match action {
        SkipTo(argument) | Call(argument) | Pipe(argument) | Queue(argument) | SetDscp(argument) => {
            matches!(argument, Argument::TableArgument)
        }
        _ => false,
    }
}

fn looks_up(rule: &Rule) -> bool {
    let is_lookup = |test: &Test| match test {
        Test::Lookup { .. } => true,
        Test::Source(addresses) | Test::Destination(addresses) => matches!(addresses, Addresses::Table(_)),
        _ => false,
    };
    rule.terms.iter().any(|term| term.0.iter().any(|literal| is_lookup(&literal.test)))
}

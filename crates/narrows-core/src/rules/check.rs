//! Checks a rule.

use super::{Action, Addresses, Argument, Keep, NextHop, Rule, RuleError, Tag, Test};

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
        Action::SetFib(Argument::Number(fib)) if fib > u16::MAX.into() => {
            return Err(RuleError::Fib { rule: number, fib });
        }
        Action::SetDscp(Argument::Number(dscp)) if dscp > 63 => {
            return Err(RuleError::CodePoint { rule: number, dscp });
        }
        Action::CheckState if rule.keep.is_some() => {
            return Err(RuleError::KeepsNothing { rule: number });
        }
        _ => {}
    }
    if (takes_argument(rule.action) || tests(rule).any(takes_found)) && !looks_up(rule) {
        return Err(RuleError::NoLookup { rule: number });
    }
    Ok(())
}

/// Whether an action uses the value of a table lookup.
pub(super) const fn takes_argument(action: Action) -> bool {
    use Action::{Call, Nat, Pipe, Queue, SetDscp, SetFib, SetMark, SkipTo};
    if matches!(action, Action::Forward(NextHop::TableArgument)) {
        return true;
    }
    let (SkipTo(argument) | Call(argument) | Pipe(argument) | Queue(argument) | SetDscp(argument)
    | SetMark(argument) | SetFib(argument) | Nat(argument)) = action
    else {
        return false;
    };
    matches!(argument, Argument::TableArgument)
}

/// Whether a condition uses the value of a table lookup.
const fn takes_found(test: &Test) -> bool {
    matches!(test, Test::Mark { value: Argument::TableArgument, .. })
}

fn tests(rule: &Rule) -> impl Iterator<Item = &Test> {
    rule.terms.iter().flat_map(|term| &term.0).map(|literal| &literal.test)
}

fn looks_up(rule: &Rule) -> bool {
    tests(rule).any(|test| match test {
        Test::Lookup { .. } | Test::Flow(_) => true,
        Test::Source(addresses) | Test::Destination(addresses) => matches!(addresses, Addresses::Table(_)),
        _ => false,
    })
}

//! `set enable | disable | move | swap | show`.

use super::lexer::Words;
use super::numbers;
use super::reader::{LAST, set_number, unknown};
use crate::problem::Problem;

/// `set …`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetCommand {
    /// One bit for each set.
    Enable {
        /// Sets to enable.
        enable: u32,
        /// Sets to disable.
        disable: u32,
    },
    /// `set move rule N to S`
    MoveRule {
        /// The number of the rules.
        rule: u16,
        /// The new set.
        to: u8,
    },
    /// `set move A to B`
    Move {
        /// The old set.
        from: u8,
        /// The new set.
        to: u8,
    },
    /// `set swap A B`
    Swap(u8, u8),
    /// `set show`
    Show,
}

/// Parses what follows `set`.
pub(super) fn read(words: &mut Words<'_>) -> Result<SetCommand, Problem> {
    const KNOWN: &[&str] = &["enable", "disable", "move", "swap", "show"];
    let verb = words.expect("a command about sets")?;
    match verb.text.as_str() {
        "show" => Ok(SetCommand::Show),
        "swap" => {
            let mut set = || set_number(words.expect("the number of a set")?);
            Ok(SetCommand::Swap(set()?, set()?))
        }
        "move" => {
            let rule = words.take_if(&["rule"]).is_some();
            let from = words.expect(if rule { "the number of a rule" } else { "the number of a set" })?;
            let to = words.expect("`to`")?;
            if to.text != "to" {
                return Err(to.expected("`to`"));
            }
            let to = set_number(words.expect("the number of a set")?)?;
            Ok(match rule {
                true => {
                    let rule = numbers::decimal(from, "the number of a rule", 1..=LAST)? as u16; // at most LAST
                    SetCommand::MoveRule { rule, to }
                }
                false => SetCommand::Move { from: set_number(from)?, to },
            })
        }
        "enable" | "disable" => {
            let mut enabling = verb.text == "enable";
            let (mut enable, mut disable) = (0_u32, 0_u32);
            while let Some(word) = words.take() {
                match word.text.as_str() {
                    "enable" => enabling = true,
                    "disable" => enabling = false,
                    _ => {
                        let set = set_number(word)?;
                        if set == 31 && !enabling {
                            return Err(word
                                .problem("set 31 cannot be disabled")
                                .help("its rules are always active, as in ipfw"));
                        }
                        let (this, other) =
                            if enabling { (&mut enable, disable) } else { (&mut disable, enable) };
                        *this |= 1 << set;
                        if other >> set & 1 == 1 {
                            return Err(word.problem(format!("set {set} is both enabled and disabled")));
                        }
                    }
                }
            }
            match enable | disable {
                0 => Err(words.missing("the number of a set")),
                _ => Ok(SetCommand::Enable { enable, disable }),
            }
        }
        other => Err(unknown(verb, other, "command about sets", KNOWN, &[])),
    }
}

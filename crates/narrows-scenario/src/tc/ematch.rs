//! Extended matches of the kind `basic`: `match 'meta(priority eq 6) and u32(u8 0x10 0xff at 9)'`.
//!
//! Source: `tc-ematch(8)` of iproute2 and `em_meta.c`, `em_u32.c` of Linux. Only conditions joined by `and`.

use super::bands::Bands;
use super::both::both;
use super::u32::condition_of_bytes;
use crate::dialect::{Word, Words};
use crate::problem::{Found, Problem};
use crate::value::Match;

/// Parses what follows the word `match`. Returns whether a packet can match.
pub(super) fn read(after: Word<'_>, words: &mut Words<'_>, all: &mut Match) -> Result<bool, Problem> {
    let text = words.expect(after, "conditions")?;
    let mut possible = true;
    for part in text.text.split(" and ") {
        let part = text.part(part.trim());
        let wrong = || {
            part.problem(format!("{} is not understood", Found(part.text)))
                .help("understood: `meta(priority eq N)` and `u32(u8 VALUE MASK at N)`, joined by `and`")
        };
        let (name, inside) =
            part.text.strip_suffix(')').and_then(|part| part.split_once('(')).ok_or_else(wrong)?;
        let one = match name {
            "meta" => priority(inside).ok_or_else(wrong)?,
            "u32" => {
                let pieces = pieces(part, inside);
                if !matches!(pieces[..], [_, _, _, at, _] if at.text == "at") {
                    return Err(wrong());
                }
                condition_of_bytes(part, &mut Words::of_words(pieces, part.span().end))?
            }
            _ => return Err(wrong()),
        };
        match one.and_then(|one| both(all, &one)) {
            Some(both) => *all = both,
            None => possible = false,
        }
    }
    Ok(possible)
}

/// The words of a part.
fn pieces<'a>(of: Word<'a>, inside: &'a str) -> Vec<Word<'a>> {
    inside.split_whitespace().map(|piece| of.part(piece)).collect()
}

/// `priority eq 6`: the kernel takes the priority of a packet from its TOS bits. The outer option is `None` for other
/// conditions, the inner one if no packet has this priority.
fn priority(inside: &str) -> Option<Option<Match>> {
    let words: Vec<&str> = inside.split_whitespace().collect();
    let ["priority", "eq" | "=" | "==", number] = words[..] else { return None };
    let number: usize = match number.strip_prefix("0x") {
        Some(digits) => usize::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    // Packets that are not IP have the priority 0, too, which is no condition on code points.
    if number == 0 {
        return None;
    }
    let bits = Bands::OF_POINTS.iter().find(|(_, priority)| *priority == number);
    Some(bits.map(|(bits, _)| Match { dscps: Bands::points(*bits).collect(), ..Match::default() }))
}

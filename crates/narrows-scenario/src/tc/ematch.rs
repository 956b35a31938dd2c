//! Extended matches of the kind `basic`: `match 'cmp(u16 at 2 layer 1 gt 1000) and not u32(u8 0x10 0xff at 9)'`.
//!
//! Source: `tc-ematch(8)` of iproute2; `ematch.c`, `em_cmp.c`, `em_meta.c`, `em_u32.c` of Linux. `and` and `or` have the same
//! precedence, and what follows belongs together: `A and B or C` is `A and (B or C)`. An expression becomes a list of
//! conditions of which one must hold.

use std::ops::Range;

use narrows_core::Bytes;
use narrows_core::classify::Families;

use super::bands::Bands;
use super::both::both;
use super::u32::{Comparison, Field, condition_of_bytes, condition_of_fields};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::{Found, Problem};
use crate::value::Match;

/// Conditions of which one must hold; none if no packet matches.
type Any = Vec<Match>;

/// Packets that match an expression, and those that do not. For some expressions, the latter are no such list.
struct Split {
    yes: Any,
    no: Option<Any>,
}

/// The most conditions that an expression may come to.
const MOST: usize = 1024;
/// The most parentheses within one another.
const DEEPEST: usize = 16;

/// Parses what follows the word `match`, in a filter of these packets.
pub(super) fn read(
    after: Word<'_>,
    words: &mut Words<'_>,
    families: Families,
    lengths: Lengths,
) -> Result<Vec<Match>, Problem> {
    let first = words.expect(after, "conditions")?;
    let (text, span) = whole(first, words);
    let text = Word::new(&text, &span);
    let mut parser = Parser { whole: text, left: text.text, families, lengths };
    let split = parser.expression(0)?;
    match parser.word() {
        None => Ok(joined(split.yes)),
        Some(word) => Err(word.problem(format!("found {}, expected `and` or `or`", Found(word.text)))),
    }
}

/// An expression that a shell has not been told to keep together: its words up to the one behind which nothing is open.
fn whole(first: Word<'_>, words: &mut Words<'_>) -> (String, Range<usize>) {
    let (mut text, mut span) = (first.text.to_owned(), first.span());
    let joins = |word: &str| ["and", "or", "not"].iter().any(|known| word.eq_ignore_ascii_case(known));
    while let Some(next) = words.peek() {
        let is_open = text.matches('(').count() > text.matches(')').count();
        if !is_open && !joins(next.text) && !text.rsplit(' ').next().is_some_and(joins) {
            break;
        }
        words.take();
        text.push(' ');
        text += next.text;
        span.end = next.span().end;
    }
    (text, span)
}

/// What the length of a packet counts where the filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lengths {
    Packets,
    /// With the header of Ethernet.
    Frames,
}

impl Lengths {
    /// Packets that are longer there.
    pub(super) fn longer(self, than: Bytes) -> Box<Match> {
        let most = u32::try_from(than.get()).unwrap_or(u32::MAX).saturating_sub(self.header());
        Box::new(Match { length: Some(most.saturating_add(1)..=u32::MAX), ..Match::default() })
    }

    /// What is counted.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Packets => "as IP packets",
            Self::Frames => "as frames of Ethernet",
        }
    }

    const fn header(self) -> u32 {
        if matches!(self, Self::Frames) { 14 } else { 0 }
    }
}

/// Conditions of which one must hold, with neighbours joined that differ in one part only.
fn joined(all: Any) -> Any {
    let mut found = Any::new();
    for one in all {
        if !found.last_mut().is_some_and(|last| join(last, &one)) {
            found.push(one);
        }
    }
    found
}

/// Takes the packets of another condition in, if that is possible.
fn join(into: &mut Match, other: &Match) -> bool {
    fn without(one: &Match) -> Match {
        Match { length: None, ..one.clone() }
    }
    let (Some(own), Some(more)) = (&into.length, &other.length) else { return false };
    if without(into) != without(other) {
        return false;
    }
    let (low, high) = (own.start().min(more.start()), own.end().max(more.end()));
    let touches = *own.start() <= more.end() + 1 && *more.start() <= own.end() + 1;
    let all = *low..=*high;
    if touches {
        into.length = Some(all);
    }
    touches
}

struct Parser<'a> {
    whole: Word<'a>,
    left: &'a str,
    families: Families,
    lengths: Lengths,
}

impl<'a> Parser<'a> {
    /// The next word: `and`, `(`, or a name.
    fn word(&self) -> Option<Word<'a>> {
        let left = self.left.trim_start();
        let end = left.find(|c: char| c.is_whitespace() || c == '(' || c == ')').unwrap_or(left.len());
        let end = end.max(left.chars().next()?.len_utf8());
        Some(self.whole.part(&left[..end]))
    }

    fn take(&mut self) -> Option<Word<'a>> {
        let word = self.word()?;
        self.left = &self.left.trim_start()[word.text.len()..];
        Some(word)
    }

    fn expression(&mut self, depth: usize) -> Result<Split, Problem> {
        let mut terms = vec![self.term(depth)?];
        let mut joined = Vec::new();
        while let Some(word) = self.word().filter(|word| matches!(word.text, "and" | "AND" | "or" | "OR")) {
            self.take();
            joined.push(word.text.eq_ignore_ascii_case("and"));
            terms.push(self.term(depth)?);
        }
        let mut all = terms.pop().unwrap_or(Split { yes: Vec::new(), no: None });
        for (term, is_and) in terms.into_iter().rev().zip(joined.into_iter().rev()) {
            all = match is_and {
                true => Split { yes: self.all_of(&term.yes, &all.yes)?, no: either(term.no, all.no) },
                false => Split {
                    yes: [term.yes, all.yes].concat(),
                    no: match (term.no, all.no) {
                        (Some(one), Some(other)) => Some(self.all_of(&one, &other)?),
                        _ => None,
                    },
                },
            };
        }
        Ok(all)
    }

    fn term(&mut self, depth: usize) -> Result<Split, Problem> {
        let word = self.take().ok_or_else(|| self.whole.problem("a condition is missing"))?;
        if word.text.eq_ignore_ascii_case("not") {
            let Split { yes, no } = self.term(depth)?;
            let no = no.ok_or_else(|| {
                word.problem("`not` before a condition whose opposite is no list of conditions")
                    .help("understood: not cmp(…), not u32(…)")
            })?;
            return Ok(Split { yes: no, no: Some(yes) });
        }
        if word.text == "(" {
            if depth == DEEPEST {
                return Err(word.problem(format!("more than {DEEPEST} parentheses within one another")));
            }
            let inside = self.expression(depth + 1)?;
            self.close(word)?;
            return Ok(inside);
        }
        let start = word.text.as_ptr() as usize - self.whole.text.as_ptr() as usize;
        let rest = &self.whole.text[start..];
        let end = rest.find(')').map_or(rest.len(), |end| end + 1);
        let part = self.whole.part(&rest[..end]);
        self.left = &rest[end..];
        self.condition(part)
    }

    fn close(&mut self, open: Word<'a>) -> Result<(), Problem> {
        match self.take() {
            Some(word) if word.text == ")" => Ok(()),
            _ => Err(open.problem("`(` without its `)`")),
        }
    }

    /// One condition, `name(arguments)`.
    fn condition(&self, part: Word<'a>) -> Result<Split, Problem> {
        let wrong = || {
            part.problem(format!("{} is not understood", Found(part.text)))
                .help("understood: `cmp(u16 at N layer 1 gt VALUE)`, `u32(u8 VALUE MASK at N)`, `nbyte(TEXT at N layer 1)`, `meta(pkt_len gt N)`, `meta(protocol eq 0x8100)` and `meta(priority eq N)`, joined by `and`, `or` and `not`")
        };
        let (name, inside) =
            part.text.strip_suffix(')').and_then(|part| part.split_once('(')).ok_or_else(wrong)?;
        let words = pieces(part, inside);
        match name.trim() {
            "meta" if words.first().is_some_and(|word| word.text == "pkt_len") => {
                let [_, how, value] = words[..] else { return Err(wrong()) };
                let comparison = Comparison::named(how.text).ok_or_else(wrong)?;
                let value = units::integer(value, "a length", 0, 0xffff)? as u32;
                let range = |low: u32, high: u32| {
                    let header = self.lengths.header();
                    let possible = low <= high && high >= header;
                    let length = Some(low.saturating_sub(header)..=high.saturating_sub(header));
                    possible.then(|| Match { length, ..Match::default() })
                };
                let most = 0xffff + self.lengths.header();
                let less = value.checked_sub(1).and_then(|high| range(0, high));
                let (equal, more) = (range(value, value), range(value + 1, most));
                let (yes, no) = match comparison {
                    Comparison::Equal => (vec![equal], vec![less, more]),
                    Comparison::Less => (vec![less], vec![equal, more]),
                    Comparison::Greater => (vec![more], vec![less, equal]),
                };
                let some = |list: Vec<Option<Match>>| list.into_iter().flatten().collect();
                Ok(Split { yes: some(yes), no: Some(some(no)) })
            }
            "nbyte" => self.bytes(part, words, &wrong),
            "meta" if words.first().is_some_and(|word| word.text == "protocol") => {
                of_ether_type(inside).ok_or_else(wrong)
            }
            "meta" => {
                let yes = priority(inside).ok_or_else(wrong)?.into_iter().collect();
                Ok(Split { yes, no: None })
            }
            "cmp" => self.compare(part, words, &wrong),
            "u32" => {
                let [kind, value, mask, at, _] = words[..] else { return Err(wrong()) };
                if at.text != "at" {
                    return Err(wrong());
                }
                let mut all = Words::of_words(words.clone(), part.span().end);
                let yes = condition_of_bytes(part, &mut all)?.into_iter().collect();
                // The opposite of an equality.
                let opposite = (|| {
                    let bytes = width(kind.text)?;
                    let number = |text: &str| {
                        let digits = text.strip_prefix("0x").unwrap_or(text);
                        u32::from_str_radix(digits, 16).ok()
                    };
                    let mask = number(mask.text)?;
                    let value = units::integer(value, "a number", 0, i64::from(u32::MAX)).ok()? as u32;
                    let at = words[4].text.parse().ok()?;
                    let fields = Comparison::Equal.fields(value & mask, mask, bytes, true);
                    self.fields(part, &fields, at, bytes).ok()
                })();
                Ok(Split { yes, no: opposite })
            }
            _ => Err(wrong()),
        }
    }

    /// `nbyte("GET" at 0 layer 2)`.
    fn bytes(
        &self,
        part: Word<'a>,
        words: Vec<Word<'a>>,
        wrong: &dyn Fn() -> Problem,
    ) -> Result<Split, Problem> {
        let mut words = Words::of_words(words, part.span().end);
        let text = words.take().ok_or_else(wrong)?;
        let (mut at, mut layer) = (0, "network");
        while let Some(word) = words.take() {
            match word.text {
                "at" => {
                    at = units::integer(words.expect(word, "an offset")?, "an offset", 0, 1500)? as i32;
                }
                "layer" => layer = words.expect(word, "a layer")?.text,
                _ => return Err(wrong()),
            }
        }
        let base = self.base(layer).ok_or_else(wrong)?;
        if self.families == Families::ALL {
            return Err(self.of_all_protocols(part));
        }
        let bytes = text.text.trim_matches(['"', '\'']).bytes();
        let yes = condition_of_fields(
            part,
            (base + at..).zip(bytes).map(|(at, byte)| (at, 1, Field { mask: 0xff, value: byte.into() })),
            self.families,
        )?;
        Ok(Split { yes: yes.into_iter().collect(), no: None })
    }

    /// The offset of a layer from the network header; headers have no options.
    fn base(&self, layer: &str) -> Option<i32> {
        match layer {
            "link" | "0" => Some(-14),
            "network" | "1" => Some(0),
            "transport" | "2" if self.families == Families::IPV6 => Some(40),
            "transport" | "2" => Some(20),
            _ => None,
        }
    }

    fn of_all_protocols(&self, part: Word<'a>) -> Problem {
        part.problem("a comparison in a filter of all protocols")
            .help("say whose packets it compares: protocol ip, or protocol ipv6")
    }

    /// `cmp(u16 at 2 layer network mask 0xffff gt 1000)`.
    fn compare(
        &self,
        part: Word<'a>,
        words: Vec<Word<'a>>,
        wrong: &dyn Fn() -> Problem,
    ) -> Result<Split, Problem> {
        let mut words = Words::of_words(words, part.span().end);
        let kind = words.take().ok_or_else(wrong)?;
        let bytes = width(kind.text).ok_or_else(wrong)?;
        let most = u32::MAX >> (32 - 8 * u32::from(bytes));
        let (mut at, mut layer, mut mask, mut comparison) = (0, "network", most, None);
        while let Some(word) = words.take() {
            match word.text {
                "at" => {
                    at = units::integer(words.expect(word, "an offset")?, "an offset", 0, 1500)? as i32;
                }
                "layer" => layer = words.expect(word, "a layer")?.text,
                "mask" => {
                    let value = words.expect(word, "a mask")?;
                    mask = units::integer(value, "a mask", 0, most.into())? as u32;
                }
                // Values are compared as numbers anyway.
                "trans" => {}
                name => {
                    let what = Comparison::named(name).ok_or_else(wrong)?;
                    let value = words.expect(word, "a number")?;
                    comparison = Some((what, units::integer(value, "a number", 0, u32::MAX.into())? as u32));
                }
            }
        }
        let (comparison, value) = comparison.ok_or_else(wrong)?;
        let base = self.base(layer).ok_or_else(wrong)?;
        let fields = |inverted| {
            let fields = comparison.fields(value, mask, bytes, inverted);
            self.fields(part, &fields, base + at, bytes)
        };
        Ok(Split { yes: fields(false)?, no: fields(true).ok() })
    }

    /// The conditions for a part of a header that has one of these values.
    fn fields(&self, part: Word<'a>, fields: &[Field], at: i32, bytes: u8) -> Result<Any, Problem> {
        if matches!(fields, [Field { mask: 0, .. }]) {
            return Ok(vec![Match { families: super::protocol::written(self.families), ..Match::default() }]);
        }
        if !fields.is_empty() && self.families == Families::ALL {
            return Err(self.of_all_protocols(part));
        }
        let mut all = Any::new();
        for field in fields {
            all.extend(condition_of_fields(part, [(at, bytes, *field)], self.families)?);
        }
        Ok(all)
    }

    /// Packets for which one of each list holds.
    fn all_of(&self, one: &[Match], other: &[Match]) -> Result<Any, Problem> {
        if one.len() * other.len() > MOST {
            return Err(self.whole.problem(format!("it comes to more than {MOST} conditions")));
        }
        Ok(one.iter().flat_map(|one| other.iter().filter_map(|other| both(one, other))).collect())
    }
}

/// Both lists.
fn either(one: Option<Any>, other: Option<Any>) -> Option<Any> {
    Some([one?, other?].concat())
}

fn width(kind: &str) -> Option<u8> {
    match kind {
        "u8" => Some(1),
        "u16" => Some(2),
        "u32" => Some(4),
        _ => None,
    }
}

/// The words of a part.
fn pieces<'a>(of: Word<'a>, inside: &'a str) -> Vec<Word<'a>> {
    inside.split_whitespace().map(|piece| of.part(piece)).collect()
}

/// `protocol eq 0x8100`: a packet with a VLAN tag, whose type that is, or one of IPv4 or IPv6 without one.
fn of_ether_type(inside: &str) -> Option<Split> {
    const TAG: u32 = 0x8100;
    let words: Vec<&str> = inside.split_whitespace().collect();
    let ["protocol", "eq" | "=" | "==", number] = words[..] else { return None };
    let number = match number.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let tagged = Match { vlans: vec![1..=4095], ..Match::default() };
    let untagged = |families: Vec<Families>| Match { vlans: vec![0..=0], families, ..Match::default() };
    let of = |own: Families, other: Families| {
        Some(Split { yes: vec![untagged(vec![own])], no: Some(vec![tagged.clone(), untagged(vec![other])]) })
    };
    match number {
        TAG => Some(Split { yes: vec![tagged], no: Some(vec![untagged(Vec::new())]) }),
        0x0800 => of(Families::IPV4, Families::IPV6.or(Families::OTHER)),
        0x86dd => of(Families::IPV6, Families::IPV4.or(Families::OTHER)),
        _ => None,
    }
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
    Some(bits.map(|(bits, _)| Bands::asks(*bits)))
}

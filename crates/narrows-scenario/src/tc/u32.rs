//! Filters of the kind `u32`: selectors, hash tables, and what they come to as conditions.
//!
//! Source: `cls_u32.c` of Linux and `f_u32.c` of iproute2. A filter compares bits at offsets. It is in a
//! bucket of a hash table; the root table has one bucket. A filter with a `link` continues in a bucket of
//! another table, which `hashkey` selects; where nothing matches there, it goes on behind that filter.

mod comparison;
mod header;
mod pattern;
mod selector;
mod tables;

pub(super) use comparison::Comparison;
pub(super) use header::having;
pub(super) use pattern::Field;
pub(super) use selector::mask;
pub(super) use tables::{Divisors, Ways, check_table};

use std::ops::RangeInclusive;

use narrows_core::classify::Families;

use super::Handle;
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::{Found, Problem};
use crate::value::Match;
use header::Unknown;
use pattern::Pattern;
use selector::Key;

/// The numbers of 16 bits that agree with a value and a mask, as ranges.
pub(super) fn ranges(value: u16, mask: u16) -> Result<Vec<RangeInclusive<u16>>, Problem> {
    pattern::Field { mask: mask.into(), value: (value & mask).into() }.ranges()
}

/// For `match ip` in a filter of `protocol ipv6`, and the other way round.
const OTHER_HEADER: &str = "`match ip` and `match ip6` compare bytes at the offsets that the fields have in a header of IPv4 and IPv6, whatever header the packets of the filter's `protocol` have, as in the kernel: `match ip6` is for `protocol ipv6`, and `match ip` for `protocol ip`.";

/// A filter of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct U32 {
    keys: Vec<Key>,
    /// The packets that it sees: `protocol`, or else the family of its selectors.
    families: Families,
    /// Whether `protocol` says that they are IP of one version.
    is_given: bool,
    /// Whether a selector names a field of the other version's header.
    is_other: bool,
    /// The table that it is in and the bucket; `None` for the root.
    table: Option<(u16, u8)>,
    /// The table that it leads to.
    link: Option<u16>,
    /// Bits that select the bucket there: their mask, and the offset of the 32 bits.
    hash: Option<(u32, i32)>,
    offset: Option<Offset>,
    /// Its number in the bucket, if given.
    node: Option<u16>,
    /// For `divisor N`, which makes a table and is no filter: the number of buckets.
    pub(super) makes: Option<(u16, u16)>,
}

/// Where the next header begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Offset {
    plus: i32,
    /// Adds the length of the IPv4 header: `at 0 mask 0f00 shift 6`.
    header: bool,
    /// Whether later offsets count from there.
    eats: bool,
}

/// A handle of this kind: `2:`, `2:7b`, `800::801`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id {
    table: u16,
    bucket: u8,
    node: u16,
}

impl Id {
    pub(super) fn read(word: Word<'_>) -> Result<Self, Problem> {
        // All of it as one number, as the kernel has it.
        if let Some(number) =
            word.text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok())
        {
            return Ok(Self {
                table: (number >> 20) as u16,
                bucket: (number >> 12) as u8,
                node: number as u16 & 0xfff,
            });
        }
        let mut parts = word.text.split(':');
        let mut number = |most: u16| match parts.next().unwrap_or_default() {
            "" => Some(0),
            digits => u16::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16)
                .ok()
                .filter(|number| *number <= most),
        };
        let parsed = (number(0xfff), number(0xff), number(0xfff));
        match parsed {
            (Some(table), Some(bucket), Some(node)) if word.text.contains(':') && parts.next().is_none() => {
                Ok(Self { table, bucket: bucket as u8, node })
            }
            _ => Err(word.problem(format!("{} is not a handle of u32", Found(word.text))).help(
                "write it like 2: for a table, 2:7b: for a bucket, and 800::801 for a filter, in hexadecimal",
            )),
        }
    }
}

impl Id {
    /// As one number. The root table has the number 0, and so has a filter that gets one later.
    pub(super) fn number(self) -> u32 {
        let table = if self.table == ROOT { 0 } else { u32::from(self.table) };
        table << 20 | u32::from(self.bucket) << 12 | u32::from(self.node)
    }
}

/// The first number that the kernel gives to a filter in a bucket.
pub(super) const FIRST_NODE: u32 = 0x800;
/// The part of a handle that numbers filters in a bucket.
pub(super) const NODE: u32 = 0xfff;

/// The number of the root table.
const ROOT: u16 = 0x800;

impl U32 {
    /// A filter without words yet, with the handle before its kind.
    pub(super) fn new(families: Families, handle: Option<Word<'_>>) -> Result<Self, Problem> {
        let id = handle.map(Id::read).transpose()?;
        let table = id.map(|id| (id.table, id.bucket)).filter(|table| table.0 != 0 && table.0 != ROOT);
        Ok(Self {
            keys: Vec::new(),
            families,
            is_given: matches!(families, Families::IPV4 | Families::IPV6),
            is_other: false,
            table,
            link: None,
            hash: None,
            offset: None,
            node: id.map(|id| id.node).filter(|node| *node != 0),
            makes: None,
        })
    }

    /// Its handle as a number: [`Id::number`].
    pub(super) fn number(&self) -> u32 {
        let (table, bucket) = self.table.unwrap_or_default();
        Id { table, bucket, node: self.node.unwrap_or_default() }.number()
    }

    /// Whether it leads to another table.
    pub(super) fn links(&self) -> bool {
        self.link.is_some()
    }

    /// Whether it is tried without a link.
    pub(super) fn is_at_root(&self) -> bool {
        self.table.is_none()
    }

    /// Takes an option; returns whether it is one.
    pub(super) fn option(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<bool, Problem> {
        match word.text {
            "match" => self.select(word, words)?,
            "ht" => {
                let id = Id::read(words.expect(word, "a table and a bucket")?)?;
                self.table = Some((id.table, id.bucket)).filter(|table| table.0 != 0 && table.0 != ROOT);
            }
            "link" => self.link = Some(Id::read(words.expect(word, "a table")?)?.table),
            "divisor" => {
                let buckets = words.expect(word, "the number of buckets")?;
                let number = units::integer(buckets, "a number of buckets", 1, 256)? as u16;
                if !number.is_power_of_two() {
                    return Err(buckets.problem(format!("{number} buckets are no power of two")));
                }
                let table = self.table.map(|(table, _)| table).ok_or_else(|| {
                    word.problem("`divisor` without the handle of a table")
                        .help("as in: handle 2: u32 divisor 256")
                })?;
                if self.node.is_some() || self.table.is_some_and(|(_, bucket)| bucket != 0) {
                    return Err(word
                        .problem("`divisor` of a filter")
                        .help("it makes a table: handle 2: rather than 2:1"));
                }
                self.makes = Some((table, number));
            }
            "sample" => self.sample(word, words)?,
            "hashkey" => self.hash = Some(hash_key(word, words)?),
            "offset" => self.offset = Some(offset(word, words, self.offset.unwrap_or_default())?),
            "eat" => self.offset.get_or_insert_default().eats = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn select(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
        let at = words.peek().unwrap_or(word);
        let mut selected = selector::read(word, words)?;
        // `match u32 0 0` and `match ip dst 0.0.0.0/0` compare nothing: packets of any protocol have it.
        selected.keys.retain(|key| key.field.mask != 0);
        if selected.keys.is_empty() {
            return Ok(());
        }
        self.keys.extend(selected.keys);
        if self.families == Families::ALL {
            self.families = selected.families;
        }
        if self.families.and(selected.families).is_empty() && self.is_given {
            self.is_other = true;
        } else if self.families.and(selected.families).is_empty() {
            let protocol = if selected.families == Families::IPV6 { "ipv6" } else { "ip" };
            return Err(at
                .problem(format!("`match {}` in a filter of other packets", at.text))
                .help(format!("`protocol` says which packets the filter sees: protocol {protocol}")));
        }
        Ok(())
    }

    /// `sample u32 0x10 0xff at 0`: the bucket of packets with this value.
    fn sample(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
        let selected = selector::read(word, words)?;
        let mut pattern = Pattern::default();
        selected.keys.iter().for_each(|key| {
            pattern.add(key.at, key.bytes, key.field);
        });
        let first = pattern.left().unwrap_or(0) & !3;
        let field = pattern.take(first, 4);
        if pattern.left().is_some() {
            return Err(word.problem("a sample of more than 32 bits"));
        }
        let mut divisor = 256;
        if let Some(word) = words.peek().filter(|word| word.text == "divisor") {
            words.take();
            divisor = units::integer(words.expect(word, "a number")?, "a number of buckets", 1, 256)? as u32;
        }
        let bucket = field.map_or(0, |field| field.value >> field.mask.trailing_zeros()) % divisor;
        match &mut self.table {
            Some((_, of)) => *of = bucket as u8,
            None => return Err(word.problem("`sample` without a table").help("as in: ht 2: sample …")),
        }
        Ok(())
    }

    /// The condition of a filter in the root table; `None` if no IP header has these bytes.
    pub(super) fn condition(&self, kind: Word<'_>) -> Result<Option<Match>, Problem> {
        let mut pattern = Pattern::default();
        for key in &self.keys {
            if !pattern.add(key.at, key.bytes, key.field) {
                return Err(Problem::new("no packet matches: it contradicts an earlier match").at(&key.span));
            }
        }
        let place = |at: i32| {
            let touches = |key: &&Key| (key.at..key.at + i32::from(key.bytes)).contains(&at);
            self.keys.iter().rev().find(touches).map_or(kind.span(), |key| key.span.clone())
        };
        match header::condition(pattern, self.families) {
            Ok(condition) => Ok(condition),
            Err(Unknown { at, problem }) if self.is_other => {
                Err((*problem).at(&place(at)).help(OTHER_HEADER))
            }
            Err(Unknown { at, problem }) => Err((*problem).at(&place(at))),
        }
    }

    /// What to say about selectors that name fields of another header than that of the packets.
    pub(super) fn of_other_header(&self) -> Option<&'static str> {
        self.is_other.then_some(OTHER_HEADER)
    }

    /// For people.
    pub(super) fn explained(&self, class: Option<Handle>) -> String {
        if let Some((table, buckets)) = self.makes {
            return format!("Makes the table {table:x}: of {buckets} buckets.");
        }
        let place = match self.table {
            Some((table, bucket)) => format!("A filter in the bucket {bucket:x} of the table {table:x}:"),
            None => "A filter".to_owned(),
        };
        let link = self.link.map_or(String::new(), |link| format!(" that goes on in the table {link:x}:"));
        let class = class.map_or(String::new(), |class| format!(", to the class {class}"));
        format!("{place}{link}{class}.")
    }

    /// Whether it counts from the next header where nothing says where that is.
    pub(super) fn misses_the_next_header(&self) -> bool {
        self.table.is_none() && self.keys.iter().any(|key| key.next)
    }
}

/// The condition of `u8 VALUE MASK at N`; `None` if no IP header has these bytes.
pub(super) fn condition_of_bytes(after: Word<'_>, words: &mut Words<'_>) -> Result<Option<Match>, Problem> {
    let selected = selector::read(after, words)?;
    let mut pattern = Pattern::default();
    selected.keys.iter().for_each(|key| {
        pattern.add(key.at, key.bytes, key.field);
    });
    header::condition(pattern, selected.families).map_err(|Unknown { problem, .. }| problem.at(&after.span()))
}

/// The condition of fields with these bits, each with its offset and its bytes, in packets of a family; `None` if no IP
/// header has them.
pub(super) fn condition_of_fields(
    place: Word<'_>,
    fields: impl IntoIterator<Item = (i32, u8, Field)>,
    families: Families,
) -> Result<Option<Match>, Problem> {
    let mut pattern = Pattern::default();
    fields.into_iter().for_each(|(at, bytes, field)| _ = pattern.add(at, bytes, field));
    header::condition(pattern, families).map_err(|Unknown { problem, .. }| problem.at(&place.span()))
}

/// `hashkey mask 0x000000ff at 12`.
fn hash_key(word: Word<'_>, words: &mut Words<'_>) -> Result<(u32, i32), Problem> {
    let (mut bits, mut at) = (0, 0);
    while let Some(part) = words.peek().filter(|part| matches!(part.text, "mask" | "at")) {
        words.take();
        let value = words.expect(part, "a number")?;
        match part.text {
            "mask" => bits = selector::mask(value, value.text, 32)?,
            _ => at = units::integer(value, "an offset", 0, 1500)? as i32,
        }
    }
    if bits == 0 {
        return Err(word.problem("`hashkey` without a mask").help("as in: hashkey mask 0x000000ff at 12"));
    }
    Ok((bits, at))
}

/// `offset at 0 mask 0f00 shift 6 plus 0 eat`.
fn offset(word: Word<'_>, words: &mut Words<'_>, before: Offset) -> Result<Offset, Problem> {
    let (mut at, mut bits, mut shift) = (0, 0, 0);
    let mut offset = before;
    while let Some(part) =
        words.peek().filter(|part| matches!(part.text, "at" | "mask" | "shift" | "plus" | "eat"))
    {
        words.take();
        if part.text == "eat" {
            offset.eats = true;
            continue;
        }
        let value = words.expect(part, "a number")?;
        match part.text {
            "at" => at = units::integer(value, "an offset", 0, 1500)?,
            "mask" => bits = selector::mask(value, value.text, 16)?,
            "shift" => shift = units::integer(value, "a number of bits", 0, 15)?,
            _ => offset.plus = units::integer(value, "a number of bytes", 0, 1500)? as i32,
        }
    }
    match (at, bits, shift) {
        (_, 0, _) => {}
        (0, 0x0f00, 6) => offset.header = true,
        _ => {
            return Err(word
                .problem("an `offset` that depends on other bytes than the length of the IPv4 header")
                .help("understood: offset at 0 mask 0f00 shift 6, and: offset plus 20"));
        }
    }
    Ok(offset)
}

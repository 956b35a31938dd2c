//! Flow masks: `mask src-ip 0x000000ff dst-port 0xffff`.
//!
//! As in ipfw, a mask `/n` selects the *low* n bits; for IPv6 addresses, the first n.

use narrows_core::classify::FlowMask;

use super::lexer::{Word, Words};
use super::numbers;
use crate::problem::{Found, Problem, nearest};

/// The fields, in the order in which they are written.
pub(super) const PARTS: &[&str] =
    &["proto", "src-ip", "src-port", "dst-ip", "dst-port", "src-ip6", "dst-ip6", "flow-id"];

/// Parses fields with their bits, up to a word that is not a field.
pub(super) fn read(words: &mut Words<'_>, remarks: &mut Vec<String>) -> Result<FlowMask, Problem> {
    let mut mask = FlowMask::NONE;
    let mut seen: Vec<&str> = Vec::new();
    let first = words.peek().cloned();
    while let Some(word) = words.peek() {
        let name = match word.text.as_str() {
            "src-ipv6" => "src-ip6",
            "dst-ipv6" => "dst-ip6",
            name => name,
        };
        if seen.contains(&name) {
            return Err(word.problem(format!("{} twice in one mask", Found(&word.text))));
        }
        match name {
            "all" => {
                words.take();
                mask = mask.or(FlowMask::ALL);
            }
            // A number after `queue` makes it the queue's length instead.
            "queue"
                if words
                    .peek_second()
                    .is_some_and(|next| next.text.starts_with(|c: char| c.is_ascii_digit())) =>
            {
                break;
            }
            "queue" => {
                words.take();
                mask.queue = true;
            }
            _ if PARTS.contains(&name) => {
                words.take();
                let bits = words.expect("the bits of the mask")?;
                part(&mut mask, name, bits, remarks)?;
            }
            _ => break,
        }
        seen.push(name);
    }
    match first {
        Some(word) if seen.is_empty() => {
            let problem = word.expected("a part of the header that the mask is for");
            let known = PARTS.iter().copied().chain(["all", "queue"]);
            Err(match nearest(&word.text, known) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("as in: mask src-ip 0x000000ff, or: mask all"),
            })
        }
        None => Err(words.missing("the part of the header that the mask is for")),
        Some(_) => Ok(mask),
    }
}

/// Sets one field of a mask.
pub(super) fn part(
    mask: &mut FlowMask,
    name: &str,
    bits: &Word,
    remarks: &mut Vec<String>,
) -> Result<(), Problem> {
    match name {
        "src-ip" => mask.source_v4 = of_bits(bits, 32, name, remarks)?,
        "dst-ip" => mask.destination_v4 = of_bits(bits, 32, name, remarks)?,
        "src-port" => mask.source_port = of_bits(bits, 16, name, remarks)? as u16, // of 16 bits
        "dst-port" => mask.destination_port = of_bits(bits, 16, name, remarks)? as u16,
        "proto" => mask.protocol = of_bits(bits, 8, name, remarks)? as u8, // of 8 bits
        "flow-id" => mask.flow_label = of_bits(bits, 20, name, remarks)?,
        "src-ip6" => mask.source_v6 = first_bits(bits, remarks)?,
        _ => mask.destination_v6 = first_bits(bits, remarks)?,
    }
    Ok(())
}

/// The error for a mask that distinguishes nothing.
fn nothing(word: &Word) -> Problem {
    word.problem(format!("{} is an empty mask, which does not separate flows", Found(&word.text)))
        .help("remove it, or give the bits that count")
}

fn of_bits(word: &Word, width: u32, name: &str, remarks: &mut Vec<String>) -> Result<u32, Problem> {
    let most = u32::MAX >> (32 - width);
    if let Some(count) = word.text.strip_prefix('/') {
        let count = numbers::decimal(&word.part(count), "a number of bits", 0..=width)?;
        let mask = most.checked_shr(width - count).unwrap_or(0);
        if mask == 0 {
            return Err(nothing(word));
        }
        remarks.push(format!("`{}` is the low {count} bits of `{name}`, as in ipfw: 0x{mask:x}", word.text));
        return Ok(mask);
    }
    let read: Result<u32, _> = numbers::integer(word, "a mask", most);
    match read {
        Ok(0) => Err(nothing(word)),
        Ok(mask) => Ok(mask),
        Err(problem) => {
            let digits =
                word.text.strip_prefix("0x").map_or(0, |digits| digits.trim_start_matches('0').len());
            let room = width.div_ceil(4) as usize;
            // ipfw reads a number of 64 bits and keeps the low 32; it refuses a wider mask of a port.
            if width == 32
                && let Some(wide) =
                    word.text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
                && wide as u32 != 0
            {
                let kept = wide as u32;
                remarks.push(format!(
                    "`{}` is wider than 32 bits: the low 32 count, as in ipfw: 0x{kept:x}",
                    word.text
                ));
                return Ok(kept);
            }
            if digits > room && word.text[2..].bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let more = digits - room;
                let plural = if more == 1 { "a digit" } else { "digits" };
                let count = if more == 1 { String::new() } else { format!("{more} ") };
                return Err(word
                    .problem(format!(
                        "the mask {} has {count}{plural} too many: {name} has {width} bits",
                        Found(&word.text)
                    ))
                    .help(format!("at most {room} hexadecimal digits: 0x{most:x}")));
            }
            Err(problem.help(format!("or as in 0x{most:x} or /{width}: `{name}` has {width} bits")))
        }
    }
}

fn first_bits(word: &Word, remarks: &mut Vec<String>) -> Result<u128, Problem> {
    let count = word.part(word.text.strip_prefix('/').unwrap_or(&word.text));
    let count = numbers::decimal(&count, "a number of bits", 0..=128)?;
    if count == 0 {
        return Err(nothing(word));
    }
    remarks.push(format!("`{}` is the first {count} bits of an IPv6 address", word.text));
    Ok(u128::MAX << (128 - count))
}

/// The fields of a mask, each with its bits as written.
pub(super) fn written(mask: &FlowMask) -> Vec<(&'static str, String)> {
    let hexadecimal = |value: u32, digits: usize| (value > 0).then(|| format!("0x{value:0digits$x}"));
    let v6 = |value: u128| (value > 0).then(|| format!("/{}", value.leading_ones()));
    let bits = [
        hexadecimal(mask.protocol.into(), 2),
        hexadecimal(mask.source_v4, 8),
        hexadecimal(mask.source_port.into(), 4),
        hexadecimal(mask.destination_v4, 8),
        hexadecimal(mask.destination_port.into(), 4),
        v6(mask.source_v6),
        v6(mask.destination_v6),
        hexadecimal(mask.flow_label, 5),
    ];
    PARTS.iter().zip(bits).filter_map(|(name, bits)| bits.map(|bits| (*name, bits))).collect()
}

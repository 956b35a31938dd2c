//! Options as tc prints them, and as it reads them.

use super::{Object, Token};
use crate::dialect::Word;

/// Words of statistics and of the host among the options, each with the number behind it.
const NUMBERS: &[&str] = &["direct_packets_stat", "direct_qlen", "ver", "level", "rate_estimator"];

/// The options of a discipline or a class as they are typed.
pub(super) fn as_typed<'a>(kind: &str, object: Object, words: impl Iterator<Item = Word<'a>>) -> Vec<Token> {
    let mut typed: Vec<Token> = Vec::new();
    let mut words = words.peekable();
    // `-d` prints the overhead of each burst, which is that of the rate.
    let mut is_behind_a_burst = false;
    while let Some(word) = words.next() {
        let span = word.span();
        let text = word.text.trim_matches('*');
        let mut put = |text: &str| typed.push(Token::new(text, &span));
        if NUMBERS.contains(&text) || is_behind_a_burst && matches!(text, "mpu" | "overhead") {
            words.next();
            continue;
        }
        match text {
            // `[Unknown qdisc, optlen=12]`, `(pinned)`.
            _ if text.starts_with(['[', '(']) => break,
            "" | "offloaded" => {}
            "lat" => put("latency"),
            "bandwidth" if words.peek().is_some_and(|next| next.text == "unlimited") => {}
            // Values of CAKE that are not options.
            "nonat" | "nowash" | "no-ack-filter" | "split-gso" | "raw" if kind == "cake" => put(text),
            _ if without_unit(text, "p").is_some() => put(&text[..text.len() - 1]),
            _ if kind == "sfq" && without_unit(text, "sec").is_some() => put(text.trim_end_matches("sec")),
            // `flows 128/1024`: the flows, and the divisor of the hash.
            _ if kind == "sfq" && text.split_once('/').is_some() => {
                let (flows, divisor) = text.split_once('/').unwrap_or((text, ""));
                for word in [flows, "divisor", divisor] {
                    put(word);
                }
            }
            // `burst 1600b/8`: the burst, and the size of a cell.
            _ if object == Object::Class && without_cell(text).is_some() => {
                put(without_cell(text).unwrap_or(text))
            }
            _ => put(text),
        }
        is_behind_a_burst |= matches!(text, "burst" | "cburst");
    }
    typed
}

fn without_unit<'a>(text: &'a str, unit: &str) -> Option<&'a str> {
    text.strip_suffix(unit)
        .filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn without_cell(text: &str) -> Option<&str> {
    let (size, cell) = text.split_once('/')?;
    cell.bytes().all(|byte| byte.is_ascii_digit()).then_some(size)
}

//! What `tc filter show` prints.
//!
//! ```text
//! filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:10
//!   match 0a000001/ffffffff at 16
//! ```

use std::ops::Range;

use super::{Entry, Object, Token, words};
use crate::dialect::Word;

const KINDS: [&str; 4] = ["u32", "fw", "flower", "matchall"];

/// Reads a line that shows a filter; `None` if it is none. Of a table, or a filter's kind alone, nothing is to be made.
pub(super) fn shown<'a>(text: &'a str, line: &Range<usize>, device: &str) -> Option<Entry<'a>> {
    let all: Vec<Word<'a>> = words(text, line).collect();
    let behind = |name: &str| {
        let at = all.iter().position(|word| word.text == name)?;
        all.get(at + 1).copied()
    };
    let at = all.iter().position(|word| KINDS.contains(&word.text))?;
    let (parent, kind) = (behind("parent")?, all[at]);
    if all.get(1).is_some_and(|verb| matches!(verb.text, "add" | "change" | "replace" | "delete" | "del")) {
        return None;
    }
    let pair = |name: &str| {
        let at = all.iter().position(|word| word.text == name);
        at.and_then(|at| all.get(at..at + 2)).unwrap_or_default()
    };
    // The mark of `fw` is its handle, which stands before the kind in a command.
    let mark = if kind.text == "fw" { pair("handle") } else { &[] };
    let typed = [pair("protocol"), pair("pref"), mark, &[kind]].concat();
    let class = behind("flowid").or_else(|| behind("classid")).or_else(|| behind("*flowid"));
    Some(Entry {
        object: Object::Filter,
        kind,
        handle: parent,
        parent: Some(parent.text.to_owned()),
        is_placed: true,
        device: behind("dev").map_or(device, |device| device.text).to_owned(),
        leaf: None,
        options: typed.into_iter().map(|word| Token::new(word.text, &word.span())).collect(),
        class,
        span: line.clone(),
    })
}

/// The words of a line below a filter, as they are typed.
pub(super) fn below<'a>(line: impl Iterator<Item = Word<'a>>) -> Vec<Token> {
    let mut typed = Vec::new();
    let mut words = line.peekable();
    while let Some(word) = words.next() {
        let span = word.span();
        let mut put = |text: String| typed.push(Token::new(text, &span));
        match word.text {
            "not_in_hw" | "in_hw" | "eth_type" | "ref" | "bind" | "index" | "overhead" => {
                if !word.text.ends_with("in_hw") {
                    words.next();
                }
            }
            "police" => {
                put("police".into());
                // Its number.
                words.next_if(|next| next.text.starts_with("0x"));
            }
            text => match text.split_once('/').filter(|(value, mask)| is_key(value) && is_key(mask)) {
                Some((value, mask)) => {
                    for text in ["u32".to_owned(), format!("0x{value}"), format!("0x{mask}")] {
                        put(text);
                    }
                }
                None => put(text.into()),
            },
        }
    }
    typed
}

/// Half of a key of u32: 32 bits.
fn is_key(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

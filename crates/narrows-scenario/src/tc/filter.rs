//! Filters: which packets go to which class.

use super::Handle;
use super::bucket;
use super::u32_match;
use crate::dialect::{Word, Words};
use crate::node::Table;
use crate::problem::{Found, Problem, one_of};
use crate::value::Match;

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    /// Filters with a lower priority number are tried first.
    pub(super) prio: u32,
    /// The condition; `None` for all packets.
    pub(super) matches: Option<Match>,
    /// The class of matching packets.
    pub(super) class: Option<Handle>,
    /// The keys of a policer.
    pub(super) police: Option<Table>,
    /// The device that matching packets are redirected to.
    pub(super) redirect: Option<String>,
}

/// The supported kinds.
const NAMES: &[&str] = &["u32", "flower", "matchall", "basic"];

/// What the unsupported kinds match on.
const OTHERS: &[(&str, &str)] = &[
    ("fw", "it uses firewall marks, and there is no firewall here"),
    ("route", "it uses realms of the routing table, and there is no routing table here"),
    ("rsvp", "it uses RSVP reservations: match the addresses and ports with u32"),
    ("rsvp6", "it uses RSVP reservations: match the addresses and ports with u32"),
    ("tcindex", "it uses dsmark's index: match the code point with u32, `match ip dsfield`"),
    ("cgroup", "it uses the sender's control group, which packets do not carry"),
    ("flow", "it hashes packets to classes: a scheduler of flows does that, such as fq_codel or sfq"),
    ("bpf", "it runs a program: match with u32 or flower"),
];

/// Parses what follows the device and the parent: `protocol ip prio 1 u32 match ip dport 80 0xffff flowid
/// 1:10`.
pub(super) fn read(
    object: Word<'_>,
    words: &mut Words<'_>,
    prio: &mut Option<u32>,
) -> Result<Filter, Problem> {
    let Some(kind) = words.take() else {
        return Err(object
            .problem("the kind of the filter is missing")
            .help("as in: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10"));
    };
    if let Some((_, why)) = OTHERS.iter().find(|(name, _)| *name == kind.text) {
        return Err(kind
            .problem(format!("{} does not apply here", Found(kind.text)))
            .help(*why)
            .help(format!("understood: {}", one_of(NAMES))));
    }
    if !NAMES.contains(&kind.text) {
        return Err(kind
            .problem(format!("unsupported filter {}", Found(kind.text)))
            .did_you_mean(kind.text, NAMES.iter().copied())
            .help(format!("understood: {}", one_of(NAMES))));
    }
    let mut all = Match::default();
    let (mut class, mut police, mut redirect) = (None, None, None);
    let mut said = kind.text == "matchall";
    while let Some(word) = words.take() {
        match word.text {
            "match" if kind.text == "u32" => {
                u32_match::selector(word, words, &mut all)?;
                said = true;
            }
            "flowid" | "classid" => {
                class = Some(Handle::read(words.expect(word, "a class")?)?);
            }
            "police" => police = Some(bucket::police(word, words)?),
            "action" => {
                let action = words.expect(word, "what to do")?;
                match action.text {
                    "police" => police = Some(bucket::police(action, words)?),
                    "mirred" => redirect = Some(mirred(action, words)?),
                    "ok" | "pass" | "order" => {
                        words.take_number(false);
                    }
                    other => {
                        return Err(action
                            .problem(format!("unsupported action {}", Found(other)))
                            .help("understood: `police` and `mirred`"));
                    }
                }
            }
            // As in tc's output, or without effect on the result.
            "fh" | "ht" | "order" | "bkt" | "link" | "divisor" | "handle" | "key" | "hashkey" | "offset" => {
                if matches!(word.text, "link" | "divisor" | "hashkey" | "offset") {
                    return Err(word
                        .problem(format!("hash tables of u32 ({}) are not supported", Found(word.text)))
                        .help("they speed up many filters, which are fast here without them"));
                }
                words.expect(word, "a value")?;
                words.take_if("ht");
            }
            "terminal" | "flowid???" | "not_in_hw" | "skip_hw" | "skip_sw" | "chain" => {
                if word.text == "chain" {
                    words.expect(word, "a number")?;
                }
            }
            "prio" | "pref" => *prio = Some(super::unit::number(word, words, 1, 0xffff)? as u32),
            _ if kind.text == "flower" && u32_match::flower(word, words, &mut all)? => said = true,
            other => {
                return Err(word
                    .problem(format!("unsupported {} in a filter `{}`", Found(other), kind.text))
                    .help("understood: `match`, `flowid`, `classid`, `police` and `action police`"));
            }
        }
    }
    if !said && kind.text != "basic" && kind.text != "flower" {
        return Err(kind
            .problem(format!("`{}` without `match`", kind.text))
            .help("for all packets write: match u32 0 0, as in: u32 match u32 0 0 flowid 1:10"));
    }
    if class.is_none() && police.is_none() && redirect.is_none() {
        return Err(kind
            .problem("the filter names no class")
            .help("end it with a class, as in: flowid 1:10"));
    }
    Ok(Filter {
        prio: prio.unwrap_or(0),
        matches: Some(all).filter(|all| *all != Match::default()),
        class,
        police,
        redirect,
    })
}

/// Parses `mirred egress redirect dev ifb0`; returns the device.
fn mirred(action: Word<'_>, words: &mut Words<'_>) -> Result<String, Problem> {
    let mut device = None;
    while let Some(word) = words.peek() {
        match word.text {
            "egress" | "redirect" => {}
            "index" => {
                words.take();
                words.expect(word, "a number")?;
                continue;
            }
            "dev" => {
                words.take();
                device = Some(words.expect(word, "the name of a device")?.text.to_owned());
                continue;
            }
            "ingress" | "mirror" => {
                return Err(word
                    .problem(format!("unsupported {} of `mirred`", Found(word.text)))
                    .help("understood: `egress redirect dev IFB`"));
            }
            // The verdict after the action.
            "pipe" | "continue" | "pass" | "ok" | "drop" | "stolen" => {}
            _ => break,
        }
        words.take();
    }
    device.ok_or_else(|| {
        action.problem("`mirred` without `dev`").help("as in: action mirred egress redirect dev ifb0")
    })
}

//! Actions of filters: `action police …`, `action mirred egress redirect dev ifb0`, `action drop`.

use super::bucket;
use crate::dialect::{Word, Words};
use crate::node::Table;
use crate::problem::{Found, Problem};

/// What happens to packets that a filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They go to the filter's class, or without one to the default class.
    Class,
    Drop,
    /// Later filters are tried.
    Next,
}

/// The actions of a filter.
#[derive(Default)]
pub(super) struct Actions {
    pub(super) verdict: Option<Verdict>,
    /// The device that packets are redirected to.
    pub(super) redirect: Option<String>,
}

/// Actions that have no counterpart, and why.
const OTHERS: &[(&str, &str)] = &[
    ("skbedit", "packets have no priorities here: name their class, as in `flowid 1:10`"),
    ("pedit", "classes do not change packets"),
    ("ctinfo", "there is no connection tracking here: give packets their code points at the sender"),
    ("ct", "there is no connection tracking here"),
    ("vlan", "classes do not change tags"),
    ("nat", "addresses are not translated on the way"),
    ("sample", "a capture of the run has all packets: --pcap"),
    ("bpf", "it runs a program: match with u32 or flower"),
    ("csum", "classes do not change packets"),
    ("tunnel_key", "packets are not in tunnels here"),
    ("goto", "packets pass the filters of chain 0 here"),
    ("reclassify", "it starts the filters again for the same packet"),
    ("trap", "there is no device that forwards by itself"),
];

/// Parses what follows the word `action`.
pub(super) fn read(
    word: Word<'_>,
    words: &mut Words<'_>,
    all: &mut Actions,
    police: &mut Option<Table>,
) -> Result<(), Problem> {
    let mut action = words.expect(word, "what to do")?;
    while action.text == "gact" {
        action = words.expect(action, "what to do")?;
    }
    match action.text {
        "police" => *police = Some(bucket::police(action, words)?),
        "mirred" => all.redirect = Some(mirred(action, words)?),
        // Marks of arriving packets are not used: filters of a device that they are redirected to see none.
        "connmark" => {}
        "order" => {
            words.take_number(false);
        }
        "drop" | "shot" => all.verdict = Some(Verdict::Drop),
        "pass" | "ok" => all.verdict = Some(Verdict::Class),
        "continue" => all.verdict = Some(Verdict::Next),
        other => {
            let why = OTHERS.iter().find(|(name, _)| *name == other).map(|(_, why)| *why);
            let mut problem = action.problem(format!("unsupported action {}", Found(other)));
            if let Some(why) = why {
                problem = problem.help(why);
            }
            return Err(problem.help("understood: `police`, `mirred`, `drop`, `pass` and `continue`"));
        }
    }
    while let Some(next) = words.peek() {
        match next.text {
            "random" => {
                return Err(next
                    .problem("an action for a random share of packets")
                    .help("losses are the link's: `loss = \"1%\"`"));
            }
            "index" => {
                words.take();
                words.expect(next, "a number")?;
            }
            "pipe" => {
                words.take();
            }
            _ => break,
        }
    }
    Ok(())
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

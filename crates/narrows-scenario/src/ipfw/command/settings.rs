//! `enable`, `disable` and `sysctl`: settings of the whole firewall.

use super::Command;
use crate::ipfw::lexer::{Word, Words};
use crate::ipfw::numbers;
use crate::ipfw::reader::unknown;
use crate::problem::{Found, Problem, nearest};

/// `enable` and `disable`.
pub(super) fn switch(
    words: &mut Words<'_>,
    on: bool,
    is_script: bool,
    remarks: &mut Vec<String>,
) -> Result<Command, Problem> {
    let word = words.expect("what to switch")?;
    match word.text.as_str() {
        "one_pass" => Ok(Command::OnePass(on)),
        "firewall" if on || is_script => Ok(Command::Firewall(on)),
        "firewall" => Err(disabled().at(&word.span)),
        "debug" | "verbose" | "dyn_keepalive" | "skipto_cache" => {
            remarks.push(format!("`{}` changes nothing here", word.text));
            Ok(Command::Nothing)
        }
        other => {
            Err(unknown(word, other, "setting", &["one_pass"], &[("altq", "narrows has no queues of ALTQ")]))
        }
    }
}

/// The problem with a firewall that stays disabled.
pub(crate) fn disabled() -> Problem {
    Problem::new("`disable firewall` exists in ipfw but not in narrows, but for the time in which a script configures rules").help(
        "`enable firewall` ends it, before the end of the script and before `sleep`; `set disable 0` takes the rules of set 0 out of use",
    )
}

/// FreeBSD settings that are accepted without effect, each with the reason.
const WITHOUT_EFFECT: &[(&str, &str)] = &[
    (ENABLE, "rules are always active: `flush` removes them"),
    ("net.inet.ip.forwarding", "hosts and routers of a scenario pass packets on as its links say"),
    ("net.inet6.ip6.forwarding", "hosts and routers of a scenario pass packets on as its links say"),
    ("net.inet.ip.fw.tables_max", "any number of tables exists"),
    ("net.inet.ip.fw.verbose", "narrows writes no log"),
    ("net.inet.ip.fw.verbose_limit", "narrows writes no log"),
    ("net.inet.ip.fw.debug", "narrows writes no log"),
    ("net.inet.ip.fw.autoinc_step", "the step is 100"),
    ("net.inet.ip.fw.dyn_keep_states", "dynamic rules end with the rule that made them"),
    ("net.inet.ip.fw.tables_sets", "tables belong to no set"),
    ("net.inet.ip.fw.dyn_buckets", "dynamic rules are found by a tree"),
    ("net.inet.ip.fw.dyn_keepalive", "nothing is sent to keep flows alive"),
    ("net.inet.ip.dummynet.io_fast", "every packet goes through its pipe"),
    ("net.inet.ip.dummynet.hash_size", "the flows of a mask are not in a table of a fixed size"),
    ("net.inet.ip.dummynet.max_chain_len", "the flows of a mask are not in a table of a fixed size"),
    ("net.inet.ip.dummynet.expire", "flows of a mask expire after 1 s idle"),
    ("net.inet.ip.dummynet.expire_cycle", "flows of a mask expire after 1 s idle"),
    ("net.inet.ip.dummynet.pipe_slot_limit", "queues may have any number of slots"),
    ("net.inet.ip.dummynet.pipe_byte_limit", "queues may have any number of bytes"),
    ("net.inet.ip.dummynet.red_lookup_depth", "RED's average of an idle queue is computed, not looked up"),
    ("net.inet.ip.dummynet.red_avg_pkt_size", "RED's average of an idle queue follows the queue's own keys"),
    ("net.inet.ip.dummynet.red_max_pkt_size", "RED's probability follows the queue's own keys"),
    ("net.inet.ip.dummynet.debug", "narrows writes no log"),
];

const ONE_PASS: &str = "net.inet.ip.fw.one_pass";
const ENABLE: &str = "net.inet.ip.fw.enable";

/// Whether a name is that of a setting of a host that has nothing to do with rules and pipes. Below `net.inet.ip`, where
/// theirs are, only known ones are: others may be misspelt.
fn is_of_host(name: &str) -> bool {
    const ROOTS: [&str; 9] =
        ["net.", "kern.", "hw.", "vm.", "vfs.", "security.", "dev.", "debug.", "machdep."];
    const OF_IP: [&str; 16] = [
        "accept_sourceroute",
        "check_interface",
        "fastforwarding",
        "intr_queue_maxlen",
        "maxfragpackets",
        "maxfragsperpacket",
        "mcast",
        "no_same_prefix",
        "pfil",
        "portrange",
        "process_options",
        "random_id",
        "redirect",
        "rfc1122_strong_es",
        "sourceroute",
        "ttl",
    ];
    const OF_RULES: [&str; 5] = ["fw", "ipfw", "dummynet", "one_pass", "link"];
    if name.split('.').any(|part| OF_RULES.contains(&part)) {
        return false;
    }
    match name.strip_prefix("net.inet.ip.") {
        Some(rest) => OF_IP.contains(&rest.split('.').next().unwrap_or(rest)),
        None => ROOTS.iter().any(|root| name.starts_with(root)),
    }
}

/// Every setting that is known.
fn settings() -> impl Iterator<Item = &'static str> {
    [ONE_PASS].into_iter().chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name))
}

/// What `sysctl NAME` prints: a line for each setting. One without effect has no value; the line says why.
pub fn setting_lines(names: &[&str], one_pass: bool) -> String {
    let line = |name: &&str| match WITHOUT_EFFECT.iter().find(|(known, _)| known == name) {
        Some((_, why)) => format!("{name}: no effect in narrows: {why}\n"),
        None => format!("{name}: {}\n", u8::from(one_pass)),
    };
    names.iter().map(line).collect()
}

/// `sysctl [-w] name=value`, or `sysctl name`
pub(super) fn sysctl(
    words: &mut Words<'_>,
    is_script: bool,
    remarks: &mut Vec<String>,
) -> Result<Command, Problem> {
    while words.take_if(&["-w", "-q"]).is_some() {}
    // A host that does not know a setting refuses the command, and the script goes on.
    let unknown = |name: &Word, remarks: &mut Vec<String>| {
        if !is_script {
            return Err(name
                .problem(format!("unknown setting {}", Found(&name.text)))
                .did_you_mean(&name.text, settings())
                .help(format!("understood: {ONE_PASS}")));
        }
        let near =
            nearest(&name.text, settings()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        remarks
            .push(format!("`{}` is no setting that narrows knows: it has no effect here{near}", name.text));
        Ok(Command::Nothing)
    };
    let word = words.expect("a setting, as in net.inet.ip.fw.one_pass=0")?;
    let (name, value) = match word.text.split_once('=') {
        Some((name, "")) => (name, words.expect("the value of the setting")?.clone()),
        Some((name, value)) => (name, word.part(value)),
        None => {
            let is_below = |known: &&str| {
                known
                    .strip_prefix(word.text.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let names: Vec<_> = settings().filter(is_below).collect();
            if names.is_empty() && is_of_host(&word.text) {
                remarks.push(format!("`{}` is a setting of a host, not of its rules", word.text));
                return Ok(Command::Nothing);
            }
            if names.is_empty() {
                return unknown(word, remarks);
            }
            return Ok(Command::Settings(names));
        }
    };
    match name {
        ONE_PASS => match value.text.as_str() {
            "0" => Ok(Command::OnePass(false)),
            "1" => Ok(Command::OnePass(true)),
            _ => Err(value.expected("0 or 1")),
        },
        ENABLE => match numbers::decimal(&value, "the value of a setting", 0..=u32::MAX)? {
            0 if !is_script => Err(disabled().at(&value.span)),
            value => Ok(Command::Firewall(value != 0)),
        },
        _ => {
            if let Some((_, why)) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == name) {
                numbers::decimal(&value, "the value of a setting", 0..=u32::MAX)?;
                remarks.push(format!("`{name}` changes nothing here: {why}"));
                return Ok(Command::Nothing);
            }
            if is_of_host(name) {
                remarks.push(format!(
                    "`{name}` is a setting of a host, not of its rules: it changes nothing here"
                ));
                return Ok(Command::Nothing);
            }
            unknown(&word.part(name), remarks)
        }
    }
}

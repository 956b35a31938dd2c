//! What is known of programs without running them: whether they succeed, and whether they change a network.

/// How a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Success {
    /// It succeeds wherever it runs.
    Sure,
    /// A script relies on it.
    Assumed,
    /// That is the question.
    Asks,
}

/// Programs with what is known of their success, and whether they change a network. Others are assumed to succeed, and to
/// change nothing.
const PROGRAMS: &[(&str, Success, bool)] = &[
    ("echo", Success::Sure, false),
    ("printf", Success::Sure, false),
    ("logger", Success::Sure, false),
    ("true", Success::Sure, false),
    (":", Success::Sure, false),
    ("sleep", Success::Sure, false),
    ("tc", Success::Sure, true),
    ("ipfw", Success::Sure, true),
    ("dnctl", Success::Sure, true),
    ("iptables", Success::Assumed, true),
    ("ip6tables", Success::Assumed, true),
    ("ipset", Success::Assumed, true),
    ("false", Success::Asks, false),
    ("grep", Success::Asks, false),
    ("egrep", Success::Asks, false),
    ("fgrep", Success::Asks, false),
    ("pgrep", Success::Asks, false),
    ("pidof", Success::Asks, false),
    ("cmp", Success::Asks, false),
    ("diff", Success::Asks, false),
    ("ping", Success::Asks, false),
    ("ping6", Success::Asks, false),
    ("curl", Success::Asks, false),
    ("wget", Success::Asks, false),
    ("nc", Success::Asks, false),
    ("systemctl", Success::Asks, false),
    ("lsmod", Success::Asks, false),
    ("kldstat", Success::Asks, false),
    ("type", Success::Sure, false),
    ("which", Success::Sure, false),
    ("hash", Success::Sure, false),
    ("modprobe", Success::Assumed, false),
    ("insmod", Success::Assumed, false),
    ("rmmod", Success::Assumed, false),
    ("apt", Success::Assumed, false),
    ("apt-get", Success::Assumed, false),
    ("yum", Success::Assumed, false),
    ("dnf", Success::Assumed, false),
];

/// Those whose success depends on what is there.
const DELETES: &[&str] = &["del", "delete", "flush"];

/// Whether a file is one that a system has, with settings and functions of its own: nothing that is about a script.
pub(crate) fn is_of_system(file: &str) -> bool {
    ["/etc/", "/lib/", "/usr/"].iter().any(|folder| file.starts_with(folder))
}

/// Whether such a file has functions alone, rather than settings.
pub(super) fn is_library(file: &str) -> bool {
    ["/lib/", "function", "rc.subr", "rc.common"].iter().any(|part| file.contains(part))
}

/// Whether it is a program that runs another one as another user.
pub(crate) fn raises_rights(word: &str) -> bool {
    matches!(word, "sudo" | "sudo-g5k" | "doas")
}

/// The name of the program that words run, behind those that run others, and its words.
pub(super) fn named<'a, 'w>(words: &'a [&'w str]) -> (&'w str, &'a [&'w str]) {
    const RUNNERS: &[&str] = &["sudo", "sudo-g5k", "doas", "command", "nohup", "exec", "builtin", "env"];
    if let ["command", "-v" | "-V", rest @ ..] = words {
        return ("which", rest);
    }
    let mut rest = words;
    while let Some((first, behind)) = rest.split_first() {
        let skipped = RUNNERS.contains(first) || first.starts_with('-') || first.contains('=');
        if !skipped || behind.is_empty() {
            return (first.rsplit('/').next().unwrap_or(first), behind);
        }
        rest = behind;
    }
    ("", &[])
}

pub(super) fn success(words: &[&str]) -> Success {
    let (name, rest) = named(words);
    let known = PROGRAMS
        .iter()
        .find(|(program, ..)| *program == name)
        .map_or(Success::Assumed, |(_, known, _)| *known);
    let is_own = matches!(name, "tc" | "ipfw" | "dnctl");
    // Everything can be listed, if there is nothing.
    let lists_all = matches!(rest, [.., "list" | "show"]) && matches!(name, "ipfw" | "dnctl");
    match is_own && !lists_all {
        true if shows(words) || lists(words) => Success::Asks,
        true if rest.iter().any(|word| DELETES.contains(word)) => Success::Assumed,
        _ => known,
    }
}

/// Whether a command changes a network, as far as its words say.
pub(super) fn has_effect(words: &[&str]) -> bool {
    let (name, rest) = named(words);
    if PROGRAMS.iter().any(|(program, _, changes)| *program == name && !changes) || name.starts_with("kld") {
        return false;
    }
    let is_effective = |word: &str| {
        word.split_whitespace().any(|word| {
            let name = word.rsplit('/').next().unwrap_or(word);
            word == "mtu" || PROGRAMS.iter().any(|(program, _, changes)| *changes && *program == name)
        })
    };
    !shows(words)
        && !lists(words)
        && (name.starts_with('$')
            || is_effective(name)
            || name == "sysctl" && rest.iter().any(|word| word.starts_with("net.inet"))
            || rest.iter().any(|word| is_effective(word)))
}

/// Whether a command changes something and prints nothing.
pub(super) fn is_silent(words: &[&str]) -> bool {
    let (name, rest) = named(words);
    const VERBS: [&str; 6] = ["add", "change", "replace", "del", "delete", "set"];
    matches!(name, "tc" | "ip") && rest.iter().any(|word| VERBS.contains(word))
}

/// What a command shows or configures: the device that it names, and `filter`, as filters are there only if they have been
/// added. Disciplines may have classes of their own.
pub(super) fn part<'a>(words: &[&'a str]) -> Option<(&'a str, bool)> {
    Some((device(words)?, words.contains(&"filter")))
}

/// The device that a command names.
fn device<'a>(words: &[&'a str]) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == "dev")?;
    words.get(at + 1).copied()
}

pub(super) fn sleeps(words: &[&str]) -> bool {
    named(words).0 == "sleep"
}

/// What a program runs: a file, or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runs {
    File,
    Text,
}

/// What another shell runs, and how many words before it say where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shell {
    pub(super) what: Runs,
    /// The word that is the file or the text.
    pub(super) word: usize,
    pub(super) before: usize,
}

/// Programs that run another one in another place, and whether that has none of the script's variables: another machine, or a
/// container.
const ELSEWHERE: &[(&str, bool)] = &[
    ("ssh", true),
    ("docker", true),
    ("podman", true),
    ("kubectl", true),
    ("oc", true),
    ("lxc", true),
    ("incus", true),
    ("pct", true),
    ("lxc-attach", true),
    ("adb", true),
    ("ip", false),
    ("nsenter", false),
    ("env", false),
    ("nohup", false),
    ("setsid", false),
    ("timeout", false),
    ("nice", false),
    ("chroot", false),
    ("unshare", false),
];

/// Whether what a command runs has none of the script's variables, not even those that are exported.
pub(super) fn forgets_variables(words: &[&str]) -> bool {
    let (name, _) = named(words);
    let is_other_user = words.first().is_some_and(|first| raises_rights(first)) && !words.contains(&"-E");
    is_other_user || ELSEWHERE.contains(&(name, true))
}

/// What another shell runs: `sh FILE`, `sudo bash -c TEXT`, `ip netns exec a sh -c TEXT`, `ssh HOST TEXT`, `./FILE`.
pub(super) fn runs(words: &[&str]) -> Option<Shell> {
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let is_shell = |word: &str| matches!(name(word).as_str(), "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh");
    let first = words.iter().position(|word| !raises_rights(word) && !word.starts_with('-'))?;
    let own = |at: usize| if at == first { 0 } else { at };
    if name(words[first]) == "su"
        && let Some(at) = words.iter().position(|word| *word == "-c")
    {
        // Others than root may not change a network.
        let mut others =
            words[first + 1..].iter().enumerate().filter(|(place, _)| first + 1 + place != at + 1);
        let is_root = others.all(|(_, word)| word.starts_with('-') || *word == "root");
        return is_root.then_some(Shell { what: Runs::Text, word: at + 1, before: 0 });
    }
    let is_elsewhere = ELSEWHERE.iter().any(|(program, _)| *program == name(words[first]));
    let at = words.iter().copied().position(is_shell).filter(|at| is_elsewhere || *at == first);
    if let Some(at) = at {
        return match words.get(at + 1)?.strip_prefix('-') {
            Some(flags) if flags.ends_with('c') => {
                Some(Shell { what: Runs::Text, word: at + 2, before: own(at) })
            }
            Some(flags) if flags.chars().all(|c| "exu".contains(c)) && at == first => {
                Some(Shell { what: Runs::File, word: at + 2, before: 0 })
            }
            Some(_) => None,
            None => (at == first).then_some(Shell { what: Runs::File, word: at + 1, before: 0 }),
        };
    }
    match name(words[first]).as_str() {
        // Several words are one command, which stands as it is.
        "ssh" => {
            let last = words.len() - 1;
            let is_text = last > first + 1 && words[last].contains(char::is_whitespace);
            is_text.then_some(Shell { what: Runs::Text, word: last, before: last })
        }
        _ if words[first].contains('/') => Some(Shell { what: Runs::File, word: first, before: 0 }),
        _ => None,
    }
}

/// Whether what a command reads is a password: `echo secret | sudo -S tc …`.
pub(super) fn reads_password(words: &[&str]) -> bool {
    let flags =
        words.iter().skip_while(|word| **word != "sudo").skip(1).take_while(|word| word.starts_with('-'));
    let is_one = |flag: &str| flag == "--stdin" || !flag.starts_with("--") && flag.contains('S');
    flags.into_iter().any(|flag| is_one(flag))
}

/// Whether a command reads a file of rules: `pfctl -f -`.
pub(super) fn reads_rules(words: &[&str]) -> bool {
    named(words).0 == "pfctl" && named(words).1.contains(&"-")
}

/// The file of rules that a command reads: `pfctl -f FILE`.
pub(super) fn rules_file<'a>(words: &[&'a str]) -> Option<&'a str> {
    let (name, rest) = named(words);
    let at = rest.iter().position(|word| {
        word.strip_prefix('-').is_some_and(|flags| flags.ends_with('f') && !flags.starts_with('F'))
    })?;
    rest.get(at + 1).copied().filter(|file| name == "pfctl" && *file != "-")
}

/// `-b`, `-batch` or `--batch`.
pub(crate) fn is_batch_flag(word: &str) -> bool {
    let bare = word.trim_start_matches('-');
    word.starts_with('-') && !bare.is_empty() && "batch".starts_with(bare)
}

/// Whether a command executes lines that it reads: `tc -batch -`, `ipfw -q /dev/stdin`.
pub(super) fn is_batch(words: &[&str]) -> bool {
    match named(words) {
        ("tc", rest) => rest.iter().take_while(|word| word.starts_with('-')).any(|word| is_batch_flag(word)),
        ("ipfw" | "dnctl", rest) => rest.iter().find(|word| !word.starts_with('-')) == Some(&"/dev/stdin"),
        _ => false,
    }
}

/// The file whose lines a command executes: `tc -batch FILE`, `ipfw -q FILE`.
pub(super) fn batch_file<'a>(words: &[&'a str]) -> Option<&'a str> {
    match named(words) {
        ("tc", rest) => {
            let at = rest.iter().position(|word| is_batch_flag(word))?;
            let is_flagged = rest[..at].iter().all(|word| word.starts_with('-'));
            rest.get(at + 1).copied().filter(|file| is_flagged && !file.starts_with('-'))
        }
        ("ipfw" | "dnctl", rest) => {
            let first = rest.iter().find(|word| !word.starts_with('-')).copied()?;
            Some(first).filter(|file| file.contains('/') && *file != "/dev/stdin")
        }
        _ => None,
    }
}

/// What a command prints, and whether it succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Printed {
    pub(super) text: String,
    pub(super) succeeds: bool,
    /// The text is what tc says of a device without a discipline of the script.
    pub(super) is_default: bool,
}

impl Default for Printed {
    fn default() -> Self {
        Self { text: String::new(), succeeds: true, is_default: false }
    }
}

/// Whether tc shows what is configured: it does without a verb, too. (`ls` is an option of `hfsc`, as well.)
pub(super) fn shows(words: &[&str]) -> bool {
    const VERBS: [&str; 6] = ["add", "change", "replace", "del", "delete", "link"];
    let (name, rest) = named(words);
    name == "tc"
        && rest.iter().any(|word| matches!(*word, "qdisc" | "class" | "filter"))
        && !rest.iter().any(|word| VERBS.contains(word))
}

/// Whether ipfw does.
fn lists(words: &[&str]) -> bool {
    const VERBS: [&str; 5] = ["add", "config", "delete", "flush", "set"];
    let (name, rest) = named(words);
    matches!(name, "ipfw" | "dnctl")
        && rest.iter().any(|word| matches!(*word, "show" | "list"))
        && !rest.iter().any(|word| VERBS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_network() {
        for (words, expected) in [
            (&["tc", "qdisc", "add"][..], true),
            (&["sudo", "/sbin/tc", "qdisc", "add"], true),
            (&["ip", "netns", "exec", "a", "tc", "qdisc", "del"], true),
            (&["ssh", "host", "tc qdisc add"], true),
            (&["tc", "qdisc", "show"], false),
            (&["tc", "-s", "qdisc"], false),
            (&["tc", "class", "add", "hfsc", "ls", "rate", "6mbit"], true),
            (&["tc", "qdisc", "add", "dev", "show"], true),
            (&["ipfw", "table", "1", "list"], false),
            (&["echo", "tc", "qdisc"], false),
            (&["ip", "link", "set", "a", "mtu", "900"], true),
            (&["$TC", "x"], true),
            (&["kldload", "ipfw"], false),
            (&["sysctl", "net.inet.ip.fw.one_pass=0"], true),
        ] {
            assert_eq!(has_effect(words), expected, "{words:?}");
        }
    }
}

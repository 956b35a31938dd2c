//! Programs of a script other than tc: those that run tc elsewhere, those that prepare devices, and those that narrows does
//! not know.

use super::cabling;
use crate::dialect::shell::{is_of_system, raises_rights};
use crate::dialect::{Word, Words};
use crate::netem::skip_prompt;
use crate::problem::{Found, Problem};

pub(super) fn is_tc(word: Word<'_>) -> bool {
    word.text == "tc" || word.text.ends_with("/tc")
}

pub(super) fn is_firewall(word: Word<'_>) -> bool {
    matches!(word.text.rsplit('/').next(), Some("iptables" | "ip6tables" | "ipset"))
}

/// Commands that prepare devices or print text: with them a script has the same effect on packets here.
const OTHERS: &[(&str, &str)] = &[
    ("modprobe", "There are no kernel modules here."),
    ("insmod", "There are no kernel modules here."),
    ("rmmod", "There are no kernel modules here."),
    ("nmcli", "Devices here exist and are up."),
    ("networkctl", "Devices here exist and are up."),
    ("iw", "Devices here exist and are up."),
    ("iwconfig", "Devices here exist and are up."),
    ("ethtool", "Packets are single segments here, as if offloads were off."),
    ("ifconfig", "Devices here exist and are up."),
    ("sysctl", "Hosts here have the kernel's defaults."),
    ("echo", "It prints text."),
    ("printf", "It prints text."),
    ("set", "It configures the shell."),
    ("shopt", "It configures the shell."),
    ("ulimit", "It configures the shell."),
    ("umask", "It configures the shell."),
    ("alias", "It configures the shell."),
    ("trap", "What runs when the script is interrupted or ends is left out."),
    ("for", "The list is not in the script: the commands are taken once, as for one of its values."),
    ("wait", "It waits for other programs."),
    ("read", "It waits for input, which takes no time here."),
    ("true", "It does nothing."),
    ("cat", "It prints text."),
    ("which", "It looks for a program."),
    ("type", "It looks for a program."),
    ("hash", "It looks for a program."),
    ("mkdir", "It makes a folder."),
    ("mount", "It makes a file system accessible."),
    ("cd", "It changes the folder of the shell."),
    (".", OF_SYSTEM),
    ("source", OF_SYSTEM),
];

const OF_SYSTEM: &str = "A file of the host, which is not read: the variables of the script that it may set are not known from here on.";

/// Objects of `ip` that prepare devices.
const OBJECTS_OF_IP: &[(&str, &str)] = &[
    ("link", "Devices here exist and are up."),
    ("address", "Hosts here have addresses."),
    ("netns", "Each host here has a network namespace."),
    ("route", "Hosts here have the routes of their links."),
    ("neighbour", "Hosts here know their neighbours."),
    ("rule", "Hosts here have the routes of their links."),
    ("mptcp", "It configures MPTCP of the host, which is the programs' own."),
];
/// Their abbreviations of one letter.
const LETTERS_OF_IP: &[(&str, &str)] = &[("l", "link"), ("a", "address"), ("r", "route"), ("n", "neighbour")];

/// The program of nftables, whose rules are not read.
pub(super) const NFT: &str = "nft";

/// Programs that run other programs, or change what packets meet in ways that are not read here.
const NOT_PASSED: &[&str] = &[
    "ip",
    "ifconfig",
    "ifdown",
    "sysctl",
    NFT,
    "ebtables",
    "arptables",
    "tcset",
    "tcdel",
    "wondershaper",
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "eval",
    "exec",
    "xargs",
    "parallel",
    "env",
    "nohup",
    "timeout",
    "nice",
    "time",
    "watch",
    "chroot",
    "unshare",
    "reboot",
    "halt",
    "poweroff",
    "shutdown",
];
/// Words of tc: a command with these is a mistyped one, or runs one.
const OF_TC: &[&str] = &["qdisc", "class", "filter", "dev", "tc"];
/// The name of a program that is passed over because it is not known here, and neither runs tc nor other programs as far as its
/// words say.
pub(super) fn unknown<'a>(words: &Words<'a>) -> Option<&'a str> {
    let mut ahead = words.clone();
    let text = ahead.take()?.text;
    // A program elsewhere may be a script that runs tc only if its name says so.
    let name = text.rsplit('/').next().unwrap_or(text);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+'))
        && !name.ends_with(".sh");
    let is_known = OTHERS.iter().any(|(known, _)| *known == name);
    if !is_name || is_known || NOT_PASSED.contains(&name) || OF_TC.contains(&name) {
        return None;
    }
    (!has_tc(ahead)).then_some(name)
}

/// Whether these words may be of tc.
fn has_tc(mut words: Words<'_>) -> bool {
    let is_of_tc = |word: &str| OF_TC.contains(&word.rsplit('/').next().unwrap_or(word));
    std::iter::from_fn(|| words.take()).any(|word| word.text.split_whitespace().any(is_of_tc))
}

/// Whether a command sets the discipline that devices, and the queues of `mq`, have by default.
pub(super) fn sets_default_qdisc(words: &Words<'_>) -> bool {
    let mut ahead = words.clone();
    let is_sysctl = ahead.take().is_some_and(|word| word.text.rsplit('/').next() == Some("sysctl"));
    is_sysctl && std::iter::from_fn(|| ahead.take()).any(|word| word.text.contains("default_qdisc"))
}

/// Programs that last, while packets pass.
const LASTING: &[&str] = &[
    "ping", "ping6", "iperf", "iperf3", "netperf", "nuttcp", "qperf", "wget", "curl", "scp", "rsync",
    "python", "python3", "node", "java", "ab", "wrk", "flent", "owping", "sockperf", "read", "wait",
];

/// The name of a program that lasts.
pub(super) fn lasting<'a>(words: &[&'a str]) -> Option<&'a str> {
    let first = words.iter().find(|word| !raises_rights(word))?;
    let name = first.rsplit('/').next()?;
    LASTING.contains(&name).then_some(name)
}

/// The problem of a file that a script sources, if it is not beside the script.
pub(super) fn sourced(words: &Words<'_>) -> Option<Problem> {
    let mut ahead = words.clone();
    let first = ahead.take().filter(|word| matches!(word.text, "." | "source"))?;
    let file = ahead.take().unwrap_or(first);
    if is_of_system(file.text) {
        return None;
    }
    Some(
        file.problem(format!("the file {} is not read", Found(file.text)))
            .help("a file in the folder of a script that is given as a file is read: put it there, or write what it says into the script")
            .help("a shell in a sandbox runs any script, and says its commands of tc: narrows tc commands SCRIPT"),
    )
}

/// `exec PROGRAM`: nothing of the script runs after it.
pub(super) fn replaces_the_shell(words: &Words<'_>) -> bool {
    let mut ahead = words.clone();
    ahead.take_if("exec") && ahead.peek().is_some() && !has_tc(ahead)
}

/// Takes what runs a tc command in a network namespace or on another machine, and names that: `ip netns exec NAME`, `nsenter
/// -t PID -n`, `docker exec NAME`, `kubectl exec POD --`, `lxc-attach -n NAME --`, `adb shell`, `vagrant ssh NAME -c`, `ssh HOST`; and `sh -c` around it.
pub(super) fn entered(words: &mut Words<'_>) -> Option<String> {
    let mut ahead = words.clone();
    let program = ahead.take()?.text;
    let namespace = match program.rsplit('/').next().unwrap_or(program) {
        "ip" if ahead.take_if("netns") && ahead.take_if("exec") => ahead.take()?.text.to_owned(),
        "nsenter" => {
            let mut namespace = "nsenter".to_owned();
            while let Some(flag) = ahead.peek().filter(|word| word.text.starts_with('-')) {
                ahead.take();
                let target = match flag.text.split_once('=') {
                    Some(("--target" | "--net", value)) => Some(value),
                    None if matches!(flag.text, "-t" | "--target") => Some(ahead.take()?.text),
                    _ => None,
                };
                let name = target.and_then(|target| target.rsplit('/').next());
                name.into_iter().for_each(|name| namespace = name.to_owned());
            }
            namespace
        }
        "docker" | "podman" if ahead.take_if("run") => {
            let mut name = None;
            let is_command = |word: &Word<'_>| is_tc(*word) || is_shell(word.text);
            while let Some(word) = ahead.peek().filter(|word| !is_command(word)) {
                ahead.take();
                let value =
                    ["--net", "--network"].iter().find_map(|flag| match word.text.strip_prefix(flag)? {
                        "" => ahead.peek().map(|word| word.text),
                        value => value.strip_prefix('='),
                    });
                name = value.or(name);
            }
            let name = name.unwrap_or("container");
            name.strip_prefix("container:").unwrap_or(name).to_owned()
        }
        "docker" | "podman" if ahead.take_if("exec") => {
            skip_flags(&mut ahead, &["-u", "--user", "-e", "--env", "-w", "--workdir"]);
            ahead.take()?.text.to_owned()
        }
        "kubectl" | "oc" | "lxc" | "incus" | "pct" => {
            const VALUES: &[&str] = &[
                "-n",
                "--namespace",
                "-c",
                "--container",
                "--context",
                "--kubeconfig",
                "--user",
                "--env",
                "--cwd",
            ];
            skip_flags(&mut ahead, VALUES);
            if !ahead.take_if("exec") {
                return None;
            }
            skip_flags(&mut ahead, VALUES);
            let name = ahead.take()?.text;
            skip_flags(&mut ahead, VALUES);
            name.rsplit('/').next().unwrap_or(name).to_owned()
        }
        "lxc-attach" => {
            let mut name = None;
            while let Some(flag) = ahead.peek().filter(|word| word.text.starts_with('-')) {
                ahead.take();
                match flag.text.strip_prefix("--name=") {
                    Some(value) => name = Some(value),
                    None if matches!(flag.text, "-n" | "--name") => name = Some(ahead.take()?.text),
                    None if matches!(flag.text, "-P" | "-f" | "-o" | "-v" | "-u" | "-g") => {
                        ahead.take();
                    }
                    None if flag.text == "--" => break,
                    None => {}
                }
            }
            name?.to_owned()
        }
        "adb" => {
            let mut name = "adb".to_owned();
            while let Some(flag) = ahead.peek().filter(|word| word.text.starts_with('-')) {
                ahead.take();
                match flag.text {
                    "-s" => name = ahead.take()?.text.to_owned(),
                    "-t" | "-H" | "-P" | "-L" => {
                        ahead.take();
                    }
                    _ => {}
                }
            }
            if !ahead.take_if("shell") {
                return None;
            }
            skip_flags(&mut ahead, &["-e"]);
            split_argument(&mut ahead);
            if ahead.take_if("su") {
                // `su root tc …`, `su -c 'tc …'`
                let _ = ahead.take_if("root") || ahead.take_if("0");
                if ahead.take_if("-c") {
                    split_argument(&mut ahead);
                }
            }
            name
        }
        "vagrant" if ahead.take_if("ssh") => {
            let mut name = "vagrant".to_owned();
            while let Some(word) = ahead.take().filter(|word| !matches!(word.text, "-c" | "--command")) {
                if !word.text.starts_with('-') {
                    word.text.clone_into(&mut name);
                }
            }
            split_argument(&mut ahead);
            name
        }
        "ssh" => {
            skip_flags(
                &mut ahead,
                &["-p", "-i", "-o", "-l", "-F", "-J", "-b", "-c", "-E", "-L", "-R", "-D", "-W"],
            );
            let host = ahead.take()?.text;
            let name = host.split_once('@').map_or(host, |(_, name)| name).to_owned();
            split_argument(&mut ahead);
            name
        }
        _ => return None,
    };
    skip_prompt(&mut ahead);
    let mut shell = ahead.clone();
    if shell.take().is_some_and(|word| is_shell(word.text)) && shell.take_if("-c") {
        split_argument(&mut shell);
        skip_prompt(&mut shell);
        ahead = shell;
    }
    ahead.peek().filter(|word| is_tc(*word) || is_firewall(*word))?;
    *words = ahead;
    Some(namespace)
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("sh" | "bash"))
}

/// Takes options, those of `values` with the next word, and `--` behind them.
fn skip_flags(words: &mut Words<'_>, values: &[&str]) {
    while let Some(flag) = words.peek().filter(|word| word.text.starts_with('-')) {
        words.take();
        if flag.text == "--" {
            return;
        }
        if values.contains(&flag.text) {
            words.take();
        }
    }
}

/// Takes apart a command that is one argument, if a shell would see nothing in it but words.
fn split_argument(words: &mut Words<'_>) {
    let mut ahead = words.clone();
    let Some(command) = ahead.take().filter(|_| ahead.peek().is_none()) else { return };
    if command.text.contains(|c: char| ";|&<>$`\"'\\(){}\n".contains(c)) {
        return;
    }
    let parts = command.text.split_whitespace().map(|part| command.part(part)).collect();
    *words = Words::of_words(parts, command.span().end);
}

/// What a command of another program gives to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) device: String,
    pub(super) mtu: Option<u32>,
    /// How many packets a queue of it holds, unless its discipline says another number.
    pub(super) length: Option<u32>,
}

/// What `ip link set dev X mtu N`, `ip link add X mtu N …` or `ifconfig X mtu N txqueuelen N` gives a device.
pub(super) fn given(words: &Words<'_>) -> Result<Option<Given>, Problem> {
    const MTU: &[&str] = &["mtu"];
    const LENGTH: &[&str] = &["txqueuelen", "qlen", "txqlen"];
    let mut ahead = words.clone();
    let mut namespace = None;
    match ahead.take().and_then(|program| program.text.rsplit('/').next()) {
        Some("ip") => {
            namespace = namespace_of_ip(&mut ahead);
            // Which packets exist depends on the MTU of a route.
            let is_link = |text: &str| text == "l" || text.len() > 1 && "link".starts_with(text);
            if !ahead.take().is_some_and(|object| is_link(object.text)) {
                return Ok(None);
            }
            ahead.take();
        }
        Some("ifconfig") => {}
        _ => return Ok(None),
    }
    let all: Vec<Word<'_>> = std::iter::from_fn(|| ahead.take()).collect();
    if all.iter().any(|word| word.text == "down") {
        return Ok(None);
    }
    let mut found: Option<Given> = None;
    // `type veth peer name b mtu 1400`: the device at the other end.
    for end in all.split(|word| word.text == "peer") {
        let number = |names: &[&str], what: &str, unit: &str, low: u32, high: u32| {
            let mut places = (0..end.len()).filter(|at| names.contains(&end[*at].text));
            let Some(at) = places.next() else { return Ok(None) };
            let Some(number) = end.get(at + 1) else {
                return Err(ahead.missing(end[at], &format!("a number of {unit}")));
            };
            if let Some(again) = places.next().or(found.as_ref().map(|_| at)) {
                let noun = what.split_once(' ').map_or(what, |(_, noun)| noun);
                return Err(end[again]
                    .problem(format!("a second {noun}"))
                    .help("write a command for each device"));
            }
            let value = number.text.parse().ok().filter(|value| (low..=high).contains(value));
            value.map(Some).ok_or_else(|| number.expected(&format!("{what} from {low} to {high} {unit}")))
        };
        let mtu = number(MTU, "an MTU", "bytes", 68, 65_535)?;
        let length = number(LENGTH, "a queue length", "packets", 1, 10_000_000)?;
        if mtu.is_none() && length.is_none() {
            continue;
        }
        let Some(name) = name_of_link(end) else { return Ok(None) };
        let device = namespace.clone().map_or_else(String::new, |of| of + "/") + name;
        found = Some(Given { device, mtu, length });
    }
    Ok(found)
}

/// The device that words behind `ip link set` or `ip link add`, or behind `peer`, are about.
fn name_of_link<'a>(words: &[Word<'a>]) -> Option<&'a str> {
    let named = words.iter().position(|word| matches!(word.text, "dev" | "name"));
    if let Some(named) = named {
        return words.get(named + 1).map(|word| word.text);
    }
    // `link eth0 eth0.10`: it is above another.
    let own = if words.first().is_some_and(|word| word.text == "link") { 2 } else { 0 };
    words
        .get(own)
        .map(|word| word.text)
        .filter(|name| !matches!(*name, "mtu" | "type" | "txqueuelen" | "qlen" | "txqlen"))
}

/// More namespaces than anybody enters one from another.
const MOST_ENTERED: usize = 8;

/// Takes the options of `ip`; returns the network namespace that they name.
fn namespace_of_ip(words: &mut Words<'_>) -> Option<String> {
    let mut namespace = None;
    for _ in 0..MOST_ENTERED {
        while let Some(option) = words.peek().filter(|word| word.text.starts_with('-')) {
            words.take();
            match option.text {
                "-n" | "-net" | "-netns" => namespace = words.take().map(|word| word.text.to_owned()),
                "-f" | "-family" => drop(words.take()),
                _ => {}
            }
        }
        let mut ahead = words.clone();
        if !(ahead.take_if("netns") && ahead.take_if("exec")) {
            break;
        }
        namespace = ahead.take().map(|word| word.text.to_owned());
        *words = ahead;
        // Another `ip` is as this one.
        if words.peek().is_none_or(|word| word.text.rsplit('/').next() != Some("ip")) {
            break;
        }
        words.take();
    }
    namespace
}

/// Why a command of another program has no effect here, if so.
pub(super) fn passed_over(words: &mut Words<'_>) -> Option<&'static str> {
    let name = words.take()?;
    let name = name.text.rsplit('/').next().unwrap_or(name.text);
    let has = |known: &[&str]| {
        let mut ahead = words.clone();
        std::iter::from_fn(|| ahead.take()).any(|word| known.contains(&word.text))
    };
    // A device that is down passes no packet, filters look at realms of routes, and `mtu` is not one of a link here.
    if has(&["down", "realm", "realms", "mtu"]) && matches!(name, "ip" | "ifconfig") {
        return None;
    }
    if name == "printf" && has(&["-v"]) {
        return None;
    }
    let mut ahead = words.clone();
    if name == "sysctl" && std::iter::from_fn(|| ahead.take()).any(|word| cabling::forwards(word.text)) {
        return Some("Where the script joins several links to the machine, it is a router.");
    }
    if name == NFT {
        let takes_away = words
            .clone()
            .take()
            .is_some_and(|verb| matches!(verb.text, "list" | "flush" | "delete" | "destroy"));
        return takes_away.then_some("Rules of nftables that would be there before are not there.");
    }
    if name != "ip" {
        return OTHERS.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
    }
    let is_inside = namespace_of_ip(words).is_some();
    let object = words.peek()?.text;
    // The program in a namespace could be any.
    if is_inside && OTHERS.iter().any(|(known, _)| object.rsplit('/').next() == Some(known)) {
        return passed_over(words);
    }
    let is_unknown = is_inside && unknown(words).is_some();
    let object =
        LETTERS_OF_IP.iter().find(|(letter, _)| *letter == object).map_or(object, |(_, whole)| whole);
    let known = OBJECTS_OF_IP
        .iter()
        .find(|(known, _)| object.len() > 1 && known.starts_with(object) || *known == object);
    let program = is_unknown
        .then_some("What the program in the network namespace does to devices or packets is not known here.");
    known.map(|(_, why)| *why).or(program)
}

//! Rules of pf that lead to pipes, as scripts for macOS have them: `echo "dummynet out proto tcp from any to any port 80 pipe
//! 1" | pfctl -f -`. They become rules of ipfw.
//!
//! Of the rules that a packet matches pf takes the last one, or the first that is `quick`; ipfw takes the first. Rules that pass
//! packets, and names of anchors, change nothing here.
//!
//! Source: pf.conf(5), pfctl(8) and dnctl(8) of macOS 14.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::lexer::Line;
use crate::dialect::shell::{Call, Expanded};
use crate::problem::{Found, Problem};

/// The number of the first rule.
const FIRST: u32 = 40_000;
/// The device of packets from a host to itself.
const LOOPBACK: &str = "lo0";
/// Lines of pf that neither drop packets nor lead to pipes.
const PASSED_OVER: &[&str] = &[
    "pass",
    "anchor",
    "dummynet-anchor",
    "nat-anchor",
    "rdr-anchor",
    "scrub-anchor",
    "binat-anchor",
    "load",
    "set",
    "scrub",
    "nop",
];
/// What the link is, where rules are about the loopback device.
const LINK: &str = "The link stands for the device by which a host talks to itself: addresses and interfaces of such rules are those of any packet.";
const AS_IN: &str = "as in: dummynet out proto tcp from any to any port 80 pipe 1";

/// The rules that are loaded, by anchors, with their numbers.
#[derive(Debug, Default)]
pub(super) struct Pf {
    loaded: BTreeMap<String, Vec<u32>>,
    count: u32,
    /// The anchors that the main rules call.
    called: BTreeSet<String>,
}

/// Whether a word is pfctl.
pub(super) fn is_pf(word: &str) -> bool {
    word.rsplit('/').next() == Some("pfctl")
}

/// What a command of pfctl says.
#[derive(Default)]
struct Flags<'a> {
    anchor: &'a str,
    file: Option<(&'a str, Range<usize>)>,
    flushes: bool,
    disables: bool,
}

impl<'a> Flags<'a> {
    fn of(call: &Call<'a>) -> Self {
        let mut found = Self::default();
        let mut words = call.words.iter().skip_while(|word| !is_pf(word.text())).skip(1);
        while let Some(word) = words.next() {
            let Some(flags) = word.text().strip_prefix('-') else { continue };
            for (at, flag) in flags.char_indices() {
                // The rest of the word, or the next one.
                let rest = &flags[at + flag.len_utf8()..];
                let mut value = || match rest {
                    "" => words.next().map_or(("", word.span()), |next| (next.text(), next.span())),
                    rest => (rest, word.span()),
                };
                match flag {
                    'a' => found.anchor = value().0,
                    'f' => found.file = Some(value()),
                    'F' => found.flushes = matches!(value().0, "all" | "rules" | "dummynet"),
                    'd' => found.disables = true,
                    'i' | 'D' | 's' | 't' | 'T' | 'k' | 'K' | 'x' | 'X' | 'o' | 'p' => drop(value()),
                    _ => continue,
                }
                if matches!(
                    flag,
                    'a' | 'f' | 'F' | 'i' | 'D' | 's' | 't' | 'T' | 'k' | 'K' | 'x' | 'X' | 'o' | 'p'
                ) {
                    break;
                }
            }
        }
        found
    }
}

impl Pf {
    /// The commands of ipfw that do what a command of pfctl does.
    ///
    /// # Errors
    /// If rules are not understood, or are in a file that is not there.
    pub(super) fn commands(&mut self, call: &Call<'_>, number: usize) -> Result<Vec<Line>, Problem> {
        let flags = Flags::of(call);
        let mut lines = Vec::new();
        let line = |words: &str, span: &Range<usize>| line(words, span, number);
        let mut gone: Vec<u32> = Vec::new();
        if flags.disables {
            gone.extend(std::mem::take(&mut self.loaded).into_values().flatten());
        }
        let loads = flags.file.is_some();
        // Rules that are loaded take the place of those before.
        if flags.flushes || loads {
            gone.extend(self.loaded.remove(flags.anchor).into_iter().flatten());
        }
        for rule in gone {
            lines.push(line(&format!("ipfw delete {rule}"), &call.span));
        }
        let Some((file, place)) = flags.file else { return Ok(lines) };
        let Some(input) = call.input else {
            // The rules that every host has lead to no pipe.
            if file == "/etc/pf.conf" {
                return Ok(lines);
            }
            return Err(Problem::new(format!("the rules of pf in {} are not read", Found(file)))
                .at(&place)
                .help("put that file beside the script, or its rules into it: pfctl -f - <<EOF"));
        };
        let mut macros: BTreeMap<String, String> = BTreeMap::new();
        let mut all = Vec::new();
        for text in input {
            let wrong = |problem: Problem| problem.at(&text.span()).help(AS_IN);
            if let Some(problem) = text.problem() {
                return Err(problem.clone());
            }
            let code = text.text().split('#').next().unwrap_or_default().trim();
            if let Some((name, value)) = code.split_once('=').filter(|(name, _)| is_name(name.trim())) {
                macros.insert(format!("${}", name.trim()), value.trim().trim_matches('"').to_owned());
                continue;
            }
            let mut words: Vec<String> = Vec::new();
            for word in spaced(code).split_whitespace() {
                let known = macros.get(word).map_or(word.to_owned(), |value| spaced(value));
                words.extend(known.split_whitespace().map(|word| word.trim_matches('"').to_owned()));
            }
            match words.first().map(String::as_str) {
                None => continue,
                Some("dummynet-anchor") => self.called.extend(words.get(1).cloned()),
                Some("dummynet") => all.push((rule(&words[1..], true).map_err(wrong)?, text.span())),
                Some("no") if words.get(1).is_some_and(|word| word == "dummynet") => {
                    all.push((rule(&words[2..], false).map_err(wrong)?, text.span()));
                }
                Some(first) if PASSED_OVER.contains(&first) || first == "no" => {}
                Some(first) => {
                    return Err(wrong(Problem::new(format!("{} of pf is not understood", Found(first)))));
                }
            }
        }
        lines.extend(self.loaded(flags.anchor, all, &call.span, &line)?);
        Ok(lines)
    }

    /// The rule that a line of a text is, which stands there as pf has it.
    pub(super) fn read(call: &Call<'_>) -> Option<Result<Placed, Problem>> {
        let text: Vec<&str> = call.words.iter().map(Expanded::text).collect();
        let (skipped, has_target) = match &text[..] {
            ["dummynet", ..] => (1, true),
            ["no", "dummynet", ..] => (2, false),
            _ => return None,
        };
        let words: Vec<String> =
            spaced(&text[skipped..].join(" ")).split_whitespace().map(str::to_owned).collect();
        let wrong = |problem: Problem| problem.at(&call.span).help(AS_IN);
        Some(rule(&words, has_target).map_err(wrong).map(|rule| (rule, call.span.clone())))
    }

    /// The commands of ipfw that do what such rules do. `number` is that of a line.
    pub(super) fn of_text(
        &mut self,
        all: Vec<Placed>,
        number: impl Fn(usize) -> usize,
    ) -> Result<Vec<Line>, Problem> {
        let Some((_, first)) = all.first() else { return Ok(Vec::new()) };
        let span = first.clone();
        self.loaded("", all, &span, &|words, span| line(words, span, number(span.start)))
    }

    /// The commands of ipfw for rules that are loaded into an anchor.
    fn loaded(
        &mut self,
        anchor: &str,
        mut all: Vec<Placed>,
        span: &Range<usize>,
        line: &impl Fn(&str, &Range<usize>) -> Line,
    ) -> Result<Vec<Line>, Problem> {
        let mut lines = Vec::new();
        // In the order in which ipfw takes them.
        let mut rules: Vec<(String, Range<usize>)> = Vec::new();
        // Where nothing at the loopback device leads to a pipe, no packet of the link is excepted there.
        if all.iter().all(|(rule, _): &Placed| rule.loopback.is_none() || !rule.has_target) {
            all.retain(|(rule, _)| rule.loopback.is_none());
        }
        let ways: BTreeSet<&str> =
            all.iter().filter_map(|(rule, _): &Placed| rule.loopback.as_deref()).collect();
        if ways.len() > 1 || ways.contains("") {
            if let Some((_, span)) = all.iter().find(|(rule, _)| rule.loopback.is_none()) {
                return Err(Problem::new(format!(
                    "a rule beside those for what goes out at {LOOPBACK} and comes in there"
                ))
                .at(span)
                .help("the link stands for that device then: leave out the rules for others"));
            }
            return Ok(self.twice(anchor, all, span, line));
        }
        let is_loopback = !ways.is_empty();
        for (rule, span) in all.into_iter().rev() {
            rules.insert(if rule.is_quick { 0 } else { rules.len() }, (rule.text, span));
        }
        let mut said = self.uncalled(anchor);
        if is_loopback {
            said.push(LINK.into());
        }
        let numbers = self.loaded.entry(anchor.to_owned()).or_default();
        for (text, span) in rules {
            let rule = FIRST + self.count;
            self.count += 1;
            numbers.push(rule);
            let said = std::mem::take(&mut said);
            lines.push(Line { said, ..line(&format!("ipfw add {rule} {text}"), &span) });
        }
        Ok(lines)
    }
}

impl Pf {
    /// What is to be said of rules of an anchor, if the main rules do not call it.
    fn uncalled(&self, anchor: &str) -> Vec<String> {
        let is_called = anchor.is_empty()
            || anchor.starts_with("com.apple/")
            || self.called.iter().any(|called| {
                called.trim_end_matches("/*") == anchor
                    || called.strip_suffix('*').is_some_and(|start| anchor.starts_with(start))
            });
        match is_called {
            true => Vec::new(),
            false => vec![format!(
                "the script loads no rule `dummynet-anchor \"{anchor}\"`: without one, pf does not look at the rules of this anchor, which count here"
            )],
        }
    }

    /// The rules for packets that go out at the loopback device, and then come in there, so that they pass the pipes of both: for
    /// each of the two, a rule sends packets to a rule for its pipe, and behind that to the second part, or the end.
    fn twice(
        &mut self,
        anchor: &str,
        all: Vec<(Rule, Range<usize>)>,
        span: &Range<usize>,
        line: &impl Fn(&str, &Range<usize>) -> Line,
    ) -> Vec<Line> {
        let mut said = self.uncalled(anchor);
        said.push(format!("{LINK} A packet goes out there, and then comes in: it passes the pipes of both."));
        let mut lines = vec![Line { said, ..line("sysctl net.inet.ip.fw.one_pass=0", span) }];
        for way in ["out", "in"] {
            let mut rules: Vec<&(Rule, Range<usize>)> = Vec::new();
            let of_way = |(rule, _): &&(Rule, Range<usize>)| {
                rule.loopback.as_deref().is_some_and(|own| own.is_empty() || own == way)
            };
            for rule in all.iter().filter(of_way).rev() {
                rules.insert(if rule.0.is_quick { 0 } else { rules.len() }, rule);
            }
            // As many rules that look at packets, one for the others, and two for each pipe.
            let count = rules.len() as u32;
            let first = FIRST + self.count;
            let end = first + 3 * count + 1;
            let mut add = |number: u32, text: String, span: &Range<usize>| {
                self.loaded.entry(anchor.to_owned()).or_default().push(number);
                lines.push(line(&format!("ipfw add {number} {text}"), span));
            };
            for (at, (rule, span)) in (0..).zip(&rules) {
                add(first + at, format!("skipto {} {}", first + count + 1 + 2 * at, rule.packets), span);
            }
            add(first + count, format!("skipto {end} ip from any to any"), span);
            for (at, (rule, span)) in (0..).zip(&rules) {
                let number = first + count + 1 + 2 * at;
                let target = if rule.has_target { rule.target.as_str() } else { "count" };
                add(number, format!("{target} ip from any to any"), span);
                add(number + 1, format!("skipto {end} ip from any to any"), span);
            }
            self.count += 3 * count + 1;
        }
        lines
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The text with braces, commas and `=` as words of their own.
fn spaced(text: &str) -> String {
    let signs = ['{', '}', ',', '=', '!'];
    text.chars().flat_map(|c| if signs.contains(&c) { vec![' ', c, ' '] } else { vec![c] }).collect()
}

/// A line of ipfw of these words, in place of what stands there.
fn line(words: &str, span: &Range<usize>, number: usize) -> Line {
    let mut line = Line { span: span.clone(), number, ..Line::default() };
    words.split_whitespace().for_each(|word| line.take(word, span.clone()));
    line
}

/// A rule and its place.
pub(super) type Placed = (Rule, Range<usize>);

/// A rule of ipfw that is one of pf.
#[derive(Debug)]
pub(super) struct Rule {
    text: String,
    /// The pipe or queue.
    target: String,
    /// The packets, at the loopback device.
    packets: String,
    is_quick: bool,
    /// It leads to a pipe or a queue; otherwise its packets are excepted from such.
    has_target: bool,
    /// It is for the loopback device, for which the link stands then: `in`, `out`, or nothing for both.
    loopback: Option<String>,
}

/// Where packets go on that a rule excepts: behind all rules of pf.
const BEHIND: &str = "skipto 60000";

/// The rule of ipfw that is one of pf, behind `dummynet`, or behind `no dummynet`, without a target.
fn rule(words: &[String], has_target: bool) -> Result<Rule, Problem> {
    let mut words = words.iter().map(String::as_str).peekable();
    let (mut way, mut interface, mut family, mut protocols) = ("", String::new(), "ip", Vec::new());
    let (mut from, mut to) = (End::default(), End::default());
    let mut is_quick = false;
    let mut target = None;
    while let Some(word) = words.next() {
        let mut name =
            |what: &str| words.next().ok_or_else(|| Problem::new(format!("`{word}` lacks {what}")));
        match word {
            "in" | "out" => way = word,
            "quick" => is_quick = true,
            "log" => {}
            "on" => {
                interface = name("an interface")?.to_owned();
                if interface == "!" {
                    interface = format!("not {}", name("an interface")?);
                }
            }
            "inet" => family = "ip4",
            "inet6" => family = "ip6",
            "proto" => protocols = list(&mut words, "a protocol")?,
            "all" | "allow-opts" => {}
            "from" => from = End::read(&mut words)?,
            "to" => to = End::read(&mut words)?,
            "pipe" | "queue" => target = Some(format!("{word} {}", name("a number")?)),
            "no" if name("`state`")? == "state" => {}
            "user" | "group" => {
                return Err(Problem::new(format!(
                    "{} in a rule of pf: a packet does not say whose it is",
                    Found(word)
                )));
            }
            _ => return Err(Problem::new(format!("{} in a rule of pf is not understood", Found(word)))),
        }
    }
    let target = match (target, has_target) {
        (Some(target), true) => target,
        (None, false) => BEHIND.to_owned(),
        (None, true) => return Err(Problem::new("a rule of pf without `pipe` or `queue`")),
        (Some(_), false) => return Err(Problem::new("`no dummynet` with a pipe or a queue")),
    };
    let (protocol, others) = match (&protocols[..], family) {
        ([], family) => (family.to_owned(), String::new()),
        ([one], "ip") => (one.clone(), String::new()),
        (several, "ip") => (format!("{{ {} }}", several.join(" or ")), String::new()),
        ([one], family) => (family.to_owned(), format!(" proto {one}")),
        (several, family) => {
            let all: Vec<String> = several.iter().map(|protocol| format!("proto {protocol}")).collect();
            (family.to_owned(), format!(" {{ {} }}", all.join(" or ")))
        }
    };
    let packets = format!("{protocol} from {from} to {to}{others}");
    let mut text = format!("{target} {packets}");
    // What passes the loopback device goes out and comes in there, in both directions.
    if interface == LOOPBACK || from.is_own || to.is_own {
        return Ok(Rule { text, target, packets, is_quick, has_target, loopback: Some(way.to_owned()) });
    }
    if !way.is_empty() {
        text += &format!(" {way}");
    }
    if let Some(other) = interface.strip_prefix("not ") {
        text += &format!(" not via {other}");
    } else if !interface.is_empty() {
        text += &format!(" via {interface}");
    }
    Ok(Rule { text, target, packets, is_quick, has_target, loopback: None })
}

/// An address and ports.
#[derive(Default)]
struct End {
    addresses: Vec<String>,
    is_negated: bool,
    ports: Vec<String>,
    /// It is the host for itself: packets pass the loopback device.
    is_own: bool,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_negated {
            f.write_str("not ")?;
        }
        match self.addresses.is_empty() {
            true => f.write_str("any")?,
            false => f.write_str(&self.addresses.join(","))?,
        }
        if !self.ports.is_empty() {
            write!(f, " {}", self.ports.join(","))?;
        }
        Ok(())
    }
}

impl End {
    fn read<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Result<Self, Problem> {
        let mut end = Self::default();
        if words.peek() == Some(&"port") {
            end.ports = ports(words)?;
            return Ok(end);
        }
        if words.peek() == Some(&"!") {
            words.next();
            end.is_negated = true;
        }
        end.addresses = list(words, "an address")?;
        let is_odd = |address: &&String| address.starts_with(['<', '(']) || *address == "self";
        if let Some(odd) = end.addresses.iter().find(is_odd) {
            return Err(Problem::new(format!("the addresses {} of pf are not known", Found(odd))));
        }
        let is_own = |address: &String| matches!(address.as_str(), "localhost" | "127.0.0.1" | "::1");
        if end.addresses.iter().any(is_own) {
            if end.is_negated || !end.addresses.iter().all(is_own) {
                return Err(Problem::new("an address of the host for itself among others")
                    .help("write rules for those of the link alone, or for 127.0.0.1 alone"));
            }
            end.is_own = true;
            end.addresses.clear();
        }
        if words.peek() == Some(&"port") {
            end.ports = ports(words)?;
        }
        Ok(end)
    }
}

/// `port 80`, `port = 80`, `port 1:99`, `port { 80, 443 }`
fn ports<'a>(words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>) -> Result<Vec<String>, Problem> {
    words.next();
    if words.peek() == Some(&"=") {
        words.next();
    }
    let all = list(words, "a port")?;
    let range = |port: &String| match port.contains(['<', '>']) {
        true => Err(Problem::new(format!("the ports {} of pf are not understood", Found(port)))
            .help("as in: port 1024:65535")),
        false => Ok(port.replace(':', "-")),
    };
    all.iter().map(range).collect()
}

/// One word, or those in braces.
fn list<'a>(
    words: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    what: &str,
) -> Result<Vec<String>, Problem> {
    let missing = || Problem::new(format!("a rule of pf lacks {what}"));
    let first = words.next().ok_or_else(missing)?;
    if first != "{" {
        return Ok(if first == "any" { Vec::new() } else { vec![first.to_owned()] });
    }
    let mut all = Vec::new();
    loop {
        match words.next().ok_or_else(missing)? {
            "}" => return Ok(all),
            "," => {}
            word => all.push(word.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(String, bool), String> {
        let words: Vec<String> = spaced(text).split_whitespace().map(str::to_owned).collect();
        rule(&words, true)
            .map(|rule| (rule.text, rule.is_quick))
            .map_err(|problem| problem.title().to_owned())
    }

    #[test]
    fn rules_of_pf_as_rules_of_ipfw() {
        for (pf, ipfw, is_quick) in [
            ("out proto tcp from any to any pipe 1", "pipe 1 tcp from any to any out", false),
            (
                "in quick on lo0 proto udp from any to any port 53 pipe 2",
                "pipe 2 udp from any to any 53",
                true,
            ),
            ("in all pipe 1", "pipe 1 ip from any to any in", false),
            (
                "out inet proto { tcp, udp } from 10.0.0.0/24 port 1:1023 to { 1.2.3.4, 1.2.3.5 } port {80,443} queue 3",
                "queue 3 ip4 from 10.0.0.0/24 1-1023 to 1.2.3.4,1.2.3.5 80,443 { proto tcp or proto udp } out",
                false,
            ),
            ("out from any to localhost port 80 pipe 1", "pipe 1 ip from any to any 80", false),
            ("from any to !10.0.0.1 pipe 1", "pipe 1 ip from any to not 10.0.0.1", false),
            (
                "out proto { tcp udp } to port = 25 pipe 4",
                "pipe 4 { tcp or udp } from any to any 25 out",
                false,
            ),
        ] {
            assert_eq!(read(pf), Ok((ipfw.to_owned(), is_quick)), "{pf}");
        }
        for (pf, title) in [
            ("out from any to any", "a rule of pf without `pipe` or `queue`"),
            ("out from any to any pipe", "`pipe` lacks a number"),
            ("out from any to <hosts> pipe 1", "the addresses `<hosts>` of pf are not known"),
            (
                "out from any to { localhost 10.0.0.1 } pipe 1",
                "an address of the host for itself among others",
            ),
            ("sideways all pipe 1", "`sideways` in a rule of pf is not understood"),
        ] {
            assert_eq!(read(pf), Err(title.to_owned()), "{pf}");
        }
    }
}

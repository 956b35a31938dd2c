//! `nat N config …`: address translation with state. `nat N show`, `nat N delete`.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use narrows_core::rules::{Action, Inner, NatConfig, Redirect, Remote};

use super::address::{self, Context, Family};
use super::lexer::{self, Word, Words};
use super::numbers;
use super::options::fits;
use super::reader::{LAST, Reader, unknown};
use super::text::protocol;
use crate::problem::{Found, Problem};

/// A command for translators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NatCommand {
    /// `config`: what a translator does. What the line does not mention gets its default.
    Configure {
        /// The number.
        number: u32,
        /// What it does.
        config: Box<NatConfig>,
    },
    /// `delete`: removes a translator with its flows.
    Delete(u32),
    /// `show` or `show config`: prints what translators do; `None` for all.
    Show(Option<u32>),
    /// `show log`: prints how many flows they have.
    ShowFlows(Option<u32>),
}

const NUMBER: &str = "the number of a translator";

/// Parses what follows `nat`. The number may precede or follow the verb.
pub(super) fn read(
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<NatCommand, Problem> {
    const KNOWN: &[&str] = &["config", "delete", "show"];
    let before = number(words)?;
    let verb = words.expect("a command for the translator")?;
    let numbered = before.map_or_else(|| number(words), |number| Ok(Some(number)))?;
    let needed = |words: &Words<'_>| numbered.ok_or_else(|| words.missing(NUMBER));
    match verb.text.as_str() {
        "config" => {
            let number = needed(words)?;
            let config = Box::new(config(words, context, remarks)?);
            Ok(NatCommand::Configure { number, config })
        }
        "delete" => Ok(NatCommand::Delete(needed(words)?)),
        "show" | "list" => Ok(match words.take_if(&["config", "log"]) {
            Some(word) if word.text == "log" => NatCommand::ShowFlows(numbered),
            _ => NatCommand::Show(numbered),
        }),
        other => Err(unknown(verb, other, "command for a translator", KNOWN, &[])),
    }
}

/// The number of a translator, if one follows.
fn number(words: &mut Words<'_>) -> Result<Option<u32>, Problem> {
    let is_number = |word: &&Word| word.text.starts_with(|c: char| c.is_ascii_digit());
    let Some(word) = words.peek().filter(is_number) else { return Ok(None) };
    words.take();
    numbers::decimal(word, NUMBER, 1..=LAST).map(Some)
}

/// The options, in the order in which they are written.
const FLAGS: &[&str] = &[
    "log",
    "deny_in",
    "same_ports",
    "reset",
    "reverse",
    "unreg_only",
    "unreg_cgn",
    "udp_eim",
    "skip_global",
];

fn config(
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<NatConfig, Problem> {
    let mut config = NatConfig::default();
    let mut seen: Vec<&str> = Vec::new();
    while let Some(word) = words.take() {
        let name = word.text.as_str();
        if seen.contains(&name) && !name.starts_with("redirect_") {
            return Err(word.problem(format!("{} twice", Found(name))));
        }
        seen.push(name);
        match name {
            "if" => interface(words.expect("the name of an interface")?, context, remarks)?,
            "ip" => {
                let address = words.expect("an IPv4 address")?;
                config.address = Some(v4(address, context, remarks)?).filter(|one| is_usable(*one));
                if config.address.is_none() {
                    return Err(address.expected("the address of a host"));
                }
            }
            "log" => remarks.push("`log` writes no log; `nat show log` counts the flows".into()),
            "deny_in" => config.denies_incoming = true,
            "same_ports" => config.keeps_ports = true,
            "reset" => config.resets = true,
            "reverse" => config.reverse = true,
            // Together they mean both ranges.
            "unreg_only" if config.inner == Inner::All => config.inner = Inner::Private,
            "unreg_only" => {}
            "unreg_cgn" => config.inner = Inner::PrivateOrShared,
            "udp_eim" => config.udp_eim = true,
            "skip_global" => config.global = false,
            "port_range" | "port_alias" => {
                let range = words.expect("a range of ports")?;
                let read = port_range(range)?;
                if *read.start() == 0 {
                    return Err(range.expected("ports from 1 to 65535"));
                }
                config.ports = read;
            }
            "redirect_port" | "redirect_addr" | "redirect_proto" => {
                config.redirects.push(redirect_of(name, words, context, remarks)?);
            }
            other => {
                const REFUSED: &[(&str, &str)] = &[(
                    "proxy_only",
                    "no proxy of narrows' own takes packets: `redirect_port` leads them elsewhere",
                )];
                let known =
                    [FLAGS, &["if", "ip", "port_range", "redirect_port", "redirect_addr", "redirect_proto"]];
                return Err(unknown(word, other, "option of a translator", &known.concat(), REFUSED));
            }
        }
    }
    Ok(config)
}

/// The address is that of the host of the rules, whose interface it must be.
fn interface(word: &Word, context: &Context<'_>, remarks: &mut Vec<String>) -> Result<(), Problem> {
    if context.outside.iter().any(|known| fits(&word.text, known)) {
        return Err(of_the_other_end(word));
    }
    if !context.interfaces.iter().any(|known| fits(&word.text, known)) {
        remarks.push(format!(
            "no interface {} is known: the outer address is that of the first host of the link",
            Found(&word.text)
        ));
    }
    Ok(())
}

/// The error for an interface of the link's second host.
fn of_the_other_end(word: &Word) -> Problem {
    word.problem(format!("{} is an interface of the link's second host", Found(&word.text)))
        .help("addresses are translated at the first host: assign the interface to that, as in --interface em0=client")
}

impl Reader<'_> {
    /// The translator of a rule's action.
    pub(super) fn translator(&mut self) -> Result<Action, Problem> {
        let is_outside = |name: &Word| self.context.outside.iter().any(|known| fits(&name.text, known));
        let names = |word: &Word| matches!(word.text.as_str(), "via" | "recv" | "xmit");
        let mut pairs = self.words.rest().windows(2);
        if let Some(pair) = pairs.find(|pair| names(&pair[0]) && is_outside(&pair[1])) {
            return Err(of_the_other_end(&pair[1]));
        }
        if self.words.take_if(&["global"]).is_some() {
            return Ok(Action::NatGlobal);
        }
        Ok(Action::Nat(self.argument(NUMBER)?))
    }
}

fn v4(word: &Word, context: &Context<'_>, remarks: &mut Vec<String>) -> Result<Ipv4Addr, Problem> {
    match address::host_address(word, Family::V4, context, remarks)? {
        IpAddr::V4(found) => Ok(found),
        IpAddr::V6(_) => Err(word.expected("an IPv4 address").help("`nat` translates IPv4 only, as in ipfw")),
    }
}

/// An outer or remote address; 0 for none in particular.
fn v4_or_any(
    word: &Word,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Option<Ipv4Addr>, Problem> {
    if word.text == "0" {
        return Ok(None);
    }
    Ok(Some(v4(word, context, remarks)?).filter(|found| !found.is_unspecified()))
}

/// Whether a host can have this address.
pub(crate) fn is_usable(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_loopback() || address.is_multicast() || address.is_broadcast())
}

/// Ports that packets go to.
fn own_ports(word: &Word, ports: &RangeInclusive<u16>) -> Result<u16, Problem> {
    match *ports.start() {
        0 => Err(word.expected("ports from 1 to 65535")),
        first => Ok(ports.end() - first + 1),
    }
}

fn port_range(word: &Word) -> Result<RangeInclusive<u16>, Problem> {
    match &numbers::ranges(word, numbers::PORTS)?[..] {
        [range] => Ok(range.clone()),
        _ => Err(word.expected("a port, or a range such as 6000-6010")),
    }
}

/// Parses a redirection from one text, as in a scenario.
pub(crate) fn redirect(text: &str) -> Result<Redirect, Problem> {
    let lines = lexer::lines(text);
    let [line] = &lines[..] else { return Err(Problem::new("not one redirection").at(&(0..text.len()))) };
    let mut words = Words::new(&line.words);
    let word = words.expect("a redirection")?;
    if !["redirect_port", "redirect_addr", "redirect_proto"].contains(&word.text.as_str()) {
        return Err(word.expected("`redirect_port`, `redirect_addr` or `redirect_proto`"));
    }
    let read = redirect_of(&word.text, &mut words, &Context::default(), &mut Vec::new())?;
    words.end().map(|()| read)
}

fn redirect_of(
    name: &str,
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Redirect, Problem> {
    match name {
        "redirect_port" => ports(words, context, remarks),
        "redirect_addr" => {
            let inner = words.expect("the address of an inner host")?;
            let all = inner.text.split(',').map(|one| v4(&inner.part(one), context, remarks));
            let inner = all.collect::<Result<_, _>>()?;
            let outer = v4_or_any(words.expect("the outer address, or 0")?, context, remarks)?;
            Ok(Redirect::Address { inner, outer })
        }
        _ => {
            let word = words.expect("a protocol")?;
            let protocol = numbers::protocol(word)?;
            if [1, 6, 17].contains(&protocol) {
                return Err(word
                    .problem(format!(
                        "{} with `redirect_proto`, which is for protocols without ports",
                        Found(&word.text)
                    ))
                    .help("`redirect_port` is for tcp and udp, and `redirect_addr` for all protocols"));
            }
            let inner = v4(words.expect("the address of an inner host")?, context, remarks)?;
            let mut next = |words: &mut Words<'_>| match words.peek().filter(|word| is_address(word)) {
                Some(word) => {
                    words.take();
                    v4_or_any(word, context, remarks)
                }
                None => Ok(None),
            };
            let (outer, remote) = (next(words)?, next(words)?);
            Ok(Redirect::Protocol { protocol, inner, outer, remote })
        }
    }
}

fn is_address(word: &Word) -> bool {
    word.text == "0" || word.text.parse::<Ipv4Addr>().is_ok()
}

/// `ADDRESS:PORTS`.
fn with_ports(
    word: &Word,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<(Option<Ipv4Addr>, RangeInclusive<u16>), Problem> {
    let Some((address, ports)) = word.text.rsplit_once(':') else {
        return Err(word.expected("an address and a port, as in 10.0.0.2:80"));
    };
    Ok((v4_or_any(&word.part(address), context, remarks)?, port_range(&word.part(ports))?))
}

/// Parses what follows `redirect_port`.
fn ports(
    words: &mut Words<'_>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Redirect, Problem> {
    let word = words.expect("`tcp` or `udp`")?;
    let protocol = match word.text.as_str() {
        "tcp" => 6,
        "udp" => 17,
        "sctp" => {
            return Err(word.problem("ports of SCTP cannot be written").help(
                "its checksum covers the whole packet: `redirect_proto sctp` leads all of it to one host",
            ));
        }
        _ => return Err(word.expected("`tcp` or `udp`")),
    };
    let target = words.expect("the address and port of an inner host")?;
    let is_several = target.text.contains(',');
    let mut inner = Vec::new();
    let mut count = 1;
    for one in target.text.split(',') {
        let one = target.part(one);
        let (address, ports) = with_ports(&one, context, remarks)?;
        let address = address.ok_or_else(|| one.expected("the address of an inner host"))?;
        count = own_ports(&one, &ports)?;
        if is_several && count != 1 {
            return Err(one.problem("several hosts and several ports").help("give each host one port"));
        }
        inner.push((address, *ports.start()));
    }
    let word = words.expect("the outer port")?;
    let (outer, outer_ports) = match word.text.contains(':') {
        true => with_ports(word, context, remarks)?,
        false => (None, port_range(word)?),
    };
    if own_ports(word, &outer_ports)? != count {
        return Err(word
            .problem(format!("{} is not as many ports as the inner host has, {count}", Found(&word.text)))
            .help("one outer port belongs to one inner port"));
    }
    let mut remote = Remote::default();
    let is_remote = |word: &&Word| {
        let address = word.text.rsplit_once(':').map_or(word.text.as_str(), |(address, _)| address);
        is_address(&word.part(address))
    };
    if let Some(word) = words.peek().filter(is_remote) {
        words.take();
        match word.text.contains(':') {
            true => {
                let (address, ports) = with_ports(word, context, remarks)?;
                let many = u32::from(ports.end() - ports.start()) + 1;
                if *ports.start() != 0 && many != u32::from(count) {
                    return Err(word.problem(format!("{many} remote ports for {count} inner ones")));
                }
                remote = Remote { address, port: Some(*ports.start()).filter(|port| *port != 0) };
            }
            false => remote.address = v4_or_any(word, context, remarks)?,
        }
    }
    Ok(Redirect::Ports { protocol, inner, outer, port: *outer_ports.start(), count, remote })
}

/// A redirection as written.
pub(crate) fn redirect_text(redirect: &Redirect) -> String {
    let or_0 = |address: Option<Ipv4Addr>| address.map_or("0".into(), |address| address.to_string());
    let range = |first: u16, count: u16| match count {
        1 => first.to_string(),
        _ => format!("{first}-{}", first.saturating_add(count - 1)),
    };
    match redirect {
        Redirect::Ports { protocol, inner, outer, port, count, remote, .. } => {
            let protocol = if *protocol == 6 { "tcp" } else { "udp" };
            let inner: Vec<String> =
                inner.iter().map(|(address, first)| format!("{address}:{}", range(*first, *count))).collect();
            let outer = outer.map_or(String::new(), |address| format!("{address}:"));
            let remote = match remote {
                Remote { address: None, port: None } => String::new(),
                Remote { address, port: None } => format!(" {}", or_0(*address)),
                Remote { address, port: Some(first) } => {
                    format!(" {}:{}", or_0(*address), range(*first, *count))
                }
            };
            let inner = inner.join(",");
            format!("redirect_port {protocol} {inner} {outer}{}{remote}", range(*port, *count))
        }
        Redirect::Address { inner, outer, .. } => {
            let inner: Vec<String> = inner.iter().map(Ipv4Addr::to_string).collect();
            format!("redirect_addr {} {}", inner.join(","), or_0(*outer))
        }
        Redirect::Protocol { protocol: number, inner, outer, remote } => {
            let mut text = format!("redirect_proto {} {inner}", protocol(*number));
            if outer.is_some() || remote.is_some() {
                text += &format!(" {}", or_0(*outer));
            }
            if let Some(remote) = remote {
                text += &format!(" {remote}");
            }
            text
        }
    }
}

/// The options of a translator as written, each with a space before it.
pub(super) fn options_text(config: &NatConfig) -> String {
    let mut text = config.address.map_or(String::new(), |address| format!(" ip {address}"));
    let flags = [
        ("deny_in", config.denies_incoming),
        ("same_ports", config.keeps_ports),
        ("reset", config.resets),
        ("reverse", config.reverse),
        ("unreg_only", config.inner == Inner::Private),
        ("unreg_cgn", config.inner == Inner::PrivateOrShared),
        ("udp_eim", config.udp_eim),
        ("skip_global", !config.global),
    ];
    for (flag, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        text += &format!(" {flag}");
    }
    if config.ports != NatConfig::PORTS {
        text += &format!(" port_range {}-{}", config.ports.start(), config.ports.end());
    }
    for redirect in &config.redirects {
        text += &format!(" {}", redirect_text(redirect));
    }
    text
}

/// The lines of `nat show config`: these translators, with the number of each. One without an address has that of the
/// interface.
pub fn nat_lines<'a>(
    nats: impl IntoIterator<Item = (u32, &'a NatConfig)>,
    which: Option<u32>,
    interface: &str,
) -> String {
    let wanted = nats.into_iter().filter(|(number, _)| which.is_none_or(|one| one == *number));
    wanted
        .map(|(number, config)| {
            let own = if config.address.is_none() { format!(" if {interface}") } else { String::new() };
            format!("ipfw nat {number} config{own}{}\n", options_text(config))
        })
        .collect()
}

/// The lines of `nat show log`: the number of each translator and that of its flows, by protocol: ICMP, UDP, TCP, others.
pub fn nat_flow_lines(nats: impl IntoIterator<Item = (u32, [usize; 4])>, which: Option<u32>) -> String {
    let wanted = nats.into_iter().filter(|(number, _)| which.is_none_or(|one| one == *number));
    let line = |(number, [icmp, udp, tcp, other]): (u32, [usize; 4])| {
        let total = icmp + udp + tcp + other;
        format!("nat {number}: icmp={icmp}, udp={udp}, tcp={tcp}, proto={other} / tot={total}\n")
    };
    wanted.map(line).collect()
}

/// Explains a command in a sentence or two.
pub(super) fn words(command: &NatCommand) -> String {
    match command {
        NatCommand::Configure { number, config } => explained(*number, config),
        NatCommand::Delete(number) => format!("Deletes translator {number} with its flows."),
        NatCommand::Show(_) => "Prints what translators do.".into(),
        NatCommand::ShowFlows(_) => "Prints how many flows translators have.".into(),
    }
}

/// What a translator does.
pub(crate) fn explained(number: u32, config: &NatConfig) -> String {
    let outer =
        config.address.map_or("the address of the first host of the link".into(), |one| one.to_string());
    let inner = match config.inner {
        Inner::All => "",
        Inner::Private => ", if they come from a private address",
        Inner::PrivateOrShared => ", if they come from a private address or one of 100.64.0.0/10",
    };
    let (first, last) = (config.ports.start(), config.ports.end());
    let ports = match config.keeps_ports {
        true => format!("their own port where that is free, otherwise one from {first} to {last}"),
        false => format!("a port from {first} to {last}"),
    };
    let mut text = format!(
        "Translator {number} replaces the source of packets that go out by {outer} and {ports}{inner}."
    );
    if config.udp_eim {
        text += " All flows of UDP from one inner port have one outer port.";
    }
    if config.reverse {
        text += " Directions are reversed.";
    }
    if config.resets {
        text += " All flows end when the outer address changes.";
    }
    text += match (config.denies_incoming, config.udp_eim) {
        (true, _) => " Packets that come in without a flow are dropped",
        (false, true) => {
            " Packets that come in without a flow pass to whoever has that outer port, or unchanged"
        }
        (false, false) => " Packets that come in without a flow pass unchanged",
    };
    match config.redirects.len() {
        0 => text += ".",
        1 => text += &format!(", but for `{}`.", redirect_text(&config.redirects[0])),
        many => text += &format!(", but for {many} redirections."),
    }
    text
}

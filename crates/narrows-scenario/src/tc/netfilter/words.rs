//! The conditions of a rule of `iptables`.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use narrows_core::classify::{Families, TcpFlags};

use super::list::{Bits, Number};
use super::sets::{Looked, networks_from_to};
use super::values::{mark_and_mask, networks, range};
use super::written;
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::tc::both::both;
use crate::tc::flower::tos;
use crate::tc::icmp;
use crate::tc::u32::mask;
use crate::value::{Match, Party, link_pattern, protocol};

/// All conditions of a rule.
#[derive(Debug)]
pub(super) struct Conditions {
    /// `None` if they contradict one another.
    all: Option<Match>,
    /// `-o`: the device by which packets leave, and whether it must be another.
    pub(super) leaves: Option<(String, bool)>,
    pub(super) arrives: Option<(String, bool)>,
    /// Sets in which a packet is looked up.
    pub(super) sets: Vec<Looked>,
    /// The mark that a packet must have.
    pub(super) bits: Bits,
    /// Marks that it must not have.
    pub(super) not: Vec<Bits>,
    /// What `--mark` is about.
    number: Number,
    /// It depends on more than a packet.
    pub(super) is_other: bool,
    /// It is for packets of connections that are established.
    pub(super) is_established: bool,
}

impl Conditions {
    pub(super) fn new(families: Families) -> Self {
        Self {
            all: Some(Match { families: vec![families], ..Match::default() }),
            leaves: None,
            arrives: None,
            sets: Vec::new(),
            bits: Bits::ANY,
            not: Vec::new(),
            number: Number::Mark,
            is_other: false,
            is_established: false,
        }
    }

    /// The conditions of which one must hold; none if no packet matches.
    pub(super) fn alternatives(&self) -> Vec<Match> {
        self.all.clone().into_iter().collect()
    }

    fn also(&mut self, new: &Match) {
        self.all = self.all.as_ref().and_then(|all| both(all, new));
    }

    /// The mark that a packet must have, or must not have. One with bits that the mask clears has no packet.
    fn marked(&mut self, value: u32, mask: u32, not: bool) {
        let bits = Bits::of(self.number, value, mask);
        if not {
            self.not.extend(bits);
            return;
        }
        match bits.and_then(|bits| self.bits.and(bits)) {
            Some(bits) => self.bits = bits,
            None => self.all = None,
        }
    }
}

/// Matches of iptables that depend on more than a packet, and what does their work.
const OTHERS: &[(&str, &str)] = &[
    ("connbytes", "connections are not tracked here"),
    ("connlimit", "connections are not tracked here"),
    ("helper", "connections are not tracked here"),
    ("layer7", "contents of packets are not matched"),
    ("ipp2p", "contents of packets are not matched"),
    ("string", "contents of packets are not matched"),
    ("u32", "use a filter `u32` of tc"),
    ("bpf", "it runs a program"),
    ("limit", "use a policer"),
    ("hashlimit", "use a policer"),
    ("owner", "packets do not carry their sender's user"),
    ("cgroup", "packets do not carry their sender's control group"),
    ("physdev", "packets do not carry the device where they came in"),
    ("time", "a timeline changes a link at certain times"),
    ("statistic", "losses are the link's"),
    ("random", "losses are the link's"),
    ("recent", "use conditions of one packet"),
];

/// Modules whose options are understood.
const MODULES: &[&str] = &[
    "tcp",
    "udp",
    "sctp",
    "dccp",
    "udplite",
    "multiport",
    "dscp",
    "tos",
    "length",
    "comment",
    "iprange",
    "set",
    "mark",
    "connmark",
    "mac",
    "ttl",
    "hl",
    "icmp",
    "icmp6",
    "state",
    "conntrack",
];

/// Names of protocols in `/etc/protocols` that conditions of narrows do not have.
const OTHER_PROTOCOLS: &[(&str, u8)] = &[
    ("ipencap", 4),
    ("ipv6", 41),
    // Older files have these names, and newer ones the next.
    ("ipv6-crypt", 50),
    ("ipv6-auth", 51),
    ("ipsec-esp", 50),
    ("ipsec-ah", 51),
    ("ipv6-icmp", 58),
    ("icmp6", 58),
    ("eigrp", 88),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
];

/// The name of a device.
fn device(word: Word<'_>, words: &mut Words<'_>) -> Result<String, Problem> {
    let device = words.expect(word, "a device")?;
    match device.text.ends_with('+') {
        true => Err(device.problem("a device by the beginning of its name").help("write the whole name")),
        false => Ok(device.text.into()),
    }
}

/// Reads one condition.
pub(super) fn condition(
    word: Word<'_>,
    words: &mut Words<'_>,
    not: bool,
    all: &mut Conditions,
) -> Result<(), Problem> {
    // As older versions have it: `-s ! 10.0.0.0/8`.
    let not = words.take_if("!") ^ not;
    let new = match word.text {
        "-m" | "--match" => return module(word, words, all),
        "--comment" => {
            words.expect(word, "a comment")?;
            return Ok(());
        }
        "--match-set" | "--set" => {
            all.sets.push(Looked::read(word, words, not)?);
            return Ok(());
        }
        "--state" | "--ctstate" => return state(words.expect(word, "states of connections")?, not, all),
        "--mark" => {
            let (value, mask) = mark_and_mask(words.expect(word, "a mark")?)?;
            all.marked(value, mask, not);
            return Ok(());
        }
        "-o" | "--out-interface" => {
            all.leaves = Some((device(word, words)?, not));
            return Ok(());
        }
        "-i" | "--in-interface" => {
            all.arrives = Some((device(word, words)?, not));
            return Ok(());
        }
        "-p" | "--protocol" | "--proto" => {
            let name = words.expect(word, "a protocol")?;
            if name.text == "all" && !not {
                return Ok(());
            }
            let lower = name.text.to_ascii_lowercase();
            let number = match OTHER_PROTOCOLS.iter().find(|(known, _)| *known == lower) {
                Some((_, number)) => *number,
                None => protocol(&Node { span: name.span(), value: Value::String(lower) })?,
            };
            let protocols =
                if not { (0..=255).filter(|other| *other != number).collect() } else { vec![number] };
            Match { protocols, ..Match::default() }
        }
        "-s" | "--source" | "--src" => match networks(words.expect(word, "addresses")?, not)? {
            Some(sources) => Match { sources, ..Match::default() },
            None => return Ok(()),
        },
        "-d" | "--destination" | "--dst" => match networks(words.expect(word, "addresses")?, not)? {
            Some(destinations) => Match { destinations, ..Match::default() },
            None => return Ok(()),
        },
        "--sport" | "--source-port" | "--sports" | "--source-ports" => {
            Match { source_ports: ports(words.expect(word, "ports")?, not)?, ..Match::default() }
        }
        "--dport" | "--destination-port" | "--dports" | "--destination-ports" => {
            Match { destination_ports: ports(words.expect(word, "ports")?, not)?, ..Match::default() }
        }
        "--port" | "--ports" if !not => {
            Match { ports: ports(words.expect(word, "ports")?, false)?, ..Match::default() }
        }
        "--dscp" | "--dscp-class" => {
            let value = words.expect(word, "a code point")?;
            let point = written::point(value)?;
            let dscps = if not { (0..64).filter(|other| *other != point).collect() } else { vec![point] };
            Match { dscps, ..Match::default() }
        }
        "--tos" if !not => {
            let value = words.expect(word, "a value of the TOS byte")?;
            tos_byte(value)?
        }
        "--length" if !not => {
            let value = words.expect(word, "a length")?;
            let range = range(value, value.text)?;
            Match { length: Some(u32::from(*range.start())..=u32::from(*range.end())), ..Match::default() }
        }
        "--src-range" => Match {
            sources: addresses(words.expect(word, "a range of addresses")?, not)?,
            ..Match::default()
        },
        "--dst-range" => {
            let destinations = addresses(words.expect(word, "a range of addresses")?, not)?;
            Match { destinations, ..Match::default() }
        }
        "--mac-source" if !not => {
            let address = words.expect(word, "an address of the link layer")?;
            let pattern = link_pattern(address.text)
                .ok_or_else(|| address.expected("an address of the link layer, such as 02:00:00:00:00:01"))?;
            Match { link_sources: vec![pattern], ..Match::default() }
        }
        "--ttl-eq" | "--hl-eq" if !not => hops(word, words, |hops| hops..=hops)?,
        "--ttl-lt" | "--hl-lt" if !not => hops(word, words, |hops| 0..=hops.saturating_sub(1))?,
        "--ttl-gt" | "--hl-gt" if !not => hops(word, words, |hops| hops.saturating_add(1)..=u8::MAX)?,
        "--icmp-type" => icmp::of_ipv4(words.expect(word, "a type of ICMP")?, not)?,
        "--icmpv6-type" => icmp::of_ipv6(words.expect(word, "a type of ICMPv6")?, not)?,
        "--syn" if !not => flags(0x02, 0x17),
        "--tcp-flags" if !not => {
            let mask = named_flags(words.expect(word, "flags of TCP")?)?;
            let set = named_flags(words.expect(word, "flags of TCP")?)?;
            flags(set, mask)
        }
        other => {
            let problem = word.problem(format!("unsupported {} of iptables", Found(other)));
            return Err(problem.help(
                "understood: -o, -p, -s, -d, --sport, --dport, multiport, dscp, tos, length, --match-set, --mark, --src-range, --mac-source, --ttl-eq, --icmp-type, --tcp-flags and --syn",
            ));
        }
    };
    all.also(&new);
    Ok(())
}

/// States of connections: those of all packets but the first, with or without it, are those of any packet, once its connection
/// is established.
fn state(list: Word<'_>, not: bool, all: &mut Conditions) -> Result<(), Problem> {
    let states: Vec<String> = list.text.split(',').map(str::to_ascii_uppercase).collect();
    let has = |name: &str| states.iter().any(|state| state == name);
    match (has("ESTABLISHED") && !not, not && !has("ESTABLISHED") && has("NEW")) {
        (false, false) => {
            all.is_other = true;
            Err(list
                .problem(format!("the state {} of connections", Found(list.text)))
                .help("connections are not tracked here: understood are states with ESTABLISHED, which all packets of a connection count as"))
        }
        _ => {
            all.is_established = true;
            Ok(())
        }
    }
}

fn module(word: Word<'_>, words: &mut Words<'_>, all: &mut Conditions) -> Result<(), Problem> {
    let name = words.expect(word, "a module")?;
    match name.text {
        "mark" => all.number = Number::Mark,
        "connmark" => all.number = Number::Connection,
        _ => {}
    }
    if let Some((_, why)) = OTHERS.iter().find(|(known, _)| *known == name.text) {
        all.is_other = true;
        return Err(name.problem(format!("the match {} of iptables", Found(name.text))).help(*why));
    }
    match MODULES.contains(&name.text) {
        true => Ok(()),
        false => Err(name.problem(format!("unsupported match {} of iptables", Found(name.text)))),
    }
}

fn ports(word: Word<'_>, not: bool) -> Result<Vec<RangeInclusive<u16>>, Problem> {
    let mut all = word.text.split(',').map(|item| range(word, item)).collect::<Result<Vec<_>, _>>()?;
    if !not {
        return Ok(all);
    }
    all.sort_by_key(|range| *range.start());
    let (mut others, mut next) = (Vec::new(), 0_u32);
    for range in all {
        if u32::from(*range.start()) > next {
            others.push(next as u16..=range.start() - 1);
        }
        next = next.max(u32::from(*range.end()) + 1);
    }
    if next <= u32::from(u16::MAX) {
        others.push(next as u16..=u16::MAX);
    }
    match others.is_empty() {
        true => Err(word.problem("no port is left")),
        false => Ok(others),
    }
}

/// `10.0.0.1-10.0.0.9`, or all others.
fn addresses(word: Word<'_>, not: bool) -> Result<Vec<Party>, Problem> {
    let (first, last) = word.text.split_once('-').unwrap_or((word.text, word.text));
    match (first.parse::<Ipv4Addr>(), last.parse::<Ipv4Addr>()) {
        (Ok(first), Ok(last)) if first <= last && !not => Ok(networks_from_to(first, last)),
        (Ok(first), Ok(last)) if first <= last => {
            let below = first.to_bits().checked_sub(1).map(Ipv4Addr::from_bits);
            let above = last.to_bits().checked_add(1).map(Ipv4Addr::from_bits);
            let mut all = below.map_or(Vec::new(), |end| networks_from_to(Ipv4Addr::UNSPECIFIED, end));
            all.extend(above.into_iter().flat_map(|start| networks_from_to(start, Ipv4Addr::BROADCAST)));
            match all.is_empty() {
                true => Err(word.problem("no address is left")),
                false => Ok(all),
            }
        }
        _ => Err(word.problem(format!("{} is not a range of addresses", Found(word.text)))),
    }
}

/// `--ttl-lt 5`.
fn hops(
    word: Word<'_>,
    words: &mut Words<'_>,
    of: impl Fn(u8) -> RangeInclusive<u8>,
) -> Result<Match, Problem> {
    let hops = units::integer(words.expect(word, "a number of hops")?, "a number of hops", 0, 255)? as u8;
    Ok(Match { hop_limits: vec![of(hops)], ..Match::default() })
}

/// `0x10`, `16/0x3f`, or a name.
fn tos_byte(word: Word<'_>) -> Result<Match, Problem> {
    const NAMES: &[(&str, u8)] = &[
        ("minimize-delay", 0x10),
        ("maximize-throughput", 0x08),
        ("maximize-reliability", 0x04),
        ("minimize-cost", 0x02),
        ("normal-service", 0x00),
    ];
    let lower = word.text.to_ascii_lowercase();
    // Of a name, and of a number without a mask, the bits of the code point's field count as iptables has it.
    if let Some((_, value)) = NAMES.iter().find(|(name, _)| *name == lower) {
        return Ok(tos(*value, 0x3f));
    }
    let (value, of) = word.text.split_once('/').unwrap_or((word.text, "ff"));
    let value = units::integer(word.part(value), "a value of the TOS byte", 0, 255)? as u8;
    Ok(tos(value, mask(word, of, 8)? as u8))
}

fn flags(set: u8, mask: u8) -> Match {
    Match { tcp_flags: Some(TcpFlags { set, clear: mask & !set }), ..Match::default() }
}

fn named_flags(word: Word<'_>) -> Result<u8, Problem> {
    const NAMES: [(&str, u8); 8] = [
        ("FIN", 0x01),
        ("SYN", 0x02),
        ("RST", 0x04),
        ("PSH", 0x08),
        ("ACK", 0x10),
        ("URG", 0x20),
        ("ALL", 0x3f),
        ("NONE", 0x00),
    ];
    word.text.split(',').try_fold(0, |set, item| {
        let known = NAMES.iter().find(|(name, _)| *name == item).map(|(_, bits)| set | bits);
        known.ok_or_else(|| word.problem(format!("{} is not a flag of TCP", Found(item))))
    })
}

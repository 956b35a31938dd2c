//! The keys of filters of the kind `flower`: `ip_proto tcp dst_port 80`.

use std::ops::RangeInclusive;

use narrows_core::classify::{Families, Fragments, LinkPattern, TcpFlags};

use super::both::both;
use super::u32::{having, mask, ranges};
use super::{icmp, protocol};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::value::{Match, Party, link_pattern, party};

/// The protocols that have a name in tc. ICMP has one of two, by the version of IP.
pub(super) const NAMES: &[(&str, u8)] = &[("tcp", 6), ("udp", 17), ("sctp", 132), ("l2tp", 115)];
pub(super) const ICMP: (&str, u8) = ("icmp", 1);
pub(super) const ICMP_OF_IPV6: (&str, u8) = ("icmpv6", 58);

/// Keys that classes do not match, and why.
const OTHERS: &[(&str, &str)] = &[
    ("vlan_prio", "priorities of VLAN tags are not kept: match `vlan_id`"),
    ("cvlan_id", "only the first VLAN tag is seen"),
    ("cvlan_prio", "only the first VLAN tag is seen"),
    ("cvlan_ethtype", "only the first VLAN tag is seen"),
    ("num_of_vlans", "only the first VLAN tag is seen"),
    ("arp_tip", "of packets that are not IP, classes see no field"),
    ("arp_sip", "of packets that are not IP, classes see no field"),
    ("arp_op", "of packets that are not IP, classes see no field"),
    ("arp_sha", "of packets that are not IP, classes see no field"),
    ("arp_tha", "of packets that are not IP, classes see no field"),
    ("mpls_label", "classes do not see labels of MPLS"),
    ("mpls_tc", "classes do not see labels of MPLS"),
    ("ct_state", "there is no connection tracking here"),
    ("ct_zone", "there is no connection tracking here"),
    ("ct_mark", "there is no connection tracking here"),
];

/// Words that tc lets one shorten, in its order.
pub(super) const SHORT: &[&str] = &[
    "classid",
    "flowid",
    "hw_tc",
    "ip_flags",
    "verbose",
    "skip_hw",
    "skip_sw",
    "ct_state",
    "ct_zone",
    "ct_mark",
    "ct_label",
    "indev",
    "vlan_id",
    "vlan_prio",
    "vlan_ethtype",
    "cvlan_id",
    "cvlan_prio",
    "cvlan_ethtype",
    "mpls",
    "mpls_label",
    "mpls_tc",
    "mpls_bos",
    "mpls_ttl",
    "dst_mac",
    "src_mac",
    "ip_proto",
    "ip_tos",
    "ip_ttl",
    "dst_ip",
    "src_ip",
    "dst_port",
    "src_port",
    "tcp_flags",
    "type",
    "code",
    "arp_tip",
    "arp_sip",
    "arp_op",
    "arp_tha",
    "arp_sha",
    "enc_dst_ip",
    "enc_src_ip",
    "enc_key_id",
    "enc_dst_port",
    "enc_tos",
    "enc_ttl",
    "action",
];

/// Whether it is a key of the tunnel that a packet came out of.
pub(super) fn is_of_tunnels(word: &str) -> bool {
    matches!(
        word,
        "enc_key_id" | "enc_src_ip" | "enc_dst_ip" | "enc_src_port" | "enc_dst_port" | "enc_tos" | "enc_ttl"
    )
}

/// The places among fragments that flags such as `frag/nofirstfrag` leave.
fn fragments(after: Word<'_>, words: &mut Words<'_>) -> Result<Match, Problem> {
    let flags = words.expect(after, "flags of fragments")?;
    let mut left = vec![Fragments::WHOLE, Fragments::FIRST, Fragments::LATER];
    for flag in flags.text.split('/') {
        let (name, is) = flag.strip_prefix("no").map_or((flag, true), |name| (name, false));
        let within: &[Fragments] = match name {
            "frag" => &[Fragments::FIRST, Fragments::LATER],
            "firstfrag" => &[Fragments::FIRST],
            _ => {
                return Err(flags
                    .part(flag)
                    .problem(format!("{} is not a flag of fragments", Found(flag)))
                    .help("allowed: frag, nofrag, firstfrag, nofirstfrag, joined by `/`"));
            }
        };
        left.retain(|one| within.contains(one) == is);
    }
    if left.is_empty() {
        return Err(flags.problem("no packet matches: these flags exclude each other"));
    }
    Ok(Match { fragments: left, ..Match::default() })
}

/// The keys of one filter, each of which tc reads by those before it.
pub(super) struct Keys {
    /// The packets that the filter sees: without a VLAN tag, or, once `vlan_ethtype` names their type, with one.
    seen: Families,
    tagged: bool,
    protocol: Option<u8>,
    /// Keys that the kernel looks at if others, before them or behind, say what packets it is about.
    held: Vec<(&'static str, Match)>,
    /// Type and code of ICMP: value and mask.
    icmp: (u16, u16),
}

impl Keys {
    pub(super) fn new(seen: Families, tagged: bool) -> Self {
        Self {
            seen: if tagged { Families::ALL } else { seen },
            tagged,
            protocol: None,
            held: Vec::new(),
            icmp: (0, 0),
        }
    }

    /// Adds what was held, now that all keys are known. Returns what to say about keys without effect; `None` if no packet
    /// matches.
    pub(super) fn finish(&mut self, all: &mut Match) -> Option<Vec<String>> {
        if self.seen.is_empty() {
            return None;
        }
        let mut notices = Vec::new();
        for (key, new) in std::mem::take(&mut self.held) {
            let (is_seen, needed) = match key {
                "tcp_flags" => (self.protocol == Some(6), "`ip_proto tcp`"),
                _ => (self.is_ip(), "`protocol ip` or `protocol ipv6`"),
            };
            if is_seen {
                *all = both(all, &new)?;
            } else {
                notices.push(format!("`{key}` has no effect without {needed}, as in the kernel"));
            }
        }
        Some(notices)
    }

    fn is_ip(&self) -> bool {
        matches!(self.seen, Families::IPV4 | Families::IPV6)
    }

    /// Parses one key; returns whether it is one.
    pub(super) fn read(
        &mut self,
        word: Word<'_>,
        words: &mut Words<'_>,
        all: &mut Match,
    ) -> Result<bool, Problem> {
        if let Some((_, why)) = OTHERS.iter().find(|(name, _)| *name == word.text) {
            return Err(word.problem(format!("{} of flower", Found(word.text))).help(*why).help(
                "understood: src_mac, dst_mac, ip_proto, src_ip, dst_ip, src_port, dst_port, type, code, ip_tos, ip_ttl, ip_flags, vlan_id, vlan_ethtype and tcp_flags",
            ));
        }
        let new = match word.text {
            "vlan_id" => {
                self.needs_tag(word)?;
                let id = units::integer(words.expect(word, "a VLAN")?, "a VLAN", 1, 4095)? as u16;
                Match { vlans: vec![id..=id], ..Match::default() }
            }
            "vlan_ethtype" => {
                self.needs_tag(word)?;
                self.sees(word, words)?
            }
            // As tc prints it, beside the protocol.
            "eth_type" => {
                if !self.tagged {
                    self.needs_ip(word)?;
                }
                self.sees(word, words)?
            }
            "ip_proto" => {
                self.needs_ip(word)?;
                let number = self.protocol(words.expect(word, "a protocol")?)?;
                self.protocol = Some(number);
                Match { protocols: vec![number], ..Match::default() }
            }
            "src_ip" => Match { sources: self.network(word, words)?, ..Match::default() },
            "dst_ip" => Match { destinations: self.network(word, words)?, ..Match::default() },
            "src_port" => Match { source_ports: self.ports(word, words)?, ..Match::default() },
            "dst_port" => Match { destination_ports: self.ports(word, words)?, ..Match::default() },
            "type" | "code" => self.icmp(word, words)?,
            "src_mac" => Match { link_sources: vec![mac(word, words)?], ..Match::default() },
            "dst_mac" => Match { link_destinations: vec![mac(word, words)?], ..Match::default() },
            "ip_ttl" => {
                self.held.push(("ip_ttl", hop_limit(words.expect(word, "a TTL")?)?));
                Match::default()
            }
            "ip_tos" => {
                let new = type_of_service(words.expect(word, "a value of the TOS byte")?)?;
                self.held.push(("ip_tos", new));
                Match::default()
            }
            "tcp_flags" => {
                self.held.push(("tcp_flags", tcp_flags(words.expect(word, "flags of TCP")?)?));
                Match::default()
            }
            "ip_flags" => fragments(word, words)?,
            _ => return Ok(false),
        };
        *all = both(all, &new)
            .ok_or_else(|| word.problem("no packet matches: it contradicts an earlier match"))?;
        Ok(true)
    }

    /// The packets of a type.
    fn sees(&mut self, word: Word<'_>, words: &mut Words<'_>) -> Result<Match, Problem> {
        self.seen = protocol::read(words.expect(word, "a type")?)?;
        let families = if self.seen.is_empty() { Vec::new() } else { protocol::written(self.seen) };
        Ok(Match { families, ..Match::default() })
    }

    fn needs_tag(&self, word: Word<'_>) -> Result<(), Problem> {
        if self.tagged {
            return Ok(());
        }
        Err(word
            .problem(format!("{} of packets without a VLAN tag", Found(word.text)))
            .help("tc wants the protocol before it, as in: protocol 802.1Q flower vlan_id 100"))
    }

    fn needs_ip(&self, word: Word<'_>) -> Result<(), Problem> {
        if self.is_ip() {
            return Ok(());
        }
        let problem = word.problem(format!("{} of packets that may not be IP", Found(word.text)));
        Err(problem.help(match self.tagged {
            true => "tc wants their type before it: vlan_ethtype ipv4, or ipv6",
            false => "tc wants it before `flower`: protocol ip, or protocol ipv6",
        }))
    }

    /// A protocol by name, or by a number, which tc reads as hexadecimal.
    fn protocol(&self, name: Word<'_>) -> Result<u8, Problem> {
        let icmp = if self.seen == Families::IPV4 { ICMP } else { ICMP_OF_IPV6 };
        if let Some((_, number)) = NAMES.iter().chain([&icmp]).find(|(known, _)| *known == name.text) {
            return Ok(*number);
        }
        let digits = name.text.strip_prefix("0x").unwrap_or(name.text);
        u8::from_str_radix(digits, 16).map_err(|_| {
            let mut allowed: Vec<&str> = NAMES.iter().map(|(known, _)| *known).collect();
            allowed.push(icmp.0);
            name.problem(format!("{} is not a protocol of flower", Found(name.text))).help(format!(
                "allowed: {}, or a number in hexadecimal, such as 2f for GRE",
                allowed.join(", ")
            ))
        })
    }

    /// The network that a word names; empty for all. A mask may have the form of an address.
    fn network(&self, after: Word<'_>, words: &mut Words<'_>) -> Result<Vec<Party>, Problem> {
        self.needs_ip(after)?;
        let word = words.expect(after, "an address")?;
        if matches!(word.text, "any" | "all" | "default" | "0/0" | "0.0.0.0/0" | "::/0") {
            return Ok(Vec::new());
        }
        let dotted = word.text.split_once('/').and_then(|(address, mask)| {
            let mask = u32::from(mask.parse::<std::net::Ipv4Addr>().ok()?);
            (mask.leading_ones() + mask.trailing_zeros() == 32)
                .then(|| format!("{address}/{}", mask.leading_ones()))
        });
        let text = dotted.unwrap_or_else(|| word.text.into());
        let node = Node { span: word.span(), value: Value::String(text) };
        let found = party(&node, &[])?;
        let version = if self.seen == Families::IPV4 { "IPv4" } else { "IPv6" };
        match &found {
            Party::Network { ip, .. } if ip.is_ipv4() != (self.seen == Families::IPV4) => Err(word
                .problem(format!("{} among packets of {version}", Found(word.text)))
                .help("tc wants an address of the protocol that is named before it")),
            _ => Ok(vec![found]),
        }
    }

    /// A type or a code of ICMP, of eight bits each, also with a mask.
    fn icmp(&mut self, after: Word<'_>, words: &mut Words<'_>) -> Result<Match, Problem> {
        if !matches!(self.protocol, Some(1 | 58)) {
            return Err(after
                .problem(format!("{} of packets that may not be ICMP", Found(after.text)))
                .help("tc wants one of these before it: ip_proto icmp, or of IPv6 ip_proto icmpv6"));
        }
        let text = words.expect(after, "a number")?;
        let (value, of) = text.text.split_once('/').unwrap_or((text.text, "255"));
        let [value, mask]: [u8; 2] = match (value.parse(), of.parse()) {
            (Ok(value), Ok(mask)) => [value, mask],
            _ => {
                return Err(text
                    .problem(format!("{} is not a {} of ICMP", Found(text.text), after.text))
                    .help("a number from 0 to 255, and a mask: as in 8/255"));
            }
        };
        let shift = if after.text == "type" { 8 } else { 0 };
        self.icmp.0 |= u16::from(value) << shift;
        self.icmp.1 |= u16::from(mask) << shift;
        Ok(Match { icmp: icmp::having(self.icmp.0, self.icmp.1), ..Match::default() })
    }

    fn ports(&self, after: Word<'_>, words: &mut Words<'_>) -> Result<Vec<RangeInclusive<u16>>, Problem> {
        if !matches!(self.protocol, Some(6 | 17 | 132)) {
            return Err(after
                .problem(format!("{} of packets that may have no ports", Found(after.text)))
                .help("tc wants one of these before it: ip_proto tcp, ip_proto udp, ip_proto sctp"));
        }
        ports(after, words)
    }
}

fn hop_limit(text: Word<'_>) -> Result<Match, Problem> {
    let ttl: u8 = text.text.parse().map_err(|_| {
        text.problem(format!("{} is not a TTL", Found(text.text)))
            .help("a number from 0 to 255, without a mask")
    })?;
    Ok(Match { hop_limits: vec![ttl..=ttl], ..Match::default() })
}

fn type_of_service(text: Word<'_>) -> Result<Match, Problem> {
    let (value, of) = text.text.split_once('/').unwrap_or((text.text, "ff"));
    // Decimal if possible, else hexadecimal, as in tc.
    let digits = value.strip_prefix("0x").unwrap_or(value);
    let value = value.parse().ok().or_else(|| u8::from_str_radix(digits, 16).ok());
    let value = value.ok_or_else(|| {
        text.problem(format!("{} is not a value of the TOS byte", Found(text.text)))
            .help("a number from 0 to 255, decimal or hexadecimal, and a mask: as in 0xb8/0xfc for the code point ef")
    })?;
    Ok(tos(value, mask(text, of, 8)? as u8))
}

fn tcp_flags(text: Word<'_>) -> Result<Match, Problem> {
    let (value, of) = text.text.split_once('/').unwrap_or((text.text, "ff"));
    let (value, mask) = (mask(text, value, 12)?, mask(text, of, 12)?);
    let flags = TcpFlags { set: (mask & value) as u8, clear: (mask & !value) as u8 };
    if mask > 0xff && text.text.contains('/') {
        return Err(text
            .problem("flags of TCP beyond the eight of its byte")
            .help("the bits are fin 1, syn 2, rst 4, psh 8, ack 10, urg 20, ece 40 and cwr 80"));
    }
    Ok(Match { tcp_flags: Some(flags), ..Match::default() })
}

/// The code points and ECN values that agree with a value of the TOS byte and a mask.
pub(super) fn tos(value: u8, mask: u8) -> Match {
    Match {
        dscps: having(0xfc, 2, 64, mask, value),
        ecns: having(0x03, 0, 4, mask, value),
        ..Match::default()
    }
}

/// A MAC address, also with a mask.
fn mac(after: Word<'_>, words: &mut Words<'_>) -> Result<LinkPattern, Problem> {
    let text = words.expect(after, "a MAC address")?;
    link_pattern(text.text).ok_or_else(|| {
        text.problem(format!("{} is not a MAC address", Found(text.text)))
            .help("six bytes such as 02:00:00:00:00:01, and a mask such as /24 or /01:00:00:00:00:00")
    })
}

fn ports(after: Word<'_>, words: &mut Words<'_>) -> Result<Vec<RangeInclusive<u16>>, Problem> {
    let text = words.expect(after, "a port")?;
    let wrong = || text.problem(format!("{} is not a port, and no range of ports", Found(text.text)));
    if let Some((value, of)) = text.text.split_once('/') {
        let value: u16 = value.parse().map_err(|_| wrong())?;
        return ranges(value, mask(text, of, 16)? as u16).map_err(|problem| problem.at(&text.span()));
    }
    let (low, high) = text.text.split_once('-').unwrap_or((text.text, text.text));
    let (low, high): (u16, u16) = (low.parse().map_err(|_| wrong())?, high.parse().map_err(|_| wrong())?);
    if low > high {
        return Err(wrong());
    }
    Ok(vec![low..=high])
}

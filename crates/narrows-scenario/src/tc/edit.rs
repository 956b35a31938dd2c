//! Actions that change packets: `skbmod`, `pedit`, `vlan`, `nat`. They become the keys of [an edit](crate::EditUse).
//!
//! Sources: `m_skbmod.c`, `m_pedit.c` with `p_ip.c`, `p_ip6.c`, `p_eth.c`, `p_tcp.c`, `p_udp.c`, `m_vlan.c` and
//! `m_nat.c` of iproute2; `act_skbmod.c`, `act_pedit.c`, `act_vlan.c` and `act_nat.c` of Linux.

use std::net::{Ipv4Addr, Ipv6Addr};

use narrows_core::classify::Families;

use super::abbreviation::stands_for;
use crate::dialect::{Word, Words};
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::{Found, Problem};
use crate::value::{ECN, Match, Party, link_address, link_address_text};

/// What an action writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Edit {
    /// The keys of an edit.
    pub(super) set: Table,
    /// Whether it writes addresses of IPv4, whose header has a checksum that the kernel leaves to `csum`.
    pub(super) needs_checksum: bool,
    /// The packets that it changes, if it leaves others as they are.
    pub(super) only: Option<Box<Match>>,
    /// Bytes of the destination address of the link layer, written one by one.
    link: [Option<u8>; 6],
}

/// Parses the options of an action; `None` for an action without a counterpart.
pub(super) fn read(action: Word<'_>, words: &mut Words<'_>) -> Option<Result<Edit, Problem>> {
    match action.text {
        "skbmod" => Some(skbmod(action, words)),
        "pedit" => Some(pedit(action, words)),
        "vlan" => Some(vlan(action, words)),
        "nat" => Some(nat(action, words)),
        _ => None,
    }
}

fn number(word: Word<'_>, most: i64, what: &str) -> Result<i64, Problem> {
    let (digits, radix) = match word.text.strip_prefix("0x").or_else(|| word.text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (word.text, 10),
    };
    i64::from_str_radix(digits, radix).ok().filter(|number| (0..=most).contains(number)).ok_or_else(|| {
        word.problem(format!("{} is not {what}", Found(word.text)))
            .help(format!("a number from 0 to {most}, decimal, or hexadecimal with 0x"))
    })
}

fn integer(number: i64) -> Value {
    Value::Integer(number.to_string())
}

fn mac(after: Word<'_>, words: &mut Words<'_>) -> Result<Value, Problem> {
    let word = words.expect(after, "a MAC address")?;
    let address = link_address(word.text)
        .ok_or_else(|| word.problem(format!("{} is not a MAC address", Found(word.text))))?;
    Ok(text(link_address_text(&address)))
}

/// `skbmod set dmac 02:15:15:15:15:15 set etype 0xBEEF`, `skbmod swap mac`, `skbmod ecn`.
fn skbmod(action: Word<'_>, words: &mut Words<'_>) -> Result<Edit, Problem> {
    let mut edit = Edit::default();
    while let Some(word) = words.peek() {
        match word.text {
            "set" => {
                words.take();
            }
            "dmac" => {
                words.take();
                edit.write("link-destination", mac(word, words)?);
            }
            "smac" => {
                words.take();
                edit.write("link-source", mac(word, words)?);
            }
            "etype" => {
                words.take();
                let value = words.expect(word, "an EtherType")?;
                // Always hexadecimal, as in tc.
                let digits = value.text.trim_start_matches("0x").trim_start_matches("0X");
                let number = u16::from_str_radix(digits, 16).ok().filter(|number| *number >= 0x600);
                let number = number.ok_or_else(|| {
                    value
                        .problem(format!("{} is not an EtherType", Found(value.text)))
                        .help("a hexadecimal number from 0x600 to 0xffff")
                })?;
                edit.write("ether-type", integer(number.into()));
            }
            "swap" => {
                words.take();
                words.take_if("mac");
                edit.write("swap-link-addresses", Value::Boolean(true));
            }
            "ecn" => {
                words.take();
                edit.write("mark", Value::Boolean(true));
            }
            _ => break,
        }
    }
    if edit.set.iter().next().is_none() {
        return Err(action
            .problem("`skbmod` that changes nothing")
            .help("as in: skbmod set dmac 02:15:15:15:15:15"));
    }
    Ok(edit)
}

/// `vlan push id 123`, `vlan pop`.
fn vlan(action: Word<'_>, words: &mut Words<'_>) -> Result<Edit, Problem> {
    let mut edit = Edit::default();
    let what = words.expect(action, "push or pop")?;
    match what.text {
        "pop" => edit.write("vlan", integer(0)),
        "push" => {
            let mut id = None;
            while let Some(word) = words.peek() {
                match word.text {
                    "id" => {
                        words.take();
                        id = Some(number(words.expect(word, "a VLAN")?, 4094, "a VLAN")?);
                    }
                    "protocol" => {
                        words.take();
                        let value = words.expect(word, "a type of tag")?;
                        if !matches!(value.text.to_ascii_lowercase().as_str(), "802.1q" | "0x8100") {
                            return Err(value
                                .problem(format!("a tag of type {}", Found(value.text)))
                                .help("tags are put on as 802.1Q here"));
                        }
                    }
                    "priority" => {
                        words.take();
                        let value = words.expect(word, "a priority")?;
                        if number(value, 7, "a priority of a tag")? != 0 {
                            return Err(value
                                .problem("a priority of a tag")
                                .help("tags have the priority 0 here"));
                        }
                    }
                    _ => break,
                }
            }
            let id = id.filter(|id| *id > 0).ok_or_else(|| {
                what.problem("`vlan push` without a VLAN").help("as in: vlan push id 123, from 1 to 4094")
            })?;
            edit.write("vlan", integer(id));
        }
        "modify" => {
            return Err(what.problem("unsupported `modify` of `vlan`").help(
                "a tag stays as it is on a link: take it off with `pop`, or put one on with `push id N`",
            ));
        }
        other => {
            return Err(what
                .problem(format!("unsupported {} of `vlan`", Found(other)))
                .help("understood: `push id N`, `pop`"));
        }
    }
    Ok(edit)
}

/// `pedit ex munge ip dst set 10.0.0.1 munge tcp dport set 80`, `pedit munge offset -14 u16 set 0x0215`.
fn pedit(action: Word<'_>, words: &mut Words<'_>) -> Result<Edit, Problem> {
    let mut edit = Edit::default();
    // Tutorials write the word twice, which tc ignores.
    while words.take_if("pedit") || words.take_if("ex") {}
    while let Some(munge) = words.peek().filter(|word| word.text == "munge") {
        words.take();
        let layer = words.expect(munge, "what to change")?;
        if layer.text == "offset" {
            edit.offset(layer, words)?;
            continue;
        }
        let field = words.expect(layer, "a field")?;
        edit.field(layer, field, words)?;
        if let Some(word) = words.peek().filter(|word| word.text == "retain") {
            return Err(word
                .problem("`retain` of `pedit` changes a part of a field")
                .help("whole fields are written here"));
        }
    }
    if let Some(last) = edit.link.iter().position(Option::is_none).filter(|_| edit.link != [None; 6]) {
        return Err(action
            .problem(format!(
                "a part of the destination MAC address is written: the byte at {} is not",
                last as i32 - 14
            ))
            .help("whole fields are written here: the six bytes from -14 to -9"));
    }
    if let [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)] = edit.link {
        edit.write("link-destination", text(link_address_text(&[a, b, c, d, e, f])));
    }
    if edit.set.iter().next().is_none() {
        return Err(action
            .problem("`pedit` that changes nothing")
            .help("as in: pedit ex munge ip ttl set 64"));
    }
    Ok(edit)
}

/// `nat ingress 192.0.2.1 10.0.0.1`: packets to the first address get the second; `nat egress` is about the source. The
/// kernel updates all checksums.
fn nat(action: Word<'_>, words: &mut Words<'_>) -> Result<Edit, Problem> {
    let way = words.expect(action, "`ingress` or `egress`")?;
    let is_source = stands_for(way.text, "egress");
    if !is_source && !stands_for(way.text, "ingress") {
        return Err(way.expected("`ingress`, which changes the destination, or `egress`, for the source"));
    }
    let old = words.expect(way, "the address of packets to change")?;
    let new = words.expect(old, "the address that they get")?;
    let address = |word: Word<'_>| {
        let (address, length) = word.text.split_once('/').unwrap_or((word.text, "32"));
        let wrong = || word.problem(format!("{} is not an address of IPv4", Found(word.text)));
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let length = length.parse::<u8>().ok().filter(|length| *length <= 32);
        Ok::<_, Problem>((address, length.ok_or_else(wrong)?))
    };
    let (old_text, _) = old.text.split_once('/').unwrap_or((old.text, ""));
    if matches!(old_text, "any" | "all" | "default") || old.text.ends_with("/0") {
        return Ok(Edit::default());
    }
    // Of the new one, the kernel takes as many bits as the old one has.
    let ((old_address, length), (address, _)) = (address(old)?, address(new)?);
    if length < 32 {
        return Err(old
            .problem(format!("`nat` of a network, {}", Found(old.text)))
            .help("here it translates single addresses: write a filter for each"));
    }
    let party = vec![Party::Network { ip: old_address.into(), prefix: 32 }];
    let mut only = Match { families: vec![Families::IPV4], ..Match::default() };
    if is_source {
        only.sources = party;
    } else {
        only.destinations = party;
    }
    let mut edit = Edit { only: Some(Box::new(only)), ..Edit::default() };
    edit.write(if is_source { "source" } else { "destination" }, text(address));
    Ok(edit)
}

/// What `nat` of all addresses comes to.
pub(super) const OF_ANY: &str = "`nat` of any address changes nothing, as in the kernel: of the new address it takes as many bits as the old one names.";

impl Edit {
    fn write(&mut self, key: &str, value: Value) {
        self.set.remove(key);
        self.set.put(key, value);
    }

    /// `set VALUE` of a field.
    fn field(&mut self, layer: Word<'_>, field: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
        let how = words.expect(field, "set")?;
        if how.text != "set" {
            return Err(how
                .problem(format!("unsupported {} of `pedit`", Found(how.text)))
                .help("understood: `set VALUE`"));
        }
        let (key, value) = match (layer.text, field.text) {
            ("eth", "dst") => ("link-destination", mac(how, words)?),
            ("eth", "src") => ("link-source", mac(how, words)?),
            ("ip", "src" | "dst") => {
                self.needs_checksum = true;
                let value = words.expect(how, "an address")?;
                let address: Ipv4Addr = value
                    .text
                    .parse()
                    .map_err(|_| value.problem(format!("{} is not an address of IPv4", Found(value.text))))?;
                (end(field.text), text(address))
            }
            ("ip6", "src" | "dst") => {
                let value = words.expect(how, "an address")?;
                let address: Ipv6Addr = value
                    .text
                    .parse()
                    .map_err(|_| value.problem(format!("{} is not an address of IPv6", Found(value.text))))?;
                (end(field.text), text(address))
            }
            ("ip", "ttl") | ("ip6", "hoplimit") => {
                self.needs_checksum |= layer.text == "ip";
                ("hop-limit", integer(number(words.expect(how, "a hop limit")?, 255, "a hop limit")?))
            }
            ("ip", "tos" | "dsfield") | ("ip6", "traffic_class") => {
                self.needs_checksum |= layer.text == "ip";
                return self.code_point(how, words);
            }
            ("ip" | "tcp" | "udp", "sport" | "dport") => {
                let key = if field.text == "sport" { "source-port" } else { "destination-port" };
                (key, integer(number(words.expect(how, "a port")?, 65_535, "a port")?))
            }
            _ => {
                return Err(field
                    .problem(format!("unsupported field {} of {}", Found(field.text), Found(layer.text)))
                    .help("understood: eth src, dst; ip src, dst, ttl, tos, dsfield; ip6 src, dst, hoplimit, traffic_class; tcp, udp and ip sport, dport; bytes of the destination MAC address by their offset"));
            }
        };
        self.write(key, value);
        Ok(())
    }

    /// `set 0xb8 retain 0xfc` of the byte with code point and ECN field: `retain` says which bits are written.
    fn code_point(&mut self, set: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
        let value = number(words.expect(set, "a value of the byte")?, 255, "a value of the byte")?;
        let mut mask = 0xff;
        if let Some(retain) = words.peek().filter(|word| word.text == "retain") {
            words.take();
            let word = words.expect(retain, "the bits that are written")?;
            mask = number(word, 255, "a mask of the byte")?;
            if !matches!(mask, 0xff | 0xfc | 0x03) {
                return Err(word
                    .problem(format!("{} is a part of the code point", Found(word.text)))
                    .help("understood: the code point (0xfc), the ECN field (0x03) and both (0xff)"));
            }
        }
        if mask & 0xfc != 0 {
            self.write("dscp", integer(value >> 2));
        }
        if mask & 0x03 != 0 {
            self.write("ecn", text(ECN.name(&((value & 0x03) as u8))));
        }
        Ok(())
    }

    /// `offset -14 u8 set 0x02`: bytes of the destination address of the link layer.
    fn offset(&mut self, place: Word<'_>, words: &mut Words<'_>) -> Result<(), Problem> {
        const FIRST: i64 = -14;
        let at = words.expect(place, "an offset")?;
        let offset: i64 =
            at.text.parse().map_err(|_| at.problem(format!("{} is not an offset", Found(at.text))))?;
        let size = words.expect(at, "u8, u16 or u32")?;
        let bytes: u32 = match size.text {
            "u8" => 1,
            "u16" => 2,
            "u32" => 4,
            other => {
                return Err(size.problem(format!("{} is not a size", Found(other))).help("u8, u16 or u32"));
            }
        };
        let how = words.expect(size, "set")?;
        let value = words.expect(how, "a value")?;
        let number = number(value, (1 << (8 * bytes)) - 1, "a value of this size")?;
        let within = (0..i64::from(bytes)).all(|byte| (FIRST..FIRST + 6).contains(&(offset + byte)));
        if how.text != "set" || !within {
            return Err(at
                .problem(format!("unsupported bytes at {} of `pedit`", Found(at.text)))
                .help("understood: `set` of the destination MAC address, at -14 to -9; other fields by their names, with `ex`"));
        }
        for byte in 0..bytes {
            let slot = (offset - FIRST) as usize + byte as usize;
            self.link[slot] = Some((number >> (8 * (bytes - 1 - byte))) as u8);
        }
        Ok(())
    }

    /// Writes what another edit writes behind this one.
    pub(super) fn then(&mut self, later: &Table) {
        for (key, node) in later.iter() {
            self.write(&key.name, node.value.clone());
        }
    }
}

const fn end(field: &str) -> &'static str {
    if matches!(field.as_bytes(), b"src") { "source" } else { "destination" }
}

/// The checksums that `csum` updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Of IPv4 headers.
    pub(super) ip: bool,
    tcp: bool,
    udp: bool,
}

impl Sums {
    pub(super) const fn and(self, other: Self) -> Self {
        Self { ip: self.ip | other.ip, tcp: self.tcp | other.tcp, udp: self.udp | other.udp }
    }
}

impl Edit {
    /// A notice about an edit behind which `csum` updates these checksums, if it leaves others wrong in the kernel. Those of
    /// TCP and UDP are also over the addresses.
    pub(super) fn stale(&self, sums: Sums) -> Option<String> {
        if self.only.is_some() {
            return None;
        }
        let writes = |key| self.set.iter().any(|(written, _)| written.name == key);
        let names = match (sums.tcp, sums.udp) {
            _ if !writes("source") && !writes("destination") => return None,
            (true, true) => return None,
            (false, true) => "tcp",
            (true, false) => "udp",
            (false, false) => "tcp and udp",
        };
        Some(format!(
            "`csum` does not name {names}: after this change of addresses the kernel sends such packets with a wrong checksum, and receivers drop them. Here it is right."
        ))
    }
}

/// The checksums that the words of `csum` name. Takes them.
pub(super) fn csum(words: &mut Words<'_>) -> Sums {
    const NAMES: [&str; 9] = ["ip", "ip4h", "ipv4h", "icmp", "igmp", "tcp", "udp", "udplite", "sctp"];
    let mut sums = Sums::default();
    while let Some(word) = words.peek() {
        let is_and = matches!(word.text, "and" | "+" | "&");
        if !is_and && !NAMES.contains(&word.text) && word.text != "update" && word.text != "icmpv6" {
            break;
        }
        sums.ip |= matches!(word.text, "ip" | "ip4h" | "ipv4h");
        sums.tcp |= word.text == "tcp";
        sums.udp |= word.text == "udp";
        words.take();
    }
    sums
}

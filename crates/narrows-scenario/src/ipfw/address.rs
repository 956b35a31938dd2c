//! Addresses in rules: `any`, `me`, hosts, `a/len`, `a:mask`, `a/24{1,5-9}`, lists of them,
//! `table(N,value)`, and link-layer addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use narrows_core::rules::{Addresses, FlowFields, Masked, TableTest};

use super::lexer::Word;
use super::numbers;
use crate::dialect::shell::Start;
use crate::problem::{Found, Problem};

/// External names that rules may use.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The interfaces at the rules' inside, for `recv`, `xmit` and `via`.
    pub interfaces: &'a [&'a str],
    /// The interfaces at the rules' outside, the other end.
    pub outside: &'a [&'a str],
    /// Interfaces that no packet of the link passes.
    pub elsewhere: &'a [&'a str],
    /// Hosts known by name with their addresses, from a scenario.
    pub hosts: &'a [(String, Vec<IpAddr>)],
    /// Resolves any other name.
    pub resolve: fn(&str) -> io::Result<Vec<IpAddr>>,
    /// The rules are on a host with a single interface, the link's.
    pub is_end: bool,
    /// The name of dynamic rules, if there is only one in the script.
    pub states: Option<&'a str>,
    /// The tables whose entries are interfaces.
    pub interface_tables: &'a [String],
    /// The tables whose entries are flows.
    pub flow_tables: &'a [(String, FlowFields)],
    /// There is no router at either end of the link.
    pub no_router: bool,
    /// The command is one of a script: what it names without effect in ipfw has none here either, with a remark. A command
    /// for a run is then an error, as it does nothing that was meant.
    pub is_script: bool,
    /// What the script is started with.
    pub start: Start<'a>,
}

impl Default for Context<'_> {
    /// No interfaces, no hosts; names use the system's resolver.
    fn default() -> Self {
        Self {
            interfaces: &[],
            outside: &[],
            elsewhere: &[],
            hosts: &[],
            resolve,
            is_end: false,
            states: None,
            interface_tables: &[],
            flow_tables: &[],
            no_router: false,
            is_script: false,
            start: Start::default(),
        }
    }
}

fn resolve(name: &str) -> io::Result<Vec<IpAddr>> {
    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// Preferred address family of a name; the other family is the fallback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

/// The prefix of IPv4-mapped addresses: ::ffff:0:0.
const MAPPED: u128 = 0xffff_0000_0000;
/// The 128-bit mask of an IPv4 network with prefix length 0.
const V4: u128 = u128::MAX << 32;

/// Meaning of an address word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Any address.
    Any,
    /// `me6`.
    Me6,
    These(Addresses),
}

/// Parses addresses. Adds a remark for each name that was looked up.
pub(super) fn addresses(
    word: &Word,
    family: Family,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Said, Problem> {
    match word.text.as_str() {
        "any" => return Ok(Said::Any),
        "me" => return Ok(Said::These(Addresses::Me)),
        "me6" => return Ok(Said::Me6),
        _ => {}
    }
    if let Some(table) = named_table(word)? {
        return Ok(Said::These(Addresses::Table(table)));
    }
    let mut list = Vec::new();
    let mut any = false;
    for item in items(&word.text) {
        let item = word.part(item);
        let read = networks(&item, family, context, remarks)?;
        any |= read.iter().any(|masked| masked.mask == 0 || masked.mask == V4 && masked.address == MAPPED);
        list.extend(read);
    }
    if list.iter().any(is_loopback) && context.is_script {
        remarks.push(format!(
            "no packet of a link is to or from {}, by which a host talks to itself",
            Found(&word.text)
        ));
    }
    if any {
        remarks.push(format!("{} holds every address, as `any` does", Found(&word.text)));
        return Ok(Said::Any);
    }
    Ok(Said::These(Addresses::In(list)))
}

/// Splits at commas outside braces.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let at_top = |c: char| match c {
        '{' => {
            depth += 1;
            false
        }
        '}' => {
            depth = depth.saturating_sub(1);
            false
        }
        c => c == ',' && depth == 0,
    };
    text.split(at_top).collect()
}

/// Parses a table, optionally with a required value after `separator`.
pub(super) fn table(word: &Word, separator: char) -> Result<TableTest, Problem> {
    let (name, value) = match word.text.split_once(separator) {
        Some((name, value)) => (name, Some(numbers::integer(&word.part(value), "a value", u32::MAX)?)),
        None => (word.text.as_str(), None),
    };
    Ok(TableTest { table: table_name(&word.part(name))?, value })
}

/// Parses `table(NAME)` or `table(NAME,value)`; `None` if it is something else.
pub(super) fn named_table(word: &Word) -> Result<Option<TableTest>, Problem> {
    let Some(inside) = word.text.strip_prefix("table(") else { return Ok(None) };
    let inside =
        inside.strip_suffix(')').ok_or_else(|| word.expected("`table(NAME)` or `table(NAME,value)`"))?;
    table(&word.part(inside), ',').map(Some)
}

/// Parses the name of a table; numbers lose leading zeros.
pub(super) fn table_name(word: &Word) -> Result<String, Problem> {
    const MOST: usize = 63;
    let name = word.text.as_str();
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > MOST || !name.chars().all(known) || name == "all" {
        return Err(word
            .expected("the number or the name of a table")
            .help(format!("a name has 1 to {MOST} of the characters a–z, A–Z, 0–9, `-`, `_` and `.`")));
    }
    match name.bytes().all(|byte| byte.is_ascii_digit()) {
        true => {
            numbers::decimal(word, "the number of a table", 0..=u32::MAX).map(|number| number.to_string())
        }
        false => Ok(name.into()),
    }
}

/// Parses one entry of a list: a network, or a set of addresses.
fn networks(
    item: &Word,
    family: Family,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Vec<Masked>, Problem> {
    let (network, set) = match item.text.split_once('{') {
        Some((network, set)) => {
            let set = set.strip_suffix('}').ok_or_else(|| item.problem("the set of addresses has no `}`"))?;
            (item.part(network), Some(item.part(set)))
        }
        None => (item.clone(), None),
    };
    let masked = match network.text.split_once('/') {
        Some((host, bits)) => {
            let address = host_address(&network.part(host), family, context, remarks)?;
            prefix(address, &network.part(bits))?
        }
        None if network.text.parse::<Ipv6Addr>().is_ok() || !network.text.contains(':') => {
            let address = host_address(&network, family, context, remarks)?;
            let bits = if set.is_some() { 24 } else { 32 };
            let mask = if address.is_ipv4() { v4_mask(bits) } else { u128::MAX };
            masked(address, mask)
        }
        None => {
            let (host, mask) = network.text.split_once(':').unwrap_or_default();
            let host = network.part(host);
            let address = host_address(&host, Family::V4, context, remarks)?;
            if address.is_ipv6() {
                return Err(host.expected("an IPv4 address before the mask"));
            }
            let mask = network.part(mask);
            let bits: Ipv4Addr =
                mask.text.parse().map_err(|_| mask.expected("a mask such as 255.255.255.0"))?;
            masked(address, V4 | u128::from(u32::from(bits)))
        }
    };
    match set {
        None => Ok(vec![masked]),
        Some(set) => members(&network, masked, &set),
    }
}

/// Whether all of these addresses are those of a host for itself.
fn is_loopback(these: &Masked) -> bool {
    let [v4, v6] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].map(mapped);
    // 127.0.0.0/8
    let mask = u128::MAX << 24;
    these.mask & mask == mask && these.address & mask == v4 & mask
        || these.mask == u128::MAX && these.address == v6
}

fn masked(address: IpAddr, mask: u128) -> Masked {
    Masked { address: mapped(address) & mask, mask }
}

/// The address as 128 bits.
pub(super) fn mapped(address: IpAddr) -> u128 {
    let v6 = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    u128::from(v6)
}

/// The 128-bit mask of an IPv4 prefix of `bits` bits.
fn v4_mask(bits: u32) -> u128 {
    u128::MAX.checked_shl(32 - bits).unwrap_or(0)
}

fn prefix(address: IpAddr, bits: &Word) -> Result<Masked, Problem> {
    if let (IpAddr::V6(_), Ok(mask)) = (address, bits.text.parse::<Ipv6Addr>()) {
        return Ok(masked(address, u128::from(mask)));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let count = numbers::decimal(bits, "a number of bits", 0..=most)?;
    let mask = match address {
        IpAddr::V4(_) => v4_mask(count),
        IpAddr::V6(_) => u128::MAX.checked_shl(128 - count).unwrap_or(0),
    };
    Ok(masked(address, mask))
}

/// Parses an address, or the name of a host.
pub(super) fn host_address(
    word: &Word,
    family: Family,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<IpAddr, Problem> {
    let name = word.text.as_str();
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(address);
    }
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if !is_name || name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(word
            .expected("an address or the name of a host")
            .help("as in 10.0.0.1, 10.0.0.0/24, 10.0.0.0:255.255.255.0, 10.0.0.0/24{1,5-9}, 2001:db8::/32, `any`, `me` or table(1)"));
    }
    let found = match context.hosts.iter().find(|(host, _)| host == name) {
        Some((_, addresses)) => addresses.clone(),
        None => (context.resolve)(name).map_err(|error| {
            word.problem(format!("no host is called {}: {error}", Found(name))).help(
                "names are resolved when the rule is read; write the address if the name cannot be resolved",
            )
        })?,
    };
    let preferred = found.iter().copied().find(|address| address.is_ipv6() == (family == Family::V6));
    let address = preferred.or(found.first().copied());
    let address = address.ok_or_else(|| word.problem(format!("the host {} has no address", Found(name))))?;
    let remark = format!("`{name}` is {address}");
    if !remarks.contains(&remark) {
        remarks.push(remark);
    }
    Ok(address)
}

/// The members of a set in a network with prefix length 24 to 31, by their last byte.
fn members(network: &Word, masked: Masked, set: &Word) -> Result<Vec<Masked>, Problem> {
    let bits = masked.mask.count_ones().saturating_sub(96);
    let contiguous = masked.mask == v4_mask(bits.min(32)) && masked.address & V4 == MAPPED & V4;
    if !(contiguous && (24..=31).contains(&bits)) {
        return Err(network.problem(format!(
            "a set of addresses is in an IPv4 network of 24 to 31 bits, not in {}",
            Found(&network.text)
        )));
    }
    let low = masked.address as u8; // the last byte
    let high = low | (0xff_u32 >> (bits - 24)) as u8;
    let mut members = Vec::new();
    for item in set.text.split(',') {
        let item = set.part(item);
        let (first, last) = item.text.split_once('-').unwrap_or((&item.text, &item.text));
        let read = |text: &str| {
            let word = item.part(text);
            numbers::decimal(&word, "the last byte of an address", low.into()..=high.into())
        };
        let (first, last) = (read(first)?, read(last)?);
        if first > last {
            return Err(item.problem(format!("{} is a descending range", Found(&item.text))));
        }
        members.extend(first..=last);
    }
    members.sort_unstable();
    members.dedup();
    let base = masked.address & !0xff;
    Ok(members.into_iter().map(|last| Masked { address: base | u128::from(last), mask: u128::MAX }).collect())
}

/// A link-layer address and its mask.
pub(super) type LinkAddress = ([u8; 6], [u8; 6]);

/// Parses a link-layer address and its mask; `None` for `any`.
pub(super) fn link_address(word: &Word) -> Result<Option<LinkAddress>, Problem> {
    if word.text == "any" {
        return Ok(None);
    }
    let (address, mask) = if let Some((address, mask)) = word.text.split_once('&') {
        (address, six_bytes(&word.part(mask))?)
    } else if let Some((address, bits)) = word.text.split_once('/') {
        let bits = numbers::decimal(&word.part(bits), "a number of bits", 0..=48)?;
        let mask = (0xffff_ffff_ffff_u64 << (48 - bits)) & 0xffff_ffff_ffff;
        let [_, _, mask @ ..] = mask.to_be_bytes();
        (address, mask)
    } else {
        (word.text.as_str(), [0xff; 6])
    };
    let mut address = six_bytes(&word.part(address))?;
    address.iter_mut().zip(mask).for_each(|(byte, mask)| *byte &= mask);
    Ok(Some((address, mask)).filter(|_| mask != [0; 6]))
}

pub(super) fn six_bytes(word: &Word) -> Result<[u8; 6], Problem> {
    let mut bytes = [0; 6];
    let parts: Vec<&str> = word.text.split(':').collect();
    let read = parts.len() == 6
        && parts.iter().zip(&mut bytes).all(|(part, byte)| {
            let hexadecimal = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
            u8::from_str_radix(part, 16).is_ok_and(|value| {
                *byte = value;
                hexadecimal
            })
        });
    if read {
        Ok(bytes)
    } else {
        Err(word.expected("an address of six bytes, such as 0a:00:27:00:00:01, or `any`"))
    }
}

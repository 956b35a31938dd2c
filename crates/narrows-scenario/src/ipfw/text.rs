//! Rules in the layout of `ipfw list`, which parses back to the same rules.
//!
//! As in ipfw, the body comes first, with `ip`, `from any` and `to any` where the rule has no condition;
//! conditions that do not fit there follow as options. Numbers are printed without names, and lists of
//! addresses in a network of 24 or more bits as sets. Interfaces are printed by their effect: `via any`
//! matches always, `via none` never.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use narrows_core::Probability;
use narrows_core::rules::{
    Action, Addresses, Answer, Argument, Field, Keep, Literal, Masked, NextHop, Ranges, Rule, TableTest, Tag,
    Term, Test,
};

use super::names;

/// A rule as `ipfw list` prints it, without leading zeros of the number. With `add` before it, it is a
/// command.
pub fn rule_text(rule: &Rule) -> String {
    let mut text = String::new();
    if rule.number > 0 {
        text += &format!("{} ", rule.number);
    }
    if rule.set > 0 {
        text += &format!("set {} ", rule.set);
    }
    text + &body_text(rule)
}

/// The text after the number, the counters and the set.
pub(super) fn body_text(rule: &Rule) -> String {
    let mut text = String::new();
    if let Some(probability) = rule.probability {
        text += &format!("prob {} ", decimal(probability));
    }
    text += &action(rule.action);
    if rule.log {
        text += " log";
    }
    match rule.tag {
        Some(Tag::Add(tag)) => text += &format!(" tag {tag}"),
        Some(Tag::Remove(tag)) => text += &format!(" untag {tag}"),
        None => {}
    }
    if rule.action != Action::CheckState {
        conditions(&mut text, rule);
    }
    if let Some(comment) = &rule.comment {
        text += " // ";
        text += comment;
    }
    text.truncate(text.trim_end().len());
    text
}

fn action(action: Action) -> String {
    let with = |name: &str, argument| match argument {
        Argument::Number(number) => format!("{name} {number}"),
        Argument::TableArgument => format!("{name} tablearg"),
    };
    match action {
        Action::Allow => "allow".into(),
        Action::Deny => "deny".into(),
        Action::Reject(answer) => rejection(answer),
        Action::Count => "count".into(),
        Action::Return => "return".into(),
        Action::CheckState => "check-state".into(),
        Action::Nat(number) => with("nat", number),
        Action::NatGlobal => "nat global".into(),
        Action::SkipTo(to) => with("skipto", to),
        Action::Call(to) => with("call", to),
        Action::Pipe(number) => with("pipe", number),
        Action::Queue(number) => with("queue", number),
        Action::SetDscp(Argument::Number(point)) => {
            let name = u8::try_from(point).ok().and_then(|point| names::name(names::CODE_POINTS, point));
            format!("setdscp {}", name.map_or(point.to_string(), Into::into))
        }
        Action::SetMark(Argument::Number(mark)) => format!("setmark 0x{mark:x}"),
        Action::SetMark(mark) => with("setmark", mark),
        Action::SetFib(fib) => with("setfib", fib),
        Action::Forward(NextHop::Address(to)) => format!("fwd {}", ip_text(to)),
        Action::Forward(NextHop::TableArgument) => "fwd tablearg".into(),
        Action::SetDscp(Argument::TableArgument) => "setdscp tablearg".into(),
    }
}

fn rejection(answer: Answer) -> String {
    let named = |name: &str, codes, code: u8| {
        format!("{name} {}", names::name(codes, code).map_or(code.to_string(), Into::into))
    };
    match answer {
        Answer::Reset => "reset".into(),
        Answer::Reset6 => "reset6".into(),
        Answer::Unreachable(code) => named("unreach", names::UNREACHABLE, code),
        Answer::Unreachable6(code) => named("unreach6", names::UNREACHABLE_6, code),
        Answer::FragmentationNeeded(0) => "unreach needfrag".into(),
        Answer::FragmentationNeeded(mtu) => format!("unreach needfrag {mtu}"),
    }
}

/// The shortest decimal with at least six digits that parses to this probability.
pub(super) fn decimal(probability: Probability) -> String {
    // 19 digits distinguish all probabilities.
    for digits in [6, 9, 12, 15, 18, 19] {
        let one = 10_u64.pow(digits);
        // Finds the first decimal whose probability is not below.
        let (mut low, mut high) = (0, one);
        while low < high {
            let middle = low + (high - low) / 2;
            if Probability::from_ratio(middle, one) < Some(probability) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if Probability::from_ratio(low, one) == Some(probability) {
            return format!("{}.{:0width$}", low / one, low % one, width = digits as usize);
        }
    }
    probability.as_f64().to_string()
}

fn conditions(text: &mut String, rule: &Rule) {
    let mut terms = rule.terms.as_slice();
    let protocol = take(&mut terms, |literal| body_protocol(&literal.test).is_some());
    match protocol {
        Some(term) => block(text, term, |literal| body_protocol(&literal.test).unwrap_or_default()),
        None => text.push_str(" ip"),
    }
    let source = |test: &Test| match test {
        Test::Source(addresses) => Some(addresses_text(addresses)),
        _ => None,
    };
    let destination = |test: &Test| match test {
        Test::Destination(addresses) => Some(addresses_text(addresses)),
        _ => None,
    };
    text.push_str(" from");
    party(text, &mut terms, source);
    if let [Term(literals), rest @ ..] = terms
        && let [Literal { not, test: Test::SourcePort(ports) }] = literals.as_slice()
    {
        text.push_str(if *not { " not " } else { " " });
        text.push_str(&ranges(ports));
        terms = rest;
    }
    text.push_str(" to");
    party(text, &mut terms, destination);
    while let [term, rest @ ..] = terms {
        terms = rest;
        if let (Some([to_address, to_mask]), Some([address, mask])) =
            (link_part(term, true), rest.first().and_then(|next| link_part(next, false)))
        {
            let (to, from) = (link_address(to_address, to_mask), link_address(address, mask));
            text.push_str(&format!(" MAC {to} {from}"));
            terms = &rest[1..];
            continue;
        }
        block(text, term, |literal| option(&literal.test));
    }
    let [keeps, limits] =
        if rule.records { [" record-state", " set-limit"] } else { [" keep-state", " limit"] };
    match rule.keep {
        Some(Keep::State) => text.push_str(keeps),
        Some(Keep::Limit { most, by }) => {
            let parts = [by.source, by.source_port, by.destination, by.destination_port];
            let named: Vec<&str> =
                names::LIMITS.iter().zip(parts).filter(|(_, is)| *is).map(|(name, _)| *name).collect();
            let by = if named.len() == parts.len() { "all".into() } else { named.join(",") };
            text.push_str(&format!("{limits} {by} {most}"));
        }
        None => {}
    }
    if rule.defers {
        text.push_str(" defer-action");
    }
}

/// The address of a next hop.
pub(super) fn ip_text(address: [u8; 16]) -> String {
    masked(&Masked { address: u128::from_be_bytes(address), mask: u128::MAX })
}

/// Takes the first term if all its literals are of this kind.
fn take<'a>(terms: &mut &'a [Term], is: impl Fn(&Literal) -> bool) -> Option<&'a Term> {
    let (first, rest) = terms.split_first()?;
    if first.0.is_empty() || !first.0.iter().all(is) {
        return None;
    }
    *terms = rest;
    Some(first)
}

fn party(text: &mut String, terms: &mut &[Term], address: impl Fn(&Test) -> Option<String>) {
    // A bare `any` is no condition in the body; as an option, it matches IP packets only.
    let is = |literal: &Literal| address(&literal.test).is_some_and(|address| address != "any");
    match take(terms, is) {
        Some(term) => block(text, term, |literal| address(&literal.test).unwrap_or_default()),
        None => text.push_str(" any"),
    }
}

/// Writes a term: one condition, or several in braces.
fn block(text: &mut String, term: &Term, condition: impl Fn(&Literal) -> String) {
    let several = term.0.len() > 1;
    for (index, literal) in term.0.iter().enumerate() {
        text.push_str(match (several, index) {
            (true, 0) => " { ",
            (true, _) => " or ",
            (false, _) => " ",
        });
        if literal.not {
            text.push_str("not ");
        }
        text.push_str(&condition(literal));
    }
    if several {
        text.push_str(" }");
    }
}

fn body_protocol(test: &Test) -> Option<String> {
    match test {
        Test::Protocol(number) => Some(protocol(*number)),
        Test::IpVersion(version @ (4 | 6)) => Some(format!("ip{version}")),
        _ => None,
    }
}

/// The name of a protocol, or its number.
pub(super) fn protocol(number: u8) -> String {
    names::name(names::PROTOCOLS, number).map_or(number.to_string(), Into::into)
}

fn option(test: &Test) -> String {
    match test {
        Test::Any => "via any".into(),
        Test::Never => "via none".into(),
        Test::Protocol(number) => format!("proto {}", protocol(*number)),
        Test::IpVersion(version @ (4 | 6)) => format!("ip{version}"),
        Test::IpVersion(version) => format!("ipversion {version}"),
        Test::Source(addresses) => format!("src-ip{} {}", suffix(addresses), addresses_text(addresses)),
        Test::Destination(addresses) => format!("dst-ip{} {}", suffix(addresses), addresses_text(addresses)),
        Test::SourcePort(ports) => format!("src-port {}", ranges(ports)),
        Test::DestinationPort(ports) => format!("dst-port {}", ranges(ports)),
        Test::In => "in".into(),
        Test::Out => "out".into(),
        Test::Layer2 => "layer2".into(),
        Test::LinkSource { address, mask } => format!("MAC any {}", link_address(*address, *mask)),
        Test::LinkDestination { address, mask } => format!("MAC {} any", link_address(*address, *mask)),
        Test::EtherType(types) => {
            let item = |range: &std::ops::RangeInclusive<u16>| match (range.start(), range.end()) {
                (low, high) if low == high => format!("0x{low:04x}"),
                (low, high) => format!("0x{low:04x}-0x{high:04x}"),
            };
            format!("mac-type {}", types.iter().map(item).collect::<Vec<_>>().join(","))
        }
        Test::Length(lengths) => format!("iplen {}", ranges(lengths)),
        Test::HopLimit(limits) => format!("ipttl {}", ranges(limits)),
        Test::Tos(tos) => format!("iptos {}", flags(tos.set, tos.clear, names::TOS)),
        Test::Dscp(set) => {
            let points = (0..64).filter(|point| set >> point & 1 == 1);
            let name = |point| names::name(names::CODE_POINTS, point).map_or(point.to_string(), Into::into);
            format!("dscp {}", points.map(name).collect::<Vec<String>>().join(","))
        }
        Test::Precedence(precedence) => format!("ipprecedence {precedence}"),
        Test::Fragment => "frag".into(),
        Test::FragmentBits(bits) => format!("frag {}", flags(bits.set, bits.clear, names::FRAGMENT)),
        Test::IpId(ids) => format!("ipid {}", ranges(ids)),
        Test::ExtensionHeader(headers) => {
            format!("ext6hdr {}", flags(*headers, 0, names::EXTENSION_HEADERS))
        }
        Test::IpOptions(bits) => format!("ipoptions {}", flags(bits.set, bits.clear, names::IP_OPTIONS)),
        Test::Setup => "setup".into(),
        Test::Established => "established".into(),
        Test::TcpFlags { set, clear } => format!("tcpflags {}", flags(*set, *clear, names::TCP_FLAGS)),
        Test::TcpDataLength(lengths) => format!("tcpdatalen {}", ranges(lengths)),
        Test::TcpSequence(number) => format!("tcpseq {number}"),
        Test::TcpAcknowledgement(number) => format!("tcpack {number}"),
        Test::TcpWindow(windows) => format!("tcpwin {}", ranges(windows)),
        Test::TcpMss(sizes) => format!("tcpmss {}", ranges(sizes)),
        Test::TcpOptions(bits) => format!("tcpoptions {}", flags(bits.set, bits.clear, names::TCP_OPTIONS)),
        Test::IcmpType(set) => format!("icmptypes {}", types(set)),
        Test::Icmp6Type(set) => format!("icmp6types {}", types(set)),
        Test::Tagged(tags) => format!("tagged {}", ranges(tags)),
        Test::Mark { value, mask } => {
            let value = match value {
                Argument::Number(value) => format!("0x{value:x}"),
                Argument::TableArgument => "tablearg".into(),
            };
            let mask = if *mask == u32::MAX { String::new() } else { format!(":0x{mask:x}") };
            format!("mark {value}{mask}")
        }
        Test::Fib(tables) => format!("fib {}", ranges(tables)),
        Test::Flow(table) => format!("flow {}", table_text(table)),
        Test::Lookup { field: field @ (Field::Received | Field::Sent | Field::Via), table, .. } => {
            format!("{} {}", field_name(*field), table_text(table))
        }
        Test::Lookup { field, mask, table } => {
            let value = table.value.map_or(String::new(), |value| format!(",{value}"));
            format!("lookup {}{} {}{value}", field_name(*field), lookup_mask(*mask), table.table)
        }
        Test::FlowLabel(labels) => {
            let labels: Vec<String> = labels.iter().map(u32::to_string).collect();
            format!("flow-id {}", labels.join(","))
        }
    }
}

/// The mask of a lookup, as `:255.255.0.0`; empty without one.
pub(super) fn lookup_mask(mask: u128) -> String {
    match mask {
        u128::MAX => String::new(),
        // Of an IPv4 address or a number.
        mask if mask >> 32 == u128::MAX >> 32 => format!(":{}", Ipv4Addr::from_bits(mask as u32)), // the lower half
        mask => format!(":{}", Ipv6Addr::from_bits(mask)),
    }
}

/// The name of a lookup field, or the option for a table of interfaces.
pub(super) fn field_name(field: Field) -> &'static str {
    match field {
        Field::Source => "src-ip",
        Field::Destination => "dst-ip",
        Field::SourcePort => "src-port",
        Field::DestinationPort => "dst-port",
        Field::Dscp => "dscp",
        Field::LinkSource => "src-mac",
        Field::LinkDestination => "dst-mac",
        Field::Mark => "mark",
        Field::RuleNumber => "rulenum",
        Field::Received => "recv",
        Field::Sent => "xmit",
        Field::Via => "via",
    }
}

/// `6` for options with IPv6 addresses.
fn suffix(addresses: &Addresses) -> &'static str {
    match addresses {
        Addresses::In(list) if list.iter().any(|masked| v4(masked).is_none()) => "6",
        _ => "",
    }
}

/// Addresses as written in a rule.
pub(super) fn addresses_text(addresses: &Addresses) -> String {
    match addresses {
        Addresses::Any => "any".into(),
        Addresses::Me => "me".into(),
        Addresses::Table(table) => table_text(table),
        Addresses::In(list) => {
            set(list).unwrap_or_else(|| list.iter().map(masked).collect::<Vec<_>>().join(","))
        }
    }
}

fn table_text(table: &TableTest) -> String {
    match table.value {
        Some(value) => format!("table({},{value})", table.table),
        None => format!("table({})", table.table),
    }
}

/// Three or more addresses of one 24-bit network in increasing order, as a set.
fn set(list: &[Masked]) -> Option<String> {
    let (first, last) = (list.first()?, list.last()?);
    let single = |masked: &Masked| masked.mask == u128::MAX && v4(masked).is_some();
    let ordered = list.windows(2).all(|pair| pair[0].address < pair[1].address);
    if list.len() < 3 || !ordered || !list.iter().all(single) || first.address >> 8 != last.address >> 8 {
        return None;
    }
    let bytes: Vec<u8> = list.iter().map(|masked| masked.address as u8).collect();
    let bits = 24 + (bytes[0] ^ bytes[bytes.len() - 1]).leading_zeros();
    let base = Ipv4Addr::from((first.address as u32) & (u32::MAX << (32 - bits)));
    let mut text = format!("{base}/{bits}");
    let mut at = 0;
    while at < bytes.len() {
        let run = bytes[at..].windows(2).take_while(|pair| pair[0].checked_add(1) == Some(pair[1])).count();
        text.push(if at == 0 { '{' } else { ',' });
        if run >= 2 {
            text += &format!("{}-{}", bytes[at], bytes[at + run]);
            at += run + 1;
        } else {
            text += &bytes[at].to_string();
            at += 1;
        }
    }
    text.push('}');
    Some(text)
}

/// The IPv4 address and mask, if it is IPv4.
pub(super) fn v4(masked: &Masked) -> Option<(u32, u32)> {
    let upper = u128::MAX << 32;
    let is = masked.mask & upper == upper && masked.address & upper == 0xffff_0000_0000;
    is.then_some((masked.address as u32, masked.mask as u32))
}

/// An address, and its mask if not all bits count.
pub(super) fn masked(masked: &Masked) -> String {
    match v4(masked) {
        Some((address, mask)) => {
            let address = Ipv4Addr::from(address);
            match mask.leading_ones() {
                32 => address.to_string(),
                bits if bits == mask.count_ones() => format!("{address}/{bits}"),
                _ => format!("{address}:{}", Ipv4Addr::from(mask)),
            }
        }
        None => {
            let address = Ipv6Addr::from(masked.address);
            match masked.mask.leading_ones() {
                128 => address.to_string(),
                bits if bits == masked.mask.count_ones() => format!("{address}/{bits}"),
                _ => format!("{address}/{}", Ipv6Addr::from(masked.mask)),
            }
        }
    }
}

/// Numbers and ranges, separated by commas.
pub(super) fn ranges(ranges: &Ranges) -> String {
    let mut text = String::new();
    for (index, range) in ranges.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let (low, high) = (range.start(), range.end());
        let end = if low == high { String::new() } else { format!("-{high}") };
        write!(text, "{comma}{low}{end}").expect("writing to a string does not fail");
    }
    text
}

/// Bits that must be set and bits that must be clear, by name if they have one.
pub(super) fn flags(set: u8, clear: u8, known: names::Names<u8>) -> String {
    let mut items = Vec::new();
    for (mut bits, sign) in [(set, ""), (clear, "!")] {
        for (name, bit) in known {
            if bits & bit == *bit {
                bits &= !bit;
                items.push(format!("{sign}{name}"));
            }
        }
        if bits != 0 {
            items.push(format!("{sign}0x{bits:02x}"));
        }
    }
    if items.is_empty() { "0x00".into() } else { items.join(",") }
}

/// The numbers in a set.
pub(super) fn types(set: &[u64; 4]) -> String {
    let number = |number: &u32| set[(number / 64) as usize] >> (number % 64) & 1 == 1;
    (0..256).filter(number).map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

/// The address and mask of a term with a single link-layer address.
fn link_part(term: &Term, destination: bool) -> Option<[[u8; 6]; 2]> {
    match (term.0.as_slice(), destination) {
        ([Literal { not: false, test: Test::LinkDestination { address, mask } }], true)
        | ([Literal { not: false, test: Test::LinkSource { address, mask } }], false) => {
            Some([*address, *mask])
        }
        _ => None,
    }
}

/// A link-layer address and its mask.
pub(super) fn link_address(address: [u8; 6], mask: [u8; 6]) -> String {
    let hexadecimal = |bytes: [u8; 6]| bytes.map(|byte| format!("{byte:02x}")).join(":");
    let [a, b, c, d, e, f] = mask;
    let bits = u64::from_be_bytes([a, b, c, d, e, f, 0, 0]);
    match bits.leading_ones() {
        48 => hexadecimal(address),
        0 if bits == 0 => "any".into(),
        ones if ones == bits.count_ones() => format!("{}/{ones}", hexadecimal(address)),
        _ => format!("{}&{}", hexadecimal(address), hexadecimal(mask)),
    }
}

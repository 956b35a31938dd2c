//! Explains commands in words.

use std::ops::RangeInclusive;

use narrows_core::Rate;
use narrows_core::classify::FlowMask;
use narrows_core::queue::Bound;
use narrows_core::rules::{
    Action, Addresses, Answer, Argument, By, Field, Keep, Literal, NextHop, Rule, TableTest, Tag, Term, Test,
};

use super::command::{Command, Rules};
use super::config::{AQMS, Config, Object, SCHEDULERS, or_usual, shares};
use super::flows::kind_text;
use super::names;
use super::nat;
use super::sets::SetCommand;
use super::table::TableCommand;
use super::text::{
    addresses_text, decimal, flags, ip_text, link_address, lookup_mask, protocol, ranges, types,
};
use crate::dialect::{is_zero, shown_as_is, text_of};

/// Explains a command in a sentence or two.
pub(super) fn command(command: &Command) -> String {
    match command {
        Command::Add(rule) => self::rule(rule),
        Command::Delete(rules) => format!("Deletes {}.", these(rules)),
        Command::DeleteSets(sets) => {
            let sets: Vec<String> = sets.iter().map(u8::to_string).collect();
            format!("Deletes all rules of set {}.", list(&sets, "and"))
        }
        Command::List(listing) => format!("Prints {}.", these(&listing.rules)),
        Command::Zero(rules) => format!("Resets the counters of {}.", these(rules)),
        Command::ResetLog(rules) => format!("Resets the log counters of {}.", these(rules)),
        Command::Flush(Some(set)) => format!("Deletes all rules of set {set}."),
        Command::Flush(None) => "Deletes all rules but those of set 31.".into(),
        Command::Sets(change) => sets(*change),
        Command::Configure(config) => match config.split() {
            (pipe, Some(scheduler)) => format!("{} {}", configured(&pipe), configured(&scheduler)),
            (own, None) => configured(&own),
        },
        Command::DeleteObjects(object, numbers) => {
            let numbers: Vec<String> = numbers.iter().map(range).collect();
            format!("Deletes {} {}.", object.word(), list(&numbers, "and"))
        }
        Command::ListObjects(object, _) => {
            format!("Prints each {} and its counters.", noun(*object))
        }
        Command::FlushObjects => "Deletes all pipes, queues and schedulers.".into(),
        Command::Table(change) => table(change),
        Command::Nat(command) => nat::words(command),
        Command::OnePass(true) => "A packet that leaves a pipe or a translator is accepted; no later rule is tried.".into(),
        Command::OnePass(false) => {
            "A packet that leaves a pipe or a translator continues at the rule after the one that sent it there."
                .into()
        }
        Command::Firewall(true) => "Packets meet the rules.".into(),
        Command::Firewall(false) => "Packets pass without the rules.".into(),
        Command::Settings(names) => format!(
            "Prints {}.",
            list(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>(), "and")
        ),
        Command::Sleep(time) => format!("Waits {time}."),
        Command::Nothing => "Changes nothing.".into(),
    }
}

/// `a`, `a and b`, `a, b and c`.
fn list(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

/// `7`, `7 to 9`
pub(super) fn range<T: PartialEq + std::fmt::Display>(range: &RangeInclusive<T>) -> String {
    match (range.start(), range.end()) {
        (low, high) if low == high => low.to_string(),
        (low, high) => format!("{low} to {high}"),
    }
}

fn these(rules: &Rules) -> String {
    let numbers: Vec<String> = rules.numbers.iter().map(range).collect();
    let of_set = rules.set.map_or(String::new(), |set| format!(" of set {set}"));
    match numbers.as_slice() {
        [] => format!("all rules{of_set}"),
        [one] if !one.contains("to") => format!("rule {one}{of_set}"),
        _ => format!("rules {}{of_set}", list(&numbers, "and")),
    }
}

fn sets(change: SetCommand) -> String {
    let named = |bits: u32| {
        let sets: Vec<String> =
            (0..32).filter(|set| bits >> set & 1 == 1).map(|set| set.to_string()).collect();
        format!("set {}", list(&sets, "and"))
    };
    match change {
        SetCommand::Enable { enable, disable } => {
            let mut sentences = Vec::new();
            if enable != 0 {
                sentences.push(format!("Enables the rules of {}.", named(enable)));
            }
            if disable != 0 {
                sentences.push(format!("Disables the rules of {}, which stay loaded.", named(disable)));
            }
            sentences.join(" ")
        }
        SetCommand::MoveRule { rule, to } => format!("Moves rule {rule} to set {to}."),
        SetCommand::Move { from, to } => format!("Moves the rules of set {from} to set {to}."),
        SetCommand::Swap(a, b) => format!("Swaps the rules of sets {a} and {b}."),
        SetCommand::Show => "Prints which sets are enabled.".into(),
    }
}

fn table(change: &TableCommand) -> String {
    match change {
        TableCommand::Add { table, entries } => {
            let entries: Vec<String> =
                entries.iter().map(|(network, value)| format!("{network} with the value {value}")).collect();
            format!("Adds {} to table {table}.", list(&entries, "and"))
        }
        TableCommand::Delete { table, entries } => {
            let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
            format!("Deletes {} from table {table}.", list(&entries, "and"))
        }
        TableCommand::Flush(Some(table)) => format!("Empties table {table}."),
        TableCommand::Flush(None) => "Empties all tables.".into(),
        TableCommand::List(Some(table)) => format!("Prints table {table}."),
        TableCommand::List(None) => "Prints all tables.".into(),
        TableCommand::Create { table, flow: None } => format!("Creates the empty table {table}."),
        TableCommand::Create { table, flow: Some(fields) } => {
            let kind = kind_text(*fields);
            let fields = kind.trim_start_matches("flow:");
            format!("Creates the empty table {table} of flows, which have {}.", spaced(fields))
        }
        TableCommand::Swap(one, other) => format!("Exchanges the entries of tables {one} and {other}."),
        TableCommand::Destroy(table) => format!("Deletes table {table}."),
        TableCommand::Info(_) => "Prints the sizes of tables.".into(),
    }
}

/// Explains a rule.
pub(super) fn rule(rule: &Rule) -> String {
    let mut words = format!("Rule {}", rule.number);
    if rule.set > 0 {
        words += &format!(", of set {}", rule.set);
    }
    words += ": ";
    if rule.action == Action::CheckState {
        words += "packets of a flow with a dynamic rule get the action of the rule that created it; others continue.";
        return words;
    }
    words += &packets(&rule.terms);
    if let Some(probability) = rule.probability {
        let comma = if words.ends_with(',') { "" } else { "," };
        words += &format!("{comma} each with probability {},", short(&decimal(probability)));
    }
    words += " ";
    words += &action(rule.action);
    words.push('.');
    match rule.tag {
        Some(Tag::Add(tag)) => words += &format!(" They get the tag {tag}."),
        Some(Tag::Remove(tag)) => words += &format!(" The tag {tag} is removed."),
        None => {}
    }
    if rule.defers {
        words += match rule.keep {
            Some(_) => " The action is for later packets of the dynamic rule; this one continues.",
            None => " The action is for packets of a dynamic rule, which this rule does not create.",
        };
    }
    match rule.keep {
        Some(Keep::State) => {
            words += " Creates a dynamic rule per flow: its later packets, both ways, get the same action.";
        }
        Some(Keep::Limit { most, by }) => {
            words += &format!(
                " Creates a dynamic rule per flow, at most {most} at a time for the same {}.",
                parts(by)
            );
        }
        None => {}
    }
    words
}

/// Turns a list with commas into alternatives, with a space after each comma.
fn either(values: &str) -> String {
    let values: Vec<String> = values.split(',').map(Into::into).collect();
    list(&values, "or")
}

fn spaced(list: &str) -> String {
    list.replace(',', ", ")
}

/// A decimal without trailing zeros.
fn short(decimal: &str) -> &str {
    decimal.trim_end_matches('0').trim_end_matches('.')
}

fn parts(by: By) -> String {
    let names = [
        (by.source, "source address"),
        (by.source_port, "source port"),
        (by.destination, "destination address"),
        (by.destination_port, "destination port"),
    ];
    let names: Vec<String> = names.iter().filter(|(is, _)| *is).map(|(_, name)| (*name).into()).collect();
    list(&names, "and")
}

fn action(action: Action) -> String {
    let number = |argument, of: &str| match argument {
        Argument::Number(number) => format!("{of} {number}"),
        Argument::TableArgument => format!("the {of} that the value in the table names"),
    };
    match action {
        Action::Allow => "are accepted; no later rule is tried".into(),
        Action::Deny => "are dropped".into(),
        Action::Reject(answer) => format!("are dropped, {}", told(answer)),
        Action::Count => "are counted, and continue at the next rule".into(),
        Action::Return => "return to the rule after the last `call`".into(),
        Action::CheckState => "get the action of their dynamic rule".into(),
        Action::SkipTo(to) => format!("go on at {}", number(to, "rule")),
        Action::Call(to) => format!("go on at {}, until `return`", number(to, "rule")),
        Action::Pipe(pipe) => format!("go through {}", number(pipe, "pipe")),
        Action::Queue(queue) => format!("wait in {}", number(queue, "queue")),
        Action::Nat(nat) => format!("are translated by {}", number(nat, "translator")),
        Action::NatGlobal => "are translated by the translator that knows their flow".into(),
        Action::SetMark(Argument::Number(mark)) => {
            format!("get the mark 0x{mark:x}, and continue at the next rule")
        }
        Action::SetMark(Argument::TableArgument) => {
            "get the value in the table as their mark, and continue at the next rule".into()
        }
        Action::SetFib(fib) => {
            format!("are of {} from now on, and continue at the next rule", number(fib, "routing table"))
        }
        Action::Forward(NextHop::Address(to)) => format!(
            "are accepted, and the next router sends them towards {}; no later rule is tried",
            ip_text(to)
        ),
        Action::Forward(NextHop::TableArgument) => {
            "are accepted, and the next router sends them towards the address in the table; no later rule is tried"
                .into()
        }
        Action::SetDscp(point) => {
            let point = match point {
                Argument::Number(point) => code_point(point as u8), // at most 63
                Argument::TableArgument => "that the value in the table names".into(),
            };
            format!("get the code point {point}, and continue at the next rule")
        }
    }
}

/// What the senders of rejected packets get.
fn told(answer: Answer) -> String {
    let unreachable = |version: &str, codes, code: u8| {
        let code = names::name(codes, code).map_or(code.to_string(), |name| format!("{name} ({code})"));
        format!("and an ICMP{version} message tells the sender that the destination is unreachable: {code}")
    };
    match answer {
        Answer::Reset => "and the sender of a TCP segment over IPv4 gets a reset".into(),
        Answer::Reset6 => "and the sender of a TCP segment over IPv6 gets a reset".into(),
        Answer::Unreachable(code) => unreachable("", names::UNREACHABLE, code),
        Answer::Unreachable6(code) => unreachable("v6", names::UNREACHABLE_6, code),
        Answer::FragmentationNeeded(mtu) => {
            let mtu = if mtu > 0 { format!(", for an MTU of {mtu} bytes") } else { String::new() };
            format!("and an ICMP message tells the sender that fragmentation is needed{mtu}")
        }
    }
}

fn code_point(point: u8) -> String {
    names::name(names::CODE_POINTS, point).map_or(point.to_string(), |name| format!("{name} ({point})"))
}

/// Describes which packets match.
fn packets(terms: &[Term]) -> String {
    if terms.is_empty() {
        return "all packets".into();
    }
    let phrases: Vec<String> = terms.iter().map(term).collect();
    let comma = if phrases.len() > 1 { "," } else { "" };
    format!("packets {}{comma}", phrases.join(", "))
}

fn term(term: &Term) -> String {
    let literals: Vec<String> = term.0.iter().map(literal).collect();
    list(&literals, "or")
}

fn literal(literal: &Literal) -> String {
    let words = test(&literal.test);
    if literal.not { format!("not {words}") } else { words }
}

fn test(test: &Test) -> String {
    match test {
        Test::Any => "by any interface".into(),
        Test::Never => "by a nonexistent interface".into(),
        Test::Protocol(number) => format!("of {}", protocol_words(*number)),
        Test::IpVersion(version) => format!("of IPv{version}"),
        Test::Source(addresses) => format!("from {}", address_words(addresses)),
        Test::Destination(addresses) => format!("to {}", address_words(addresses)),
        Test::SourcePort(ports) => format!("from port {}", either(&ranges(ports))),
        Test::DestinationPort(ports) => format!("to port {}", either(&ranges(ports))),
        Test::In => "coming in".into(),
        Test::Out => "going out".into(),
        Test::Layer2 => "with a link header".into(),
        Test::LinkSource { address, mask } => {
            format!("from the link address {}", link_address(*address, *mask))
        }
        Test::LinkDestination { address, mask } => {
            format!("to the link address {}", link_address(*address, *mask))
        }
        Test::EtherType(types) => {
            let types: Vec<String> = types
                .iter()
                .map(|range| match range.start() == range.end() {
                    true => format!("0x{:04x}", range.start()),
                    false => format!("0x{:04x}-0x{:04x}", range.start(), range.end()),
                })
                .collect();
            format!("of the ether type {}", list(&types, "or"))
        }
        Test::Length(lengths) => format!("of {} bytes", either(&ranges(lengths))),
        Test::HopLimit(limits) => format!("with a time to live of {}", either(&ranges(limits))),
        Test::Tos(tos) => format!("with the TOS bits {}", spaced(&flags(tos.set, tos.clear, names::TOS))),
        Test::Dscp(set) => {
            let points: Vec<String> = (0..64).filter(|point| set >> point & 1 == 1).map(code_point).collect();
            format!("with the code point {}", list(&points, "or"))
        }
        Test::Precedence(precedence) => format!("of precedence {precedence}"),
        Test::Fragment => "that are fragments other than the first".into(),
        Test::FragmentBits(bits) => {
            format!("with the fragmentation bits {}", spaced(&flags(bits.set, bits.clear, names::FRAGMENT)))
        }
        Test::IpId(ids) => format!("with the identification {}", either(&ranges(ids))),
        Test::ExtensionHeader(headers) => {
            format!("with the extension header {}", either(&flags(*headers, 0, names::EXTENSION_HEADERS)))
        }
        Test::IpOptions(bits) => {
            format!("with the IPv4 options {}", spaced(&flags(bits.set, bits.clear, names::IP_OPTIONS)))
        }
        Test::Setup => "that open a TCP connection".into(),
        Test::Established => "of open TCP connections (RST or ACK)".into(),
        Test::TcpFlags { set, clear } => {
            format!("with the TCP flags {}", spaced(&flags(*set, *clear, names::TCP_FLAGS)))
        }
        Test::TcpDataLength(lengths) => format!("with {} bytes of TCP data", either(&ranges(lengths))),
        Test::TcpSequence(number) => format!("with the TCP sequence number {number}"),
        Test::TcpAcknowledgement(number) => format!("with the TCP acknowledgement number {number}"),
        Test::TcpWindow(windows) => format!("with a TCP window of {}", either(&ranges(windows))),
        Test::TcpMss(sizes) => format!("with a maximum segment size of {}", either(&ranges(sizes))),
        Test::TcpOptions(bits) => {
            format!("with the TCP options {}", spaced(&flags(bits.set, bits.clear, names::TCP_OPTIONS)))
        }
        Test::IcmpType(set) => format!("of the ICMP type {}", either(&types(set))),
        Test::Icmp6Type(set) => format!("of the ICMPv6 type {}", either(&types(set))),
        Test::Mark { value: Argument::TableArgument, mask: u32::MAX } => {
            "with the mark that the value in the table says".into()
        }
        Test::Mark { value: Argument::TableArgument, mask } => {
            format!("with the mark that the value in the table says, in the bits 0x{mask:x}")
        }
        Test::Mark { value: Argument::Number(value), mask: u32::MAX } => format!("with the mark 0x{value:x}"),
        Test::Mark { value: Argument::Number(value), mask } => {
            format!("with the bits 0x{:x} of 0x{mask:x} in their mark", value & mask)
        }
        Test::Fib(tables) => format!("of routing table {}", either(&ranges(tables))),
        Test::Flow(table) => format!("whose flow is in {}", table_words(table)),
        Test::Tagged(tags) => format!("with the tag {}", either(&ranges(tags))),
        Test::Lookup { field: Field::Received, table, .. } => {
            format!("that came by an interface in {}", table_words(table))
        }
        Test::Lookup { field: Field::Sent, table, .. } => {
            format!("that leave by an interface in {}", table_words(table))
        }
        Test::Lookup { field: Field::Via, table, .. } => {
            format!("that pass an interface in {}", table_words(table))
        }
        Test::Lookup { field: Field::RuleNumber, mask: u128::MAX, table } => {
            format!("if the number of this rule is in {}", table_words(table))
        }
        Test::Lookup { field, mask: u128::MAX, table } => {
            format!("whose {} is in {}", field_words(*field), table_words(table))
        }
        Test::Lookup { field, mask, table } => {
            let bits = lookup_mask(*mask).split_off(1);
            format!(
                "whose {}, of which the bits {bits} count, is in {}",
                field_words(*field),
                table_words(table)
            )
        }
        Test::FlowLabel(labels) => {
            let labels: Vec<String> = labels.iter().map(u32::to_string).collect();
            format!("with the flow label {}", list(&labels, "or"))
        }
    }
}

fn protocol_words(number: u8) -> String {
    match protocol(number) {
        name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("the IP protocol {name}"),
        name if name.len() <= 4 => name.to_uppercase(),
        name => name,
    }
}

fn address_words(addresses: &Addresses) -> String {
    match addresses {
        Addresses::Any => "any address".into(),
        Addresses::Me => "an address of the host itself".into(),
        Addresses::Table(table) => format!("an address in {}", table_words(table)),
        Addresses::In(_) => spaced(&addresses_text(addresses)),
    }
}

fn table_words(table: &TableTest) -> String {
    match table.value {
        Some(value) => format!("table {} with the value {value}", table.table),
        None => format!("table {}", table.table),
    }
}

fn field_words(field: Field) -> &'static str {
    match field {
        Field::Source => "source address",
        Field::Destination => "destination address",
        Field::SourcePort => "source port",
        Field::DestinationPort => "destination port",
        Field::Dscp => "code point",
        Field::LinkSource => "source link address",
        Field::LinkDestination => "destination link address",
        Field::Mark => "mark",
        Field::RuleNumber => "rule",
        Field::Received | Field::Sent | Field::Via => "interface",
    }
}

fn noun(object: Object) -> &'static str {
    match object {
        Object::Pipe => "pipe",
        Object::Queue => "queue",
        Object::Scheduler => "scheduler",
    }
}

/// Describes a pipe, queue or scheduler.
fn configured(config: &Config) -> String {
    let number = config.number;
    let mut words = match config.object {
        Object::Pipe => {
            let rate = match config.rate() {
                Rate::UNLIMITED if config.says("profile") => "the rate of its profile".into(),
                Rate::UNLIMITED => "unlimited rate".into(),
                rate => format!("{rate} a second"),
            };
            let said = |key| {
                let node = config.keys.get(key).filter(|node| !is_zero(&node.value));
                node.and_then(shown_as_is)
            };
            let delay = said("delay").map_or("no delay".into(), |delay| format!("a delay of {delay}"));
            let burst = said("burst").map_or(String::new(), |burst| format!(", bursts of {burst}"));
            match rate.starts_with("no") {
                true => format!("Pipe {number} is a link: {rate}, without queueing, and {delay}."),
                false => format!("Pipe {number} is a link: {rate}, {delay}{burst}, and {}.", waiting(config)),
            }
        }
        Object::Queue => {
            let mut words = match config.parent() {
                Some(parent) => format!("at scheduler {parent}, which sends through pipe {parent}"),
                None => "at its scheduler".into(),
            };
            for (key, before, behind) in [
                ("weight", ", with weight ", ""),
                ("priority", ", with priority ", ", lowest first"),
                ("longest", ", for packets of up to ", ""),
            ] {
                if config.says(key) {
                    words += &format!("{before}{}{behind}", text_of(&config.keys, key));
                }
            }
            format!("Queue {number} is {words}: {}.", waiting(config))
        }
        Object::Scheduler => {
            let (kind, keys) = config.scheduler().unwrap_or((&SCHEDULERS[1], &config.keys));
            let mut words = kind.words.to_owned();
            if kind.manages() {
                let usual: Vec<_> = kind.usual.iter().copied().chain([kind.own]).collect();
                let keys = or_usual(keys, &usual);
                let said = |key| text_of(&keys, key);
                let interval = match keys.get("interval") {
                    Some(_) => format!(", interval {}", said("interval")),
                    None => String::new(),
                };
                let marks = if said("ecn") == "true" { ", marking packets where possible" } else { "" };
                words += &format!(
                    ", over {} hashed flows: target {}{interval}, quantum {}{marks}. At most {} wait in total, whatever the pipe and its queues say",
                    said("flows"),
                    said("target"),
                    said("quantum"),
                    said("bound")
                );
            }
            format!("Scheduler {number} shares pipe {number} among its queues: {words}.")
        }
    };
    match config.keys.get("loss").and_then(shares).as_deref() {
        Some([share]) => words += &format!(" {share} of arriving packets are lost."),
        Some([loss_good, p, loss_bad, r]) => {
            words += &format!(
                " Gilbert-Elliott loss: {loss_good} lost in the good state, {loss_bad} in the bad one; per packet, probability {p} from good to bad, {r} back."
            );
        }
        _ => {}
    }
    if config.says("profile") {
        let profile = text_of(&config.keys, "profile");
        words += &format!(" Packets take extra air time by {profile}.");
    }
    if let Some(mask) = &config.mask {
        words +=
            &format!(" There is one for each value of {}, created on its first packet.", mask_words(mask));
    }
    words
}

fn waiting(config: &Config) -> String {
    let bound = match config.bound() {
        None => "by default at most 50 packets wait".into(),
        Some(Bound::Packets(1)) => "at most 1 packet waits".into(),
        Some(Bound::Packets(packets)) => format!("at most {packets} packets wait"),
        Some(Bound::Bytes(bytes)) => format!("at most {bytes} wait"),
    };
    let Some(managed) = config.managed() else { return bound };
    let name = text_of(managed, "type");
    let usual = AQMS.iter().find(|aqm| aqm.name == name).map_or(&[][..], |aqm| aqm.usual);
    let keys = or_usual(managed, &[usual]);
    let said = |key| text_of(&keys, key);
    let marking = if said("ecn") == "true" { ", marking packets where possible" } else { "" };
    let managed = match name.as_str() {
        "codel" => format!("CoDel with target {} and interval {}", said("target"), said("interval")),
        "pie" => format!("PIE with target {}{marking}", said("target")),
        red => {
            let name = if red == "gred" { "GRED" } else { "RED" };
            format!(
                "{name} from an average of {} to {}, up to {}, weight {}{marking}",
                said("min"),
                said("max"),
                said("probability"),
                said("weight")
            )
        }
    };
    format!("{bound}, managed by {managed}")
}

/// Describes which bits distinguish flows.
fn mask_words(mask: &FlowMask) -> String {
    if mask.or(FlowMask { queue: false, ..FlowMask::NONE }) == FlowMask::ALL {
        return "addresses, ports, protocol and flow label".into();
    }
    let bits = |value: u32, width: u32, what: &str| match value {
        0 => None,
        value if value == u32::MAX >> (32 - width) => Some(format!("the {what}")),
        value if value & value.wrapping_add(1) == 0 => {
            let count = value.count_ones();
            let plural = if count == 1 { "bit" } else { "bits" };
            Some(format!("the low {count} {plural} of the {what}"))
        }
        value => Some(format!("the bits 0x{value:x} of the {what}")),
    };
    let v6 = |value: u128, what: &str| match value.leading_ones() {
        0 => None,
        128 => Some(format!("the IPv6 {what}")),
        ones => Some(format!("the first {ones} bits of the IPv6 {what}")),
    };
    let parts = [
        bits(mask.protocol.into(), 8, "protocol"),
        bits(mask.source_v4, 32, "source address"),
        bits(mask.source_port.into(), 16, "source port"),
        bits(mask.destination_v4, 32, "destination address"),
        bits(mask.destination_port.into(), 16, "destination port"),
        v6(mask.source_v6, "source address"),
        v6(mask.destination_v6, "destination address"),
        bits(mask.flow_label, 20, "flow label"),
        mask.queue.then(|| "the queue".into()),
    ];
    list(&parts.into_iter().flatten().collect::<Vec<_>>(), "and")
}

//! An interpreter of rules, written from ipfw(8) and the words of the types: one rule after the other, no thought of speed.

use std::collections::BTreeMap;

use narrows_core::rules::{
    Action, Addresses, Answer, Argument, Decision, Field, Flags, FlowEntry, FlowFields, Labels, Masked,
    NextHop, Rule, RuleChange, RuleCounters, RuleSetConfig, Table, TableTest, Tag, Test, Which,
};
use narrows_core::{Draw, FlowKey, Headers, Protocol, Seed, Stream, Time};

use super::oracle_states::Dynamics;

/// A packet and all that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Walker {
    pub(crate) key: FlowKey,
    pub(crate) headers: Headers,
    pub(crate) length: u32,
    pub(crate) link_header: u8,
    pub(crate) incoming: bool,
    pub(crate) labels: Labels,
}

/// Where a packet goes on: behind the rule of this number and order, with these calls open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spot {
    number: u16,
    order: u32,
    calls: Vec<u16>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Pass,
    Deny,
    Reject(Answer),
    Pipe(u32, Spot),
    Queue(u32, Spot),
}

impl Outcome {
    pub(crate) fn agrees(&self, decision: &Decision) -> bool {
        match (self, decision) {
            (Self::Pass, Decision::Pass) | (Self::Deny, Decision::Deny) => true,
            (Self::Reject(one), Decision::Reject(other)) => one == other,
            (Self::Pipe(one, _), Decision::Pipe { number, .. })
            | (Self::Queue(one, _), Decision::Queue { number, .. }) => one == number,
            _ => false,
        }
    }
}

pub(crate) struct Ruled {
    pub(crate) rule: Rule,
    order: u32,
    stream: Stream,
    pub(crate) counters: RuleCounters,
}

pub(crate) struct Oracle {
    seed: Seed,
    name: String,
    pub(crate) rules: Vec<Ruled>,
    pub(crate) default: RuleCounters,
    pub(crate) tables: BTreeMap<String, Vec<(u128, u128, u32)>>,
    flows: BTreeMap<String, Flows>,
    me: Vec<Masked>,
    disabled: u32,
    pub(crate) dynamics: Dynamics,
    orders: u32,
    given: BTreeMap<u16, u32>,
    pub(crate) calls: u64,
    pub(crate) depth: u64,
}

fn mask(bits: u32) -> u128 {
    (0..bits).fold(0, |mask, bit| mask | 1 << (127 - bit))
}

fn entries(table: &Table) -> Vec<(u128, u128, u32)> {
    let one = |(prefix, value): (narrows_core::classify::Prefix, u32)| {
        (u128::from_be_bytes(prefix.address()), mask(prefix.bits().into()), value)
    };
    table.iter().map(one).collect()
}

/// A table of flows: what it looks at, and its entries.
type Flows = (FlowFields, Vec<(FlowEntry, u32)>);

fn flows((name, table): &(String, Table)) -> Option<(String, Flows)> {
    Some((name.clone(), (table.flow_fields()?, table.flows().collect())))
}

impl Oracle {
    pub(crate) fn new(seed: Seed, name: &str, config: RuleSetConfig) -> Self {
        let mut oracle = Self {
            seed,
            name: name.into(),
            rules: Vec::new(),
            default: RuleCounters::default(),
            tables: config.tables.iter().map(|(name, table)| (name.clone(), entries(table))).collect(),
            flows: config.tables.iter().filter_map(flows).collect(),
            me: config.me,
            disabled: config.disabled_sets,
            dynamics: Dynamics { config: config.states, all: Vec::new() },
            orders: 0,
            given: BTreeMap::new(),
            calls: 0,
            depth: 0,
        };
        // Sorted first: rules of one number have their orders, and the names of their draws, as they stand.
        let mut rules = config.rules;
        rules.sort_by_key(|rule| rule.number);
        rules.into_iter().for_each(|rule| oracle.add(rule));
        oracle
    }

    fn add(&mut self, mut rule: Rule) {
        if rule.number == 0 {
            rule.number = self.rules.last().map_or(0, |last| last.rule.number) + 100;
        }
        self.orders += 1;
        let nth = self.given.entry(rule.number).or_default();
        let stream = Stream::new(self.seed, &self.name, &format!("rule {} {nth}", rule.number));
        *nth += 1;
        let at = self.rules.iter().take_while(|one| one.rule.number <= rule.number).count();
        self.rules.insert(at, Ruled { rule, order: self.orders, stream, counters: RuleCounters::default() });
    }

    /// Makes a change that is known to be right.
    pub(crate) fn change(&mut self, change: &RuleChange) {
        let is = |which: &Which, rule: &Rule| {
            which.numbers.as_ref().is_none_or(|numbers| numbers.contains(&rule.number))
                && which.set.is_none_or(|set| rule.set == set)
        };
        match change {
            RuleChange::Add(rule) => self.add(rule.clone()),
            RuleChange::Nat { .. } => unreachable!("translation is not generated"),
            RuleChange::Delete(which) => self.delete(|rule| is(which, rule)),
            RuleChange::Flush => self.delete(|rule| rule.set != 31),
            RuleChange::Zero(which) => {
                for one in self.rules.iter_mut().filter(|one| is(which, &one.rule)) {
                    one.counters = RuleCounters::default();
                }
                if which.numbers.as_ref().is_none_or(|numbers| numbers.contains(&65_535))
                    && which.set.is_none_or(|set| set == 31)
                {
                    self.default = RuleCounters::default();
                }
            }
            RuleChange::Sets { enable, disable } => self.disabled = (self.disabled | disable) & !enable,
            RuleChange::Move { which, to } => {
                for one in self.rules.iter_mut().filter(|one| is(which, &one.rule)) {
                    one.rule.set = *to;
                }
            }
            &RuleChange::Swap(a, b) => {
                for one in &mut self.rules {
                    if one.rule.set == a {
                        one.rule.set = b;
                    } else if one.rule.set == b {
                        one.rule.set = a;
                    }
                }
            }
            RuleChange::TableAdd { table, prefix, value } => {
                let entry = (u128::from_be_bytes(prefix.address()), mask(prefix.bits().into()), *value);
                self.tables.entry(table.clone()).or_default().push(entry);
            }
            RuleChange::TableDelete { table, prefix } => {
                let out = (u128::from_be_bytes(prefix.address()), mask(prefix.bits().into()));
                let entries = self.tables.get_mut(table).expect("a change that is right");
                entries.retain(|&(address, mask, _)| (address, mask) != out);
            }
            RuleChange::Table { table, entries } => {
                self.tables.insert(table.clone(), self::entries(entries));
            }
            RuleChange::TableFlush { table } => {
                self.tables.get_mut(table).into_iter().for_each(Vec::clear);
            }
            RuleChange::FlowAdd { table, flow, value } => {
                let (fields, entries) = self.flows.get_mut(table).expect("a change that is right");
                entries.push((flow.only(*fields), *value));
            }
            RuleChange::FlowDelete { table, flow } => {
                let (fields, entries) = self.flows.get_mut(table).expect("a change that is right");
                let out = flow.only(*fields);
                entries.retain(|(entry, _)| *entry != out);
            }
            RuleChange::Me(me) => self.me = me.clone(),
        }
    }

    fn delete(&mut self, is_meant: impl Fn(&Rule) -> bool) {
        let out: Vec<_> = self.rules.iter().filter(|one| is_meant(&one.rule)).map(|one| one.order).collect();
        out.iter().for_each(|&order| self.dynamics.forget(order));
        self.rules.retain(|one| !out.contains(&one.order));
    }

    pub(crate) fn walk(
        &mut self,
        now: Time,
        walker: &mut Walker,
        from: &Spot,
        draw: &mut dyn FnMut(&Stream) -> Draw,
    ) -> Outcome {
        let mut calls = from.calls.clone();
        let (mut called, mut back, mut asked) = (0, 0, false);
        let behind = |one: &Ruled| (one.rule.number, one.order) > (from.number, from.order);
        let mut at = self.rules.iter().position(behind).unwrap_or(self.rules.len());
        loop {
            let Some(ruled) = self.rules.get(at) else {
                count(&mut self.default, now, walker);
                return Outcome::Pass;
            };
            let rule = &ruled.rule;
            if self.disabled >> rule.set & 1 == 1 {
                at += 1;
                continue;
            }
            if let Some(probability) = rule.probability {
                // Drawn anew for each time that the packet has gone back.
                let mut words = draw(&ruled.stream);
                (0..back).for_each(|_| _ = words.bits());
                if !words.chance(probability) {
                    at += 1;
                    continue;
                }
            }
            // The dynamic rules come first at the first rule that knows of them.
            let (mut parent, mut is_back) = (None, false);
            if rule.keep.is_some() && !rule.records && !asked {
                asked = true;
                parent = self.dynamics.check(now, &walker.key, walker.length);
            }
            let mut argument = 0;
            let (acting, is_own) = if let Some((parent, found, way)) = parent {
                (argument, is_back) = (found, way);
                (parent.0, false)
            } else {
                if !self.matches(rule, walker, &mut argument) {
                    at += 1;
                    continue;
                }
                if rule.action == Action::CheckState {
                    let found =
                        if asked { None } else { self.dynamics.check(now, &walker.key, walker.length) };
                    asked = true;
                    let Some((parent, found, way)) = found else {
                        at += 1;
                        continue;
                    };
                    (argument, is_back) = (found, way);
                    (parent.0, false)
                } else {
                    (ruled.order, true)
                }
            };
            let here = at;
            at = self.rules.iter().position(|one| one.order == acting).expect("states go with their rules");
            let one = &mut self.rules[at];
            let number = one.rule.number;
            if is_own
                && let Some(keep) = one.rule.keep
                && !self.dynamics.keep(now, &walker.key, (acting, number), argument, keep)
            {
                count(&mut one.counters, now, walker);
                return Outcome::Deny;
            }
            if is_own && one.rule.defers {
                at += 1;
                continue;
            }
            count(&mut one.counters, now, walker);
            let action = one.rule.action;
            match one.rule.tag {
                Some(Tag::Add(tag)) => {
                    walker.labels.tags.retain(|&own| own != tag);
                    walker.labels.tags.push(tag);
                }
                Some(Tag::Remove(tag)) => walker.labels.tags.retain(|&own| own != tag),
                None => {}
            }
            let value = |of| match of {
                Argument::Number(number) => number,
                Argument::TableArgument => argument,
            };
            let spot = Spot { number, order: acting, calls: calls.clone() };
            let first_from =
                |number: u32| self.rules.iter().take_while(|one| u32::from(one.rule.number) < number).count();
            let next = match action {
                Action::Allow => return Outcome::Pass,
                Action::Nat(_) | Action::NatGlobal => unreachable!("translation is not generated"),
                Action::Forward(to) => {
                    let to = match to {
                        NextHop::Address(to) => to,
                        NextHop::TableArgument => (0xffff_0000_0000 | u128::from(argument)).to_be_bytes(),
                    };
                    let is_v4 = u128::from_be_bytes(to) >> 32 == 0xffff;
                    let fits = match walker.key.network {
                        Protocol::Other => false,
                        network => is_v4 != (network == Protocol::Ipv6),
                    };
                    if fits && !is_back {
                        walker.labels.next_hop = Some(to);
                    }
                    return Outcome::Pass;
                }
                Action::Deny => return Outcome::Deny,
                Action::Reject(answer) => return Outcome::Reject(answer),
                Action::Pipe(pipe) => return Outcome::Pipe(value(pipe), spot),
                Action::Queue(queue) => return Outcome::Queue(value(queue), spot),
                Action::Count | Action::CheckState => at + 1,
                Action::SkipTo(to) => first_from(value(to)).max(at + 1),
                Action::Call(to) => {
                    called += 1;
                    if called > 1_024 {
                        self.calls += 1;
                        return Outcome::Deny;
                    }
                    if calls.len() == 16 {
                        self.depth += 1;
                        at + 1
                    } else {
                        calls.push(number);
                        first_from(value(to))
                    }
                }
                Action::Return => match calls.pop() {
                    Some(call) => first_from(u32::from(call) + 1),
                    None => at + 1,
                },
                Action::SetDscp(dscp) => {
                    if walker.key.network != Protocol::Other {
                        walker.key.traffic_class =
                            (value(dscp) % 64) as u8 * 4 + walker.key.traffic_class % 4;
                    }
                    at + 1
                }
                Action::SetMark(mark) => {
                    walker.labels.mark = value(mark);
                    at + 1
                }
                Action::SetFib(fib) => {
                    walker.labels.fib = if value(fib) < 65_536 { value(fib) as u16 } else { 0 };
                    at + 1
                }
            };
            back += u32::from(next <= here);
            at = next;
        }
    }

    fn matches(&self, rule: &Rule, walker: &Walker, argument: &mut u32) -> bool {
        for term in &rule.terms {
            let mut any = false;
            for literal in &term.0 {
                any = self.holds(rule.number, &literal.test, walker, argument) ^ literal.not;
                if any {
                    break;
                }
            }
            if !any {
                return false;
            }
        }
        true
    }

    fn holds(&self, rule: u16, test: &Test, walker: &Walker, argument: &mut u32) -> bool {
        let Walker { key, headers, .. } = walker;
        let v6 = key.network == Protocol::Ipv6;
        let ip = key.network != Protocol::Other;
        let whole = ip && !headers.is_later_fragment;
        let ports = whole && [6, 17, 33, 132, 136].contains(&key.transport);
        let tcp = whole && key.transport == 6;
        let layer2 = walker.link_header != 0;
        let within = |ranges: &[std::ops::RangeInclusive<u16>], value: u64| {
            ranges.iter().any(|range| u64::from(*range.start()) <= value && value <= u64::from(*range.end()))
        };
        let agrees = |own: [u8; 6], address: &[u8; 6], mask: &[u8; 6]| {
            (0..6).all(|at| own[at] & mask[at] == address[at] & mask[at])
        };
        let has = |flags: &Flags, field: u8| field & flags.set == flags.set && field & flags.clear == 0;
        match test {
            Test::Any => true,
            Test::Never => false,
            Test::Protocol(protocol) => ip && key.transport == *protocol,
            Test::IpVersion(version) => ip && *version == if v6 { 6 } else { 4 },
            Test::Source(addresses) => self.is_among(addresses, walker, argument, Field::Source),
            Test::Destination(addresses) => self.is_among(addresses, walker, argument, Field::Destination),
            Test::SourcePort(ranges) => ports && within(ranges, key.source_port.into()),
            Test::DestinationPort(ranges) => ports && within(ranges, key.destination_port.into()),
            Test::In => walker.incoming,
            Test::Out => !walker.incoming,
            Test::Layer2 => layer2,
            Test::LinkSource { address, mask } => layer2 && agrees(headers.link_source, address, mask),
            Test::LinkDestination { address, mask } => {
                layer2 && agrees(headers.link_destination, address, mask)
            }
            Test::EtherType(ranges) => layer2 && within(ranges, headers.ether_type.into()),
            Test::Length(ranges) => ip && within(ranges, walker.length.into()),
            Test::HopLimit(ranges) => ip && within(ranges, headers.hop_limit.into()),
            Test::Tos(tos) => {
                ip && key.traffic_class & tos.set == tos.set && key.traffic_class & tos.clear == 0
            }
            Test::Dscp(set) => ip && (set >> (key.traffic_class / 4)) % 2 == 1,
            Test::Precedence(precedence) => ip && key.traffic_class / 32 == *precedence,
            Test::Fragment => ip && headers.is_later_fragment,
            Test::FragmentBits(flags) => {
                let dont = if key.network == Protocol::Ipv4DontFragment { 0x40 } else { 0 };
                ip && !v6 && has(flags, headers.fragment | dont)
            }
            Test::IpId(ranges) => ip && !v6 && within(ranges, headers.ip_id.into()),
            Test::IpOptions(flags) => {
                ip && !v6 && headers.ip_options < 0x80 && has(flags, headers.ip_options)
            }
            Test::ExtensionHeader(of) => {
                v6 && (0..8).any(|bit| (headers.extension_headers & of) >> bit & 1 == 1)
            }
            Test::TcpSequence(number) => tcp && headers.tcp_sequence == *number,
            Test::TcpAcknowledgement(number) => tcp && headers.tcp_acknowledgement == *number,
            Test::TcpWindow(ranges) => tcp && within(ranges, headers.tcp_window.into()),
            Test::TcpMss(ranges) => {
                tcp && headers.tcp_options % 2 == 1 && within(ranges, headers.tcp_mss.into())
            }
            Test::TcpOptions(flags) => tcp && has(flags, headers.tcp_options),
            Test::Setup => tcp && key.tcp_flags & 2 != 0 && key.tcp_flags & 16 == 0,
            Test::Established => tcp && (key.tcp_flags & 4 != 0 || key.tcp_flags & 16 != 0),
            Test::TcpFlags { set, clear } => tcp && key.tcp_flags & set == *set && key.tcp_flags & clear == 0,
            Test::TcpDataLength(ranges) => tcp && within(ranges, headers.tcp_data_length.into()),
            Test::IcmpType(set) => {
                let kind = usize::from(key.source_port / 256);
                whole && !v6 && key.transport == 1 && (set[kind / 64] >> (kind % 64)) % 2 == 1
            }
            Test::Icmp6Type(set) => {
                let kind = usize::from(key.source_port / 256);
                whole && v6 && key.transport == 58 && (set[kind / 64] >> (kind % 64)) % 2 == 1
            }
            Test::Tagged(ranges) => walker.labels.tags.iter().any(|&tag| within(ranges, tag.into())),
            Test::Mark { value, mask } => {
                let wanted = match value {
                    Argument::Number(number) => *number,
                    Argument::TableArgument => *argument,
                };
                walker.labels.mark & mask == wanted & mask
            }
            Test::Fib(ranges) => within(ranges, walker.labels.fib.into()),
            Test::Flow(table) => {
                let Some((fields, entries)) = self.flows.get(&table.table) else { return false };
                let (from, to) = if ports { (key.source_port, key.destination_port) } else { (0, 0) };
                let agrees = |entry: &FlowEntry| {
                    (!fields.source || entry.source == u128::from_be_bytes(key.source))
                        && (!fields.destination || entry.destination == u128::from_be_bytes(key.destination))
                        && (!fields.protocol || entry.protocol == key.transport)
                        && (!fields.source_port || entry.source_port == from)
                        && (!fields.destination_port || entry.destination_port == to)
                };
                let found = entries.iter().find(|(entry, _)| ip && agrees(entry));
                let found = found.filter(|(_, own)| table.value.is_none_or(|wanted| wanted == *own));
                *argument = found.map_or(*argument, |(_, value)| *value);
                found.is_some()
            }
            Test::Lookup { field: field @ (Field::Received | Field::Sent | Field::Via), table, .. } => {
                // The first byte of the keys of interfaces, first those of the machine that has sent or received.
                let sides: &[u8] = match (field, walker.incoming) {
                    (Field::Received, true) | (Field::Sent, false) => &[5],
                    (Field::Received, false) | (Field::Sent, true) => &[6],
                    _ => &[5, 6],
                };
                let entries = self.tables.get(&table.table).into_iter().flatten();
                let fitting = entries.filter(|(key, mask, value)| {
                    *mask == u128::MAX
                        && sides.contains(&(key.to_be_bytes()[0]))
                        && table.value.is_none_or(|wanted| wanted == *value)
                });
                let first = fitting.min_by_key(|(key, ..)| *key);
                *argument = first.map_or(*argument, |&(_, _, value)| value);
                first.is_some()
            }
            Test::Lookup { field, mask, table } => {
                let number = |number: u32| {
                    let [a, b, c, d] = number.to_be_bytes();
                    Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d])
                };
                let link =
                    |[a, b, c, d, e, f]: [u8; 6]| Some([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, e, f]);
                let looked_up = match field {
                    Field::Source if ip => Some(key.source),
                    Field::Destination if ip => Some(key.destination),
                    Field::SourcePort if ports => number(key.source_port.into()),
                    Field::DestinationPort if ports => number(key.destination_port.into()),
                    Field::Dscp if ip => number((key.traffic_class / 4).into()),
                    Field::LinkSource if layer2 => link(headers.link_source),
                    Field::LinkDestination if layer2 => link(headers.link_destination),
                    Field::Mark => number(walker.labels.mark),
                    Field::RuleNumber => number(rule.into()),
                    _ => None,
                };
                let mask = mask.to_be_bytes();
                let masked = |address: [u8; 16]| std::array::from_fn(|at| address[at] & mask[at]);
                looked_up.is_some_and(|address| self.finds(table, masked(address), argument))
            }
            Test::FlowLabel(labels) => v6 && labels.contains(&headers.flow_label),
        }
    }

    fn is_among(&self, addresses: &Addresses, walker: &Walker, argument: &mut u32, field: Field) -> bool {
        let address = if field == Field::Source { walker.key.source } else { walker.key.destination };
        let v6 = walker.key.network == Protocol::Ipv6;
        let masked = |all: &[Masked]| {
            all.iter().any(|one| {
                let is_v4 = one.mask >> 32 == u128::MAX >> 32 && one.address >> 32 == 0xffff;
                is_v4 != v6 && u128::from_be_bytes(address) & one.mask == one.address & one.mask
            })
        };
        walker.key.network != Protocol::Other
            && match addresses {
                Addresses::Any => true,
                Addresses::Me => masked(&self.me),
                Addresses::In(all) => masked(all),
                Addresses::Table(table) => {
                    let (mask, table) = (u128::MAX, table.clone());
                    self.holds(0, &Test::Lookup { field, mask, table }, walker, argument)
                }
            }
    }

    fn finds(&self, test: &TableTest, address: [u8; 16], argument: &mut u32) -> bool {
        let address = u128::from_be_bytes(address);
        let entries = self.tables.get(&test.table).into_iter().flatten();
        let longest = entries
            .filter(|(prefix, mask, _)| address & mask == *prefix)
            // IPv6's prefixes have no IPv4 addresses.
            .filter(|(_, mask, _)| address >> 32 != 0xffff || mask.count_ones() >= 96)
            .max_by_key(|(_, mask, _)| mask.count_ones());
        match longest {
            Some(&(_, _, value)) if test.value.is_none_or(|wanted| wanted == value) => {
                *argument = value;
                true
            }
            _ => false,
        }
    }
}

fn count(counters: &mut RuleCounters, now: Time, walker: &Walker) {
    counters.packets += 1;
    counters.bytes += u64::from(walker.length);
    counters.last = Some(now);
}

#[test]
fn the_oracle_bounds_calls_as_the_rules_do() {
    assert_eq!(narrows_core::rules::RuleSet::MOST_CALLS, 1_024);
}

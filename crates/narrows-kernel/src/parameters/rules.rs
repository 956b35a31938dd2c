//! The classifier (`struct narrows_rule` in `bpf/state.h`): conditions with lists become several without.

use std::ops::RangeInclusive;

use narrows_core::classify::{Classifier, Condition, Families, Prefix};

use super::Bytes;

/// The most rules of a direction.
pub const MOST_RULES: usize = 256;
const NO_CLASS: u32 = u32::MAX;
const ANY_PROTOCOL: u16 = 256;

/// A condition of which everything must hold, and the class of packets for which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    dscps: u64,
    ecns: u8,
    families: u8,
    source: Option<Prefix>,
    destination: Option<Prefix>,
    lengths: RangeInclusive<u32>,
    source_ports: RangeInclusive<u16>,
    destination_ports: RangeInclusive<u16>,
    ports: RangeInclusive<u16>,
    protocol: u16,
    tcp_flags: Option<(u8, u8)>,
    about_ip: bool,
    about_ports: bool,
    class: u32,
}

impl Rule {
    /// Every packet.
    const fn all(class: u32) -> Self {
        Self {
            dscps: u64::MAX,
            ecns: 0xf,
            families: 7,
            source: None,
            destination: None,
            lengths: 0..=u32::MAX,
            source_ports: 0..=u16::MAX,
            destination_ports: 0..=u16::MAX,
            ports: 0..=u16::MAX,
            protocol: ANY_PROTOCOL,
            tcp_flags: None,
            about_ip: false,
            about_ports: false,
            class,
        }
    }

    /// How it lies in memory.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Bytes::default();
        bytes.long(self.dscps);
        for prefix in [self.source, self.destination] {
            let address = prefix.map_or([0; 16], |prefix| prefix.address());
            let bits = prefix.map_or(0, |prefix| prefix.bits());
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            for number in [u128::from_be_bytes(address), mask] {
                bytes.long((number >> 64) as u64);
                bytes.long(number as u64);
            }
        }
        bytes.word(*self.lengths.start());
        bytes.word(*self.lengths.end());
        for ports in [&self.source_ports, &self.destination_ports, &self.ports] {
            bytes.short(*ports.start());
            bytes.short(*ports.end());
        }
        bytes.short(self.protocol);
        let (set, clear) = self.tcp_flags.unwrap_or_default();
        let flags = [self.about_ip, self.about_ports, self.tcp_flags.is_some()].map(u8::from);
        bytes.0.extend([self.ecns, self.families, set, clear]);
        bytes.0.extend(flags);
        bytes.0.extend([0; 7]);
        bytes.word(self.class);
        bytes.0
    }
}

/// The rules of a classifier; none if there is one class.
///
/// # Errors
/// What the program does not look at.
pub fn rules_of(classifier: &Classifier) -> Result<Vec<Rule>, &'static str> {
    let mut all = Vec::new();
    match classifier {
        Classifier::One => return Ok(all),
        Classifier::TrafficClass(classes) => {
            // For each value of ECN, the code points of each class.
            for ecn in 0..4 {
                let class = |dscp: usize| u32::from(classes[dscp << 2 | ecn]);
                for number in 0..=classes.iter().copied().max().map_or(0, u32::from) {
                    let bit = |dscp: usize| u64::from(class(dscp) == number) << dscp;
                    let dscps = (0..64).map(bit).fold(0, |set, bit| set | bit);
                    all.push(Rule { dscps, ecns: 1 << ecn, ..Rule::all(number) });
                }
            }
            all.retain(|rule| rule.dscps != 0);
        }
        Classifier::Rules { rules, default } => {
            for (condition, class) in rules {
                expand(condition, *class, &mut all)?;
            }
            all.push(Rule::all(default.unwrap_or(NO_CLASS)));
        }
        Classifier::Flows(_) => return Err("the kernel does not hash flows"),
        Classifier::Mark(_) => return Err("the kernel does not look at marks"),
    }
    if all.len() > MOST_RULES {
        return Err("the kernel has at most 256 conditions on single values");
    }
    Ok(all)
}

/// One rule for each combination of a condition's entries.
fn expand(condition: &Condition, class: u32, all: &mut Vec<Rule>) -> Result<(), &'static str> {
    let Condition {
        sources,
        destinations,
        source_ports,
        destination_ports,
        ports,
        protocols,
        dscps,
        ecns,
        lengths,
        families,
        tcp_flags,
        lane,
        headers,
        icmp,
    } = condition;
    if headers.is_some() || lane.is_some() || !icmp.is_empty() {
        return Err(
            "the kernel's classes look at addresses, ports, protocols, DSCP, ECN, lengths and TCP flags only",
        );
    }
    let about_ports = !(source_ports.is_empty() && destination_ports.is_empty() && ports.is_empty());
    let about_ip = about_ports
        || dscps.is_some()
        || ecns.is_some()
        || tcp_flags.is_some()
        || !(protocols.is_empty() && sources.is_empty() && destinations.is_empty());
    let family = |one: Families, bit: u8| {
        let is_in = families.is_none_or(|set| !set.and(one).is_empty());
        if is_in { bit } else { 0 }
    };
    let first = Rule {
        dscps: dscps.unwrap_or(u64::MAX),
        ecns: ecns.unwrap_or(0xf),
        families: family(Families::IPV4, 1) | family(Families::IPV6, 2) | family(Families::OTHER, 4),
        lengths: lengths.clone().unwrap_or(0..=u32::MAX),
        tcp_flags: tcp_flags.map(|flags| (flags.set, flags.clear)),
        about_ip,
        about_ports,
        ..Rule::all(class)
    };
    let mut rules = vec![first];
    each(&mut rules, sources, |rule, &prefix| rule.source = Some(prefix))?;
    each(&mut rules, destinations, |rule, &prefix| rule.destination = Some(prefix))?;
    each(&mut rules, source_ports, |rule, ports| rule.source_ports = ports.clone())?;
    each(&mut rules, destination_ports, |rule, ports| rule.destination_ports = ports.clone())?;
    each(&mut rules, ports, |rule, ports| rule.ports = ports.clone())?;
    each(&mut rules, protocols, |rule, &protocol| rule.protocol = protocol.into())?;
    all.append(&mut rules);
    Ok(())
}

/// A copy of each rule for each entry, if there are entries.
fn each<T>(rules: &mut Vec<Rule>, entries: &[T], set: impl Fn(&mut Rule, &T)) -> Result<(), &'static str> {
    if entries.is_empty() {
        return Ok(());
    }
    if rules.len() * entries.len() > MOST_RULES {
        return Err("the kernel has at most 256 conditions on single values");
    }
    let with = |rule: &Rule| {
        let rule = rule.clone();
        let set = &set;
        entries.iter().map(move |entry| {
            let mut rule = rule.clone();
            set(&mut rule, entry);
            rule
        })
    };
    *rules = rules.iter().flat_map(with).collect();
    Ok(())
}

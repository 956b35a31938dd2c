//! Dynamic rules as a list that is searched from end to end, written from ipfw(8) and the lifetimes' table.

use narrows_core::rules::{By, Keep, StateConfig};
use narrows_core::{Duration, FlowKey, Protocol, Time};

#[derive(Clone, Debug)]
pub(crate) struct Dynamic {
    /// The packet that made it.
    pub(crate) first: FlowKey,
    /// The rule that made it, by its order, and its number.
    pub(crate) rule: (u32, u16),
    /// What that rule had found in a table.
    argument: u32,
    by: Option<By>,
    until: Time,
    forward_flags: u8,
    back_flags: u8,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct Dynamics {
    pub(crate) config: StateConfig,
    pub(crate) all: Vec<Dynamic>,
}

fn with_ports(key: &FlowKey) -> bool {
    [6, 17, 33, 132, 136].contains(&key.transport)
}

type Ends = [(([u8; 16], u16), ([u8; 16], u16)); 2];

/// The ends of a flow, as they are and turned round.
fn ends(key: &FlowKey) -> Ends {
    let port = |port| if with_ports(key) { port } else { 0 };
    let (a, b) = ((key.source, port(key.source_port)), (key.destination, port(key.destination_port)));
    [(a, b), (b, a)]
}

fn version(key: &FlowKey) -> u8 {
    match key.network {
        Protocol::Other => 0,
        Protocol::Ipv6 => 6,
        _ => 4,
    }
}

fn same_kind(a: &FlowKey, b: &FlowKey) -> bool {
    version(a) == version(b) && a.transport == b.transport
}

/// What flows that share a limit agree in.
fn shared(key: &FlowKey, by: By) -> (u8, u8, [u8; 16], [u8; 16], u16, u16) {
    let ((source, source_port), (destination, destination_port)) = ends(key)[0];
    (
        version(key),
        key.transport,
        if by.source { source } else { [0; 16] },
        if by.destination { destination } else { [0; 16] },
        if by.source_port { source_port } else { 0 },
        if by.destination_port { destination_port } else { 0 },
    )
}

impl Dynamic {
    fn touch(&mut self, now: Time, key: &FlowKey, config: &StateConfig) {
        let (fin, syn, rst) = (1, 2, 4);
        let forward = ends(key)[0] == ends(&self.first)[0];
        *(if forward { &mut self.forward_flags } else { &mut self.back_flags }) |=
            key.tcp_flags & (fin | syn | rst);
        let (there, back) = (self.forward_flags, self.back_flags);
        let life: Duration = if key.transport == 17 {
            config.udp
        } else if key.transport != 6 {
            config.other
        } else if there == syn && back == 0 {
            config.tcp_syn
        } else if (there | back) & rst != 0 || there & syn == 0 || back & syn == 0 {
            config.tcp_rst
        } else if there & fin != 0 && back & fin != 0 {
            config.tcp_fin
        } else {
            config.tcp_established
        };
        self.until = now + life;
    }
}

impl Dynamics {
    pub(crate) fn alive(&self, now: Time) -> impl Iterator<Item = &Dynamic> {
        self.all.iter().filter(move |one| one.until > now)
    }

    fn find(&mut self, now: Time, key: &FlowKey) -> Option<&mut Dynamic> {
        self.all.retain(|one| one.until > now);
        let config = self.config.clone();
        let own = ends(key)[0];
        let found =
            self.all.iter_mut().find(|one| same_kind(&one.first, key) && ends(&one.first).contains(&own));
        let found = found?;
        found.touch(now, key, &config);
        Some(found)
    }

    pub(crate) fn check(&mut self, now: Time, key: &FlowKey, length: u32) -> Option<((u32, u16), u32, bool)> {
        let found = self.find(now, key)?;
        found.packets += 1;
        found.bytes += u64::from(length);
        Some((found.rule, found.argument, ends(key)[0] != ends(&found.first)[0]))
    }

    /// Whether the packet may pass the rule.
    pub(crate) fn keep(
        &mut self,
        now: Time,
        key: &FlowKey,
        rule: (u32, u16),
        argument: u32,
        keep: Keep,
    ) -> bool {
        if self.find(now, key).is_some() {
            return true;
        }
        if self.all.len() >= self.config.most as usize {
            return false;
        }
        let by = match keep {
            Keep::State => None,
            Keep::Limit { most, by } => {
                let same = |one: &&Dynamic| {
                    one.rule.0 == rule.0 && one.by.is_some_and(|by| shared(&one.first, by) == shared(key, by))
                };
                if self.all.iter().filter(same).count() >= most as usize {
                    return false;
                }
                Some(by)
            }
        };
        let mut one = Dynamic {
            first: *key,
            rule,
            argument,
            by,
            until: now,
            forward_flags: 0,
            back_flags: 0,
            packets: 0,
            bytes: 0,
        };
        one.touch(now, key, &self.config.clone());
        self.all.push(one);
        true
    }

    pub(crate) fn forget(&mut self, rule: u32) {
        self.all.retain(|one| one.rule.0 != rule);
    }
}

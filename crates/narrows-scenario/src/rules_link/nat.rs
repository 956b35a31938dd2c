//! Translators of addresses: `[links.NAME.nats.NUMBER]`.

use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use narrows_core::rules::{Inner, NatConfig, Redirect, RuleChange};
use serde_json::json;

use super::RulesLink;
use super::batch::Batch;
use super::build::RulesSite;
use super::placed::placed;
use crate::ipfw::{self, NatCommand};
use crate::keys::kind::{Boolean, ByHand, Choice, Given, Integer, text};
use crate::keys::quantity::Time;
use crate::keys::{self, Keyed, Row, row};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::said_twice::said_twice;
use crate::surroundings::Surroundings;

const ADDRESS: ByHand<Ipv4Addr> = ByHand {
    words: || "IPv4 address".into(),
    schema: |_| json!({ "type": "string" }),
    read: |node, _| {
        const ALLOWED: &str = "an IPv4 address";
        match node.text(ALLOWED)?.parse::<Ipv4Addr>() {
            Ok(address) if ipfw::is_usable(address) => Ok(address),
            Ok(_) => Err(node.expected("the address of a host")),
            Err(_) => Err(node.expected(ALLOWED).help("only IPv4 is translated")),
        }
    },
    write: |address| Some(text(address)),
};
const PORTS: ByHand<RangeInclusive<u16>> = ByHand {
    words: || "range of ports such as `\"1024-65535\"`".into(),
    schema: |_| json!({ "type": "string", "pattern": "^[0-9]+-[0-9]+$" }),
    read: |node, _| {
        const ALLOWED: &str = "a range of ports from 1 to 65535, such as \"1024-65535\"";
        let range = node.text(ALLOWED)?.split_once('-').and_then(|(first, last)| {
            let range = first.trim().parse::<u16>().ok()?..=last.trim().parse::<u16>().ok()?;
            (*range.start() > 0 && !range.is_empty()).then_some(range)
        });
        range.ok_or_else(|| node.expected(ALLOWED))
    },
    write: |ports| Some(text(format!("{}-{}", ports.start(), ports.end()))),
};
const INNER: Choice<Inner> = Choice {
    what: "what is translated",
    choices: &[
        ("all", Inner::All),
        ("private", Inner::Private),
        ("private-or-shared", Inner::PrivateOrShared),
    ],
};
const REDIRECTS: ByHand<Vec<Redirect>> = ByHand {
    words: || "list of redirections such as `\"redirect_port tcp 10.0.0.2:80 8080\"`".into(),
    schema: |_| json!({ "type": "array", "items": { "type": "string" } }),
    read: |node, _| {
        const ALLOWED: &str = "a list of redirections, such as [\"redirect_port tcp 10.0.0.2:80 8080\"]";
        node.list(ALLOWED)?.iter().map(|item| redirect(item, ALLOWED)).collect()
    },
    write: |redirects| {
        let texts = redirects.iter().map(|one| Node::new(text(ipfw::redirect_text(one))));
        (!redirects.is_empty()).then(|| Value::Array(texts.collect()))
    },
};
const MOST: Integer = Integer { what: "a number of flows", low: 1, high: 16_777_216 };

fn redirect(item: &Node, allowed: &str) -> Result<Redirect, Problem> {
    let text = item.text(allowed)?;
    ipfw::read_redirect(text).map_err(|problem| placed(problem, item, text))
}

impl Keyed for NatConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("address", address, Given(ADDRESS), "Outer address. One that nobody in the scenario has is given to the first end of the link.")
            .default("that of the first end, at this link"),
        row!("keep-ports", keeps_ports, Boolean, "Whether a new flow keeps its port if that is free."),
        row!("ports", ports, PORTS, "Outer ports of new flows, drawn at random."),
        row!("inner", inner, INNER, "Which inner addresses are replaced: all, private ones (RFC 1918), or also those of carriers (RFC 6598). Packets from others keep their address, but not their port."),
        row!("udp-eim", udp_eim, Boolean, "Whether all flows of UDP from an inner address and port have one outer port (endpoint-independent mapping, RFC 4787; “cone”). Otherwise each remote end sees another one (“symmetric”)."),
        row!("deny-in", denies_incoming, Boolean, "Whether packets that come in without a flow are dropped, unless their port is redirected. Otherwise they pass unchanged, or, with `udp-eim`, to whoever has that outer port."),
        row!("redirects", redirects, REDIRECTS, "Inner hosts for packets that come in without a flow, in the [syntax of ipfw](ipfw.md#address-translation).")
            .default("none"),
        row!("udp", lifetimes.udp, Time::POSITIVE, "How long a flow of UDP lasts without packets."),
        row!("icmp", lifetimes.icmp, Time::POSITIVE, "The same for echoes and timestamps of ICMP."),
        row!("tcp", lifetimes.tcp, Time::POSITIVE, "The same for TCP that both sides have opened."),
        row!("tcp-opening", lifetimes.tcp_opening, Time::POSITIVE, "The same for TCP before that."),
        row!("tcp-closing", lifetimes.tcp_closing, Time::POSITIVE, "The same for TCP that one side has closed."),
        row!("tcp-closed", lifetimes.tcp_closed, Time::POSITIVE, "The same for TCP that both sides have closed, or one has reset."),
        row!("other", lifetimes.other, Time::POSITIVE, "The same for other protocols."),
        row!("most", most, MOST, "Maximum number of flows at a time. Packets of further flows are denied and counted."),
        row!("reverse", reverse, Boolean, "Whether packets from the second end to the first count as going out."),
        row!("global", global, Boolean, "Whether `nat global` uses it, too."),
        row!("reset", resets, Boolean, "Whether all flows end when the outer address changes."),
    ];
}

/// Reads `[links.NAME.nats.NUMBER]`.
pub(super) fn read(node: &Node, around: Surroundings<'_>) -> Result<NatConfig, Vec<Problem>> {
    let one = |problem: Problem| vec![problem];
    let table = node.table("a table of what the translator does: { keep-ports = true }").map_err(one)?;
    let mut problems = table.unknown_keys(&keys::names::<NatConfig>());
    let mut nat = NatConfig::default();
    problems.extend(keys::read_all(&mut nat, table, &node.span, around));
    problems.extend(said_twice(table));
    if problems.is_empty() { Ok(nat) } else { Err(problems) }
}

impl RulesLink {
    /// A translator without an address of its own.
    pub(crate) fn needs_own_address(&self) -> Option<u32> {
        self.nats.iter().find(|(_, nat)| nat.address.is_none()).map(|(number, _)| *number)
    }

    /// The outer addresses that translators name.
    pub(crate) fn outer_addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.nats.values().flat_map(outer_addresses)
    }
}

fn outer_addresses(nat: &NatConfig) -> impl Iterator<Item = Ipv4Addr> {
    let redirected = nat.redirects.iter().filter_map(|redirect| match redirect {
        Redirect::Ports { outer, .. }
        | Redirect::Address { outer, .. }
        | Redirect::Protocol { outer, .. } => *outer,
    });
    nat.address.into_iter().chain(redirected)
}

impl RulesSite {
    /// The translator as the engine gets it.
    pub(super) fn nat(&self, config: &NatConfig) -> NatConfig {
        NatConfig { address: config.address.or(self.here), ..config.clone() }
    }
}

impl Batch<'_> {
    pub(super) fn change_nat(&mut self, command: &NatCommand) -> Result<(), Problem> {
        match command {
            NatCommand::Configure { number, config } => {
                // What has no word in ipfw stays.
                let before = self.link.nats.get(number).cloned().unwrap_or_default();
                let config =
                    NatConfig { lifetimes: before.lifetimes, most: before.most, ..(**config).clone() };
                let told = self.site.nat(&config);
                if let Some(address) =
                    outer_addresses(&config).find(|&one| !self.site.me.contains(&one.into()))
                {
                    let problem = Problem::new(format!(
                        "the first host of the link does not have the address {address}"
                    ));
                    return Err(problem
                        .help("it gets the outer addresses that translators have at the start of a run"));
                }
                if told.address.is_none() {
                    let problem = Problem::new(format!("translator {number} has no outer address"));
                    return Err(problem.help("as in: ip 192.0.2.1"));
                }
                self.link.nats.insert(*number, config);
                self.tell_of_nat(*number, Some(told));
            }
            NatCommand::Delete(number) => {
                if self.link.nats.remove(number).is_none() {
                    return Err(Problem::new(format!("there is no translator {number}")));
                }
                self.tell_of_nat(*number, None);
            }
            NatCommand::Show(_) | NatCommand::ShowFlows(_) => {}
        }
        Ok(())
    }

    fn tell_of_nat(&mut self, number: u32, config: Option<NatConfig>) {
        let change = RuleChange::Nat { number, config: config.map(Box::new) };
        self.tell(narrows_core::RulesChange::Rules(change));
    }
}

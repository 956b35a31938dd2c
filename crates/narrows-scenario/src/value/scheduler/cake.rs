//! Parameters of CAKE: `{ type = "cake", bandwidth = "20mbit", tins = "diffserv4", isolation = "dual-srchost",
//! rtt = "30ms", overhead = 18, mpu = "64 bytes" }`.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::classify::Classifier;
use narrows_core::sched::{AckFilter, CakeConfig, CakeTarget, Cells, Isolation, TinMode};
use narrows_core::{Bytes, Duration, Rate};
use serde_json::json;

use super::cake_filter::{self, ASSIGN, CakeFilter};
use super::own::OwnParameters;
use crate::keys::kind::{Boolean, ByHand, Choice, text};
use crate::keys::quantity::{ANY_RATE, Time};
use crate::keys::{Keyed, Parameters, Row, row, schema};
use crate::node::{Node, Table, Value};
use crate::problem::{Problem, one_of};
use crate::units;

const BANDWIDTH: ByHand<Rate> = ByHand {
    words: || "rate, or `\"unlimited\"`".into(),
    read: |node, _| match units::rate(node)? {
        Rate::DOWN => Err(node.expected("a rate above zero, or \"unlimited\"")),
        rate => Ok(rate),
    },
    ..ANY_RATE
};

const TINS: Choice<TinMode> = Choice {
    what: "division into tins",
    choices: &[
        ("diffserv3", TinMode::Diffserv3),
        ("diffserv4", TinMode::Diffserv4),
        ("diffserv8", TinMode::Diffserv8),
        ("precedence", TinMode::Precedence),
        ("besteffort", TinMode::BestEffort),
    ],
};

const ISOLATION: Choice<Isolation> = Choice {
    what: "isolation",
    choices: &[
        ("triple-isolate", Isolation::Triple),
        ("dual-srchost", Isolation::DualSource),
        ("dual-dsthost", Isolation::DualDestination),
        ("flows", Isolation::Flows),
        ("hosts", Isolation::Hosts),
        ("srchost", Isolation::Source),
        ("dsthost", Isolation::Destination),
        ("flowblind", Isolation::None),
    ],
};

/// In tc's range.
const OVERHEAD: ByHand<Option<i16>> = ByHand {
    words: || "`\"raw\"`, or whole number, -64 to 256".into(),
    schema: |_| json!({ "anyOf": [{ "const": "raw" }, { "type": "integer", "minimum": -64, "maximum": 256 }] }),
    read: |node, _| match &node.value {
        Value::String(word) if word == "raw" => Ok(None),
        _ => match node.integer("a number of bytes", -64..257) {
            Ok(bytes) => Ok(Some(bytes as i16)), // in range
            Err(problem) => Err(problem.help("or \"raw\": as many as the packet's link header has")),
        },
    },
    write: |overhead| Some(overhead.map_or_else(|| text("raw"), |bytes| Value::Integer(bytes.to_string()))),
};

/// In tc's range.
const MPU: ByHand<u16> = ByHand {
    words: || "size, 0 to 256 bytes".into(),
    schema: schema::size,
    read: |node: &Node, _| match units::size(node)?.get() {
        size @ 0..=256 => Ok(size as u16),
        _ => Err(node.expected("a length from 0 to 256 bytes")),
    },
    write: |mpu| Some(text(Bytes::new(u64::from(*mpu)))),
};

const CELLS: Choice<Cells> = Choice {
    what: "kind of cells",
    choices: &[("none", Cells::None), ("atm", Cells::Atm), ("ptm", Cells::Ptm)],
};

const ACK_FILTER: Choice<AckFilter> = Choice {
    what: "filter of acknowledgements",
    choices: &[("off", AckFilter::Off), ("on", AckFilter::On), ("aggressive", AckFilter::Aggressive)],
};

/// The parameters of CAKE, and its filters.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cake {
    pub(super) config: CakeConfig,
    assign: Vec<CakeFilter>,
}

impl Cake {
    /// The engine's filters; `None` without any.
    pub(super) fn filters(
        &self,
        addresses: &dyn Fn(&str) -> Vec<IpAddr>,
    ) -> Option<(Classifier, Vec<CakeTarget>)> {
        let tins = self.config.tins;
        // At most eight.
        let tin = |name: &str| (0..tins.tins() as u8).find(|tin| tin_name(tins, usize::from(*tin)) == name);
        (!self.assign.is_empty()).then(|| cake_filter::filters(&self.assign, tin, addresses))
    }
}

impl Keyed for Cake {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "bandwidth",
            config.bandwidth,
            BANDWIDTH,
            "Rate of the shaper, which allows no bursts. Without it, the link's rate is the bottleneck."
        ),
        row!(
            "autorate",
            config.autorate,
            Boolean,
            "Take the rate at which packets arrive for the bandwidth, as soon as it is known."
        ),
        row!("tins", config.tins, TINS, "Priority tins, and which [code points](#cake) are in each."),
        row!(
            "isolation",
            config.isolation,
            ISOLATION,
            "What gets equal shares: flows, hosts, or hosts and then their flows."
        ),
        row!(
            "rtt",
            config.rtt,
            Time::at_least(Duration::from_micros(1)),
            "Typical maximum round-trip time: CoDel's interval; the target is a twentieth."
        ),
        row!(
            "overhead",
            config.framing.overhead,
            OVERHEAD,
            "Bytes of each packet besides the IP packet. `\"raw\"`: those of its link header."
        ),
        row!("mpu", config.framing.mpu, MPU, "Minimum length that a packet counts as, `overhead` included."),
        row!(
            "cells",
            config.framing.cells,
            CELLS,
            "Link layer: `\"atm\"` counts cells of 53 bytes for each 48, `\"ptm\"` 65 bytes for each 64."
        ),
        row!(
            "ingress",
            config.ingress,
            Boolean,
            "Charge dropped packets to the shaper: for a queue behind the bottleneck."
        ),
        row!(
            "ack-filter",
            config.ack_filter,
            ACK_FILTER,
            "Drop waiting TCP acknowledgements that a later one makes redundant: the first of several, or with `\"aggressive\"` a single one, too."
        ),
        row!("wash", config.wash, Boolean, "Clear the DSCP of all packets, after choosing their tins by it."),
        row!(
            "assign",
            assign,
            ASSIGN,
            "Filters that choose tins, hosts and flows. The first one that matches counts."
        )
        .default("none"),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        let (Some(list), tins) = (table.get("assign"), self.config.tins) else { return Ok(()) };
        let names: Vec<String> = (0..tins.tins()).map(|tin| tin_name(tins, tin)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for filter in list.list("a list of filters")? {
            let tin = filter.table("a filter")?.get("tin");
            if let Some(tin) = tin.filter(|tin| tin.text("").is_ok_and(|name| !names.contains(&name))) {
                return Err(tin.expected(&format!("a tin of these `tins`: {}", one_of(&names))));
            }
        }
        Ok(())
    }
}

impl OwnParameters for Cake {
    fn effective(&self) -> String {
        format!(", {}", Parameters::words(self))
    }
}

/// As tc prints them.
pub(super) fn tin_name(mode: TinMode, tin: usize) -> String {
    let names: &[&str] = match mode {
        TinMode::BestEffort => &["best-effort"],
        TinMode::Diffserv3 => &["best-effort", "bulk", "voice"],
        TinMode::Diffserv4 => &["best-effort", "bulk", "video", "voice"],
        TinMode::Diffserv8 | TinMode::Precedence => &[],
    };
    names.get(tin).map_or_else(|| format!("tin-{tin}"), |name| (*name).into())
}

//! The keys of a direction.

use std::sync::LazyLock;

use narrows_core::Duration;
use serde_json::json;

use super::Direction;
use crate::keys::kind::{Boolean, ByHand, Given, Or, text};
use crate::keys::quantity::{ANY_RATE, PACKETS, Size, Time};
use crate::keys::{self, Form, Key, Keyed, Row, row};
use crate::node::Node;
use crate::value::{
    self, CHANCE, CORRUPT, DELAY, Delay, EXACT_NETEM, INGRESS, Losing, MTU, ORDER, OVERHEAD, POLICER,
    PROFILE, Queue, ReorderOrNone, SLOTS, Scheduler, TRACE,
};

/// The names of all keys.
pub(crate) static KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(keys::names::<Direction>);

const JITTER: Given<Time> = Given(Time::ANY);
const QUEUE: ByHand<Queue> = ByHand {
    words: || "packets, size, word or table".into(),
    schema: Queue::schema,
    read: Queue::read,
    write: |queue| Some(queue.value()),
};
const SCHEDULER: ByHand<Option<Scheduler>> = ByHand {
    words: || "word or table".into(),
    schema: Scheduler::schema,
    read: Scheduler::read,
    write: |scheduler| Some(scheduler.as_ref().map_or(text("none"), Scheduler::value)),
};
const SIZE: Size = Size { low: 0, high: 1_000_000_000_000, expected: "a size" };
const NETEM: ByHand<()> = ByHand {
    words: || "NetEm's words".into(),
    schema: |_| json!({ "type": "string" }),
    read: |_, _| Ok(()),
    write: |()| None,
};

impl Keyed for Direction {
    const ROWS: &'static [Row<Self>] = &[
        row!("rate", rate, ANY_RATE, "Transmission rate of the link.")
            .flag("RATE", "1.5mbit/0.5mbit, 10gbit")
            .explained(),
        Row::new(
            "delay",
            &DELAY,
            "[One-way propagation delay](#delay-jitter-order).",
            |of: &Self| of.delay.as_ref().map(Delay::value),
            |of: &mut Self, node, around| {
                let (delay, order) = value::read_delay(node, around)?;
                of.delay = Some(delay);
                of.settings.order = order.unwrap_or(of.settings.order);
                Ok(())
            },
        )
        .default("none")
        .flag("TIME", "10ms, '{ gamma = { mean = \"30ms\", sd = \"8ms\" } }'")
        .explained(),
        Row::new(
            "jitter",
            &JITTER,
            "Standard deviation of a normally distributed delay around a constant `delay`.",
            |of: &Self| JITTER.write(&of.jitter),
            |of: &mut Self, node, around| {
                of.jitter = JITTER.read(node, around)?.filter(|sd| *sd > Duration::ZERO);
                Ok(())
            },
        )
        .default("none")
        .flag("TIME", "2ms")
        .explained(),
        row!("order", settings.order, ORDER, "Whether a varying delay may reorder packets.")
            .flag("ORDER", "keep, allow")
            .explained(),
        row!("loss", loss, Losing, "[Packet loss](#loss), on the wire unless told otherwise.")
            .flag("SHARE", "1%, 0.01, '{ gilbert-elliott = { p = \"1%\", r = \"30%\" } }'")
            .explained(),
        row!("queue", queue, QUEUE, "[Queue bound](#queue) and queue management.")
            .default("one bandwidth-delay product, first in, first out")
            .flag("BOUND", "\"13 packets\", 64kB, codel, red, pie, dualpi2")
            .explained(),
        row!(
            "scheduler",
            scheduler,
            SCHEDULER,
            "[Scheduler](#scheduler) that shares the link among classes or flows."
        )
        .flag("SCHEDULER", "sfq, fq_codel, fq_pie, drr, pfifo_fast")
        .explained(),
        row!("overhead", overhead, OVERHEAD, "[Length of a packet on the wire](#overhead).")
            .flag("OVERHEAD", "frame, ethernet, atm, wlan")
            .explained(),
        row!("duplicate", duplicate, CHANCE, "[Packet duplication](#duplicate).")
            .flag("SHARE", "0.1%")
            .explained(),
        row!("corrupt", corrupt, CORRUPT, "[Bit corruption](#corrupt).").flag("SHARE", "0.1%").explained(),
        row!("reorder", reorder, ReorderOrNone, "[Reordering](#reorder): packets that skip the delay.")
            .flag("SHARE", "\"25% gap 5\"")
            .explained(),
        row!("slots", slots, SLOTS, "[Transmission slots](#slots): packets leave only in slots.")
            .flag("SLOTS", "'{ gap = \"10ms\", packets = 8 }'")
            .explained(),
        row!("trace", trace, TRACE, "[Trace](#trace) of rate, delay, loss or queue bound over time.")
            .flag("FILE", "a file for both ways, or DOWN/UP")
            .explained(),
        row!("profile", profile, PROFILE, "[Link profile](#profile): extra air time per packet.")
            .flag("FILE", "a file for both ways, or DOWN/UP")
            .explained(),
        row!(
            "burst",
            burst,
            SIZE,
            "[Burst](#burst) that may pass at once after idle time, up to what the rate would have sent."
        )
        .flag("SIZE", "10kB")
        .explained(),
        Row::new(
            "netem",
            &NETEM,
            "[NetEm options](#netem-exact-netem), mapped to two queues.",
            |_: &Self| None,
            |of: &mut Self, node, around| of.set_netem(node, around),
        )
        .flag("OPTIONS", "\"delay 100ms 20ms loss 1% rate 1mbit limit 50\"")
        .explained(),
        row!(
            "exact-netem",
            exact_netem,
            EXACT_NETEM,
            "[NetEm's single queue](#netem-exact-netem), bit for bit, in place of all other keys."
        )
        .flag("OPTIONS", "\"delay 100ms\"")
        .explained(),
        row!("mtu", settings.mtu, MTU, "[Maximum IP packet length](#mtu).").flag("BYTES", "1400").explained(),
        row!(
            "line-limit",
            settings.line_limit,
            Or("unlimited", PACKETS),
            "[Maximum number of packets in flight](#line-limit)."
        )
        .flag("PACKETS", "\"1000 packets\"")
        .explained(),
        row!("outage", outage, Boolean, "[Take the link down](#outage), whatever its rate.")
            .flag("true|false", "")
            .explained(),
        row!(
            "ingress",
            ingress,
            INGRESS,
            "[Filters](#ingress) that drop, pass, police, gate or edit arriving packets, without a queue."
        )
        .flag("FILTERS", "'{ match = { protocol = \"udp\" }, action = \"drop\" }'")
        .explained(),
        row!("policer", policer, POLICER, "[Police arriving packets](#policer) to a rate, without a queue.")
            .flag("POLICER", "'{ rate = \"10mbit\", burst = \"20kB\" }'")
            .explained(),
    ];
}

impl Direction {
    /// The keys that differ from a default link, each with its value as written in a file.
    pub(crate) fn entries(&self) -> Vec<(&'static str, String)> {
        let all = keys::differing(self).into_iter();
        all.map(|(name, value)| (name, Node::new(value).toml())).collect()
    }

    /// The keys that differ from a default link and that no sentence of the explanation covers, each with
    /// its value for display: `line-limit 1000 packets`.
    pub fn plain_words(&self) -> Vec<String> {
        let explained = |name: &str| Self::ROWS.iter().any(|row| row.name() == name && row.is_explained());
        let all = keys::differing(self).into_iter().filter(|(name, _)| !explained(name));
        all.map(|(name, value)| format!("{name} {}", Node::new(value).typed_text())).collect()
    }
}

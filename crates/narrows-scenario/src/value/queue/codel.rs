//! `{ type = "codel", target = "5ms", interval = "100ms", ecn = true }` (RFC 8289).

use std::ops::Range;

use narrows_core::Duration;
use narrows_core::aqm::{self, CodelConfig};

use super::{Maker, Manages, maker};
use crate::keys::kind::Boolean;
use crate::keys::quantity::{PACKET_SIZE, Time};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;

const LONGEST: Duration = Duration::from_secs(100);
const TARGET: Time = Time::between(Duration::from_micros(1), LONGEST);
const INTERVAL: Time = Time::between(Duration::from_millis(1), LONGEST);

impl Keyed for CodelConfig {
    const ROWS: &'static [Row<Self>] = &[
        row!("target", target, TARGET, "The acceptable standing queue delay, below `interval`."),
        row!(
            "interval",
            interval,
            INTERVAL,
            "Drop once the sojourn time has been above `target` for this long: about the worst-case round-trip time."
        ),
        row!(
            "longest",
            longest,
            PACKET_SIZE,
            "The longest packet: do not drop while no more than this is waiting."
        ),
        row!("ecn", ecn, Boolean, "Mark ECN-capable packets instead of dropping them."),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let Self { target, interval, .. } = self;
        if target < interval {
            return Ok(());
        }
        let keys = [table.key("target"), table.key("interval")];
        let place = keys.into_iter().flatten().next().map_or(place, |key| &key.span);
        Err(Problem::new(format!("the target of {target} is not below the interval of {interval}"))
            .at(place)
            .help("the interval is about the longest round trip, and the target 5 to 10 % of it"))
    }
}

impl Manages for CodelConfig {
    fn maker(&self) -> Option<Maker> {
        Some(maker(aqm::Codel::new(*self)))
    }
}

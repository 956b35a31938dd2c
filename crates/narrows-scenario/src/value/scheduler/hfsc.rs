//! Classes of hierarchical fair service curves (HFSC): `{ name = "voice", parent = "all", rt = { umax = "250 bytes",
//! dmax = "5ms", rate = "100kbit" }, ls = "1mbit" }`.

use std::ops::Range;

use narrows_core::sched::HfscCurve;
use narrows_core::{Bytes, Duration, Rate};

use super::bucket::BURST;
use crate::keys::compound::{As, Group, Short};
use crate::keys::kind::{ByHand, Given};
use crate::keys::quantity::{ANY_RATE, FINITE_RATE, Time};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::units;

/// Parameters of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HfscClass {
    /// Guarantee and share in one: stands for both `rt` and `ls`.
    pub sc: Option<ServiceCurve>,
    /// Guaranteed service.
    pub rt: Option<ServiceCurve>,
    /// Share in what guarantees leave.
    pub ls: Option<ServiceCurve>,
    /// Upper limit of what it gets as a share.
    pub ul: Option<ServiceCurve>,
}

/// A service curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceCurve {
    /// By its slopes.
    Slopes(HfscCurve),
    /// By the delay of a packet.
    Delay {
        /// Bytes that are served within the delay.
        umax: Bytes,
        /// The delay, above zero.
        dmax: Duration,
        /// Rate after that.
        rate: Rate,
    },
}

/// A service curve as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CurveParts {
    m1: Option<Rate>,
    d: Option<Duration>,
    m2: Option<Rate>,
    umax: Option<Bytes>,
    dmax: Option<Duration>,
    rate: Option<Rate>,
}

/// A finite rate, or zero.
const SLOPE: ByHand<Rate> = ByHand {
    read: |node, _| match units::rate(node)? {
        Rate::UNLIMITED => Err(node.expected("a rate, such as \"1mbit\"")),
        rate => Ok(rate),
    },
    ..ANY_RATE
};

const CURVE: As<Short<CurveParts>, CurveParts, ServiceCurve> = As {
    kind: Short {
        key: "m2",
        words: "rate",
        table: Group::new(
            "ServiceCurve",
            "A service curve: the slope `m1` for the time `d`, then `m2`; or `umax` bytes within `dmax`, then `rate`.",
            "{ m1 = \"2mbit\", d = \"5ms\", m2 = \"1mbit\" }",
        ),
    },
    into: CurveParts::curve,
    from: CurveParts::of,
};

impl Keyed for HfscClass {
    const ROWS: &'static [Row<Self>] = &[
        row!(
            "sc",
            sc,
            Given(CURVE),
            "[Curve](#service-curves) of guarantee and share: `rt` and `ls` in one."
        )
        .default("none"),
        row!("rt", rt, Given(CURVE), "Real time: guaranteed service of a leaf class.").default("none"),
        row!("ls", ls, Given(CURVE), "Link share: its part of what guarantees leave, relative to siblings.")
            .default("none"),
        row!("ul", ul, Given(CURVE), "Upper limit of what it gets as a share; needs `ls` or `sc`.")
            .default("none"),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let with = |one: &str| table.key(one).map_or(place.clone(), |key| key.span.clone());
        if let Some(other) = ["rt", "ls"].into_iter().find(|key| table.get(key).is_some())
            && self.sc.is_some()
        {
            return Err(Problem::new(format!("both `sc` and `{other}` in one class"))
                .at(&with(other))
                .also(&with("sc"), "the other")
                .help("`sc` stands for `rt` and `ls` with the same curve: write `sc`, or these two"));
        }
        if self.rt().is_none() && self.ls().is_none() {
            return Err(Problem::new("a class of `hfsc` without a service curve")
                .at(place)
                .help("`sc` is its curve, such as sc = \"1mbit\"; or `rt`, `ls` or both"));
        }
        if self.ul.is_some() && self.ls().is_none() {
            return Err(Problem::new("`ul` without `ls`")
                .at(&with("ul"))
                .help("an upper limit applies to link sharing: add `ls`, or `sc` instead of `rt`"));
        }
        Ok(())
    }
}

impl HfscClass {
    /// The effective guarantee.
    pub fn rt(&self) -> Option<ServiceCurve> {
        self.rt.or(self.sc)
    }

    /// The effective share.
    pub fn ls(&self) -> Option<ServiceCurve> {
        self.ls.or(self.sc)
    }

    pub(crate) fn effective(&self, is_leaf: bool) -> String {
        // A class with children shares by what it has.
        let (rt, ls) = match is_leaf {
            true => (self.rt(), self.ls()),
            false => (None, self.ls().or(self.rt())),
        };
        let curves = [("real time", rt), ("link share", ls), ("at most", self.ul)];
        let words = curves.into_iter().filter_map(|(name, curve)| Some(format!("{name} {}", curve?.words())));
        words.collect::<Vec<_>>().join("; ")
    }
}

impl Keyed for CurveParts {
    const ROWS: &'static [Row<Self>] = &[
        row!("m1", m1, Given(SLOPE), "Slope of the first piece.").default("0, if there is a `d`"),
        row!("d", d, Given(Time::ANY), "Length of the first piece.").default("none: one slope"),
        row!("m2", m2, Given(FINITE_RATE), "Slope after that.").default("required, or `rate`"),
        row!("umax", umax, Given(BURST), "Bytes to be served within `dmax`: the longest packet.")
            .default("none"),
        row!("dmax", dmax, Given(Time::POSITIVE), "Delay of these bytes.").default("none"),
        row!("rate", rate, Given(FINITE_RATE), "Rate, instead of `m2`.").default("required, or `m2`"),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let first = |keys: [&'static str; 3]| keys.into_iter().find_map(|key| table.key(key));
        let (slopes, delays) = (first(["m1", "d", "m2"]), first(["umax", "dmax", "rate"]));
        if let (Some(slope), Some(delay)) = (slopes, delays) {
            return Err(Problem::new(format!("both `{}` and `{}` in one curve", slope.name, delay.name))
                .at(&delay.span)
                .also(&slope.span, "the other")
                .help("a curve is { m1, d, m2 } or { umax, dmax, rate }"));
        }
        let without = |key: &str, other: &str, why: &str| {
            let span = table.key(key).map_or(place, |key| &key.span);
            Err(Problem::new(format!("`{key}` without `{other}`")).at(span).help(why))
        };
        match self {
            Self { m1: Some(_), d: None, .. } => {
                without("m1", "d", "`d` is how long the slope `m1` lasts, such as d = \"10ms\"")
            }
            Self { umax: Some(_), dmax: None, .. } => {
                without("umax", "dmax", "`dmax` is the time for these bytes, such as dmax = \"10ms\"")
            }
            Self { m2: None, rate: None, .. } => Err(Problem::new("a service curve without a rate").at(place).help(
                "a curve is { m1, d, m2 }, with the slope `m2` at the end, or { umax, dmax, rate }; or only a rate",
            )),
            _ => Ok(()),
        }
    }
}

impl CurveParts {
    /// The check has passed: there is a rate.
    fn curve(self) -> ServiceCurve {
        let last = self.m2.or(self.rate).unwrap_or(Rate::DOWN);
        match (self.dmax, self.d) {
            (Some(dmax), _) => ServiceCurve::Delay { umax: self.umax.unwrap_or_default(), dmax, rate: last },
            (None, Some(d)) if d > Duration::ZERO => {
                ServiceCurve::Slopes(HfscCurve { m1: self.m1.unwrap_or(Rate::DOWN), d, m2: last })
            }
            _ => ServiceCurve::Slopes(HfscCurve::linear(last)),
        }
    }

    fn of(curve: &ServiceCurve) -> Self {
        match *curve {
            ServiceCurve::Slopes(HfscCurve { m1, d, m2 }) => Self {
                m1: (m1 > Rate::DOWN).then_some(m1),
                d: (d > Duration::ZERO).then_some(d),
                m2: Some(m2),
                ..Self::default()
            },
            ServiceCurve::Delay { umax, dmax, rate } => Self {
                umax: (umax > Bytes::new(0)).then_some(umax),
                dmax: Some(dmax),
                rate: Some(rate),
                ..Self::default()
            },
        }
    }
}

impl ServiceCurve {
    /// Its two pieces. A curve by delay is tc's: concave with `umax` within `dmax`, if that takes more than the rate;
    /// else convex, so that the rate ends there.
    pub fn pieces(&self) -> HfscCurve {
        let (umax, dmax, rate) = match *self {
            Self::Slopes(curve) => return curve,
            Self::Delay { umax, dmax, rate } => (umax, dmax, rate),
        };
        // At most 2³² · 2³³.
        let work = u128::from(umax.get()) * 8_000_000_000;
        let finite = |quotient: u128| u64::try_from(quotient).unwrap_or(u64::MAX - 1);
        let slope = finite(work.div_ceil(u128::from(dmax.nanos()).max(1)));
        if slope > rate.bits_per_second() {
            return HfscCurve { m1: Rate::from_bits_per_second(slope), d: dmax, m2: rate };
        }
        let by_rate = Duration::from_nanos(finite(work / u128::from(rate.bits_per_second())));
        HfscCurve { m1: Rate::DOWN, d: dmax.saturating_sub(by_rate), m2: rate }
    }

    fn words(&self) -> String {
        let HfscCurve { m1, d, m2 } = self.pieces();
        match (m1, d) {
            (_, Duration::ZERO) => m2.to_string(),
            (Rate::DOWN, d) => format!("nothing for {d}, then {m2}"),
            (m1, d) => format!("{m1} for {d}, then {m2}"),
        }
    }
}

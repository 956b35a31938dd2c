//! A policer at the entrance of a link: `{ rate = "10mbit", burst = "20kB", exceed = "drop" }`.

use narrows_core::sched::Peak;
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Exceed, Policer, PolicerConfig, Rate};

use crate::keys::Form;
use crate::keys::quantity::FiniteRate;
use crate::node::{Node, Table, Value};
use crate::problem::Problem;
use crate::units;
use crate::value::Surroundings;
use crate::value::inline::Inline;
use crate::value::overhead;
use crate::value::scheduler::{BURST, below_one_packet};

/// What a link does with packets that come faster than a bucket has tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerUse {
    /// Tokens come at this rate.
    pub rate: Rate,
    /// How many bytes of them the bucket holds.
    pub burst: Bytes,
    /// A second bucket of this rate, which holds a packet.
    pub peakrate: Option<Rate>,
    /// The longest packet; nothing for 1500 bytes.
    pub mtu: Option<Bytes>,
    /// What the shortest packet counts.
    pub mpu: Bytes,
    /// What a packet costs; nothing for what it costs the link.
    pub overhead: Option<Overhead>,
    /// What becomes of packets for which there are no tokens.
    pub exceed: PolicerExceed,
}

/// What becomes of packets for which a policer has no tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicerExceed {
    /// They are dropped.
    #[default]
    Drop,
    /// They are marked with "congestion experienced" where they can be, and dropped where not.
    Mark,
    /// They pass, and are counted.
    Pass,
}

const KEYS: &[&str] = &["rate", "burst", "peakrate", "mtu", "mpu", "overhead", "exceed"];
const EXCEEDS: &[(&str, PolicerExceed)] =
    &[("drop", PolicerExceed::Drop), ("mark", PolicerExceed::Mark), ("pass", PolicerExceed::Pass)];
const MTU: Bytes = Bytes::new(1500);

impl PolicerUse {
    pub(crate) const KEYS: &'static [&'static str] = KEYS;

    /// Reads a policer; nothing for `"none"`.
    pub(crate) fn read(node: &Node, around: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        if matches!(&node.value, Value::String(text) if text.trim() == "none") {
            return Ok(None);
        }
        let table = node.table("a policer: { rate = \"10mbit\", burst = \"20kB\" }, or \"none\"")?;
        table.only(KEYS)?;
        let policer = Self {
            rate: table.required("rate", &node.span, |node| FiniteRate.read(node, around))?,
            burst: table.required("burst", &node.span, |node| BURST.read(node, around))?,
            peakrate: table.optional("peakrate", |node| FiniteRate.read(node, around))?,
            mtu: table.optional("mtu", units::packet_size)?,
            mpu: table.optional("mpu", units::packet_size)?.unwrap_or_default(),
            overhead: table.optional("overhead", overhead::read)?,
            exceed: table
                .optional("exceed", |node| node.choice("thing to do with such packets", EXCEEDS))?
                .unwrap_or_default(),
        };
        policer.check(table)?;
        Ok(Some(policer))
    }

    fn check(self, table: &Table) -> Result<(), Problem> {
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem,
        };
        if self.burst < self.mtu() {
            return Err(at("burst", below_one_packet(self.burst, self.mtu())));
        }
        match self.peakrate {
            Some(peak) if peak <= self.rate => Err(at(
                "peakrate",
                Problem::new(format!(
                    "`peakrate` is {peak}, which is not above `rate`, which is {}",
                    self.rate
                )),
            )),
            _ => Ok(()),
        }
    }

    /// The engine's.
    pub(crate) fn build(self) -> Policer {
        let Self { rate, burst, peakrate, mpu, overhead, exceed, .. } = self;
        let peak = peakrate.map(|rate| Peak { rate, mtu: self.mtu() });
        let exceed = match exceed {
            PolicerExceed::Drop => Exceed::Drop,
            PolicerExceed::Mark => Exceed::Mark,
            PolicerExceed::Pass => Exceed::Pass,
        };
        Policer::new(PolicerConfig { rate, burst, peak, mpu, overhead, exceed })
            .expect("rates and bursts above zero are read, and a peak rate above the rate")
    }

    /// The longest packet in force.
    pub fn mtu(self) -> Bytes {
        self.mtu.unwrap_or(MTU)
    }

    pub(crate) fn text(self) -> String {
        let mut table = Inline::default();
        table.quoted("rate", Some(self.rate));
        table.quoted("burst", Some(self.burst));
        table.quoted("peakrate", self.peakrate);
        table.quoted("mtu", self.mtu);
        table.quoted("mpu", Some(self.mpu).filter(|mpu| mpu.get() > 0));
        table.plain("overhead", self.overhead.map(overhead::text));
        let exceed = EXCEEDS.iter().find(|(_, known)| *known == self.exceed).map(|(name, _)| *name);
        table.quoted("exceed", exceed.filter(|_| self.exceed != PolicerExceed::Drop));
        table.finish()
    }

    /// For people.
    pub(crate) fn words(self) -> String {
        let peak = self.peakrate.map_or(String::new(), |peak| format!(", at most {peak}"));
        let exceed = match self.exceed {
            PolicerExceed::Drop => "what is beyond is dropped",
            PolicerExceed::Mark => "what is beyond is marked where it can be, and else dropped",
            PolicerExceed::Pass => "what is beyond passes",
        };
        format!("{}, burst {}{peak}: {exceed}", self.rate, self.burst)
    }
}

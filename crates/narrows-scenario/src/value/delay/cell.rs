//! A cell that is replayed from a light and a heavy trace (CellReplay): `{ cell = { light = "drive.light",
//! heavy = "drive.down" } }`.

use std::sync::Arc;

use narrows_core::model::{Cell, CellConfig, LightTrace};
use narrows_core::queue::Bound;
use narrows_core::service::{Opportunities, RateSteps, ServiceCurve};
use narrows_core::steps::{After, Steps};
use narrows_core::{Bytes, Duration, Time as Instant};

use crate::files::NamedFile;
use crate::keys::compound::Group;
use crate::keys::kind::{Like, Or};
use crate::keys::quantity::{PACKET_SIZE, PACKETS_OR_BYTES, Time};
use crate::keys::{Form, Keyed, Row, row};
use crate::node::Node;
use crate::problem::{Found, Problem};
use crate::trace::{Reading, Then, Trace, light};
use crate::value::condition::Surroundings;
use crate::value::file::FILE;

/// A cell with its traces.
#[derive(Clone, Debug)]
pub struct CellUse {
    /// The file of the light trace.
    pub light_file: NamedFile,
    /// The file of the heavy trace.
    pub heavy_file: NamedFile,
    light: LightTrace,
    heavy: Arc<Trace>,
    settings: Settings,
    begins: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Settings {
    opportunity: Bytes,
    idle: Duration,
    bound: Option<Bound>,
    start: Duration,
}

/// Uses are equal if their files, settings and start instants are.
impl PartialEq for CellUse {
    fn eq(&self, other: &Self) -> bool {
        let files = |of: &Self| (of.light_file.clone(), of.heavy_file.clone());
        (self.settings, self.begins) == (other.settings, other.begins) && files(self) == files(other)
    }
}

/// The keys of its table.
pub(super) struct Parts {
    light: Option<NamedFile>,
    heavy: Option<NamedFile>,
    opportunity: Bytes,
    idle: Duration,
    bound: Option<Bound>,
    start: Duration,
}

impl Default for Parts {
    fn default() -> Self {
        let idle = Duration::from_millis(1);
        let (opportunity, start) = (Bytes::new(1400), Duration::ZERO);
        Self { light: None, heavy: None, opportunity, idle, bound: None, start }
    }
}

impl Keyed for Parts {
    const ROWS: &'static [Row<Self>] = &[
        row!("light", light, FILE, "Light trace: base delay and opportunities of short packet trains.")
            .required(),
        row!("heavy", heavy, FILE, "Heavy trace: opportunities (mahimahi) or rate of the saturated cell.")
            .required(),
        row!(
            "opportunity",
            opportunity,
            PACKET_SIZE,
            "Bytes of an opportunity of both traces. A packet counts as its IP packet plus four bytes."
        ),
        row!(
            "idle",
            idle,
            Time::POSITIVE,
            "A new light session begins when no packet has left the light stage for this long."
        ),
        row!("bound", bound, Or("none", PACKETS_OR_BYTES), "Bound of the heavy queue; it drops its tail."),
        row!("start", start, Time::ANY, "Offset into both traces at which the link starts."),
    ];
}

const PARTS: Group<Parts> = Group::new(
    "ReplayedCell",
    "A cell that is replayed from two traces, whose weight follows the workload (CellReplay).",
    "{ light = \"drive.light\", heavy = \"drive.down\" }",
);

/// The value of the key `cell` of a delay.
pub(super) const CELL: Like<Group<Parts>, CellUse> = Like {
    kind: PARTS,
    read: CellUse::read,
    write: |used| {
        let Settings { opportunity, idle, bound, start } = used.settings;
        let (light, heavy) = (Some(used.light_file.clone()), Some(used.heavy_file.clone()));
        PARTS.write(&Parts { light, heavy, opportunity, idle, bound, start })
    },
};

impl CellUse {
    fn read(node: &Node, around: Surroundings<'_>) -> Result<Self, Problem> {
        let Parts { opportunity, idle, bound, start, .. } = PARTS.read(node, around)?;
        let table = node.table("a table")?;
        let place = |key| table.get(key).expect("it is required");
        let read = |file: &NamedFile| light::read(&file.name, &file.contents);
        let (light_file, light) = around.files.parse(place("light"), read).map_err(|p| p.inside("light"))?;
        let heavy = around.files.trace(place("heavy"), Reading::Detected).map_err(|p| p.inside("heavy"))?;
        let (heavy_file, heavy) = heavy;
        if heavy.rate().is_none() && heavy.opportunities().is_none() {
            let problem = Problem::new(format!(
                "the trace {} has neither opportunities nor a rate",
                Found(&heavy_file.name)
            ));
            return Err(problem.at(&place("heavy").span).inside("heavy"));
        }
        let settings = Settings { opportunity, idle, bound, start };
        Ok(Self { light_file, heavy_file, light, heavy, settings, begins: around.at })
    }

    /// The engine's model.
    pub(super) fn build(&self) -> Cell {
        let Settings { opportunity, idle, bound, start: skipped } = self.settings;
        let (most_packets, most_bytes) = match bound {
            Some(Bound::Packets(most)) => (Some(most), None),
            Some(Bound::Bytes(most)) => (None, Some(most)),
            None => (None, None),
        };
        let config = CellConfig { opportunity, idle, most_packets, most_bytes, start: self.begins, skipped };
        Cell::new(self.light.clone(), self.heavy_curve(), config)
    }

    /// The service of the heavy trace, which repeats unless its format says that the last rate holds.
    fn heavy_curve(&self) -> Box<dyn ServiceCurve> {
        const CHECKED: &str = "a trace's columns are in order";
        let (start, length) = (self.settings.start, self.heavy.length());
        if let Some(instants) = &self.heavy.opportunities {
            let curve = Opportunities::new(instants.clone(), self.settings.opportunity, After::Loop(length));
            return Box::new(curve.expect(CHECKED).starting(self.begins, start));
        }
        let rates = self.heavy.rate.clone().expect("it has a rate or opportunities");
        let after = if self.heavy.then() == Then::Hold { After::Hold } else { After::Loop(length) };
        Box::new(RateSteps::new(Steps::shared(rates, after).expect(CHECKED).starting(self.begins, start)))
    }

    /// The mean base delay.
    pub(super) fn mean(&self) -> Duration {
        self.light.mean_base()
    }
}

/// For display.
impl std::fmt::Display for CellUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (light, heavy) = (&self.light_file.name, &self.heavy_file.name);
        write!(
            f,
            "from the light trace {light} ({} on average), or the heavy trace {heavy}, as the workload demands",
            self.mean()
        )?;
        match self.settings.bound {
            Some(bound) => write!(f, "; at most {bound} wait for the heavy one"),
            None => Ok(()),
        }
    }
}

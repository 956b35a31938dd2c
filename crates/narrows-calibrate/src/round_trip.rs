//! Round trips through no, one and a hundred links, on an idle and a busy host (Carbone and Rizzo 2010, table 1).

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use narrows_live::director::Wait;
use narrows_scenario::Scenario;
use serde::Serialize;

use crate::bed::Bed;
use crate::measured::Spread;
use crate::{CalibrateError, Effort};

/// The load on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// No load of ours.
    Idle,
    /// One program per processor that computes continuously.
    User,
    /// One program per processor that is in the kernel continuously: it reads zeros, 64 KiB at a time.
    Kernel,
}

impl Load {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Idle, Self::User, Self::Kernel];

    /// As one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::User => "user load",
            Self::Kernel => "kernel load",
        }
    }
}

/// Consecutive round trips, without a delay.
#[derive(Clone, Debug, Serialize)]
pub struct RoundTrip {
    /// Links in series; zero means a cable without narrows.
    pub links: u32,
    /// The load on the host.
    pub load: Load,
    /// From the sender's call to the kernel's timestamp at its own interface.
    pub times: Spread,
}

/// The numbers of links in series.
const LINKS: [u32; 3] = [0, 1, 100];

pub(crate) fn measure(bed: &mut Bed, effort: Effort) -> Result<Vec<RoundTrip>, CalibrateError> {
    let trips = match effort {
        Effort::Full => 5_000,
        Effort::Quick => 50,
    };
    let mut all = Vec::new();
    for load in Load::ALL {
        let _busy = Busy::start(load)?;
        for links in LINKS {
            let work = move |mut ends: crate::traffic::Ends| ends.round_trips(trips);
            let times = match links {
                0 => bed.cable(None, work)?,
                _ => bed.narrows(&chain(links)?, Wait::Hybrid, work)?.0,
            };
            all.push(RoundTrip { links, load, times: Spread::of(times) });
        }
    }
    Ok(all)
}

/// This many links in series without effects.
fn chain(links: u32) -> Result<Scenario, CalibrateError> {
    let place = |number: u32| match number {
        0 => "client".into(),
        last if last == links => "server".into(),
        between => format!("r{between}"),
    };
    let mut text = String::from("[hosts.client]\n[hosts.server]\n");
    for junction in 1..links {
        text += &format!("[junctions.r{junction}]\n");
    }
    for link in 0..links {
        let (from, to) = (place(link), place(link + 1));
        text += &format!("[links.l{link}]\nbetween = [\"{from}\", \"{to}\"]\n");
    }
    Ok(Scenario::parse(&text, "calibrate")?)
}

/// Programs that load the host until this is dropped.
struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Busy {
    fn start(load: Load) -> Result<Self, CalibrateError> {
        let mut busy = Self { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let count = if load == Load::Idle { 0 } else { processors };
        for _ in 0..count {
            let stop = Arc::clone(&busy.stop);
            let work = move || match load {
                Load::Kernel => read_zeros(&stop),
                _ => compute(&stop),
            };
            let thread = thread::Builder::new().name("busy".into()).spawn(work);
            busy.threads.push(thread.map_err(CalibrateError::System)?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked creates no load.
            let _ = thread.join();
        }
    }
}

fn compute(stop: &AtomicBool) {
    let mut value = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1_000 {
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
    }
}

fn read_zeros(stop: &AtomicBool) {
    let Ok(mut zeros) = File::open("/dev/zero") else { return };
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) && zeros.read(&mut buffer).is_ok() {}
}

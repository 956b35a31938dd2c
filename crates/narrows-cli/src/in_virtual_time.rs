//! `run --virtual` and `shell --virtual`: runs the same command line inside a guest with a virtual clock.
//!
//! Inside the guest, narrows detects that time is virtual, and runs normally.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_guest::kernel::GuestKernel;
use narrows_guest::machine::{Ended, Machine, MachineError, WALL_CLOCK};
use narrows_io::clock::clock_realtime;
use narrows_io::host;
use narrows_live::control;
use narrows_live::run::{NAME_ENVIRONMENT, RUN_ENVIRONMENT};
use narrows_scenario::span_of_time;

use crate::args::{BackendName, Live, Run, RunBefore, Shell, VirtualTime, WaitBy, WallClock};
use crate::check::live_scenario;
use crate::output::{Failure, say};
use crate::report;
use crate::report::ReportForm;

/// Exit status if virtual time stalled and the run was ended.
const STALLED: u8 = 74;

/// Whether to boot a guest: not if time is already virtual.
pub(crate) fn wanted(args: &VirtualTime) -> bool {
    args.wanted && !host::time_is_virtual()
}

pub(crate) fn run(args: &Run) -> Result<u8, Failure> {
    // Errors in the scenario are reported at once, before the guest boots.
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    go(&args.virtual_time, &args.live, scenario.seed, false)
}

pub(crate) fn shell(args: &Shell) -> Result<u8, Failure> {
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    go(&args.virtual_time, &args.live, scenario.seed, true)
}

/// Runs the supervisor.
pub(crate) fn keep(descriptor: i32) -> Result<u8, Failure> {
    match narrows_guest::keep(descriptor) {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure::Other(format!(
            "a guest's supervisor is started by `narrows run --virtual` alone: {error}"
        ))),
    }
}

/// Runs as the guest's first process, which never returns.
pub(crate) fn init() -> Result<u8, Failure> {
    if std::process::id() != 1 {
        return Err(Failure::Other("guest-init is the first process of a guest, and nothing else".into()));
    }
    Err(Failure::Other(format!("the guest cannot be set up: {}", narrows_guest::init())))
}

fn go(args: &VirtualTime, live: &Live, seed: u64, interactive: bool) -> Result<u8, Failure> {
    refuse(live)?;
    let stall = stall(&args.stall)?;
    let narrows =
        env::current_exe().map_err(|error| Failure::Other(format!("cannot find narrows itself: {error}")))?;
    // In the guest, this binary may have another path.
    let command: Vec<OsString> =
        [OsString::from("/proc/self/exe")].into_iter().chain(env::args_os().skip(1)).collect();
    let here = |error: io::Error| Failure::Other(format!("cannot say where this is run: {error}"));
    let mut machine = Machine::new(narrows, kernel(args)?, command).map_err(here)?;
    machine.name = env::args_os().next();
    // These variables belong to a surrounding run outside the guest.
    let outer = [RUN_ENVIRONMENT, NAME_ENVIRONMENT, control::ENVIRONMENT];
    machine.environment.retain(|(name, _)| !outer.iter().any(|outer| name == outer));
    let files = [
        live.report.json.path(),
        live.record.as_deref(),
        live.capture.capture.as_deref(),
        live.series.packets.as_deref(),
    ];
    if let Some(logs) = &live.logs {
        // Output folders must exist.
        std::fs::create_dir_all(logs)
            .map_err(|cause| Failure::Other(format!("--logs: cannot make {}: {cause}", logs.display())))?;
    }
    let files =
        files.into_iter().flatten().filter(|path| *path != Path::new("-")).chain(live.logs.as_deref());
    for path in args.write.iter().filter(|path| !path.exists() && path.extension().is_none()) {
        let path = path.display();
        say(format_args!(
            "narrows: --write {path}: there is no such folder, so it is a file; for a folder, mkdir {path} before"
        ));
    }
    let writable = args.write.iter().map(PathBuf::as_path).chain(files).map(std::path::absolute);
    machine.writable = writable.collect::<io::Result<Vec<PathBuf>>>().map_err(here)?;
    machine.memory = args.memory.0;
    machine.seed = seed;
    machine.stall = stall;
    machine.wall_clock = match args.wall_clock {
        None => WALL_CLOCK,
        Some(WallClock::Now) => clock_realtime(),
        Some(WallClock::At(nanoseconds)) => nanoseconds,
    };
    machine.waits_for_person = interactive;
    match machine.run() {
        Ok(ended) => {
            if report::form(&live.report)? != ReportForm::None {
                say(speed(&ended));
            }
            for remark in &ended.remarks {
                say(format_args!("narrows: {remark}"));
            }
            Ok(ended.status)
        }
        Err(error @ MachineError::Stalled(_)) => {
            say(format_args!("narrows: {error}"));
            Ok(STALLED)
        }
        Err(error) => Err(error.into()),
    }
}

/// The wall-clock duration: the only line that differs between two runs.
fn speed(ended: &Ended) -> String {
    let (virtual_time, real_time) = (ended.virtual_time.as_secs_f64(), ended.real_time.as_secs_f64());
    let rate = virtual_time / real_time.max(1e-9);
    format!(
        "{virtual_time:.3} s of virtual time took {real_time:.3} s: {rate:.1} virtual seconds in a real one"
    )
}

fn stall(text: &str) -> Result<Option<Duration>, Failure> {
    if text == "never" {
        return Ok(None);
    }
    match span_of_time("stall", text)?.nanos() {
        0..100_000_000 => {
            Err(Failure::Other(format!("--stall {text}: it is a time of 100ms at least, or never")))
        }
        nanoseconds => Ok(Some(Duration::from_nanos(nanoseconds))),
    }
}

/// Rejects options that a guest does not support or need.
fn refuse(live: &Live) -> Result<(), Failure> {
    let pace = &live.pace;
    let reasons = [
        (
            matches!(live.cabling.backend, Some(BackendName::AfXdp)),
            "--backend af_xdp: interfaces of a guest have no AF_XDP; af_packet and tap work there",
        ),
        (
            matches!(live.cabling.backend, Some(BackendName::Kernel)),
            "--backend kernel: a guest kernel has no BPF qdiscs; af_packet and tap work there",
        ),
        (
            matches!(pace.wait, Some(WaitBy::Spin | WaitBy::Hybrid)),
            "--wait: busy polling stops virtual time; --virtual uses --wait timer, which is never late there",
        ),
        (!pace.cpu.is_empty(), "--cpu: a guest has one, infinitely fast processor"),
        (
            matches!(pace.priority, RunBefore::High | RunBefore::RealTime),
            "--priority: has no effect in exact virtual time, where nothing is late",
        ),
        (
            live.shards.0.is_some_and(|most| most > 1),
            "--shards: a guest has one processor, so one thread is as fast as several",
        ),
        (live.cabling.busy_poll, "--busy-poll: busy polling stops virtual time"),
        (
            live.series.series.is_some(),
            "--series: packet threads would be interrupted at each interval; use --record, then sim --replay LOG --series FILE",
        ),
        (live.internet, "--internet: real hosts cannot be reached in virtual time"),
    ];
    match reasons.into_iter().find(|(refused, _)| *refused) {
        Some((_, why)) => Err(Failure::Other(format!("{why} (with --virtual)"))),
        None => Ok(()),
    }
}

fn kernel(args: &VirtualTime) -> Result<PathBuf, Failure> {
    let asked = args.kernel.clone().or_else(|| env::var_os("NARROWS_KERNEL"));
    let kernel = GuestKernel::find(asked.as_deref())?;
    if kernel.of_older_recipe == Some(true) {
        say(format_args!(
            "narrows: the guest kernel {} was built by an older recipe: narrows kernel build makes a new one",
            kernel.version
        ));
    }
    Ok(kernel.path)
}

//! The guest's first process: sets up the file system, starts the program, carries its input and output between host
//! and guest, and reports how it ended. It never ends itself: the host ends the guest.

mod files;
mod streams;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use narrows_io::clock::clock_monotonic;
use narrows_io::namespace::Namespace;
use narrows_io::process;
use narrows_io::route_socket::RouteSocket;
use nix::sys::resource::setrlimit;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{Mode, umask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, pause, sethostname};

pub(crate) use self::files::{FILES, OPEN, ROOT, UPPER};
use self::streams::Streams;
use crate::channel::FromGuest;
use crate::limits::LIMITS;
use crate::plan::Plan;

/// Where the supervisor's folder is visible until the file system is set up.
pub(crate) const KEPT: &str = "/sys";
/// The name of the supervisor's plan in it.
pub(crate) const PLAN: &str = "plan";
/// The name of the program's input in it.
pub(crate) const INPUT: &str = "input";

/// Executes the plan that the supervisor left. Returns only if an error cannot be reported to the host; it is then
/// printed on the console.
pub fn init() -> io::Error {
    match set_up() {
        Ok((plan, streams)) => serve(&plan, streams),
        Err(error) => error,
    }
}

fn set_up() -> io::Result<(Plan, Streams)> {
    let kept = Path::new(KEPT);
    let plan = Plan::decode(&fs::read(kept.join(PLAN))?)?;
    let input = fs::File::open(kept.join(INPUT)).ok();
    files::lay_out(&plan)?;
    let streams = Streams::open(&plan, input)?;
    Ok((plan, streams))
}

fn serve(plan: &Plan, mut streams: Streams) -> io::Error {
    let ended = start(plan, &mut streams).and_then(|(child, children)| {
        streams.say(&FromGuest::Started(clock_monotonic().as_nanos()))?;
        attend(child, &children, &mut streams)
    });
    let told = match ended {
        Ok(status) => {
            // Flushes written data to the host.
            nix::unistd::sync();
            streams.say(&FromGuest::Ended(status, clock_monotonic().as_nanos()))
        }
        Err(error) => streams.say(&FromGuest::Failed(error.to_string())),
    };
    match told {
        Err(error) => error,
        Ok(()) => loop {
            pause();
        },
    }
}

/// Programs do not expect to be started within a second of a kernel's start: iputils' ping takes a clock of 0 seconds
/// for one that it has not read yet, and then does not wait between requests. Idle time costs nothing.
const UPTIME: Duration = Duration::from_secs(2);

/// Starts the program; returns its process ID, and the descriptor that reports ended children.
fn start(plan: &Plan, streams: &mut Streams) -> io::Result<(Pid, SignalFd)> {
    sethostname(plan.text("host name")?)?;
    let here = Namespace::current().map_err(io::Error::other)?;
    RouteSocket::open(&here).and_then(|mut sockets| sockets.set_up("lo")).map_err(io::Error::other)?;
    let ends: SigSet = [Signal::SIGCHLD].into_iter().collect();
    ends.thread_block()?;
    let children = SignalFd::with_flags(&ends, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;

    let mut words = plan.all("argument");
    let program = words.next().ok_or_else(|| io::Error::other("there is no program to run"))?;
    let folder = Path::new(plan.text("folder")?);
    if !folder.is_dir() {
        return Err(io::Error::other(format!(
            "there is no folder {} in the guest, which has its own /proc, /sys and /dev: start it from another one",
            folder.display()
        )));
    }
    let mut command = Command::new(program);
    command.args(words).env_clear().current_dir(folder);
    for variable in plan.all("variable") {
        let (name, value) = split(variable);
        command.env(name, value);
    }
    if let Some(name) = plan.all("name").next() {
        command.arg0(name);
    }
    streams.connect(&mut command)?;
    process::check(&command).map_err(io::Error::other)?;
    umask(Mode::from_bits_truncate(plan.number("umask")? as u32)); // nine bits
    limit(plan)?;
    sleep(UPTIME.saturating_sub(Duration::from_nanos(clock_monotonic().as_nanos())));
    let child = command.spawn()?;
    streams.started();
    Ok((Pid::from_raw(child.id() as i32), children))
}

/// `NAME=VALUE`, as the kernel stores it.
fn split(variable: &std::ffi::OsStr) -> (OsString, OsString) {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = variable.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
    let value = bytes.get(at + 1..).unwrap_or_default();
    (OsString::from_vec(bytes[..at].to_vec()), OsString::from_vec(value.to_vec()))
}

/// Applies the caller's resource limits.
fn limit(plan: &Plan) -> io::Result<()> {
    for (name, resource) in LIMITS {
        if let Some(text) = plan.all(name).next().and_then(|text| text.to_str()) {
            let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(u64::MAX));
            let (soft, hard) = (numbers.next().unwrap_or(u64::MAX), numbers.next().unwrap_or(u64::MAX));
            setrlimit(*resource, soft, hard)?;
        }
    }
    Ok(())
}

/// Carries bytes and signals until the program has ended; returns its status as shells report it.
fn attend(child: Pid, children: &SignalFd, streams: &mut Streams) -> io::Result<u8> {
    loop {
        streams.wait(children)?;
        while children.read_signal()?.is_some() {}
        streams.carry(child)?;
        if let Some(status) = reap(child) {
            streams.drain()?;
            return Ok(status);
        }
    }
}

/// Reaps ended processes, including orphans. Returns the status of `child`, if it was among them.
fn reap(child: Pid) -> Option<u8> {
    let mut found = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(process, code)) if process == child => found = Some(code as u8), // 8 bits
            Ok(WaitStatus::Signaled(process, signal, _)) if process == child => {
                found = Some(128 + signal as u8); // signals go up to 64
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return found,
            Ok(_) => {}
        }
    }
}

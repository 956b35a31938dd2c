//! The supervisor of a guest, on the host: prepares its own file system, boots the guest kernel, controls its clock,
//! carries bytes and signals, and reports the outcome to the caller.

mod console;
mod input;
mod output;
mod rootfs;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use narrows_io::child_lifetime::{
    end_of, end_with_us, hand_down, handed_down, new_pid_namespace, without_terminal,
};
use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::scheduling::{Claim, pin_process};
use narrows_io::terminal::WindowSize;
use narrows_io::wait::{EndSignals, Waiting, wait};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

use self::console::Console;
use self::input::Input;
use self::output::{Heard, Outputs};
use self::rootfs::GuestRootfs;
use crate::channel::{FromGuest, FromHost, Garbled};
use crate::controller::{Controller, ControllerError};
use crate::machine::INIT;
use crate::plan::Plan;

/// The status of a program that ended well, where a part of its output was lost.
const LOST: u8 = 2;
/// How long a program that was asked to end may take, in real time, before the guest is ended.
const GRACE: Duration = Duration::from_secs(10);
/// The same while virtual time stands still because the program computes: then nothing in the guest can receive the
/// request.
const GRACE_IF_STILL: Duration = Duration::from_secs(2);
/// A second signal within this time counts as the same one: `timeout` and terminals send several.
const SAME: Duration = Duration::from_millis(300);
/// How often, and how many times, the guest is woken again after a message: its kernel loses a wake-up that arrives
/// while it handles its clock.
const CALL: Duration = Duration::from_millis(40);
const CALLS: u32 = 25;
/// How far virtual time may lag behind real time at a shell's prompt and still catch up.
const BEHIND: Duration = Duration::from_millis(50);
/// How often the window size is checked, and other things that are not notified.
const LOOK: Duration = Duration::from_millis(200);

/// The program's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Terminal,
    File { offset: u64 },
    Nothing,
    Stream,
}

impl Kind {
    /// The offset at which a file is read.
    fn offset(self) -> u64 {
        match self {
            Self::File { offset } => offset,
            _ => 0,
        }
    }
}

/// Why the guest failed.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error("{0}")]
    Said(String),
    #[error("{0}")]
    Stalled(String),
    /// It was asked to end, and did not: its status, and the reason.
    #[error("{1}")]
    Overdue(u8, String),
    #[error(transparent)]
    Controller(#[from] ControllerError),
    #[error(transparent)]
    Garbled(#[from] Garbled),
    #[error("cannot {what}: {cause}")]
    Failed { what: &'static str, cause: io::Error },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Broken {
    move |cause| Broken::Failed { what, cause }
}

/// Runs the supervisor for the caller that handed down the descriptor with this number.
///
/// # Errors
/// If the descriptor does not exist, or the result cannot be left there.
pub fn keep(descriptor: i32) -> io::Result<()> {
    let mut file = File::from(handed_down(descriptor)?);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let plan = Plan::decode(&bytes)?;
    let mut account = Plan::default();
    match boot_and_attend(&plan) {
        Ok(end) => {
            account.add("status", end.status.to_string());
            account.add("virtual time", end.virtual_time.to_string());
            account.add("real time", end.real_time.to_string());
            end.remarks.iter().for_each(|remark| account.add("remark", remark));
        }
        Err(Broken::Overdue(status, why)) => {
            account.add("status", status.to_string());
            account.add("virtual time", "0");
            account.add("real time", "0");
            account.add("remark", why);
        }
        Err(Broken::Stalled(why)) => account.add("stalled", why),
        Err(error) => account.add("failed", error.to_string()),
    }
    file.seek(SeekFrom::Start(0))?;
    file.set_len(0)?;
    file.write_all(&account.encode())
}

/// How the program ended, and its run times in nanoseconds.
struct End {
    status: u8,
    virtual_time: u64,
    real_time: u64,
    remarks: Vec<String>,
}

fn boot_and_attend(plan: &Plan) -> Result<End, Broken> {
    let caller = getppid();
    let mut signals = EndSignals::catch().map_err(failed("catch signals"))?;
    let rootfs = GuestRootfs::open(plan)?;
    let (input, outputs) = (Input::open(&rootfs)?, Outputs::find());
    rootfs.leave_plan(plan, input.kind(), &outputs)?;
    let listener = UnixListener::bind(rootfs.clock()).map_err(failed("listen for the guest's clock"))?;
    let (line, to_guest) = io::pipe().map_err(failed("make a pipe"))?;
    let written = rootfs.make("line").map_err(failed("make the guest's line"))?;
    let console = Console::make(&rootfs)?;
    let kernel = boot(plan, &rootfs, line, written.try_clone().map_err(failed("share the line"))?, &console)?;
    let carrier = outputs.carry(rootfs.path("line")).map_err(failed("follow the guest's line"))?;
    let supervisor = Supervisor {
        kernel,
        controller: None,
        listener,
        wall_clock: plan.number("wall clock").map_err(failed("read the plan"))?,
        to_guest: File::from(std::os::fd::OwnedFd::from(to_guest)),
        carrier,
        input,
        console,
        window: None,
        started: None,
        caller,
        calls: 0,
        called: clock_monotonic(),
        asked: None,
        stall: plan.number("stall").ok().map(Duration::from_millis),
        moved: clock_monotonic(),
        prompting: None,
        memory: plan.number("memory").map_err(failed("read the plan"))?,
    };
    let end = supervisor.attend(&mut signals);
    drop(rootfs);
    end
}

fn boot(
    plan: &Plan,
    rootfs: &GuestRootfs,
    line: io::PipeReader,
    written: File,
    console: &Console,
) -> Result<Kernel, Broken> {
    new_pid_namespace().map_err(failed("number the guest's processes apart"))?;
    let mut command = Command::new(plan.text("kernel").map_err(failed("read the plan"))?);
    let (from, to) = (hand_down(&mut command, line.into()), hand_down(&mut command, written.into()));
    let (memory, seed) = (plan.number("memory"), plan.number("seed"));
    let (memory, seed) = (memory.map_err(failed("read the plan"))?, seed.map_err(failed("read the plan"))?);
    command.arg(format!("mem={memory}"));
    command.args(["root=none", "rootfstype=hostfs", "rootflags=/", "ro"]);
    command.arg(format!("init={}", rootfs.path("init").display()));
    command.arg(format!("time-travel=ext:{}", rootfs.clock().display()));
    command.arg(format!("narrows_seed={seed}"));
    command.args([
        "norandmaps",
        "seccomp=auto",
        "random.trust_cpu=off",
        "loglevel=4",
        "panic=-1",
        "oops=panic",
        "noreboot=1",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
    ]);
    command.arg(format!("ssl0=fd:{from},fd:{to}"));
    command.arg(format!("uml_dir={}", rootfs.path("uml").display()));
    command.args(["umid=guest", "--", INIT]);
    command.env_clear().env("TMPDIR", rootfs.path("memory")).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.current_dir("/").stdin(Stdio::null());
    let (out, error) = console.ends()?;
    command.stdout(out).stderr(error);
    without_terminal(&mut command);
    end_with_us(&mut command, Signal::SIGKILL);
    let child = command.spawn().map_err(|cause| {
        let kernel = plan.text("kernel").unwrap_or_default().display().to_string();
        Broken::Said(format!("cannot start the guest kernel {kernel}: {cause}"))
    })?;
    // The kernel and its programs are processes that alternate at every system call. On one processor that takes a
    // quarter of the time that it takes on two, where each has to be woken on the other. If no processor can be
    // claimed, it is only slower.
    let claim = Claim::make("guest").unwrap_or_default();
    if let Some(claim) = &claim {
        let _ = pin_process(child.id(), claim.processor);
    }
    Ok(Kernel { child, _claim: claim })
}

/// The guest kernel's process, and the processor that no other guest uses. Dropping it ends the guest.
struct Kernel {
    child: Child,
    _claim: Option<Claim>,
}

impl Kernel {
    fn signal(&self, signal: Signal) {
        // Only fails if the guest has ended, which is detected elsewhere.
        let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Both only fail for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Supervisor {
    kernel: Kernel,
    controller: Option<Controller>,
    listener: UnixListener,
    wall_clock: u64,
    to_guest: File,
    carrier: output::Carrier,
    input: Input,
    console: Console,
    window: Option<WindowSize>,
    /// When the program was started: virtual time and real time.
    started: Option<(u64, MonotonicTime)>,
    /// The process that started us.
    caller: Pid,
    /// How many more times to wake the guest, and when it was last woken.
    calls: u32,
    called: MonotonicTime,
    /// When it was asked to end, and with which signal.
    asked: Option<(MonotonicTime, Signal)>,
    stall: Option<Duration>,
    /// When virtual time was last seen to advance.
    moved: MonotonicTime,
    /// While a shell waits at its prompt: since when, in virtual and real time.
    prompting: Option<(u64, MonotonicTime)>,
    memory: u64,
}

impl Supervisor {
    fn attend(mut self, signals: &mut EndSignals) -> Result<End, Broken> {
        let end = end_of(&self.kernel.child).map_err(failed("watch the guest"))?;
        self.listener.set_nonblocking(true).map_err(failed("listen for the guest's clock"))?;
        loop {
            let deadline = self.deadline();
            let mut descriptors = vec![
                Waiting::readable(&end),
                Waiting::readable(&*signals),
                self.carrier.awaits(),
                match &self.controller {
                    Some(controller) => Waiting::readable(controller),
                    None => Waiting::readable(&self.listener),
                },
            ];
            descriptors.extend(self.input.awaits());
            wait(&mut descriptors, Some(deadline)).map_err(failed("wait for the guest"))?;
            let ended = descriptors[0].is_ready();
            let typed = descriptors.get(4).is_some_and(Waiting::is_ready);
            if let Some(end) = self.hear()? {
                return Ok(end);
            }
            if ended {
                return self.broken_off();
            }
            self.heed(signals)?;
            if typed {
                self.pass_input()?;
            }
            self.mind_clock()?;
            self.mind_window()?;
            self.call_again()?;
        }
    }

    /// When to check again at the latest.
    fn deadline(&self) -> MonotonicTime {
        let look = later(clock_monotonic(), if self.calls > 0 { CALL } else { LOOK });
        match (&self.controller, self.prompting) {
            (Some(controller), Some((virtual_time, real))) => match controller.waits_for() {
                Some(at) => look.min(later(real, Duration::from_nanos(at.saturating_sub(virtual_time)))),
                None => look,
            },
            _ => look,
        }
    }

    /// Processes the guest's messages. Returns the end, if it was among them.
    fn hear(&mut self) -> Result<Option<End>, Broken> {
        loop {
            let message = match self.carrier.next()? {
                Some(Heard::Said(message)) => message,
                Some(Heard::Closed(output)) => {
                    self.say(&FromHost::Closed(output))?;
                    continue;
                }
                None => return Ok(None),
            };
            let now = clock_monotonic();
            match message {
                FromGuest::Started(at) => {
                    self.started = Some((at, now));
                    self.input.begin();
                    self.pass_input()?;
                }
                FromGuest::Taken(count) => {
                    if self.input.taken(count) {
                        self.calls = 0;
                    }
                    self.pass_input()?;
                }
                FromGuest::Prompting(true) => {
                    self.prompting = self.controller.as_ref().map(|controller| (controller.time(), now));
                }
                FromGuest::Prompting(false) => self.prompting = None,
                FromGuest::Failed(why) => return Err(Broken::Said(why)),
                FromGuest::Ended(status, at) => {
                    let (started, since) = self.started.unwrap_or((at, now));
                    let mut remarks = self.console.remarks(self.memory);
                    remarks.extend(self.carrier.lost());
                    let is_whole = self.carrier.lost().next().is_none();
                    return Ok(Some(End {
                        status: if status == 0 && !is_whole { LOST } else { status },
                        virtual_time: at.saturating_sub(started),
                        real_time: now.as_nanos() - since.as_nanos(),
                        remarks,
                    }));
                }
                // Already written by the carrier.
                FromGuest::Wrote(..) => {}
            }
        }
    }

    fn say(&mut self, message: &FromHost) -> Result<(), Broken> {
        self.to_guest.write_all(&message.encode()).map_err(failed("speak to the guest"))?;
        (self.calls, self.called) = (CALLS, clock_monotonic());
        Ok(())
    }

    /// Wakes the guest again, with a byte that has no meaning.
    fn call_again(&mut self) -> Result<(), Broken> {
        let now = clock_monotonic();
        if self.calls > 0 && now >= later(self.called, CALL) {
            self.to_guest.write_all(&[0]).map_err(failed("speak to the guest"))?;
            (self.calls, self.called) = (self.calls - 1, now);
        }
        Ok(())
    }

    fn heed(&mut self, signals: &mut EndSignals) -> Result<(), Broken> {
        let now = clock_monotonic();
        while let Some(signal) = signals.take().map_err(failed("read signals"))? {
            if getppid() != self.caller {
                return Err(Broken::Said("the caller is gone".into()));
            }
            match self.asked {
                Some((asked, _)) if now < later(asked, SAME) => continue,
                Some(_) => {
                    let why = "asked to end twice: the guest was ended at once, without a report";
                    return Err(Broken::Overdue(128 + signal.signal as u8, why.into()));
                }
                None if self.started.is_none() => {
                    return Err(Broken::Said("asked to end before the program had started".into()));
                }
                None => {
                    self.asked = Some((now, signal.signal));
                    // Held time continues, so that it can end.
                    self.prompting = None;
                    self.say(&FromHost::Signal(signal.signal as u8))?;
                }
            }
        }
        let Some((asked, signal)) = self.asked else { return Ok(()) };
        // As for a program ended by a signal.
        let overdue = |why: &str| {
            let why = format!("{why}: the guest was ended, without a report");
            Err(Broken::Overdue(128 + signal as u8, why))
        };
        if now >= later(asked, GRACE) {
            return overdue("the program did not end within 10 s of being asked to");
        }
        if now >= later(asked, GRACE_IF_STILL) && self.moved.as_nanos() < asked.as_nanos() {
            return overdue(
                "asked to end, but a program is computing, which stops virtual time and everything else",
            );
        }
        Ok(())
    }

    fn pass_input(&mut self) -> Result<(), Broken> {
        while let Some(message) = self.input.next().map_err(failed("read the standard input"))? {
            self.say(&message)?;
        }
        Ok(())
    }

    fn mind_clock(&mut self) -> Result<(), Broken> {
        if self.controller.is_none() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let controller = Controller::new(stream, self.wall_clock);
                    self.controller = Some(controller.map_err(failed("control the guest's clock"))?);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(cause) => return Err(failed("listen for the guest's clock")(cause)),
            }
        }
        let now = clock_monotonic();
        let mut heard = false;
        if let Some(controller) = &mut self.controller {
            heard = controller.attend()?;
            if let Some(at) = controller.waits_for() {
                let due = self.prompting.map(|(virtual_time, real)| {
                    later(real, Duration::from_nanos(at.saturating_sub(virtual_time)))
                });
                if due.is_none_or(|due| now >= due) {
                    // Computing took no virtual time in between: that is not made up for.
                    if due.is_some_and(|due| now >= later(due, BEHIND)) {
                        self.prompting = Some((at, now));
                    }
                    controller.grant(now, self.prompting.is_some())?;
                }
            }
        }
        let held = self.prompting.is_some() || self.carrier.holds(&self.kernel);
        if heard || held {
            self.moved = now;
        }
        match self.stall {
            Some(stall) if now >= later(self.moved, stall) => Err(self.stalled(stall)),
            _ => Ok(()),
        }
    }

    fn mind_window(&mut self) -> Result<(), Broken> {
        let Some(terminal) = self.carrier.terminal() else { return Ok(()) };
        // A terminal that is gone has no size any more.
        let Ok(size) = WindowSize::of(&terminal) else { return Ok(()) };
        match self.window.replace(size) {
            Some(before) if before != size && self.started.is_some() => {
                self.say(&FromHost::Window(size.rows, size.columns))
            }
            _ => Ok(()),
        }
    }

    fn stalled(&self, stall: Duration) -> Broken {
        let at = self.controller.as_ref().map_or(0, Controller::time);
        let since = self.started.map_or(0, |(started, _)| at.saturating_sub(started));
        Broken::Stalled(format!(
            "virtual time has been stopped for {} s at {:.3} s of the run{}: it advances only when every program sleeps or waits. A program that polls without sleeping stops it forever; one that computes for long needs a longer --stall",
            stall.as_secs(),
            since as f64 / 1e9,
            self.console.spinning().map_or(String::new(), |who| format!(", in {who}")),
        ))
    }

    /// The guest's kernel has ended by itself: returns its last words, or the message that arrived just before.
    fn broken_off(mut self) -> Result<End, Broken> {
        loop {
            if let Some(end) = self.hear()? {
                return Ok(end);
            }
            if !self.carrier.is_held_up() {
                break;
            }
            wait(&mut [self.carrier.awaits()], None).map_err(failed("wait for the reader"))?;
        }
        Err(Broken::Said(self.console.last_words(self.memory)))
    }
}

fn later(now: MonotonicTime, by: Duration) -> MonotonicTime {
    let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
    MonotonicTime::from_nanos(now.as_nanos().saturating_add(by))
}

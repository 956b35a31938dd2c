//! Boots a guest as the calling user, with one program in it.
//!
//! Two processes serve a guest. The *supervisor* is a copy of narrows in its own user, mount and process namespace:
//! it boots the guest kernel, controls its clock and carries bytes. The caller only waits for it, forwards signals,
//! and restores the terminal if the supervisor was killed; if the caller is killed, the supervisor ends the guest in
//! order. If either is gone, the kernel ends the rest; all files were in a file system of the namespace.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use narrows_io::child_lifetime::{end_of, end_with_us, hand_down};
use narrows_io::host::{self, Capabilities};
use narrows_io::terminal::Settings;
use narrows_io::user_namespace::{InnerUser, start_in_user_namespace};
use narrows_io::wait::{EndSignals, Waiting, wait};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::plan::Plan;

/// The supervisor's subcommand on narrows' own command line, before the number of the descriptor that it gets.
pub const KEEPER: &str = "guest-supervisor";
/// The subcommand of the guest's first process on narrows' own command line.
pub const INIT: &str = "guest-init";

/// The default wall clock at the start of guests: 2026-01-01T00:00:00Z, in nanoseconds since 1970. The same in every
/// run, so that times recorded by programs are the same, too.
pub const WALL_CLOCK: u64 = 1_767_225_600_000_000_000;

/// The default time that virtual time may stand still.
pub const STALL: Duration = Duration::from_secs(60);

/// The configuration of a guest and its program.
///
/// The program sees the host's files and may change them for itself: changes reach the host only in
/// [`Machine::writable`]. It is root in the guest only. Its clock starts at [`Machine::wall_clock`], stands still
/// while anything computes, and jumps to the next event when everything is idle.
#[derive(Clone, Debug)]
pub struct Machine {
    /// narrows itself, of which the supervisor and the guest's first process are copies; its `main` calls
    /// [`crate::keep`] and [`crate::init`] for the subcommands [`KEEPER`] and [`INIT`].
    pub narrows: PathBuf,
    /// The guest kernel's executable.
    pub kernel: PathBuf,
    /// The program and its arguments; it is searched in the `PATH` of [`Machine::environment`].
    pub command: Vec<OsString>,
    /// The program's name for itself (its first argument), if it differs.
    pub name: Option<OsString>,
    /// Its complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory: an absolute path.
    pub folder: PathBuf,
    /// Folders and files of the host that it may change: absolute paths. Files that do not exist are created, and
    /// removed again if they are empty at the end.
    pub writable: Vec<PathBuf>,
    /// The guest's memory in bytes. The host only provides what is used.
    pub memory: u64,
    /// The seed of the guest kernel's random numbers, if it supports one.
    pub seed: u64,
    /// The wall clock at the guest's start, in nanoseconds since 1970 (UTC).
    pub wall_clock: u64,
    /// How long, in real time, virtual time may stand still while nothing outside is awaited. `None` means no limit.
    pub stall: Option<Duration>,
    /// Whether virtual time follows real time while a shell waits at its prompt.
    pub waits_for_person: bool,
}

impl Machine {
    /// A machine with the environment and the working directory of this process, and default values.
    ///
    /// # Errors
    /// If the current directory does not exist any more.
    pub fn new(narrows: PathBuf, kernel: PathBuf, command: Vec<OsString>) -> io::Result<Self> {
        Ok(Self {
            narrows,
            kernel,
            command,
            name: None,
            environment: std::env::vars_os().collect(),
            folder: std::env::current_dir()?,
            writable: Vec::new(),
            memory: 1 << 30,
            seed: 1,
            wall_clock: WALL_CLOCK,
            stall: Some(STALL),
            waits_for_person: false,
        })
    }

    /// Boots the guest and runs the program with the standard streams of this process, until it ends. `SIGINT`,
    /// `SIGTERM`, `SIGHUP` and `SIGQUIT` are forwarded to it. Call it from a program's first thread, before others
    /// are started.
    ///
    /// # Errors
    /// If the guest does not start or fails, or virtual time stands still.
    pub fn run(&self) -> Result<Ended, MachineError> {
        let mut signals = EndSignals::catch().map_err(failed("catch signals"))?;
        let terminal = Terminal::remember();
        let mut supervisor = self.start(Stdio::inherit(), Stdio::inherit(), Stdio::inherit())?;
        let end = end_of(&supervisor.child).map_err(failed("watch the supervisor"))?;
        let status = loop {
            let mut descriptors = [Waiting::readable(&end), Waiting::readable(&signals)];
            wait(&mut descriptors, None).map_err(failed("wait for the guest"))?;
            while let Some(signal) = signals.take().map_err(failed("read signals"))? {
                // The supervisor also receives signals from the terminal. This fails if it has ended.
                if !signal.from_terminal {
                    let _ = kill(Pid::from_raw(supervisor.child.id() as i32), signal.signal);
                }
            }
            if let Some(status) = supervisor.child.try_wait().map_err(failed("wait for the supervisor"))? {
                break status;
            }
        };
        terminal.put_back();
        supervisor.result(status)
    }

    /// As [`Machine::run`], with other streams: the program's output is returned, and its input is `input`. Any
    /// thread that lives until the end may call it.
    ///
    /// # Errors
    /// Those of [`Machine::run`].
    pub fn output(&self, input: &[u8]) -> Result<Output, MachineError> {
        let file = memfd_create(c"input", MFdFlags::MFD_CLOEXEC)
            .map_err(|errno| failed("make a file")(errno.into()))?;
        let mut file = File::from(file);
        let written = file.write_all(input).and_then(|()| file.seek(SeekFrom::Start(0)));
        written.map_err(failed("write the program's input"))?;
        let mut supervisor = self.start(file.into(), Stdio::piped(), Stdio::piped())?;
        let (mut out, mut error) = (Vec::new(), Vec::new());
        let (from_out, from_error) = (supervisor.child.stdout.take(), supervisor.child.stderr.take());
        let read = std::thread::scope(|scope| {
            let reader = scope.spawn(|| from_error.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut error)));
            let read = from_out.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut out));
            read.and(reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader broke off"))))
        });
        read.map_err(failed("read what the program writes"))?;
        let status = supervisor.child.wait().map_err(failed("wait for the supervisor"))?;
        Ok(Output { ended: supervisor.result(status)?, stdout: out, stderr: error })
    }

    fn start(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> Result<Supervisor, MachineError> {
        let capabilities = Capabilities::effective().map_err(failed("read this process's capabilities"))?;
        let file = memfd_create(c"plan", MFdFlags::MFD_CLOEXEC)
            .map_err(|errno| failed("make a file")(errno.into()))?;
        let mut file = File::from(file);
        let written = file.write_all(&self.plan().encode()).and_then(|()| file.seek(SeekFrom::Start(0)));
        written.map_err(failed("write the plan"))?;
        let mut command = Command::new(&self.narrows);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.folder).stdin(stdin).stdout(stdout).stderr(stderr);
        let handed = file.try_clone().map_err(failed("hand the plan on"))?;
        let number = hand_down(&mut command, handed.into());
        command.arg(KEEPER).arg(number.to_string());
        // Asked and not killed, so that it restores the terminal.
        end_with_us(&mut command, Signal::SIGTERM);
        if !(capabilities.sys_admin && host::user() == 0) {
            host::user_namespaces().map_err(MachineError::UserNamespaces)?;
            start_in_user_namespace(&mut command, InnerUser::Root);
        }
        let child = command.spawn().map_err(failed("start the supervisor"))?;
        Ok(Supervisor { child, file })
    }

    fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        plan.add("narrows", &self.narrows);
        plan.add("kernel", &self.kernel);
        self.command.iter().for_each(|word| plan.add("argument", word));
        self.name.iter().for_each(|name| plan.add("name", name));
        self.writable.iter().for_each(|path| plan.add("writable", path));
        plan.add("folder", &self.folder);
        plan.add("memory", self.memory.to_string());
        plan.add("seed", self.seed.to_string());
        plan.add("wall clock", self.wall_clock.to_string());
        if let Some(stall) = self.stall {
            plan.add("stall", stall.as_millis().to_string());
        }
        if self.waits_for_person {
            plan.add("prompts", "");
        }
        plan
    }
}

/// The outcome of a program in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status; 128 plus the signal's number if a signal ended it.
    pub status: u8,
    /// Its run time by the guest's clock.
    pub virtual_time: Duration,
    /// Its run time by the host's clock.
    pub real_time: Duration,
    /// Messages from the guest kernel's console that the user should see: that memory was exhausted.
    pub remarks: Vec<String>,
}

/// The outcome of a program, and its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The outcome.
    pub ended: Ended,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Why a program did not run to its end in a guest.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The host does not allow the isolation of a guest.
    #[error(
        "a guest of an ordinary user needs user namespaces, which this host does not allow ({0}): run as root, or have the \
         administrator set user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1 or \
         kernel.apparmor_restrict_unprivileged_userns=0, whichever this host has"
    )]
    UserNamespaces(io::Error),
    /// A system call of the host failed.
    #[error("cannot {what}: {cause}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The program did not start, or the guest failed: a description, with the console's last lines if they help.
    #[error("{0}")]
    Guest(String),
    /// Virtual time stood still.
    #[error("{0}")]
    Stalled(String),
    /// The supervisor was killed.
    #[error("the guest's supervisor was ended from outside ({0}); the guest ended with it")]
    SupervisorGone(ExitStatus),
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> MachineError {
    move |cause| MachineError::Failed { what, cause }
}

/// A running supervisor, and the file for its result.
struct Supervisor {
    child: Child,
    file: File,
}

impl Supervisor {
    fn result(mut self, status: ExitStatus) -> Result<Ended, MachineError> {
        if !status.success() {
            return Err(MachineError::SupervisorGone(status));
        }
        let mut bytes = Vec::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_end(&mut bytes));
        read.map_err(failed("read the supervisor's account"))?;
        let account = Plan::decode(&bytes).map_err(failed("read the supervisor's account"))?;
        let text = |name| account.all(name).next().map(|text| text.to_string_lossy().into_owned());
        if let Some(why) = text("stalled") {
            return Err(MachineError::Stalled(why));
        }
        if let Some(why) = text("failed") {
            return Err(MachineError::Guest(why));
        }
        let number = |name| account.number(name).map_err(failed("read the supervisor's account"));
        Ok(Ended {
            status: number("status")? as u8, // the supervisor wrote eight bits
            virtual_time: Duration::from_nanos(number("virtual time")?),
            real_time: Duration::from_nanos(number("real time")?),
            remarks: account.all("remark").map(|text| text.to_string_lossy().into_owned()).collect(),
        })
    }
}

/// The original settings of the caller's terminal.
struct Terminal(Option<Settings>);

impl Terminal {
    fn remember() -> Self {
        Self(Settings::of(&io::stdin()).ok())
    }

    fn put_back(self) {
        if let Some(settings) = self.0 {
            // A terminal that is gone needs no settings.
            let _ = settings.set(&io::stdin());
        }
    }
}

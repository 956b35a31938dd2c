//! Runs a program in a host of a run that is in progress, from another process than the run.
//!
//! The program is a child of this process, so that the terminal, signals and the exit status work as for any other
//! program. It ends with this process; and when the run ends, the run asks programs that carry its mark to end.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::etc_files::EtcFiles;
use narrows_io::namespace::{Namespace, NamespaceError};
use narrows_io::process::{self, OtherProcess, Running, Signal, SpawnError};
use narrows_io::user_namespace::join_user_namespace;
use narrows_io::wait::{EndSignal, EndSignals, Waiting, wait};

use crate::control::{Client, ControlError};
use crate::run::exit_code;

/// How long the program has to end after the run: possibly nobody asked it to.
const GRACE: Duration = Duration::from_secs(1);

/// How soon the run ends after asking the program to end, on a loaded host, too.
const SOON: Duration = Duration::from_secs(2);
/// The signals with which the run asks, and then forces, programs to end.
const ASKED_BY_THE_RUN: [i32; 3] = [Signal::SIGTERM as i32, Signal::SIGHUP as i32, Signal::SIGKILL as i32];

/// A host of a run, ready for a program.
#[derive(Debug)]
pub struct Place {
    run: OtherProcess,
    namespace: Namespace,
    files: Option<Arc<EtcFiles>>,
    environment: Vec<(String, String)>,
}

/// How a program in a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status, as a shell reports it.
    pub status: u8,
    /// Whether the run ended before it.
    pub run_is_over: bool,
}

/// Why a program cannot run in a host.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The run does not answer.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The program cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The run belongs to another user, or is in another PID or user namespace.
    #[error("cannot {action}: {cause}; it takes the user who started the run")]
    Closed {
        /// What was tried.
        action: &'static str,
        /// The kernel's error.
        cause: io::Error,
    },
    /// The run has no process ID in this PID namespace.
    #[error("the run is in a PID namespace not visible from here: use it from where it was started")]
    Unseen,
    /// The run has ended.
    #[error("the run has just ended")]
    Over,
    /// A call to the system failed.
    #[error("cannot {action}: {cause}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The cause.
        cause: io::Error,
    },
}

fn system(action: &'static str) -> impl FnOnce(io::Error) -> ExecError {
    move |cause| ExecError::System { action, cause }
}

impl Place {
    /// The host with this name. Call it while the process has one thread, which is then in the user namespace of the
    /// run.
    ///
    /// # Errors
    /// If there is no such host, or this user may not enter it.
    pub fn find(run: &Client, host: &str) -> Result<Self, ExecError> {
        let (entrance, number) = run.enter(host)?;
        let number = number.ok_or(ExecError::Unseen)?;
        let run = OtherProcess::open(number).map_err(system("supervise the run"))?;
        join_user_namespace(number)
            .map_err(|cause| ExecError::Closed { action: "enter the user namespace of the run", cause })?;
        let path = format!("/proc/{number}/fd/{}", entrance.namespace);
        let namespace = Namespace::open(&path)?.labelled(format!("host `{host}`"));
        // Since it is still running, the process ID that was used is its own.
        if run.is_over().map_err(system("supervise the run"))? {
            return Err(ExecError::Over);
        }
        let files = entrance.files.iter().map(|(name, text)| (name.as_str(), text.clone().into_bytes()));
        let files = match entrance.files.is_empty() {
            true => None,
            false => Some(Arc::new(
                EtcFiles::new(files, entrance.hides_services).map_err(system("prepare files of /etc"))?,
            )),
        };
        Ok(Self { run, namespace, files, environment: entrance.environment })
    }

    /// Runs a program there until it ends. Call it from the main thread: the program ends with the thread that
    /// started it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn run(&self, mut command: Command) -> Result<Ended, ExecError> {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let mut signals = EndSignals::catch().map_err(system("catch signals"))?;
        let mut program = process::spawn_with(command, &self.namespace, self.files.as_ref())?;
        self.accompany(&mut program, &mut signals)
    }

    /// Forwards signals until the program has ended. A signal from the terminal has reached it already.
    fn accompany(&self, program: &mut Running, signals: &mut EndSignals) -> Result<Ended, ExecError> {
        let mut forwarded = None;
        loop {
            let mut waiting =
                [Waiting::readable(program), Waiting::readable(signals), Waiting::readable(&self.run)];
            wait(&mut waiting, None).map_err(system("wait for the program"))?;
            let [_, has_signal, is_over] = waiting.map(|one| one.is_ready());
            if let Some(status) = program.try_wait().map_err(system("wait for the program"))? {
                let is_asked = |signal| ASKED_BY_THE_RUN.contains(&signal) && forwarded != Some(signal);
                if status.signal().is_some_and(is_asked) {
                    // The run may have sent it; the run then ends soon.
                    let mut run = [Waiting::readable(&self.run)];
                    wait(&mut run, Some(later(SOON))).map_err(system("supervise the run"))?;
                }
                let run_is_over = self.run.is_over().map_err(system("supervise the run"))?;
                return Ok(Ended { status: exit_code(status), run_is_over });
            }
            if has_signal
                && let Some(EndSignal { signal, from_terminal: false }) =
                    signals.take().map_err(system("read a signal"))?
            {
                program.signal(signal).map_err(system("signal the program"))?;
                forwarded = Some(signal as i32);
            }
            if is_over {
                return self.end(program).map(|status| Ended { status, run_is_over: true });
            }
        }
    }

    /// Ends a program whose network is gone.
    fn end(&self, program: &mut Running) -> Result<u8, ExecError> {
        for signal in [Signal::SIGTERM, Signal::SIGHUP] {
            program.signal(signal).map_err(system("signal the program"))?;
        }
        wait(&mut [Waiting::readable(program)], Some(later(GRACE)))
            .map_err(system("wait for the program"))?;
        program.signal(Signal::SIGKILL).map_err(system("kill the program"))?;
        program.wait().map(exit_code).map_err(system("wait for the program"))
    }
}

/// This span from now.
fn later(span: Duration) -> MonotonicTime {
    let span = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    MonotonicTime::from_nanos(clock_monotonic().as_nanos().saturating_add(span))
}

//! Programs started in hosts before CMD (`--on`): all at once. CMD starts once each of them listens, has exited
//! successfully, or has timed out.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use narrows_io::listening;
use narrows_io::process::{self, Running};
use narrows_io::wait::EndSignals;

use crate::director::{Director, End};
use crate::names::Names;
use crate::run_error::{RunError, system};
use crate::service_output::ServiceOutput;
use crate::testbed::{Host, Testbed, TestbedError};

/// The interval between checks whether programs listen.
const PAUSE: Duration = Duration::from_millis(10);
/// One check in this many is made even if the number of sockets has not changed: one may have been closed as another
/// was opened.
const LONG_LOOK: u32 = 100;

/// A program to start in a host.
#[derive(Clone, Debug)]
pub struct Service {
    /// The host.
    pub host: String,
    /// The command line, for a shell.
    pub line: String,
}

/// The started programs.
#[derive(Debug)]
pub(crate) struct Services<'a> {
    started: Vec<Started<'a>>,
}

#[derive(Debug)]
struct Started<'a> {
    service: &'a Service,
    program: Running,
    is_ready: bool,
}

/// The listeners in a host with programs that do not listen yet.
#[derive(Debug)]
struct Awaited {
    /// Before any of its programs was started.
    before: usize,
    /// Sockets in use at the last check.
    sockets: Option<usize>,
}

impl<'a> Services<'a> {
    /// Starts all of them.
    pub(crate) fn start(
        services: &'a [Service],
        (testbed, names): (&Testbed, &Names),
        environment: &[(String, OsString)],
        output: &mut ServiceOutput,
    ) -> Result<Self, RunError> {
        let mut started = Vec::new();
        for service in services {
            let host = chosen_host(testbed, Some(&service.host))?;
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &service.line]).envs(environment.iter().cloned()).stdin(Stdio::null());
            // Ctrl-C is for CMD; they are asked to end after it has ended, with time to write their output.
            command.process_group(0);
            output.connect(&mut command, host)?;
            let program = process::spawn_with(command, &host.namespace, names.of(host))?;
            started.push(Started { service, program, is_ready: false });
        }
        Ok(Self { started })
    }

    /// Runs the network until every program listens, has exited successfully, or has timed out. Returns the signal
    /// that asked us to end meanwhile; or a description of those that do not listen.
    pub(crate) fn wait_until_they_listen(
        &mut self,
        network: &mut Director,
        listeners: &BTreeMap<String, usize>,
        patience: Duration,
        signals: &mut EndSignals,
    ) -> Result<Result<Vec<String>, i32>, RunError> {
        let awaited = |(host, &before): (&String, _)| (host.clone(), Awaited { before, sockets: None });
        let mut hosts: BTreeMap<String, Awaited> = listeners.iter().map(awaited).collect();
        let looks = u32::try_from(patience.as_millis().div_ceil(PAUSE.as_millis())).unwrap_or(u32::MAX);
        for look in 0..looks {
            if self.started.iter().all(|started| started.is_ready) {
                return Ok(Ok(Vec::new()));
            }
            if let End::Signal(ended) = network.run_for(PAUSE, None, signals)? {
                return Ok(Err(ended.signal as i32));
            }
            self.look_for_ends()?;
            for (host, awaited) in &mut hosts {
                self.look_at(host, awaited, look % LONG_LOOK == 0);
            }
        }
        if patience.is_zero() {
            return Ok(Ok(Vec::new()));
        }
        let late = self.started.iter().filter(|started| !started.is_ready);
        let words = late.map(|Started { service: Service { host, line }, .. }| {
            format!(
                "`{line}` in host `{host}` did not listen within {patience:?}: the run goes on without it"
            )
        });
        Ok(Ok(words.collect()))
    }

    /// A program that has exited successfully is ready; one that has failed ends the run.
    fn look_for_ends(&mut self) -> Result<(), RunError> {
        for Started { service, program, is_ready } in
            self.started.iter_mut().filter(|started| !started.is_ready)
        {
            match program.try_wait().map_err(system("supervise a program"))? {
                Some(status) if status.success() => *is_ready = true,
                Some(status) => {
                    let Service { host, line } = (*service).clone();
                    return Err(RunError::Beside { host, line, status });
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Which programs of a host listen by now. A single program may have left its process group, as daemons do: it is
    /// ready when anything listens. For several, each one's group is checked.
    fn look_at(&mut self, host: &str, awaited: &mut Awaited, closely: bool) {
        let mut of_host: Vec<_> = self.started.iter_mut().filter(|one| one.service.host == host).collect();
        let is_alone = of_host.len() == 1;
        of_host.retain(|started| !started.is_ready);
        let Some(first) = of_host.first() else { return };
        let sockets = Some(listening::sockets_beside(first.program.id()));
        if sockets == awaited.sockets && !closely {
            return;
        }
        awaited.sockets = sockets;
        if listening::listeners_beside(first.program.id()) <= awaited.before {
            return;
        }
        for started in of_host {
            started.is_ready = is_alone || listening::group_listens(started.program.id());
        }
    }

    /// Notes on those that failed after CMD had started.
    pub(crate) fn failures(&mut self) -> Result<Vec<String>, RunError> {
        let mut notes = Vec::new();
        for Started { service: Service { host, line }, program, .. } in &mut self.started {
            if let Some(status) = program.try_wait().map_err(system("supervise a program"))?
                && !status.success()
            {
                notes.push(format!("`{line}` in host `{host}` ended early: {status}"));
            }
        }
        Ok(notes)
    }

    /// Leaves them running: they are asked to end, not killed, once the network is halted.
    pub(crate) fn leave(self) {
        self.started.into_iter().for_each(|started| started.program.leave());
    }
}

/// How many programs listen in these hosts before any of them is started.
pub(crate) fn listeners(
    services: &[Service],
    testbed: &Testbed,
) -> Result<BTreeMap<String, usize>, RunError> {
    let mut listeners = BTreeMap::new();
    for Service { host, .. } in services {
        let Host { namespace, .. } = chosen_host(testbed, Some(host))?;
        listeners.insert(host.clone(), listening::listeners(namespace).map_err(TestbedError::from)?);
    }
    Ok(listeners)
}

/// The host with this name, or the first.
pub(crate) fn chosen_host<'a>(testbed: &'a Testbed, name: Option<&str>) -> Result<&'a Host, RunError> {
    let found = match name {
        None => testbed.hosts.first(),
        Some(name) => testbed.host(name),
    };
    found.ok_or_else(|| RunError::NoSuchHost {
        found: name.unwrap_or_default().to_owned(),
        hosts: testbed.hosts.iter().map(|host| format!("`{}`", host.name)).collect(),
    })
}

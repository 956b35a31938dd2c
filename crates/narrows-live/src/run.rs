//! A complete run: create the testbed, start the programs, run the loop, report, clean up.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use narrows_core::Engine;
use narrows_io::cable_end::Backend;
use narrows_io::descriptors;
use narrows_io::host;
use narrows_io::privileges::{self, Capability};
use narrows_io::process::{self, Running, Signal};
use narrows_io::wait::{EndSignal, EndSignals, wake_on_time};
use narrows_report::{Kind, LatenessBound, ProbeReport, Report, RunInfo};
use narrows_scenario::{Scenario, printable, tunnel_port};

use crate::cabling::Cabling;
use crate::capture::CapturePlan;
use crate::control::ControlSocket;
use crate::director::{Director, Division, End, LoopError, Pace, Threads};
use crate::entrance::{Entrances, environment};
use crate::in_kernel::Agreement;
use crate::names::{Names, Resolver};
use crate::nat_uplink::{NatUplink, UplinkError};
use crate::packet_records::PacketsPlan;
use crate::probe::{ProbePlan, Probes};
use crate::renumber::step_aside;
pub use crate::run_error::RunError;
pub(crate) use crate::run_error::system;
use crate::run_name::RunName;
use crate::run_record::{About, Identity};
pub use crate::run_record::{NAME_ENVIRONMENT, RUN_ENVIRONMENT};
use crate::series::SeriesPlan;
use crate::service_output::{OutputPlan, ServiceOutput};
use crate::services::{Service, Services, chosen_host, listeners};
use crate::stay::{Ready, Stay};
use crate::testbed::{Host, Testbed};
use crate::tunnels::{self, TunnelPlan};
use crate::visitors::Visitors;

/// How long programs may take to end when asked, before they are killed.
const GRACE: Duration = Duration::from_secs(2);
/// How long probes in flight are awaited after a signal.
const AWAITED_IF_ASKED: Duration = Duration::from_millis(400);
/// How long they are awaited before checking whether further waiting is useful.
const AWAITED_AT_ONCE: Duration = Duration::from_millis(200);
/// If the packets being read are older than this, the network is too far behind to wait for.
const MOST_BEHIND: narrows_core::Duration = narrows_core::Duration::from_millis(500);
/// Capabilities needed once all programs are started: to end them, to restore what was changed, and to write the
/// report into other users' folders.
const NEEDED: [Capability; 5] = [
    Capability::DacOverride,
    Capability::Kill,
    Capability::NetAdmin,
    Capability::SysPtrace,
    Capability::SysAdmin,
];
/// The folder, inside the folder of control sockets, where changed host settings are recorded.
pub const SETTINGS: &str = "settings";

/// What to run in a scenario's hosts.
#[derive(Debug)]
pub struct RunOptions {
    /// The name of the run.
    pub identity: Identity,
    /// The program and its arguments; the run ends with it. If empty, the run lasts until a signal, or until the
    /// probes are done.
    pub command: Vec<OsString>,
    /// The host in which it runs; default: the scenario's first.
    pub host: Option<String>,
    /// Programs started before it, each in a host, by a shell; they end with the run.
    pub beside: Vec<Service>,
    /// How long CMD waits for them to listen.
    pub patience: Duration,
    /// The destination of their output.
    pub output: OutputPlan,
    /// Additional environment variables of the program.
    pub environment: Vec<(String, OsString)>,
    /// Whether to print on standard error where one is, before the program starts.
    pub greeting: bool,
    /// Without a program: the network stays up until a signal or a client ends it, which is the normal end.
    pub stay: Option<Stay>,
    /// The tunnels to other machines, if the scenario runs across several.
    pub tunnels: Vec<TunnelPlan>,
    /// The file for the input log.
    pub record: Option<PathBuf>,
    /// Whether the log keeps whole packets or only their headers.
    pub record_whole: bool,
    /// What to capture, with verdicts.
    pub capture: Option<CapturePlan>,
    /// The time series to write.
    pub series: Option<SeriesPlan>,
    /// The packet records to write.
    pub packets: Option<PacketsPlan>,
    /// Whether the hosts reach what this host reaches, through the far end of the link of CMD's host.
    pub uplink: Uplink,
    /// Probes to send.
    pub probe: Option<ProbePlan>,
    /// Packet I/O.
    pub cabling: Cabling,
    /// How the packet loop waits and where it runs.
    pub pace: Pace,
    /// The number of threads of the loop, if the network has several independent components.
    pub threads: Threads,
    /// Requested bounds on lateness; the report says whether they were kept.
    pub bounds: Vec<LatenessBound>,
    /// The folder of control sockets.
    pub run_folder: PathBuf,
}

/// Whether hosts of a run reach what this host reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uplink {
    /// No uplink.
    Off,
    /// An uplink if possible; otherwise the report says why not.
    Optional,
    /// An uplink, or the run fails.
    Required,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The program's exit status as a shell reports it: 128 plus the number of the signal that ended it or us.
    pub status: u8,
    /// What ended the run early.
    pub broken: Option<String>,
}

/// Runs a scenario in real time. Call it from the main thread: programs end with the thread that started them.
///
/// # Errors
/// If anything cannot be set up, with nothing left behind; or if the loop fails.
pub fn run(mut scenario: Scenario, options: &RunOptions) -> Result<Outcome, RunError> {
    if let Some(command) = command(options, &[]) {
        process::check(&command)?;
    }
    step_aside(&mut scenario)?;
    let (cabling, choice) = choose(&scenario, options)?;
    let engine = Engine::new(scenario.network())?;
    let agreement = (cabling.backend == Some(Backend::Kernel)).then(|| Agreement::of(&scenario, &engine));
    process::adopt_descendants().map_err(system("adopt the programs' descendants"))?;
    wake_on_time().map_err(system("set the timer slack"))?;
    descriptors::allow_many().map_err(system("allow more descriptors"))?;
    // From here on there is something to restore; signals during set-up are handled once it is complete.
    let mut signals = EndSignals::catch().map_err(system("catch signals"))?;
    let (threads, remark) = threads(&scenario, options, cabling);
    let here = scenario.ports().iter().filter(|port| scenario.is_here(&port.host));
    let tunnelled: Vec<_> = options.tunnels.iter().map(|plan| tunnel_port(&plan.link)).collect();
    let ports = here.map(|port| port.name.as_str()).chain(tunnelled.iter().map(String::as_str));
    let division = Division::of(&engine, ports, &threads).map_err(LoopError::from)?;
    let thread_of = |port: &str| engine.port(port).map_or(0, |port| division.thread_of(port));
    let mut testbed = Testbed::create(&scenario, cabling, thread_of)?;
    let host = chosen_host(&testbed, options.host.as_deref())?;
    let (uplink, refusal) = open_uplink(&testbed, host, options)?;
    testbed.add_routes(uplink.as_ref().map(NatUplink::host))?;
    let resolver = uplink.as_ref().map_or(Resolver::Absent, |nat| Resolver::Ours(nat.forwarder()));
    let (names, no_names) = Names::new(&scenario, resolver);
    let kind = if host::time_is_virtual() { Kind::ExactVirtual } else { Kind::Live };
    let mut info = RunInfo::of(&scenario, kind);
    let about = About::new(&options.identity, &scenario, &info.title);
    let mut control = ControlSocket::open(&options.run_folder, &about)?;
    if let Some(passed) = options.stay.as_ref().and_then(|stay| stay.passed.as_ref()) {
        control
            .listen_at(passed.try_clone().map_err(system("use the socket passed by the service manager"))?);
    }
    let mut environment = environment(&testbed, host, &control);
    let (name, id) = (control.name().clone(), control.run_id());
    let greeting = options.greeting.then(|| greeting(&name, &testbed, host, options));
    let greet = || {
        if let Some(greeting) = &greeting {
            // If standard error is closed, nobody wants to know.
            let _ = writeln!(io::stderr(), "{}", printable(greeting));
        }
    };
    if options.stay.is_none() {
        greet();
    }

    info.notes.extend(refusal);
    info.notes.extend(no_names);
    info.notes.extend(choice);
    info.notes.extend(cabling.remark());
    info.notes.extend(testbed.cabling_note().map(String::from));
    if scenario.duration.is_some() {
        info.notes.push("the scenario's `duration` applies to `sim` only and was ignored".into());
    }
    info.notes.extend(uplink.iter().flat_map(NatUplink::remarks));
    info.notes.extend(testbed.sharing_note().map(String::from));
    info.notes.extend(remark);
    let mut cables = testbed.take_cables();
    cables.extend(tunnels::open(&options.tunnels)?);
    let mut network = Director::new(engine, scenario, cables, (division, &threads.processors))?;
    network.certify(&options.bounds);
    agreement.iter().for_each(|agreement| network.compare_with_kernel(agreement));
    let entrances = Entrances::new(&testbed, &names, &control);
    network.listen(control, info.clone());
    network.let_in(entrances);
    network.open_feeds(&options.run_folder)?;
    let feeds = network.feed_environment();
    environment.extend(feeds.into_iter().map(|(name, path)| (name, path.into())));
    if let Some(path) = &options.record {
        network.record(path, options.record_whole).map_err(LoopError::from)?;
    }
    if let Some(plan) = &options.capture {
        network.capture(plan).map_err(LoopError::from)?;
    }
    if let Some(plan) = &options.series {
        network.keep_series(plan).map_err(LoopError::from)?;
    }
    if let Some(plan) = &options.packets {
        network.keep_packets(plan).map_err(LoopError::from)?;
    }
    // The threads of the recorder and the feeds exist by now, and are not pinned.
    network.keep_pace(options.pace);
    network.start()?;
    let ready = |stay: &Stay| {
        greet();
        stay.ready.tell(&name).map_err(system("tell who waits that the network is up"))
    };
    let mut output = ServiceOutput::new(options.output.clone());
    let result =
        play(&mut network, (&testbed, &names), options, &environment, &mut signals, &mut output, ready);
    if options.stay.is_some() {
        Ready::tell_end();
    }
    // What programs send while being ended is not part of the run. A failed packet thread has already been noticed.
    let halted = network.halt();
    // In any case, no program of the run outlives it. Programs beside CMD did not get a Ctrl-C, and are now asked
    // with the signal that it would have sent.
    let interrupted = result.as_ref().is_ok_and(|played| played.interrupted);
    let first = if interrupted { Signal::SIGINT } else { Signal::SIGTERM };
    // Programs of `exec` are children of other processes.
    let mut visitors = network.has_let_in().then(|| Visitors::of(id));
    visitors.as_ref().map_or(Ok(()), Visitors::ask).map_err(system("end programs in the hosts"))?;
    process::end_descendants(first, GRACE).map_err(system("end the programs of the run"))?;
    visitors.as_mut().map_or(Ok(()), |all| all.end(GRACE)).map_err(system("end programs in the hosts"))?;
    let logs = output.finish();
    let (Played { status, probes, notes, .. }, broken) = match result {
        Ok(played) => (played, None),
        // Its programs can no longer communicate, but the results until then are known.
        Err(RunError::Loop(LoopError::CableEnd(error))) if error.is_down() => {
            (Played { status: 2, ..Played::default() }, Some(error.to_string()))
        }
        Err(error) => return Err(error),
    };
    info.notes.extend(notes.into_iter().chain(logs));
    info.notes.extend(uplink.into_iter().flat_map(NatUplink::close));
    if broken.is_none() {
        halted?;
    }
    // The last records are read, and compared, at the end.
    let mut report = network.finish(&mut info)?;
    agreement.iter().for_each(|agreement| agreement.conclude(&mut report));
    report.probes = probes;
    Ok(Outcome { report, status, broken })
}

/// The packet I/O, and a note about it if `auto` chose it.
///
/// # Errors
/// If links have to be inside the kernel, and the scenario does not fit there, or an option.
fn choose(scenario: &Scenario, options: &RunOptions) -> Result<(Cabling, Option<String>), RunError> {
    choose_backend(options.cabling, scenario, || {
        not_in_kernel([
            (!options.tunnels.is_empty(), "--machines", "links inside the kernel join hosts of one machine"),
            (host::time_is_virtual(), "--virtual", "the guest kernel has no BPF qdiscs"),
        ])?;
        let is_whole = options.record.is_some() && options.record_whole;
        fits_into_kernel(scenario, options.cabling, options.capture.is_some(), is_whole).map(drop)
    })
}

/// The packet I/O, and a note about it if `auto` chose it. `fits` says whether links can be inside the kernel, as far as the scenario
/// and the options are concerned.
///
/// # Errors
/// If they have to be there, and do not fit.
pub(crate) fn choose_backend(
    cabling: Cabling,
    scenario: &Scenario,
    fits: impl FnOnce() -> Result<(), RunError>,
) -> Result<(Cabling, Option<String>), RunError> {
    if !cabling.kernel_if_possible {
        if cabling.backend == Some(Backend::Kernel) {
            fits()?;
        }
        return Ok((cabling, None));
    }
    let possible = fits().map_err(|misfit| misfit.to_string());
    let possible = possible.and_then(|()| narrows_kernel::try_out().map_err(|error| error.to_string()));
    Ok(match possible {
        Ok(()) => {
            let links = scenario.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
            let chosen = Cabling { backend: Some(Backend::Kernel), ..cabling };
            (chosen, Some(format!("--backend auto: inside the kernel, so that they do not change: {links}")))
        }
        Err(why) => {
            // The verifier's log, if there is one, is for doctor.
            let why = why.lines().map(str::trim).take(MOST_REASONS).collect::<Vec<_>>().join(" ");
            (cabling, Some(format!("--backend auto: not inside the kernel: {why}")))
        }
    })
}

/// The most lines about why links are not inside the kernel.
const MOST_REASONS: usize = 6;

/// Whether links can be inside the kernel, as far as the scenario and these options are concerned: a capture, a log of whole packets.
///
/// # Errors
/// What does not fit there.
pub(crate) fn fits_into_kernel(
    scenario: &Scenario,
    cabling: Cabling,
    captures: bool,
    is_whole: bool,
) -> Result<narrows_kernel::Fitting, RunError> {
    let whole = "only the heads of packets are known outside the kernel";
    not_in_kernel([
        (captures, "--capture", whole),
        (is_whole, "--record-whole", whole),
        (cabling.trains, "--trains", "packets cross singly"),
        (cabling.busy_poll, "--busy-poll", "no driver is polled"),
    ])?;
    Ok(narrows_kernel::fit(scenario)?)
}

/// Refuses options that do not work with links inside the kernel: whether one is given, its name, and the reason.
///
/// # Errors
/// The first that is given.
fn not_in_kernel(
    options: impl IntoIterator<Item = (bool, &'static str, &'static str)>,
) -> Result<(), RunError> {
    match options.into_iter().find(|(is_given, ..)| *is_given) {
        Some((_, option, why)) => Err(RunError::NotInKernel(option, why)),
        None => Ok(()),
    }
}

/// The number of threads; and, if fewer than requested, the reason.
fn threads(scenario: &Scenario, options: &RunOptions, cabling: Cabling) -> (Threads, Option<String>) {
    // The parts of an input log are merged in a separate file, which replaces it.
    let is_special = |path: &PathBuf| path.metadata().is_ok_and(|data| !data.is_file());
    let reason = match (&options.capture, &options.record) {
        _ if cabling.backend == Some(Backend::Kernel) => {
            "links inside the kernel have one to compare verdicts"
        }
        (Some(_), _) => "a capture is made by one",
        (None, Some(path)) if is_special(path) => "records of several are joined, which takes a plain file",
        _ if scenario.timeline().awaits_first_packet() => {
            "the timeline counts from the network's first packet"
        }
        _ => return (options.threads.clone(), None),
    };
    let wanted = options.threads.most.is_some_and(|most| most > 1) || options.threads.processors.len() > 1;
    let remark = wanted.then(|| format!("one packet thread was used: {reason}"));
    (Threads { most: Some(1), ..options.threads.clone() }, remark)
}

/// Drops privileges that are not needed once everything is set up, or returns why it could not.
pub(crate) fn keep_privileges(needed: &[Capability]) -> Option<String> {
    privileges::keep(needed).err().map(|cause| format!("privileges could not be dropped: {cause}"))
}

/// The outcome of the programs.
#[derive(Debug, Default)]
struct Played {
    status: u8,
    /// Whether Ctrl-C was pressed.
    interrupted: bool,
    /// Whether a signal requested the end.
    asked: bool,
    probes: Vec<ProbeReport>,
    notes: Vec<String>,
}

impl Played {
    /// Ended by a signal before anything else.
    fn by_signal(signal: i32) -> Self {
        let interrupted = signal == Signal::SIGINT as i32;
        Self { status: by_signal(signal), interrupted, asked: true, ..Self::default() }
    }

    /// Whether this is the normal end of a network that stays up until it is ended.
    fn ended_as_meant(&self) -> bool {
        [Signal::SIGINT, Signal::SIGTERM].map(|signal| by_signal(signal as i32)).contains(&self.status)
    }
}

/// Starts the programs, and runs the network until they have ended.
fn play(
    network: &mut Director,
    (testbed, names): (&Testbed, &Names),
    options: &RunOptions,
    environment: &[(String, OsString)],
    signals: &mut EndSignals,
    output: &mut ServiceOutput,
    ready: impl FnOnce(&Stay) -> Result<(), RunError>,
) -> Result<Played, RunError> {
    // Before there is any packet.
    let listeners = listeners(&options.beside, testbed)?;
    let mut services = Services::start(&options.beside, (testbed, names), environment, output)?;
    match services.wait_until_they_listen(network, &listeners, options.patience, signals)? {
        Ok(late) => late.iter().for_each(|words| {
            // If standard error is closed, nobody wants to know.
            let _ = writeln!(io::stderr(), "narrows: {}", printable(words));
        }),
        Err(signal) => {
            services.leave();
            return Ok(Played::by_signal(signal));
        }
    }
    let command = command(options, environment);
    // A signal during set-up: there is no program yet that it could have reached.
    if command.is_some()
        && let Some(ended) = signals.take().map_err(system("read a signal"))?
    {
        services.leave();
        return Ok(Played::by_signal(ended.signal as i32));
    }
    let probes = options.probe.as_ref().map(|plan| Probes::start(plan, testbed)).transpose();
    let probes = probes.map_err(system("send probes"))?;
    let program = match command {
        Some(mut command) => {
            let host = chosen_host(testbed, options.host.as_deref())?;
            redirect(&mut command, options)?;
            Some(process::spawn_with(command, &host.namespace, names.of(host))?)
        }
        None => None,
    };
    // No sooner: a program that regains dropped privileges at exec would lose its death signal.
    let notes = keep_privileges(&NEEDED);
    let mut played = match program {
        Some(mut program) => {
            let played = accompany(network, &mut program, signals)?;
            if probes.is_none() {
                // Sockets that it leaves open are not part of the run.
                network.halt()?;
            }
            played
        }
        None => {
            let until = options.stay.as_ref().and_then(|stay| stay.until.as_ref());
            let probing = probes.as_ref().map(AsFd::as_fd).or(until.map(AsFd::as_fd));
            options.stay.as_ref().map_or(Ok(()), ready)?;
            let end = match options.stay.as_ref().and_then(|stay| stay.ttl) {
                Some(ttl) => network.run_for(ttl, probing, signals)?,
                None => network.run(probing, signals)?,
            };
            match end {
                End::Ready => Played::default(),
                End::Signal(ended) => Played::by_signal(ended.signal as i32),
            }
        }
    };
    if options.stay.is_some() && played.ended_as_meant() {
        played.status = 0;
    }
    played.notes.extend(notes);
    played.notes.extend(services.failures()?);
    services.leave();
    if let Some(probes) = probes {
        // Probes in flight may still arrive.
        probes.stop();
        if let Some(why) = await_probes(network, &probes, played.asked, signals)? {
            played.notes.push(format!("{why}: probes in flight at the end count as lost"));
        }
        probes.give_up();
        played.probes = probes.finish(network.one_ways()).map_err(system("read the probes"))?;
    }
    Ok(played)
}

/// Waits for probes in flight. Returns the reason if it stops waiting for them: a run ends soon after its program, or
/// after a request to end.
fn await_probes(
    network: &mut Director,
    probes: &Probes,
    asked: bool,
    signals: &mut EndSignals,
) -> Result<Option<&'static str>, RunError> {
    let mut left = if asked { AWAITED_IF_ASKED } else { Duration::MAX };
    while !probes.are_done() {
        if network.holds_packets()?.1 > MOST_BEHIND {
            return Ok(Some("the host was too busy to carry all packets"));
        }
        let end = network.run_for(AWAITED_AT_ONCE, Some(probes.as_fd()), signals)?;
        left = left.saturating_sub(AWAITED_AT_ONCE);
        if matches!(end, End::Signal(_)) || left.is_zero() && !probes.are_done() {
            return Ok(Some("a signal ended the run"));
        }
    }
    Ok(None)
}

/// The program under test.
fn command(options: &RunOptions, environment: &[(String, OsString)]) -> Option<Command> {
    let (name, arguments) = options.command.split_first()?;
    let mut command = Command::new(name);
    command.args(arguments).envs(environment.iter().chain(&options.environment).cloned());
    Some(command)
}

/// Redirects a program's output, if it is not ours.
fn redirect(command: &mut Command, options: &RunOptions) -> Result<(), RunError> {
    if options.output.to_stderr {
        let stderr = io::stderr().as_fd().try_clone_to_owned();
        command.stdout(stderr.map_err(system("give a program the standard error"))?);
    }
    Ok(())
}

/// Runs the network until the program has ended. A signal that asks us to end is forwarded to it; it is killed if it
/// has not ended after a while.
fn accompany(
    network: &mut Director,
    program: &mut Running,
    signals: &mut EndSignals,
) -> Result<Played, RunError> {
    let mut asked = None;
    let mut interrupted = false;
    // While it was started, it may have missed what the terminal sent.
    while let Some(early) = signals.take().map_err(system("read a signal"))? {
        program.signal(early.signal).map_err(system("signal the program"))?;
        interrupted |= early.signal == Signal::SIGINT;
        asked = asked.or(Some(early.signal).filter(|_| !early.from_terminal));
    }
    let played = |status, interrupted, asked| Played { status, interrupted, asked, ..Played::default() };
    loop {
        let end = match asked {
            None => network.run(Some(program.as_fd()), signals)?,
            Some(_) => network.run_for(GRACE, Some(program.as_fd()), signals)?,
        };
        interrupted |= matches!(end, End::Signal(EndSignal { signal: Signal::SIGINT, .. }));
        if let Some(status) = program.try_wait().map_err(system("wait for the program"))? {
            return Ok(played(exit_code(status), interrupted, interrupted || asked.is_some()));
        }
        match (end, asked) {
            // The terminal has sent Ctrl-C to the program as well; how it reacts is up to the program.
            (End::Signal(EndSignal { from_terminal: true, .. }), None) => {}
            (End::Signal(EndSignal { signal, .. }), None) => {
                program.signal(signal).map_err(system("signal the program"))?;
                asked = Some(signal);
            }
            (_, Some(signal)) => {
                program.signal(Signal::SIGKILL).map_err(system("kill the program"))?;
                program.wait().map_err(system("wait for the program"))?;
                return Ok(played(by_signal(signal as i32), interrupted, true));
            }
            (End::Ready, None) => {}
        }
    }
}

/// Which host is where, one line for each.
fn greeting(name: &RunName, testbed: &Testbed, host: &Host, options: &RunOptions) -> String {
    let mut text = match options.stay {
        Some(_) => format!("narrows run {name} is up; Ctrl-C or narrows down {name} ends it"),
        None => format!("narrows run {name}: this is `{}`; exit ends the run", host.name),
    };
    for host in &testbed.hosts {
        for interface in &host.interfaces {
            let addresses: Vec<_> =
                interface.addresses.iter().map(|prefix| prefix.address.to_string()).collect();
            text += &format!("\n  {:<12} {}", host.name, addresses.join("  "));
        }
    }
    text
}

/// Opens the requested uplink, or returns why there is none.
fn open_uplink(
    testbed: &Testbed,
    host: &Host,
    options: &RunOptions,
) -> Result<(Option<NatUplink>, Option<String>), RunError> {
    if options.uplink == Uplink::Off {
        return Ok((None, None));
    }
    let Some(first) = host.interfaces.first() else { return Err(RunError::NoLink(host.name.clone())) };
    // A router has no namespace.
    let far = first.neighbours.iter().find(|peer| !peer.is_router).map(|peer| &peer.name);
    let far = far.and_then(|far| testbed.host(far)).and_then(|far| Some((far, far.interfaces.first()?)));
    let opened = match far {
        Some((far, link)) => {
            // Inside another run, at least that one's hosts are reached.
            let to_networks = options.uplink == Uplink::Optional;
            NatUplink::open(far, link, &options.run_folder.join(SETTINGS), to_networks)
        }
        None => Err(UplinkError::Router { host: host.name.clone(), router: first.joined_to.clone() }),
    };
    match opened {
        Ok(uplink) => Ok((Some(uplink), None)),
        Err(error) if options.uplink == Uplink::Optional => {
            Ok((None, Some(format!("no uplink from inside this run: {error}"))))
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8, // exit codes have 8 bits
        (None, signal) => by_signal(signal.unwrap_or(0)),
    }
}

/// As shells report it.
pub(crate) fn by_signal(signal: i32) -> u8 {
    128 + signal as u8 // signals go up to 64
}

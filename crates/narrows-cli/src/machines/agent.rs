//! `narrows agent`: runs the part of a scenario that is on this machine, for a coordinator at the other end of its
//! standard input and output. It ends with them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Stdin};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use std::{env, thread};

use narrows_io::clock::{MonotonicTime, clock_monotonic};
use narrows_io::host::{self, Capabilities};
use narrows_io::namespace::Namespace;
use narrows_io::udp::StampedUdp;
use narrows_io::user_namespace::{InnerUser, enter_user_namespace};
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_live::agent::{Answer, LONGEST_ORDER, Order, Preparation, hear, tell};
use narrows_live::cabling::Cabling;
use narrows_live::control;
use narrows_live::director::{Pace, Threads, Wait};
use narrows_live::run::{self, RunOptions, Uplink};
use narrows_live::run_name::RunName;
use narrows_live::run_record::{Identity, RunKind};
use narrows_live::service_output::OutputPlan;
use narrows_live::stay::{Ready, Stay};
use narrows_live::tunnels::TunnelPlan;
use narrows_live::underlay::{Underlay, UnderlayFigures};
use narrows_scenario::Way;

use crate::args::VERSION;
use crate::output::Failure;

/// How long the first answers of other machines are awaited, whose agents may be later.
const FIRST_ANSWER: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// How long the underlay is measured then.
const MEASURED: Duration = Duration::from_secs(2);
/// How long large probes are awaited.
const LARGE: Duration = Duration::from_secs(1);
/// How long a coordinator may be silent while a run is prepared, and during the run.
const PATIENCE: Duration = Duration::from_secs(60);
pub(super) const SILENCE: Duration = Duration::from_secs(6);
/// How often an agent says that it is there while it prepares.
const BEAT: Duration = Duration::from_secs(1);
/// How long an agent stays after its run, so that the probes of others are answered until all runs have ended.
const STAYS: Duration = Duration::from_secs(20);

pub(crate) fn agent() -> Result<u8, Failure> {
    let result = serve();
    let why = match result {
        Ok(()) => return Ok(0),
        Err(failure) => failure.to_string(),
    };
    // If the coordinator is gone, nobody wants to know.
    let _ = tell(&mut io::stdout().lock(), &Answer::Failed { why });
    Ok(2)
}

fn serve() -> Result<(), Failure> {
    let (user, run_folder) = (host::user(), control::run_folder());
    let is_privileged = Capabilities::effective().map_err(crate::live::reading)?.all();
    // Before any thread exists.
    if !is_privileged {
        enter_user_namespace(InnerUser::Root)?;
    }
    // Also blocks signals in the threads that measure; the run catches them once more.
    let signals = EndSignals::catch().map_err(other("catch signals"))?;
    let mut orders = Orders { input: BufReader::new(io::stdin()), signals };
    let address = env::var("SSH_CONNECTION").ok();
    let address = address.and_then(|words| words.split(' ').nth(2)?.parse().ok());
    say(&Answer::Hello { version: VERSION.into(), address, user, is_privileged })?;
    let heart = heart();

    let Some(Order::Bind { address, peers }) = orders.step()? else { return Ok(()) };
    let here = Namespace::current().map_err(|error| Failure::Other(error.to_string()))?;
    let mut sockets = BTreeMap::new();
    for peer in peers {
        sockets.insert(peer, StampedUdp::bind(&here, address, 0).map_err(binding(address))?);
    }
    let port = |address: io::Result<SocketAddr>| address.map(|address| address.port());
    let ports = sockets.iter().map(|(peer, socket)| Ok((peer.clone(), port(socket.address())?)));
    say(&Answer::Bound { ports: ports.collect::<io::Result<_>>().map_err(binding(address))? })?;

    let Some(Order::Measure { peers }) = orders.step()? else { return Ok(()) };
    let mut underlays = BTreeMap::new();
    let count = peers.len();
    for (name, peer) in peers {
        let Some(socket) = sockets.remove(&name) else { continue };
        let underlay = Underlay::start(socket, peer, count).map_err(other("measure the underlay"))?;
        underlays.insert(name, underlay);
    }
    let until = clock_monotonic().as_nanos() + FIRST_ANSWER.as_nanos() as u64;
    while let Some((silent, _)) = underlays.iter().find(|(_, underlay)| !underlay.answers()) {
        if clock_monotonic().as_nanos() > until {
            return Err(Failure::Other(format!(
                "no UDP probe from {address} to the machine `{silent}` was answered: is there a firewall between them?"
            )));
        }
        thread::sleep(LOOK);
    }
    thread::sleep(MEASURED);
    underlays.values().for_each(Underlay::watch);
    say(&Answer::Measured { figures: figures(&underlays) })?;

    let Some(Order::Prepare(plan)) = orders.step()? else { return Ok(()) };
    underlays.retain(|peer, _| plan.limits.contains_key(peer));
    let underlays = Arc::new(underlays);
    check_sizes(&plan, &underlays, address)?;
    let scenario = plan.scenario()?;
    let mut tunnels = BTreeMap::new();
    for cut in &plan.cuts {
        tunnels.insert(cut.link.clone(), UdpSocket::bind((address, 0)).map_err(binding(address))?);
    }
    let ports = tunnels.iter().map(|(link, socket)| Ok((link.clone(), port(socket.local_addr())?)));
    say(&Answer::Bound { ports: ports.collect::<io::Result<_>>().map_err(binding(address))? })?;

    let Some(Order::Start { name, tunnels: peers }) = orders.step()? else { return Ok(()) };
    let mut plans = Vec::new();
    for cut in &plan.cuts {
        let (Some(socket), Some(&peer)) = (tunnels.remove(&cut.link), peers.get(&cut.link)) else { continue };
        plans.push(TunnelPlan { link: cut.link.clone(), socket, peer, identifier: cut.identifier });
    }
    // The coordinator is told by the run itself when it is up; the run is told by this when the coordinator is gone.
    let (until, keeper) = UnixStream::pair().map_err(other("make a pair of sockets"))?;
    let (up, ready) = UnixStream::pair().map_err(other("make a pair of sockets"))?;
    let keeping = thread::spawn(move || keep(orders, keeper));
    let (limited, limits) = (underlays.clone(), plan.limits);
    thread::spawn(move || {
        let mut name = String::new();
        if BufReader::new(up).read_line(&mut name).is_ok_and(|length| length > 0) {
            for (peer, underlay) in &*limited {
                underlay.limit(narrows_core::Duration::from_nanos(limits.get(peer).copied().unwrap_or(0)));
            }
            drop(heart);
            let _ = say(&Answer::Up { name: name.trim_end().into() });
        }
    });
    let ready = Ready(Some(OwnedFd::from(ready).into()));
    let stay = Stay { ready, until: Some(until.into()), ..Stay::default() };
    let mut outcome = run::run(scenario.clone(), &options(name, stay, plans, run_folder)?)?;
    // The others are idle here: their owners report them.
    outcome.report.directions.retain(|direction| {
        let (link, way) = direction.link.rsplit_once('.').unwrap_or((&direction.link, ""));
        let way = if way == "down" { Way::Down } else { Way::Up };
        scenario.sends_here(link, way)
    });
    let report = Box::new(outcome.report);
    say(&Answer::Ended { report, figures: figures(&underlays), broken: outcome.broken })?;
    let _ = keeping.join();
    Ok(())
}

/// Checks that the largest packet of all links to each machine crosses the path to it.
fn check_sizes(
    plan: &Preparation,
    underlays: &BTreeMap<String, Underlay>,
    address: IpAddr,
) -> Result<(), Failure> {
    for (peer, underlay) in underlays {
        let cuts = plan.cuts.iter().filter(|cut| cut.peer == *peer);
        let Some(cut) = cuts.max_by_key(|cut| cut.payload) else { continue };
        if underlay.carries(cut.payload, LARGE) {
            continue;
        }
        let all = cut.payload + if address.is_ipv4() { 28 } else { 48 };
        return Err(Failure::Other(format!(
            "the link `{}` needs packets of {all} bytes from {address} to the machine `{peer}`, and none of them \
             arrived: raise the MTU between the machines, or set mtu = {} or less for the link",
            cut.link,
            // What an Ethernet of 1,500 bytes leaves.
            1500 - (all - (cut.payload - narrows_io::tunnel::OVERHEAD + 8)),
        )));
    }
    Ok(())
}

fn options(
    name: Option<String>,
    stay: Stay,
    tunnels: Vec<TunnelPlan>,
    run_folder: PathBuf,
) -> Result<RunOptions, Failure> {
    let name =
        name.map(|name| name.parse::<RunName>().map_err(|error| Failure::Other(format!("--name: {error}"))));
    Ok(RunOptions {
        identity: Identity { name: name.transpose()?, kind: RunKind::Up, ..Identity::default() },
        command: Vec::new(),
        host: None,
        beside: Vec::new(),
        patience: Duration::ZERO,
        output: OutputPlan { labels: false, colours: false, logs: None, to_stderr: true },
        environment: Vec::new(),
        greeting: false,
        stay: Some(stay),
        tunnels,
        record: None,
        record_whole: false,
        capture: None,
        series: None,
        packets: None,
        uplink: Uplink::Off,
        probe: None,
        bounds: Vec::new(),
        cabling: Cabling::default(),
        pace: Pace { wait: Wait::Hybrid, ..Pace::default() },
        threads: Threads::default(),
        run_folder,
    })
}

fn figures(underlays: &BTreeMap<String, Underlay>) -> BTreeMap<String, UnderlayFigures> {
    underlays.iter().map(|(peer, underlay)| (peer.clone(), underlay.figures())).collect()
}

/// Says that this agent is there, until what it returns is dropped.
fn heart() -> Sender<()> {
    let (stops, stopped) = channel();
    thread::spawn(move || {
        while stopped.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            if say(&Answer::Alive).is_err() {
                return;
            }
        }
    });
    stops
}

/// During the run: answers the coordinator, and ends the run when it asks to, is gone, or is silent. Then waits until the
/// coordinator is gone.
fn keep(mut orders: Orders, keeper: UnixStream) {
    let mut next = orders.next(SILENCE);
    while let Ok(Some(Order::Alive)) = next {
        if say(&Answer::Alive).is_err() {
            break;
        }
        next = orders.next(SILENCE);
    }
    // The run ends when its end of this is closed at the other.
    drop(keeper);
    while let Ok(Some(_)) = next {
        next = orders.next(STAYS);
    }
}

/// The orders of the coordinator.
struct Orders {
    input: BufReader<Stdin>,
    signals: EndSignals,
}

impl Orders {
    /// The next order while a run is prepared.
    fn step(&mut self) -> Result<Option<Order>, Failure> {
        loop {
            match self.next(PATIENCE)? {
                Some(Order::Alive) => {}
                order => return Ok(order),
            }
        }
    }

    /// The next order; `None` if there is none within this time, if the coordinator is gone, or if a signal asks this process to end.
    fn next(&mut self, patience: Duration) -> Result<Option<Order>, Failure> {
        if self.input.buffer().is_empty() {
            let until = clock_monotonic().as_nanos() + patience.as_nanos() as u64;
            let until = MonotonicTime::from_nanos(until);
            while clock_monotonic() < until {
                let mut waiting = [Waiting::readable(self.input.get_ref()), Waiting::readable(&self.signals)];
                wait(&mut waiting, Some(until)).map_err(other("wait for the coordinator"))?;
                let [has_order, is_signalled] = waiting.map(|one| one.is_ready());
                if is_signalled {
                    return Ok(None);
                }
                if has_order {
                    break;
                }
            }
            if clock_monotonic() >= until {
                return Ok(None);
            }
        }
        let wrong = |why: String| Failure::Other(format!("an order of the coordinator: {why}"));
        match hear(&mut self.input, LONGEST_ORDER) {
            Ok(Some(line)) => {
                serde_json::from_slice(&line).map(Some).map_err(|error| wrong(error.to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(wrong(error.to_string())),
            // The coordinator is gone.
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

fn say(answer: &Answer) -> Result<(), Failure> {
    tell(&mut io::stdout().lock(), answer).map_err(|_| Failure::Closed)
}

fn other(step: &'static str) -> impl Fn(io::Error) -> Failure {
    move |cause| Failure::Other(format!("cannot {step}: {cause}"))
}

fn binding(address: IpAddr) -> impl Fn(io::Error) -> Failure {
    move |cause| Failure::Other(format!("cannot open a UDP socket at {address}: {cause}"))
}

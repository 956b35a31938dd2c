//! `narrows cni`, and the plugin `narrows-cni` of container runtimes: the same program under another name.
//!
//! The plugin starts one `narrows attach` in the background for each pod and forgets it: runs are found again by their
//! owner, which names the network, container and interface.

mod install;

use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use narrows_containers::cni::{
    Asked, Attachment, CniError, Code, Config, ConfigError, ConfigList, PLUGIN, VERSIONS, Verb, is_stale,
};
use narrows_containers::labels::Direction;
use narrows_containers::plan::Plan;
use narrows_io::host::Capabilities;
use narrows_io::namespace::Namespace;
use narrows_io::route_socket::RouteSocket;
use narrows_live::block::unblock;
use narrows_live::control::{self, Client, KnownRun, Liveness, known_runs};
use narrows_scenario::{Files, read_text};

use crate::background::{Started, start};
use crate::clean::killed_runs_of;
use crate::down::{ask, within};
use crate::output::{Failure, print, say};

pub(crate) use install::configurations;

/// The folder of plugins.
pub(crate) const PLUGINS: &str = "/opt/cni/bin";
/// The folder of network configurations.
pub(crate) const CONFIGURATIONS: &str = "/etc/cni/net.d";
/// The maximum length of a configuration.
const LONGEST: u64 = 16 << 20;
/// Maximum time for a run to end: runtimes wait for the plugin.
const PATIENCE: Duration = Duration::from_secs(20);
/// Variables of the runtime that are not for the run.
const NOT_INHERITED: [&str; 10] = [
    "CNI_COMMAND",
    "CNI_CONTAINERID",
    "CNI_NETNS",
    "CNI_IFNAME",
    "CNI_ARGS",
    "CNI_PATH",
    "NOTIFY_SOCKET",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
];
/// What configurations on standard input are called in errors.
const INPUT: &str = "network configuration";

/// Its commands.
#[derive(Debug, Subcommand)]
pub(crate) enum CniCommand {
    /// Check the plugin's part of a network configuration and print the scenario of its link
    Check(Check),
    /// Install the plugin on this node and add it to the chain of its network
    Install(install::Install),
    /// Take the plugin out of all chains of this node
    Uninstall(install::Uninstall),
}

/// The arguments of `narrows cni check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows cni check /etc/cni/net.d/10-flannel.conflist")]
pub(crate) struct Check {
    /// The chain of plugins
    #[arg(value_name = "FILE.conflist")]
    file: PathBuf,
}

pub(crate) fn cni(command: &CniCommand) -> Result<u8, Failure> {
    match command {
        CniCommand::Check(args) => check(&args.file),
        CniCommand::Install(args) => install::install(args),
        CniCommand::Uninstall(args) => install::uninstall(args),
    }
}

fn check(file: &Path) -> Result<u8, Failure> {
    let (text, name) = read_text(file, "network configuration")?;
    let list = ConfigList::read(&text, &name).map_err(other)?;
    let Some(task) = list.ours()? else {
        return Err(Failure::Other(format!(
            "{name}: {PLUGIN} is not in the chain; narrows cni install adds it"
        )));
    };
    let fail = if task.fails_closed { "closed" } else { "open" };
    match task.wish {
        Some(wish) => {
            let plan = Plan::of_labels(&wish, &Files::given::<&str>([]))?;
            print(&format!("# every pod of {}, fail {fail}\n{}", list.network, plan.scenario))?;
        }
        None => print(&format!("# {}, fail {fail}: pods with annotations narrows.KEY\n", list.network))?,
    }
    Ok(0)
}

/// If this program is called as the plugin, does what the runtime asks.
pub(crate) fn as_plugin() -> Option<ExitCode> {
    let name = env::args_os().next()?;
    (Path::new(&name).file_name()? == PLUGIN).then(plugin)
}

fn plugin() -> ExitCode {
    let asked = match Asked::read(|name| env::var_os(name)) {
        Ok(Some(asked)) => asked,
        Ok(None) => {
            let version = env!("CARGO_PKG_VERSION");
            say(format_args!(
                "{PLUGIN} {version}: a plugin of CNI ({}), for container runtimes; see narrows cni --help",
                VERSIONS.join(", ")
            ));
            return ExitCode::from(crate::TROUBLE);
        }
        Err(error) => return answer(Err(error), VERSIONS[VERSIONS.len() - 1]),
    };
    let mut text = String::new();
    let read = io::stdin().take(LONGEST).read_to_string(&mut text);
    let version = VERSIONS[VERSIONS.len() - 1].to_owned();
    let answered = match read {
        // It may ask without a configuration.
        Ok(_) if asked.verb == Verb::Version => {
            let versions = serde_json::json!({ "cniVersion": version, "supportedVersions": VERSIONS });
            return answer(Ok(versions.to_string()), &version);
        }
        Ok(_) => Config::read(&text, INPUT).map_err(refused),
        Err(cause) => {
            Err(CniError::new(Code::System, format!("cannot read the network configuration: {cause}")))
        }
    };
    match answered {
        Ok(config) => answer(perform(&asked, &config), &config.version),
        Err(error) => answer(Err(error), &version),
    }
}

/// Tells the runtime.
fn answer(answer: Result<String, CniError>, version: &str) -> ExitCode {
    let (text, status) = match answer {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(error) => (error.json(version), ExitCode::FAILURE),
    };
    if !text.is_empty() {
        // A runtime that does not listen learns it by its own means.
        let _ = writeln!(io::stdout(), "{text}");
    }
    status
}

fn perform(asked: &Asked, config: &Config<'_>) -> Result<String, CniError> {
    match (asked.verb, &asked.attachment) {
        (Verb::Add, Some(attachment)) => add(attachment, config),
        (Verb::Check, Some(attachment)) => still_there(attachment, config),
        (Verb::Del, Some(attachment)) => delete(attachment, config),
        (Verb::Gc, _) => collect(config),
        _ => status(config),
    }
}

fn add(attachment: &Attachment, config: &Config<'_>) -> Result<String, CniError> {
    let Some(previous) = config.previous else {
        let why =
            format!("no prevResult: {PLUGIN} is one of a chain, behind the plugin that makes the interface");
        return Err(CniError::new(Code::Config, why));
    };
    let task = config.task(attachment).map_err(|error| CniError::new(Code::Config, error))?;
    let Some(wish) = task.wish else { return Ok(previous.get().to_owned()) };
    let plan = Plan::of_labels(&wish, &Files::given::<&str>([]));
    let plan = plan.map_err(|error| CniError::new(Code::Config, error))?;
    let owner = attachment.owner(&config.network);
    let mut alive = runs()?;
    alive.retain(|run| run.liveness != Liveness::Dead);
    if let Some(run) = alive.iter().find(|run| run.about.owner.as_ref() == Some(&owner)) {
        let interface = &attachment.interface;
        let what = format!("{attachment} has a network at {interface} already: run {}", run.called());
        return Err(CniError::new(Code::Attach, what));
    }
    let names = attachment.run_names();
    let is_free = |name: &&String| alive.iter().all(|run| !run.is_called(name));
    let name = names.iter().find(is_free).unwrap_or(&names[1]).clone();
    let mut arguments: Vec<OsString> = vec!["attach".into(), attachment.interface.clone().into(), "-".into()];
    arguments.extend(["--netns".into(), attachment.namespace.clone().unwrap_or_default().into()]);
    arguments.extend(["--name".into(), name.into(), "--owner".into(), owner.into()]);
    // In one word, so that no title is taken for a flag.
    arguments.push(format!("--title={attachment}").into());
    if wish.direction != Direction::Both {
        arguments.extend(["--direction".into(), wish.direction.name().into()]);
    }
    if task.fails_closed {
        arguments.extend(["--fail".into(), "closed".into()]);
    }
    match start("narrows".into(), arguments, plan.scenario.as_bytes(), &NOT_INHERITED).map_err(system)? {
        Started::Up { .. } => Ok(previous.get().to_owned()),
        Started::Failed { said, status } => {
            let said = String::from_utf8_lossy(&said);
            let said = if said.trim().is_empty() { format!("status {status}").into() } else { said };
            Err(CniError::new(Code::Attach, said))
        }
    }
}

/// For CHECK: whether the network is still there, and answers.
fn still_there(attachment: &Attachment, config: &Config<'_>) -> Result<String, CniError> {
    let task = config.task(attachment).map_err(|error| CniError::new(Code::Config, error))?;
    if task.wish.is_none() {
        return Ok(String::new());
    }
    let owner = attachment.owner(&config.network);
    let runs = runs()?;
    let mut own = runs.iter().filter(|run| run.about.owner.as_ref() == Some(&owner));
    let interface = &attachment.interface;
    let gone = |why: &str| {
        CniError::new(
            Code::Gone,
            format!("{attachment} has lost its network at {interface}: {why}; restart it"),
        )
    };
    let Some(run) = own.next_back() else { return Err(gone("its run has ended")) };
    if run.liveness == Liveness::Dead {
        return Err(gone("its run was killed"));
    }
    match Client::at(&run.socket).status() {
        Ok(_) => Ok(String::new()),
        Err(error) => Err(gone(&error.to_string())),
    }
}

fn delete(attachment: &Attachment, config: &Config<'_>) -> Result<String, CniError> {
    let owner = attachment.owner(&config.network);
    end(&owner)?;
    let was_killed = killed_runs_of(&owner).map_err(system)?;
    if let (true, Some(namespace)) = (was_killed, &attachment.namespace) {
        open(namespace, &attachment.interface).map_err(|error| CniError::new(Code::System, error))?;
    }
    Ok(String::new())
}

/// For GC: ends the networks of attachments that no longer exist.
fn collect(config: &Config<'_>) -> Result<String, CniError> {
    let runs = runs()?;
    let owners = runs.iter().filter_map(|run| run.about.owner.as_ref());
    let mut stale: Vec<&String> =
        owners.filter(|owner| is_stale(owner, &config.network, &config.valid)).collect();
    stale.dedup();
    for owner in stale {
        end(owner)?;
        killed_runs_of(owner).map_err(system)?;
    }
    Ok(String::new())
}

/// For STATUS: whether the plugin can work on this host.
fn status(config: &Config<'_>) -> Result<String, CniError> {
    config.own_keys().map_err(|error| CniError::new(Code::Config, error))?;
    let unable =
        |why: &str| CniError::new(Code::NotAvailable, format!("{PLUGIN} cannot attach networks: {why}"));
    match Capabilities::effective() {
        Ok(held) if held.all() => {}
        Ok(_) => return Err(unable("it lacks CAP_NET_ADMIN, CAP_NET_RAW or CAP_SYS_ADMIN")),
        Err(error) => return Err(unable(&error.to_string())),
    }
    narrows_io::detour::has_tcx().map_err(|error| unable(&error.to_string()))?;
    Ok(String::new())
}

/// Ends the runs of this owner, and waits for them.
fn end(owner: &str) -> Result<(), CniError> {
    let deadline = within(PATIENCE);
    let runs = runs()?;
    let own =
        runs.iter().filter(|run| run.about.owner.as_deref() == Some(owner) && run.liveness != Liveness::Dead);
    for run in own {
        let Some(ending) = ask(run).map_err(system)? else { continue };
        if !ending.is_over_by(deadline).map_err(system)? {
            let seconds = PATIENCE.as_secs();
            let why = format!("run {} has not ended within {seconds} s", run.called());
            return Err(CniError::new(Code::TryAgain, why));
        }
    }
    Ok(())
}

/// Opens an interface that a killed run has left blocked; no error if it is gone.
fn open(namespace: &str, interface: &str) -> Result<(), String> {
    let Ok(namespace) = Namespace::open(namespace) else { return Ok(()) };
    let all = RouteSocket::open(&namespace).and_then(|mut sockets| sockets.interfaces());
    let all = all.map_err(|error| error.to_string())?;
    match all.iter().find(|one| one.name == interface) {
        Some(found) => unblock(&namespace, found, &control::run_folder()).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

fn runs() -> Result<Vec<KnownRun>, CniError> {
    let known = known_runs(&control::run_folder()).map_err(|error| CniError::new(Code::System, error))?;
    Ok(known.0)
}

fn refused(error: ConfigError) -> CniError {
    let code = match error {
        ConfigError::Json { .. } => Code::Decode,
        ConfigError::Version { .. } => Code::Version,
        _ => Code::Config,
    };
    CniError::new(code, error)
}

fn system(failure: Failure) -> CniError {
    CniError::new(Code::System, failure)
}

fn other(error: impl ToString) -> Failure {
    Failure::Other(error.to_string())
}

//! `narrows up`: a network that stays up, in the foreground or in the background.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, process};

use narrows_io::child_lifetime::{hand_down, handed_down, without_terminal};
use narrows_io::clock::clock_realtime;
use narrows_live::control::{self, Client, KnownRun, Liveness, known_runs};
use narrows_live::run_name::RunName;
use narrows_live::run_record::RunKind;
use narrows_live::stay::Stay;
use narrows_scenario::{Difference, span_of_time};

use crate::args::Up;
use crate::check::live_scenario;
use crate::diff::approach;
use crate::live::{Job, go};
use crate::machines;
use crate::output::{Failure, print, say};
use crate::state;

/// Maximum number of stored outputs, in addition to those of running networks.
const MOST_KEPT: usize = 20;

pub(crate) fn up(args: &Up) -> Result<u8, Failure> {
    if !args.machines.is_empty() {
        return machines::up(args);
    }
    let ttl = args.ttl.as_deref().map(|text| span_of_time("ttl", text)).transpose()?;
    if let Some(name) = args.live.name.as_ref().filter(|_| args.replace && args.ready.is_none())
        && let Some(run) = there(name)?
    {
        return replace(name, &run, args);
    }
    let name = args.live.name.as_ref();
    let passed = control::passed_socket(&control::run_folder(), name)
        .map_err(|error| Failure::Other(error.to_string()))?;
    if args.detach && args.ready.is_none() {
        if passed.is_some() {
            let why = "a service manager has passed a socket, and keeps track of this process: omit --detach";
            return Err(Failure::Other(why.into()));
        }
        return detach();
    }
    let ready = args.ready.map(handed_down).transpose().map_err(|cause| {
        Failure::Other(format!("--ready is for narrows itself, which passes a descriptor by it: {cause}"))
    })?;
    let ttl = ttl.map(|span| Duration::from_nanos(span.nanos()));
    let stay = Stay { ttl, ready: ready.map(File::from), passed, until: None };
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    // It ends with this process, whose number it serves.
    let _web = args.web.map(crate::web::beside).transpose()?;
    let mut job = Job::new(RunKind::Up);
    job.greeting = true;
    job.stay = Some(stay);
    job.output = args.output.clone();
    go(scenario, job, &args.live)
}

/// The run with this name, if it is running.
fn there(name: &RunName) -> Result<Option<Client>, Failure> {
    let (all, _) = known_runs(&control::run_folder()).map_err(|error| Failure::Other(error.to_string()))?;
    let its = |run: &KnownRun| run.about.name.as_ref() == Some(name) && run.liveness != Liveness::Dead;
    Ok(all.into_iter().find(its).map(|run| Client::at(&run.socket)))
}

/// Changes the run to match the scenario as far as possible. Status 1 if something needs a new run.
fn replace(name: &RunName, run: &Client, args: &Up) -> Result<u8, Failure> {
    let scenario = live_scenario(args.scenario.as_deref(), &args.link, &args.live)?;
    let file = args.scenario.as_deref().unwrap_or(Path::new("the flags"));
    let Difference { assignments, others } = &approach(run, &scenario, file)?;
    if !args.live.report.quiet {
        match assignments.is_empty() {
            true if others.is_empty() => print(&format!("{name}: no difference\n"))?,
            true => {}
            false => print(&format!("{name}: changed {}\n", assignments.join(" ")))?,
        }
    }
    if others.is_empty() {
        return Ok(0);
    }
    let rest = Difference { others: others.clone(), ..Difference::default() };
    say(format_args!("narrows: {name}: {rest}end it with narrows down {name}, then start it with that"));
    Ok(1)
}

/// Runs the same command line in the background. Errors until the network is up go to the caller.
fn detach() -> Result<u8, Failure> {
    let failed = |action: &'static str| {
        move |cause: io::Error| Failure::Other(format!("cannot start in the background: {action}: {cause}"))
    };
    let (path, output) = output().map_err(failed("make a file for the output"))?;
    let mut said = output.try_clone().map_err(failed("use the file for the output"))?;
    let (reader, writer) = io::pipe().map_err(failed("make a pipe"))?;
    let mut given = env::args_os();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(given.next().unwrap_or_else(|| OsString::from("narrows")));
    // The first argument is the command's own name.
    command.args(given.next());
    let descriptor = hand_down(&mut command, writer.into());
    command.args(["--ready", &descriptor.to_string()]);
    if let Some(path) = &path {
        command.arg("--output").arg(path);
    }
    let errors = output.try_clone().map_err(failed("use the file for the output"))?;
    command.args(given).stdin(Stdio::null()).stdout(output).stderr(errors);
    without_terminal(&mut command);
    let mut child = command.spawn().map_err(failed("start narrows"))?;
    // Close our end, so that the end of the child is detected.
    drop(command);
    let mut name = String::new();
    BufReader::new(reader).read_line(&mut name).map_err(failed("wait for the network"))?;
    if !name.is_empty() {
        print(&name)?;
        return Ok(0);
    }
    let status = child.wait().map_err(failed("wait for narrows"))?;
    let mut text = Vec::new();
    // If the output cannot be read, or stderr is closed, the exit status is enough.
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
    let _ = io::stderr().write_all(&text);
    if let Some(path) = path {
        let _ = fs::remove_file(path);
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // Exit codes have 8 bits.
    Ok(code as u8)
}

/// A file for the output, readable by its owner only. If the user has no state folder, it has no name and
/// vanishes with the network.
fn output() -> io::Result<(Option<PathBuf>, File)> {
    let name = format!("{:013}-{}.log", clock_realtime() / 1_000_000, process::id());
    let make =
        |path: &Path| OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
    let Some(folder) = state::folder().map(|folder| folder.join("output")) else {
        let path = env::temp_dir().join(format!("narrows-{name}"));
        let file = make(&path)?;
        fs::remove_file(path)?;
        return Ok((None, file));
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    forget_old(&folder);
    let path = folder.join(name);
    let file = make(&path)?;
    Ok((Some(path), file))
}

/// Removes the oldest outputs of networks that are down.
fn forget_old(folder: &Path) {
    let in_use: Vec<_> = known_runs(&control::run_folder())
        .map(|(runs, _)| runs.into_iter().filter_map(|run| run.about.output).collect())
        .unwrap_or_default();
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "log");
    let mut old: Vec<_> = paths.filter(|path| is_log(path) && !in_use.contains(path)).collect();
    old.sort();
    let many = old.len().saturating_sub(MOST_KEPT - 1);
    for path in &old[..many] {
        // A concurrent process may have removed it.
        let _ = fs::remove_file(path);
    }
}

//! `narrows doctor --for clab`: what `narrows clab` needs, and what is missing.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use narrows_io::child_lifetime::terminate_with_us;
use narrows_io::process;

use super::{Page, docker};
use crate::clab::program;

/// The maximum time and length of an answer of containerlab.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: u64 = 1 << 16;
/// The option of `containerlab events` without which nodes that run already would be missed.
const NEEDED: &str = "--initial-state";

/// The section; its findings begin with yes or no, like those of modes. Whether all is there.
pub(super) fn findings(page: &mut Page) -> bool {
    page.heading("What clab needs", "clab");
    let program = program(None);
    let is_there = process::check(&Command::new(&program));
    let mut all = vec![(
        "containerlab",
        match &is_there {
            Ok(()) => version(&program),
            Err(error) => format!("no: {error}; install containerlab, or name it in CONTAINERLAB"),
        },
    )];
    if is_there.is_ok() {
        all.push(("containerlab events", events(&program)));
    }
    all.extend(docker::privileges());
    all.extend([("TCX links", docker::kernel()), ("engine", docker::engine())]);
    all.iter().for_each(|(topic, finding)| page.say(topic, finding));
    page.say("not needed", "changes to images or to containerlab; its `tools netem`; the kernel's netem");
    all.iter().all(|(_, finding)| finding.starts_with("yes"))
}

fn version(program: &Path) -> String {
    let said = match answer(program, &["version"]) {
        Ok(said) => said,
        Err(error) => return format!("no: {} version: {error}", program.display()),
    };
    let version = said.lines().find_map(|line| line.trim().strip_prefix("version:"));
    let version = version.map_or("an unknown version", str::trim);
    format!("yes: {}, {version}", program.display())
}

/// A version without the command prints its general help, or an error.
fn events(program: &Path) -> String {
    match answer(program, &["events", "--help"]) {
        Ok(said) if said.contains(NEEDED) => format!("yes: with {NEEDED}"),
        Ok(_) => format!("no: this version has no `events {NEEDED}`; install a newer one"),
        Err(error) => format!("no: {} events: {error}", program.display()),
    }
}

/// What it prints.
fn answer(program: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    terminate_with_us(&mut command);
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let output = child.stdout.take();
    let (to, answers) = channel();
    thread::spawn(move || {
        let mut said = Vec::new();
        let read = output.map(|output| output.take(LONGEST).read_to_end(&mut said));
        // Nobody waits for it after the time is over.
        let _ = to.send(match read {
            Some(Err(error)) => Err(error.to_string()),
            Some(Ok(_)) | None => Ok(String::from_utf8_lossy(&said).into_owned()),
        });
    });
    let said = answers.recv_timeout(PATIENCE);
    // It has printed what matters, or will not.
    let _ = child.kill();
    let _ = child.wait();
    said.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())))
}

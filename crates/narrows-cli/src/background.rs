//! Commands in the background: `--detach`.
//!
//! The same program runs the command in a session of its own, with a file for its output. It tells the one that
//! started it when its network is up.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, process};

use clap::Args;
use narrows_io::child_lifetime::{hand_down, handed_down, without_terminal};
use narrows_io::clock::clock_realtime;
use narrows_live::control::{self, known_runs};
use narrows_live::stay::Ready;

use crate::output::{Failure, print};
use crate::state;

/// Maximum number of stored outputs, in addition to those of running networks.
const MOST_KEPT: usize = 20;

/// The most bytes of output that are looked through for warnings.
const MOST_WARNINGS: usize = 1 << 16;

/// Arguments of commands that can run in the background.
#[derive(Debug, Args)]
pub(crate) struct Background {
    /// Return once the network is up; keep it up in the background
    #[arg(long, short)]
    detach: bool,
    /// In the background: descriptor that reports when the network is up
    #[arg(long, hide = true)]
    ready: Option<i32>,
    /// In the background: file for the output
    #[arg(long, hide = true)]
    pub(crate) output: Option<PathBuf>,
}

impl Background {
    /// Whether this process is the one in the background.
    pub(crate) fn is_there(&self) -> bool {
        self.ready.is_some()
    }

    /// Whether this process is to start one in the background.
    pub(crate) fn is_asked(&self) -> bool {
        self.detach && !self.is_there()
    }

    /// If asked, runs the same command line in the background. Errors until the network is up go to the caller, and
    /// so does its status.
    pub(crate) fn detach(&self, scenario: Option<&Path>) -> Result<Option<u8>, Failure> {
        if !self.is_asked() {
            return Ok(None);
        }
        let mut input = Vec::new();
        if scenario == Some(Path::new("-")) {
            io::stdin().read_to_end(&mut input).map_err(failed("read the scenario"))?;
        }
        let mut given = env::args_os();
        let name = given.next().unwrap_or_else(|| OsString::from("narrows"));
        match start(name, given.collect(), &input, &[])? {
            Started::Up { name, said } => {
                // If stderr is closed, what it would say is in the output.
                let _ = io::stderr().write_all(said.as_bytes());
                print(&format!("{name}\n"))?;
                Ok(Some(0))
            }
            Started::Failed { said, status } => {
                // If stderr is closed, the exit status is enough.
                let _ = io::stderr().write_all(&said);
                Ok(Some(status))
            }
        }
    }

    /// Who waits for the network of this process.
    pub(crate) fn ready(&self) -> Result<Ready, Failure> {
        let ready = self.ready.map(handed_down).transpose().map_err(|cause| {
            Failure::Other(format!("--ready is for narrows itself, which passes a descriptor by it: {cause}"))
        })?;
        Ok(Ready(ready.map(File::from)))
    }
}

/// What came of a command in the background.
pub(crate) enum Started {
    /// The name of its run, and its warnings.
    Up { name: String, said: String },
    /// What it wrote, and its status.
    Failed { said: Vec<u8>, status: u8 },
}

/// Runs narrows in the background, under this name, with these arguments (the command's own name first) and this
/// input, without these variables. Returns once its network is up, or cannot be.
pub(crate) fn start(
    name: OsString,
    arguments: Vec<OsString>,
    input: &[u8],
    without: &[&str],
) -> Result<Started, Failure> {
    let (path, output) = output().map_err(failed("make a file for the output"))?;
    let mut said = output.try_clone().map_err(failed("use the file for the output"))?;
    let (reader, writer) = io::pipe().map_err(failed("make a pipe"))?;
    let mut command = Command::new("/proc/self/exe");
    let mut arguments = arguments.into_iter();
    command.arg0(name).args(arguments.next());
    let descriptor = hand_down(&mut command, writer.into());
    command.args(["--ready", &descriptor.to_string()]);
    if let Some(path) = &path {
        command.arg("--output").arg(path);
    }
    let errors = output.try_clone().map_err(failed("use the file for the output"))?;
    command.args(arguments).stdout(output).stderr(errors);
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    for variable in without {
        command.env_remove(variable);
    }
    without_terminal(&mut command);
    let mut child = command.spawn().map_err(failed("start narrows"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended already, its output says why.
        let _ = stdin.write_all(input);
    }
    // Close our end, so that the end of the child is detected.
    drop(command);
    let mut name = String::new();
    BufReader::new(reader).read_line(&mut name).map_err(failed("wait for the network"))?;
    if !name.is_empty() {
        let said = warnings(&said);
        return Ok(Started::Up { name: name.trim_end().to_owned(), said });
    }
    let status = child.wait().map_err(failed("wait for narrows"))?;
    let mut text = Vec::new();
    // If the output cannot be read, the exit status is enough.
    let _ = said.rewind().and_then(|()| said.read_to_end(&mut text));
    if let Some(path) = path {
        let _ = fs::remove_file(path);
    }
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // Exit codes have 8 bits.
    Ok(Started::Failed { said: text, status: code as u8 })
}

/// The warnings in the output so far. The network goes on writing through the same open file, so this must not move its
/// offset.
fn warnings(output: &File) -> String {
    let mut text = vec![0; MOST_WARNINGS];
    let length = output.read_at(&mut text, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&text[..length]);
    text.lines().filter(|line| line.starts_with("narrows: ")).flat_map(|line| [line, "\n"]).collect()
}

fn failed(action: &'static str) -> impl Fn(io::Error) -> Failure {
    move |cause| Failure::Other(format!("cannot start in the background: {action}: {cause}"))
}

/// A file for the output, readable by its owner only. If the user has no state folder, it has no name and
/// vanishes with the network.
fn output() -> io::Result<(Option<PathBuf>, File)> {
    let name = format!("{:013}-{}.log", clock_realtime() / 1_000_000, process::id());
    let named =
        |path: &Path, cause: io::Error| io::Error::new(cause.kind(), format!("{}: {cause}", path.display()));
    let make = |path: &Path| {
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path);
        file.map_err(|cause| named(path, cause))
    };
    let Some(folder) = state::folder().map(|folder| folder.join("output")) else {
        let path = env::temp_dir().join(format!("narrows-{name}"));
        let file = make(&path)?;
        fs::remove_file(path)?;
        return Ok((None, file));
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|cause| named(&folder, cause))?;
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

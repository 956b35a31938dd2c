//! `narrows tc commands` and `narrows ipfw commands`: what a script would configure.
//!
//! Scripts are programs: what they do depends on their arguments, on the host, on other programs. A shell runs the script in
//! namespaces of its own (`commands/cage.sh`), where functions stand in for tc, ip, ipfw and the like
//! (`commands/stand-ins.sh`) and write down how they were called.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::thread;

use clap::{Args, ValueHint};
use narrows_io::host::user;
use narrows_io::ways::in_user_namespace;
use narrows_scenario::{printable, span_of_time};

use crate::output::Failure;

const CAGE: &str = include_str!("commands/cage.sh");
const STAND_INS: &str = include_str!("commands/stand-ins.sh");
/// How long a script may run, in seconds: it waits for nothing.
const SECONDS: u32 = 60;
/// How much is read of its commands, and of what else happened.
const MOST_CALLS: u64 = 256 << 20;
const MOST_SAID: u64 = 1 << 20;
/// The largest script.
const LARGEST_SCRIPT: u64 = 16 << 20;
/// The user and group without rights.
const NOBODY: u32 = 65_534;

/// Arguments of both.
#[derive(Debug, Args)]
#[command(after_help = "\
The script runs in a sandbox: without a network, with tools for text only, on copies of the files beside
it, for at most 60 s. Programs that configure networks (tc, ip, iptables, ipset, ipfw, dnctl, sysctl,
sleep) are written down and succeed; sudo, ssh and docker exec run what they are given; others do nothing.
Questions about the host are answered as if it had one interface (--device) with 192.0.2.2/24. Needs
bash, unshare (util-linux), and user namespaces that ordinary users may create, also as root.

Examples:
  narrows tc commands shape.sh start eth0 10mbit
  narrows tc commands wondershaper -a eth0 -d 8192 -u 1024 > shape.tc; narrows tc check shape.tc
  narrows ipfw commands /etc/rc.firewall workstation")]
pub(crate) struct Commands {
    /// The interface of the host that the script finds [default: eth0 for tc, em0 for ipfw]
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Stop the script when it has slept for this long: the commands until then are shown
    #[arg(long, value_name = "TIME", default_value = "1h")]
    until: String,
    /// Script, then its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SCRIPT",
        value_hint = ValueHint::FilePath
    )]
    words: Vec<String>,
}

/// The system that a script finds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum System {
    Linux,
    FreeBsd,
}

impl System {
    /// As `uname` prints it.
    fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::FreeBsd => "FreeBSD",
        }
    }

    fn device(self) -> &'static str {
        match self {
            Self::Linux => "eth0",
            Self::FreeBsd => "em0",
        }
    }
}

/// What else happened.
#[derive(Debug, Default, PartialEq, Eq)]
struct Happened {
    /// Why it was not run.
    failed: Option<String>,
    is_late: bool,
    has_slept: bool,
    status: u32,
    /// Programs that do nothing.
    unknown: BTreeSet<String>,
    /// The beginning of its standard error.
    said: Vec<String>,
}

impl Happened {
    /// From the cage's standard error, which has other programs' lines, too.
    fn parse(text: &str) -> Self {
        let mut happened = Self::default();
        let mut others = Vec::new();
        for line in text.lines() {
            match line.split_once(' ').unwrap_or((line, "")) {
                ("failed", why) => happened.failed = Some(why.into()),
                ("late", "") => happened.is_late = true,
                ("slept", "") => happened.has_slept = true,
                ("status", status) => happened.status = status.parse().unwrap_or(0),
                ("unknown", name) => drop(happened.unknown.insert(name.into())),
                ("said", line) => happened.said.push(line.into()),
                _ => others.push(line.to_owned()),
            }
        }
        if let Some(why) = &mut happened.failed
            && !others.is_empty()
        {
            *why = format!("{why}: {}", others.join("; "));
        }
        happened
    }

    /// For people, line by line.
    fn remarks(&self, until: &str) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.has_slept {
            remarks.push(format!("the script was stopped after it had slept for {until} (--until)"));
        } else if self.is_late {
            remarks.push(format!("the script was stopped after {SECONDS} s"));
        } else if self.status != 0 {
            let said = self.said.iter().map(|line| format!(": {line}")).collect::<String>();
            remarks.push(format!("the script ended with status {}{said}", self.status));
        }
        let missing = self.said.iter().filter(|line| line.contains("No such file"));
        if self.status == 0 {
            remarks.extend(missing.map(|line| format!("the script said: {line}")));
        }
        if !self.unknown.is_empty() {
            let names: Vec<_> = self.unknown.iter().map(String::as_str).collect();
            remarks.push(format!("without effect here: {}", names.join(", ")));
        }
        remarks
    }
}

/// Prints what the script calls.
pub(crate) fn commands(args: &Commands, system: System) -> Result<u8, Failure> {
    let (script, rest) = args.words.split_first().unwrap_or((const { &String::new() }, &[]));
    let path = found(script)?;
    let until = span_of_time("until", &args.until)?.nanos().div_ceil(1_000_000_000);
    let device = args.device.as_deref().unwrap_or(system.device());
    if device.is_empty() || device.len() > 15 || device.contains(|c: char| c == '/' || c.is_whitespace()) {
        return Err(Failure::Other(format!(
            "--device `{}`: no interface can have this name",
            printable(device)
        )));
    }
    let copies = Copies::of(&path).map_err(|cause| cannot(script, &cause.to_string()))?;
    let mut command = process::Command::new("unshare");
    command
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "--pid",
            "--ipc",
            "--uts",
            "--fork",
            "--kill-child",
        ])
        .args(["bash", "-c", CAGE, "cage"])
        .arg(&path)
        .args([&SECONDS.to_string(), device])
        .args(rest)
        .env("NARROWS_STAND_INS", STAND_INS)
        .env("NARROWS_UNTIL", until.to_string())
        .env("NARROWS_SYSTEM", system.name())
        .env_remove("BASH_ENV")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // What root starts would own the host's files, also in a user namespace. Root of one has nobody else there.
    if user() == 0 && !in_user_namespace().unwrap_or(false) {
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut running = command
        .spawn()
        .map_err(|cause| cannot(script, &format!("unshare, of util-linux, does not start: {cause}")))?;
    // Closed when this process ends in whatever way.
    let mut alive = running.stdin.take();
    // If the cage has ended, it says why.
    let _ = alive.as_mut().map(|input| copies.write(input));
    let said = running.stderr.take().map(|stderr| thread::spawn(move || read(stderr, MOST_SAID)));
    let calls = running.stdout.take().map_or(Ok(Vec::new()), |stdout| read(stdout, MOST_CALLS));
    let calls = calls.map_err(|cause| cannot(script, &cause.to_string()))?;
    let status = running.wait().map_err(|cause| cannot(script, &cause.to_string()))?;
    let said = said.and_then(|thread| thread.join().ok()?.ok()).unwrap_or_default();
    drop(alive);
    let said = String::from_utf8_lossy(&said);
    let happened = Happened::parse(&said);
    if let Some(why) = &happened.failed {
        return Err(cannot(script, why));
    }
    if !status.success() {
        return Err(cannot(script, &format!("{} (narrows doctor tells about user namespaces)", said.trim())));
    }
    let shown = String::from_utf8_lossy(&calls);
    io::stdout()
        .write_all(printable(&shown).as_bytes())
        .map_err(|cause| Failure::Other(format!("standard output: {cause}")))?;
    for remark in happened.remarks(&args.until) {
        // If standard error is closed, nobody wants to know.
        let _ = writeln!(io::stderr(), "narrows: {}", printable(&remark));
    }
    // A script may end with any status that its last program had; without a command it was of no use.
    Ok(u8::from(calls.is_empty() && (happened.status != 0 || happened.is_late)))
}

/// Reads at most so much.
fn read(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    from.take(most).read_to_end(&mut all)?;
    Ok(all)
}

/// Copies of a script and of the files beside it.
struct Copies(Vec<(PathBuf, Vec<u8>)>);

/// Folders that the cage has as they are.
const VISIBLE: [&str; 7] = ["/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64"];
/// Folders of programs, of which a script needs none but itself.
const OF_PROGRAMS: [&str; 7] =
    ["/", "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
/// The largest copy, how deep the folders are that are copied, and how many bytes and files in all.
const LARGEST: u64 = 256 << 10;
const DEEPEST: usize = 3;
const MOST_BYTES: usize = 16 << 20;
const MOST_FILES: usize = 500;

impl Copies {
    fn of(script: &Path) -> io::Result<Self> {
        let mut copies = Self(Vec::new());
        if VISIBLE.iter().any(|folder| script.starts_with(folder)) {
            return Ok(copies);
        }
        copies.0.push((script.to_owned(), fs::read(script)?));
        let folder = script.parent().unwrap_or(Path::new("/"));
        if !OF_PROGRAMS.iter().any(|programs| folder == Path::new(programs)) {
            copies.add(folder, DEEPEST);
        }
        Ok(copies)
    }

    /// Adds the files of a folder, as far as they can be read and there is room.
    fn add(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let Ok(data) = path.symlink_metadata() else { continue };
            if data.is_dir() && depth > 1 {
                self.add(&path, depth - 1);
            }
            let bytes: usize = self.0.iter().map(|(_, bytes)| bytes.len()).sum();
            let fits = self.0.len() < MOST_FILES && bytes + data.len() as usize <= MOST_BYTES;
            // The cage reads names line by line.
            let is_line = !path.as_os_str().as_encoded_bytes().contains(&b'\n');
            let is_new = path != self.0[0].0;
            if data.is_file() && data.len() <= LARGEST && fits && is_line && is_new {
                self.0.extend(fs::read(&path).ok().map(|bytes| (path, bytes)));
            }
        }
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        for (path, bytes) in &self.0 {
            write!(to, "{} ", bytes.len())?;
            to.write_all(path.as_os_str().as_encoded_bytes())?;
            to.write_all(b"\n")?;
            to.write_all(bytes)?;
        }
        to.write_all(b"\n")?;
        to.flush()
    }
}

fn cannot(script: &str, why: &str) -> Failure {
    Failure::Other(format!("cannot run `{}` in a sandbox: {}", printable(script), printable(why)))
}

/// The script, by its absolute path.
fn found(script: &str) -> Result<PathBuf, Failure> {
    let wrong = |why: &str| Failure::Other(format!("the script `{}`: {why}", printable(script)));
    let path = Path::new(script).canonicalize().map_err(|cause| wrong(&cause.to_string()))?;
    match path.metadata() {
        Ok(data) if !data.is_file() => return Err(wrong("not a file")),
        Ok(data) if data.len() > LARGEST_SCRIPT => return Err(wrong("larger than 16 MiB")),
        Ok(_) => {}
        Err(cause) => return Err(wrong(&cause.to_string())),
    }
    if path.as_os_str().as_encoded_bytes().contains(&b'\n') {
        return Err(wrong("its name has more than one line"));
    }
    let mut first = Vec::new();
    let file = fs::File::open(&path).map_err(|cause| wrong(&cause.to_string()))?;
    BufReader::new(file.take(256))
        .read_until(b'\n', &mut first)
        .map_err(|cause| wrong(&cause.to_string()))?;
    match other_interpreter(&String::from_utf8_lossy(&first)) {
        Some(other) => {
            Err(wrong(&format!("it is for `{}`, not for a shell like sh or bash", printable(&other))))
        }
        None => Ok(path),
    }
}

/// The program that the first line of a script names, if that is no shell of the kind that runs it here.
fn other_interpreter(line: &str) -> Option<String> {
    let mut words = line.strip_prefix("#!")?.split_whitespace();
    let mut name = words.next()?.rsplit('/').next()?;
    if name == "env" {
        name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    }
    (!["sh", "bash", "dash", "ash", "ksh", "zsh", "busybox"].contains(&name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_other_languages_are_known() {
        for line in [
            "",
            "tc qdisc",
            "#!/bin/sh",
            "#! /bin/bash -e",
            "#!/usr/bin/env -S bash -x",
            "#!/bin/sh /etc/rc.common",
        ] {
            assert_eq!(other_interpreter(line), None, "{line}");
        }
        for (line, name) in
            [("#!/usr/bin/env python3", "python3"), ("#!/bin/csh -f", "csh"), ("#!/usr/bin/perl", "perl")]
        {
            assert_eq!(other_interpreter(line).as_deref(), Some(name));
        }
    }

    #[test]
    fn what_happened_is_told() {
        let text = "status 3\nunknown iperf3\nunknown ping\nsaid x.sh: line 3: y: unbound variable\n";
        let happened = Happened::parse(text);
        let remarks = happened.remarks("1h");
        assert_eq!(remarks[0], "the script ended with status 3: x.sh: line 3: y: unbound variable");
        assert_eq!(remarks[1..], ["without effect here: iperf3, ping"]);
        let late = Happened::parse("late\nstatus 137\n").remarks("1h");
        assert_eq!(late, ["the script was stopped after 60 s"]);
        let slept = Happened::parse("slept\nstatus 137\n").remarks("2m");
        assert_eq!(slept, ["the script was stopped after it had slept for 2m (--until)"]);
        assert!(Happened::parse("status 0\nsaid warning: x\n").remarks("1h").is_empty());
        let missing = Happened::parse("status 0\nsaid x.sh: line 1: /etc/rules: No such file or directory\n")
            .remarks("1h");
        assert_eq!(missing, ["the script said: x.sh: line 1: /etc/rules: No such file or directory"]);
    }

    #[test]
    fn what_the_kernel_refuses_is_told_with_its_words() {
        let text =
            "mount: /sys: permission denied.\nfailed the kernel refuses a file system for the script\n";
        let why = Happened::parse(text).failed.unwrap();
        assert_eq!(why, "the kernel refuses a file system for the script: mount: /sys: permission denied.");
    }
}

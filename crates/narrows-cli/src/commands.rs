//! `narrows tc commands` and `narrows ipfw commands`: what a script would configure.
//!
//! Scripts are programs: what they do depends on their arguments, on the host, on other programs. A shell runs the script in
//! namespaces of its own (`commands/cage.sh`), where functions stand in for tc, ip, ipfw and the like
//! (`commands/stand-ins.sh`) and write down how they were called.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use clap::{Args, ValueHint};
use narrows_scenario::{printable, span_of_time};

use crate::output::Failure;

const CAGE: &str = include_str!("commands/cage.sh");
const STAND_INS: &str = include_str!("commands/stand-ins.sh");
/// How long a script may run, in seconds: it waits for nothing.
const SECONDS: u32 = 60;

/// Arguments of both.
#[derive(Debug, Args)]
#[command(after_help = "\
The script runs in a sandbox: without a network, with tools for text only, on copies of the files beside
it, for at most 60 s. Programs that configure networks (tc, ip, iptables, ipset, ipfw, dnctl, sysctl,
sleep) are written down and succeed; sudo, ssh and docker exec run what they are given; others do nothing.
Questions about the host are answered as if it had one interface (--device) with 192.0.2.2/24. Needs
bash, unshare (util-linux), and root or user namespaces.

Examples:
  narrows tc commands shape.sh start eth0 10mbit
  narrows tc commands wondershaper -a eth0 -d 8192 -u 1024 > shape.tc && narrows tc check shape.tc
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
    let mut running = process::Command::new("unshare")
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
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| cannot(script, &format!("unshare, of util-linux, does not start: {cause}")))?;
    // Closed when this process ends in whatever way.
    let alive = running.stdin.take();
    let output = running.wait_with_output().map_err(|cause| cannot(script, &cause.to_string()))?;
    drop(alive);
    let happened = Happened::parse(&String::from_utf8_lossy(&output.stderr));
    if let Some(why) = &happened.failed {
        return Err(cannot(script, why));
    }
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(cannot(script, &format!("{} (narrows doctor tells about user namespaces)", why.trim())));
    }
    io::stdout()
        .write_all(&output.stdout)
        .map_err(|cause| Failure::Other(format!("standard output: {cause}")))?;
    for remark in happened.remarks(&args.until) {
        // If standard error is closed, nobody wants to know.
        let _ = writeln!(io::stderr(), "narrows: {}", printable(&remark));
    }
    Ok(0)
}

fn cannot(script: &str, why: &str) -> Failure {
    Failure::Other(format!("cannot run `{}` in a sandbox: {}", printable(script), printable(why)))
}

/// The script, by its absolute path.
fn found(script: &str) -> Result<PathBuf, Failure> {
    let wrong = |why: &str| Failure::Other(format!("the script `{}`: {why}", printable(script)));
    let path = Path::new(script).canonicalize().map_err(|cause| wrong(&cause.to_string()))?;
    match path.metadata() {
        Ok(data) if data.is_file() => Ok(path),
        Ok(_) => Err(wrong("not a file")),
        Err(cause) => Err(wrong(&cause.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

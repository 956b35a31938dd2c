//! `narrows cni install` and `uninstall`: the plugin on a node.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use clap::Args;
use narrows_containers::cni::{ConfigList, PLUGIN};
use narrows_io::process::Signal;
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_scenario::read_text;

use super::other;
use crate::down::within;
use crate::fail::FailName;
use crate::output::{Failure, print, say};

/// The time between two looks at the configuration: another plugin's installer may write it again.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// Ends of names of network configurations, of which runtimes take the first by name.
const ENDS: [&str; 3] = ["conf", "conflist", "json"];

/// Additional help text of `install`, at the end of the help.
const HELP: &str = "\
The program is copied to --bin-dir as narrows-cni, and added at the end of the chain that the runtime
uses: the first file of --conf-dir by name, which must be a list of plugins (*.conflist). Pods that
start from then on get the networks of their annotations narrows.KEY, over those of --link.

Examples:
  narrows cni install
  narrows cni install --link delay=5ms --link up.loss=0.1% --fail closed
  narrows cni install --bin-dir /host/opt/cni/bin --conf-dir /host/etc/cni/net.d --keep";

/// Where the plugin is installed.
#[derive(Debug, Args)]
struct Folders {
    /// Folder of plugins
    #[arg(long, value_name = "FOLDER", default_value = super::PLUGINS)]
    bin_dir: PathBuf,
    /// Folder of network configurations
    #[arg(long, value_name = "FOLDER", default_value = super::CONFIGURATIONS)]
    conf_dir: PathBuf,
}

/// The arguments of `narrows cni install`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Install {
    #[command(flatten)]
    folders: Folders,
    /// The file in --conf-dir [default: the first by name]
    #[arg(long, value_name = "NAME.conflist")]
    file: Option<PathBuf>,
    /// A key of the link that every pod gets, as in delay=5ms; repeatable [default: none]
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    link: Vec<(String, String)>,
    /// If narrows is killed at a pod: let everything pass there (open), or nothing (closed)
    #[arg(long, value_enum, default_value_t)]
    fail: FailName,
    /// Stay, and add the plugin again whenever it is missing
    #[arg(long)]
    keep: bool,
}

/// The arguments of `narrows cni uninstall`.
#[derive(Debug, Args)]
#[command(after_help = "\
Networks of running pods stay until the pods end. Runtimes start the program once more for each pod that
began while it was in the chain: with --program, such a pod cannot be removed.

Examples:
  narrows cni uninstall")]
pub(crate) struct Uninstall {
    #[command(flatten)]
    folders: Folders,
    /// Remove the program, too
    #[arg(long)]
    program: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()));
    split.ok_or_else(|| "expected KEY=VALUE, such as delay=5ms".into())
}

pub(super) fn install(args: &Install) -> Result<u8, Failure> {
    let program = args.folders.bin_dir.join(PLUGIN);
    let mut own = File::open("/proc/self/exe")
        .map_err(|cause| other(format!("cannot read narrows itself: {cause}")))?;
    replace(&program, 0o755, |file| io::copy(&mut own, file).map(drop))?;
    print(&format!("installed {}\n", program.display()))?;
    let mut signals = EndSignals::catch().map_err(|cause| other(format!("cannot catch signals: {cause}")))?;
    if !args.keep {
        add(args)?;
        return Ok(0);
    }
    let mut last = None;
    loop {
        // A network's own installer may not have come yet.
        let refusal = add(args).err().map(|failure| failure.to_string());
        if refusal != last {
            refusal.iter().for_each(|why| say(format_args!("narrows: {why}; waiting")));
            last = refusal;
        }
        wait(&mut [Waiting::readable(&signals)], Some(within(BETWEEN_LOOKS)))
            .map_err(|cause| other(format!("cannot wait: {cause}")))?;
        if let Some(ended) = signals.take().map_err(|cause| other(format!("cannot read signals: {cause}")))? {
            // Both are normal ways to end it.
            let as_meant = [Signal::SIGINT, Signal::SIGTERM].contains(&ended.signal);
            return Ok(if as_meant { 0 } else { 128 + ended.signal as u8 });
        }
    }
}

/// Adds the plugin to the chain, unless it is there as asked.
fn add(args: &Install) -> Result<(), Failure> {
    let file = match &args.file {
        Some(file) => args.folders.conf_dir.join(file),
        None => configurations(&args.folders.conf_dir)?.into_iter().next().ok_or_else(|| {
            other(format!("{}: no network configuration (*.conflist) there", args.folders.conf_dir.display()))
        })?,
    };
    let (text, name) = read_text(&file, "network configuration")?;
    let list = ConfigList::read(&text, &name).map_err(other)?;
    let with = list.with(&args.link, args.fail == FailName::Closed)?;
    if with != text {
        write(&file, &with)?;
        print(&format!("added {PLUGIN} to the network {} in {name}\n", list.network))?;
    }
    Ok(())
}

pub(super) fn uninstall(args: &Uninstall) -> Result<u8, Failure> {
    for file in configurations(&args.folders.conf_dir)? {
        let (text, name) = read_text(&file, "network configuration")?;
        // What is no chain cannot have us in it.
        let Ok(list) = ConfigList::read(&text, &name) else { continue };
        if let Some(without) = list.without() {
            write(&file, &without)?;
            print(&format!("took {PLUGIN} out of the network {} in {name}\n", list.network))?;
        }
    }
    let program = args.folders.bin_dir.join(PLUGIN);
    if args.program {
        match fs::remove_file(&program) {
            Ok(()) => print(&format!("removed {}\n", program.display()))?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => return Err(other(format!("cannot remove {}: {cause}", program.display()))),
        }
    }
    Ok(0)
}

/// The network configurations of a folder, in the order in which runtimes look at them.
pub(crate) fn configurations(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |cause: io::Error| other(format!("cannot read the folder {}: {cause}", folder.display()));
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known)) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Replaces a configuration; its permissions stay.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let mode = fs::metadata(file).map_or(0o644, |about| about.permissions().mode() & 0o777);
    replace(file, mode, |file| file.write_all(text.as_bytes()))
}

/// Replaces a file at once: whoever reads it meanwhile finds the old or the new one.
fn replace(path: &Path, mode: u32, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Failure> {
    // Runtimes take no notice of such a name.
    let new = path.with_file_name(format!(".{PLUGIN}-{}", process::id()));
    let failed = |cause: io::Error| {
        let _ = fs::remove_file(&new);
        other(format!("cannot write {}: {cause}", path.display()))
    };
    let mut file = File::create(&new).map_err(failed)?;
    file.set_permissions(Permissions::from_mode(mode)).and_then(|()| write(&mut file)).map_err(failed)?;
    file.sync_all().and_then(|()| fs::rename(&new, path)).map_err(failed)
}

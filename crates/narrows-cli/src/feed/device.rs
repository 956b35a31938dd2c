//! `narrows feed --device PATH`: a feed as a device file, with a program that uses it.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command};

use clap::ValueEnum;
use narrows_io::child_lifetime::{end_of, end_with_us};
use narrows_io::fuse_file::FuseFile;
use narrows_io::process::{OtherProcess, Signal};
use narrows_io::wait::{EndSignals, Waiting, wait};
use narrows_live::feeds::Place;
use narrows_live::feeds::client::ClientError;
use narrows_live::feeds::device::{Device, DeviceConfig, Served, WhenFull};

use super::{failed, label, values};
use crate::output::{Failure, say};

/// `--when-full`, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Full {
    /// `write` waits until there is room
    Wait,
    /// Values for which there is no room are lost, and `write` succeeds
    Discard,
}

impl From<Full> for WhenFull {
    fn from(full: Full) -> Self {
        match full {
            Full::Wait => Self::Wait,
            Full::Discard => Self::Discard,
        }
    }
}

/// Serves `place` of a run at `path` while `command` runs; without a command, until a signal or the end of the run.
pub(super) fn device(
    run: Option<&OtherProcess>,
    place: &Place,
    path: &Path,
    config: DeviceConfig,
    command: &[String],
) -> Result<u8, Failure> {
    let other = |error: &dyn std::error::Error| Failure::Other(error.to_string());
    // Set up before the file exists, so that a signal removes it.
    let mut signals = EndSignals::catch().map_err(|error| other(&error))?;
    let file = FuseFile::mount(path).map_err(|error| other(&error))?;
    let shown = file.path().display().to_string();
    let mut device = Device::new(file, &place.path, config);
    let mut child = start(command)?;
    let end = child.as_ref().map(end_of).transpose().map_err(|error| other(&error))?;
    if child.is_none() {
        say(format_args!("narrows: {} is at {shown}", label(place)));
    }
    let mut told: Vec<&dyn AsFd> = vec![&signals];
    told.extend(end.as_ref().map(|end| end as &dyn AsFd));
    // A run in another PID namespace is missed when a program next uses the file.
    let both: Vec<&dyn AsFd> = told.iter().copied().chain(run.map(|run| run as &dyn AsFd)).collect();
    let is_over = || run.is_some_and(|run| run.is_over().unwrap_or(true));
    let over = match device.serve(&both) {
        Ok(Served::Told) if !is_over() => "",
        Ok(Served::Told) => "; the run has ended",
        Ok(Served::Over) | Err(ClientError::Over | ClientError::Nobody) => {
            "; the run has ended, or no longer has this feed"
        }
        Err(error) => return Err(failed(place, &error)),
    };
    let counts = device.counts();
    // Remove the file first: a program blocked in a `write` would wait forever.
    drop(device);
    if child.is_some() {
        let mut told: Vec<_> = told.iter().map(Waiting::readable).collect();
        wait(&mut told, None).map_err(|error| other(&error))?;
    }
    let status = match (signals.take().map_err(|error| other(&error))?, child.as_mut()) {
        // The program gets SIGTERM as this process ends.
        (Some(end), Some(_)) => 128 + end.signal as i32,
        (_, Some(child)) => {
            let status = child.wait().map_err(|error| other(&error))?;
            status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
        }
        (_, None) => 0,
    };
    let mut lost = String::new();
    if counts.discarded > 0 {
        lost.push_str(&format!(", {} dropped (queue full)", counts.discarded));
    }
    if counts.negative > 0 {
        lost.push_str(&format!(", {} negative ones counted as no delay", counts.negative));
    }
    say(format_args!("narrows: {} went to {}{lost}{over}", values(counts.values), label(place)));
    Ok(u8::try_from(status).unwrap_or(1))
}

fn start(command: &[String]) -> Result<Option<Child>, Failure> {
    let [program, arguments @ ..] = command else { return Ok(None) };
    let mut command = Command::new(program);
    end_with_us(command.args(arguments), Signal::SIGTERM);
    let child = command.spawn();
    child.map(Some).map_err(|cause| Failure::Other(format!("cannot start {program}: {cause}")))
}

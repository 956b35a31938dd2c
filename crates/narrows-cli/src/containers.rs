//! Common parts of `narrows docker watch` and `narrows compose`.

use std::io::{self, Write};

use clap::Args;
use narrows_containers::engine::Engine;
use narrows_containers::watch::{Asked, WatchError, WatchOptions, dry_run, watch};
use narrows_io::host::Capabilities;
use narrows_io::process::Signal;
use narrows_io::wait::EndSignals;
use narrows_live::control;

use crate::fail::FailName;
use crate::output::{Failure, print, say};

/// Arguments of both.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The engine's Unix socket: PATH or unix://PATH [default: DOCKER_HOST, or the first of Docker's and Podman's that
    /// answers]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<String>,
    /// Until its network is there, and if narrows is killed: let everything pass at a container (open), or nothing (closed)
    #[arg(long, value_enum, default_value_t)]
    pub(crate) fail: FailName,
    /// Print what would be done to the containers that run now, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Watches until a signal.
pub(crate) fn run(args: &WatchArgs, asked: Asked, what: &str) -> Result<u8, Failure> {
    let engine = Engine::find(args.socket.as_deref()).map_err(failure)?;
    let socket = engine.socket().display().to_string();
    let program = std::env::current_exe()
        .map_err(|cause| Failure::Other(format!("cannot find the program narrows itself: {cause}")))?;
    let fails_closed = args.fail == FailName::Closed;
    let run_folder = control::run_folder();
    let options = WatchOptions { engine, asked, fails_closed, run_folder, program };
    if args.dry_run {
        let mut all = String::new();
        dry_run(options, &mut |text| all += &format!("{text}\n")).map_err(failure)?;
        print(if all.is_empty() { "no container runs that is meant\n" } else { &all })?;
        return Ok(0);
    }
    let held = Capabilities::effective()
        .map_err(|cause| Failure::Other(format!("cannot read the capabilities of narrows: {cause}")))?;
    if !held.all() {
        return Err(Failure::Other(
            "attaching to containers needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_SYS_ADMIN over the host, as it loads programs \
             into the kernel: run it as root; narrows doctor --for docker shows what is missing"
                .into(),
        ));
    }
    let signals =
        EndSignals::catch().map_err(|cause| Failure::Other(format!("cannot catch signals: {cause}")))?;
    say(format_args!("narrows: watching {what} at {socket}; Ctrl-C ends it"));
    let ended = watch(options, signals, &mut |text| say(format_args!("narrows: {text}"))).map_err(failure)?;
    let _ = io::stderr().flush();
    // Ctrl-C is the normal way to end it.
    Ok(if ended.signal == Signal::SIGINT { 0 } else { 128 + ended.signal as u8 })
}

fn failure(error: impl Into<WatchError>) -> Failure {
    Failure::Other(error.into().to_string())
}

//! `narrows kernel`: builds and manages the guest kernel for exact virtual time.

mod build;
mod info;

use clap::{Args, Subcommand};
use narrows_guest::kernel::Store;

use crate::output::{Failure, print};

/// What is done with guest kernels.
#[derive(Debug, Subcommand)]
pub(crate) enum KernelCommand {
    /// Build a guest kernel, once, into ~/.cache/narrows/kernels
    Build(build::Build),
    /// List installed guest kernels
    Info(info::Info),
    /// Remove a guest kernel, or all of them
    Remove(Remove),
}

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  narrows kernel remove 6.12.117
  narrows kernel remove --all")]
pub(crate) struct Remove {
    /// Version, as listed by `narrows kernel info`
    #[arg(value_name = "VERSION", required_unless_present = "all")]
    kernel: Option<String>,
    /// Remove all, and the remains of interrupted builds
    #[arg(long, conflicts_with = "kernel")]
    all: bool,
}

/// Runs a subcommand.
pub(crate) fn kernel(command: &KernelCommand) -> Result<u8, Failure> {
    let store = Store::of_user()?;
    match command {
        KernelCommand::Build(build) => build::build(build, store),
        KernelCommand::Info(info) => info::info(info, &store),
        KernelCommand::Remove(remove) => remove_from(&store, remove),
    }
}

fn remove_from(store: &Store, remove: &Remove) -> Result<u8, Failure> {
    let removed = match &remove.kernel {
        Some(version) => vec![store.remove(version)?],
        None => store.remove_all()?,
    };
    for kept in &removed {
        print(&format!("removed {}\n", kept.folder.display()))?;
    }
    if removed.is_empty() {
        print("no guest kernel was kept\n")?;
    }
    Ok(0)
}

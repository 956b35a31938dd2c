//! Commands about the program itself.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// The arguments of `narrows man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows man | man -l -
  narrows man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Folder for narrows.1 and one page per command [default: print narrows.1]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,
}

/// The arguments of `narrows completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows completions bash > ~/.local/share/bash-completion/completions/narrows
  narrows completions zsh > ~/.zfunc/_narrows
  narrows completions fish > ~/.config/fish/completions/narrows.fish")]
pub(crate) struct Completions {
    /// For which shell
    pub(crate) shell: ShellName,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ShellName {
    Bash,
    Zsh,
    Fish,
}

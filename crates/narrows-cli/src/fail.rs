//! `--fail`: what happens to frames when narrows is killed.

use clap::ValueEnum;

/// Its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailName {
    #[default]
    Open,
    Closed,
}

//! Arguments of runs in exact virtual time.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};

/// Whether to run in exact virtual time, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Exact virtual time")]
pub(crate) struct VirtualTime {
    /// Run everything in a guest kernel with a virtual clock, which stops while programs compute and jumps ahead when
    /// all are idle: no lateness, identical results, no root. Host files are visible and protected
    #[arg(long = "virtual")]
    pub(crate) wanted: bool,
    /// Guest kernel: an installed version, or a path [default: the newest installed]
    #[arg(long, value_name = "VERSION|PATH", requires = "wanted", value_hint = ValueHint::FilePath)]
    pub(crate) kernel: Option<OsString>,
    /// Let guest programs write to this folder or file of the host; repeatable [default: none]
    #[arg(long, value_name = "PATH", requires = "wanted")]
    pub(crate) write: Vec<PathBuf>,
    /// Memory of the guest, as in 512M or 2G
    #[arg(long, value_name = "SIZE", requires = "wanted", default_value = "1G")]
    pub(crate) memory: Memory,
    /// Abort when virtual time stands still for this long in real time (a spinning program): 60s, or never
    #[arg(long, value_name = "TIME", requires = "wanted", default_value = "60s")]
    pub(crate) stall: String,
    /// Wall clock at the start: seconds since 1970, or now (no two runs are equal then)
    /// [default: 2026-01-01T00:00:00Z]
    #[arg(long, value_name = "SECONDS", requires = "wanted")]
    pub(crate) wall_clock: Option<WallClock>,
}

/// `--memory`, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory(pub(crate) u64);

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'M') => (&text[..text.len() - 1], 20),
            Some(b'G') => (&text[..text.len() - 1], 30),
            _ => ("", 0),
        };
        let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        let size = size.filter(|size| (64 << 20..=256 << 30).contains(size));
        size.map(Self)
            .ok_or_else(|| "it is a size from 64M to 256G, in whole M or G (MiB, GiB), as in 2G".into())
    }
}

/// `--wall-clock`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WallClock {
    Now,
    /// Unix time in nanoseconds.
    At(u64),
}

impl FromStr for WallClock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "now" {
            return Ok(Self::Now);
        }
        let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds <= 1 << 32);
        let nanoseconds = seconds.map(|seconds| Self::At(seconds * 1_000_000_000));
        nanoseconds.ok_or_else(|| "it is a number of seconds since 1970 up to 4294967296, or now".into())
    }
}

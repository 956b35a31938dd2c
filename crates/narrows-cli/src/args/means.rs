//! By what means packets are moved and captured, and how well.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What is captured of a run.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write a capture of what left the network, with when it was to leave and when it did, and of what was dropped, with
    /// the reason, in the packets' comments
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    /// Keep so many bytes of each packet at most [default: all]
    #[arg(long, value_name = "BYTES", requires = "capture", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capture_bytes: Option<u32>,
}

/// How frames get from the kernel to the engine and back.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packet I/O")]
pub(crate) struct Cabling {
    /// Packet I/O backend [default: best available for run and shell, af_packet for bridge and attach]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<BackendName>,
    /// With --backend af_xdp: look for frames by doing the receive work of the interface's driver, instead of its interrupts,
    /// where the driver can (cards mostly can, veth pairs cannot)
    #[arg(long, requires = "backend")]
    pub(crate) busy_poll: bool,
    /// Take trains of segments in one piece from the kernel, and give it packets that leave together as one: faster. Each packet
    /// still has its own verdict and time; those of a train come at one instant, and the report says how far apart those were
    /// that left as one
    #[arg(long)]
    pub(crate) trains: bool,
}

/// `--backend`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BackendName {
    /// Packet sockets: on any interface
    #[value(name = "af_packet")]
    AfPacket,
    /// TAP devices in place of the hosts' ends of cables, without stamps of arrival: for run and shell
    #[value(name = "tap")]
    Tap,
    /// AF_XDP, in memory shared with the kernel: needs root over the host
    #[value(name = "af_xdp")]
    AfXdp,
}

/// How well the packet loop is to keep up, and what it may take for that.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accuracy")]
pub(crate) struct Pace {
    /// Fail, with exit status 75, if packets are released later than this: p99=50us; also median, p90, p999, max; any
    /// number of times
    #[arg(long, value_name = "QUANTILE=TIME")]
    pub(crate) max_lateness: Vec<String>,
    /// How to wait for the next packet to leave: by a timer until shortly before and then looking without pause, by looking
    /// without pause always, or by a timer alone
    ///
    /// [default: hybrid, and in exact virtual time timer]
    #[arg(long, value_enum)]
    pub(crate) wait: Option<WaitBy>,
    /// Run the packet loop on this processor alone, or each of its threads on one of these, as in 2,3; programs of the run
    /// may still use all
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cpu: Vec<usize>,
    /// Run the packet loop before others: high is nice -20, real-time is before all usual programs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) priority: RunBefore,
}

/// `--wait`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum WaitBy {
    Spin,
    #[default]
    Hybrid,
    Timer,
}

/// `--priority`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum RunBefore {
    #[default]
    Usual,
    High,
    RealTime,
}

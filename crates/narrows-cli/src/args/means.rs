//! Arguments for packet I/O and capture, and their quality.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use narrows_live::director::ProcessorShare;

/// What is captured of a run.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// Write a capture of packets delivered and dropped; comments give due time, lateness, drop reason
    #[arg(long, value_name = "FILE.pcapng")]
    pub(crate) capture: Option<PathBuf>,
    /// Capture at most this many bytes of each packet [default: all]
    #[arg(long, value_name = "BYTES", requires = "capture", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) capture_bytes: Option<u32>,
}

/// What is kept of a run over time.
#[derive(Debug, Args)]
pub(crate) struct Series {
    /// Write time series of each link: backlog, sojourn time, throughput, drops (docs/series.md)
    #[arg(long, value_name = "FILE.csv|.parquet")]
    pub(crate) series: Option<PathBuf>,
    /// Interval of the time series
    #[arg(long, value_name = "TIME", default_value = "100ms", alias = "series-step", requires = "series")]
    pub(crate) interval: String,
    /// Maximum size of the series file, in MB; later rows are left out
    #[arg(long, value_name = "MB", default_value = "1000", requires = "series")]
    pub(crate) series_limit: u64,
    /// Write one row per packet: arrival, verdict, sojourn time, times at each link (docs/report.md)
    #[arg(long, value_name = "FILE.csv|.parquet")]
    pub(crate) packets: Option<PathBuf>,
    /// Maximum size of the packets file, in MB; later packets are left out
    #[arg(long, value_name = "MB", default_value = "1000", requires = "packets")]
    pub(crate) packets_limit: u64,
}

/// How frames get from the kernel to the engine and back.
#[derive(Debug, Args)]
#[command(next_help_heading = "Packet I/O")]
pub(crate) struct Cabling {
    /// Packet I/O backend [default: best available for run and shell, af_packet for bridge, route and attach]
    #[arg(long, value_enum)]
    pub(crate) backend: Option<BackendName>,
    /// With --backend af_xdp: busy-poll the driver instead of waiting for interrupts (most cards; not veth)
    #[arg(long, requires = "backend")]
    pub(crate) busy_poll: bool,
    /// Use segmentation offloads: take and hand over trains of segments whole. Faster; every packet keeps its own
    /// verdict and time, but packets of a train arrive at one instant, and the report gives the spread at departure
    #[arg(long)]
    pub(crate) trains: bool,
}

/// `--backend`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BackendName {
    /// Packet sockets: on any interface
    #[value(name = "af_packet")]
    AfPacket,
    /// TAP devices in the hosts, without arrival timestamps: for run and shell
    #[value(name = "tap")]
    Tap,
    /// AF_XDP, memory shared with the kernel: needs root on the host
    #[value(name = "af_xdp")]
    AfXdp,
    /// Links inside the kernel, as BPF qdiscs: for run, shell, up and attach, simple links, root, Linux 6.16 or later
    #[value(name = "kernel")]
    Kernel,
    /// kernel if this kernel offers it and everything fits, otherwise as by default; the report says which and why
    #[value(name = "auto")]
    Auto,
}

/// How well the packet loop is to keep up, and what it may take for that.
#[derive(Debug, Args)]
#[command(next_help_heading = "Accuracy")]
pub(crate) struct Pace {
    /// Fail with exit status 75 if lateness exceeds a bound: p99=50us; also median, p90, p999, max; repeatable
    #[arg(long, value_name = "QUANTILE=TIME")]
    pub(crate) max_lateness: Vec<String>,
    /// How to wait for the next departure: timer then busy-poll (hybrid), busy-poll only (spin), timer only
    ///
    /// [default: hybrid; timer with --virtual]
    #[arg(long, value_enum)]
    pub(crate) wait: Option<WaitBy>,
    /// Pin the packet threads to these processors, as in 2,3; programs of the run may still use all
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub(crate) cpu: Vec<usize>,
    /// Scheduling priority of the packet threads: high is nice -20, real-time is SCHED_FIFO
    #[arg(long, value_enum, default_value_t)]
    pub(crate) priority: RunBefore,
    /// Limit the processor time of each packet thread, in percent of a processor: 50%; packets may be late
    #[arg(long, value_name = "PERCENT", value_parser = processor_share)]
    pub(crate) max_cpu: Option<ProcessorShare>,
}

/// `--max-cpu`.
fn processor_share(text: &str) -> Result<ProcessorShare, String> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let thousandths =
        number.map(|number| (number * 10.0).round()).filter(|number| (10.0..=1000.0).contains(number));
    thousandths
        .and_then(|number| ProcessorShare::from_thousandths(number as u64))
        .ok_or_else(|| "needs a percentage from 1% to 100% of a processor, such as 50%".into())
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

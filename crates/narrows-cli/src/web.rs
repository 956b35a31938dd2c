//! `narrows web`: shows runs in a browser, and their metrics.

use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::{Child, Command};
#[cfg(feature = "otlp")]
use std::time::Duration;
use std::{io, process};

use clap::Args;
use narrows_io::child_lifetime::terminate_with_us;
use narrows_live::control::Client;
#[cfg(feature = "otlp")]
use narrows_scenario::span_of_time;
#[cfg(feature = "otlp")]
use narrows_web::otlp::{Collector, Export};
use narrows_web::{Options, Server, WebError};

use crate::output::{Failure, print, say};

/// Default listen address.
pub(crate) const ADDRESS: &str = "127.0.0.1:8642";

/// The arguments of `narrows web`.
#[derive(Debug, Args)]
#[command(after_help = "\
The address that is printed holds a token: whoever has it can change the run. The second address is
read-only. Nothing is encrypted: from another host, use a tunnel (ssh -L 8642:127.0.0.1:8642 HOST).

Examples:
  narrows web dsl
  narrows web --listen 127.0.0.1:0 --read-only
  narrows web --metrics-only --listen 127.0.0.1:9642
  narrows web --metrics-only --otlp http://127.0.0.1:4318")]
pub(crate) struct Web {
    /// Run, by name or number [default: all runs, as a list]
    #[arg(value_name = "RUN", conflicts_with = "run")]
    which: Option<String>,
    /// Same as RUN
    #[arg(long)]
    run: Option<String>,
    /// Address and port to listen on; port 0 for any free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = ADDRESS)]
    listen: SocketAddr,
    /// Print the read-only address alone; nobody can change a run
    #[arg(long)]
    read_only: bool,
    /// Serve /metrics alone, without a token
    #[arg(long, conflicts_with = "read_only")]
    metrics_only: bool,
    /// Accept requests that call this host by this name, too (its addresses and localhost are accepted)
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    otlp: Otlp,
}

/// The export of metrics.
#[cfg(feature = "otlp")]
#[derive(Debug, Args)]
struct Otlp {
    /// Send the metrics to an OpenTelemetry collector, too: OTLP over HTTP, in JSON (docs/web.md)
    #[arg(long, value_name = "http://HOST[:4318]")]
    otlp: Option<Collector>,
    /// The time from one export to the next
    #[arg(long, value_name = "TIME", default_value = "10s", requires = "otlp")]
    otlp_interval: String,
}

#[cfg(feature = "otlp")]
impl Otlp {
    fn export(&self) -> Result<Option<Export>, Failure> {
        let Some(collector) = self.otlp.clone() else { return Ok(None) };
        let every = span_of_time("otlp-interval", &self.otlp_interval)?;
        if every < SHORTEST {
            let interval = &self.otlp_interval;
            return Err(Failure::Other(format!("--otlp-interval {interval}: at least {SHORTEST}")));
        }
        let say = |line: &str| say(format_args!("narrows: {line}"));
        Ok(Some(Export { collector, every: Duration::from_nanos(every.nanos()), say }))
    }
}

/// Runs are queried once a second.
#[cfg(feature = "otlp")]
const SHORTEST: narrows_core::Duration = narrows_core::Duration::from_secs(1);

impl From<WebError> for Failure {
    fn from(error: WebError) -> Self {
        Self::Other(error.to_string())
    }
}

pub(crate) fn web(args: &Web) -> Result<u8, Failure> {
    let run = args.which.as_ref().or(args.run.as_ref());
    let server = Server::open(Options {
        listen: args.listen,
        run: run.cloned(),
        read_only: args.read_only,
        metrics_only: args.metrics_only,
        hosts: args.hosts.clone(),
        #[cfg(feature = "otlp")]
        otlp: args.otlp.export()?,
    })?;
    // The network that started this process is about to be up.
    let beside = parent_id().to_string();
    if let Some(Err(error)) = run.filter(|run| **run != beside).map(|run| Client::find(Some(run))) {
        say(format_args!("narrows: {error}; the page shows the run once it is there"));
    }
    if !args.listen.ip().is_loopback() {
        say(
            "narrows: other hosts can reach this address, and nothing is encrypted: whoever reads along has the token",
        );
    }
    let mut text = String::new();
    if let Some(url) = server.editor_url() {
        text += &format!("page:       {url}\n");
    }
    if let Some(url) = server.reader_url() {
        text += &format!("read-only:  {url}\n");
    }
    let with = if args.metrics_only { "" } else { " (with the header \"Authorization: Bearer TOKEN\")" };
    text += &format!("metrics:    {}{with}\n", server.metrics_url());
    print(&text)?;
    server.serve()?;
    Ok(0)
}

/// Serves the page of the run that this process starts, in a process that ends with it.
pub(crate) fn beside(listen: SocketAddr) -> Result<Child, Failure> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("narrows").args(["web", &process::id().to_string(), "--listen", &listen.to_string()]);
    terminate_with_us(&mut command);
    let failed = |cause: io::Error| Failure::Other(format!("cannot start narrows web: {cause}"));
    command.spawn().map_err(failed)
}

//! `narrows toxi`: a server with Toxiproxy's HTTP API.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use narrows_scenario::printable;
use narrows_toxi::{Options, Server, TOXIPROXY_VERSION, ToxiError};

use crate::output::{Failure, print, say};

/// The arguments of `narrows toxi`.
#[derive(Debug, Args)]
#[command(after_help = "\
The API has no authentication: whoever reaches it can open ports on this host.

Examples:
  narrows toxi
  narrows toxi --config proxies.json --seed 7
  P=localhost:8474/proxies
  curl $P -d '{\"name\":\"db\",\"listen\":\"127.0.0.1:15432\",\"upstream\":\"127.0.0.1:5432\"}'
  curl $P/db/toxics -d '{\"type\":\"latency\",\"attributes\":{\"latency\":100}}'
  curl $P -d '{\"name\":\"dns\",\"listen\":\"udp://127.0.0.1:5353\",\"upstream\":\"127.0.0.1:53\"}'
  curl $P/dns/toxics -d '{\"type\":\"link\",\"attributes\":{\"delay\":\"20ms\",\"loss\":\"5%\"}}'")]
pub(crate) struct Toxi {
    /// Host of the API, by name or address
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    host: String,
    /// Port of the API; 0 for any free one
    #[arg(long, default_value_t = 8474)]
    port: u16,
    /// Create the proxies of this JSON file, as Toxiproxy's --config does
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Seed of all random draws: toxicity, jitter, slices, loss
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Serve the counters of the proxies at /metrics
    #[arg(long)]
    proxy_metrics: bool,
}

impl From<ToxiError> for Failure {
    fn from(error: ToxiError) -> Self {
        Self::Other(error.to_string())
    }
}

pub(crate) fn toxi(args: &Toxi) -> Result<u8, Failure> {
    let server = Server::open(Options {
        host: args.host.clone(),
        port: args.port,
        config: args.config.clone(),
        seed: args.seed,
        has_metrics: args.proxy_metrics,
        note: |text| say(format_args!("narrows: {}", printable(text))),
    })?;
    let address = server.address().map_err(ToxiError::from)?;
    if !is_loopback(address.ip()) {
        say(
            "narrows: other hosts can reach the API, which has no authentication: they can open ports on this host",
        );
    }
    let mut text = format!("API:      http://{address} (Toxiproxy {TOXIPROXY_VERSION})\n");
    if args.proxy_metrics {
        text += &format!("metrics:  http://{address}/metrics\n");
    }
    if server.created() > 0 {
        text += &format!("proxies:  {}\n", server.created());
    }
    text += &format!("seed:     {}\n", args.seed);
    print(&text)?;
    server.serve()?;
    Ok(0)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

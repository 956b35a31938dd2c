//! `narrows topology`: generates scenarios of common topologies, and imports networks from other tools.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum, ValueHint};
use narrows_scenario::{LinkValues, NetworkFormat, NetworkPlan, NetworkShape, read_text};

use crate::output::{Failure, print};

#[derive(Debug, Args)]
#[command(after_help = "\
Files: csv (columns a,b and any of rate, delay, jitter, loss, queue, mtu), graphml (as in the Internet
Topology Zoo; delays by distance), containerlab (*.clab.yml), mininet (MiniEdit's .mn). What a file has
and a scenario cannot have is named in comments at the top. See docs/topology.md.

Examples:
  narrows topology star --hosts 8 --rate 10mbit --delay 5ms > star.toml
  narrows topology fat-tree --size 4 --rate 1gbit --edge-rate 1gbit | narrows check -
  narrows topology dumbbell --hosts 6 --rate 20mbit --delay 20ms | narrows up - --name shared
  narrows topology waxman --size 20 --delay 30ms --seed 7 > wide.toml
  narrows topology graphml Geant2012.graphml --rate 10gbit > geant.toml
  narrows topology csv links.csv > mine.toml")]
pub(crate) struct Topology {
    /// Shape of the network, or format of FILE
    kind: Kind,
    /// Network to read, for csv, graphml, containerlab and mininet (- is stdin)
    #[arg(value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Routers (line, ring, mesh, waxman), COLUMNSxROWS (grid), LEAVESxSPINES, or switch ports (fat-tree)
    /// [default: 2, 4, 4, 10, 3x3, 4x2, 4]
    #[arg(long, value_name = "N or NxM")]
    size: Option<Size>,
    /// Total number of hosts, spread over the edge routers [default: 1 or 2 per router]
    #[arg(long, value_name = "N")]
    hosts: Option<usize>,
    /// Rate of links between routers (star: of the hosts' links); for files: where FILE gives none
    #[arg(long)]
    rate: Option<String>,
    /// One-way delay of these links; in a waxman network, from one corner to the opposite one
    #[arg(long)]
    delay: Option<String>,
    /// Loss on these links
    #[arg(long)]
    loss: Option<String>,
    /// Queue of these links
    #[arg(long)]
    queue: Option<String>,
    /// Rate of links to hosts [default: unlimited]
    #[arg(long, value_name = "RATE")]
    edge_rate: Option<String>,
    /// One-way delay of links to hosts [default: none]
    #[arg(long, value_name = "DELAY")]
    edge_delay: Option<String>,
    /// Queue of links to hosts; required with a rate and more than 1000 hosts
    #[arg(long, value_name = "QUEUE")]
    edge_queue: Option<String>,
    /// Use of several shortest paths: none, flow or packet [default: flow for leaf-spine and fat-tree]
    #[arg(long, value_name = "HOW")]
    multipath: Option<String>,
    /// Seed of the scenario, and of a waxman network
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Star,
    Line,
    Ring,
    Mesh,
    Dumbbell,
    Grid,
    LeafSpine,
    FatTree,
    Waxman,
    Csv,
    Graphml,
    Containerlab,
    Mininet,
}

impl Kind {
    const fn source(self) -> Result<NetworkShape, NetworkFormat> {
        Ok(match self {
            Self::Star => NetworkShape::Star,
            Self::Line => NetworkShape::Line,
            Self::Ring => NetworkShape::Ring,
            Self::Mesh => NetworkShape::Mesh,
            Self::Dumbbell => NetworkShape::Dumbbell,
            Self::Grid => NetworkShape::Grid,
            Self::LeafSpine => NetworkShape::LeafSpine,
            Self::FatTree => NetworkShape::FatTree,
            Self::Waxman => NetworkShape::Waxman,
            Self::Csv => return Err(NetworkFormat::Csv),
            Self::Graphml => return Err(NetworkFormat::GraphMl),
            Self::Containerlab => return Err(NetworkFormat::Containerlab),
            Self::Mininet => return Err(NetworkFormat::Mininet),
        })
    }
}

/// One or two numbers.
#[derive(Clone, Copy, Debug)]
struct Size(usize, Option<usize>);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().map_err(|_| "write 8, or 4x2".to_owned());
        match text.split_once('x') {
            Some((a, b)) => Ok(Self(number(a)?, Some(number(b)?))),
            None => Ok(Self(number(text)?, None)),
        }
    }
}

/// Prints the scenario.
pub(crate) fn topology(args: &Topology) -> Result<u8, Failure> {
    let values = LinkValues {
        rate: args.rate.clone(),
        delay: args.delay.clone(),
        loss: args.loss.clone(),
        queue: args.queue.clone(),
        edge_rate: args.edge_rate.clone(),
        edge_delay: args.edge_delay.clone(),
        edge_queue: args.edge_queue.clone(),
        multipath: args.multipath.clone(),
        seed: args.seed,
    };
    let kind = args.kind.to_possible_value().map_or_else(String::new, |kind| kind.get_name().to_owned());
    let refused = |why: &str| Err(Failure::Other(format!("{kind}: {why}")));
    let text = match (args.kind.source(), &args.file) {
        (Ok(_), Some(file)) => {
            return refused(&format!("this shape reads no file (found {})", file.display()));
        }
        (Err(_), None) => return refused("name the file to read, or - for stdin"),
        (Err(_), Some(_)) if args.size.is_some() || args.hosts.is_some() => {
            return refused("--size and --hosts do not apply to files");
        }
        (Err(format), Some(path)) => {
            let (text, file) = read_text(path, "network")?;
            format.scenario(&text, &file, &values)?
        }
        (Ok(shape), None) => {
            let size = args.size.map(|Size(a, b)| (a, b));
            NetworkPlan { shape, size, hosts: args.hosts, values }.scenario()?
        }
    };
    print(&text)?;
    Ok(0)
}

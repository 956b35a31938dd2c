//! Arguments of `narrows doctor`.

use clap::{Args, ValueEnum};

use crate::json::Json;

/// Its arguments.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows doctor
  narrows doctor --for docker
  narrows doctor --for clab
  narrows doctor --for cni
  narrows doctor --for ssh --machines alpha,beta
  narrows doctor --json | jq '.works, .modes'")]
pub(crate) struct Doctor {
    /// Check what one use needs, instead: privileges, kernel, sockets
    #[arg(long = "for", value_enum, value_name = "USE")]
    pub(crate) purpose: Option<Purpose>,
    #[command(flatten)]
    pub(crate) ssh: AskedMachines,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// `--for`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Purpose {
    /// `narrows clab`.
    Clab,
    /// `narrows docker watch` and `narrows compose`.
    Docker,
    /// `narrows up --machines`.
    Ssh,
    /// The CNI plugin on a Kubernetes node.
    Cni,
}

/// The machines to ask.
#[derive(Debug, Args)]
pub(crate) struct AskedMachines {
    /// With --for ssh: also ask these machines for their narrows and its user, as in alpha,beta
    #[arg(long, value_delimiter = ',', value_name = "MACHINES", requires = "purpose")]
    pub(crate) machines: Vec<String>,
    /// Command that starts an agent there, with the machine's name after it [default: ssh, as `narrows up` does]
    #[arg(long = "ssh", value_name = "COMMAND", requires = "machines")]
    pub(crate) command: Option<String>,
}

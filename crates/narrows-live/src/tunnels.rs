//! Tunnels of a run: cables to the engines of other machines, instead of to hosts.

use std::net::{SocketAddr, UdpSocket};

use narrows_io::cable_end::{CableEnd, CableEndError};
use narrows_io::clock::clock_monotonic;
use narrows_io::tunnel::{Tunnel, TunnelError};
use narrows_scenario::tunnel_port;

use crate::director::LoopError;
use crate::testbed::{Cable, Plug};

/// A tunnel to open: the continuation of one link on another machine.
#[derive(Debug)]
pub struct TunnelPlan {
    /// The link.
    pub link: String,
    /// Its socket, bound to the address that the other machine sends to.
    pub socket: UdpSocket,
    /// The address of the other machine's socket.
    pub peer: SocketAddr,
    /// The link's number, equal on both machines.
    pub identifier: u32,
}

/// Opens tunnels.
pub(crate) fn open(plans: &[TunnelPlan]) -> Result<Vec<Cable>, LoopError> {
    plans.iter().map(|plan| open_one(plan).map_err(|error| CableEndError::from(error).into())).collect()
}

fn open_one(plan: &TunnelPlan) -> Result<Cable, TunnelError> {
    let tunnel = Tunnel::open(&plan.socket, plan.peer, plan.identifier)?;
    let plug = Plug::transparent(&tunnel_port(&plan.link));
    Ok(Cable::of_one(plug, CableEnd::Tunnel(Box::new(tunnel)), clock_monotonic(), None))
}

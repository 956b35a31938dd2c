//! The network of an attachment inside the kernel: between the two cables of the detour lies a veth pair, at whose ends the link's
//! qdiscs are. We only watch.

use narrows_io::bpf::{BpfError, Pins};
use narrows_io::cable_end::CableEnd;
use narrows_io::clock::clock_monotonic;
use narrows_io::detour::Detour;
use narrows_io::link::Interface;
use narrows_io::qdisc::Way;
use narrows_io::route_socket::{NetlinkError, RouteSocket};
use narrows_io::splice::Splice;
use narrows_kernel::{KernelLinks, qdisc_name};
use narrows_scenario::Scenario;

use crate::inline::InlineError;
use crate::run::RunError;
use crate::testbed::{Cable, Plug, TestbedError};

/// What carries the packets. With its end nothing crosses, and the kernel frees what is inside.
#[derive(Debug)]
pub(super) struct KernelWay {
    // First, so that no frame comes any more when the qdiscs go.
    splice: Splice,
    links: KernelLinks,
    /// Frames that the kernel dropped at our interfaces before.
    dropped: u64,
}

impl KernelWay {
    /// Lays the link between the cables of a detour.
    ///
    /// # Errors
    /// If the scenario does not fit into the kernel, or the kernel refuses.
    pub(super) fn lay(
        scenario: &Scenario,
        detour: &Detour,
        interface: &Interface,
    ) -> Result<(Self, Vec<Cable>), RunError> {
        let mut fitting = narrows_kernel::fit(scenario)?;
        fitting.directions.iter_mut().for_each(|direction| direction.mtu = interface.mtu);
        let mut links = KernelLinks::load(&qdisc_name(), fitting).map_err(TestbedError::from)?;
        let laid = clock_monotonic();
        let splice = Splice::lay(detour.wire(), detour.ends(), Detour::room(interface.mtu));
        let mut splice = splice.map_err(InlineError::from)?;
        let mut sockets = RouteSocket::open(detour.wire()).map_err(InlineError::from)?;
        for (direction, end) in splice.ends().into_iter().enumerate() {
            let put = sockets
                .add_root_qdisc_as(end, links.kind(), KernelLinks::handle(direction), &[])
                .and_then(|()| sockets.add_classifier(end, Way::Out, "narrows", links.orphan()));
            put.map_err(InlineError::from)?;
        }
        splice.join(links.change()).map_err(InlineError::from)?;
        let cable = |(port, end): (&narrows_scenario::Port, _)| {
            let plug = Plug::transparent(&port.name);
            Cable::of_one(plug, CableEnd::Kernel(Box::new(end)), laid, None)
        };
        let cables = scenario.ports().iter().zip(links.take_ends()).map(cable).collect();
        let dropped = dropped(&splice, detour).map_err(InlineError::from)?;
        Ok((Self { splice, links, dropped }, cables))
    }

    /// The interface's MTU has changed.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(super) fn widen(&mut self, mtu: u32) -> Result<(), NetlinkError> {
        self.links.set_mtu(mtu);
        self.splice.widen(Detour::room(mtu))
    }

    /// Leaves the link in place when this process ends.
    ///
    /// # Errors
    /// If something cannot be pinned.
    pub(super) fn keep(&self, pins: &Pins) -> Result<(), BpfError> {
        self.links.keep(pins)?;
        self.splice.keep(pins)
    }

    /// What the report should say.
    pub(super) fn note(&self, detour: &Detour) -> Option<String> {
        let dropped = dropped(&self.splice, detour).map_or(0, |now| now.saturating_sub(self.dropped));
        (dropped > 0).then(|| {
            format!(
                "kernel backend: the kernel dropped {dropped} frames on their way into the link or out of it, beyond \
                 net.core.netdev_max_backlog"
            )
        })
    }
}

/// Frames that the kernel has dropped on arrival at one of our interfaces.
fn dropped(splice: &Splice, detour: &Detour) -> Result<u64, NetlinkError> {
    Ok(splice.dropped()? + detour.dropped()?)
}

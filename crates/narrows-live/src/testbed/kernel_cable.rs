//! The cables of links inside the kernel: veth pairs between two hosts, with the link's qdiscs at their ends.

use narrows_io::cable_end::CableEnd;
use narrows_io::clock::clock_monotonic;
use narrows_io::link::{InterfaceIndex, VethEnd, create_numbered_veth};
use narrows_io::qdisc::Way;
use narrows_io::route_socket::RouteSocket;
use narrows_io::{offload, stack};
use narrows_kernel::{KernelLinks, qdisc_name};
use narrows_scenario::Scenario;

use super::cable::{CARRIER, give_addresses};
use super::{Cable, FIRST_END, Host, Interface, Plug, Testbed, TestbedError, interface_at, of_host};

impl Testbed {
    /// Joins the hosts of a scenario that fits by links inside the kernel.
    pub(super) fn lay_kernel_cables(&mut self, scenario: &Scenario) -> Result<(), TestbedError> {
        let fitting = narrows_kernel::fit(scenario)?;
        let pairs = fitting.links.clone();
        let mut links = KernelLinks::load(&qdisc_name(), fitting)?;
        let laid = clock_monotonic();
        let ports = scenario.ports().iter().filter_map(|port| {
            let place = self.hosts.iter().position(|host| host.name == port.host)?;
            Some((place, interface_at(scenario, port)))
        });
        let ports: Vec<(usize, Interface)> = ports.collect();
        for (number, pair) in (FIRST_END..).zip(&pairs) {
            let [(near, near_end), (far, far_end)] = pair.map(|port| &ports[port]);
            create_numbered_veth(
                &VethEnd {
                    namespace: &self.hosts[*near].namespace,
                    name: &near_end.name,
                    mac: Some(near_end.mac),
                },
                InterfaceIndex(number),
                &VethEnd {
                    namespace: &self.hosts[*far].namespace,
                    name: &far_end.name,
                    mac: Some(far_end.mac),
                },
                near_end.mtu,
            )?;
        }
        for (direction, (host, interface)) in ports.iter().enumerate() {
            let host = &self.hosts[*host];
            let prepared = prepare(host, interface, &links, direction);
            prepared.map_err(|cause| of_host(&host.name, cause))?;
        }
        for ((place, interface), end) in ports.into_iter().zip(links.take_ends()) {
            let host = &mut self.hosts[place];
            let dressed = RouteSocket::open(&host.namespace)
                .and_then(|mut sockets| sockets.wait_for_carrier(&interface.name, CARRIER))
                .map_err(TestbedError::from)
                .and_then(|()| give_addresses(host, &interface).map(drop));
            dressed.map_err(|cause| of_host(&host.name, cause))?;
            // What concerns the link itself has no records.
            let plug = Plug::transparent(&interface.port);
            self.cables.push(Cable::of_one(plug, CableEnd::Kernel(Box::new(end)), laid, None));
            host.interfaces.push(interface);
        }
        self._kernel_links = Some(links);
        Ok(())
    }
}

/// Puts the link's direction at the interface of the host that sends, before anything is sent there.
fn prepare(
    host: &Host,
    interface: &Interface,
    links: &KernelLinks,
    direction: usize,
) -> Result<(), TestbedError> {
    let (namespace, name) = (&host.namespace, interface.name.as_str());
    offload::plain_packets(namespace, name)?;
    namespace.run(|| stack::settle(namespace, name))??;
    let mut sockets = RouteSocket::open(namespace)?;
    sockets.set_longest_train(name, 1)?;
    sockets.add_root_qdisc_as(name, links.kind(), KernelLinks::handle(direction), &[])?;
    sockets.add_classifier(name, Way::Out, "narrows", links.orphan())?;
    if let Some(change) = links.change() {
        sockets.add_classifier(name, Way::In, "narrows", change)?;
    }
    sockets.set_up(name)?;
    Ok(())
}

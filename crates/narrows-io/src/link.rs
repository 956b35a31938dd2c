//! Interfaces: creating veth pairs, bringing interfaces up and down, removing and listing them.
//!
//! A veth pair is a virtual cable: frames sent into one of its two interfaces arrive at the other. Removing one end
//! removes both, and so does the end of either end's namespace.

use std::fmt;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use crate::clock::clock_monotonic;
use crate::namespace::Namespace;
use crate::netlink::{Attributes, Message, Request, u16_at, u32_at};
use crate::route_socket::{NetlinkError, RouteSocket};

/// The maximum length of an interface name (`IFNAMSIZ` less its closing zero).
const LONGEST_NAME: usize = libc::IFNAMSIZ - 1;
/// `VETH_INFO_PEER` of `linux/veth.h`.
const VETH_INFO_PEER: u16 = 1;

/// An interface's number in its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceIndex(pub u32);

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// One end of a new veth pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// The namespace of this end.
    pub namespace: &'a Namespace,
    /// Its name there, at most 15 bytes.
    pub name: &'a str,
    /// Its address; by default the kernel draws one.
    pub mac: Option<MacAddress>,
}

/// An interface, as listed by the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: InterfaceIndex,
    /// Its name.
    pub name: String,
    /// Its address, if it is an Ethernet-like interface.
    pub mac: Option<MacAddress>,
    /// Its MTU: the maximum packet length in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is up and has carrier.
    pub running: bool,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Whether it is an Ethernet interface.
    pub ethernet: bool,
    /// Whether it has an XDP program in generic mode.
    pub generic_xdp: bool,
    /// The bridge or bond that it belongs to.
    pub master: Option<InterfaceIndex>,
    /// Its counters.
    pub statistics: InterfaceStatistics,
}

/// The kernel's counters of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kernel's own names say it")]
pub struct InterfaceStatistics {
    pub received_packets: u64,
    pub sent_packets: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub receive_errors: u64,
    pub send_errors: u64,
    pub receive_dropped: u64,
    pub send_dropped: u64,
}

/// Creates a veth pair, each end in its namespace, both down.
pub fn create_veth(near: &VethEnd<'_>, far: &VethEnd<'_>, mtu: u32) -> Result<(), NetlinkError> {
    // For 0 the kernel takes the next free number.
    create_numbered_veth(near, InterfaceIndex(0), far, mtu)
}

/// The same, with a given number for the near end.
///
/// If the ends of a cable have different numbers, the kernel reports carrier at once. If they happen to have the same
/// number in different namespaces, it does not recognise them as two and leaves this to a task that runs once a
/// second (`linkwatch_urgent_event` in `net/core/link_watch.c`).
pub fn create_numbered_veth(
    near: &VethEnd<'_>,
    number: InterfaceIndex,
    far: &VethEnd<'_>,
    mtu: u32,
) -> Result<(), NetlinkError> {
    let action =
        format!("make the veth pair {} ({}) – {} ({})", near.name, near.namespace, far.name, far.namespace);
    for end in [near, far] {
        check_name(end.name).map_err(|reason| NetlinkError::Invalid { action: action.clone(), reason })?;
    }
    let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let request = Request::new(libc::RTM_NEWLINK, flags).fixed(&header(number.0, 0, 0));
    let request = end_attributes(request, near, mtu).nested(libc::IFLA_LINKINFO, |info| {
        info.attribute(libc::IFLA_INFO_KIND, b"veth").nested(libc::IFLA_INFO_DATA, |data| {
            data.nested(VETH_INFO_PEER, |peer| {
                let descriptor = far.namespace.as_fd().as_raw_fd() as u32;
                end_attributes(peer.fixed(&header(0, 0, 0)), far, mtu).u32(libc::IFLA_NET_NS_FD, descriptor)
            })
        })
    });
    RouteSocket::open(near.namespace)?.execute(request, || action)
}

impl RouteSocket {
    /// The interfaces of the namespace.
    pub fn interfaces(&mut self) -> Result<Vec<Interface>, NetlinkError> {
        let request = Request::new(libc::RTM_GETLINK, 0).fixed(&header(0, 0, 0));
        Ok(self.list(request, "interfaces")?.iter().filter_map(parse).collect())
    }

    /// Frames that the kernel has dropped on arrival at these interfaces, those that are there.
    pub(crate) fn dropped_on_arrival(&mut self, ours: &[InterfaceIndex]) -> Result<u64, NetlinkError> {
        let all = self.interfaces()?;
        let ours = all.iter().filter(|interface| ours.contains(&interface.index));
        Ok(ours.map(|interface| interface.statistics.receive_dropped).sum())
    }

    /// The interface of this name.
    pub fn interface(&mut self, name: &str) -> Result<Interface, NetlinkError> {
        // Listing all takes longer the more there are, and a network with many links queries each of its own.
        let request =
            Request::new(libc::RTM_GETLINK, 0).fixed(&header(0, 0, 0)).string(libc::IFLA_IFNAME, name);
        let action = || format!("find the interface `{name}`");
        let found = self.get(request, action)?.iter().find_map(parse);
        found.ok_or_else(|| NetlinkError::NotFound { action: format!("{} in {}", action(), self.label()) })
    }

    /// The number of the interface of this name.
    pub fn interface_index(&mut self, name: &str) -> Result<InterfaceIndex, NetlinkError> {
        Ok(self.interface(name)?.index)
    }

    /// Checks whether an interface of this name could be created; `action` describes it in errors.
    ///
    /// # Errors
    /// If no interface can have the name.
    pub(crate) fn check_new(&mut self, name: &str, action: &str) -> Result<(), NetlinkError> {
        let action = || format!("{action} `{name}` in {}", self.label());
        check_name(name).map_err(|reason| NetlinkError::Invalid { action: action(), reason })
    }

    /// Sets the link address, MTU and queue length (in packets) of an interface that is down.
    pub(crate) fn prepare(
        &mut self,
        name: &str,
        mac: MacAddress,
        mtu: u32,
        queue: u32,
    ) -> Result<(), NetlinkError> {
        let request = Request::new(libc::RTM_NEWLINK, 0)
            .fixed(&header(0, 0, 0))
            .string(libc::IFLA_IFNAME, name)
            .attribute(libc::IFLA_ADDRESS, &mac.0)
            .u32(libc::IFLA_MTU, mtu)
            .u32(libc::IFLA_TXQLEN, queue);
        self.execute(request, || format!("set up the interface `{name}`"))
    }

    /// Brings an interface up.
    pub fn set_up(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.set_flags(name, libc::IFF_UP as u32, libc::IFF_UP as u32, "bring up")
    }

    /// Takes an interface down.
    pub fn set_down(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.set_flags(name, 0, libc::IFF_UP as u32, "bring down")
    }

    /// Sets the MTU, in bytes without the Ethernet header.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), NetlinkError> {
        let request = Request::new(libc::RTM_NEWLINK, 0)
            .fixed(&header(0, 0, 0))
            .string(libc::IFLA_IFNAME, name)
            .u32(libc::IFLA_MTU, mtu);
        self.execute(request, || format!("set the MTU of the interface `{name}` to {mtu}"))
    }

    /// Sets of how many segments a TCP train may consist. TCP makes trains whatever the interface can do, since Linux 4.17; with 1 it
    /// makes none.
    pub fn set_longest_train(&mut self, name: &str, segments: u32) -> Result<(), NetlinkError> {
        let request = Request::new(libc::RTM_NEWLINK, 0)
            .fixed(&header(0, 0, 0))
            .string(libc::IFLA_IFNAME, name)
            .u32(libc::IFLA_GSO_MAX_SEGS, segments);
        self.execute(request, || format!("set the longest train of the interface `{name}` to {segments}"))
    }

    /// Waits until a cable has carrier: both ends are up and the kernel has noticed, which takes some milliseconds.
    /// Packets sent before that are dropped.
    pub fn wait_for_carrier(&mut self, name: &str, patience: Duration) -> Result<(), NetlinkError> {
        if self.wait_until(patience, |sockets| Ok(sockets.interface(name)?.running))? {
            return Ok(());
        }
        Err(NetlinkError::NoCarrier { interface: name.into(), namespace: self.label().into() })
    }

    /// Asks again and again for up to `patience`; whether it became so.
    pub(crate) fn wait_until(
        &mut self,
        patience: Duration,
        mut is_so: impl FnMut(&mut Self) -> Result<bool, NetlinkError>,
    ) -> Result<bool, NetlinkError> {
        const PAUSE: Duration = Duration::from_micros(500);
        let begin = clock_monotonic().as_nanos();
        loop {
            if is_so(self)? {
                return Ok(true);
            }
            if u128::from(clock_monotonic().as_nanos() - begin) > patience.as_nanos() {
                return Ok(false);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Disables ARP on an interface.
    pub fn set_arp_off(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.set_flags(
            name,
            libc::IFF_NOARP as u32,
            libc::IFF_NOARP as u32,
            "switch address resolution off on",
        )
    }

    /// Removes an interface; for a veth pair, both ends.
    pub fn delete_interface(&mut self, name: &str) -> Result<(), NetlinkError> {
        let action = || format!("remove the interface `{name}`");
        let request =
            Request::new(libc::RTM_DELLINK, 0).fixed(&header(0, 0, 0)).string(libc::IFLA_IFNAME, name);
        self.execute(request, action)
    }

    fn set_flags(&mut self, name: &str, flags: u32, change: u32, verb: &str) -> Result<(), NetlinkError> {
        let request = Request::new(libc::RTM_NEWLINK, 0)
            .fixed(&header(0, flags, change))
            .string(libc::IFLA_IFNAME, name);
        self.execute(request, || format!("{verb} the interface `{name}`"))
    }
}

fn end_attributes(request: Request, end: &VethEnd<'_>, mtu: u32) -> Request {
    let request = request.string(libc::IFLA_IFNAME, end.name).u32(libc::IFLA_MTU, mtu);
    match end.mac {
        Some(mac) => request.attribute(libc::IFLA_ADDRESS, &mac.0),
        None => request,
    }
}

/// Describes what is wrong with a name; the kernel would only say "invalid argument".
fn check_name(name: &str) -> Result<(), String> {
    let odd = |c: char| c == '/' || c == ':' || c.is_whitespace();
    match name {
        "" => Err("an interface needs a name".into()),
        "." | ".." => Err(format!("`{name}` cannot be an interface's name")),
        _ if name.len() > LONGEST_NAME => {
            Err(format!("`{name}` is too long for an interface's name: at most {LONGEST_NAME} bytes"))
        }
        _ if name.contains(odd) => {
            Err(format!("`{name}` cannot be an interface's name: no space, `/` or `:` in it"))
        }
        _ => Ok(()),
    }
}

/// `struct ifinfomsg`.
fn header(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    bytes[12..16].copy_from_slice(&change.to_ne_bytes());
    bytes
}

/// The interface that a message is about, unless that is about its role as a bridge port; and whether it left the
/// namespace.
pub(crate) fn told(message: &Message) -> Option<(InterfaceIndex, bool)> {
    let tells = matches!(message.kind, libc::RTM_NEWLINK | libc::RTM_DELLINK)
        && message.payload.len() >= 16
        && i32::from(message.payload[0]) == libc::AF_UNSPEC;
    tells.then(|| (InterfaceIndex(u32_at(&message.payload, 4)), message.kind == libc::RTM_DELLINK))
}

fn parse(message: &Message) -> Option<Interface> {
    if message.kind != libc::RTM_NEWLINK || message.payload.len() < 16 {
        return None;
    }
    let flags = u32_at(&message.payload, 8);
    let hardware = u16_at(&message.payload, 2);
    let attributes = message.attributes(16);
    Some(Interface {
        index: InterfaceIndex(u32_at(&message.payload, 4)),
        name: attributes.string(libc::IFLA_IFNAME)?,
        mac: attributes.get(libc::IFLA_ADDRESS).and_then(|mac| mac.try_into().ok()).map(MacAddress),
        mtu: attributes.u32(libc::IFLA_MTU).unwrap_or(0),
        up: flags & libc::IFF_UP as u32 != 0,
        running: flags & libc::IFF_RUNNING as u32 != 0,
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        ethernet: hardware == libc::ARPHRD_ETHER,
        generic_xdp: attributes.get(libc::IFLA_XDP).is_some_and(has_generic_xdp),
        master: attributes.u32(libc::IFLA_MASTER).filter(|&master| master > 0).map(InterfaceIndex),
        statistics: statistics(attributes),
    })
}

/// Whether `IFLA_XDP` reports a program in generic mode, alone or with others.
fn has_generic_xdp(said: &[u8]) -> bool {
    /// `IFLA_XDP_ATTACHED` of `linux/if_link.h`, and two of its values.
    const ATTACHED: u16 = 2;
    const GENERIC: u8 = 2;
    const SEVERAL: u8 = 4;
    matches!(Attributes::of(said).get(ATTACHED), Some([GENERIC | SEVERAL, ..]))
}

/// The head of `struct rtnl_link_stats64`: eight counters in this order.
fn statistics(attributes: Attributes<'_>) -> InterfaceStatistics {
    let counters = attributes.get(libc::IFLA_STATS64).unwrap_or_default();
    let counter = |position: usize| {
        let bytes = counters.get(position * 8..position * 8 + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let counter = |position| counter(position).unwrap_or(0);
    InterfaceStatistics {
        received_packets: counter(0),
        sent_packets: counter(1),
        received_bytes: counter(2),
        sent_bytes: counter(3),
        receive_errors: counter(4),
        send_errors: counter(5),
        receive_dropped: counter(6),
        send_dropped: counter(7),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_would_refuse_are_explained() {
        assert!(check_name("eth0").is_ok());
        assert!(check_name("a234567890bcdef").is_ok());
        assert!(check_name("a234567890bcdefg").unwrap_err().contains("15 bytes"));
        for name in ["", ".", "a b", "a/b", "a:b"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn mac_addresses_print_as_usual() {
        assert_eq!(MacAddress([2, 0, 0, 0xab, 1, 0xff]).to_string(), "02:00:00:ab:01:ff");
    }
}

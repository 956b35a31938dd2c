//! Offloads: processing that an interface takes over from the kernel's stack.
//!
//! A veth end accepts packets with incomplete checksums, and trains of up to 64 KiB as one frame, because there is no
//! wire that requires more. A reader at the other end then sees frames that never occur on a wire. [`plain_packets`]
//! disables all offloads of that kind; the kernel then completes checksums and splits trains before the interface.
//!
//! Features are addressed by their long names in `ethtool -k`, so that kernels with more or fewer of them need no
//! change here.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use serde::{Deserialize, Serialize};

use crate::namespace::{Namespace, NamespaceError};

/// Commands and string set of `linux/ethtool.h`.
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETH_SS_FEATURES: u32 = 4;
/// The length of a feature's name in a string set.
const ETH_GSTRING_LEN: usize = 32;
/// The number of words in `struct ethtool_get_features_block` and `struct ethtool_set_features_block`.
const GET_BLOCK: usize = 4;
const SET_BLOCK: usize = 2;

/// Why offloads could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum OffloadError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// This process may not change them.
    #[error(
        "not allowed to change the offloads of `{interface}`: this needs the capability CAP_NET_ADMIN; run it as root"
    )]
    Permission {
        /// The interface's name.
        interface: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot {verb} the offloads of `{interface}`: {cause}")]
    Refused {
        /// "read" or "change".
        verb: &'static str,
        /// The interface's name.
        interface: String,
        /// The kernel's error.
        cause: io::Error,
    },
}

/// One offload of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name, such as `tx-tcp-segmentation`.
    pub name: String,
    /// Whether it is active.
    pub active: bool,
    /// Whether it is requested; another one that it depends on may keep it inactive.
    pub requested: bool,
    /// Whether it can be changed.
    pub changeable: bool,
}

/// What was changed on an interface, with the former state; it can be saved, to be restored later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadRecord {
    /// The interface's name.
    pub interface: String,
    /// Features that were changed, with the former value.
    pub before: Vec<(String, bool)>,
    /// Features that should be off and cannot be disabled: not all packets are as on the wire.
    pub stuck: Vec<String>,
}

impl OffloadRecord {
    /// Restores the former values.
    pub fn restore(&self, namespace: &Namespace) -> Result<(), OffloadError> {
        set(namespace, &self.interface, &self.before).map(drop)
    }
}

/// Whether this feature makes packets differ from those on the wire: incomplete checksums, trains not split or joined
/// on receipt, tags kept outside the frame.
fn distorts(name: &str) -> bool {
    name.starts_with("tx-checksum-")
        || name.starts_with("tx-scatter-gather")
        || (name.starts_with("tx-") && name.ends_with("-segmentation"))
        || name.starts_with("tx-gso-")
        || name == "tx-gso-list"
        || name == "rx-gro"
        || name == "rx-gro-hw"
        || name == "rx-gro-list"
        || name == "rx-udp-gro-forwarding"
        || name == "rx-lro"
        || (name.contains("vlan") && (name.ends_with("-hw-insert") || name.ends_with("-hw-parse")))
}

/// The offloads that `struct virtio_net_hdr` can describe. It cannot describe trains with the same identification in
/// all packets, tunnels, and checksums other than the Internet checksum.
const DESCRIBED: [&str; 8] = [
    "tx-scatter-gather",
    "tx-scatter-gather-fraglist",
    "tx-checksum-ip-generic",
    "tx-generic-segmentation",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
];

/// The offloads that [`plain_packets`] would disable.
///
/// # Errors
/// If they cannot be read.
pub fn distorting(namespace: &Namespace, interface: &str) -> Result<Vec<String>, OffloadError> {
    let all = features(namespace, interface)?.into_iter();
    let on = all.filter(|f| distorts(&f.name) && f.changeable && f.requested);
    Ok(on.map(|feature| feature.name).collect())
}

/// Disables every offload that would make a packet socket, here or at the other end of a veth pair, see other packets
/// than a wire would carry.
pub fn plain_packets(namespace: &Namespace, interface: &str) -> Result<OffloadRecord, OffloadError> {
    without(namespace, interface, distorts)
}

/// The same, except for what the frame header can describe to a packet socket that carries trains: checksums and
/// segmentation of TCP and UDP.
///
/// # Errors
/// If the kernel refuses.
pub fn trains(namespace: &Namespace, interface: &str) -> Result<OffloadRecord, OffloadError> {
    without(namespace, interface, |name| distorts(name) && !DESCRIBED.contains(&name))
}

/// Disables the offloads for which `unwanted` holds.
fn without(
    namespace: &Namespace,
    interface: &str,
    unwanted: impl Fn(&str) -> bool,
) -> Result<OffloadRecord, OffloadError> {
    let features = features(namespace, interface)?;
    let (changeable, fixed): (Vec<_>, Vec<_>) = features
        .into_iter()
        .filter(|feature| unwanted(&feature.name) && (feature.active || feature.requested))
        .partition(|feature| feature.changeable);
    let changes: Vec<_> = changeable.into_iter().map(|feature| (feature.name, false)).collect();
    let mut record = set(namespace, interface, &changes)?;
    record.stuck.extend(fixed.into_iter().filter(|feature| feature.active).map(|feature| feature.name));
    Ok(record)
}

/// Enables or disables offloads. Names unknown to this kernel are skipped.
pub fn set(
    namespace: &Namespace,
    interface: &str,
    changes: &[(String, bool)],
) -> Result<OffloadRecord, OffloadError> {
    let before = features(namespace, interface)?;
    let mut words = vec![0; before.len().div_ceil(32) * SET_BLOCK];
    let mut record = OffloadRecord { interface: interface.into(), ..Default::default() };
    for (name, on) in changes {
        let Some(position) = before.iter().position(|feature| feature.name == *name) else { continue };
        let feature = &before[position];
        if !feature.changeable || feature.requested == *on {
            continue;
        }
        let (block, bit) = (position / 32 * SET_BLOCK, 1 << (position % 32));
        words[block] |= bit;
        words[block + 1] |= if *on { bit } else { 0 };
        record.before.push((name.clone(), feature.requested));
    }
    if record.before.is_empty() {
        return Ok(record);
    }
    let mut command = vec![ETHTOOL_SFEATURES, before.len().div_ceil(32) as u32];
    command.extend(words);
    run(namespace, interface, "change", &mut command)?;
    let after = features(namespace, interface)?;
    let stuck = after
        .into_iter()
        .filter(|feature| feature.active && changes.iter().any(|(name, on)| *name == feature.name && !on));
    record.stuck = stuck.map(|feature| feature.name).collect();
    Ok(record)
}

/// The offloads of an interface, in the kernel's order.
pub fn features(namespace: &Namespace, interface: &str) -> Result<Vec<Feature>, OffloadError> {
    let names = names(namespace, interface)?;
    let blocks = names.len().div_ceil(32);
    let mut command = vec![ETHTOOL_GFEATURES, blocks as u32];
    command.resize(2 + blocks * GET_BLOCK, 0);
    run(namespace, interface, "read", &mut command)?;
    let is_set = |position: usize, word: usize| {
        command[2 + position / 32 * GET_BLOCK + word] & (1 << (position % 32)) != 0
    };
    let feature = |(position, name): (usize, String)| Feature {
        name,
        changeable: is_set(position, 0) && !is_set(position, 3),
        requested: is_set(position, 1),
        active: is_set(position, 2),
    };
    Ok(names.into_iter().enumerate().map(feature).collect())
}

/// Whether an interface's frames may arrive unsplit or with incomplete checksums because the other end of its cable
/// is another interface of this host: veth or tap.
pub fn leaves_work_to_the_other_end(namespace: &Namespace, interface: &str) -> bool {
    // struct ethtool_drvinfo: command, then the driver's name in 32 bytes, and 160 bytes more.
    let mut command = [0; 49];
    command[0] = ETHTOOL_GDRVINFO;
    if run(namespace, interface, "read", &mut command).is_err() {
        return true;
    }
    let name: Vec<u8> =
        command[1..9].iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0).collect();
    matches!(name.as_slice(), b"veth" | b"tun" | b"virtio_net" | b"bridge" | b"netkit")
}

/// The number of receive queues of an interface; 1 if its driver does not report it.
pub fn receive_queues(namespace: &Namespace, interface: &str) -> u32 {
    // struct ethtool_channels: command, the most of each kind, then how many are in use: receive, send, other, combined.
    let mut command = [ETHTOOL_GCHANNELS, 0, 0, 0, 0, 0, 0, 0, 0];
    let counts = run(namespace, interface, "read", &mut command);
    if counts.is_ok() { (command[5] + command[8]).max(1) } else { 1 }
}

/// The kernel's names of its features; a feature's position is its bit.
fn names(namespace: &Namespace, interface: &str) -> Result<Vec<String>, OffloadError> {
    // struct ethtool_sset_info: command, reserved, mask (64 bits), then one length per bit.
    let mut command = vec![ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
    run(namespace, interface, "read", &mut command)?;
    let count = command[4] as usize;
    // struct ethtool_gstrings: command, set, count, then the strings.
    let mut command = vec![ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32];
    command.resize(3 + count * ETH_GSTRING_LEN / 4, 0);
    run(namespace, interface, "read", &mut command)?;
    let bytes: Vec<u8> = command[3..].iter().flat_map(|word| word.to_ne_bytes()).collect();
    let name = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    Ok(bytes.chunks(ETH_GSTRING_LEN).map(name).collect())
}

/// Passes a command to the interface's driver, which answers in the same buffer.
fn run(
    namespace: &Namespace,
    interface: &str,
    verb: &'static str,
    command: &mut [u32],
) -> Result<(), OffloadError> {
    let socket = namespace
        .run(|| socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None))?
        .map_err(io::Error::from);
    socket.and_then(|socket| ethtool(&socket, interface, command)).map_err(|cause| {
        let interface = interface.into();
        match cause.kind() {
            io::ErrorKind::PermissionDenied => OffloadError::Permission { interface },
            _ => OffloadError::Refused { verb, interface, cause },
        }
    })
}

#[expect(unsafe_code, reason = "an ioctl that no crate wraps")]
fn ethtool(socket: &OwnedFd, interface: &str, command: &mut [u32]) -> io::Result<()> {
    /// `SIOCETHTOOL` of `linux/sockios.h`.
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: ifreq is plain integers and pointers, for which all zeros is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
    // SAFETY: the request is live; its data points at a command whose second word (third for strings) tells
    // the kernel how long it is, which is how long `command` was made.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    nix::errno::Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_packets_is_switched_off_and_nothing_else() {
        for name in [
            "tx-checksum-ip-generic",
            "tx-checksum-sctp",
            "tx-scatter-gather",
            "tx-tcp-segmentation",
            "tx-tcp6-segmentation",
            "tx-generic-segmentation",
            "tx-udp-segmentation",
            "tx-gso-list",
            "tx-udp_tnl-segmentation",
            "tx-vlan-hw-insert",
            "tx-vlan-stag-hw-insert",
            "rx-vlan-hw-parse",
            "rx-gro",
            "rx-lro",
        ] {
            assert!(distorts(name), "{name}");
        }
        for name in
            ["rx-checksum", "highdma", "rx-vlan-filter", "rx-all", "loopback", "tx-lockless", "hw-tc-offload"]
        {
            assert!(!distorts(name), "{name}");
        }
    }
}

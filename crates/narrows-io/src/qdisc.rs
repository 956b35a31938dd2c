//! Installs the kernel's own queueing disciplines. narrows models its networks itself; these are for queueing frames
//! in front of a full ring, for probing the kernel, for tests, and for comparison.

use crate::host::kernel_version;
use crate::netlink::Request;
use crate::route_socket::{NetlinkError, RouteSocket};

impl RouteSocket {
    /// Makes frames wait in a queue of this many packets when a veth's ring to its peer is full, instead of being
    /// dropped. Linux supports this since 6.16, but up to 6.17 may stall (commit 5442a9da6978); on those versions
    /// nothing is done.
    ///
    /// # Errors
    /// If the interface is gone, or already has a qdisc.
    pub fn hold_back(&mut self, name: &str, packets: u32) -> Result<(), NetlinkError> {
        match kernel_version() {
            Some((6, 16 | 17)) => Ok(()),
            // struct tc_fifo_qopt: the limit.
            _ => self.add_root_qdisc(name, "pfifo", &packets.to_ne_bytes()),
        }
    }

    /// Adds a queueing discipline at an interface's root; `options` are its own netlink attributes, encoded. A kind
    /// that this kernel does not have is [`NetlinkError::NotFound`].
    pub fn add_root_qdisc(&mut self, name: &str, kind: &str, options: &[u8]) -> Result<(), NetlinkError> {
        /// `TC_H_ROOT`.
        const ROOT: u32 = 0xffff_ffff;
        /// `TCA_KIND` and `TCA_OPTIONS`.
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;
        let index = self.interface_index(name)?;
        // struct tcmsg: family and padding, index, handle, parent, info.
        let mut header = [0; 20];
        header[4..8].copy_from_slice(&index.0.to_ne_bytes());
        header[12..16].copy_from_slice(&ROOT.to_ne_bytes());
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let request = Request::new(libc::RTM_NEWQDISC, flags)
            .fixed(&header)
            .string(KIND, kind)
            .attribute(OPTIONS, options);
        self.execute(request, || format!("put the queueing discipline {kind} on `{name}`"))
    }
}

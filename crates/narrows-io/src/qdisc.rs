//! Installs the kernel's own queueing disciplines. narrows models its networks itself; these are for queueing frames
//! in front of a full ring, for probing the kernel, for tests, and for comparison.

use std::os::fd::{AsFd, AsRawFd};

use crate::bpf::Program;
use crate::host::kernel_version;
use crate::netlink::Request;
use crate::route_socket::{NetlinkError, RouteSocket};

/// Which packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Those that it receives.
    In,
    /// Those that it sends.
    Out,
}

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
        self.add_root_qdisc_as(name, kind, 0, options)
    }

    /// The same, with this handle; 0 for one of the kernel's choice.
    pub fn add_root_qdisc_as(
        &mut self,
        name: &str,
        kind: &str,
        handle: u32,
        options: &[u8],
    ) -> Result<(), NetlinkError> {
        /// `TC_H_ROOT`.
        const ROOT: u32 = 0xffff_ffff;
        self.add_qdisc(name, kind, handle, ROOT, options)
    }

    fn add_qdisc(
        &mut self,
        name: &str,
        kind: &str,
        handle: u32,
        parent: u32,
        options: &[u8],
    ) -> Result<(), NetlinkError> {
        /// `TCA_KIND` and `TCA_OPTIONS`.
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;
        let index = self.interface_index(name)?;
        // struct tcmsg: family and padding, index, handle, parent, info.
        let mut header = [0; 20];
        header[4..8].copy_from_slice(&index.0.to_ne_bytes());
        header[8..12].copy_from_slice(&handle.to_ne_bytes());
        header[12..16].copy_from_slice(&parent.to_ne_bytes());
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let request = Request::new(libc::RTM_NEWQDISC, flags)
            .fixed(&header)
            .string(KIND, kind)
            .attribute(OPTIONS, options);
        self.execute(request, || format!("put the queueing discipline {kind} on `{name}`"))
    }

    /// Makes a classifier see all packets that an interface sends, before its qdisc, or that it receives; its verdicts are
    /// those of actions (`TC_ACT_*`). Needs the kernel's modules `sch_ingress` and `cls_bpf`.
    pub fn add_classifier(
        &mut self,
        name: &str,
        way: Way,
        title: &str,
        program: &Program,
    ) -> Result<(), NetlinkError> {
        /// `TC_H_CLSACT`, and its places for packets, `TC_H_MIN_INGRESS` and `TC_H_MIN_EGRESS`.
        const CLSACT: u32 = 0xffff_fff1;
        const INGRESS: u32 = 0xffff_fff2;
        const EGRESS: u32 = 0xffff_fff3;
        const RTM_NEWTFILTER: u16 = 44;
        const KIND: u16 = 1;
        const OPTIONS: u16 = 2;
        /// `TCA_BPF_FD`, `TCA_BPF_NAME`, `TCA_BPF_FLAGS`, `TCA_BPF_FLAG_ACT_DIRECT`.
        const DESCRIPTOR: u16 = 6;
        const TITLE: u16 = 7;
        const FLAGS: u16 = 8;
        const VERDICTS_ARE_ACTIONS: u32 = 1;
        /// Of all protocols (`ETH_P_ALL`), at the first priority.
        const ALL: u32 = 1 << 16 | (libc::ETH_P_ALL as u16).to_be() as u32;
        match self.add_qdisc(name, "clsact", 0xffff_0000, CLSACT, &[]) {
            // For the other way.
            Err(NetlinkError::Exists { .. }) => {}
            added => added?,
        }
        let parent = match way {
            Way::In => INGRESS,
            Way::Out => EGRESS,
        };
        let index = self.interface_index(name)?;
        let mut header = [0; 20];
        header[4..8].copy_from_slice(&index.0.to_ne_bytes());
        header[12..16].copy_from_slice(&parent.to_ne_bytes());
        header[16..20].copy_from_slice(&ALL.to_ne_bytes());
        let flags = (libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
        let descriptor = program.as_fd().as_raw_fd() as u32;
        let request = Request::new(RTM_NEWTFILTER, flags).fixed(&header).string(KIND, "bpf").nested(
            OPTIONS,
            |options| {
                options.u32(DESCRIPTOR, descriptor).string(TITLE, title).u32(FLAGS, VERDICTS_ARE_ACTIONS)
            },
        );
        self.execute(request, || format!("put a classifier on `{name}`"))
    }
}

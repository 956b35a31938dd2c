//! The kernel's own queueing disciplines: putting one on an interface. What narrows models, it does itself;
//! this is for probing what the kernel has, for tests, and for comparing.

use crate::netlink::Request;
use crate::route_socket::{NetlinkError, RouteSocket};

impl RouteSocket {
    /// Puts a queueing discipline at an interface's root; `options` are its own netlink attributes, encoded.
    /// A kind that this kernel does not have is [`NetlinkError::NotFound`].
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

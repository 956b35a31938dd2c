//! Receives the datagrams of a case, with the kernel's stamps.

use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

use crate::sender::PORT;
use crate::trace::Came;

const BUFFER: usize = 256 << 20;
/// A receiver that has heard nothing for so long has heard all; before the first it has more patience.
pub const SILENCE: Duration = Duration::from_secs(20);

/// The socket that datagrams are for, in the namespace that the thread is in.
///
/// # Errors
/// When the system refuses.
pub fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    setsockopt(&socket, sockopt::IpRecvTos, &true)?;
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER)?;
    socket.set_read_timeout(Some(SILENCE))?;
    Ok(socket)
}

/// Receives until nothing has come for [`SILENCE`].
///
/// # Errors
/// When the system refuses, or a datagram has no stamp.
pub fn receive(socket: &UdpSocket) -> io::Result<Vec<Came>> {
    let mut came = Vec::new();
    let mut bytes = vec![0; 65536];
    loop {
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec, u32);
        let mut pieces = [IoSliceMut::new(&mut bytes)];
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty());
        let message = match message {
            Ok(message) => message,
            Err(nix::Error::EAGAIN) => return Ok(came),
            Err(nix::Error::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        };
        let (mut at, mut traffic_class) = (None, 0);
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(stamp) => {
                    at = Some(stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64);
                }
                ControlMessageOwned::Ipv4Tos(class) => traffic_class = class,
                _ => {}
            }
        }
        let length = message.bytes;
        let at = at.ok_or_else(|| io::Error::other("a datagram came without a stamp"))?;
        let Some(number) = bytes[..length].first_chunk().map(|number| u32::from_be_bytes(*number)) else {
            return Err(io::Error::other("a datagram came without a number"));
        };
        came.push(Came { number, at, traffic_class });
    }
}

//! A netlink socket that sends a request and waits for the answer.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::sockopt::ReceiveTimeout;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket,
};

use nix::sys::time::TimeVal;

use super::message::{Attributes, HEADER, Message, Request, messages, u32_at};

/// The maximum time for an answer. Normally it takes microseconds, or as long as others hold the kernel's network
/// lock.
const PATIENCE_SECONDS: i64 = 30;

/// The kernel's rejection of a request.
#[derive(Debug)]
pub(crate) struct KernelRefusal {
    /// Its error code.
    pub(crate) cause: io::Error,
    /// Its message, if there is one.
    pub(crate) detail: Option<String>,
}

impl From<io::Error> for KernelRefusal {
    fn from(cause: io::Error) -> Self {
        Self { cause, detail: None }
    }
}

impl From<nix::Error> for KernelRefusal {
    fn from(errno: nix::Error) -> Self {
        io::Error::from(errno).into()
    }
}

/// The result of a request.
pub(crate) type Answer = Result<Vec<Message>, KernelRefusal>;

/// A socket of one netlink family, in the namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    /// Larger than any message of a dump, which the kernel limits to 32 KiB.
    const BUFFER: usize = 1 << 16;

    /// Opens a socket of this family in the calling thread's namespace.
    pub(crate) fn open(family: SockProtocol) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, family)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        setsockopt(&socket, ReceiveTimeout, &TimeVal::new(PATIENCE_SECONDS, 0))?;
        // Without these, answers are shorter but still correct, so an older kernel's refusal does not matter.
        let _ = enable(&socket, libc::NETLINK_EXT_ACK);
        let _ = enable(&socket, libc::NETLINK_CAP_ACK);
        Ok(Self { socket, sequence: 0, buffer: vec![0; Self::BUFFER] })
    }

    /// Sends a request and waits until the kernel has executed it.
    pub(crate) fn execute(&mut self, request: Request) -> Answer {
        self.exchange(request, libc::NLM_F_ACK as u16)
    }

    /// Requests all objects of a kind.
    pub(crate) fn dump(&mut self, request: Request) -> Answer {
        self.exchange(request, libc::NLM_F_DUMP as u16)
    }

    /// Sends several messages as one transaction, between `begin` and `end`, which are acknowledged only if they are
    /// refused.
    pub(crate) fn transact(&mut self, begin: Request, requests: Vec<Request>, end: Request) -> Answer {
        let mut bytes = begin.finish(self.next_sequence(), 0);
        let first = self.sequence;
        let mut awaited = Vec::new();
        for request in requests {
            let sequence = self.next_sequence();
            bytes.extend(request.finish(sequence, libc::NLM_F_ACK as u16));
            awaited.push(sequence);
        }
        bytes.extend(end.finish(self.next_sequence(), 0));
        self.converse(&bytes, first, awaited)
    }

    fn exchange(&mut self, request: Request, flags: u16) -> Answer {
        let sequence = self.next_sequence();
        let bytes = request.finish(sequence, flags);
        self.converse(&bytes, sequence, vec![sequence])
    }

    /// Sends, then reads until each awaited sequence number has been acknowledged or completed, or any from `first`
    /// on has been refused.
    fn converse(&mut self, bytes: &[u8], first: u32, mut awaited: Vec<u32>) -> Answer {
        send(self.socket.as_raw_fd(), bytes, MsgFlags::empty())?;
        let mut answer = Vec::new();
        while !awaited.is_empty() {
            let length = match recv(self.socket.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_TRUNC) {
                Ok(length) => length,
                Err(nix::Error::EINTR) => continue,
                Err(nix::Error::EAGAIN) => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                Err(errno) => return Err(errno.into()),
            };
            if length > self.buffer.len() {
                return Err(io::Error::other("a netlink answer did not fit its buffer").into());
            }
            for message in messages(&self.buffer[..length]) {
                // An answer to an earlier request, which was abandoned at its first refusal.
                if message.sequence.wrapping_sub(first) > self.sequence.wrapping_sub(first) {
                    continue;
                }
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => {
                        acknowledged(&message)?;
                        awaited.retain(|sequence| *sequence != message.sequence);
                    }
                    libc::NLMSG_DONE => awaited.retain(|sequence| *sequence != message.sequence),
                    _ => answer.push(message),
                }
            }
        }
        Ok(answer)
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }
}

/// Parses an acknowledgement: an error code, zero for success, and possibly the kernel's message.
fn acknowledged(message: &Message) -> Result<(), KernelRefusal> {
    /// `NLM_F_ACK_TLVS`: attributes follow.
    const WITH_ATTRIBUTES: u16 = 0x200;
    /// `NLM_F_CAPPED`: the request was not copied back.
    const CAPPED: u16 = 0x100;
    /// `NLMSGERR_ATTR_MSG`.
    const WORDS: u16 = 1;

    if message.payload.len() < 4 + HEADER {
        return Err(io::Error::other("a netlink acknowledgement was cut off").into());
    }
    let errno = -(u32_at(&message.payload, 0) as i32);
    if errno == 0 {
        return Ok(());
    }
    let echoed = if message.flags & CAPPED == 0 { u32_at(&message.payload, 4) as usize } else { HEADER };
    let detail = (message.flags & WITH_ATTRIBUTES != 0)
        .then(|| Attributes::of(message.payload.get(4 + echoed..).unwrap_or_default()).string(WORDS))
        .flatten();
    Err(KernelRefusal { cause: io::Error::from_raw_os_error(errno), detail })
}

#[expect(unsafe_code, reason = "a socket option that no crate wraps")]
fn enable(socket: &OwnedFd, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is a live c_int of the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_NETLINK,
            option,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    nix::errno::Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_with_words_is_read() {
        let mut payload = (-libc::EEXIST).to_ne_bytes().to_vec();
        payload.extend_from_slice(&[0; HEADER]);
        payload.extend_from_slice(&[7, 0, 1, 0, b'n', b'o', 0]);
        let message = Message { kind: 2, flags: 0x300, sequence: 1, payload };
        let refusal = acknowledged(&message).unwrap_err();
        assert_eq!(refusal.cause.raw_os_error(), Some(libc::EEXIST));
        assert_eq!(refusal.detail.as_deref(), Some("no"));
    }
}

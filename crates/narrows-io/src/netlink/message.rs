//! The bytes of netlink messages: a header, a fixed part, then attributes that may nest.
//!
//! Everything is in host byte order and padded to four bytes. An attribute consists of its length, its kind and its
//! payload.

/// Length of `struct nlmsghdr`.
pub(super) const HEADER: usize = 16;
/// Marks an attribute that holds attributes.
const NESTED: u16 = 1 << 15;
/// The bits of an attribute's kind that are not flags.
const KIND_MASK: u16 = 0x3fff;

/// A message under construction.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A message of this kind (`RTM_NEWLINK`, …) with these flags besides `NLM_F_REQUEST`.
    pub(crate) fn new(kind: u16, flags: u16) -> Self {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags | libc::NLM_F_REQUEST as u16).to_ne_bytes());
        Self { bytes }
    }

    /// Appends a fixed part.
    pub(crate) fn fixed(mut self, part: &[u8]) -> Self {
        self.bytes.extend_from_slice(part);
        self.pad();
        self
    }

    /// Appends an attribute.
    pub(crate) fn attribute(mut self, kind: u16, payload: &[u8]) -> Self {
        let length = u16::try_from(payload.len() + 4).expect("no attribute here comes near 64 KiB");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(payload);
        self.pad();
        self
    }

    /// Appends a zero-terminated string attribute.
    pub(crate) fn string(self, kind: u16, text: &str) -> Self {
        let mut payload = text.as_bytes().to_vec();
        payload.push(0);
        self.attribute(kind, &payload)
    }

    /// Appends a 32-bit attribute in host order.
    pub(crate) fn u32(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Appends an attribute that contains what `fill` appends.
    pub(crate) fn nested(mut self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        let mut filled = fill(self);
        let length = u16::try_from(filled.bytes.len() - start).expect("no attribute here comes near 64 KiB");
        filled.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        filled.bytes[start + 2..start + 4].copy_from_slice(&(kind | NESTED).to_ne_bytes());
        filled
    }

    /// The finished message.
    pub(super) fn finish(mut self, sequence: u32, extra_flags: u16) -> Vec<u8> {
        let length = u32::try_from(self.bytes.len()).expect("no message here comes near 4 GiB");
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        let flags = u16_at(&self.bytes, 6) | extra_flags;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.bytes
    }

    fn pad(&mut self) {
        self.bytes.resize(align(self.bytes.len()), 0);
    }
}

/// A message from the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(super) flags: u16,
    pub(super) sequence: u32,
    pub(crate) payload: Vec<u8>,
}

impl Message {
    /// The attributes after a fixed part of `fixed` bytes.
    pub(crate) fn attributes(&self, fixed: usize) -> Attributes<'_> {
        Attributes { bytes: self.payload.get(align(fixed)..).unwrap_or_default() }
    }
}

/// Splits the bytes of one read into messages; a truncated message at the end is ignored.
pub(crate) fn messages(mut bytes: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    while bytes.len() >= HEADER {
        let length = u32_at(bytes, 0) as usize;
        if length < HEADER || length > bytes.len() {
            break;
        }
        found.push(Message {
            kind: u16_at(bytes, 4),
            flags: u16_at(bytes, 6),
            sequence: u32_at(bytes, 8),
            payload: bytes[HEADER..length].to_vec(),
        });
        bytes = bytes.get(align(length)..).unwrap_or_default();
    }
    found
}

/// Iterates over attributes: (kind, payload).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    bytes: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes inside another's payload.
    pub(crate) fn of(payload: &'a [u8]) -> Self {
        Self { bytes: payload }
    }

    /// The payload of the first attribute of this kind.
    pub(crate) fn get(mut self, kind: u16) -> Option<&'a [u8]> {
        self.find_map(|(found, payload)| (found == kind).then_some(payload))
    }

    /// The first attribute of this kind as a string without its closing zero.
    pub(crate) fn string(self, kind: u16) -> Option<String> {
        let payload = self.get(kind)?;
        let text = payload.strip_suffix(&[0]).unwrap_or(payload);
        Some(String::from_utf8_lossy(text).into_owned())
    }

    /// The first attribute of this kind as a number in host order.
    pub(crate) fn u32(self, kind: u16) -> Option<u32> {
        self.get(kind).filter(|payload| payload.len() >= 4).map(|payload| u32_at(payload, 0))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.len() < 4 {
            return None;
        }
        let length = usize::from(u16_at(self.bytes, 0));
        if length < 4 || length > self.bytes.len() {
            return None;
        }
        let kind = u16_at(self.bytes, 2) & KIND_MASK;
        let payload = &self.bytes[4..length];
        self.bytes = self.bytes.get(align(length)..).unwrap_or_default();
        Some((kind, payload))
    }
}

/// Two bytes in host order; the caller has checked the length.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

/// Four bytes in host order; the caller has checked the length.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn align(length: usize) -> usize {
    length.next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let bytes = Request::new(16, 0)
            .fixed(&[1, 2, 3, 4])
            .string(3, "veth")
            .nested(18, |link| link.string(1, "x").u32(2, 7))
            .finish(9, 4);
        let found = messages(&bytes);
        assert_eq!(found.len(), 1);
        let message = &found[0];
        assert_eq!((message.kind, message.sequence, message.flags), (16, 9, 5));
        assert_eq!(message.payload[..4], [1, 2, 3, 4]);
        let attributes = message.attributes(4);
        assert_eq!(attributes.string(3).as_deref(), Some("veth"));
        let inner = Attributes::of(attributes.get(18).unwrap());
        assert_eq!(inner.string(1).as_deref(), Some("x"));
        assert_eq!(inner.u32(2), Some(7));
    }

    #[test]
    fn cut_off_bytes_are_no_message_and_no_attribute() {
        let bytes = Request::new(16, 0).string(3, "veth").finish(1, 0);
        for length in 0..bytes.len() {
            assert!(messages(&bytes[..length]).is_empty());
        }
        assert_eq!(Attributes::of(&[9, 0, 1, 0, 5]).next(), None);
        assert_eq!(Attributes::of(&[3, 0, 1, 0]).next(), None, "shorter than its own header");
    }
}

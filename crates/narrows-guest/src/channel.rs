//! The protocol between the guest's first process and the host's supervisor, over a serial line with eight-bit bytes.
//!
//! Each message is a type byte, the length of its body in four bytes (little-endian), and the body. A zero byte
//! between messages has no meaning: it only wakes a reader.

use std::collections::VecDeque;

/// The maximum length of a message body, in bytes.
pub(crate) const LONGEST: usize = 1 << 16;
const HEAD: usize = 5;

/// An output stream of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Standard,
    Error,
    /// The terminal, for either stream.
    Terminal,
}

impl Output {
    const ALL: [Self; 3] = [Self::Standard, Self::Error, Self::Terminal];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// A message from the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromGuest {
    /// The program has been started, at this instant of the guest's clock (nanoseconds).
    Started(u64),
    /// The program wrote these bytes.
    Wrote(Output, Vec<u8>),
    /// The program has read this many bytes of its input.
    Taken(u32),
    /// Whether only terminal input is awaited, as by a shell at its prompt.
    Prompting(bool),
    /// The program has ended with this status, at this instant of the guest's clock (nanoseconds); its output was
    /// sent before, and its files are on the host.
    Ended(u8, u64),
    /// The program could not be started, with the reason.
    Failed(String),
}

/// A message from the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromHost {
    /// Input for the program.
    Input(Vec<u8>),
    /// The end of the input.
    InputEnded,
    /// Send the program this signal.
    Signal(u8),
    /// The terminal has this many rows and columns.
    Window(u16, u16),
    /// Nobody reads this stream any more.
    Closed(Output),
}

impl FromGuest {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Started(at) => message(1, &[&at.to_le_bytes()]),
            Self::Wrote(output, bytes) => message(2, &[&[*output as u8], bytes]),
            Self::Taken(count) => message(3, &[&count.to_le_bytes()]),
            Self::Prompting(prompting) => message(4, &[&[u8::from(*prompting)]]),
            Self::Ended(status, at) => message(5, &[&[*status], &at.to_le_bytes()]),
            Self::Failed(why) => message(6, &[why.as_bytes()]),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        Some(match (kind, body) {
            (1, body) => Self::Started(number(body)?),
            (2, [output, bytes @ ..]) => Self::Wrote(Output::from_byte(*output)?, bytes.to_vec()),
            (3, body) => Self::Taken(u32::from_le_bytes(body.try_into().ok()?)),
            (4, [prompting]) => Self::Prompting(*prompting != 0),
            (5, [status, at @ ..]) => Self::Ended(*status, number(at)?),
            (6, why) => Self::Failed(String::from_utf8_lossy(why).into_owned()),
            _ => return None,
        })
    }
}

impl FromHost {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Input(bytes) => message(1, &[bytes]),
            Self::InputEnded => message(2, &[]),
            Self::Signal(signal) => message(3, &[&[*signal]]),
            Self::Window(rows, columns) => message(4, &[&rows.to_le_bytes(), &columns.to_le_bytes()]),
            Self::Closed(output) => message(5, &[&[*output as u8]]),
        }
    }

    fn decode(kind: u8, body: &[u8]) -> Option<Self> {
        Some(match (kind, body) {
            (1, bytes) => Self::Input(bytes.to_vec()),
            (2, []) => Self::InputEnded,
            (3, [signal]) => Self::Signal(*signal),
            (4, [a, b, c, d]) => Self::Window(u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d])),
            (5, [output]) => Self::Closed(Output::from_byte(*output)?),
            _ => return None,
        })
    }
}

fn number(body: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(body.try_into().ok()?))
}

/// Every caller ensures that a body is no longer than [`LONGEST`].
fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(HEAD + length);
    bytes.push(kind);
    bytes.extend((length as u32).to_le_bytes());
    parts.iter().for_each(|part| bytes.extend(*part));
    bytes
}

/// Received bytes, split into messages.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: VecDeque<u8>,
}

/// Invalid bytes: the other side does not speak this protocol.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("what came over the serial line is not a message (its first byte is {kind}, its length {length})")]
pub(crate) struct Garbled {
    kind: u8,
    length: usize,
}

impl Incoming {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The guest's next message, once it is complete.
    pub(crate) fn guest_message(&mut self) -> Result<Option<FromGuest>, Garbled> {
        self.next(FromGuest::decode)
    }

    /// The host's next message, once it is complete.
    pub(crate) fn host_message(&mut self) -> Result<Option<FromHost>, Garbled> {
        self.next(FromHost::decode)
    }

    fn next<T>(&mut self, decode: impl Fn(u8, &[u8]) -> Option<T>) -> Result<Option<T>, Garbled> {
        while self.bytes.front() == Some(&0) {
            self.bytes.pop_front();
        }
        let bytes = &*self.bytes.make_contiguous();
        let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let garbled = Garbled { kind: head[0], length };
        // One byte of a body may identify the stream.
        if length > LONGEST + 1 {
            return Err(garbled);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = decode(head[0], body).ok_or(garbled)?;
        self.bytes.drain(..HEAD + length);
        Ok(Some(message))
    }
}

/// Reads bytes as messages of either side, whole and in pieces as long as the first byte says. For fuzzers and tests.
///
/// # Panics
/// If the pieces are read as other messages than the whole, a message is written as another, or more is kept than one.
pub fn rehearse(bytes: &[u8]) {
    let Some((&length, bytes)) = bytes.split_first() else { return };
    let piece = usize::from(length).max(1);
    read_both_ways(bytes, piece, Incoming::guest_message, FromGuest::encode);
    read_both_ways(bytes, piece, Incoming::host_message, FromHost::encode);
}

type Next<T> = fn(&mut Incoming) -> Result<Option<T>, Garbled>;

fn read_both_ways<T: PartialEq + std::fmt::Debug>(
    bytes: &[u8],
    piece: usize,
    next: Next<T>,
    encode: fn(&T) -> Vec<u8>,
) {
    let read = |piece: usize| {
        let mut incoming = Incoming::default();
        let mut messages = Vec::new();
        for part in bytes.chunks(piece) {
            incoming.push(part);
            loop {
                match next(&mut incoming) {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(garbled) => return (messages, Some(garbled)),
                }
            }
            assert!(
                incoming.bytes.len() <= HEAD + LONGEST + 1,
                "{} bytes of one message",
                incoming.bytes.len()
            );
        }
        (messages, None)
    };
    let whole = read(bytes.len().max(1));
    assert_eq!(read(piece), whole);
    for message in whole.0 {
        let mut incoming = Incoming::default();
        incoming.push(&encode(&message));
        assert_eq!(next(&mut incoming), Ok(Some(message)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_being_cut_anywhere() {
        let said = [
            FromGuest::Started(7),
            FromGuest::Wrote(Output::Error, b"\0\x01bytes".to_vec()),
            FromGuest::Wrote(Output::Terminal, Vec::new()),
            FromGuest::Taken(70_000),
            FromGuest::Prompting(true),
            FromGuest::Failed("no such program".into()),
            FromGuest::Ended(143, u64::MAX),
        ];
        let bytes: Vec<u8> = said.iter().flat_map(|message| [message.encode(), vec![0]].concat()).collect();
        for cut in 1..bytes.len() {
            let mut incoming = Incoming::default();
            let mut heard = Vec::new();
            for part in bytes.chunks(cut) {
                incoming.push(part);
                while let Some(message) = incoming.guest_message().unwrap() {
                    heard.push(message);
                }
            }
            assert_eq!(heard, said);
        }
    }

    #[test]
    fn the_host_s_messages_too() {
        let said = [
            FromHost::Input(vec![3; 100]),
            FromHost::InputEnded,
            FromHost::Signal(15),
            FromHost::Window(24, 80),
            FromHost::Closed(Output::Standard),
        ];
        let mut incoming = Incoming::default();
        said.iter().for_each(|message| incoming.push(&message.encode()));
        for message in said {
            assert_eq!(incoming.host_message(), Ok(Some(message)));
        }
        assert_eq!(incoming.host_message(), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_said() {
        let mut incoming = Incoming::default();
        incoming.push(b"Kernel panic");
        assert!(incoming.guest_message().is_err());
        let mut incoming = Incoming::default();
        incoming.push(&message(2, &[&[9]]));
        assert!(incoming.guest_message().is_err(), "there is no ninth stream");
    }
}

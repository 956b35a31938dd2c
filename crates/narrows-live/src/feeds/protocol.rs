//! The protocol of a feed's socket in both directions: little-endian 64-bit integers.
//!
//! | from the writer | meaning |
//! |---|---|
//! | v ≥ 0 | the delay of a packet, in nanoseconds |
//! | −1 | lose a packet |
//! | −2 | ask for the room: how many values would be accepted now |
//! | −3, then n ≥ 1 | ask for the room as soon as it is at least n |
//!
//! | from the run | meaning |
//! |---|---|
//! | v ≥ 0 | the room, in answer to −2 or −3 |
//! | −1 | refused: another writer is connected |
//! | −2 | malformed: the connection is closed |
//! | −3 | the run is over, or the feed was removed |
//! | −4, then the rest of a [question](QUESTION) | a packet needs its delay (two-way feeds only) |
//!
//! Messages of a writer are processed in order; while its −3 waits for room, nothing behind it is read.
//! `docs/feeds.md` has the rules in full.

/// Lose a packet.
pub const LOSE: i64 = -1;
/// Ask for the room.
pub const ASK_ROOM: i64 = -2;
/// Ask to be told when there is room for as many values as the following integer says.
pub const ASK_WAKE: i64 = -3;

/// The length of an integer.
pub const INTEGER: usize = 8;
/// The length of a question, marker included.
pub const QUESTION: usize = 72;
/// The first integer of a question.
pub const QUESTION_MARKER: i64 = -4;

/// A message from a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// For the next packet: a delay in nanoseconds, or [`LOSE`].
    Value(i64),
    /// It asks for the room.
    Room,
    /// It asks to be told when there is this much room.
    Wake(u64),
}

/// The result of decoding the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A message, and its length in bytes.
    Whole(Message, usize),
    /// An incomplete message.
    Part,
    /// Not a message.
    Malformed,
}

/// A message from the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// How many values would be accepted now.
    Room(u64),
    /// Another writer is connected.
    Refused,
    /// What was received is not a message.
    Malformed,
    /// The run is over, or the feed was removed.
    Over,
}

/// Decodes the message at the beginning of `bytes`.
pub fn decode(bytes: &[u8]) -> Decoded {
    let Some(first) = integer(bytes) else { return Decoded::Part };
    match first {
        LOSE.. => Decoded::Whole(Message::Value(first), INTEGER),
        ASK_ROOM => Decoded::Whole(Message::Room, INTEGER),
        ASK_WAKE => match integer(&bytes[INTEGER..]) {
            None => Decoded::Part,
            Some(level @ 1..) => Decoded::Whole(Message::Wake(level.unsigned_abs()), 2 * INTEGER),
            Some(_) => Decoded::Malformed,
        },
        _ => Decoded::Malformed,
    }
}

fn integer(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk().map(|bytes| i64::from_le_bytes(*bytes))
}

impl Answer {
    /// The bytes sent over the socket.
    pub fn encode(self) -> [u8; INTEGER] {
        let integer = match self {
            // Room is counted in values held in memory.
            Self::Room(room) => i64::try_from(room).unwrap_or(i64::MAX),
            Self::Refused => -1,
            Self::Malformed => -2,
            Self::Over => -3,
        };
        integer.to_le_bytes()
    }

    /// Decodes an answer. `None` if it is not one.
    pub fn decode(bytes: [u8; INTEGER]) -> Option<Self> {
        match i64::from_le_bytes(bytes) {
            room @ 0.. => Some(Self::Room(room.unsigned_abs())),
            -1 => Some(Self::Refused),
            -2 => Some(Self::Malformed),
            -3 => Some(Self::Over),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(integers: &[i64]) -> Vec<u8> {
        integers.iter().flat_map(|integer| integer.to_le_bytes()).collect()
    }

    #[test]
    fn each_integer_has_its_meaning() {
        let whole = |message, length| Decoded::Whole(message, length);
        for (integers, expected) in [
            (&[0][..], whole(Message::Value(0), 8)),
            (&[200_000], whole(Message::Value(200_000), 8)),
            (&[i64::MAX], whole(Message::Value(i64::MAX), 8)),
            (&[-1], whole(Message::Value(LOSE), 8)),
            (&[-2], whole(Message::Room, 8)),
            (&[-3], Decoded::Part),
            (&[-3, 1], whole(Message::Wake(1), 16)),
            (&[-3, i64::MAX], whole(Message::Wake(i64::MAX as u64), 16)),
            (&[-3, 0], Decoded::Malformed),
            (&[-3, -3], Decoded::Malformed),
            (&[-4], Decoded::Malformed),
            (&[i64::MIN], Decoded::Malformed),
        ] {
            assert_eq!(decode(&bytes(integers)), expected, "{integers:?}");
        }
        assert_eq!(decode(&[]), Decoded::Part);
        assert_eq!(decode(&[0xff; 7]), Decoded::Part);
        assert_eq!(decode(b"12345678 nanoseconds"), whole(Message::Value(0x3837_3635_3433_3231), 8));
    }

    #[test]
    fn answers_come_back_as_they_were() {
        for answer in [Answer::Room(0), Answer::Room(4096), Answer::Refused, Answer::Malformed, Answer::Over]
        {
            assert_eq!(Answer::decode(answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode(QUESTION_MARKER.to_le_bytes()), None);
    }
}

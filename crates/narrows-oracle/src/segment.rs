//! TCP segments of no real connection: whole headers, so that disciplines see acknowledgements.
//!
//! The sequence number is the number of the datagram. The checksum is wrong: a receiver that has no such connection would answer
//! a right one.

/// An option for experiments (RFC 6994), which no filter knows.
const EXPERIMENT: [u8; 4] = [254, 4, 0, 0];

/// What a segment's header has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The flags.
    pub flags: u8,
    /// The acknowledgement number.
    pub acknowledgement: u32,
    /// The sender's timestamp, and the one that it returns.
    pub timestamps: Option<[u32; 2]>,
    /// What is selectively acknowledged.
    pub blocks: [Option<[u32; 2]>; 2],
    /// Whether it has an option that filters do not know.
    pub is_odd: bool,
}

impl Segment {
    /// Its header and so many bytes of data.
    pub fn bytes(&self, number: u32, [source, destination]: [u16; 2], data: usize) -> Vec<u8> {
        let mut bytes = [source.to_be_bytes(), destination.to_be_bytes()].concat();
        bytes.extend([number, self.acknowledgement].map(u32::to_be_bytes).as_flattened());
        bytes.extend([0, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        if let Some(timestamps) = self.timestamps {
            bytes.extend([1, 1, 8, 10]);
            bytes.extend(timestamps.map(u32::to_be_bytes).as_flattened());
        }
        let blocks: Vec<u8> =
            self.blocks.iter().flatten().flatten().flat_map(|edge| edge.to_be_bytes()).collect();
        if !blocks.is_empty() {
            bytes.extend([1, 1, 5, 2 + blocks.len() as u8]);
            bytes.extend(blocks);
        }
        if self.is_odd {
            bytes.extend(EXPERIMENT);
        }
        // In words of four bytes, in the upper half.
        bytes[12] = (bytes.len() / 4) as u8 * 16;
        bytes.resize(bytes.len() + data, 0);
        bytes
    }

    /// Bytes of its frame with so many bytes of data.
    pub fn frame(&self, data: u32) -> u32 {
        14 + 20 + self.bytes(0, [0; 2], 0).len() as u32 + data
    }
}

//! The options of a TCP segment.

/// The options of a TCP segment, as far as a filter of acknowledgements compares them (RFC 7323, RFC 2018). Packets do not have
/// them: [`Engine::set_tcp_options`](crate::Engine::set_tcp_options).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// The sender's timestamp, and the one that it returns.
    pub timestamps: Option<[u32; 2]>,
    /// What is selectively acknowledged: the first sequence number of each block, and the one after its last.
    blocks: [[u32; 2]; Self::MOST_BLOCKS],
    count: u8,
    /// Whether the header has anything else that may be for the receiver: reserved bits, other options, malformed ones.
    pub has_others: bool,
}

impl TcpOptions {
    /// As many blocks as the longest header has room for.
    pub const MOST_BLOCKS: usize = 4;

    /// Options without blocks.
    pub fn new(timestamps: Option<[u32; 2]>, has_others: bool) -> Self {
        Self { timestamps, has_others, ..Self::default() }
    }

    /// The blocks that are selectively acknowledged.
    pub fn blocks(&self) -> &[[u32; 2]] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Adds a block. Returns whether there was room for it.
    pub fn add_block(&mut self, block: [u32; 2]) -> bool {
        let room = self.blocks.get_mut(usize::from(self.count));
        room.map(|place| *place = block).map(|()| self.count += 1).is_some()
    }
}

//! Why a run is not divided among threads.

/// Why a run is on one thread although more were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whole {
    /// A time series looks at all links at once.
    Series,
    /// The caller changes links of the engine.
    Adjusted,
    /// A capture cannot be read more than once.
    Capture,
    /// Something makes copies of packets, or instances of links.
    Copies,
    /// No link with a constant delay divides the network.
    Undivided,
    /// Only links with both ends of a source that responds would divide it.
    Responding,
    /// The run has a timeline and no duration.
    Endless,
    /// The timeline changes rules, or what a link between two shares must not do.
    Timeline,
    /// Nothing happened for an hour, and the timeline goes on.
    Pause,
    /// Sources that respond send so much that the limit on them may be exceeded.
    Rush,
    /// The packets inside came near the limit on memory.
    Memory,
}

impl Whole {
    /// The reason in words: "one thread: …".
    pub const fn words(self) -> &'static str {
        match self {
            Self::Series => "a time series looks at all links at once",
            Self::Adjusted => "the caller changes links of the engine",
            Self::Capture => "a capture is not a regular file, and each thread would read it",
            Self::Copies => {
                "links duplicate or fragment packets, switches copy them, or links are made for each flow"
            }
            Self::Undivided => "no link with a constant delay divides the network",
            Self::Responding => {
                "no link with a constant delay divides the network without parting the two ends of a source that responds"
            }
            Self::Endless => "there is a timeline, but the run has no duration",
            Self::Timeline => {
                "the timeline changes rules, or lets a link between two threads copy packets or delay them less"
            }
            Self::Pause => "sources that respond pause for an hour while the timeline goes on",
            Self::Rush => "sources that respond send millions of packets in a millisecond",
            Self::Memory => "the packets inside came near the limit on memory",
        }
    }
}

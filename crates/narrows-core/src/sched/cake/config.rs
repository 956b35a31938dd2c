//! The parameters of CAKE.

use crate::pool::PacketState;
use crate::queue::Bound;
use crate::time::Duration;
use crate::units::{Bytes, Rate};

/// Queues of a tin, and places for hosts.
pub(super) const QUEUES: usize = 1024;

/// The parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeConfig {
    /// Rate of the shaper; [`Rate::UNLIMITED`], the default, leaves it to the link. Not zero.
    pub bandwidth: Rate,
    /// Whether the rate at which packets arrive takes the place of `bandwidth`, as soon as it is known. Default: false.
    pub autorate: bool,
    /// How many tins there are, and which code points each has. Default: three.
    pub tins: TinMode,
    /// Between what the bandwidth is divided. Default: flows and both their hosts.
    pub isolation: Isolation,
    /// What counts as the length of a packet. Default: the frame.
    pub framing: Framing,
    /// The round-trip time for which queue management is tuned. Default: 100 ms.
    pub rtt: Duration,
    /// Whether dropped packets are charged to the shaper, because they have used the bottleneck, which is before
    /// this queue. Default: false.
    pub ingress: bool,
    /// Which acknowledgements are dropped because a later one makes them redundant. Default: none.
    pub ack_filter: AckFilter,
    /// Whether the code points of all packets are cleared after they have been read. ECN stays. Default: false.
    pub wash: bool,
}

impl Default for CakeConfig {
    fn default() -> Self {
        Self {
            bandwidth: Rate::UNLIMITED,
            autorate: false,
            tins: TinMode::Diffserv3,
            isolation: Isolation::Triple,
            framing: Framing::default(),
            rtt: Duration::from_millis(100),
            ingress: false,
            ack_filter: AckFilter::Off,
            wash: false,
        }
    }
}

impl CakeConfig {
    /// The usual limit, as in Linux: four times what the bandwidth carries in `rtt`, at least 4 MiB; at most 10,240
    /// frames of 1514 bytes, which is also the limit without a bandwidth.
    pub fn limit(&self) -> Bound {
        const MOST: u64 = 10_240 * 1514;
        const LEAST: u64 = 4 << 20;
        let product = u128::from(self.bandwidth.bits_per_second()) * u128::from(self.rtt.nanos());
        let bytes = (product / 2_000_000_000).clamp(LEAST.into(), MOST.into());
        Bound::Bytes(Bytes::new(bytes as u64))
    }

    /// The acceptable sojourn time of a standing queue, where the bandwidth is not too low for it.
    pub(super) fn target(&self) -> Duration {
        Duration::from_nanos((self.rtt.nanos() / 20).max(1_000))
    }
}

/// Which acknowledgements of TCP are dropped because a later one of the same connection makes them redundant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AckFilter {
    /// None.
    #[default]
    Off,
    /// Of several that wait, the first, so that at least one of them stays.
    On,
    /// Also a single one, directly before the one that makes it redundant.
    Aggressive,
}

/// Where a filter sends packets. What it does not say follows from their headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CakeTarget {
    /// The number of a tin.
    pub tin: Option<u8>,
    /// The number of a host, from 1 on, that takes the place of the source and of the destination.
    pub host: Option<u16>,
    /// The number of a flow, from 1 on.
    pub flow: Option<u16>,
}

impl CakeTarget {
    /// The highest number of a host and of a flow: as many queues has a tin.
    pub const MOST: u16 = QUEUES as u16;
}

/// What the shaper and the flows' turns count as the length of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// Bytes that each IP packet takes more. `None`: that of its link header, so that frames count.
    pub overhead: Option<i16>,
    /// The minimum, before cells.
    pub mpu: u16,
    /// Cells of the link layer.
    pub cells: Cells,
}

/// How a link layer divides packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// Not at all.
    #[default]
    None,
    /// Into cells of ATM: 53 bytes for each 48 or part of them.
    Atm,
    /// Into blocks of PTM: 65 bytes for each 64 or part of them.
    Ptm,
}

impl Framing {
    /// The adjusted length of a packet. At least 1: with a negative overhead, less could be left.
    pub(super) fn length(&self, packet: &PacketState) -> u64 {
        let header = self.overhead.map_or(i64::from(packet.link_header), i64::from);
        let length = (i64::from(packet.length) + header).max(i64::from(self.mpu)).max(1) as u64;
        match self.cells {
            Cells::None => length,
            Cells::Atm => length.div_ceil(48) * 53,
            Cells::Ptm => length + length.div_ceil(64),
        }
    }
}

/// Between what the bandwidth is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Nothing: all packets share a queue.
    None,
    /// Source hosts.
    Source,
    /// Destination hosts.
    Destination,
    /// Pairs of hosts.
    Hosts,
    /// Flows.
    Flows,
    /// Source hosts, and the flows of each.
    DualSource,
    /// Destination hosts, and the flows of each.
    DualDestination,
    /// Source and destination hosts, and the flows of each.
    Triple,
}

impl Isolation {
    /// Whether the flows of a source host share its part.
    pub(super) const fn counts_sources(self) -> bool {
        matches!(self, Self::DualSource | Self::Triple)
    }

    /// Whether the flows of a destination host share its part.
    pub(super) const fn counts_destinations(self) -> bool {
        matches!(self, Self::DualDestination | Self::Triple)
    }
}

/// How many tins there are, and which code points each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TinMode {
    /// One for all packets.
    BestEffort,
    /// Best effort; bulk (CS1, LE), from a sixteenth of the bandwidth on behind it; voice (EF, VA, CS6, CS7, TOS4), up
    /// to a quarter before it.
    Diffserv3,
    /// As three, with CS4 and CS5 in voice; video (CS2, CS3, AF2x to AF4x, TOS4) up to a half.
    Diffserv4,
    /// Eight, each up to 7/8 of the threshold of the one below it.
    Diffserv8,
    /// Eight by the upper three bits of the code point, with the same thresholds.
    Precedence,
}

/// A tin's part of the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// How often 7/8 of the rate are taken, after it is divided by two so many times.
    sevenths: u32,
    halves: u32,
    /// Bytes per turn without a bandwidth.
    pub(super) quantum: i64,
}

impl Share {
    const fn halves(halves: u32) -> Self {
        Self { sevenths: 0, halves, quantum: 1024 >> halves }
    }

    /// Seven eighths of the rate of the tin before, again and again.
    const EIGHT: [Self; 8] = {
        let mut all = [Self { sevenths: 0, halves: 0, quantum: 256 }; 8];
        let mut tin = 1;
        while tin < all.len() {
            all[tin].sevenths = tin as u32;
            all[tin].quantum = all[tin - 1].quantum * 7 / 8;
            tin += 1;
        }
        all
    };

    /// That part of a rate.
    pub(super) fn of(&self, rate: Rate) -> Rate {
        let halved = u128::from(rate.bits_per_second() >> self.halves);
        let bits = (0..self.sevenths).fold(halved, |bits, _| bits * 7 / 8);
        Rate::from_bits_per_second(bits as u64) // at most the rate
    }
}

impl TinMode {
    /// The parts of the tins, by their numbers.
    pub(super) const fn shares(self) -> &'static [Share] {
        const ONE: &[Share] = &[Share { sevenths: 0, halves: 0, quantum: 65_535 }];
        const THREE: &[Share] = &[Share::halves(0), Share::halves(4), Share::halves(2)];
        const FOUR: &[Share] = &[Share::halves(0), Share::halves(4), Share::halves(1), Share::halves(2)];
        match self {
            Self::BestEffort => ONE,
            Self::Diffserv3 => THREE,
            Self::Diffserv4 => FOUR,
            Self::Diffserv8 | Self::Precedence => &Share::EIGHT,
        }
    }

    /// The number of tins.
    pub const fn tins(self) -> usize {
        self.shares().len()
    }

    /// The tin of a code point, by its number from 0 on.
    pub const fn tin(self, dscp: u8) -> usize {
        const EF: u8 = 46;
        const VA: u8 = 44;
        match self {
            Self::BestEffort => 0,
            Self::Precedence => (dscp >> 3) as usize,
            Self::Diffserv3 => match dscp {
                1 | 8 => 1,
                4 | VA | EF | 48 | 56 => 2,
                _ => 0,
            },
            Self::Diffserv4 => match dscp {
                1 | 8 => 1,
                // TOS4, CS2, AF2x, CS3, AF3x, AF4x.
                4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => 2,
                // CS4, CS5.
                32 | 40 | VA | EF | 48 | 56 => 3,
                _ => 0,
            },
            Self::Diffserv8 => match dscp {
                1 => 0,
                // TOS2, CS1, AF1x.
                2 | 8 | 10 | 12 | 14 => 1,
                // CS3, AF3x, AF4x.
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                // TOS4, AF2x.
                4 | 18 | 20 | 22 => 4,
                16 => 5,
                32 | 40 | VA | EF => 6,
                48 | 56 => 7,
                _ => 2,
            },
        }
    }
}

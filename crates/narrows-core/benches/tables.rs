//! What tables and dynamic rules cost: `cargo bench -p narrows-core --bench tables`.
//!
//! The table has a million prefixes, 800,000 of IPv4 and 200,000 of IPv6, with lengths about as they are in the Internet's
//! global tables (those of IPv4 from /8 to /24, 60 % of them /24; those of IPv6 from /19 to /48, 46 % of them /48), close
//! together as registries give them out: a long prefix lies in one of some thousands of blocks. Look-ups are of addresses
//! inside, in random order, for different numbers of addresses: few stay in the processor's caches with all that leads to
//! them, and with a million of them the memory decides. The machine may be shared and noisy: the lowest of many rounds is
//! shown.

use std::hint::black_box;
use std::time::Instant;

use narrows_core::classify::Prefix;
use narrows_core::rules::{Keep, Parent, StateConfig, States, Table};
use narrows_core::{Duration, FlowKey, Protocol, Seed, Stream, Time};

const ROUNDS: usize = 15;
const V4: usize = 800_000;
const V6: usize = 200_000;
/// Length and share in thousandths.
const V4_LENGTHS: [(u8, u64); 12] = [
    (24, 600),
    (23, 105),
    (22, 120),
    (21, 50),
    (20, 45),
    (19, 26),
    (18, 14),
    (17, 9),
    (16, 14),
    (15, 8),
    (12, 7),
    (8, 2),
];
const V6_LENGTHS: [(u8, u64); 9] =
    [(48, 460), (44, 100), (40, 120), (36, 60), (32, 140), (29, 50), (46, 30), (33, 30), (20, 10)];

fn main() {
    let (mut draws, mut table) = (Draws(Stream::new(Seed(1), "bench", "tables"), 0), Table::new());
    let blocks: Vec<u128> = (0..12_000).map(|_| draws.next().into()).collect();
    let mut entries = Vec::new();
    while entries.len() < V4 + V6 {
        let prefix = if entries.len() < V4 { v4(&mut draws, &blocks) } else { v6(&mut draws, &blocks) };
        if table.insert(prefix, entries.len() as u32).is_none() {
            entries.push(prefix);
        }
    }
    println!(
        "{} prefixes: {:.1} MB, {:.1} bytes each\n",
        table.len(),
        table.bytes() as f64 / 1e6,
        table.bytes() as f64 / table.len() as f64
    );

    println!("addresses   nanoseconds a look-up: IPv4, IPv6, as they are mixed");
    for count in [1_000, 10_000, 100_000, 1_000_000] {
        let mut of = |among: &[Prefix]| {
            let addresses: Vec<_> = (0..count).map(|_| inside(&mut draws, among)).collect();
            lowest(count, || {
                for &address in &addresses {
                    black_box(table.lookup(black_box(address)));
                }
            })
        };
        let (v4, v6, both) = (of(&entries[..V4]), of(&entries[V4..]), of(&entries));
        println!("{count:>9}   {v4:>6.1} {v6:>6.1} {both:>6.1}");
    }

    shuffle(&mut draws, &mut entries);
    let (some, mut times) = (100_000, [Vec::new(), Vec::new()]);
    for _ in 0..ROUNDS {
        times[0].push(time(some, || {
            for &prefix in &entries[..some] {
                table.remove(prefix);
            }
        }));
        times[1].push(time(some, || {
            for (nth, &prefix) in (0..).zip(&entries[..some]) {
                table.insert(prefix, nth);
            }
        }));
    }
    let [remove, insert] = times.map(least);
    println!(
        "\nremove {remove:.0} ns, insert {insert:.0} ns; {:.1} MB after that",
        table.bytes() as f64 / 1e6
    );

    states(&mut draws);
}

/// Of so many flows, all alive, a packet of each in turn.
fn states(draws: &mut Draws) {
    println!("\n   flows   nanoseconds: state found, none there, state made");
    for count in [100, 10_000, 1_000_000] {
        let keys: Vec<_> = (0..2 * count).map(|_| flow(draws)).collect();
        let (there, others) = keys.split_at(count);
        let config =
            StateConfig { most: u32::MAX, udp: Duration::from_secs(1_000_000), ..StateConfig::default() };
        let mut states = States::new(config.clone());
        let now = Time::ZERO;
        let made = lowest(count, || {
            states = States::new(config.clone());
            for key in there {
                black_box(states.install(now, key, Parent::default(), Keep::State)).expect("there is room");
            }
        });
        let mut of = |keys: &[FlowKey]| {
            lowest(count, || {
                for key in keys {
                    black_box(states.lookup(now, black_box(key), 100));
                }
            })
        };
        println!("{count:>8}   {:>6.1} {:>6.1} {made:>6.1}", of(there), of(others));
    }
}

fn flow(draws: &mut Draws) -> FlowKey {
    let (address, ports) = (draws.next(), draws.next());
    FlowKey {
        source: mapped(address as u32).to_be_bytes(),
        destination: mapped((address >> 32) as u32).to_be_bytes(),
        source_port: ports as u16,
        destination_port: (ports >> 16) as u16,
        network: Protocol::Ipv4,
        transport: 17,
        ..FlowKey::default()
    }
}

fn mapped(address: u32) -> u128 {
    0xffff_0000_0000 | u128::from(address)
}

/// A prefix of IPv4 in 1.0.0.0 to 223.255.255.255.
fn v4(draws: &mut Draws, blocks: &[u128]) -> Prefix {
    let bits = draws.length(&V4_LENGTHS);
    // Each block is a /16.
    let block = blocks[draws.below(blocks.len() as u64) as usize] as u32 % (223 << 8) + (1 << 8);
    Prefix::new(mapped(block << 16 | draws.next() as u16 as u32).to_be_bytes(), 96 + bits)
}

/// A prefix of IPv6 in 2000::/4.
fn v6(draws: &mut Draws, blocks: &[u128]) -> Prefix {
    let bits = draws.length(&V6_LENGTHS);
    // Each block is a /32, four fifths of which are below five /16s.
    let block = blocks[draws.below(blocks.len() as u64) as usize];
    let top = [0x2001, 0x2400, 0x2600, 0x2800, 0x2a00, 0x2000 | block >> 48 & 0xfff];
    let address = top[(block % 6) as usize] << 112 | (block >> 32 & 0xffff) << 96;
    Prefix::new((address | u128::from(draws.next()) << 32).to_be_bytes(), bits)
}

/// An address in one of these networks.
fn inside(draws: &mut Draws, among: &[Prefix]) -> [u8; 16] {
    let prefix = among[draws.below(among.len() as u64) as usize];
    let host = u128::from(draws.next()) << 64 | u128::from(draws.next());
    let host = host.checked_shr(prefix.bits().into()).unwrap_or(0);
    (u128::from_be_bytes(prefix.address()) | host).to_be_bytes()
}

fn shuffle(draws: &mut Draws, entries: &mut [Prefix]) {
    for last in (1..entries.len()).rev() {
        entries.swap(last, draws.below(last as u64 + 1) as usize);
    }
}

struct Draws(Stream, u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.1 += 1;
        self.0.nth(self.1).bits()
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    fn length(&mut self, shares: &[(u8, u64)]) -> u8 {
        let mut left = self.below(shares.iter().map(|&(_, share)| share).sum());
        let found = shares.iter().find(|&&(_, share)| {
            let found = left < share;
            left = left.wrapping_sub(share);
            found
        });
        found.expect("the draw is below the sum").0
    }
}

/// Nanoseconds for each of so many: the lowest of rounds, after one to warm up.
fn lowest(count: usize, mut run: impl FnMut()) -> f64 {
    run();
    let rounds = (2_000_000 / count).clamp(5, 500);
    least((0..rounds).map(|_| time(count, &mut run)).collect())
}

fn least(times: Vec<f64>) -> f64 {
    times.into_iter().fold(f64::INFINITY, f64::min)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn time(count: usize, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / count as f64
}

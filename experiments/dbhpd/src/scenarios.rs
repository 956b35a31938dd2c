//! The thesis's traffic simulations and delay tests as scenarios, which run by themselves with `narrows sim`.
//!
//! Traffic is given as bits on the wire, as a load generator counts them, so that the shares of table 5.1 are shares of the
//! link. What a transaction takes there, both ways together, is reckoned from its packets: 40 or 28 bytes of headers, 38 of
//! Ethernet, an acknowledgement for every second segment, seven packets to open and close a connection.

use std::fmt::Write;

use narrows_core::Duration;

use super::setup::{Contender, FIFO_QUEUE, QUEUE};

/// How the bottleneck's directions share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// One transmitter and one queue for both, as half duplex has one wire. Ethernet's collisions and backoff are not there.
    Half,
    /// One wire for both, for which the routers at its ends contend by CSMA/CD, each with its queues.
    Collisions,
    /// One for each.
    Full,
}

impl Medium {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Half, Self::Collisions, Self::Full];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Half => "half duplex",
            Self::Collisions => "half duplex with collisions",
            Self::Full => "full duplex",
        }
    }
}

/// Shares of the bits, in hundredths: table 5.1, but for its columns of TCP and UDP, which have names here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// HTTP.
    pub www: u32,
    /// FTP.
    pub ftp: u32,
    /// VoIP over UDP.
    pub voip: u32,
    /// VoIP over TCP.
    pub voip_tcp: u32,
    /// Noise over TCP: short telnet sessions.
    pub telnet: u32,
    /// Noise over UDP: DNS.
    pub dns: u32,
}

/// Mixes 1 to 3.
pub const MIXES: [Shares; 3] = [
    Shares { www: 70, ftp: 10, voip: 8, voip_tcp: 0, telnet: 10, dns: 2 },
    Shares { www: 22, ftp: 5, voip: 4, voip_tcp: 0, telnet: 60, dns: 9 },
    Shares { www: 22, ftp: 5, voip: 1, voip_tcp: 3, telnet: 60, dns: 9 },
];

/// The names of the sources of traffic of each class, in the order of [`CLASSES`](super::setup::CLASSES).
pub const SOURCES: [&[&str]; 4] = [&["voip", "voip-tcp"], &["www"], &["ftp"], &["telnet", "dns"]];

const MATCHES: [(&str, &str); 4] =
    [("voip", "\"ef\""), ("www", "\"af21\""), ("ftp", "\"af11\""), ("noise", "\"be\"")];

/// Bytes on the wire of a segment's headers, of one that carries nothing, and of opening and closing a connection.
const SEGMENT: f64 = 78.0;
const CONNECTION: f64 = 7.0 * SEGMENT;
/// Data of a full segment.
const FULL: f64 = 1460.0;

fn transfer(bytes: f64) -> f64 {
    let segments = (bytes / FULL).max(1.0);
    bytes + segments * SEGMENT * 1.5
}

const PAGE: f64 = 10_000.0;
const FILE: f64 = 250_000.0;
/// Seconds of a call; both ends talk all the time, 50 packets of 172 bytes a second each.
const CALL: f64 = 5.0;
const EXCHANGES: f64 = 4.0;

/// The scheduler's key of a direction, with its queue, by table 7.1 (`order` says which class of the traffic is in which place).
fn scheduler(contender: Contender, places: Places) -> String {
    let Some((kind, classes)) = discipline(contender, places) else {
        return format!("queue = \"{FIFO_QUEUE} packets\"\n");
    };
    let mut text = format!("queue = \"{QUEUE} packets\"\nscheduler = {{ type = {kind}, classes = [\n");
    for class in classes {
        writeln!(text, "    {{ {class} }},").expect("a string takes everything");
    }
    text.push_str("], default = \"drop\" }\n");
    text
}

/// The same at both ends of a wire for which they contend.
fn contention(contender: Contender, places: Places) -> String {
    let mut text = String::from("scheduler = { type = \"csma-cd\", classes = [\n");
    for (end, from) in [("client", "up"), ("server", "down")] {
        let own = match discipline(contender, places) {
            None => format!("queue = \"{FIFO_QUEUE} packets\""),
            Some((kind, classes)) => {
                // A class of classes has no queue.
                let queue = |class: &String| {
                    class.contains("match").then(|| format!(", queue = \"{QUEUE} packets\""))
                };
                let one =
                    |class: &String| format!("        {{ {class}{} }},\n", queue(class).unwrap_or_default());
                let classes: String = classes.iter().map(one).collect();
                format!("scheduler = {{ type = {kind}, classes = [\n{classes}    ], default = \"drop\" }}")
            }
        };
        writeln!(text, "    {{ name = \"{end}\", match = {{ from = \"{from}\" }}, {own} }},")
            .expect("a string takes everything");
    }
    text.push_str("], default = \"drop\" }\n");
    text
}

/// The type of a scheduler and its classes; nothing for a plain queue.
fn discipline(contender: Contender, places: Places) -> Option<(&'static str, Vec<String>)> {
    let Places { order, table } = places;
    let of = |place: usize| MATCHES[order[place]];
    let matching = |places: &[usize]| {
        let dscps: Vec<&str> = places.iter().map(|&place| of(place).1).collect();
        format!(", match = {{ dscp = [{}] }}", dscps.join(", "))
    };
    let classes: Vec<String> = match (contender, table) {
        (Contender::Fifo, _) => return None,
        (Contender::Priq, Table::Mixes) => vec![
            format!("name = \"voip\"{}", matching(&[0])),
            format!("name = \"www-ftp\"{}", matching(&[1, 2])),
            format!("name = \"noise\"{}", matching(&[3])),
        ],
        (Contender::Priq, Table::Delays) => {
            by_place(3).map(|place| format!("name = \"{}\"{}", of(place).0, matching(&[place]))).collect()
        }
        (Contender::Cbq, Table::Mixes) => {
            let leaf = |place: usize, more: &str| {
                format!(
                    "name = \"{}\"{}, allot = \"256 bytes\", avpkt = \"200 bytes\", {more}",
                    of(place).0,
                    matching(&[place])
                )
            };
            vec![
                leaf(0, "rate = \"1mbit\", priority = 1, isolated = true"),
                "name = \"other\", allot = \"256 bytes\", avpkt = \"200 bytes\", rate = \"9mbit\", priority = 2".into(),
                leaf(1, "parent = \"other\", rate = \"7.3mbit\", priority = 3"),
                leaf(2, "parent = \"other\", rate = \"1.5mbit\", priority = 4"),
                leaf(3, "parent = \"other\", rate = \"0.2mbit\", priority = 5"),
            ]
        }
        (Contender::Cbq, Table::Delays) => {
            let rates = ["8mbit", "1mbit", "1mbit"];
            let leaf = |place: usize| {
                format!(
                    "name = \"{}\"{}, allot = \"300 bytes\", avpkt = \"200 bytes\", rate = \"{}\", priority = {}",
                    of(place).0,
                    matching(&[place]),
                    rates[place],
                    place + 1
                )
            };
            by_place(3).map(leaf).collect()
        }
        (_, table) => {
            let parameters: &[&str] = match table {
                Table::Mixes => &[
                    "limit = \"2ms\", gamma = 896, g = 128, estimator = \"ewma-r\"",
                    "ddp = 2, gamma = 768, g = 256",
                    "ddp = 4, gamma = 256, g = 768",
                    "ddp = 16, gamma = 128, g = 896",
                ],
                Table::Delays => &[
                    "gamma = 512, g = 512",
                    "ddp = 4, gamma = 256, g = 768",
                    "ddp = 16, gamma = 768, g = 256",
                ],
            };
            let class = |(place, parameters): (usize, &&str)| {
                format!("name = \"{}\"{}, {parameters}", of(place).0, matching(&[place]))
            };
            parameters.iter().enumerate().map(class).collect()
        }
    };
    let kind = match (contender, table) {
        (Contender::Priq, _) => "\"prio\"",
        (Contender::Cbq, Table::Mixes) => "\"cbq\", bandwidth = \"10mbit\", avpkt = \"256 bytes\"",
        (Contender::Cbq, Table::Delays) => "\"cbq\", bandwidth = \"100mbit\", avpkt = \"256 bytes\"",
        _ => "\"hpd\"",
    };
    Some((kind, classes))
}

fn by_place(count: usize) -> std::ops::Range<usize> {
    0..count
}

/// Which table the parameters are from, and which class of the traffic has which of its places.
#[derive(Clone, Copy, Debug)]
struct Places {
    order: [usize; 4],
    table: Table,
}

#[derive(Clone, Copy, Debug)]
enum Table {
    /// 7.1.
    Mixes,
    /// 6.1, with the rates that the delay tests have.
    Delays,
}

/// A mix of so many bits a second on the wire, both ways together.
pub(super) fn mix(
    number: usize,
    bits: f64,
    medium: Medium,
    contender: Contender,
    seed: u64,
    span: Duration,
) -> String {
    let shares = MIXES[number - 1];
    let rate = |share: u32| bits * f64::from(share) / 100.0;
    let mut text = format!(
        "# Traffic mix {number} at {:.2} Mbit/s on the wire through {}, {}.\n\nseed = {seed}\nduration = \"{}s\"\n\n\
         [hosts.client]\n[hosts.server]\n\n[links.bottleneck]\nbetween = [\"client\", \"server\"]\nrate = \"10mbit\"\n\
         delay = \"200us\"\n",
        bits / 1e6,
        contender.name(),
        medium.name(),
        span.seconds()
    );
    // Where stations contend, preamble and gap are the contention's.
    text.push_str(match medium {
        Medium::Half => "overhead = \"ethernet\"\nshared = true\n",
        Medium::Collisions => "shared = true\n",
        Medium::Full => "overhead = \"ethernet\"\n",
    });
    let places = Places { order: [0, 1, 2, 3], table: Table::Mixes };
    text.push_str(&match medium {
        Medium::Collisions => contention(contender, places),
        Medium::Half | Medium::Full => scheduler(contender, places),
    });
    let mut source = |name: &str, dscp: &str, entry: String| {
        write!(
            text,
            "\n[[traffic]]\nname = \"{name}\"\nfrom = \"client\"\nto = \"server\"\ndscp = {dscp}\n{entry}\n"
        )
        .expect("a string takes everything");
    };
    let pace = |bits: f64, bytes: f64| {
        // A number of transactions in a thousand seconds, which is a whole one.
        format!("pace = \"{:.0}/1000s\"", (bits / (8.0 * bytes) * 1000.0).max(1.0))
    };
    let [voip, www, ftp, noise] = MATCHES.map(|(_, dscp)| dscp);
    if shares.voip > 0 {
        let bytes = 2.0 * 50.0 * CALL * 238.0;
        source(
            "voip",
            voip,
            format!(
                "voip = {{ {}, arrivals = \"constant\", duration = \"{CALL}s\" }}",
                pace(rate(shares.voip), bytes)
            ),
        );
    }
    if shares.voip_tcp > 0 {
        let bytes = 2.0 * 50.0 * CALL * (172.0 + 1.5 * SEGMENT) + CONNECTION;
        source(
            "voip-tcp",
            voip,
            format!(
                "protocol = \"tcp\"\nvoip = {{ {}, arrivals = \"constant\", duration = \"{CALL}s\" }}",
                pace(rate(shares.voip_tcp), bytes)
            ),
        );
    }
    let page = 300.0 + SEGMENT + transfer(PAGE) + CONNECTION;
    source(
        "www",
        www,
        format!(
            "web = {{ {}, response = {{ pareto = {{ mean = \"10 kB\", shape = 1.5, most = \"1 MB\" }} }}, patience = \"10s\" }}",
            pace(rate(shares.www), page)
        ),
    );
    let file = transfer(FILE) + CONNECTION;
    source("ftp", ftp, format!("file = {{ {}, size = \"250 kB\" }}", pace(rate(shares.ftp), file)));
    let session = EXCHANGES * (20.0 + 100.0 + 3.0 * SEGMENT) + CONNECTION;
    source(
        "telnet",
        noise,
        format!(
            "telnet = {{ {}, exchanges = {EXCHANGES}, request = \"20 bytes\", response = \"100 bytes\", pause = \"100ms\", \
             patience = \"10s\" }}",
            pace(rate(shares.telnet), session)
        ),
    );
    let query = 40.0 + 120.0 + 2.0 * 66.0;
    source("dns", noise, format!("dns = {{ {} }}", pace(rate(shares.dns), query)));
    text
}

/// A chain of four routers. `source-3` is a host at the third from the end, whose packets cross three hops; the places of
/// classes are rotated from router to router as in the thesis.
pub(super) fn chain(length: u32, contender: Contender, classes: usize, seed: u64, span: Duration) -> String {
    let mut text = format!(
        "# Delay test: packets of {length} bytes in {classes} class{}, through {}.\n\nseed = {seed}\nduration = \"{}s\"\n\n\
         [hosts.sink]\n",
        if classes == 1 { "" } else { "es" },
        contender.name(),
        span.seconds()
    );
    let mut put = |arguments: std::fmt::Arguments<'_>| {
        text.write_fmt(arguments).expect("a string takes everything");
    };
    for number in 1..=4 {
        put(format_args!("[hosts.source-{number}]\n[routers.r{number}]\n"));
    }
    for number in 1..=4 {
        let next = if number == 1 { "sink".into() } else { format!("r{}", number - 1) };
        let order = match number {
            2 => [1, 2, 0, 3],
            3 => [2, 0, 1, 3],
            _ => [0, 1, 2, 3],
        };
        let scheduler = scheduler(contender, Places { order, table: Table::Delays });
        put(format_args!(
            "\n[links.entry-{number}]\nbetween = [\"source-{number}\", \"r{number}\"]\n\n[links.hop-{number}]\n\
             between = [\"r{number}\", \"{next}\"]\nrate = \"100mbit\"\noverhead = \"ethernet\"\n{scheduler}"
        ));
    }
    for number in 1..=4_u32 {
        for (class, (_, dscp)) in MATCHES.iter().enumerate().take(classes) {
            let pace = 2.5 / classes as f64;
            put(format_args!(
                "\n[[traffic]]\nname = \"source-{number}-class-{}\"\nfrom = \"source-{number}\"\nto = \"sink\"\n\
                 dscp = {dscp}\npoisson = \"{pace:.6}mbit\"\nlength = \"{length} bytes\"\n",
                class + 1
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use narrows_scenario::Scenario;

    use super::*;

    #[test]
    fn shares_are_hundredths() {
        for Shares { www, ftp, voip, voip_tcp, telnet, dns } in MIXES {
            assert_eq!(www + ftp + voip + voip_tcp + telnet + dns, 100);
        }
    }

    #[test]
    fn every_chain_is_a_scenario() {
        for contender in Contender::FOUR {
            let text = chain(80, contender, 3, 1, Duration::from_secs(2));
            if let Err(error) = Scenario::parse(&text, "chain.toml") {
                panic!("{text}\n{error}");
            }
        }
    }

    #[test]
    fn every_mix_is_a_scenario() {
        for (number, medium) in [(1, Medium::Half), (2, Medium::Full), (3, Medium::Collisions)] {
            for contender in Contender::FOUR {
                let text = mix(number, 7e6, medium, contender, 1, Duration::from_secs(60));
                if let Err(error) = Scenario::parse(&text, "mix.toml") {
                    panic!("{text}\n{error}");
                }
            }
        }
    }
}

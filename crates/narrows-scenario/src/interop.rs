//! Scenarios of quic-network-simulator, as `SCENARIO` of quic-interop-runner gives them:
//! `drop-rate --delay=15ms --bandwidth=10Mbps --queue=25 --rate_to_client=2 --rate_to_server=2`.
//!
//! Source: `sim/scenarios` of <https://github.com/quic-interop/quic-network-simulator>, at commit e557a545, for ns-3
//! 3.46.1. The link is a point-to-point device with a PPP header of 2 bytes, a device queue of one packet, and
//! `pfifo_fast` with `--queue` packets before it; so one packet more than `--queue` can wait.
//!
//! Departures: losses and packet numbers apply to all packets of a direction, in ns-3 to UDP only. `pfifo_fast`'s three
//! bands are one queue. ns-3 discards the packets that `corrupt-rate` selects (its receiver drops what an error model
//! hits), so they are losses here as well. The cross traffic has no access links of its own (in ns-3 of 100 Mbit/s and
//! 1 ms for TCP), and its TCP is that of narrows.

mod options;
mod quantity;

use std::fmt::Write;

use narrows_core::Duration;

use crate::files::Files;
use crate::problem::ScenarioError;
use crate::scenario::Scenario;
use options::{Options, number};

/// Name of the scenario in errors and reports.
const NAME: &str = "SCENARIO";
/// Names of the in-memory pattern files.
const DROPS: [&str; 2] = ["drops-to-client.pattern", "drops-to-server.pattern"];
/// Maximum burst cap: a list of that many probabilities is kept for each link.
const LONGEST_BURST: u64 = 1000;
/// Length of a pattern that should never repeat.
const ENDLESS: u64 = 10_000_000_000_000;

/// Why a scenario of quic-network-simulator cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SCENARIO: {0}")]
pub struct InteropError(String);

/// A translated scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interop {
    /// The scenario file.
    pub text: String,
    /// Files that it names, and their contents.
    pub files: Vec<(String, String)>,
    /// Rebindings of the client's address translation.
    pub rebinding: Option<InteropRebinding>,
}

/// When the client's mappings are forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InteropRebinding {
    /// The first time.
    pub first: Duration,
    /// The period after that.
    pub every: Option<Duration>,
    /// Whether the address changes as well as the port.
    pub address: bool,
}

/// Scenarios and the options of each, besides those of the link; `*` marks those that are required.
const SCENARIOS: [(&str, &[&str]); 8] = [
    ("simple-p2p", &[]),
    ("drop-rate", &["rate_to_client*", "rate_to_server*", "burst_to_client", "burst_to_server"]),
    ("corrupt-rate", &["rate_to_client*", "rate_to_server*", "burst_to_client", "burst_to_server"]),
    ("droplist", &["drops_to_client", "drops_to_server"]),
    ("blackhole", &["on*", "off*", "repeat", "direction"]),
    ("rebind", &["first-rebind*", "rebind-freq", "rebind-addr"]),
    ("tcp-cross-traffic", &[]),
    ("udp-cross-traffic", &["crossdatarate*"]),
];
const OF_LINK: [&str; 3] = ["delay*", "bandwidth*", "queue*"];
/// One endless transfer from the server's side, from the start.
const CROSS_TCP: &str = "\n[[traffic]]\nname = \"cross\"\nfrom = \"client\"\nto = \"server\"\n\
    file = { tcp = { congestion = \"reno\" } }\n";
/// The UDP sender starts late and sends 512 bytes in each packet, `OnOffApplication`'s default, with headers of 28.
const CROSS_UDP_START: &str = "20s";
const CROSS_UDP_BYTES: [u128; 2] = [512, 540];

impl Interop {
    /// Translates the text of `SCENARIO`.
    ///
    /// # Errors
    /// For an unknown scenario or option, a missing one, or an invalid value.
    pub fn translate(text: &str) -> Result<Self, InteropError> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let names = SCENARIOS.map(|(name, _)| format!("`{name}`")).join(", ");
        let Some((_, own)) = SCENARIOS.iter().find(|(known, _)| *known == name) else {
            return Err(InteropError(format!("found the scenario `{name}`, expected one of {names}")));
        };
        let allowed: Vec<_> = OF_LINK.iter().chain(*own).copied().collect();
        let options = Options::read(name, words, &allowed)?;
        let mut made = Self { text: link(&options)?, files: Vec::new(), rebinding: None };
        match name {
            "drop-rate" | "corrupt-rate" => made.lose_at_random(&options)?,
            "droplist" => made.lose_listed(&options)?,
            "blackhole" => made.lose_at_times(&options)?,
            "rebind" => made.rebinding = Some(rebinding(&options)?),
            "tcp-cross-traffic" => made.text.push_str(CROSS_TCP),
            "udp-cross-traffic" => made.send_datagrams(&options)?,
            _ => {}
        }
        Ok(made)
    }

    /// The scenario, read and checked.
    ///
    /// # Errors
    /// For values that narrows does not take, such as a delay beyond its range.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let files = self.files.iter().map(|(name, contents)| (name.as_str(), contents.clone().into_bytes()));
        Scenario::parse_with(&self.text, NAME, Files::given(files))
    }

    /// After `burst` losses in a row a packet passes, as in `drop-rate-error-model.cc`.
    fn lose_at_random(&mut self, options: &Options) -> Result<(), InteropError> {
        for (way, rate, burst) in
            [("down", "rate_to_client", "burst_to_client"), ("up", "rate_to_server", "burst_to_server")]
        {
            let share = number(rate, options.required(rate), 0..=100)?;
            let burst = options.get(burst).map(|text| number(burst, text, 0..=LONGEST_BURST)).transpose()?;
            let loss = match burst {
                None => format!("\"{share}%\""),
                Some(burst) => {
                    let mut after = vec![format!("\"{share}%\""); burst as usize];
                    after.push("\"0%\"".into());
                    format!("{{ conditional = [{}] }}", after.join(", "))
                }
            };
            self.add(format_args!("{way}.loss = {loss}\n"));
        }
        Ok(())
    }

    fn lose_listed(&mut self, options: &Options) -> Result<(), InteropError> {
        for ((way, key), file) in
            [("down", "drops_to_client"), ("up", "drops_to_server")].into_iter().zip(DROPS)
        {
            let list = options.get(key).unwrap_or_default().split(',').filter(|one| !one.is_empty());
            let mut numbers: Vec<u64> =
                list.map(|one| number(key, one, 1..=ENDLESS)).collect::<Result<_, _>>()?;
            numbers.sort_unstable();
            numbers.dedup();
            if numbers.is_empty() {
                continue;
            }
            let mut pattern = format!("pattern loss\nper packet\nlength {ENDLESS}\n");
            for number in numbers {
                let _ = writeln!(pattern, "{number}");
            }
            self.files.push((file.into(), pattern));
            self.add(format_args!("{way}.loss = {{ pattern = \"{file}\" }}\n"));
        }
        Ok(())
    }

    /// ns-3 discards on arrival, narrows at the end of transmission: earlier by the delay.
    fn lose_at_times(&mut self, options: &Options) -> Result<(), InteropError> {
        let delay = options.time("delay")?;
        let (on, off) = (options.time("on")?, options.time("off")?);
        let times = options.get("repeat").map_or(Ok(1), |text| number("repeat", text, 1..=u64::MAX >> 1))?;
        let way = match options.get("direction").unwrap_or("both") {
            "both" => "",
            "toclient" => ".down",
            "toserver" => ".up",
            other => {
                return Err(InteropError(format!(
                    "--direction: expected `both`, `toclient` or `toserver`, found `{other}`"
                )));
            }
        };
        let period = on + off;
        let begin = Duration::from_nanos(on.nanos().saturating_sub(delay.nanos()));
        let end = Duration::from_nanos(period.nanos().saturating_sub(delay.nanos()));
        for (at, loss) in [(begin, "100%"), (end, "0%")] {
            let at = at.nanos();
            self.add(format_args!("\n[[timeline]]\nat = \"{at}ns\"\n"));
            if times > 1 {
                self.add(format_args!("every = \"{}ns\"\ntimes = {times}\n", period.nanos()));
            }
            self.add(format_args!("set = {{ \"bottleneck{way}.loss\" = \"{loss}\" }}\n"));
        }
        Ok(())
    }

    /// ns-3's rate is that of the data, narrows' that of IP packets.
    fn send_datagrams(&mut self, options: &Options) -> Result<(), InteropError> {
        let rate = quantity::bits_per_second("crossdatarate", options.required("crossdatarate"))?;
        let [data, packet] = CROSS_UDP_BYTES;
        let rate = u128::from(rate) * packet / data;
        self.add(format_args!(
            "\n[[traffic]]\nname = \"cross\"\nfrom = \"server\"\nto = \"client\"\n\
             constant = \"{rate}bit\"\nlength = \"{packet} bytes\"\nstart = \"{CROSS_UDP_START}\"\n"
        ));
        Ok(())
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

fn link(options: &Options) -> Result<String, InteropError> {
    let delay = options.time("delay")?.nanos();
    let rate = quantity::bits_per_second("bandwidth", options.required("bandwidth"))?;
    let queue = number("queue", options.required("queue"), 0..=u64::from(u32::MAX - 1))? + 1;
    Ok(format!(
        "[hosts.client]\n\n[hosts.server]\n\n[links.bottleneck]\nbetween = [\"client\", \"server\"]\n\
         rate = \"{rate}bit\"\noverhead = {{ bytes = 2 }}\ndelay = \"{delay}ns\"\nqueue = \"{queue} packets\"\n"
    ))
}

fn rebinding(options: &Options) -> Result<InteropRebinding, InteropError> {
    let first = options.time("first-rebind")?;
    if first == Duration::ZERO {
        return Err(InteropError("--first-rebind: expected a time above zero".into()));
    }
    let every = match options.get("rebind-freq") {
        None => None,
        Some(_) => Some(options.time("rebind-freq")?).filter(|every| *every > Duration::ZERO),
    };
    let address = match options.get("rebind-addr") {
        None | Some("false" | "0" | "f") => false,
        Some("" | "true" | "1" | "t") => true,
        Some(other) => {
            return Err(InteropError(format!(
                "--rebind-addr: expected nothing, `true` or `false`, found `{other}`"
            )));
        }
    };
    Ok(InteropRebinding { first, every, address })
}

#[cfg(test)]
mod tests;

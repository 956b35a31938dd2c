//! Traffic for a network described by flags: the contents of `[[traffic]]` in a file, as typed.
//!
//! ```text
//! constant=9mbit              both ways; likewise poisson, on-off and aimd
//! down:aimd                   one way, from the second host to the first
//! web={ … }                   an application: its clients are in the first host, its servers in the second
//! { aimd = {}, from = "server", to = "client", dscp = "ef" }      a whole table; it has `from` and `to` if need be
//! ```

use narrows_core::{Duration, Rate};

use super::Scenario;
use crate::link::{Link, Medium, Way};
use crate::node::{Key, Node, Table, Value};
use crate::problem::{Problem, ScenarioError};
use crate::surroundings::Surroundings;
use crate::traffic;

/// The flag, for errors.
const FLAG: &str = "--traffic";
/// Traffic that flows both ways if no direction is given.
const BOTH_WAYS: &[&str] = &["constant", "poisson", "on-off", "aimd"];
/// Default load, as a share of the link's rate.
const SHARE: (u64, u64) = (9, 10);
/// Default duration of that load.
const LENGTH: Duration = Duration::from_secs(10);

impl Scenario {
    /// Adds traffic between the first two hosts, as typed after `--traffic`.
    ///
    /// ```
    /// # use narrows_scenario::{LinkFlags, Scenario};
    /// let mut scenario = Scenario::from_flags(&LinkFlags::default().with("rate", "10mbit"))?;
    /// scenario.offer(&["constant=9mbit", "down:aimd"])?;
    /// assert_eq!(scenario.traffic.len(), 3);
    /// # Ok::<(), narrows_scenario::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// If the text does not describe traffic; then nothing is added.
    pub fn offer<T: AsRef<str>>(&mut self, texts: &[T]) -> Result<(), ScenarioError> {
        self.add_traffic(texts)?;
        self.duration = self.duration.or(Some(LENGTH));
        Ok(())
    }

    /// Same for a live run, which lasts as long as its program.
    ///
    /// # Errors
    /// As [`Scenario::offer`].
    pub fn add_traffic<T: AsRef<str>>(&mut self, texts: &[T]) -> Result<(), ScenarioError> {
        let mut all = self.clone();
        for text in texts.iter().map(AsRef::as_ref) {
            let wrong = |problem| ScenarioError::new(FLAG, text, vec![problem]);
            for node in self.typed(text).map_err(wrong)? {
                all.add(&node).map_err(wrong)?;
            }
            let quote = if text.contains([' ', '{']) { "'" } else { "" };
            all.file += &format!(" {FLAG} {quote}{text}{quote}");
        }
        *self = all;
        Ok(())
    }

    /// Adds evenly spaced packets each way, at nine tenths of the capacity of the link between two hosts,
    /// for ten seconds unless a duration is given. Returns a description of this load.
    ///
    /// # Errors
    /// If no rate determines the load.
    pub fn offer_most(&mut self) -> Result<String, ScenarioError> {
        let mut offered = Vec::new();
        if let [link] = &self.links[..] {
            for way in [Way::Up, Way::Down] {
                let rate = share(link, way).map(|rate| (way, rate.to_string()));
                offered.extend(rate);
            }
        }
        if offered.is_empty() {
            let title = "no traffic given, and the link has no rate to derive it from";
            let help =
                "give it, as in --traffic constant=10mbit, --traffic aimd, or --traffic down:poisson=500/s";
            return Err(ScenarioError::new(FLAG, "", vec![Problem::new(title).help(help)]));
        }
        let texts: Vec<_> =
            offered.iter().map(|(way, rate)| format!("{}:constant={rate}", way.name())).collect();
        self.offer(&texts)?;
        let each: Vec<_> = offered.iter().map(|(way, rate)| format!("{rate} {}", way.name())).collect();
        Ok(format!("offered: {}, 90 % of the rate; --traffic changes that", each.join(" and ")))
    }

    fn add(&mut self, node: &Node) -> Result<(), Problem> {
        let folder = self.folder().to_owned();
        let files = self.files.clone();
        let around = Surroundings::of_files(&files);
        let places = traffic::Places::of(&self.topology);
        let traffic = traffic::read(self.traffic.len(), node, &places, &folder, around)?;
        if self.traffic.iter().any(|other| other.name == traffic.name) {
            return Err(Problem::new(format!("duplicate traffic source `{}`", traffic.name))
                .at(&node.span)
                .help("give each a unique `name`"));
        }
        self.traffic.push(traffic);
        Ok(())
    }

    /// The tables that a text stands for: one, or one for each direction.
    fn typed(&self, text: &str) -> Result<Vec<Node>, Problem> {
        if text.trim_start().starts_with('{') {
            let start = text.len() - text.trim_start().len();
            let mut node = Node::typed(text.trim(), start);
            let span = node.span.clone();
            match &mut node.value {
                Value::Table(table) => self.ends(table, Way::Up),
                _ => {
                    return Err(Problem::new("not a table").at(&span).help(
                        "write a table as in a file, such as { poisson = \"500/s\", length = \"200 bytes\" }",
                    ));
                }
            }
            return Ok(vec![node]);
        }
        let (ways, from) = match text.split_once(':') {
            Some(("up", _)) => (&[Way::Up][..], 3),
            Some(("down", _)) => (&[Way::Down][..], 5),
            _ => (&[Way::Up, Way::Down][..], 0),
        };
        let (kind, value) = match text[from..].split_once('=') {
            Some((kind, value)) => (kind, Node::typed(value.trim(), from + kind.len() + 1)),
            // `aimd` needs no parameters; other kinds report the missing ones.
            None => (&text[from..], Node { span: 0..text.len(), value: Value::Table(Table::default()) }),
        };
        let ways = if from == 0 && !BOTH_WAYS.contains(&kind.trim()) { &[Way::Up][..] } else { ways };
        let table = |way: &Way| {
            let mut table = Table::default();
            let key = Key { name: kind.trim().into(), span: from..from + kind.len() };
            table.insert(key, value.clone());
            self.ends(&mut table, *way);
            Node { span: 0..text.len(), value: Value::Table(table) }
        };
        Ok(ways.iter().map(table).collect())
    }

    /// Sets the source and destination that a table leaves out.
    fn ends(&self, table: &mut Table, way: Way) {
        let name = |index: usize| self.hosts.get(index).map_or(String::new(), |host| host.name.clone());
        let (from, to) = match way {
            Way::Up => (name(0), name(1)),
            Way::Down => (name(1), name(0)),
        };
        for (key, host) in [("from", from), ("to", to)] {
            if table.get(key).is_none() {
                let node = Node { span: 0..0, value: Value::String(host) };
                table.insert(Key { name: key.into(), span: 0..0 }, node);
            }
        }
    }
}

/// The default load of a direction of a link; `None` if its rate is unlimited or varies.
fn share(link: &Link, way: Way) -> Option<Rate> {
    let (direction, halves) = match (&link.medium, way) {
        (Medium::Duplex { up, .. }, Way::Up) => (up, 1),
        (Medium::Duplex { down, .. }, Way::Down) => (down, 1),
        (Medium::Shared(both), _) => (both, 2),
        (Medium::Rules(_) | Medium::Joined(_), _) => return None,
    };
    let rate = direction.rate;
    let (part, whole) = SHARE;
    let bits = u128::from(rate.bits_per_second()) * u128::from(part) / u128::from(whole * halves);
    let has_rate = rate != Rate::UNLIMITED && rate != Rate::DOWN && bits > 0;
    // A share of a 64-bit number fits in 64 bits.
    has_rate.then(|| Rate::from_bits_per_second(bits as u64))
}

#[cfg(test)]
mod tests {
    use narrows_core::source::Lengths;

    use super::*;
    use crate::flags::LinkFlags;
    use crate::traffic::TrafficSource;

    fn link(flags: &[(&str, &str)]) -> Scenario {
        let flags = flags.iter().fold(LinkFlags::default(), |all, (name, value)| all.with(name, *value));
        Scenario::from_flags(&flags).unwrap()
    }

    #[test]
    fn what_is_typed_is_what_a_file_says() {
        let mut typed = link(&[("rate", "10mbit/2mbit"), ("delay", "5ms")]);
        let file = typed.to_toml();
        typed
            .offer(&["constant=1mbit", "down:poisson=500/s", "{ aimd = { ecn = true }, stop = \"5s\" }"])
            .unwrap();
        let more = r#"
            [[traffic]]
            constant = "1mbit"
            from = "client"
            to = "server"
            [[traffic]]
            constant = "1mbit"
            from = "server"
            to = "client"
            [[traffic]]
            poisson = "500/s"
            from = "server"
            to = "client"
            [[traffic]]
            aimd = { ecn = true }
            stop = "5s"
            from = "client"
            to = "server"
        "#;
        let read = Scenario::parse(&(file + more), "net.toml").unwrap();
        assert_eq!(typed.traffic, read.traffic);
        assert_eq!(typed.duration, Some(LENGTH));
    }

    #[test]
    fn the_internet_mix_goes_by_its_name() {
        let mut typed = link(&[("rate", "10mbit")]);
        typed.add_traffic(&["{ constant = \"1mbit\", length = \"imix\" }"]).unwrap();
        assert_eq!(typed.duration, None, "a live run lasts as long as its program");
        let TrafficSource::Generated { config, .. } = &typed.traffic[0].source else {
            panic!("it is generated")
        };
        assert_eq!(config.lengths, Lengths::Mix(vec![(40, 7), (576, 4), (1500, 1)]));
        let error =
            typed.add_traffic(&["{ constant = \"1mbit\", length = \"imax\" }"]).unwrap_err().to_string();
        assert!(error.contains("imax"), "{error}");
    }

    #[test]
    fn without_a_word_it_is_nine_tenths_of_the_rate() {
        let mut scenario = link(&[("rate", "10mbit/2mbit")]);
        let words = scenario.offer_most().unwrap();
        assert!(words.contains("1.8mbit up and 9mbit down"), "{words}");
        let offered = scenario.traffic.iter().map(|one| (one.from.as_str(), one.to.as_str()));
        assert_eq!(
            offered.collect::<Vec<_>>(),
            [("client.link", "server.link"), ("server.link", "client.link")]
        );
        for flags in [&[("delay", "5ms")][..], &[("rate", "down")]] {
            let error = link(flags).offer_most().unwrap_err().to_string();
            assert!(error.contains("--traffic constant=10mbit"), "{error}");
        }
    }

    #[test]
    fn what_is_no_traffic_is_told_with_its_place() {
        for (text, words) in [
            ("constant=9", &["found `9`", "12mbit"][..]),
            ("flood=9mbit", &["flood", "constant"]),
            ("up:", &["constant"]),
            ("", &["constant"]),
            ("{ constant = ", &["not a table"]),
            ("{ poisson = \"5/s\", from = \"nobody\" }", &["nobody"]),
        ] {
            let mut scenario = link(&[("rate", "10mbit")]);
            let error = scenario.offer(&[text]).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
            assert!(scenario.traffic.is_empty());
        }
    }
}

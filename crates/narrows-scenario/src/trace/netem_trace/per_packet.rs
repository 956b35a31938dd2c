//! Delays per packet of the netem-trace crate, which are patterns here.
//!
//! | model | behaviour |
//! |---|---|
//! | `StaticDelayPerPacketConfig` {delay, count} | the delay of `count` packets; 0 is all |
//! | `RepeatedDelayPerPacketPatternConfig` {pattern, count} | models in sequence; 0 repeats forever |
//!
//! In the crate a model ends after its packets; a pattern repeats.

use narrows_core::Duration;

use super::values::{repetition, time, whole};
use super::{document, tagged};
use crate::node::{Node, Table};
use crate::pattern::{LONGEST, Pattern};
use crate::problem::{Found, Problem, ScenarioError, one_of};
use crate::source::{MOST_POINTS, Source};

const STATIC: &str = "StaticDelayPerPacketConfig";
const REPEATED: &str = "RepeatedDelayPerPacketPatternConfig";
/// The crate's default.
const DEFAULT_DELAY: Duration = Duration::from_millis(10);

impl Pattern {
    /// Parses a pattern, or a netem-trace file of delays per packet. `name` is that of the file, for errors.
    ///
    /// # Errors
    /// If the file is invalid: the error has the line, what was found there, and what is allowed.
    pub fn read_any(name: &str, bytes: &[u8]) -> Result<Self, ScenarioError> {
        let begins = |text: &str| text.trim_start().starts_with(['{', '[']);
        match std::str::from_utf8(bytes) {
            Ok(text) if begins(text.strip_prefix('\u{feff}').unwrap_or(text)) => {
                Source::read(name, bytes, read)
            }
            _ => Self::read(name, bytes),
        }
    }
}

fn read(source: &Source<'_>) -> Result<Pattern, Problem> {
    let root = document(source)?;
    let mut packets = Packets::default();
    packets.model(&root, 0)?;
    if packets.count == 0 {
        return Err(Problem::new("this pattern has no packets").at(&root.span));
    }
    Ok(Pattern::of_delays(packets.count, packets.changes))
}

/// The delays so far: changes by packet, and the number of packets.
#[derive(Default)]
struct Packets {
    changes: Vec<(u64, Duration)>,
    count: u64,
    steps: usize,
    /// Whether the packets so far repeat forever.
    endless: bool,
}

impl Packets {
    fn model(&mut self, node: &Node, depth: u32) -> Result<(), Problem> {
        let (name, tag, inner) = tagged(node)?;
        let table = || inner.table("a table of the model's parameters");
        let done = match name {
            STATIC => self.fixed(inner, table()?),
            REPEATED => self.repeated(inner, table()?, depth),
            _ if name.contains("PerPacket") => {
                let problem = Problem::new(format!("{} draws its delays", Found(name))).at(&tag.span);
                return Err(problem.help("use `delay = { normal = { mean = …, sd = … } }`, or `log-normal`"));
            }
            _ => {
                let known = [STATIC, REPEATED];
                let problem =
                    Problem::new(format!("{} is not a delay per packet", Found(name))).at(&tag.span);
                return Err(problem.did_you_mean(name, known).help(format!("models: {}", one_of(&known))));
            }
        };
        done.map_err(|problem| problem.inside(name))
    }

    fn fixed(&mut self, node: &Node, table: &Table) -> Result<(), Problem> {
        table.only(&["delay", "count"])?;
        let delay = table.optional("delay", time)?.unwrap_or(DEFAULT_DELAY);
        let count = table.optional("count", whole)?.unwrap_or(0);
        if count == 0 {
            self.ends_with(node)?;
        }
        self.steps += 1;
        let end = self.count.saturating_add(count.max(1));
        if end > LONGEST || self.steps > MOST_POINTS {
            let problem = Problem::new("the pattern is too long").at(&node.span);
            return Err(problem.help(format!("at most {LONGEST} packets, in {MOST_POINTS} steps")));
        }
        if self.changes.last().is_none_or(|last| last.1 != delay) {
            self.changes.push((self.count, delay));
        }
        self.count = end;
        Ok(())
    }

    fn repeated(&mut self, node: &Node, table: &Table, depth: u32) -> Result<(), Problem> {
        let (count, models) = repetition(node, table, depth)?;
        if count == 0 {
            self.ends_with(node)?;
            self.endless = false;
        }
        let start = self.count;
        for _ in 0..count.max(1) {
            for (index, inner) in models.iter().enumerate() {
                if self.endless {
                    let problem = Problem::new("unreachable: the previous model is endless").at(&inner.span);
                    return Err(problem.help("a `count` of 0, or none, repeats forever"));
                }
                self.model(inner, depth + 1)
                    .map_err(|problem| problem.inside(&format!("pattern[{index}]")))?;
            }
            if self.count == start || self.endless {
                break; // nothing in it, or nothing behind it
            }
        }
        self.endless |= count == 0;
        Ok(())
    }

    /// Something without an end must be all there is.
    fn ends_with(&mut self, node: &Node) -> Result<(), Problem> {
        if self.count > 0 {
            let problem = Problem::new("an endless model that is not the first").at(&node.span);
            return Err(problem.help("a pattern repeats as a whole: give the model a `count`"));
        }
        self.endless = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_any(text: &str) -> Result<Pattern, String> {
        Pattern::read_any("x.json", text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn models_are_unrolled_into_packets() {
        let model =
            |delay: u64, count: u64| format!(r#"{{"{STATIC}":{{"delay":"{delay}ms","count":{count}}}}}"#);
        let repeated =
            |list: &str, count: u64| format!(r#"{{"{REPEATED}":{{"pattern":[{list}],"count":{count}}}}}"#);
        let millis = Duration::from_millis;
        // The crate's own example.
        let text = repeated(&format!("{},{}", model(10, 1), model(20, 1)), 2);
        let pattern = read_any(&text).unwrap();
        let changes = [(0, millis(10)), (1, millis(20)), (2, millis(10)), (3, millis(20))];
        assert_eq!((pattern.length(), pattern.delay_changes().unwrap()), (4, &changes[..]));
        // Forever is once, which then repeats; equal neighbours are one change.
        let text = repeated(&format!("{},{}", repeated(&model(10, 3), 2), model(5, 4)), 0);
        let pattern = read_any(&text).unwrap();
        assert_eq!((pattern.length(), pattern.delay_changes().unwrap().len()), (10, 2));
        assert_eq!(read_any(&model(7, 0)).unwrap().length(), 1);
        let toml = format!("[{STATIC}]\ndelay = {{ secs = 0, nanos = 5 }}\ncount = 2\n");
        assert_eq!(read_any(&toml).unwrap().delay_changes().unwrap(), [(0, Duration::from_nanos(5))]);
        assert_eq!(read_any("pattern loss\nper packet\nlength 9\n1\n").unwrap().length(), 9);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for (text, word) in [
            (r#"{"NormalizedDelayPerPacketConfig":{}}"#, "draws its delays"),
            (r#"{"StaticBwConfig":{}}"#, "is not a delay per packet"),
            (r#"{"RepeatedDelayPerPacketPatternConfig":{"pattern":[]}}"#, "no packets"),
            (r#"{"StaticDelayPerPacketConfig":{"count":10000000000001}}"#, "too long"),
            (
                r#"{"RepeatedDelayPerPacketPatternConfig":{"count":99999999999,"pattern":[{"StaticDelayPerPacketConfig":{"count":1000000000000}}]}}"#,
                "too long",
            ),
            (
                r#"{"RepeatedDelayPerPacketPatternConfig":{"pattern":[{"StaticDelayPerPacketConfig":{}},{"StaticDelayPerPacketConfig":{}}]}}"#,
                "unreachable",
            ),
            (
                r#"{"RepeatedDelayPerPacketPatternConfig":{"pattern":[{"StaticDelayPerPacketConfig":{"count":1}},{"StaticDelayPerPacketConfig":{}}]}}"#,
                "not the first",
            ),
        ] {
            let error = read_any(text).unwrap_err();
            assert!(error.contains(word) && error.contains("x.json:1:"), "{text}: {error}");
        }
    }
}

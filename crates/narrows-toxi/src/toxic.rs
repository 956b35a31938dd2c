//! Toxics as the API knows them: their types, attributes and settings.

use std::sync::Arc;

use narrows_core::{Stream, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::body::{Fields, Refusal};
use crate::listen::Network;
use crate::piece::Item;
use crate::stream::Way;
use crate::toxics::{self, Around, LinkSettings, Noop, Toxic, Values};

/// Starts a toxic with these numbers on a connection.
type Start = fn([i64; 3], &str, Time, &Around) -> Box<dyn Toxic>;

/// A type of toxic.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    attributes: &'static [&'static str],
    tcp: bool,
    udp: bool,
    /// `None` for `link`, whose attributes are those of a scenario.
    start: Option<Start>,
}

/// All types.
pub(crate) const KINDS: &[Kind] = &[
    Kind { name: "noop", attributes: &[], tcp: true, udp: true, start: Some(|_, _, _, _| Box::new(Noop)) },
    Kind {
        name: "latency",
        attributes: &["latency", "jitter"],
        tcp: true,
        udp: true,
        start: Some(|[latency, jitter, _], name, _, around| {
            Box::new(toxics::Latency::new(latency, jitter, name, around))
        }),
    },
    Kind {
        name: "bandwidth",
        attributes: &["rate"],
        tcp: true,
        udp: true,
        start: Some(|[rate, ..], _, _, around| Box::new(toxics::Bandwidth::new(rate, around))),
    },
    Kind {
        name: "slow_close",
        attributes: &["delay"],
        tcp: true,
        udp: false,
        start: Some(|[delay, ..], _, _, _| Box::new(toxics::SlowClose::new(delay))),
    },
    Kind {
        name: "timeout",
        attributes: &["timeout"],
        tcp: true,
        udp: true,
        start: Some(|[timeout, ..], _, now, _| Box::new(toxics::Timeout::new(timeout, now))),
    },
    Kind {
        name: "reset_peer",
        attributes: &["timeout"],
        tcp: true,
        udp: false,
        start: Some(|[timeout, ..], _, _, _| Box::new(toxics::ResetPeer::new(timeout))),
    },
    Kind {
        name: "slicer",
        attributes: &["average_size", "size_variation", "delay"],
        tcp: true,
        udp: false,
        start: Some(|values, name, _, around| Box::new(toxics::Slicer::new(values, name, around))),
    },
    Kind {
        name: "limit_data",
        attributes: &["bytes"],
        tcp: true,
        udp: true,
        start: Some(|[bytes, ..], _, _, around| Box::new(toxics::LimitData::new(bytes, around))),
    },
    Kind { name: "link", attributes: &[], tcp: false, udp: true, start: None },
];

impl Kind {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Says why a proxy of this network cannot have it.
    pub(crate) fn check(&self, network: Network) -> Result<(), Refusal> {
        let (has, other) = match network {
            Network::Tcp => (self.tcp, "a proxy that listens at udp://ADDRESS"),
            Network::Udp => (self.udp, "a proxy of TCP"),
        };
        if has {
            return Ok(());
        }
        let allowed: Vec<&str> = KINDS
            .iter()
            .filter(|kind| if network == Network::Tcp { kind.tcp } else { kind.udp })
            .map(|kind| kind.name)
            .collect();
        Err(Refusal::bad_toxic(format!(
            "{} is for {other}; this proxy can have {}",
            self.name,
            allowed.join(", ")
        )))
    }

    /// Reads attributes. Those not given keep their values in `before`, or are 0.
    pub(crate) fn read(
        &self,
        given: Option<&Value>,
        before: Option<&Values>,
        way: Way,
    ) -> Result<Values, Refusal> {
        let none = Value::Object(Map::new());
        let given = match given {
            None | Some(Value::Null) => &none,
            Some(given) => given,
        };
        let Value::Object(given) = given else {
            return Err(Refusal::bad_value("attributes", given, "an object"));
        };
        if self.start.is_none() {
            return read_link(given, before, way);
        }
        let mut numbers = match before {
            Some(Values::Numbers(numbers)) => *numbers,
            _ => [0; 3],
        };
        let fields = Fields::new(given.clone(), "attributes.");
        for (number, name) in numbers.iter_mut().zip(self.attributes) {
            if let Some(value) = fields.whole(name)? {
                *number = value;
            }
        }
        Ok(Values::Numbers(numbers))
    }
}

fn read_link(given: &Map<String, Value>, before: Option<&Values>, way: Way) -> Result<Values, Refusal> {
    let mut all = match before {
        Some(Values::Link(settings)) => settings.attributes.clone(),
        _ => Map::new(),
    };
    all.extend(given.iter().map(|(key, value)| (key.clone(), value.clone())));
    match LinkSettings::read(all, way) {
        Ok(settings) => Ok(Values::Link(Arc::new(settings))),
        Err(why) => Err(Refusal::bad_body(format!("attributes: {why}"))),
    }
}

/// A toxic of a proxy.
#[derive(Clone, Debug)]
pub(crate) struct ToxicInUse {
    /// Unique in this server. A toxic that was removed and added again has another one.
    pub(crate) id: u64,
    /// Rises with each change.
    pub(crate) change: u64,
    pub(crate) kind: &'static Kind,
    pub(crate) name: String,
    pub(crate) way: Way,
    /// The stream as it was given.
    pub(crate) stream: String,
    pub(crate) toxicity: f32,
    pub(crate) values: Values,
}

impl ToxicInUse {
    /// Whether it affects this connection: a uniform draw, keyed by proxy, toxic and the number of the connection, is
    /// below the toxicity. A higher toxicity affects the same connections and more.
    fn affects(&self, around: &Around) -> bool {
        let draws = Stream::new(around.seed, &around.element(&self.name), "toxicity");
        draws.nth(around.connection).uniform() < f64::from(self.toxicity)
    }

    /// The toxic on a connection, from now on.
    pub(crate) fn start(&self, now: Time, around: &Around) -> Box<dyn Toxic> {
        if !self.affects(around) {
            return Box::new(Noop);
        }
        match (&self.values, self.kind.start) {
            (Values::Numbers(numbers), Some(start)) => start(*numbers, &self.name, now, around),
            (Values::Link(settings), _) => match toxics::Link::new(settings, &self.name, now, around) {
                Some(link) => Box::new(link),
                None => Box::new(Noop),
            },
            (Values::Numbers(_), None) => Box::new(Noop),
        }
    }

    /// The toxic with changed settings, and what the one before was about to hand on, if it had to be replaced.
    pub(crate) fn restart(
        &self,
        before: &Self,
        now: Time,
        around: &Around,
        toxic: &mut dyn Toxic,
    ) -> Restarted {
        let was_affected = before.affects(around);
        if was_affected == self.affects(around) && toxic.adopt(&self.values, now) {
            return Restarted::Adopted;
        }
        Restarted::Replaced(self.start(now, around), toxic.release(now))
    }
}

/// What became of a toxic with changed settings.
#[derive(Debug)]
pub(crate) enum Restarted {
    /// It took them over.
    Adopted,
    /// Another one takes its place; this was on its way out.
    Replaced(Box<dyn Toxic>, Vec<Item>),
}

impl Serialize for ToxicInUse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        match &self.values {
            Values::Link(settings) => map.serialize_entry("attributes", &settings.attributes)?,
            Values::Numbers(numbers) => {
                let all = self.kind.attributes.iter().zip(numbers);
                let attributes: Map<String, Value> =
                    all.map(|(name, number)| ((*name).into(), Value::from(*number))).collect();
                map.serialize_entry("attributes", &attributes)?;
            }
        }
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("type", self.kind.name)?;
        map.serialize_entry("stream", &self.stream)?;
        // Go writes 1, not 1.0.
        match self.toxicity {
            whole if whole == whole.trunc() && whole.abs() < 1e15 => {
                map.serialize_entry("toxicity", &(whole as i64))?;
            }
            toxicity => map.serialize_entry("toxicity", &toxicity)?,
        }
        map.end()
    }
}

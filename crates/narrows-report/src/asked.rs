//! Describes a scenario's settings for a report.

use std::collections::BTreeMap;

use narrows_core::sched::{CsmaCd, Dcf, Weight};
use narrows_core::service::Overhead;
use narrows_core::{Duration, MtuPolicy, Rate, Seed, Time};
use narrows_scenario::{
    Corrupt, Delay, DelaySource, Direction, DirectionClass, Lane, Link, Normal, Pipe, PipeQueue, Port,
    Scenario, SchedulerKind, Shape, TraceUse, Uniform, Way, mask_words,
};

use crate::info::{ClassInfo, DirectionInfo, Kind, QueueInfo, RoundTrip, RulesInfo, RunInfo};

impl RunInfo {
    /// The settings of this scenario as it is now. The span of the run and notes are filled in later.
    pub fn of(scenario: &Scenario, kind: Kind) -> Self {
        Self {
            title: scenario.file.replace('\n', "\\n"),
            kind,
            seed: Seed(scenario.seed),
            span: (Time::ZERO, Time::ZERO),
            directions: scenario.links.iter().flat_map(directions).collect(),
            rules: scenario.links.iter().filter_map(rules).collect(),
            round_trips: round_trips(scenario),
            notes: Vec::new(),
        }
    }

    /// Updates scheduler classes, masks and queues to the scenario as it is now, and adds pipes created since, also those
    /// that have been deleted again.
    pub fn update(&mut self, scenario: &Scenario) {
        let former = scenario.links.iter().flat_map(Link::former_pipes).flat_map(|link| directions(&link));
        let now = scenario.links.iter().flat_map(directions);
        let key = |of: &DirectionInfo| (of.link.clone(), of.lane);
        let before = self.directions.len();
        let mut known: BTreeMap<_, usize> = self.directions.iter().map(key).zip(0..).collect();
        for now in former.chain(now) {
            let place = *known.entry(key(&now)).or_insert(self.directions.len());
            match self.directions.get_mut(place) {
                Some(then) => {
                    let DirectionInfo { classes, tree, mask, queues, .. } = now;
                    (then.classes, then.tree, then.mask, then.queues) = (classes, tree, mask, queues);
                }
                None => self.directions.push(now),
            }
        }
        // New ones come after the pipes of the same rules.
        let mut last = BTreeMap::new();
        for (place, known) in self.directions.iter().enumerate() {
            if place < before {
                last.insert(known.rules.clone(), place);
            } else {
                last.entry(known.rules.clone()).or_insert(place);
            }
        }
        let places = std::mem::take(&mut self.directions).into_iter().zip(0..);
        let mut rows: Vec<_> =
            places.map(|(row, place)| (if place < before { place } else { last[&row.rules] }, row)).collect();
        rows.sort_by_key(|(place, _)| *place);
        self.directions = rows.into_iter().map(|(_, row)| row).collect();
    }
}

/// The rules of a link, if it has any.
fn rules(link: &Link) -> Option<RulesInfo> {
    let [from, to] = link.ends(Way::Up).map(String::from);
    link.rules().map(|_| RulesInfo { name: link.core_name(Way::Up), from, to })
}

fn directions(link: &Link) -> Vec<DirectionInfo> {
    let lanes = link.lanes();
    // Each pipe has two lanes.
    let pipes = link.rules().into_iter().flat_map(|rules| {
        rules.pipes.iter().flat_map(move |(number, pipe)| {
            let queues: Vec<QueueInfo> =
                rules.queues_of(*number).map(|queue| queue_info(pipe, queue)).collect();
            [(pipe, queues.clone()), (pipe, queues)]
        })
    });
    let pipes = pipes.map(Some).chain(std::iter::repeat_with(|| None));
    let info = |(Lane { link: name, lane, way, direction }, pipe): (Lane<'_>, Option<(&Pipe, _)>)| {
        let [from, to] = link.ends(way).map(String::from);
        let (pipe, queues) = pipe.map_or((None, Vec::new()), |(pipe, queues)| (Some(pipe), queues));
        let rate = direction.effective_rate();
        let follows = direction.trace.as_ref().is_some_and(TraceUse::has_rate);
        DirectionInfo {
            link: name,
            lane,
            from,
            to,
            asked: asked_of(direction, pipe, &queues),
            rate_bps: (rate != Rate::UNLIMITED && !follows).then(|| rate.bits_per_second()),
            delay: direction.mean_delay(),
            overhead: overhead(direction.effective_overhead()),
            rules: pipe.map(|_| link.name.clone()),
            classes: classes(direction),
            tree: direction.class_tree(),
            mask: pipe.and_then(|pipe| pipe.mask),
            queues,
        }
    };
    lanes.into_iter().zip(pipes).map(info).collect()
}

fn queue_info(pipe: &Pipe, (number, queue): (u32, &PipeQueue)) -> QueueInfo {
    let kind = pipe.sharing.unwrap_or_default().kind;
    let has_weights = !matches!(kind, SchedulerKind::Fifo | SchedulerKind::Prio);
    let weight = has_weights.then(|| queue.weight.map_or(1, Weight::get));
    QueueInfo { number, weight, mask: queue.mask }
}

/// The settings in one line, including those that only a pipe has.
fn asked_of(direction: &Direction, pipe: Option<&Pipe>, queues: &[QueueInfo]) -> String {
    let Some(pipe) = pipe else { return asked(direction, queue(direction)) };
    let waits = match queues {
        // A scheduler that separates flows itself has no queues.
        [] => queue(direction),
        _ if direction.scheduler.is_some() => queue(direction),
        few if few.len() <= NAMED_CLASSES => {
            let names: Vec<String> = few.iter().map(|queue| queue.number.to_string()).collect();
            let plural = if few.len() == 1 { "" } else { "s" };
            vec![format!(
                "{} of queue{plural} {}",
                pipe.sharing.unwrap_or_default().kind.name(),
                names.join(", ")
            )]
        }
        many => vec![format!("{} of {} queues", pipe.sharing.unwrap_or_default().kind.name(), many.len())],
    };
    let each = pipe.mask.map(|mask| format!("a link for each flow ({})", mask_words(&mask)));
    [Some(asked(direction, waits)), each].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The classes of its scheduler, if it has any.
fn classes(direction: &Direction) -> Vec<ClassInfo> {
    let classes = direction.classes().into_iter();
    classes
        .map(|DirectionClass { name, weight, matches, .. }| ClassInfo {
            name,
            weight: weight.map(Weight::get),
            matches,
        })
        .collect()
}

/// How many classes are named in one line.
const NAMED_CLASSES: usize = 8;

/// The scheduler, if there is one, and the queue limit.
fn queue(direction: &Direction) -> Vec<String> {
    let Some(scheduler) = &direction.scheduler else {
        let managed = match direction.queue.policy.name() {
            "fifo" => String::new(),
            policy => format!(" ({policy})"),
        };
        return vec![format!("queue {}{managed}", direction.bound())];
    };
    let classes: Vec<_> = direction.classes().into_iter().map(|class| class.name).collect();
    let name = scheduler.kind.name();
    let of = match &classes[..] {
        [] => String::new(),
        few if few.len() <= NAMED_CLASSES => format!(" of {}", few.join(", ")),
        many => format!(" of {} classes", many.len()),
    };
    let whole = direction.whole_bound().map(|bound| format!("queue {bound} in all"));
    [Some(format!("{name}{of}")), whole].into_iter().flatten().collect()
}

/// The settings in one line; those that are off are omitted. `waits` describes the queue.
fn asked(direction: &Direction, waits: Vec<String>) -> String {
    if let Some(netem) = &direction.exact_netem {
        return format!("NetEm's single queue ({netem})");
    }
    let trace = direction.trace.as_ref();
    let followed = trace.filter(|trace| trace.has_rate() && !direction.outage);
    let mut parts = match (followed, direction.effective_rate()) {
        (Some(trace), _) => {
            let mean =
                trace.mean_rate().map_or("unlimited at times".into(), |rate| format!("{rate} on average"));
            [vec![format!("rate by trace ({mean})")], waits].concat()
        }
        (None, Rate::UNLIMITED) => vec!["unlimited rate".to_owned()],
        (None, rate) => [vec![rate.to_string()], waits].concat(),
    };
    match (trace.and_then(TraceUse::mean_delay), delay(&direction.effective_delay())) {
        (Some(mean), _) => parts.push(format!("delay by trace ({mean} on average)")),
        (None, delay) => parts.extend(delay),
    }
    parts.extend(direction.profile.as_ref().map(ToString::to_string));
    if direction.burst.get() > 0 {
        parts.push(format!("burst {}", direction.burst));
    }
    let wire = direction.loss.wire.as_ref().filter(|_| trace.and_then(TraceUse::mean_loss).is_none());
    for (what, model) in [("loss", wire), ("loss before the queue", direction.loss.ingress.as_ref())] {
        parts.extend(model.map(|model| {
            let marks = if model.ecn { ", marked where possible" } else { "" };
            format!("{what} {}{marks}", model.losses)
        }));
    }
    if trace.and_then(TraceUse::mean_loss).is_some() {
        parts.push("loss by trace".into());
    }
    if !direction.loss.with_delay.is_empty() {
        parts.push("loss by delay".into());
    }
    if !direction.duplicate.is_never() {
        parts.push(format!("duplicates {}", direction.duplicate));
    }
    match &direction.corrupt {
        corrupt if corrupt.is_never() => {}
        Corrupt::Packets(chance) => parts.push(format!("corruption {chance}")),
        corrupt => parts.push(format!("corruption of {corrupt}")),
    }
    if let Some(reorder) = direction.reorder {
        parts.push(match reorder.gap {
            1 => format!("reordering {}", reorder.chance),
            gap => format!("reordering {} with gap {gap}", reorder.chance),
        });
    }
    if let Some(slots) = &direction.slots {
        parts.push(slots.to_string());
    }
    if let Some(mtu) = direction.settings.mtu {
        let policy = match mtu.policy {
            MtuPolicy::Fragment => "",
            MtuPolicy::Answer => " (answers)",
            MtuPolicy::BlackHole => " (black hole)",
        };
        parts.push(format!("MTU {} bytes{policy}", mtu.bytes));
    }
    if let Some(limit) = direction.settings.line_limit {
        parts.push(format!("at most {limit} packets in flight"));
    }
    match direction.ingress.as_ref().map_or(0, Vec::len) {
        0 => {}
        1 => parts.push("a filter of arriving packets".into()),
        count => parts.push(format!("{count} filters of arriving packets")),
    }
    if let Some(rate) = direction.policer.as_ref().and_then(|policer| policer.bucket.rate) {
        parts.push(format!("policed to {rate}"));
    }
    parts.extend(direction.plain_words());
    parts.join(", ")
}

/// The delay, if there is one.
fn delay(delay: &Delay) -> Option<String> {
    let plain = match &delay.source {
        DelaySource::Constant(Duration::ZERO) if delay.per_byte == 0 => return None,
        DelaySource::Drawn { distribution, correlation: None }
            if delay.per_byte == 0 && distribution.is_plain() =>
        {
            match distribution.shape {
                Shape::Normal(Normal { mean, sd }) => Some(format!("delay {mean} ± {sd} (normal)")),
                Shape::Uniform(Uniform { low, high }) => Some(format!("delay {low} to {high} (uniform)")),
                _ => None,
            }
        }
        _ => None,
    };
    Some(plain.unwrap_or_else(|| format!("delay {delay}")))
}

/// The link-layer overhead in a few words.
fn overhead(overhead: Overhead) -> String {
    let named = [
        (Overhead::IP, "IP packets"),
        (Overhead::FRAME, "frames without check sequence"),
        (Overhead::ETHERNET, "Ethernet with preamble and gap"),
        (Overhead::ATM, "ATM cells"),
        (Dcf::OVERHEAD, "802.11 frames"),
        (CsmaCd::OVERHEAD, "Ethernet frames"),
    ];
    if let Some((_, name)) = named.into_iter().find(|(known, _)| *known == overhead) {
        return name.into();
    }
    let mut text = if overhead.link_header { "frames" } else { "IP packets" }.to_owned();
    match overhead.extra {
        0 => {}
        extra @ 1.. => text += &format!(" + {extra} bytes"),
        extra => text += &format!(" - {} bytes", extra.unsigned_abs()),
    }
    if overhead.minimum > 0 {
        text += &format!(", at least {}", overhead.minimum);
    }
    if let Some(cells) = overhead.cells {
        text += &format!(", in cells of {}/{}", cells.payload, cells.size);
    }
    text
}

/// The mean one-way delay of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// Where packets enter.
    pub from_port: String,
    /// The mean propagation delay.
    pub delay: Duration,
}

/// The mean delays from ports to their opposite ports ([`Scenario::opposite`]), as far as known, in the order of the
/// scenario's ports. A port at a router has as many paths as there are hosts behind it.
pub fn one_ways(scenario: &Scenario) -> Vec<OneWay> {
    let one_way = |from: &Port| {
        let delay = scenario.mean_delay(from, scenario.opposite(from)?)?;
        Some(OneWay { from_port: from.name.clone(), delay })
    };
    scenario.ports().iter().filter_map(one_way).collect()
}

/// The maximum number of round trips computed: one for each pair of hosts.
const MOST_ROUND_TRIPS: usize = 1000;

/// The mean round-trip delay of each path, as far as known.
fn round_trips(scenario: &Scenario) -> Vec<RoundTrip> {
    let ports = scenario.ports();
    // Each path once, when its second end comes up.
    let pairs = ports.iter().enumerate().flat_map(|(at, to)| ports[..at].iter().map(move |from| (from, to)));
    let joined = |(from, to): &(&Port, &Port)| {
        scenario.joins(from, to) && (from.host != to.host || from.peer == to.name)
    };
    let trip = |(from, to): (&Port, &Port)| {
        let span = scenario.mean_delay(from, to)? + scenario.mean_delay(to, from)?;
        Some(RoundTrip { from: from.host.clone(), to: to.host.clone(), round_trip_ns: span.nanos() })
    };
    pairs.filter(joined).take(MOST_ROUND_TRIPS).filter_map(trip).collect()
}

#[cfg(test)]
mod tests {
    use narrows_scenario::Files;

    use super::*;

    #[test]
    fn a_scenario_in_the_words_of_a_report() {
        let text = r#"
            seed = 7
            [hosts.client]
            [hosts.server]
            [junctions.hub]
            [links.access]
            between = ["client", "hub"]
            up = { rate = "0.5mbit", delay = "10ms", overhead = "atm" }
            down = { rate = "1.5mbit", queue = "13 packets", delay = "10ms", jitter = "2ms", loss = "1%" }
            [links.radio]
            between = ["hub", "server"]
            shared = true
            delay = "1ms"
            overhead = { base = "ip", bytes = 34, minimum = 64 }
        "#;
        let scenario = Scenario::parse(text, "small.toml").expect("it is right");
        let info = RunInfo::of(&scenario, Kind::Live);
        let lines: Vec<_> = info
            .directions
            .iter()
            .map(|d| format!("{}/{} {} to {}: {}; {}", d.link, d.lane, d.from, d.to, d.asked, d.overhead))
            .collect();
        assert_eq!(
            lines,
            [
                "access.up/0 client to hub: 500kbit, queue 4 packets, delay 10ms; ATM cells",
                "access.down/0 hub to client: 1.5mbit, queue 13 packets, delay 10ms ± 2ms (normal), loss 1%; IP packets",
                "radio/0 hub to server: unlimited rate, delay 1ms; IP packets + 34 bytes, at least 64",
                "radio/1 server to hub: unlimited rate, delay 1ms; IP packets + 34 bytes, at least 64",
            ]
        );
        assert_eq!(info.directions[1].rate_bps, Some(1_500_000));
        let trip = &info.round_trips[..];
        assert_eq!((trip.len(), trip[0].from.as_str(), trip[0].to.as_str()), (1, "client", "server"));
        assert_eq!(trip[0].round_trip_ns, 22_000_000);
    }

    #[test]
    fn schedulers_and_queue_management_in_the_words_of_a_report() {
        let text = r#"
            [hosts.client]
            [hosts.server]
            [links.access]
            between = ["client", "server"]
            rate = "10mbit"
            queue = "50 packets"
            [links.access.up]
            queue = { type = "codel", bound = "200 packets" }
            [links.access.down.scheduler]
            type = "drr"
            classes = [{ name = "voip", weight = 4, match = { dscp = "ef" } }, { name = "rest" }]
        "#;
        let mut scenario = Scenario::parse(text, "small.toml").expect("it is right");
        let mut info = RunInfo::of(&scenario, Kind::Live);
        assert_eq!(info.directions[0].asked, "10mbit, queue 200 packets (codel)");
        assert_eq!(info.directions[0].classes, []);
        assert_eq!(info.directions[1].asked, "10mbit, drr of voip, rest");
        let classes = |info: &RunInfo| -> Vec<_> {
            info.directions[1].classes.iter().map(|class| (class.name.clone(), class.weight)).collect()
        };
        let ports = (1..=8).map(|port| format!("{{ name = \"c{port}\", match = {{ port = {port} }} }}, "));
        let list = format!("[{}{{ name = \"rest\" }}]", ports.collect::<String>());
        let start = text.find("classes = ").expect("it has classes");
        let many = format!("{}classes = {list}", &text[..start]);
        let many = Scenario::parse(&many, "many.toml").expect("it is right");
        assert_eq!(RunInfo::of(&many, Kind::Live).directions[1].asked, "10mbit, drr of 9 classes");
        assert_eq!(classes(&info), [("voip".into(), Some(4)), ("rest".into(), Some(1))]);
        assert!(info.directions[1].classes[0].matches.contains("ef"), "{:?}", info.directions[1].classes);
        scenario.assign("access.down.scheduler.rest.weight=7").expect("it is right");
        scenario.assign("access.up.queue=\"9 packets\"").expect("it is right");
        info.update(&scenario);
        assert_eq!(classes(&info), [("voip".into(), Some(4)), ("rest".into(), Some(7))]);
        assert_eq!(
            info.directions[0].asked, "10mbit, queue 200 packets (codel)",
            "what was asked at the start"
        );
        scenario.assign("access.down.scheduler=fq_codel").expect("it is right");
        assert_eq!(
            RunInfo::of(&scenario, Kind::Live).directions[1].asked,
            "10mbit, fq_codel, queue 50 packets in all"
        );
        info.update(&scenario);
        assert_eq!(classes(&info), []);
    }

    #[test]
    fn distributions_losses_and_traces_in_the_words_of_a_report() {
        let text = r#"
            [hosts.client]
            [hosts.server]
            [links.access]
            between = ["client", "server"]
            [links.access.up]
            rate = "1mbit"
            queue = "5 packets"
            delay = { gamma = { mean = "20ms", sd = "5ms" }, correlation = "50ms" }
            loss = { ingress = "1%", wire = { gilbert-elliott = { p = 0.01, r = 0.3 }, ecn = true } }
            corrupt = { bit-errors = "1e-6" }
            slots = { gap = "10ms", packets = 8 }
            profile = "radio.profile"
            burst = "3kB"
            [links.access.down]
            trace = "path.csv"
            loss = { with-delay = [["20ms", "0%"], ["100ms", "10%"]] }
            queue = "9 packets"
            [links.other]
            between = ["client", "server"]
            up = { exact-netem = "delay 10ms loss 1%" }
            down = { delay = { feed = "radio", on-empty = "last" } }
        "#;
        let trace = b"time_s,rate_mbit,delay_ms\n0,10,20\n1,5,40\n2,,\n".to_vec();
        let profile = b"bw 2Mbit/s\nprob delay\n0 1\n0.5 1\n0.5 3\n1 3\nloss-level 0.9\n".to_vec();
        let files = Files::given([("path.csv", trace), ("radio.profile", profile)]);
        let scenario = Scenario::parse_with(text, "small.toml", files).expect("it is right");
        let info = RunInfo::of(&scenario, Kind::Live);
        let asked: Vec<_> = info.directions.iter().map(|d| d.asked.as_str()).collect();
        assert_eq!(
            asked,
            [
                "1mbit, queue 5 packets, delay gamma, shape 16, scale 1.25ms, smooth in time over 50ms, \
                 1ms to 3ms of air time for each packet, 2ms on average (radio.profile), \
                 after which 10.00 % are lost, burst 3000 bytes, \
                 loss Gilbert-Elliott, p 1%, r 30%, marked where possible, loss before the queue 1%, \
                 corruption of each bit with a probability of 0.0001%, \
                 slots 10ms after a request, for 8 packets each",
                "rate by trace (7.5mbit on average), queue 9 packets, delay by trace (30ms on average), loss by delay",
                "NetEm's single queue (delay 10ms loss 1%)",
                "unlimited rate, delay fed as `radio`, at most 4096 values ahead, the last delay when there are none",
            ]
        );
        // What varies is no rate that was asked for; the mean of its delay is one.
        assert_eq!(
            (info.directions[1].rate_bps, info.directions[1].delay),
            (None, Some(Duration::from_millis(30)))
        );
        assert_eq!(info.directions[3].delay, None);
    }
}

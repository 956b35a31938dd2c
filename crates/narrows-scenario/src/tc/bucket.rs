//! Token buckets: `tbf rate 1mbit burst 5kb latency 70ms`, and `police rate 1mbit burst 10k drop`, the
//! action of a filter on packets above a rate.

use narrows_core::{Bytes, Rate};

use super::abbreviation;
use super::unit::{FRAME, RATE, SIZE, TIME, missing, rate_of, size_of, time_of, whole};
use super::verdict::{Control, Verdict};
use crate::dialect::{Opt, Options, Read, Unit, Word, Words, number, number_of, text_of};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};

/// The options that both have.
const BUCKET: &[Opt] = &[
    Opt::value(&["rate"], "rate", RATE),
    Opt::value(&["burst", "buffer", "maxburst"], "burst", SIZE),
    Opt::value(&["peakrate"], "peakrate", RATE),
    Opt::value(&["mtu", "minburst"], "mtu", SIZE).printed("minburst"),
    Opt::value(&["mpu"], "mpu", SIZE).zero_is_none(),
    Opt::value(&["overhead"], OVERHEAD, whole::<{ -1500 }, 1500>()),
    Opt::value(&["linklayer"], LINK_LAYER, LAYER),
];

/// Additional bytes per packet. In a scenario this is a setting of the link, not of the bucket.
pub(super) const OVERHEAD: &str = "extra";
/// The number of a policer, by which filters name it.
const INDEX: &str = "index";
/// Packets per second of a policer that counts packets, and how many conform at once.
const PACKETS: &str = "packets";
const PACKET_BURST: &str = "packet-burst";
/// The longest IP packet.
const LONGEST: Bytes = Bytes::new(65_535);
/// Whether packets are segmented into cells.
pub(super) const LINK_LAYER: &str = "layer";

pub(super) const LAYER: Unit = Unit {
    what: "a link layer",
    read: |word, _| match word.text {
        "ethernet" => Ok(Read::plain(text("ethernet"))),
        "atm" | "adsl" => Ok(Read::plain(text("atm"))),
        _ => Err(word
            .problem(format!("{} is not a link layer", Found(word.text)))
            .help("allowed: `ethernet`, `atm` or `adsl`")),
    },
    show: |_| None,
};

/// The value of `overhead`: what counts as the length of a packet. `base` counts if no option changes it.
pub(super) fn overhead(keys: &Table, base: &str) -> Value {
    let extra: i64 = number_of(keys, OVERHEAD).unwrap_or(0);
    let is_atm = text_of(keys, LINK_LAYER) == "atm";
    if extra == 0 && !is_atm {
        return text(base);
    }
    let mut parts = Table::default();
    parts.put("base", text(base));
    parts.put("bytes", number(extra));
    if is_atm {
        parts.put("cells", text("atm"));
    }
    Value::Table(parts)
}

/// What a frame of this length counts at the rates of a bucket.
fn counted(keys: &Table, frame: Bytes) -> Bytes {
    let extra: i64 = number_of(keys, OVERHEAD).unwrap_or(0);
    let bytes = frame.get().saturating_add_signed(extra);
    match text_of(keys, LINK_LAYER).as_str() {
        "atm" => Bytes::new(bytes.div_ceil(CELL) * 53),
        _ => Bytes::new(bytes),
    }
}

/// The bytes of a packet that a cell of ATM carries.
const CELL: u64 = 48;

/// The keys of a bucket or a class but for the overhead, which is a setting of the link.
pub(super) fn without_overhead(keys: &Table) -> Table {
    let mut keys = keys.clone();
    [OVERHEAD, LINK_LAYER].iter().for_each(|key| keys.remove(key));
    keys
}

/// The keys of a `tbf` as a scheduler. The overhead belongs to the link, so its packets count with it; in the kernel, the
/// bucket does, too: `burst 1500 overhead 44` holds a frame of 1500 bytes, and the limit is in bytes of frames.
pub(super) fn scheduler(bucket: &Table) -> Table {
    let mut keys = without_overhead(bucket);
    if overhead(bucket, "frame") == text("frame") {
        return keys;
    }
    for key in ["burst", "mtu"] {
        if let Some(size) = size_of(bucket, key) {
            keys.set(key, Node::new(text(counted(bucket, size))));
        }
    }
    if let Some(latency) = time_of(bucket, "latency") {
        let within = |rate: &str, holds: &str| {
            let bytes = rate_of(bucket, rate)?.bits_per_second() as u128 * u128::from(latency.nanos())
                / 8_000_000_000;
            Some(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(size_of(bucket, holds)?.get()))
        };
        let bound = within("rate", "burst").into_iter().chain(within("peakrate", "mtu")).min();
        keys.remove("latency");
        bound.into_iter().for_each(|bound| keys.put("bound", text(Bytes::new(bound))));
    }
    keys
}

pub(super) const TBF: Options = Options(&[
    BUCKET,
    &[Opt::value(&["limit"], "bound", SIZE), Opt::value(&["latency", "lat"], "latency", TIME).printed("lat")],
]);

const POLICE: Options = Options(&[
    BUCKET,
    &[
        Opt::value(&["index"], INDEX, whole::<1, { u32::MAX as i64 }>()),
        Opt::value(&["pkts_rate"], PACKETS, whole::<1, 100_000_000>()),
        Opt::value(&["pkts_burst"], PACKET_BURST, whole::<1, 100_000_000>()),
        Opt::word(&["drop", "shot", "reclassify"], "exceed", "drop"),
        Opt::word(&["pass", "ok"], "exceed", "pass"),
        Opt::word(&["continue"], "exceed", "continue"),
        Opt::word(&["pipe"], "exceed", "pipe"),
        Opt::value(&["conform-exceed"], "exceed", CONTROLS),
    ],
]);

/// Words of both that tc lets one shorten, in its order.
const SHORT_TBF: [&str; 6] = ["limit", "latency", "burst", "peakrate", "overhead", "linklayer"];
const SHORT_POLICE: [&str; 14] = [
    "index",
    "burst",
    "peakrate",
    "reclassify",
    "drop",
    "shot",
    "continue",
    "pass",
    "ok",
    "pipe",
    "overhead",
    "linklayer",
    "pkts_rate",
    "pkts_burst",
];

/// A policer, and how it goes on after it.
#[derive(Clone, Debug)]
pub(super) struct Police {
    /// The longest packets that conform, whatever their rate: `police mtu 1500 drop`.
    pub(super) longest: Option<Bytes>,
    pub(super) keys: Table,
    /// For packets below the rate.
    pub(super) conform: Control,
    /// For packets above it.
    pub(super) exceed: Control,
}

/// What happens to packets above the rate and, after a `/`, to those below it: `drop/ok`.
const CONTROLS: Unit = Unit {
    what: "the action for packets above the rate",
    read: |word, _| {
        let (exceed, conform) = word.text.split_once('/').unwrap_or((word.text, "ok"));
        let wrong = |word: Word<'_>| {
            word.problem(format!("{} is not an action", Found(word.text)))
                .help("allowed: `drop`, `pass`, `continue`, `pipe` or `reclassify`")
        };
        for part in [exceed, conform] {
            Control::read(part).ok_or_else(|| wrong(word.part(part)))?;
        }
        Ok(Read::plain(text(word.text)))
    },
    show: |_| None,
};

/// Parses the options of a token bucket into keys.
pub(super) fn tbf(name: Word<'_>, words: &mut Words<'_>) -> Result<Table, Problem> {
    const EXAMPLE: &str = "tbf rate 1mbit burst 5kb latency 70ms";
    let mut keys = abbreviation::read_all(TBF, &SHORT_TBF, "tbf", words)?;
    let at = |key: &str, problem: Problem| match keys.key(key) {
        Some(key) => problem.at(&key.span),
        None => problem,
    };
    if let (Some(limit), Some(latency)) = (keys.key("bound"), keys.key("latency")) {
        let second = if limit.span.start > latency.span.start { limit } else { latency };
        return Err(Problem::new("both `limit` and `latency`")
            .at(&second.span)
            .help("each determines the other: use one"));
    }
    let burst = required(name, &keys, EXAMPLE)?;
    if keys.key("bound").or(keys.key("latency")).is_none() {
        return Err(missing(name, "latency", EXAMPLE).help("or `limit`, in bytes"));
    }
    match (rate_of(&keys, "peakrate"), rate_of(&keys, "rate")) {
        (Some(peak), Some(own)) if peak <= own => {
            let title = format!("the peak rate, {peak}, is not above the rate, {own}");
            return Err(at("peakrate", Problem::new(title)));
        }
        (Some(_), _) if keys.get("mtu").is_none() => {
            let problem = Problem::new("`peakrate` without `mtu`");
            return Err(at("peakrate", problem.help("as in: peakrate 2mbit mtu 1540")));
        }
        (Some(_), _) => {
            let mtu = size_of(&keys, "mtu").unwrap_or(MTU).min(LONGEST);
            if burst < mtu {
                let title = format!("a burst of {burst} is less than the peak rate's `mtu` of {mtu}");
                return Err(at(
                    "burst",
                    Problem::new(title)
                        .help("longer packets than the burst are dropped: choose an `mtu` of that"),
                ));
            }
            keys.set("mtu", Node::new(text(mtu)));
        }
        // Longer packets than the burst never go, as in the kernel. In a scenario this has to be said.
        (None, _) if burst < MTU => keys.set("mtu", Node::new(text(burst))),
        (None, _) => keys.remove("mtu"),
    }
    Ok(keys)
}

/// The longest packet of a device that nobody has changed.
const MTU: Bytes = Bytes::new(1500);

/// As long as a frame of the loopback device can be.
const LOOPBACK_FRAME: Bytes = Bytes::new(65_550);

/// What is dropped, where the bucket holds less than a frame of the MTU.
pub(super) fn dropped(bucket: &Table) -> Option<String> {
    let peak = bucket.get("peakrate").and_then(|_| size_of(bucket, "mtu"));
    let holds = size_of(bucket, "burst")?.min(peak.unwrap_or(Bytes::new(u64::MAX)));
    // Cells that are begun are paid for.
    let cells = (counted(bucket, holds).get() / 53 * CELL)
        .saturating_add_signed(-number_of(bucket, OVERHEAD).unwrap_or(0));
    let fits = if text_of(bucket, LINK_LAYER) == "atm" { Bytes::new(cells) } else { holds };
    (holds < FRAME).then(|| match fits == holds {
        true => format!("Frames of more than {holds} are dropped, as in the kernel: they never fit into the bucket."),
        false => format!(
            "Frames of more than {fits} are dropped, as they never fit into the bucket; the kernel drops those of more than {holds}, though they take no more cells."
        ),
    })
}

/// What the kernel drops at the loopback device, whose packets are longer than those of hosts here.
pub(super) fn dropped_at_loopback(bucket: &Table) -> Option<String> {
    let holds = size_of(bucket, "burst").filter(|holds| *holds >= FRAME && *holds < LOOPBACK_FRAME)?;
    Some(format!(
        "The kernel drops frames of more than {holds}, which never fit into the bucket: with the MTU that `lo` has, 65536, those of bulk TCP. Packets are shorter here."
    ))
}

/// Skips the options of a policer, which is there already.
pub(super) fn skip_options(words: &mut Words<'_>) -> Result<(), Problem> {
    abbreviation::read_some(POLICE, &SHORT_POLICE, words).map(drop)
}

/// Parses the options of a policer, and its number.
pub(super) fn police(name: Word<'_>, words: &mut Words<'_>) -> Result<(Police, Option<u32>), Problem> {
    let mut keys = abbreviation::read_some(POLICE, &SHORT_POLICE, words)?;
    if let Some(word) = words.peek().filter(|word| word.text == "avrate") {
        return Err(word
            .problem("`avrate` of a policer")
            .help("it needs an estimator, whose averages are not computed here: rate 1mbit burst 10k"));
    }
    let index = number_of(&keys, INDEX);
    keys.remove(INDEX);
    by_packets(name, &mut keys)?;
    let said = keys.take("exceed").map_or_else(
        || "drop".to_owned(),
        |(_, node)| match node.value {
            Value::String(said) => said,
            _ => String::new(),
        },
    );
    let (exceed, conform) = said.split_once('/').unwrap_or((&said, "ok"));
    let known = |word| Control::read(word).unwrap_or(Control::Ends(Verdict::Drop)); // as they were read
    let (exceed, conform) = (known(exceed), known(conform));
    let of_rates = ["rate", "burst", "peakrate"].iter().any(|key| keys.get(key).is_some());
    if let Some(longest) = size_of(&keys, "mtu").filter(|_| !of_rates) {
        return Ok((Police { longest: Some(longest), keys: Table::default(), conform, exceed }, index));
    }
    let burst = required(name, &keys, "police rate 1mbit burst 10k drop")?;
    // A peak rate needs an `mtu`. Without one, tc prints an `mtu` of 2047 bytes that nobody set.
    if keys.get("peakrate").is_none() {
        if size_of(&keys, "mtu").is_some_and(|mtu| mtu < Bytes::new(1514)) {
            let place = keys.key("mtu").map_or_else(|| name.span(), |key| key.span.clone());
            return Err(Problem::new("an `mtu` below that of Ethernet, without `peakrate`")
                .at(&place)
                .help("longer packets exceed the rate in the kernel; here a policer has no such limit"));
        }
        keys.remove("mtu");
        // Longer packets are always above the rate, as in the kernel. In a scenario this has to be said.
        if burst < MTU {
            keys.set("mtu", Node::new(text(burst)));
        }
    } else {
        enough(&keys, burst)?;
    }
    // Arriving packets no longer have a link header when the kernel counts them.
    let overhead = overhead(&keys, "ip");
    [OVERHEAD, LINK_LAYER].iter().for_each(|key| keys.remove(key));
    keys.put("overhead", overhead);
    Ok((Police { longest: None, keys, conform, exceed }, index))
}

/// The keys of a policer of packets: each of them counts as the longest that there is.
fn by_packets(name: Word<'_>, keys: &mut Table) -> Result<(), Problem> {
    const EXAMPLE: &str = "police pkts_rate 1000 pkts_burst 400";
    let (rate, burst) = (number_of::<u64>(keys, PACKETS), number_of::<u64>(keys, PACKET_BURST));
    let (Some(rate), Some(burst)) = (rate, burst) else {
        return match (rate, burst) {
            (None, None) => Ok(()),
            (None, _) => Err(missing(name, "pkts_rate", EXAMPLE)),
            (_, _) => Err(missing(name, "pkts_burst", EXAMPLE)),
        };
    };
    if let Some(key) = ["rate", "burst", "peakrate", "mpu"].iter().find_map(|key| keys.key(key)) {
        return Err(Problem::new("a policer by bytes and by packets")
            .at(&key.span)
            .help("it has one rate: rate 1mbit burst 10k, or pkts_rate 1000 pkts_burst 400"));
    }
    let all = LONGEST.get() * 8;
    keys.put("rate", text(Rate::from_bits_per_second(rate * all)));
    keys.put("burst", text(Bytes::new(burst * LONGEST.get())));
    keys.put("mpu", text(LONGEST));
    [PACKETS, PACKET_BURST].iter().for_each(|key| keys.remove(key));
    Ok(())
}

/// The burst. Checks that there is one, and a rate.
fn required(name: Word<'_>, keys: &Table, example: &str) -> Result<Bytes, Problem> {
    if keys.get("rate").is_none() {
        return Err(missing(name, "rate", example));
    }
    size_of(keys, "burst").filter(|burst| burst.get() > 0).ok_or_else(|| missing(name, "burst", example))
}

/// Checks that the burst of a policer with a peak rate holds a packet.
fn enough(keys: &Table, burst: Bytes) -> Result<(), Problem> {
    let least = size_of(keys, "mtu").unwrap_or(MTU).min(MTU);
    if burst < least {
        let title = format!("a burst of {burst} is less than one packet of {least}, which could never pass");
        let place = keys.key("burst").map(|key| key.span.clone()).unwrap_or_default();
        return Err(Problem::new(title).at(&place));
    }
    Ok(())
}

//! Options as tc takes and prints them.

use narrows_core::sched::{ErrorWidth, Estimator, Gamma, HpdClass};
use narrows_core::{Bytes, Duration, Rate};

use crate::value::{Cbq, CbqClass, HtbClass, Tbf};

/// A rate in tc's letters, `10Mbit`, exactly.
pub(super) fn rate(rate: Rate) -> String {
    let bits = rate.bits_per_second();
    let units = [(1_000_000_000_000, "Tbit"), (1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1_000, "Kbit")];
    match units.into_iter().find(|(unit, _)| bits >= *unit && bits.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", bits / unit),
        None => format!("{bits}bit"),
    }
}

/// A size in tc's letters, `5Kb` for 5120 bytes, exactly.
pub(super) fn size(size: Bytes) -> String {
    let bytes = size.get();
    match [(1 << 20, "Mb"), (1 << 10, "Kb")]
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => format!("{bytes}b"),
    }
}

/// A time as the reference implementation has it: a bare number of microseconds, where it is one.
fn micros(time: Duration) -> String {
    match time.nanos() % 1000 {
        0 => (time.nanos() / 1000).to_string(),
        _ => format!("{}ns", time.nanos()),
    }
}

fn mpu(mpu: Bytes) -> String {
    if mpu.get() > 0 { format!(" mpu {}", size(mpu)) } else { String::new() }
}

/// All but the limit in bytes, which is the scheduler's.
pub(super) fn tbf(tbf: &Tbf) -> String {
    let mut text = format!("rate {} burst {}", rate(tbf.rate), size(tbf.burst));
    if let Some(peak) = tbf.peakrate {
        text += &format!(" peakrate {} minburst {}", rate(peak), size(tbf.mtu));
    }
    text += &mpu(tbf.mpu);
    if let Some(latency) = tbf.latency {
        text += &format!(" lat {latency}");
    }
    text
}

pub(super) fn cbq(cbq: &Cbq) -> String {
    format!("bandwidth {} avpkt {}", rate(cbq.bandwidth), size(cbq.average_packet))
}

/// With the bursts in force. Of a class with others below it the priority and the quantum are of no use.
pub(super) fn htb_class(class: &HtbClass, is_leaf: bool) -> String {
    let mut text = String::new();
    if is_leaf {
        text += &format!("prio {} ", class.priority);
        if let Some(quantum) = class.quantum {
            text += &format!("quantum {} ", quantum.get());
        }
    }
    text += &format!(
        "rate {} ceil {} burst {} cburst {}",
        rate(class.rate),
        rate(class.ceil()),
        size(class.burst()),
        size(class.cburst())
    );
    text + &mpu(class.mpu)
}

/// A value that is not the usual one.
fn differs<T: PartialEq + ToString>(value: T, usual: T) -> Option<String> {
    (value != usual).then(|| value.to_string())
}

pub(super) fn cbq_class(class: &CbqClass) -> String {
    let plain = CbqClass::default();
    let mut text = format!("rate {}", rate(class.rate));
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!(" {name} {value}");
        }
    };
    put("prio", differs(class.priority, plain.priority));
    put("allot", class.allot.map(size));
    put("avpkt", class.average_packet.map(size));
    // A rate to tc: bytes a second.
    put("weight", class.weight.map(|weight| format!("{}bit", u64::from(weight) * 8)));
    put("maxburst", differs(class.maxburst, plain.maxburst));
    put("minburst", class.minburst.map(|burst| burst.to_string()));
    put("minidle", class.minidle.map(|idle| idle.to_string()));
    put("ewma", differs(class.ewma, plain.ewma));
    for (is, word) in [(class.bounded, "bounded"), (class.isolated, "isolated"), (class.exempt, "exempt")] {
        if is {
            text += &format!(" {word}");
        }
    }
    text + &mpu(class.mpu)
}

/// As the published implementation prints it, and whether that says all.
pub(super) fn hpd_class(
    class: &HpdClass,
    number: u16,
    is_default: bool,
    packets: Option<u64>,
) -> (String, bool) {
    // What the estimator has no use for is printed, too.
    let (mut restart, mut cycle) = (Estimator::THRESHOLD, Estimator::CYCLE);
    let (mut properr, mut said) = (ErrorWidth::Eighth.steps(), true);
    let estimator = match class.estimator {
        Estimator::Ewma => "ewma",
        Estimator::EwmaR { threshold, cycle: time } => {
            (restart, cycle) = (threshold, time);
            "ewmar"
        }
        Estimator::EwmaPe { steps, width } => {
            properr = steps;
            said = width == ErrorWidth::Eighth;
            "ewmape"
        }
    };
    // tc's language has 32 numbers.
    let mut text = if number <= 32 { format!("num {number} ") } else { String::new() };
    text += if is_default { "default " } else { "" };
    text += &format!("ewma {estimator} limit {}", micros(class.limit.unwrap_or_default()));
    if let Some(packets) = packets {
        text += &format!(" qlen {packets}");
    }
    let gamma = match class.gamma {
        Gamma::Fixed(parts) => parts.to_string(),
        Gamma::OfBacklog => "auto".into(),
    };
    text += &format!(
        " ddp {} gamma {gamma} weight {} restart {restart} cycle {} properr {properr}",
        class.ddp,
        class.g,
        micros(cycle)
    );
    (text, said)
}

//! The verdict on the host, in one sentence.

use crate::Calibration;
use crate::accuracy::{Accuracy, COMMON};
use crate::asked::Path;
use crate::numbers::{micros, thousands};

pub(crate) fn verdict(all: &Calibration) -> String {
    let (Some(narrows), Some(floor)) = (all.in_common(Path::Narrows), all.in_common(Path::Forwarder)) else {
        return "Interrupted before any result.".into();
    };
    let over = narrows.error.median() - floor.error.median();
    let rate = thousands(narrows.asked_per_second);
    let mut text = format!(
        "At {rate} packets a second this host delays a packet {} too long (p50), {}, p99 {}",
        micros(narrows.error.median()),
        beyond(over),
        micros(narrows.error.percentile(99)),
    );
    text += &match all.knee_per_second {
        Some(knee) => format!("; p99 stays within 50 µs up to {} packets a second.", thousands(knee)),
        None => "; p99 exceeds 50 µs at every rate tried.".into(),
    };
    let stolen = all.floor.as_ref().map_or(0.0, |floor| floor.spin.percentile(100));
    if stolen > 1e6 {
        text += &format!(
            " The processor was taken away for up to {}: expect outliers of that size.",
            micros(stolen)
        );
    }
    if all.interrupted {
        text += " Interrupted: later results are missing.";
    }
    if all.processors < 2 {
        text += " With one processor, programs and the emulator wait for each other.";
    }
    text
}

/// What narrows adds to the host's own time, in nanoseconds, as text. If the host has other work, either of the two
/// may get more CPU time, so this can be negative.
fn beyond(nanos: f64) -> String {
    match nanos {
        ..=0.0 => "equal to the kernel and a bare forwarder".into(),
        _ => format!("{} of it beyond the kernel and a bare forwarder", micros(nanos)),
    }
}

impl Calibration {
    /// The common delay at the lowest rate.
    fn in_common(&self, path: Path) -> Option<&Accuracy> {
        let rows = self.accuracy.iter().filter(|row| row.path == path && row.setting == COMMON);
        rows.min_by_key(|row| row.asked_per_second)
    }

    /// In a few words.
    pub(crate) fn in_short(&self) -> String {
        let of = |path| self.in_common(path).map_or(f64::NAN, |row| row.error.median());
        let knee = self
            .knee_per_second
            .map_or("at no rate".into(), |rate| format!("up to {} packets a second", thousands(rate)));
        format!(
            "{} processors; p50 error: narrows {}, bare forwarder {}; p99 within 50 µs: {knee}",
            self.processors,
            micros(of(Path::Narrows)),
            micros(of(Path::Forwarder)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_narrows_adds_is_never_below_nothing() {
        assert_eq!(beyond(600.0), "0.6 µs of it beyond the kernel and a bare forwarder");
        assert_eq!(beyond(-2.45e6), "equal to the kernel and a bare forwarder");
    }
}

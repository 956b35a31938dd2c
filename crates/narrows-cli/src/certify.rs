//! `--max-lateness`: bounds that a run must keep, and the exit status if it does not.

use narrows_report::{LatenessBound, Quantile, Report};
use narrows_scenario::span_of_time;

use crate::output::{Failure, say};

/// Exit status of a run that exceeded a bound while CMD succeeded: "temporary failure, try again" of
/// `sysexits.h`.
pub(crate) const TOO_LATE: u8 = 75;

/// Parses the values of `--max-lateness`.
pub(crate) fn lateness_bounds(texts: &[String]) -> Result<Vec<LatenessBound>, Failure> {
    let mut bounds: Vec<LatenessBound> = Vec::new();
    for text in texts.iter().flat_map(|text| text.split(',')) {
        let bound = lateness_bound(text.trim())?;
        if bounds.iter().any(|other| other.quantile == bound.quantile) {
            let name = bound.quantile.name();
            return Err(Failure::Other(format!("--max-lateness: two bounds for `{name}`")));
        }
        bounds.push(bound);
    }
    Ok(bounds)
}

fn lateness_bound(text: &str) -> Result<LatenessBound, Failure> {
    let names: Vec<_> = Quantile::ALL.iter().map(|quantile| quantile.name()).collect();
    let names = names.join(", ");
    let Some((name, time)) = text.split_once('=') else {
        return Err(Failure::Other(format!(
            "--max-lateness: found `{text}`, expected QUANTILE=TIME, such as p99=50us; QUANTILE is one of {names}"
        )));
    };
    let quantile = name.trim().parse().map_err(|()| {
        Failure::Other(format!("--max-lateness: `{name}` is not a quantile: it is one of {names}"))
    })?;
    Ok(LatenessBound { quantile, at_most: span_of_time("max-lateness", time)? })
}

/// The exit status of a run. CMD's own failure takes precedence. Exceeded bounds are always printed, even
/// without a report.
pub(crate) fn verdict(status: u8, report: &Report) -> u8 {
    let broken: Vec<_> = report.certificates.iter().filter(|certificate| !certificate.met).collect();
    for certificate in &broken {
        let verdict = match certificate.implausible_stamp_packets {
            0 => "the run was too late",
            _ => "the run's lateness is unknown",
        };
        say(format_args!("narrows: {verdict}: {}", certificate.sentence()));
    }
    if status == 0 && !broken.is_empty() { TOO_LATE } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Vec<LatenessBound>, String> {
        let texts: Vec<_> = texts.iter().map(|&text| text.to_owned()).collect();
        lateness_bounds(&texts).map_err(|failure| failure.to_string())
    }

    #[test]
    fn bounds_are_read_from_several_flags_or_one() {
        let bounds = read(&["p99=50us", "p50=2us, max=1.5ms", "p99.9=1ms"]).unwrap();
        let bounds: Vec<_> = bounds.iter().map(|b| (b.quantile.name(), b.at_most.nanos())).collect();
        assert_eq!(bounds, [("p99", 50_000), ("p50", 2_000), ("max", 1_500_000), ("p99.9", 1_000_000)]);
        // As they were called before.
        let old = read(&["median=1ms,p999=2ms"]).unwrap();
        assert_eq!(old.iter().map(|b| b.quantile.name()).collect::<Vec<_>>(), ["p50", "p99.9"]);
        assert!(read(&[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_bound_is_told_with_what_is() {
        for (text, words) in [
            ("50us", &["found `50us`", "p99=50us", "p50, p90, p99, p99.9, max"][..]),
            ("p98=50us", &["`p98` is not a quantile", "p50, p90"]),
            ("p99=50", &["`50` has no unit", "--max-lateness 50", "units: ns, us, ms"]),
            ("p99=-1us", &["below zero", "--max-lateness"]),
            ("max=1ms,max=2ms", &["two bounds for `max`"]),
        ] {
            let error = read(&[text]).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
        }
    }
}

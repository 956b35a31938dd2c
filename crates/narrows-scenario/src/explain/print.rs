//! An explanation, for people.

use std::fmt;

use narrows_core::Duration;

use super::{Expected, Explanation, LinkExplanation, SMALL};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: seed {}", self.scenario, self.seed)?;
        match self.duration_ns {
            Some(nanos) => writeln!(f, ", lasts {}", Duration::from_nanos(nanos))?,
            None => writeln!(f)?,
        }
        for link in &self.links {
            writeln!(f)?;
            print_link(link, f)?;
        }
        for path in &self.paths {
            writeln!(f, "\n{} ↔ {}", path.from, path.to)?;
            let [small, full] = [path.round_trip_small_ns, path.round_trip_full_ns].map(span);
            writeln!(
                f,
                "  round trip  {small} for {SMALL} bytes, {full} for {} bytes both ways, without waiting",
                path.full_bytes
            )?;
        }
        for (title, lines) in [("traffic", &self.traffic), ("timeline", &self.timeline)] {
            if !lines.is_empty() {
                writeln!(f, "\n{title}")?;
            }
            for line in lines {
                writeln!(f, "  {line}")?;
            }
        }
        if !self.warnings.is_empty() {
            writeln!(f)?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

fn print_link(link: &LinkExplanation, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let LinkExplanation { name, from, to, .. } = link;
    match link.shared {
        true => writeln!(f, "{name}: {from} ↔ {to}, one medium for both directions")?,
        false => writeln!(f, "{name}: {from} → {to}")?,
    }
    writeln!(f, "  rate      {}", link.rate)?;
    if link.rate_bits_per_second.is_some() {
        writeln!(f, "  counted   {}", link.overhead)?;
    }
    let order = if link.order == "keep" { "packets keep their order" } else { "packets may overtake" };
    match link.delay.as_str() {
        "none" => writeln!(f, "  delay     none")?,
        delay => writeln!(f, "  delay     {delay}; {order}")?,
    }
    writeln!(f, "  queue     {} ({}), drops at the {}", link.queue, link.queue_reason, link.drop)?;
    for impairment in &link.impairments {
        writeln!(f, "  also      {impairment}")?;
    }
    let (small, full) = (&link.small, &link.full);
    writeln!(
        f,
        "  one way   {} for {} bytes, {} for {} bytes",
        span(small.one_way_ns),
        small.bytes,
        span(full.one_way_ns),
        full.bytes
    )?;
    if let (Some(per_second), Some(_)) = (full.packets_per_second, full.transmission_ns) {
        let Expected { bytes, longest_ns, .. } = full;
        writeln!(f, "  at most   {} packets of {bytes} bytes a second", rounded(per_second))?;
        writeln!(f, "  longest   {} behind a full queue of such packets", span(*longest_ns))?;
    }
    Ok(())
}

/// In microseconds, or exactly where it is shorter.
fn span(nanos: Option<u64>) -> String {
    match nanos {
        None => "never".into(),
        Some(nanos @ 0..1_000_000) => Duration::from_nanos(nanos).to_string(),
        Some(nanos) => Duration::from_nanos(nanos.saturating_add(500) / 1000 * 1000).to_string(),
    }
}

fn rounded(number: f64) -> String {
    if number < 100.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

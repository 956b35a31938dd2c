//! Prints an explanation for people.

mod rules;

use std::fmt;

use narrows_core::Duration;

use super::about::about;
use super::{
    ClassExplanation, DelayExplanation, Expected, Explanation, LinkExplanation, SMALL, SchedulerExplanation,
    percent,
};

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
        if !self.routers.is_empty() {
            writeln!(f, "\nrouters")?;
        }
        for router in &self.routers {
            writeln!(f, "  {router}")?;
        }
        if !self.switches.is_empty() {
            writeln!(f, "\nswitches")?;
        }
        for switch in &self.switches {
            writeln!(f, "  {switch}")?;
        }
        for rules in &self.rules {
            writeln!(f)?;
            rules::print(rules, f)?;
        }
        for path in &self.paths {
            writeln!(f, "\n{} ↔ {}", path.from, path.to)?;
            path.print_ways(f)?;
            let range = |least: u64, most: Option<u64>| match (span(Some(least)), span(most)) {
                (least, most) if most == least => least,
                (least, most) => format!("{least} to {most}"),
            };
            if let (Some(small), Some(full)) = (path.round_trip_small_ns, path.round_trip_full_ns) {
                let small = range(small, path.longest_round_trip_small_ns);
                let full = range(full, path.longest_round_trip_full_ns);
                writeln!(
                    f,
                    "  round trip  {small} for {SMALL} bytes, {full} for {} bytes both ways, without queueing{}",
                    path.full_bytes,
                    beside_classes(
                        self.links.iter().any(|link| link.is_of(&path.links) && link.delays_in_classes())
                    )
                )?;
            } else if path.by_rules {
                writeln!(f, "  round trip  depends on the pipes that the rules choose")?;
            } else if path.is_down {
                writeln!(f, "  round trip  never: a link is down")?;
            } else if path.links.is_empty() {
                writeln!(f, "  round trip  never: no path both ways")?;
            } else {
                writeln!(f, "  round trip  unknown mean")?;
            }
        }
        if self.paths_left_out > 0 {
            writeln!(f, "\nand {} more paths", self.paths_left_out)?;
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
    if link.rate_bps.is_some() {
        writeln!(f, "  counted   {}", link.overhead)?;
    }
    let order = match link.order.as_str() {
        _ if link.exact_netem.is_some() => "packets may be reordered by their delays",
        "keep" => "packets keep their order",
        _ => "packets may overtake",
    };
    match link.delay.as_str() {
        "none" => writeln!(f, "  delay     none")?,
        delay => writeln!(f, "  delay     {delay}; {order}")?,
    }
    if let Some(DelayExplanation { mean_ns, sd_ns, p1_ns, p50_ns, p90_ns, p99_ns, p999_ns }) =
        link.distribution
    {
        let or_infinite = |nanos: Option<u64>| nanos.map_or("infinite".into(), |nanos| span(Some(nanos)));
        let [p1, p50, p90, p99, p999] =
            [p1_ns, p50_ns, p90_ns, p99_ns, p999_ns].map(|nanos| span(Some(nanos)));
        let (mean, sd) = (or_infinite(mean_ns), or_infinite(sd_ns));
        writeln!(
            f,
            "            mean {mean}, sd {sd}; p1 {p1}, p50 {p50}, p90 {p90}, p99 {p99}, p99.9 {p999}"
        )?;
    }
    // Skip what would print as 0.00 %.
    if let Some(share) = link.delayed_to_keep_order.filter(|share| *share >= 0.00005) {
        writeln!(f, "            at most {} of back-to-back packets delayed to keep order", percent(share))?;
    }
    for feed in &link.feeds {
        let which = if link.feeds.len() > 1 { format!("/{}", feed.name) } else { String::new() };
        writeln!(
            f,
            "  feed      {}: narrows feed {name}{which} (or its socket in the run's environment)",
            feed.name
        )?;
    }
    if let Some(trace) = &link.trace {
        writeln!(f, "  trace     {}", trace.words)?;
    }
    let drops = match link.drop.as_deref() {
        None => String::new(),
        Some("heavy flows") => ", drops the oldest packet of heavy flows".into(),
        Some("longest flow") => ", drops from the head of the longest flow".into(),
        Some(place) => format!(", drops at the {place}"),
    };
    writeln!(f, "  queue     {} ({}){drops}", link.queue, link.queue_reason)?;
    if let Some(management) = &link.management {
        writeln!(f, "  managed   {management}")?;
    }
    if let Some(scheduler) = &link.scheduler {
        print_scheduler(scheduler, 0, f)?;
    }
    if let Some(per_flow) = &link.per_flow {
        writeln!(f, "  mask      {per_flow}")?;
    }
    if let Some(shared_by) = &link.shared_by {
        writeln!(f, "  queues    share it by {shared_by}")?;
    }
    for queue in &link.queues {
        rules::print_queue(queue, f)?;
    }
    for impairment in &link.impairments {
        writeln!(f, "  also      {impairment}")?;
    }
    let (small, full) = (&link.small, &link.full);
    writeln!(
        f,
        "  one way   {} for {} bytes, {} for {} bytes{}",
        one_way(small),
        small.bytes,
        one_way(full),
        full.bytes,
        beside_classes(link.delays_in_classes())
    )?;
    if let (Some(per_second), Some(_)) = (full.packets_per_second, full.transmission_ns) {
        let Expected { bytes, max_ns, .. } = full;
        writeln!(f, "  at most   {} packets of {bytes} bytes a second", rounded(per_second))?;
        if max_ns.is_some() {
            writeln!(f, "  longest   {} behind a full queue of such packets", span(*max_ns))?;
        }
    }
    Ok(())
}

fn print_scheduler(
    scheduler: &SchedulerExplanation,
    level: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let SchedulerExplanation { name, words, bound, flows, by, management, classes, drops_rest } = scheduler;
    let margin = "  ".repeat(level);
    write!(f, "  {margin}scheduler {name}: {words}")?;
    match (flows, by, bound) {
        (Some(flows), Some(by), _) => write!(f, "; {flows} flows by {by}")?,
        (_, _, Some(bound)) => write!(f, "; at most {bound} in all")?,
        _ => write!(f, "; bounded per class only")?,
    }
    writeln!(f)?;
    if let Some(management) = management {
        writeln!(f, "            {margin}each flow: {management}")?;
    }
    for class in classes {
        print_class(class, level + class.depth, f)?;
    }
    if *drops_rest {
        writeln!(f, "    {margin}packets of no class are dropped")?;
    }
    Ok(())
}

fn print_class(class: &ClassExplanation, level: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let ClassExplanation { weight, weights, rate_bps, longest_bytes, drop, management, .. } = class;
    let margin = "  ".repeat(level);
    let matches = if class.inner { "the classes below it" } else { &class.matches };
    writeln!(f, "    {margin}{}: {matches}", class.name)?;
    let mut parts = Vec::new();
    let by_weight = weight.zip(*weights).map(|(of, all)| ("weight", u64::from(of), all, ""));
    let by_quantum =
        class.quantum_bytes.zip(class.quanta_bytes).map(|(of, all)| ("quantum", of, all, " bytes"));
    if let Some((what, of, all, unit)) = by_quantum.or(by_weight) {
        let percent = of as f64 / all as f64 * 100.0;
        let rate = rate_bps.map_or(String::new(), |rate| format!(", {}", about(rate as f64)));
        parts.push(format!("{what} {of} of {all}{unit}: {} %{rate}", rounded(percent)));
    }
    parts.extend(class.shaped.clone());
    if let Some(longest) = longest_bytes {
        parts.push(format!("packets up to {longest} bytes"));
    }
    let drops = drop.as_ref().map_or(String::new(), |place| format!(", drops at the {place}"));
    match (&class.netem, &class.delay, &class.scheduler) {
        _ if class.inner => {}
        (Some(netem), _, _) => parts.push(format!("netem {netem}")),
        (_, Some(delay), _) => parts.push(format!("delay line: {delay}")),
        (_, _, Some(inner)) => parts.push(format!("in `{}`, below", inner.name)),
        _ => parts.push(format!("queue {}{drops}", class.bound)),
    }
    writeln!(f, "      {margin}{}", parts.join("; "))?;
    if let Some(inner) = &class.scheduler {
        return print_scheduler(inner, level + 2, f);
    }
    let has_queue = class.netem.is_none() && class.delay.is_none();
    for line in [&class.parameters, &management.clone().filter(|_| has_queue)].into_iter().flatten() {
        writeln!(f, "      {margin}{line}")?;
    }
    Ok(())
}

/// Which packets a delay in a class concerns is not looked at here.
fn beside_classes(has_delays: bool) -> &'static str {
    if has_delays { ", and the delays in classes" } else { "" }
}

impl LinkExplanation {
    /// Whether it is one of these links of the file, or a direction of one.
    fn is_of(&self, links: &[String]) -> bool {
        let rest = |link: &String| self.name.strip_prefix(link.as_str());
        links.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Whether classes of its scheduler delay packets.
    fn delays_in_classes(&self) -> bool {
        self.scheduler.as_ref().is_some_and(SchedulerExplanation::delays)
    }
}

impl SchedulerExplanation {
    fn delays(&self) -> bool {
        let inside = |class: &ClassExplanation| class.scheduler.as_ref().is_some_and(|inner| inner.delays());
        self.classes.iter().any(|class| class.netem.is_some() || class.delay.is_some() || inside(class))
    }
}

/// "Never" for a link that is down. Otherwise a delay without a mean comes from a feed, or is infinite.
fn one_way(expected: &Expected) -> String {
    match (expected.one_way_ns, expected.transmission_ns) {
        (None, Some(_)) => "unknown mean".into(),
        (nanos, _) => span(nanos),
    }
}

/// In microseconds, or exactly if shorter.
pub(super) fn span(nanos: Option<u64>) -> String {
    match nanos {
        None => "never".into(),
        Some(u64::MAX) => "more than 584 years".into(),
        Some(nanos @ 0..1_000_000) => Duration::from_nanos(nanos).to_string(),
        Some(nanos) => Duration::from_nanos(nanos.saturating_add(500) / 1000 * 1000).to_string(),
    }
}

fn rounded(number: f64) -> String {
    if number < 100.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

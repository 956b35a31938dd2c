//! The results as text for people.

use std::fmt;

use crate::numbers::{micros, thousands};
use crate::{Calibration, Load, Sender, Spread};

/// Mean, p50, interquartile range, p99, max.
struct Row<'a>(&'a Spread);

impl fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = [
            self.0.mean(),
            self.0.median(),
            self.0.quartile_range(),
            self.0.percentile(99),
            self.0.percentile(100),
        ];
        for value in values {
            write!(f, " {:>9}", micros(value))?;
        }
        Ok(())
    }
}

const HEAD: &str = "     mean       p50   p25–p75       p99       max";

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(floor) = &self.floor {
            writeln!(f, "The host's floor{:34}{HEAD}", "")?;
            writeln!(f, "{:<50}{}", "  looking at the clock without pause, late by", Row(&floor.spin))?;
            writeln!(f, "{:<50}{}", "  a timer, late by", Row(&floor.timer))?;
            let send = micros(floor.send_ns);
            writeln!(f, "  the kernel takes {send} to carry a frame from one host to another")?;
        }
        self.one_ways(f)?;
        self.rest(f)?;
        writeln!(f, "\n{}", self.verdict)
    }
}

impl Calibration {
    fn one_ways(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.accuracy.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nOne-way times beyond the delay asked for{:10}{HEAD}  KS      Wasserstein", "")?;
        for row in &self.accuracy {
            let rate = thousands(row.asked_per_second);
            let what = format!("  {:<10} {:<24} {rate:>7}/s", row.path.to_string(), row.setting.to_string());
            write!(f, "{what:<50}{}", Row(&row.error))?;
            if let (Some(ks), Some(wasserstein)) = (row.kolmogorov_smirnov, row.wasserstein_ns) {
                write!(f, "  {ks:.4}  {:>9}", micros(wasserstein))?;
            }
            if !row.is_sustained() {
                let offered = thousands(row.offered_per_second as u32);
                write!(f, "  not kept up: {offered}/s, {} of {} lost", row.lost, row.sent)?;
            }
            writeln!(f)?;
        }
        for path in &self.lacking {
            writeln!(f, "  {:<10} this kernel has no sch_{path}", path.to_string())?;
        }
        writeln!(
            f,
            "\nLate by the emulator's own measure, after the call that sends{:22}   p50       p99       max",
            ""
        )?;
        for row in &self.accuracy {
            let Some(late) = row.late else { continue };
            let rate = thousands(row.asked_per_second);
            let what = format!("  {:<10} {:<24} {rate:>7}/s", row.path.to_string(), row.setting.to_string());
            let [median, p99, max] = [late.p50_ns, late.p99_ns, late.max_ns].map(micros);
            writeln!(f, "{what:<50}                             {median:>9} {p99:>9} {max:>9}")?;
        }
        Ok(())
    }

    fn rest(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.round_trips.is_empty() {
            writeln!(f, "\nRound trips without a delay{:23}{HEAD}", "")?;
        }
        for load in Load::ALL {
            for row in self.round_trips.iter().filter(|row| row.load == load) {
                let links = match row.links {
                    0 => "cable alone".into(),
                    1 => "1 link".into(),
                    more => format!("{more} links in series"),
                };
                let what = format!("  {:<12} {links}", load.name());
                writeln!(f, "{what:<50}{}", Row(&row.times))?;
            }
        }
        if !self.timers.is_empty() {
            writeln!(f, "\nA delay of 10 ms, late by{:25}{HEAD}", "")?;
        }
        for row in &self.timers {
            let sender = match row.sender {
                Sender::Every(gap) => format!("a packet every {:.2} ms", gap as f64 / 1e6),
                Sender::Flood => "each as the last has come".into(),
            };
            let what = format!("  {:<8} {sender}", row.wait);
            writeln!(f, "{what:<50}{}", Row(&row.error))?;
        }
        if !self.together.is_empty() {
            writeln!(f, "\nLinks whose packets fall due together, first to last{:1}{HEAD}   (N−1)·L/B", "")?;
        }
        for row in &self.together {
            let what = format!("  {} {}", row.links, if row.links == 1 { "link" } else { "links" });
            writeln!(f, "{what:<53}{}  {:>10}", Row(&row.apart), micros(row.expected_ns))?;
        }
        Ok(())
    }
}

//! Results of applications' transactions.

use std::fmt::{self, Formatter};

use narrows_core::Duration;
use serde::{Deserialize, Serialize};

use crate::figures::{Quantiles, Spread, quantiles};
use crate::human::{bytes, count, percent, rate, span};
use crate::info::Word;

/// Counts the transactions of an application during a run.
#[derive(Clone, Debug)]
pub struct AppMeter {
    /// Transactions that began.
    pub begun: u64,
    /// Transactions that were reset by the other end.
    pub failed_reset: u64,
    /// Transactions that timed out.
    pub failed_timeout: u64,
    /// Transactions that did not start because the maximum number was already open.
    pub refused: u64,
    /// Application data that arrived at the server, in bytes.
    pub up_bytes: u64,
    /// Application data that arrived at the client, in bytes.
    pub down_bytes: u64,
    /// Packets sent by both ends.
    pub sent_packets: u64,
    /// UDP packets that arrived complete.
    pub arrived_packets: u64,
    /// Retransmitted segments: all of their data had been sent before.
    pub retransmitted: u64,
    /// Call messages sent.
    pub messages_sent: u64,
    time: Spread,
    messages: Option<Box<Spread>>,
}

impl Default for AppMeter {
    fn default() -> Self {
        Self {
            begun: 0,
            failed_reset: 0,
            failed_timeout: 0,
            refused: 0,
            up_bytes: 0,
            down_bytes: 0,
            sent_packets: 0,
            arrived_packets: 0,
            retransmitted: 0,
            messages_sent: 0,
            time: Spread::new(),
            messages: None,
        }
    }
}

impl AppMeter {
    /// A transaction succeeded; it took this long.
    pub fn succeeded(&mut self, after: Duration) {
        self.time.record(after);
    }

    /// A call message arrived with this delay.
    pub fn message(&mut self, delay: Duration) {
        self.messages.get_or_insert_with(|| Box::new(Spread::new())).record(delay);
    }

    /// The report after a run of this length.
    pub fn report(&self, info: &ApplicationInfo, length: Duration) -> ApplicationReport {
        let ApplicationInfo { name, kind, transport, from, to, dscp } = info.clone();
        let succeeded = self.time.count();
        let failed = self.failed_reset + self.failed_timeout;
        let ended = succeeded + failed;
        let per_second = |bytes: u64| {
            (length > Duration::ZERO).then(|| (bytes as f64 * 8.0 / length.seconds() + 0.5) as u64)
        };
        let is_tcp = transport == "tcp";
        let messages = (self.messages_sent > 0).then(|| MessagesReport {
            sent: self.messages_sent,
            arrived: self.messages.as_ref().map_or(0, |all| all.count()),
            delay: self.messages.as_deref().map(quantiles).unwrap_or_default(),
        });
        ApplicationReport {
            name,
            kind: kind.into(),
            transport: transport.into(),
            from,
            to,
            dscp,
            begun: self.begun,
            succeeded,
            failed_reset: self.failed_reset,
            failed_timeout: self.failed_timeout,
            refused: self.refused,
            abandoned: self.begun.saturating_sub(ended),
            success_share: (ended > 0).then(|| succeeded as f64 / ended as f64),
            time: (succeeded > 0).then(|| quantiles(&self.time)),
            up_bytes: self.up_bytes,
            down_bytes: self.down_bytes,
            up_bps: per_second(self.up_bytes),
            down_bps: per_second(self.down_bytes),
            sent_packets: self.sent_packets,
            lost_packets: (!is_tcp).then(|| self.sent_packets.saturating_sub(self.arrived_packets)),
            retransmitted_segments: is_tcp.then_some(self.retransmitted),
            messages,
        }
    }
}

/// The description of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationInfo {
    /// The name of the source of traffic.
    pub name: String,
    /// Its kind: `web`, `file`, `voip`, `dns`, `telnet`.
    pub kind: &'static str,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    /// The port of the clients.
    pub from: String,
    /// The port of the servers.
    pub to: String,
    /// The DSCP of its packets.
    pub dscp: u8,
}

/// The results of an application's transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApplicationReport {
    /// The name of the source of traffic.
    pub name: String,
    /// Its kind: `web`, `file`, `voip`, `dns`, `telnet`.
    pub kind: Word,
    /// `tcp` or `udp`.
    pub transport: Word,
    /// The port of the clients.
    pub from: String,
    /// The port of the servers.
    pub to: String,
    /// The DSCP of its packets.
    pub dscp: u8,
    /// Transactions that began.
    pub begun: u64,
    /// Transactions that succeeded.
    pub succeeded: u64,
    /// Transactions that were reset by the other end.
    pub failed_reset: u64,
    /// Transactions that timed out.
    pub failed_timeout: u64,
    /// Transactions that did not start because the maximum number was already open.
    pub refused: u64,
    /// Transactions that were open when the run ended.
    pub abandoned: u64,
    /// The share of ended transactions that succeeded; `None` if none ended.
    pub success_share: Option<f64>,
    /// The duration of successful transactions (`packets` is their number); for calls, the set-up time.
    pub time: Option<Quantiles>,
    /// Application data that arrived at the server, in bytes.
    pub up_bytes: u64,
    /// Application data that arrived at the client, in bytes.
    pub down_bytes: u64,
    /// Application data to the server in bits per second, over the whole run.
    pub up_bps: Option<u64>,
    /// Application data to the client in bits per second, over the whole run.
    pub down_bps: Option<u64>,
    /// Packets sent by both ends.
    pub sent_packets: u64,
    /// Packets that had not arrived complete when the run ended; `None` for TCP.
    pub lost_packets: Option<u64>,
    /// Retransmitted segments: all of their data had been sent before. `None` for UDP.
    pub retransmitted_segments: Option<u64>,
    /// The messages of calls.
    pub messages: Option<MessagesReport>,
}

/// The messages of calls, both directions together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesReport {
    /// Messages sent, or written to the connection.
    pub sent: u64,
    /// Messages that had arrived completely by the end of the run.
    pub arrived: u64,
    /// From sending, or writing to the connection, to complete arrival (`packets` is their number).
    pub delay: Quantiles,
}

/// A table of all applications.
pub(crate) fn print(all: &[ApplicationReport], most_rows: usize, f: &mut Formatter<'_>) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    let width = all.iter().map(|app| label(app).chars().count()).max().unwrap_or(0).max(16) + 2;
    writeln!(
        f,
        "\n{:<width$}{:>9}{:>11}{:>9}{:>9}{:>9}{:>11}{:>11}",
        "transactions", "started", "succeeded", "share", "timeout", "reset", "abandoned", "refused"
    )?;
    for app in all.iter().take(most_rows) {
        let share = app.success_share.map_or("-".into(), percent);
        write!(
            f,
            "  {:<w$}{:>9}{:>11}{share:>9}",
            label(app),
            count(app.begun),
            count(app.succeeded),
            w = width - 2
        )?;
        write!(f, "{:>9}{:>9}", count(app.failed_timeout), count(app.failed_reset))?;
        writeln!(f, "{:>11}{:>11}", count(app.abandoned), count(app.refused))?;
    }
    if all.len() > most_rows {
        writeln!(f, "  {} more applications", all.len() - most_rows)?;
    }
    let has_times = |app: &ApplicationReport| app.time.is_some() || app.messages.is_some();
    if all.iter().any(has_times) {
        writeln!(
            f,
            "{:<width$}{:>10}{:>10}{:>10}{:>10}{:>10}",
            "time of success", "mean", "p50", "p90", "p99", "max"
        )?;
        for app in all.iter().take(most_rows) {
            let what = if app.messages.is_some() { ", set-up" } else { "" };
            if let Some(time) = &app.time {
                times(&format!("{}{what}", app.name), width, time, f)?;
            }
            if let Some(messages) = app.messages.filter(|messages| messages.arrived > 0) {
                times(&format!("{}, message", app.name), width, &messages.delay, f)?;
            }
        }
    }
    writeln!(
        f,
        "{:<width$}{:>24}{:>25}{:>10}",
        "application data", "to the server", "to the client", "packets"
    )?;
    for app in all.iter().take(most_rows) {
        let data = |number, bps: Option<u64>| (bytes(number), bps.map_or("-".into(), rate));
        let ((up, up_bps), (down, down_bps)) =
            (data(app.up_bytes, app.up_bps), data(app.down_bytes, app.down_bps));
        write!(f, "  {:<w$}{up:>11}{up_bps:>13}{down:>12}{down_bps:>13}", label(app), w = width - 2)?;
        write!(f, "{:>10}", count(app.sent_packets))?;
        let part = |number: u64| percent(number as f64 / app.sent_packets.max(1) as f64);
        match (app.retransmitted_segments, app.lost_packets) {
            (Some(again @ 1..), _) => writeln!(f, ", {} resent", part(again))?,
            (_, Some(lost @ 1..)) => writeln!(f, ", {} lost", part(lost))?,
            _ => writeln!(f)?,
        }
    }
    Ok(())
}

fn times(label: &str, width: usize, time: &Quantiles, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "  {label:<w$}", w = width - 2)?;
    for nanos in [time.mean_ns, time.p50_ns, time.p90_ns, time.p99_ns, time.max_ns] {
        write!(f, "{:>10}", span(nanos))?;
    }
    writeln!(f)
}

fn label(app: &ApplicationReport) -> String {
    format!("{} ({})", app.name, app.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Table<'a>(&'a [ApplicationReport]);

    impl fmt::Display for Table<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            print(self.0, 24, f)
        }
    }

    fn info(name: &str, kind: &'static str, transport: &'static str) -> ApplicationInfo {
        let (from, to) = ("client.l".into(), "server.l".into());
        ApplicationInfo { name: name.into(), kind, transport, from, to, dscp: 46 }
    }

    #[test]
    fn what_ended_and_what_did_not() {
        let mut meter =
            AppMeter { begun: 10, failed_timeout: 1, failed_reset: 1, refused: 4, ..AppMeter::default() };
        (1..=6).for_each(|second| meter.succeeded(Duration::from_secs(second)));
        (meter.sent_packets, meter.retransmitted, meter.down_bytes) = (200, 5, 1_000_000);
        let web = meter.report(&info("www", "web", "tcp"), Duration::from_secs(8));
        assert_eq!((web.succeeded, web.abandoned, web.success_share), (6, 2, Some(0.75)));
        assert_eq!((web.up_bps, web.down_bps), (Some(0), Some(1_000_000)));
        assert_eq!((web.retransmitted_segments, web.lost_packets), (Some(5), None));
        assert_eq!(web.time.map(|time| (time.packets, time.mean_ns)), Some((6, 3_500_000_000)));
        // A run that ended before anything did.
        let none = AppMeter::default().report(&info("none", "dns", "udp"), Duration::ZERO);
        assert_eq!((none.success_share, none.time, none.down_bps), (None, None, None));
        let mut calls =
            AppMeter { messages_sent: 3, sent_packets: 3, arrived_packets: 2, ..AppMeter::default() };
        (1..=2).for_each(|milli| calls.message(Duration::from_millis(milli)));
        let calls = calls.report(&info("voice", "voip", "udp"), Duration::from_secs(1));
        assert_eq!(calls.lost_packets, Some(1));
        assert_eq!(
            calls.messages.map(|all| (all.sent, all.arrived, all.delay.mean_ns)),
            Some((3, 2, 1_500_000))
        );
        let text = Table(&[none, calls, web]).to_string();
        let expected = "
transactions        started  succeeded    share  timeout    reset  abandoned    refused
  none (dns)              0          0        -        0        0          0          0
  voice (voip)            0          0        -        0        0          0          0
  www (web)              10          6  75.00 %        1        1          2          4
time of success         mean       p50       p90       p99       max
  voice, message    1.500 ms  1.000 ms  2.000 ms  2.000 ms  2.000 ms
  www                3.500 s   3.000 s   6.000 s   6.000 s   6.000 s
application data             to the server            to the client   packets
  none (dns)              0 B            -         0 B            -         0
  voice (voip)            0 B      0 bit/s         0 B      0 bit/s         3, 33.33 % lost
  www (web)               0 B      0 bit/s    1.000 MB 1.000 Mbit/s       200, 2.50 % resent
";
        assert_eq!(text, expected, "{text}");
    }
}

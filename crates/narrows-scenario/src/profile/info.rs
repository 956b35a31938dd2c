//! Statistics of a profile.

use std::fmt;

use narrows_core::{Duration, Probability, Rate};
use serde::Serialize;

use super::Profile;

/// Statistics of a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileInfo {
    /// Name, if given.
    pub name: Option<String>,
    /// Rate in bits per second, if given.
    pub rate_bps: Option<u64>,
    /// Number of points of the polyline.
    pub points: usize,
    /// Number of probabilities at which the polyline is sampled.
    pub samples: usize,
    /// Minimum extra air time in nanoseconds.
    pub min_ns: u64,
    /// Mean extra air time over all packets, in nanoseconds.
    pub mean_ns: f64,
    /// Maximum extra air time in nanoseconds.
    pub max_ns: u64,
    /// Packets with a probability at or above this are lost.
    pub loss_level: f64,
    /// Share of packets lost, after their air time.
    pub loss: f64,
    /// Capacity of a backlogged link with the profile's rate, if the profile has a rate.
    pub throughput: Vec<ProfileThroughput>,
    /// Assumptions made.
    pub remarks: Vec<String>,
}

/// Capacity of a backlogged link for packets of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProfileThroughput {
    /// Packet length in bytes, as the link counts it.
    pub bytes: u32,
    /// Mean time on the link in nanoseconds.
    pub each_ns: f64,
    /// Packets per second, without lost ones.
    pub packets_per_second: f64,
    /// Rate of these packets in bits per second.
    pub rate_bps: f64,
}

impl Profile {
    /// Statistics of the profile.
    pub fn info(&self) -> ProfileInfo {
        let times = self.air_time.times();
        ProfileInfo {
            name: self.name.clone(),
            rate_bps: self.rate.map(Rate::bits_per_second),
            points: self.points.len(),
            samples: times.len(),
            min_ns: self.air_time.shortest().nanos(),
            mean_ns: self.mean_seconds() * 1e9,
            max_ns: self.air_time.longest().nanos(),
            loss_level: self.loss_level.as_f64(),
            loss: self.loss(),
            throughput: [64, 576, 1500].into_iter().filter_map(|bytes| self.throughput(bytes)).collect(),
            remarks: self.remarks.clone(),
        }
    }

    /// A warning, if packets occupy a link with this rate for orders of magnitude longer than their bits.
    pub(crate) fn slows(&self, rate: Rate) -> Option<String> {
        const MUCH: f64 = 100.0;
        let bits = 1500.0 * 8.0 / rate.bits_per_second() as f64;
        let times = (self.mean_seconds() + bits) / bits;
        let millis = |seconds: f64| Duration::from_nanos((seconds * 1e9 + 0.5) as u64);
        (rate.bits_per_second() > 0 && times.is_finite() && times >= MUCH).then(|| {
            format!(
                "a packet of 1500 bytes takes {} at {rate}, and with its air time {} on average, {times:.0} times as long: are the times of the profile in another unit than ms?",
                millis(bits),
                millis(self.mean_seconds() + bits)
            )
        })
    }

    /// Capacity of a backlogged link with the profile's rate for packets of this length, as the link counts
    /// it; `None` if the profile has no rate.
    pub fn throughput(&self, bytes: u32) -> Option<ProfileThroughput> {
        let bits = f64::from(bytes) * 8.0;
        let each = self.mean_seconds() + bits / self.rate?.bits_per_second() as f64;
        let packets_per_second = (1.0 - self.loss()) / each;
        Some(ProfileThroughput {
            bytes,
            each_ns: each * 1e9,
            packets_per_second,
            rate_bps: packets_per_second * bits,
        })
    }
}

impl fmt::Display for ProfileInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |nanos: f64| Duration::from_nanos((nanos + 0.5) as u64);
        if let Some(name) = &self.name {
            writeln!(f, "name        {name}")?;
        }
        match self.rate_bps {
            Some(rate) => writeln!(f, "rate        {}", Rate::from_bits_per_second(rate))?,
            None => writeln!(f, "rate        not given: the link's")?,
        }
        let (least, mean, longest) = (time(self.min_ns as f64), time(self.mean_ns), time(self.max_ns as f64));
        if least == longest {
            writeln!(f, "air time    {least} extra for each packet")?;
        } else {
            writeln!(f, "air time    {least} to {longest} extra per packet, {mean} on average")?;
        }
        writeln!(f, "curve       {} points, looked up at {} probabilities", self.points, self.samples)?;
        match self.loss {
            0.0 => writeln!(f, "loss        none")?,
            loss => {
                let level = Probability::nearest(self.loss_level).as_f64();
                writeln!(
                    f,
                    "loss        {:.4} % of packets, after their air time (from {level} on)",
                    loss * 100.0
                )?;
            }
        }
        for ProfileThroughput { bytes, each_ns, packets_per_second, rate_bps } in &self.throughput {
            let each = time(*each_ns);
            writeln!(
                f,
                "{bytes:>5} bytes {each} each: at most {packets_per_second:.1} a second, {:.3} Mbit/s",
                rate_bps / 1e6
            )?;
        }
        for remark in &self.remarks {
            writeln!(f, "note        {remark}")?;
        }
        Ok(())
    }
}

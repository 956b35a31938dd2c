//! Plots a profile: its distribution function, and the throughput that remains.

use narrows_core::{Duration, Probability, Rate};
use narrows_lab::plot::{Axis, Figure, Line, Panel, Style};
use narrows_scenario::Profile;

/// Packet lengths for the throughput plot.
const LENGTHS: std::ops::RangeInclusive<u32> = 20..=1500;

/// Maximum number of samples plotted as dots.
const DOTS: usize = 64;

pub(super) fn figure(name: &str, profile: &Profile) -> Figure {
    let info = profile.info();
    let air_time = profile.air_time();
    let (least, mean, longest) = (air_time.shortest(), rounded(info.mean_ns), air_time.longest());
    let subtitle = match (least == longest, profile.loss()) {
        (true, 0.0) => format!("{least} for each packet; none is lost"),
        (false, 0.0) => format!("{least} to {longest}, {mean} on average; none is lost"),
        (_, loss) => {
            format!("{least} to {longest}, {mean} on average; {:.2} % of packets are lost", loss * 100.0)
        }
    };
    let mut panels = vec![distribution(profile)];
    panels.extend(profile.rate().map(|rate| throughput(profile, rate)));
    Figure { title: name.into(), subtitle, columns: 1, panels }
}

fn rounded(nanos: f64) -> Duration {
    Duration::from_nanos((nanos + 0.5) as u64)
}

fn distribution(profile: &Profile) -> Panel {
    let place = |(probability, time): &(Probability, Duration)| (time.seconds(), probability.as_f64());
    let corners = profile.points();
    let (first, last) = (place(&corners[0]), place(&corners[corners.len() - 1]));
    // The first and the last point's times apply below and above them.
    let ends = [(first.0, 0.0), (last.0, 1.0)];
    let curve = [ends[0]].into_iter().chain(corners.iter().map(place)).chain([ends[1]]).collect();
    let mut lines = vec![Line::new("cumulative share of packets", 0, curve)];
    let air_time = profile.air_time();
    let times = air_time.times();
    // A constant time is a line in the middle of the axis.
    let end = if first.0 < last.0 { 1.05 * last.0 } else { (2.0 * last.0).max(1e-9) };
    if times.len() <= DOTS {
        let dots = times.iter().enumerate();
        let dots = dots.map(|(index, time)| (time.seconds(), index as f64 / times.len() as f64)).collect();
        lines.push(Line::new("what is drawn, each as often", 1, dots).styled(Style::Points));
    }
    let level = profile.loss_level().as_f64();
    if air_time.lost() > 0 {
        let line = vec![(0.0, level), (end, level)];
        lines.push(Line::new("from here on lost after that time", 2, line).styled(Style::Dashed));
    }
    Panel {
        title: "extra air time per packet".into(),
        x: Axis::linear("extra air time", "s").within(0.0, end),
        y: Axis::linear("probability", "").within(0.0, 1.0),
        lines,
    }
}

fn throughput(profile: &Profile, rate: Rate) -> Panel {
    let bits = rate.bits_per_second() as f64;
    let carried =
        LENGTHS.step_by(10).filter_map(|bytes| Some((f64::from(bytes), profile.throughput(bytes)?.rate_bps)));
    let whole = vec![(0.0, bits), (f64::from(*LENGTHS.end()), bits)];
    Panel {
        title: "effective rate under constant load".into(),
        x: Axis::linear("packet length", "B").within(0.0, f64::from(*LENGTHS.end())),
        y: Axis::linear("throughput", "bit/s").covering(0.0, 0.0),
        lines: vec![
            Line::new("throughput", 0, carried.collect()),
            Line::new(format!("rate, {rate}"), 6, whole).styled(Style::Dotted),
        ],
    }
}

//! Describes applications in words, for `check`.

use narrows_core::source::{Pace, Period, Sizes};
use narrows_core::{Duration, Time};

use super::about::about;
use crate::traffic::{AppConfig, Call, Demand, Dialogue, Exchanges, Query, Transfer};

/// What the application does, and its offered load.
pub(super) fn sentence(config: &AppConfig) -> String {
    let mut what = dialogue(&config.dialogue);
    what += &match config.demand {
        Demand::Open { poisson, pace } => {
            let how = if poisson { "at random (Poisson), " } else { "evenly, " };
            let fast = match pace {
                Pace::Packets { count, per } => format!("{count} every {per}"),
                Pace::Bits(rate) => format!("{rate} of application data"),
            };
            let a_second = config.transactions_a_second().unwrap_or_default();
            let load = match (pace, config.offered()) {
                (Pace::Packets { .. }, Some(rate)) => {
                    format!(", about {} of application data", about(rate.bits_per_second() as f64))
                }
                _ => format!(", about {a_second:.3} transactions a second"),
            };
            format!("; {how}{fast}{load}, at most {} at once", config.parallel)
        }
        Demand::Users { users: 1, think } => format!("; one after the other{}", pause(think)),
        Demand::Users { users, think } => {
            format!("; by {users} users, each one after the other{}", pause(think))
        }
    };
    if let Some(number) = config.transactions {
        what += &format!(", {number} in all");
    }
    if config.start > Time::ZERO {
        what += &format!(", from {}", config.start);
    }
    if config.stop < Time::NEVER {
        what += &format!(", none begins from {} on", config.stop);
    }
    if let Some(patience) = config.patience {
        what += &format!(", given up after {patience}");
    }
    if let Some(tcp) = &config.tcp {
        what += &format!("; TCP ({}, window up to {})", tcp.congestion.name(), tcp.buffer);
    }
    what
}

fn dialogue(dialogue: &Dialogue) -> String {
    match dialogue {
        Dialogue::Exchanges(Exchanges { count: 1, request, response, .. }) => {
            format!("requests of {} and responses of {}", sizes(request), sizes(response))
        }
        Dialogue::Exchanges(Exchanges { count, request, response, .. }) => {
            format!(
                "{count} requests of {} and responses of {} on a connection",
                sizes(request),
                sizes(response)
            )
        }
        Dialogue::Transfer(Transfer { size, put }) => {
            let size = size.as_ref().map_or("no end".into(), sizes);
            format!("files of {size} to the {}", if *put { "server" } else { "client" })
        }
        Dialogue::Query(Query { request, response, timeout, tries, .. }) => format!(
            "questions of {request} bytes and answers of {response} bytes in UDP, asked {tries} times, {timeout} apart"
        ),
        Dialogue::Call(Call { duration, payload, interval, spurts, one_way }) => {
            let ways = if *one_way { "" } else { " both ways" };
            let talk = if spurts.is_some() { " while somebody talks" } else { "" };
            format!("calls of {}, {payload} bytes every {interval}{ways}{talk}", length(*duration))
        }
    }
}

fn sizes(sizes: &Sizes) -> String {
    match sizes {
        Sizes::Fixed(size) => format!("{size}"),
        Sizes::Exponential(mean) => format!("{mean} on average (exponential)"),
        Sizes::Pareto { mean, shape, most: None } => format!("{mean} on average (Pareto, shape {shape})"),
        Sizes::Pareto { mean, shape, most: Some(most) } => {
            format!("{mean} on average (Pareto, shape {shape}, cut at {most})")
        }
        Sizes::Mix(mix) => format!("{} sizes mixed", mix.len()),
    }
}

fn length(period: Period) -> String {
    match period {
        Period::Fixed(length) => format!("{length}"),
        Period::Exponential(mean) => format!("{mean} on average (exponential)"),
        Period::Pareto { mean, shape } => format!("{mean} on average (Pareto, shape {shape})"),
    }
}

fn pause(think: Period) -> String {
    match think {
        Period::Fixed(Duration::ZERO) => String::new(),
        think => format!(" after {}", length(think)),
    }
}

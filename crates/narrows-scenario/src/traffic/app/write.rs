//! Applications as they stand in a file.

use narrows_core::source::{Pace, Period, Sizes};
use narrows_core::{Bytes, Duration};

use super::{AppConfig, AppKind, Call, Demand, Dialogue, Exchanges, Query, TcpConfig, Transfer};
use crate::write::{pace, period};

/// The table under the application's key.
pub(crate) fn table(config: &AppConfig) -> String {
    let mut all: Vec<String> = Vec::new();
    match config.demand {
        Demand::Open { poisson, pace: how_fast } => {
            let key = if matches!(how_fast, Pace::Bits(_)) { "load" } else { "pace" };
            all.push(format!("{key} = {}", pace(how_fast)));
            if !poisson {
                all.push("arrivals = \"constant\"".into());
            }
            all.push(format!("parallel = {}", config.parallel));
        }
        Demand::Users { users, think } => {
            all.push(format!("users = {users}"));
            if think != Period::Fixed(Duration::ZERO) {
                all.push(format!("think = {}", period(think)));
            }
        }
    }
    all.extend(config.transactions.map(|number| format!("transactions = {number}")));
    match &config.dialogue {
        Dialogue::Exchanges(exchanges) => all.extend(self::exchanges(config.kind, exchanges)),
        Dialogue::Transfer(Transfer { size, put }) => {
            let size = size.as_ref().map_or("\"endless\"".into(), sizes);
            all.push(format!("size = {size}, put = {put}"));
        }
        Dialogue::Query(Query { request, response, timeout, tries, service }) => {
            all.push(format!("request = \"{}\", response = \"{}\"", bytes(*request), bytes(*response)));
            all.push(format!("timeout = \"{timeout}\", tries = {tries}, service = {}", period(*service)));
        }
        Dialogue::Call(Call { duration, payload, interval, spurts, one_way }) => {
            all.push(format!("duration = {}", period(*duration)));
            all.push(format!("payload = \"{}\", interval = \"{interval}\"", bytes(*payload)));
            all.extend(
                spurts
                    .map(|(talk, silence)| format!("talk = {}, silence = {}", period(talk), period(silence))),
            );
            all.push(format!("one-way = {one_way}"));
        }
    }
    if config.kind != AppKind::Dns {
        all.push(format!("patience = {}", or_none(config.patience)));
    }
    all.extend(config.tcp.as_ref().map(|tcp| format!("tcp = {}", self::tcp(tcp))));
    format!("{{ {} }}", all.join(", "))
}

fn exchanges(kind: AppKind, exchanges: &Exchanges) -> Vec<String> {
    let Exchanges { count, request, response, pause, service } = exchanges;
    let (request, response, pause) = (sizes(request), sizes(response), period(*pause));
    let mut all = vec![format!("request = {request}, response = {response}, pause = {pause}")];
    all.extend(match kind {
        AppKind::Telnet => vec![format!("exchanges = {count}")],
        _ => vec![format!("requests = {count}, service = {}", period(*service))],
    });
    all
}

fn tcp(tcp: &TcpConfig) -> String {
    let TcpConfig { congestion, mtu, buffer, delayed_ack, nagle } = tcp;
    let (congestion, delayed_ack) = (congestion.name(), or_none(*delayed_ack));
    format!(
        "{{ congestion = \"{congestion}\", mtu = {mtu}, buffer = \"{buffer}\", delayed-ack = {delayed_ack}, \
         nagle = {nagle} }}"
    )
}

fn or_none(time: Option<Duration>) -> String {
    time.map_or("\"none\"".into(), |time| format!("\"{time}\""))
}

fn bytes(number: u16) -> Bytes {
    Bytes::new(number.into())
}

fn sizes(sizes: &Sizes) -> String {
    match sizes {
        Sizes::Fixed(size) => format!("\"{size}\""),
        Sizes::Exponential(mean) => format!("{{ exponential = \"{mean}\" }}"),
        Sizes::Pareto { mean, shape, most } => {
            let most = most.map_or(String::new(), |most| format!(", most = \"{most}\""));
            format!("{{ pareto = {{ mean = \"{mean}\", shape = {shape:?}{most} }} }}")
        }
        Sizes::Mix(mix) => {
            let item = |(size, weight): &(Bytes, u64)| format!("{{ size = \"{size}\", weight = {weight} }}");
            format!("{{ mix = [{}] }}", mix.iter().map(item).collect::<Vec<_>>().join(", "))
        }
    }
}

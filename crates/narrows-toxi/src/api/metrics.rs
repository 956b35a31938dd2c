//! `/metrics`: Toxiproxy's counters of proxies, as text for Prometheus.

use std::fmt::Write;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Proxies;
use crate::registry::Registry;
use crate::stream::Way;

/// The content type of this text.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The counters: their names, and their places in what a proxy counts.
const COUNTERS: [(&str, usize); 2] =
    [("toxiproxy_proxy_received_bytes_total", 0), ("toxiproxy_proxy_sent_bytes_total", 1)];

pub(super) async fn metrics(State(proxies): State<Proxies>) -> Response {
    let text = exposition(&*proxies.lock().await);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

fn exposition(proxies: &Registry) -> String {
    let mut text = String::new();
    for (counter, place) in COUNTERS {
        let _ = writeln!(text, "# HELP {counter} \n# TYPE {counter} counter");
        for (name, proxy) in proxies.proxies() {
            for way in Way::BOTH {
                let labels = [
                    ("direction", way.name()),
                    ("listener", &proxy.listen),
                    ("proxy", name),
                    ("upstream", &proxy.upstream),
                ];
                let labels = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
                let value = proxy.counts.read(way)[place];
                let _ = writeln!(text, "{counter}{{{}}} {value}", labels.join(","));
            }
        }
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

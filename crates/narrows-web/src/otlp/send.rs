//! One attempt to send.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use narrows_scenario::printable;
use serde_json::Value;
use tokio::net::TcpStream;

use super::{Collector, PORT};

/// The longest answer that is read, and how much of it is shown.
const MOST_BYTES: usize = 1 << 16;
const SHOWN: usize = 200;

/// Why an export was not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It may be accepted later, after the time that the collector asks for.
    NotNow { why: String, wait: Option<Duration> },
    /// The same export would never be accepted.
    Never { why: String },
}

impl Refusal {
    pub(super) fn why(&self) -> &str {
        let (Self::NotNow { why, .. } | Self::Never { why }) = self;
        why
    }
}

/// Sends a message. Returns the number of data points that the collector rejected.
pub(super) async fn post(collector: &Collector, body: Bytes) -> Result<u64, Refusal> {
    let failed = |error: &dyn std::fmt::Display| Refusal::NotNow { why: error.to_string(), wait: None };
    let host = collector.authority.host();
    let address = (host.trim_matches(['[', ']']), collector.authority.port_u16().unwrap_or(PORT));
    let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    let exchange = async {
        let request = Request::builder()
            .method(Method::POST)
            .uri(collector.path.as_str())
            .header(header::HOST, collector.authority.as_str())
            .header(header::USER_AGENT, concat!("narrows/", env!("CARGO_PKG_VERSION")))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| failed(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| failed(&error))?;
        let status = answer.status();
        let wait = answer.headers().get(header::RETRY_AFTER);
        let wait = wait.and_then(|value| value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs));
        let said = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
        let said = said.map(|body| body.to_bytes()).unwrap_or_default();
        judge(status, wait, &said)
    };
    tokio::pin!(exchange);
    tokio::select! {
        outcome = &mut exchange => outcome,
        // The connection may end before the answer has been looked at.
        ended = connection => match ended {
            Ok(()) => exchange.await,
            Err(error) => Err(failed(&error)),
        },
    }
}

/// The meaning of an answer, by the specification of OTLP/HTTP.
pub(super) fn judge(status: StatusCode, wait: Option<Duration>, said: &[u8]) -> Result<u64, Refusal> {
    let json: Value = serde_json::from_slice(said).unwrap_or_default();
    if status.is_success() {
        let rejected = &json["partialSuccess"]["rejectedDataPoints"];
        let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok());
        return Ok(rejected.unwrap_or_default());
    }
    let text = String::from_utf8_lossy(said);
    let message = json["message"].as_str().unwrap_or(text.trim());
    let message: String = printable(message).to_string().chars().take(SHOWN).collect();
    let why = if message.is_empty() { status.to_string() } else { format!("{status}: {message}") };
    match status.as_u16() {
        429 | 502 | 503 | 504 => Err(Refusal::NotNow { why, wait }),
        _ => Err(Refusal::Never { why }),
    }
}

//! Toxiproxy's HTTP API.

mod connections;
mod metrics;

pub(crate) use connections::Connections;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::body::Refusal;
use crate::registry::Registry;

/// The version of Toxiproxy whose API this is.
pub(crate) const VERSION: &str = "2.12.0";

/// The longest body of a request.
const LONGEST_BODY: usize = 4 << 20;

/// The proxies, for all requests.
pub(crate) type Proxies = Arc<Mutex<Registry>>;

/// The API, with `/metrics` if `has_metrics`.
pub(crate) fn router(proxies: Proxies, has_metrics: bool) -> Router {
    let mut router = Router::new()
        .route("/version", get(version))
        .route("/reset", post(reset))
        .route("/populate", post(populate))
        .route("/proxies", get(index).post(create))
        .route("/proxies/{proxy}", get(show).post(update).patch(update).delete(delete))
        .route("/proxies/{proxy}/toxics", get(toxics).post(add_toxic))
        .route(
            "/proxies/{proxy}/toxics/{toxic}",
            get(show_toxic).post(update_toxic).patch(update_toxic).delete(delete_toxic),
        );
    if has_metrics {
        router = router.route("/metrics", get(metrics::metrics));
    }
    router
        .fallback(nothing)
        .layer(middleware::from_fn(refuse_browsers))
        .layer(middleware::from_fn_with_state(Arc::new(AtomicU64::new(1)), number))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(proxies)
}

/// Refuses browsers: a page of any site could otherwise change the proxies of its reader. Toxiproxy knows them by
/// their `User-Agent`; a script can change that in some, and the header `Sec-Fetch-Site` in none.
async fn refuse_browsers(request: Request, next: Next) -> Response {
    let headers: &HeaderMap = request.headers();
    let agent = headers.get(header::USER_AGENT).map_or(&b""[..], |agent| agent.as_bytes());
    if agent.starts_with(b"Mozilla/") || headers.contains_key("sec-fetch-site") {
        return text(StatusCode::FORBIDDEN, "User agent not allowed\n".into());
    }
    next.run(request).await
}

/// The header with the number of a request.
const REQUEST: HeaderName = HeaderName::from_static("x-toxiproxy-request-id");

/// Numbers the answers, as some clients log them.
async fn number(State(next): State<Arc<AtomicU64>>, request: Request, then: Next) -> Response {
    let number = next.fetch_add(1, Ordering::Relaxed);
    let mut answer = then.run(request).await;
    answer.headers_mut().insert(REQUEST, HeaderValue::from(number));
    answer
}

async fn nothing() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found\n".into())
}

fn text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

fn answer(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(body) => (status, [(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => Refusal::new(500, error.to_string()).into_response(),
    }
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        text(status, format!("{}\n", self.json()))
    }
}

async fn version() -> Response {
    let body = format!("{{\"version\": \"{VERSION}\"}}\n");
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json;charset=utf-8")], body).into_response()
}

async fn reset(State(proxies): State<Proxies>) -> Result<Response, Refusal> {
    proxies.lock().await.reset().await.map(|()| no_content())
}

async fn populate(State(proxies): State<Proxies>, body: Bytes) -> Response {
    let mut proxies = proxies.lock().await;
    let populated = proxies.populate(&body).await;
    let status = populated.refusal.as_ref().map_or(StatusCode::CREATED, |refusal| {
        StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    });
    answer(status, &proxies.populated(&populated))
}

async fn index(State(proxies): State<Proxies>) -> Response {
    let proxies = proxies.lock().await;
    let all: Map<String, Value> =
        proxies.proxies().map(|(name, proxy)| (name.clone(), json!(proxy.shown()))).collect();
    answer(StatusCode::OK, &all)
}

async fn create(State(proxies): State<Proxies>, body: Bytes) -> Result<Response, Refusal> {
    let mut proxies = proxies.lock().await;
    Ok(answer(StatusCode::CREATED, &proxies.create(&body).await?.shown()))
}

async fn show(State(proxies): State<Proxies>, Path(name): Path<String>) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, &proxies.lock().await.proxy(&name)?.shown()))
}

async fn update(
    State(proxies): State<Proxies>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let mut proxies = proxies.lock().await;
    Ok(answer(StatusCode::OK, &proxies.update(&name, &body).await?.shown()))
}

async fn delete(State(proxies): State<Proxies>, Path(name): Path<String>) -> Result<Response, Refusal> {
    proxies.lock().await.delete(&name).await.map(|()| no_content())
}

async fn toxics(State(proxies): State<Proxies>, Path(name): Path<String>) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, &proxies.lock().await.proxy(&name)?.shown_toxics()))
}

async fn add_toxic(
    State(proxies): State<Proxies>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, &*proxies.lock().await.add_toxic(&name, &body)?))
}

/// A proxy and one of its toxics.
type Both = Path<(String, String)>;

async fn show_toxic(State(proxies): State<Proxies>, Path(of): Both) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, &*proxies.lock().await.toxic(&of.0, &of.1)?))
}

async fn update_toxic(
    State(proxies): State<Proxies>,
    Path(of): Both,
    body: Bytes,
) -> Result<Response, Refusal> {
    Ok(answer(StatusCode::OK, &*proxies.lock().await.update_toxic(&of.0, &of.1, &body)?))
}

async fn delete_toxic(State(proxies): State<Proxies>, Path(of): Both) -> Result<Response, Refusal> {
    proxies.lock().await.remove_toxic(&of.0, &of.1).map(|()| no_content())
}

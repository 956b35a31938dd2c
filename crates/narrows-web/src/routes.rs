//! The server's routes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use narrows_live::control::{Client, ControlError};
use narrows_live::group::node;
use narrows_scenario::{LinkFlags, Preset, Way};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::access::{Access, Role};
use crate::guard::Counts;
use crate::metrics::{CONTENT_TYPE, exposition};
use crate::packets::Inspected;
use crate::runs::{LinkOfGroup, Runs};
use crate::stream::stream;

/// The maximum length of a request body.
const LONGEST_BODY: usize = 64 << 10;

/// Only resources of this server are loaded, and no other page may frame this one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The files of the page.
const FILES: &[(&str, &str, &str)] = &[
    ("/app.js", "text/javascript; charset=utf-8", include_str!("../page/app.js")),
    ("/group.js", "text/javascript; charset=utf-8", include_str!("../page/group.js")),
    ("/packets.js", "text/javascript; charset=utf-8", include_str!("../page/packets.js")),
    ("/charts.js", "text/javascript; charset=utf-8", include_str!("../page/charts.js")),
    ("/topology.js", "text/javascript; charset=utf-8", include_str!("../page/topology.js")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/uPlot.js", "text/javascript; charset=utf-8", include_str!("../page/uPlot.iife.min.js")),
    ("/uPlot.css", "text/css; charset=utf-8", include_str!("../page/uPlot.min.css")),
    ("/uPlot.LICENSE", "text/plain; charset=utf-8", include_str!("../page/uPlot.LICENSE")),
];
const PAGE: &str = include_str!("../page/index.html");

/// State shared by the handlers.
pub(crate) struct Site {
    pub(crate) access: Access,
    pub(crate) runs: Arc<Runs>,
    pub(crate) inspected: Arc<Inspected>,
    pub(crate) counts: Arc<Counts>,
}

type Shared = State<Arc<Site>>;

/// The run that is requested.
#[derive(Debug, Deserialize)]
struct Which {
    run: String,
}

/// The group that is requested.
#[derive(Debug, Deserialize)]
struct WhichGroup {
    group: String,
}

/// A requested change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    run: String,
    assignments: Vec<String>,
    /// The generation of the configuration that the change was based on.
    generation: Option<u64>,
}

/// A preset, as assignments to the directions of a link.
#[derive(Debug, Serialize)]
struct PresetKeys {
    name: &'static str,
    up: Vec<(String, String)>,
    down: Vec<(String, String)>,
}

/// The metrics, and the page unless `metrics_only`.
pub(crate) fn router(site: Arc<Site>, metrics_only: bool) -> Router {
    let mut router = Router::new().route("/metrics", get(metrics));
    if !metrics_only {
        router = router
            .route("/", get(page))
            .route("/api/runs", get(runs))
            .route("/api/group", get(group))
            .route("/api/stream", get(follow))
            .route("/api/packets", get(packets))
            .route("/api/keys", get(keys))
            .route("/api/check", post(check))
            .route("/api/set", post(set))
            .route("/api/scenario.toml", get(scenario))
            .route("/api/report.json", get(report));
        for (path, kind, text) in FILES {
            let file = move || async move { ([(header::CONTENT_TYPE, *kind)], *text) };
            router = router.route(path, get(file));
        }
    }
    router
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(from_fn_with_state(site.clone(), guard))
        .with_state(site)
}

/// Rejects unauthorised requests, and sets the headers that restrict the page.
async fn guard(State(site): Shared, mut request: Request, next: Next) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let token = query_token(&request);
    let entered = match (&site.access.tokens, token) {
        (Some(tokens), Some(token)) if *method == Method::GET && request.uri().path() == "/" => {
            let place = site.access.place(method, headers);
            place.map(|()| tokens.role(&token).map(|_| token))
        }
        _ => Ok(None),
    };
    let mut response = match entered {
        Ok(Some(token)) => enter(&site, &token, &request),
        Ok(None) => match site.access.role(method, headers) {
            Ok(role) => {
                request.extensions_mut().insert(role);
                next.run(request).await
            }
            Err(refusal) => refuse(&site, refusal),
        },
        Err(refusal) => refuse(&site, refusal),
    };
    let headers = response.headers_mut();
    let mut say = |name, value| drop(headers.insert(name, HeaderValue::from_static(value)));
    say(header::CONTENT_SECURITY_POLICY, POLICY);
    say(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(header::REFERRER_POLICY, "no-referrer");
    say(header::X_FRAME_OPTIONS, "DENY");
    say(header::CACHE_CONTROL, "no-store");
    say(header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    say(header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

fn refuse(site: &Site, (status, why): (StatusCode, &'static str)) -> Response {
    site.counts.refused_requests.fetch_add(1, Ordering::Relaxed);
    (status, format!("{why}\n")).into_response()
}

fn query_token(request: &Request) -> Option<String> {
    let pairs = request.uri().query()?.split('&').filter_map(|pair| pair.split_once('='));
    // Tokens are hexadecimal: no escapes are possible.
    pairs.filter(|(name, _)| *name == "token").map(|(_, value)| value.to_owned()).next()
}

/// Moves the token from the URL, which is visible and recorded, into a cookie that no script can read.
fn enter(site: &Site, token: &str, request: &Request) -> Response {
    let rest =
        request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.starts_with("token="));
    let rest = rest.collect::<Vec<_>>().join("&");
    let to = if rest.is_empty() { "/".into() } else { format!("/?{rest}") };
    let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Strict", site.access.cookie());
    (StatusCode::SEE_OTHER, [(header::LOCATION, to), (header::SET_COOKIE, cookie)]).into_response()
}

async fn page() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE)
}

async fn metrics(State(site): Shared) -> impl IntoResponse {
    let observed = site.runs.observe().await;
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], exposition(&observed, &site.counts.read()))
}

async fn runs(State(site): Shared, axum::Extension(role): axum::Extension<Role>) -> Response {
    let only = site.runs.only().map(str::to_owned);
    let all = site.runs.clone();
    match blocking(move || all.list()).await {
        Ok(runs) => json_answer(&json!({ "runs": runs, "only": only, "may_change": role == Role::Editor })),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, why).into_response(),
    }
}

/// A group: its links, each with the figures of its run.
async fn group(State(site): Shared, Query(which): Query<WhichGroup>) -> Response {
    let group = match site.runs.group(which.group).await {
        Ok(Some(group)) => group,
        Ok(None) => return (StatusCode::NOT_FOUND, "no run of this group is shown here").into_response(),
        Err(why) => return (StatusCode::INTERNAL_SERVER_ERROR, why).into_response(),
    };
    let link = |LinkOfGroup { ends, run, answer }: &LinkOfGroup| {
        let nodes = ends.each_ref().map(|end| node(end));
        let figures = answer.as_deref().map(|answer| {
            let report = &answer.stats.report;
            json!({ "end_ns": report.end_ns, "directions": report.directions, "settings": answer.settings.directions,
                "ports": answer.settings.ports, "trust": report.trust_word() })
        });
        json!({ "ends": ends, "nodes": nodes, "run": run, "figures": figures })
    };
    let links: Vec<_> = group.links.iter().map(link).collect();
    json_answer(&json!({ "nodes": group.nodes, "links": links }))
}

async fn follow(State(site): Shared, Query(which): Query<Which>) -> Response {
    if let Some(refusal) = not_ours(&site, &which.run) {
        return refusal;
    }
    let body = stream(site.runs.watch(&which.run));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn packets(State(site): Shared, Query(which): Query<Which>) -> Response {
    if let Some(refusal) = not_ours(&site, &which.run) {
        return refusal;
    }
    let body = site.inspected.stream(&which.run);
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// The keys of links, and presets.
async fn keys() -> Response {
    let known = LinkFlags::known().into_iter().filter(|flag| !flag.name.starts_with("netem"));
    let keys: Vec<_> = known.map(|flag| flag.name).collect();
    let preset = |name| {
        let preset = Preset::named(name).ok()?;
        Some(PresetKeys { name, up: preset.keys(Way::Up), down: preset.keys(Way::Down) })
    };
    let presets: Vec<_> = Preset::names().into_iter().filter_map(preset).collect();
    json_answer(&json!({ "keys": keys, "presets": presets }))
}

/// Whoever has the token need not be the run's user: no file is read for them.
fn client_of(run: &str) -> Result<Client, ControlError> {
    Ok(Client::find(Some(run))?.with_known_files_only())
}

async fn check(State(site): Shared, body: Bytes) -> Response {
    let wanted = match wanted(&site, &body) {
        Ok(wanted) => wanted,
        Err(refusal) => return *refusal,
    };
    asked(blocking(move || to_json(client_of(&wanted.run)?.check(wanted.assignments)?)).await)
}

async fn set(State(site): Shared, body: Bytes) -> Response {
    let wanted = match wanted(&site, &body) {
        Ok(wanted) => wanted,
        Err(refusal) => return *refusal,
    };
    let change = move || {
        let run = client_of(&wanted.run)?;
        let checked = run.check(wanted.assignments.clone())?;
        // The undo was computed for this generation and no other.
        let meant_for = wanted.generation.unwrap_or(checked.generation);
        let changed = run.set(wanted.assignments, Some(meant_for))?;
        to_json(json!({ "generation": changed.generation, "at_ns": changed.at_ns, "undo": checked.undo }))
    };
    asked(blocking(change).await)
}

async fn scenario(State(site): Shared, Query(which): Query<Which>) -> Response {
    if let Some(refusal) = not_ours(&site, &which.run) {
        return refusal;
    }
    match blocking(move || Client::find(Some(&which.run))?.scenario()).await {
        Ok(current) => download("scenario.toml", "application/toml", current.toml),
        Err(error) => trouble(&error),
    }
}

async fn report(State(site): Shared, Query(which): Query<Which>) -> Response {
    if let Some(refusal) = not_ours(&site, &which.run) {
        return refusal;
    }
    match blocking(move || Client::find(Some(&which.run))?.stats()).await {
        Ok(stats) => match serde_json::to_string_pretty(&stats.report) {
            Ok(text) => download("report.json", "application/json", text),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
        },
        Err(error) => trouble(&error),
    }
}

fn download(name: &str, kind: &'static str, text: String) -> Response {
    let disposition = format!("attachment; filename=\"narrows-{name}\"");
    ([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], Body::from(text))
        .into_response()
}

/// The response if a run may not be shown here.
fn not_ours(site: &Site, run: &str) -> Option<Response> {
    let why = "this server shows another run";
    (!site.runs.has(run)).then(|| (StatusCode::NOT_FOUND, why).into_response())
}

/// Parses a request's change, or returns an error response.
fn wanted(site: &Site, body: &Bytes) -> Result<Wanted, Box<Response>> {
    let wanted: Wanted = serde_json::from_slice(body).map_err(|error| {
        Box::new((StatusCode::BAD_REQUEST, format!("not a change: {error}")).into_response())
    })?;
    not_ours(site, &wanted.run).map_or(Ok(wanted), |refusal| Err(refusal.into()))
}

/// Queries the run in a thread of its own, because that may take some time.
async fn blocking<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: Send + 'static,
{
    match spawn_blocking(work).await {
        Ok(result) => result,
        // As it would without a separate thread.
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}

fn to_json(value: impl Serialize) -> Result<Value, ControlError> {
    serde_json::to_value(value).map_err(|error| ControlError::Refused(error.to_string()))
}

fn asked(answer: Result<Value, ControlError>) -> Response {
    match answer {
        Ok(value) => json_answer(&value),
        Err(error) => trouble(&error),
    }
}

/// An error response for the page.
fn trouble(error: &ControlError) -> Response {
    let (status, value) = match error {
        ControlError::Refused(why) => (StatusCode::UNPROCESSABLE_ENTITY, json!({ "error": why })),
        ControlError::Stale(stale) => (StatusCode::CONFLICT, json!({ "stale": stale })),
        error => (StatusCode::BAD_GATEWAY, json!({ "error": error.to_string() })),
    };
    let mut response = json_answer(&value);
    *response.status_mut() = status;
    response
}

fn json_answer(value: &Value) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (headers, value.to_string()).into_response()
}

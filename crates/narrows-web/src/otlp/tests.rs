use super::*;
use crate::metrics::{FAMILIES, FamilyKind, LatenessSample, ServerCounts};
use narrows_report::HISTOGRAM_BOUNDS;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread::{JoinHandle, spawn};

#[test]
fn an_address_is_that_of_a_collector() {
    for (text, meant) in [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
        ("http://collector", "http://collector/v1/metrics"),
        ("http://[::1]:1/otlp/", "http://[::1]:1/otlp/v1/metrics"),
        ("http://c:4318/v1/metrics", "http://c:4318/v1/metrics"),
    ] {
        assert_eq!(text.parse::<Collector>().unwrap().to_string(), meant);
    }
    for (text, why) in [
        ("https://c:4318", "https is not supported"),
        ("c:4318", "no http://"),
        ("http://a:b@c", "passwords"),
        ("http://c/?x=1", "a query"),
        ("http:// c", "invalid"),
    ] {
        let error = text.parse::<Collector>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

/// A name and its unit give the name of `/metrics`, by the rules of the OpenTelemetry specification for Prometheus: dots
/// become underscores, the unit is appended unless it is there, and counters end in `_total`.
#[test]
fn names_give_those_of_prometheus() {
    for family in FAMILIES {
        let (openmetrics, kind, unit, _) = family;
        let name = payload::name(family);
        let mut theirs = name.replace('.', "_");
        let appended = match *unit {
            "seconds" | "bytes" | "bytes_per_second" => *unit,
            _ => "",
        };
        if !theirs.ends_with(appended) {
            theirs = format!("{theirs}_{appended}");
        }
        let info = if *kind == FamilyKind::Info { "_info" } else { "" };
        assert_eq!(theirs, format!("{openmetrics}{info}"), "{name}");
    }
    let named = |family: &str| payload::name(FAMILIES.iter().find(|(name, ..)| *name == family).unwrap());
    assert_eq!(named("narrows_link_rate_bytes_per_second"), "narrows.link.rate");
    assert_eq!(named("narrows_link_in_flight_packets"), "narrows.link.in_flight_packets");
}

fn starts() -> Starts {
    Starts { server: 1_000, runs: BTreeMap::from([("lab".to_owned(), 2_000)]) }
}

/// Against the published JSON form.
#[test]
fn the_message_has_the_published_form() {
    let silent = Observed { run: "lab".into(), answer: None, late_ns: 0 };
    let server = ServerCounts { connections: 7, ..ServerCounts::default() };
    let mut samples = Samples::of(&[silent], &server);
    let mut packets = vec![0; HISTOGRAM_BOUNDS.len() + 1];
    (packets[0], packets[1], packets[HISTOGRAM_BOUNDS.len()]) = (3, 2, 1);
    samples.lateness.push(LatenessSample { run: "lab".into(), packets, sum_ns: 500_000 });
    let labels =
        vec![("run", "lab".to_owned()), ("link", "access".to_owned()), ("direction", "up".to_owned())];
    samples.values.entry("narrows_link_offered_bytes").or_default().insert(labels.clone(), 9_007_199_254.0);
    samples.values.entry("narrows_link_delay_seconds").or_default().insert(labels, 0.025);
    let message = payload::payload(&samples, &starts(), 3_000);
    let resources = message["resourceMetrics"].as_array().unwrap();
    let of_run = |run: Option<&str>| {
        let wanted = run.map(|run| json!({ "key": "narrows.run", "value": { "stringValue": run } }));
        let attributes = |one: &Value| one["resource"]["attributes"].as_array().unwrap().clone();
        let has = |one: &Value| attributes(one).iter().any(|one| one["key"] == "narrows.run");
        let found = resources.iter().find(|one| match &wanted {
            Some(wanted) => attributes(one).contains(wanted),
            None => !has(one),
        });
        found.unwrap().clone()
    };
    assert_eq!(resources.len(), 2);
    let metric = |run: Option<&str>, name: &str| {
        let scope = &of_run(run)["scopeMetrics"][0];
        assert_eq!(scope["scope"]["name"], "narrows-web");
        scope["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == name).unwrap().clone()
    };
    let service = json!({ "key": "service.name", "value": { "stringValue": "narrows" } });
    assert_eq!(of_run(Some("lab"))["resource"]["attributes"][0], service);
    let attributes = json!([
        { "key": "link", "value": { "stringValue": "access" } },
        { "key": "direction", "value": { "stringValue": "up" } },
    ]);
    assert_eq!(
        metric(Some("lab"), "narrows.link.offered_bytes"),
        json!({
            "name": "narrows.link.offered_bytes",
            "unit": "By",
            "description": "Their bytes from the network header on.",
            "sum": {
                "aggregationTemporality": 2,
                "isMonotonic": true,
                "dataPoints": [{
                    "attributes": attributes,
                    "startTimeUnixNano": "2000",
                    "timeUnixNano": "3000",
                    "asInt": "9007199254",
                }],
            },
        })
    );
    assert_eq!(
        metric(Some("lab"), "narrows.link.delay")["gauge"],
        json!({ "dataPoints": [{ "attributes": attributes, "timeUnixNano": "3000", "asDouble": 0.025 }] })
    );
    let late = metric(Some("lab"), "narrows.release_lateness");
    assert_eq!((&late["unit"], &late["histogram"]["aggregationTemporality"]), (&json!("s"), &json!(2)));
    let point = &late["histogram"]["dataPoints"][0];
    assert_eq!((&point["count"], &point["sum"]), (&json!("6"), &json!(0.0005)));
    let (counts, bounds) =
        (point["bucketCounts"].as_array().unwrap(), point["explicitBounds"].as_array().unwrap());
    assert_eq!((counts.len(), &counts[..2]), (bounds.len() + 1, &[json!("3"), json!("2")][..]));
    let connections = metric(None, "narrows.web.connections");
    assert_eq!(connections["sum"]["dataPoints"][0]["startTimeUnixNano"], "1000");
    assert_eq!(connections["sum"]["dataPoints"][0]["asInt"], "7");
}

/// A collector that gives each of these answers to a connection, in turn; `None` never answers. Returns the bodies that
/// it got.
fn collector(answers: Vec<Option<String>>) -> (Collector, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let serve = move || {
        let (mut bodies, mut silent) = (Vec::new(), Vec::new());
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let Some(answer) = answer else {
                silent.push(stream);
                continue;
            };
            let (mut request, mut part) = (String::new(), [0; 1024]);
            let body = loop {
                let length = stream.read(&mut part).unwrap();
                request += std::str::from_utf8(&part[..length]).unwrap();
                let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
                assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
                assert!(head.contains("\r\ncontent-type: application/json"), "{head}");
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if body.len() == length.parse::<usize>().unwrap() {
                    break body.to_owned();
                }
            };
            bodies.push(body);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        if !silent.is_empty() {
            std::thread::sleep(Duration::from_secs(3));
        }
        bodies
    };
    (address, spawn(serve))
}

fn answer(status: &str, headers: &str, body: &str) -> Option<String> {
    let length = body.len();
    Some(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"))
}

fn block_on<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

async fn sent(collector: &Collector, seconds: u64) -> Result<u64, Refusal> {
    deliver(collector, Bytes::from_static(b"{}"), Instant::now() + Duration::from_secs(seconds)).await
}

#[test]
fn what_may_pass_is_sent_again_and_a_refusal_is_not() {
    block_on(async {
        let (address, served) = collector(vec![
            answer("503 Service Unavailable", "", ""),
            answer("200 OK", "content-type: application/json\r\n", "{}"),
        ]);
        assert_eq!(sent(&address, 10).await, Ok(0));
        assert_eq!(served.join().unwrap(), ["{}", "{}"]);

        let (address, served) =
            collector(vec![answer("400 Bad Request", "", "{\"code\":3,\"message\":\"no \\u001b[31m\"}")]);
        let why = "400 Bad Request: no \\u001b[31m".to_owned();
        assert_eq!(sent(&address, 10).await, Err(Refusal::Never { why }));
        assert_eq!(served.join().unwrap().len(), 1);

        let partial = "{\"partialSuccess\":{\"rejectedDataPoints\":\"5\",\"errorMessage\":\"old\"}}";
        let (address, _served) = collector(vec![answer("200 OK", "", partial)]);
        assert_eq!(sent(&address, 10).await, Ok(5));
    });
}

#[test]
fn a_collector_that_wants_a_pause_gets_it() {
    block_on(async {
        // Within the time of the export.
        let pause = answer("429 Too Many Requests", "retry-after: 2\r\n", "");
        let (address, _served) = collector(vec![pause.clone(), answer("200 OK", "", "")]);
        let begun = Instant::now();
        assert_eq!(sent(&address, 10).await, Ok(0));
        assert!(begun.elapsed() >= Duration::from_secs(2));
        // Beyond it: given up at once, and the next export waits.
        let (address, _served) =
            collector(vec![answer("429 Too Many Requests", "retry-after: 60\r\n", "slowly")]);
        let (why, wait) = ("429 Too Many Requests: slowly".to_owned(), Some(Duration::from_secs(60)));
        assert_eq!(sent(&address, 10).await, Err(Refusal::NotNow { why, wait }));
    });
}

#[test]
fn a_collector_that_is_away_or_silent_is_given_up() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let away: Collector = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        drop(listener);
        let Err(Refusal::NotNow { why, .. }) = sent(&away, 2).await else { panic!("nobody is there") };
        assert!(why.contains("refused"), "{why}");
        let (silent, _served) = collector(vec![None]);
        let Err(Refusal::NotNow { why, .. }) = sent(&silent, 1).await else { panic!("it does not answer") };
        assert_eq!(why, "no answer in time");
    });
}

#[test]
fn failures_are_counted_and_said_once() {
    let (mut state, to) = (State::default(), "http://c:4318".parse::<Collector>().unwrap());
    let failed = || Err(Refusal::NotNow { why: "away".into(), wait: None });
    let said = state.note(&to, &failed()).unwrap();
    assert!(said.starts_with("OTLP: cannot send metrics to http://c:4318/v1/metrics: away"), "{said}");
    assert_eq!(state.note(&to, &failed()), None);
    assert!(state.note(&to, &Ok(0)).unwrap().contains("again; 2 exports were given up"));
    assert!(state.note(&to, &Ok(3)).unwrap().contains("rejected 3 data points"));
    assert_eq!(state.note(&to, &Ok(4)), None);
    assert_eq!(state.counts, ExportCounts { exports: 3, failed: 2, rejected_points: 7 });
}

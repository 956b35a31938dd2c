use narrows_core::{Duration, Probability, Time as Instant};
use proptest::prelude::*;

use super::kind::{Boolean, Given};
use super::quantity::{Percentage, Time};
use super::*;
use crate::files::Files;
use crate::units::Share;

#[derive(Debug, PartialEq)]
struct Sample {
    delay: Duration,
    share: Probability,
    limit: Option<Duration>,
    on: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self { delay: Duration::from_millis(5), share: Probability::ZERO, limit: None, on: true }
    }
}

const TIME: Time = Time::between(Duration::from_millis(1), Duration::from_secs(10));

impl Keyed for Sample {
    const ROWS: &'static [Row<Self>] = &[
        row!("wait", delay, TIME, "How long to wait.").alias(&["delay"]),
        row!("share", share, Percentage, "How many.").required_with("write share = 0.1"),
        row!("limit", limit, Given(TIME), "The longest wait.").default("any"),
        row!("on", on, Boolean, "Whether at all."),
    ];
}

fn read_text(text: &str) -> Result<Sample, Problem> {
    let files = Files::default();
    let around = Surroundings { hosts: &[], shared: false, stations: &[], files: &files, at: Instant::ZERO };
    let node = Node::typed(text, 0);
    read_table(&node, node.table("a table")?, around)
}

fn error(text: &str) -> String {
    let problem = read_text(text).expect_err(text);
    crate::problem::ScenarioError::new("t", text, vec![problem]).to_string()
}

fn written(sample: &Sample) -> String {
    let mut table = Table::default();
    sample.write(&mut table);
    Node::new(Value::Table(table)).toml()
}

#[test]
fn a_key_may_have_another_name() {
    let by = |name: &str| read_text(&format!("{{ {name} = \"7ms\", share = \"1%\" }}")).expect("it is right");
    assert_eq!(by("wait"), by("delay"));
    assert_eq!(written(&by("delay")), "{ wait = \"7ms\", share = \"1%\" }");
    let both = error("{ wait = \"7ms\", delay = \"8ms\", share = \"1%\" }");
    assert!(both.contains("`wait` and `delay` are the same key"), "{both}");
    let schema = schema::object("A sample.", &keys::<Sample>(), &mut Default::default());
    assert_eq!(schema["properties"]["wait"], schema["properties"]["delay"]);
}

#[test]
fn what_is_wrong_is_named_and_what_is_right_listed() {
    assert!(error("{}").contains("`share` is missing"));
    let unknown = error("{ shar = 0.1 }");
    assert!(unknown.contains("did you mean `share`?"), "{unknown}");
    assert!(unknown.contains("allowed: `wait`, `share`, `limit`, `on` or `delay`"), "{unknown}");
    let range = error("{ share = 0.1, wait = \"11s\" }");
    assert!(
        range.contains("found `11s`, expected a time from 1ms to 10s") && range.contains("in `wait`"),
        "{range}"
    );
}

#[test]
fn all_that_is_wrong_is_found_at_once() {
    let files = Files::default();
    let node = Node::typed("{ wait = \"11s\", limit = \"1h\", on = 3 }", 0);
    let table = node.table("a table").expect("it is one");
    let mut sample = Sample::default();
    let problems = read_all(&mut sample, table, &node.span, Surroundings::of_files(&files));
    let text = crate::problem::ScenarioError::new("t", "", problems).to_string();
    for wrong in
        ["expected a time from 1ms to 10s", "`share` is missing", "write share = 0.1", "expected `true`"]
    {
        assert!(text.contains(wrong), "{wrong}: {text}");
    }
}

#[test]
fn a_key_that_is_read_apart_is_written_and_described() {
    #[derive(Default)]
    struct Apart(bool);

    impl Keyed for Apart {
        const ROWS: &'static [Row<Self>] =
            &[Row::apart("on", &Boolean, "Whether at all.", |of: &Self| Boolean.write(&of.0)).required()];
    }

    let files = Files::default();
    let node = Node::typed("{}", 0);
    let read: Apart = read(&node, &Table::default(), Surroundings::of_files(&files)).expect("others read it");
    assert!(!read.0, "its reader says whether it is missing");
    assert_eq!(Node::new(Value::Table(super::written(&Apart(true)))).toml(), "{ on = true }");
    let schema = schema::object("A sample.", &keys::<Apart>(), &mut Default::default());
    assert_eq!(schema["required"], serde_json::json!(["on"]));
}

#[test]
fn what_is_a_default_is_not_written() {
    let plain = read_text("{ share = 0.1, wait = \"5ms\", on = true }").expect("it is right");
    assert_eq!(written(&plain), "{ share = \"10%\" }");
    let other = read_text("{ share = 0.1, limit = \"1s\", on = false }").expect("it is right");
    assert_eq!(written(&other), "{ share = \"10%\", limit = \"1s\", on = false }");
    assert_eq!(plain.words(), "wait 5ms, share 10%, on on");
}

#[test]
fn the_schema_says_defaults_and_what_is_required() {
    let schema = schema::object("A sample.", &keys::<Sample>(), &mut Default::default());
    assert_eq!(schema["required"], serde_json::json!(["share"]));
    assert_eq!(schema["properties"]["wait"]["default"], "5ms");
    assert_eq!(schema["properties"]["limit"]["description"], "The longest wait. Default: any.");
}

proptest! {
    #[test]
    fn a_probability_is_written_with_few_digits_and_read_the_same(parts in 0..=10_000_000_000_000_000_000_u64, digits in 0..20_u32) {
        let unit = 10_u64.pow(19 - digits);
        let given = Probability::from_ratio(parts / unit * unit, 10_000_000_000_000_000_000).expect("at most one");
        let text = Share::shortest(given).to_string();
        let again = Share::read(&Node::new(Value::String(text.clone()))).expect("it is right");
        prop_assert_eq!(again.probability(), given);
        prop_assert!(text.len() <= digits as usize + 4, "{} has {} digits", text, digits);
    }
}

use super::*;

const FILE: &str = r#"name: Shop
services:
  web: { image: nginx, labels: { narrows.interface: eth0 } }
  db:
    image: postgres
    labels:
      - narrows.loss=1%
      - other=label
  cache: { image: redis }
x-base: &far { delay: 20ms }
x-narrows:
  seed: 7
  defaults: { delay: 1ms }
  services:
    web:
      preset: 4g
      network: front
    db: { rate: 10mbit/1mbit, up: { loss: 2% } }
  links:
    "web -> db": { <<: *far, loss: 1% }
    "web <-> cache": { delay: 1ms/2ms }
    "* -> cache": *far
    "10.0.0.0/8 -> web": { delay: 5ms }
  timeline:
    - at: 10s
      set:
        "web -> db": { delay: 200ms }
        db: { up: { loss: 10% } }
"#;

fn read(text: &str) -> Result<Project, String> {
    let files = Files::given::<&str>([]);
    Project::parse_with(text, "compose.yml", None, files).map_err(|error| error.to_string())
}

#[test]
fn a_whole_block_is_read() {
    let project = read(FILE).unwrap();
    assert_eq!(project.name, "shop");
    assert_eq!(project.seed, Some(7));
    assert!(project.wishes["web"].keys.has("preset"));
    assert_eq!(project.wishes["web"].at.network.as_deref(), Some("front"));
    assert!(project.wishes["db"].keys.has("up.loss"));
    let pairs: Vec<_> = project.pairs.iter().map(|link| link.pair.to_string()).collect();
    assert_eq!(pairs, ["web -> db", "web -> cache", "cache -> web", "* -> cache", "10.0.0.0/8 -> web"]);
    assert_eq!(project.pairs[0].pipe.to_string(), "delay = \"20ms\"\nloss = \"1%\"\n");
    let delay = |number: usize| project.pairs[number].pipe["delay"].as_str().unwrap().to_owned();
    assert_eq!((delay(1), delay(2)), ("2ms".into(), "1ms".into()), "DOWN/UP: up is from left to right");
    assert_eq!(project.timeline[0].at_ns, 10_000_000_000);
    assert_eq!(project.timeline[0].set.len(), 2);
}

#[test]
fn faults_name_line_and_key_and_what_is_near() {
    for (right, wrong, parts) in [
        (
            "delay: 1ms }\n  services",
            "dealy: 1ms }\n  services",
            &["unknown key `dealy`", "`delay`?", ":13:"][..],
        ),
        ("\"web -> db\": { <<", "\"web -> dbb\": { <<", &["no service `dbb`", "`db`?", "compose.yml:20:"]),
        (
            "    db: { rate: 10mbit",
            "    dbs: { rate: 10mbit",
            &["no service `dbs`", "cache, db, web", ":18:"],
        ),
        ("loss: 1% }", "loss: much }", &["links.\"web -> db\".loss", ":20:"]),
        ("\"* -> cache\": *far", "\"cache\": *far", &["not a pair of ends", "\"web -> db\"", ":22:"]),
        ("seed: 7", "seed: x", &["is not a seed", ":12:"]),
        ("  links:", "  linke:", &["unknown key `linke`", "`links`?"]),
        ("- at: 10s", "- at: soon", &["x-narrows.timeline.1.at", ":25:"]),
        ("        \"web -> db\"", "        \"db -> web\"", &["no link `db -> web`", "links: \"web -> db\""]),
        ("narrows.loss=1%", "narrows.los=1%", &["unknown key `los`", "`loss`?", ":7:", "services.db.labels"]),
        ("narrows.loss=1%", "narrows.loss=x", &["services.db.labels.narrows.loss", ":7:"]),
        (
            "\"web -> db\": { <<: *far",
            "\"web -> db\": { delay: 1ms/2ms",
            &["values for two directions", "<->"],
        ),
        ("\"* -> cache\"", "\"web -> cache\"", &["`web -> cache` is given twice"]),
        ("\"10.0.0.0/8 -> web\"", "\"10.0.0.0/8 -> 1.1.1.1\"", &["neither end is a service"]),
        ("db: { up: { loss: 10% } }", "db: { preset: 4g }", &["`preset` cannot change"]),
        ("defaults: { delay: 1ms }", "defaults: [1]", &["a list instead of a map"]),
        ("  timeline:\n    - at", "  timeline:\n      at", &["a map instead of a list"]),
    ] {
        assert!(FILE.contains(right), "{right}");
        let error = read(&FILE.replacen(right, wrong, 1)).unwrap_err();
        parts.iter().for_each(|part| assert!(error.contains(part), "{wrong}: {part} is not in\n{error}"));
    }
}

#[test]
fn a_file_for_something_else_is_refused() {
    assert!(read("").unwrap_err().contains("no services"));
    assert!(read("services: [a]").unwrap_err().contains("no services"));
    let error = read("services: { web: { image: x } }").unwrap_err();
    assert!(error.contains("nothing to do") && error.contains("x-narrows"), "{error}");
    let labelled = read("services: { web: { labels: [narrows.delay=1ms] } }").unwrap();
    assert!(labelled.wish("web").keys.has("delay"));
}

#[test]
fn names_of_projects_are_composes() {
    assert_eq!(normalized("My Shop_2.0"), "myshop_20");
    assert_eq!(normalized("__x-y"), "x-y");
}

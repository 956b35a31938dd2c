use super::*;

const FILE: &str = r#"name: pair
topology:
  defaults: { kind: linux }
  nodes:
    a: { image: busybox }
    b:
    br: { kind: bridge }
  links:
    - endpoints: ["a:eth1", "b:eth1"]
      vars: { other: 1, narrows: { rate: 10mbit, up: { delay: 20ms }, seed: 7 } }
    - type: veth
      endpoints:
        - { node: a, interface: eth2, mac: "02:00:00:00:00:01" }
        - node: b
          interface: eth2
      vars:
        narrows: { preset: dsl }
    - endpoints: [b:eth3, br:eth9]
    - type: mgmt-net
      endpoint: { node: b, interface: eth4 }
      host-interface: b-mgmt
      vars: { narrows: { delay: 1ms } }
"#;

fn read(text: &str) -> Result<Lab, String> {
    let files = Files::given::<&str>([]);
    Lab::parse_with(text, "pair.clab.yml", None, files).map_err(|error| error.to_string())
}

fn container(name: &str, labels: &str) -> Container {
    let text = format!(r#"{{"Id":"f0","Name":"/{name}","Config":{{"Labels":{{{labels}}}}}}}"#);
    Container::parse(text.as_bytes()).unwrap()
}

#[test]
fn links_in_every_notation_are_read() {
    let lab = read(FILE).unwrap();
    let titles: Vec<_> = lab.links.iter().map(|link| lab.title(link)).collect();
    assert_eq!(titles, ["pair a:eth1–b:eth1", "pair a:eth2–b:eth2", "pair b:eth4–mgmt-net"]);
    assert_eq!(lab.shape.nodes, ["a", "b", "br"]);
    let links: Vec<_> = lab.shape.links.iter().map(|ends| ends.join(" ")).collect();
    assert_eq!(links, ["a:eth1 b:eth1", "a:eth2 b:eth2", "b:eth3 br:eth9", "b:eth4 mgmt-net"]);
    let first = &lab.links[0].wish;
    assert_eq!((first.seed.as_deref(), first.at.interface.as_deref()), (Some("7"), Some("eth1")));
    let [up, down] = first.keys.pipes(&lab.files).unwrap().map(|pipe| pipe.to_string());
    assert_eq!(up, "delay = \"20ms\"\nrate = \"10mbit\"\n");
    assert_eq!(down, "rate = \"10mbit\"\n");
    let plans = lab.plans().unwrap();
    assert!(plans[0].1.contains("seed = 7") && plans[1].1.contains("links.link"), "{plans:?}");
}

#[test]
fn a_container_is_known_by_its_labels_or_its_name() {
    let at = |text: &str, name: &str, labels: &str| {
        let (lab, container) = (read(text).unwrap(), container(name, labels));
        lab.at(&container).map(|link| link.ends[0].interface.clone()).collect::<Vec<_>>()
    };
    let of_lab = r#""containerlab":"pair""#;
    let none: [&str; 0] = [];
    assert_eq!(at(FILE, "x", r#""containerlab":"pair","clab-node-name":"a""#), ["eth1", "eth2"]);
    assert_eq!(at(FILE, "x", r#""containerlab":"other","clab-node-name":"a""#), none);
    assert_eq!(at(FILE, "clab-pair-b", of_lab), ["eth4"]);
    assert_eq!(at(FILE, "clab-pair-b", ""), none, "not of a lab");
    assert_eq!(at(&format!("prefix: \"\"\n{FILE}"), "b", of_lab), ["eth4"]);
    assert_eq!(at(&format!("prefix: __lab-name\n{FILE}"), "pair-b", of_lab), ["eth4"]);
    assert_eq!(at(&format!("prefix: my\n{FILE}"), "my-pair-b", of_lab), ["eth4"]);
}

#[test]
fn faults_name_line_and_key_and_what_is_near() {
    for (right, wrong, parts) in [
        ("rate: 10mbit", "rat: 10mbit", &["unknown key `rat`", "`rate`?", "pair.clab.yml:10:"][..]),
        ("rate: 10mbit", "rate: fast", &["topology.links.1.vars.narrows", ":10:"]),
        ("rate: 10mbit", "interface: x", &["unknown key `interface`", ":10:"]),
        ("delay: 20ms", "dely: 20ms", &["`delay`?", ":10:"]),
        ("\"a:eth1\"", "\"aa:eth1\"", &["no node `aa`", "did you mean `a`?", "a, b, br", ":9:"]),
        ("node: b\n", "node: c\n", &["no node `c`", ":14:"]),
        ("b:eth3", "b:eth2", &["`b:eth2` is in two links", "topology.links.3", ":18:"]),
        (
            "\"a:eth1\"",
            "\"br:eth1\"",
            &["the first end is `br`, which is not a container", "exchange the ends"],
        ),
        ("\"a:eth1\"", "\"host:x\"", &["the first end is `host`"]),
        ("\"a:eth1\"", "\"a\"", &["not an endpoint", "NODE:INTERFACE", ":9:"]),
        ("\"a:eth1\", ", "", &["1 endpoints instead of two", ":9:"]),
        ("narrows: { preset: dsl }", "narrows: {}", &["no settings", ":17:"]),
        ("narrows: { preset: dsl }", "narrows: [1]", &["a list instead of a map", ":17:"]),
        ("name: pair\n", "", &["`name` is missing"]),
    ] {
        assert!(FILE.contains(right), "{right}");
        let error = read(&FILE.replacen(right, wrong, 1)).unwrap_err();
        parts.iter().for_each(|part| assert!(error.contains(part), "{wrong}: {part} is not in\n{error}"));
    }
}

#[test]
fn a_file_for_something_else_is_refused() {
    assert!(read("").unwrap_err().contains("no topology.nodes"));
    assert!(read("services: { web: {} }").unwrap_err().contains("not a topology file"));
    let error = read(&FILE.replace("narrows:", "others:")).unwrap_err();
    assert!(error.contains("no link has `vars.narrows`") && error.contains("pair.clab.yml:9:"), "{error}");
    let error = read("name: x\ntopology: { nodes: { a: }, links: 3 }").unwrap_err();
    assert!(error.contains("instead of a list") && error.contains(":2:"), "{error}");
}

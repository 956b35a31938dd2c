use super::*;

fn made(plan: &NetworkPlan) -> Scenario {
    let text = plan.scenario().unwrap_or_else(|error| panic!("{plan:?}: {error}"));
    let scenario = Scenario::parse(&text, "made").unwrap();
    // Every host has a path to every other one, and the engine takes the network.
    narrows_core::Engine::<()>::new(scenario.network()).unwrap();
    scenario
}

/// Hosts, routers and links.
fn counts(plan: &NetworkPlan) -> (usize, usize, usize) {
    let scenario = made(plan);
    let routers = plan.scenario().unwrap().matches("[routers.").count();
    (scenario.hosts.len(), routers, scenario.links.len())
}

#[test]
fn shapes_have_the_hosts_routers_and_links_that_they_are_known_for() {
    let of = |shape, size: Option<(usize, Option<usize>)>, hosts| {
        counts(&NetworkPlan { size, hosts, ..NetworkPlan::new(shape) })
    };
    assert_eq!(of(NetworkShape::Star, None, Some(7)), (7, 1, 7));
    assert_eq!(of(NetworkShape::Line, Some((5, None)), None), (2, 5, 2 + 4));
    assert_eq!(of(NetworkShape::Ring, Some((6, None)), None), (6, 6, 6 + 6));
    assert_eq!(of(NetworkShape::Mesh, Some((5, None)), None), (5, 5, 5 + 10));
    assert_eq!(of(NetworkShape::Dumbbell, None, Some(8)), (8, 2, 9));
    assert_eq!(of(NetworkShape::Grid, Some((4, Some(3))), None), (12, 12, 12 + 3 * 3 + 2 * 4));
    assert_eq!(of(NetworkShape::LeafSpine, Some((4, Some(3))), None), (8, 7, 8 + 12));
    // k³/4 hosts, 5k²/4 switches, and k³/4 links on each of three layers.
    assert_eq!(of(NetworkShape::FatTree, Some((4, None)), None), (16, 20, 48));
    assert_eq!(of(NetworkShape::FatTree, Some((6, None)), None), (54, 45, 162));
}

#[test]
fn a_waxman_network_follows_the_seed_and_is_in_one_piece() {
    let plan = |seed| NetworkPlan {
        size: Some((30, None)),
        values: LinkValues { delay: Some("20ms".into()), seed, ..LinkValues::default() },
        ..NetworkPlan::new(NetworkShape::Waxman)
    };
    assert_eq!(plan(3).scenario().unwrap(), plan(3).scenario().unwrap());
    assert_ne!(plan(3).scenario().unwrap(), plan(4).scenario().unwrap());
    for seed in 1..20 {
        let scenario = made(&plan(seed));
        let names: Vec<_> = scenario.hosts.iter().map(|host| host.name.clone()).collect();
        let last = names.last().unwrap();
        let traffic = format!("{{ constant = \"1/s\", from = {:?}, to = {last:?} }}", names[0]);
        scenario.clone().add_traffic(&[traffic]).expect("a path leads there");
        assert!(scenario.links.len() >= 30 + 29);
    }
}

#[test]
fn values_are_those_of_links_and_what_is_wrong_is_said() {
    let some = |text: &str| Some(text.to_owned());
    let with = |shape, values| NetworkPlan { values, ..NetworkPlan::new(shape) };
    let values = LinkValues {
        rate: some("10mbit"),
        delay: some("5ms"),
        edge_rate: some("1gbit"),
        queue: some("50 packets"),
        ..LinkValues::default()
    };
    let plan = with(NetworkShape::Dumbbell, values.clone());
    let text = plan.scenario().unwrap();
    assert_eq!(text.matches("rate = \"1gbit\"").count(), 4);
    assert!(text.contains(
        "[links.left-right]\nbetween = [\"left\", \"right\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\nqueue = \"50 packets\"\n"
    ));
    let star = with(NetworkShape::Star, LinkValues { rate: some("10mbit"), ..LinkValues::default() });
    assert_eq!(
        star.scenario().unwrap().matches("10mbit").count(),
        4,
        "the links of a star are those of its hosts"
    );
    let many = |edge_queue| {
        let values = LinkValues { edge_rate: some("10mbit"), edge_queue, ..LinkValues::default() };
        NetworkPlan {
            hosts: Some(1100),
            size: Some((4, Some(2))),
            values,
            ..NetworkPlan::new(NetworkShape::LeafSpine)
        }
    };
    assert_eq!(many(some("50 packets")).scenario().unwrap().matches("50 packets").count(), 1100);
    for (plan, words) in [
        (many(None), "`edge-1` and 1099 other links need a `queue`"),
        (with(NetworkShape::Star, LinkValues { rate: some("10"), ..LinkValues::default() }), "no unit"),
        (NetworkPlan { hosts: Some(0), ..NetworkPlan::new(NetworkShape::Star) }, "1 to 50000"),
        (NetworkPlan { size: Some((5, None)), ..NetworkPlan::new(NetworkShape::FatTree) }, "even"),
        (NetworkPlan { size: Some((5, None)), ..NetworkPlan::new(NetworkShape::Grid) }, "two sizes"),
        (NetworkPlan { size: Some((5, Some(2))), ..NetworkPlan::new(NetworkShape::Ring) }, "one size"),
        (with(NetworkShape::Ring, LinkValues { multipath: some("all"), ..LinkValues::default() }), "all"),
    ] {
        let error = plan.scenario().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

fn read(format: NetworkFormat, text: &str) -> String {
    let values = LinkValues { seed: 1, ..LinkValues::default() };
    format.scenario(text, "file", &values).unwrap_or_else(|error| panic!("{error}"))
}

fn names(text: &str) -> Vec<String> {
    Scenario::parse(text, "made").unwrap().hosts.iter().map(|host| host.name.clone()).collect()
}

fn refused(format: NetworkFormat, cases: &[(&str, &[&str])]) {
    for (text, words) in cases {
        let error = format.scenario(text, "net.file", &LinkValues::default()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    }
}

#[test]
fn a_list_of_links_becomes_hosts_and_routers() {
    let list = "a,b,rate,delay\n# access\nclient,r1,10mbit,5ms\nr1,r2,,20ms\n\nr2,server,1gbit,\n";
    let text = read(NetworkFormat::Csv, list);
    assert_eq!(names(&text), ["client", "server"]);
    assert_eq!(text.matches("[links.").count(), 3);
    // What the list leaves open comes from the flags.
    let values = LinkValues { rate: Some("7mbit".into()), ..LinkValues::default() };
    let text = NetworkFormat::Csv.scenario(list, "links.csv", &values).unwrap();
    assert_eq!(text.matches("rate = \"7mbit\"").count(), 1, "{text}");
    // Nobody is at the end of a triangle: each of its routers gets a host.
    assert_eq!(names(&read(NetworkFormat::Csv, "b,a\nx,y\ny,z\nz,x\n")), ["h-y", "h-x", "h-z"]);
}

#[test]
fn what_is_wrong_in_a_list_is_told_with_its_place() {
    refused(
        NetworkFormat::Csv,
        &[
            ("", &["empty"][..]),
            ("a,c\n", &["net.file:1", "`c`"]),
            ("a,rate\nx,1mbit\n", &["no column `b`"]),
            ("a,b\nx\n", &["net.file:2", "1 values", "2 columns"]),
            ("a,b\nx,y\nx,x\n", &["net.file:3", "itself"]),
            ("a,b,rate\nx,y,10\n", &["net.file:2", "`10`", "rate"]),
            ("a,b\nx y,z\n", &["net.file:2", "x y"]),
        ],
    );
}

const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d36" />
  <key attr.name="label" attr.type="string" for="node" id="d33" />
  <key attr.name="Latitude" attr.type="double" for="node" id="d29" />
  <key attr.name="Longitude" attr.type="double" for="node" id="d32" />
  <graph edgedefault="undirected">
    <node id="0"><data key="d29">51.5074</data><data key="d32">-0.1278</data><data key="d33">London</data></node>
    <node id="1"><data key="d29">40.7128</data><data key="d32">-74.006</data><data key="d33">New York</data></node>
    <node id="2"><data key="d33">New York</data></node>
    <node id="3" />
    <edge source="0" target="1"><data key="d36">10000000000.0</data></edge>
    <edge source="1" target="2" />
    <edge source="2" target="2" />
  </graph>
</graphml>"#;

#[test]
fn a_network_of_the_topology_zoo_has_a_host_at_each_place() {
    let text = read(NetworkFormat::GraphMl, ZOO);
    // A node that nothing is joined to is none of the network.
    assert_eq!(names(&text), ["h-London", "h-New-York", "h-New-York-2"]);
    assert!(
        text.contains("between = [\"London\", \"New-York\"]\nrate = \"10gbit\"\ndelay = \"2727"),
        "{text}"
    );
    for remark in
        ["# 1 edges from a node to itself", "# 1 edges have no coordinates", "# 1 edges have no LinkSpeedRaw"]
    {
        assert!(text.contains(remark), "{text}");
    }
    refused(
        NetworkFormat::GraphMl,
        &[
            ("<graphml", &["invalid GraphML", "net.file:1"][..]),
            ("<svg/>", &["<svg>", "<graphml>"]),
            ("<graphml>\n<graph>\n<node/></graph></graphml>", &["net.file:3", "`id`"]),
            ("<graphml><graph><edge source='1' target='2'/></graph></graphml>", &["no node `1`"]),
            ("<!DOCTYPE a [<!ENTITY b 'c'>]><graphml/>", &["invalid GraphML"]),
        ],
    );
}

#[test]
fn a_topology_of_containerlab_has_its_nodes_and_links() {
    let text = read(
        NetworkFormat::Containerlab,
        "name: lab\ntopology:\n  nodes:\n    srl1: { kind: nokia_srlinux }\n    srl2: { kind: nokia_srlinux }\n    \
         c1: { kind: linux }\n    c2: { kind: linux }\n    br: { kind: bridge }\n  links:\n    \
         - endpoints: [\"c1:eth1\", \"srl1:e1-1\"]\n    - endpoints: [\"srl1:e1-2\", \"srl2:e1-2\"]\n      mtu: 9000\n      \
         vars: { narrows: { rate: 10mbit, delay: 5ms } }\n    - type: veth\n      endpoints:\n        \
         - { node: srl2, interface: e1-1 }\n        - { node: c2, interface: eth1 }\n    \
         - endpoints: [\"br:eth2\", \"srl1:e1-3\"]\n    - endpoints: [\"srl1:e1-4\", \"host:srl1\"]\n    \
         - type: mgmt-net\n      endpoint: { node: c1, interface: eth5 }\n",
    );
    assert_eq!(names(&text), ["c1", "c2"]);
    assert!(text.contains("[switches.br]") && text.contains("[routers.srl1]"), "{text}");
    assert!(text.contains("rate = \"10mbit\"\ndelay = \"5ms\"\nmtu = \"9000\""), "{text}");
    assert!(text.contains("# 2 links to the host"), "{text}");
    let lab = "topology:\n  nodes: { a: {}, b: {} }\n  links:\n";
    refused(
        NetworkFormat::Containerlab,
        &[
            ("a: [", &["invalid YAML", "net.file:"][..]),
            ("name: x\n", &["no `topology`"]),
            ("topology: {}\n", &["no `nodes`"]),
            (&format!("{lab}    - endpoints: [\"a:1\", \"c:1\"]\n"), &["link 1", "no node `c`"]),
            (&format!("{lab}    - endpoints: [\"a:1\"]\n"), &["link 1", "1 endpoints"]),
            (
                &format!(
                    "{lab}    - {{ endpoints: [\"a:1\", \"b:1\"], vars: {{ narrows: {{ rat: 1mbit }} }} }}\n"
                ),
                &["unknown key `rat`"],
            ),
        ],
    );
}

#[test]
fn a_ring_of_switches_becomes_routers() {
    let ring = |last: &str| {
        let switch =
            |number: u8| format!(r#"{{ "number": "{number}", "opts": {{ "hostname": "s{number}" }} }}"#);
        let switches: Vec<String> = (1..=3).map(switch).collect();
        read(
            NetworkFormat::Mininet,
            &format!(
                r#"{{ "hosts": [{{ "opts": {{ "hostname": "h1" }} }}, {{ "opts": {{ "hostname": "h2" }} }}],
                    "switches": [{}],
                    "links": [{{ "src": "h1", "dest": "s1" }}, {{ "src": "h2", "dest": "s3" }},
                              {{ "src": "s1", "dest": "s2" }}, {{ "src": "s2", "dest": "s3" }}{last}] }}"#,
                switches.join(", ")
            ),
        )
    };
    let line = ring("");
    assert!(line.contains("[switches.s2]") && !line.contains("[routers."), "{line}");
    let ring = ring(r#", { "src": "s3", "dest": "s1" }"#);
    assert!(ring.contains("# switches form a ring") && ring.contains("[routers.s2]"), "{ring}");
}

#[test]
fn a_file_of_miniedit_has_its_hosts_switches_and_links() {
    let text = read(
        NetworkFormat::Mininet,
        r#"{ "application": {}, "controllers": [{}], "version": "2",
            "hosts": [{ "number": "1", "opts": { "hostname": "h1" } }, { "number": "2", "opts": { "hostname": "h2" } }],
            "switches": [{ "number": "1", "opts": { "hostname": "s1" } }],
            "links": [{ "src": "h1", "dest": "s1", "opts": { "bw": 10, "delay": "5ms", "loss": "1", "max_queue_size": "100" } },
                      { "src": "s1", "dest": "h2", "opts": { "delay": "200" } }] }"#,
    );
    assert_eq!(names(&text), ["h1", "h2"]);
    assert!(
        text.contains("rate = \"10mbit\"\ndelay = \"5ms\"\nloss = \"1%\"\nqueue = \"100 packets\""),
        "{text}"
    );
    assert!(text.contains("delay = \"200us\"") && text.contains("[switches.s1]"), "{text}");
    assert!(text.contains("# controllers were left out"), "{text}");
    refused(
        NetworkFormat::Mininet,
        &[
            ("{\n1", &["invalid JSON", "net.file:2"][..]),
            ("{}", &["`links`"]),
            (r#"{ "links": [{ "src": "h1", "dest": "h2" }] }"#, &["links 1", "`h1` (src)"]),
            (r#"{ "hosts": [{}], "links": [{}] }"#, &["hosts 1", "opts.hostname"]),
        ],
    );
}

//! What a person reads who made a mistake: the whole text.

use narrows_scenario::{LinkFlags, Scenario};

/// A scenario whose link has these lines, the first of which is line 6.
fn with(lines: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n{lines}\n")
}

#[track_caller]
fn fails(text: &str, expected: &str) {
    let error = Scenario::parse(text, "net.toml").expect_err("it is wrong");
    let found = error.to_string();
    assert_eq!(found, expected.trim_matches('\n'), "\n{found}\n");
}

#[test]
fn unknown_key() {
    fails(
        &with("dealy = \"10ms\""),
        r#"
error: unknown key `dealy`
 --> net.toml:6:1
  |
6 | dealy = "10ms"
  | ^^^^^ in `links.access`
  |
  = help: did you mean `delay`?
  = help: allowed: `between`, `preset`, `shared`, `medium`, `cost`, `up`, `down`, `rate`, `delay`, `jitter`, `order`, `loss`, `queue`, `scheduler`, `overhead`, `duplicate`, `corrupt`, `reorder`, `slots`, `trace`, `profile`, `burst`, `netem`, `exact-netem`, `mtu`, `line-limit`, `outage`, `ingress`, `policer`, `rules`, `tables`, `nats`, `pipes`, `queues`, `one-pass`, `allow-missing`, `interface` or `disabled-sets`
"#,
    );
}

#[test]
fn missing_unit() {
    fails(
        &with("[links.access.down]\nrate = 10"),
        r#"
error: `10` has no unit
 --> net.toml:7:8
  |
7 | rate = 10
  |        ^^ in `links.access.down.rate`
  |
  = help: write a rate like "10mbit", "unlimited" or "down"; units: bit, kbit, mbit, gbit, tbit (steps of 1000), kibit, mibit, gibit, tibit (steps of 1024), each a second
"#,
    );
    fails(
        &with("queue = \"13\""),
        r#"
error: `13` has no unit
 --> net.toml:6:9
  |
6 | queue = "13"
  |         ^^^^ in `links.access.queue`
  |
  = help: write it like "13 packets" or "64kB"
"#,
    );
}

#[test]
fn a_unit_that_means_two_things() {
    fails(
        &with("rate = \"10kbps\"\nqueue = \"64kb\""),
        r#"
error: `kbps` is not a unit of a rate
 --> net.toml:6:8
  |
6 | rate = "10kbps"
  |        ^^^^^^^^ in `links.access.rate`
  |
  = help: `bps` is bytes per second in tc and bits per second elsewhere: use bits
  = help: write a rate like "10mbit", "unlimited" or "down"; units: bit, kbit, mbit, gbit, tbit (steps of 1000), kibit, mibit, gibit, tibit (steps of 1024), each a second

error: `kb` is not a unit of a size
 --> net.toml:7:9
  |
7 | queue = "64kb"
  |         ^^^^^^ in `links.access.queue`
  |
  = help: ambiguous: use `kB`, `MB` (1000) or `KiB`, `MiB` (1024)
  = help: write a size like "64kB"; units: bytes, B, kB, MB, GB (steps of 1000), KiB, MiB, GiB (steps of 1024)
  = help: or a number of packets, like "13 packets"
"#,
    );
}

#[test]
fn negative_time() {
    fails(
        &with("delay = { normal = { mean = \"-10ms\", sd = \"1ms\" } }"),
        r#"
error: `-10ms` is below zero
 --> net.toml:6:29
  |
6 | delay = { normal = { mean = "-10ms", sd = "1ms" } }
  |                             ^^^^^^^ in `links.access.delay.normal.mean`
"#,
    );
}

#[test]
fn probability_over_one() {
    fails(
        &with("loss = 1.5"),
        r#"
error: `1.5` is more than 1
 --> net.toml:6:8
  |
6 | loss = 1.5
  |        ^^^ in `links.access.loss`
  |
  = help: a probability is from 0% to 100%
  = help: did you mean "1.5%"?
"#,
    );
    fails(
        &with("loss = { wire = \"101%\" }"),
        r#"
error: `101%` is more than 100%
 --> net.toml:6:17
  |
6 | loss = { wire = "101%" }
  |                 ^^^^^^ in `links.access.loss.wire`
  |
  = help: a probability is from 0% to 100%
"#,
    );
}

#[test]
fn two_links_with_one_name() {
    fails(
        &with("[links.access]\nbetween = [\"client\", \"server\"]"),
        r#"
error: duplicate links: `access`
 --> net.toml:6:8
  |
6 | [links.access]
  |        ^^^^^^
  |
  = help: give each link a unique name
"#,
    );
}

#[test]
fn no_such_host() {
    fails(
        &with("[links.other]\nbetween = [\"clinet\", \"moon\"]"),
        r#"
error: there is no host, junction, router or switch `clinet`
 --> net.toml:7:12
  |
7 | between = ["clinet", "moon"]
  |            ^^^^^^^^ in `links.other.between`
  |
  = help: did you mean `client`?

error: there is no host, junction, router or switch `moon`
 --> net.toml:7:22
  |
7 | between = ["clinet", "moon"]
  |                      ^^^^^^ in `links.other.between`
  |
  = help: add a line for it: [hosts.moon]
"#,
    );
}

#[test]
fn a_junction_of_three() {
    let spoke = |name: &str, host: &str| format!("[links.{name}]\nbetween = [\"{host}\", \"hub\"]\n");
    fails(
        &format!(
            "[hosts.a]\n[hosts.b]\n[hosts.c]\n[junctions.hub]\n{}{}{}",
            spoke("one", "a"),
            spoke("two", "b"),
            spoke("three", "c")
        ),
        r#"
error: 3 links meet at the junction `hub`
 --> net.toml:4:12
  |
4 | [junctions.hub]
  |            ^^^ in `junctions.hub`
  |
  = help: a junction joins exactly two links in series; use a router for more: [routers.hub]
"#,
    );
}

#[test]
fn a_shared_medium_with_a_direction_of_its_own() {
    fails(
        &with("shared = true\nup = { rate = \"1mbit\" }"),
        r#"
error: a shared medium has no `up` of its own
 --> net.toml:7:1
  |
7 | up = { rate = "1mbit" }
  | ^^ in `links.access`
  |
  = help: both directions share one wire: set its values in the link's own table
"#,
    );
}

#[test]
fn jitter_on_a_delay_that_varies() {
    fails(
        &with("jitter = \"2ms\"\ndown.delay = { uniform = { low = \"1ms\", high = \"5ms\" } }"),
        r#"
error: a jitter of 2ms on a delay that already varies (uniform from 1ms to 5ms)
 --> net.toml:6:1
  |
6 | jitter = "2ms"
  | ^^^^^^ in `links.access.jitter`
  |
  = help: `jitter` turns a constant delay into a normal distribution; remove one of the two, or set `jitter = "0ms"`
"#,
    );
}

#[test]
fn traffic_that_responds_or_has_a_protocol() {
    let traffic = |lines: &str| with(&format!("[[traffic]]\nfrom = \"client\"\nto = \"server\"\n{lines}"));
    fails(
        &traffic("aimd = { ecn = false, scalable = true }"),
        r#"
error: a scalable sender responds to marks, so that its packets are ECN-capable
 --> net.toml:9:10
  |
9 | aimd = { ecn = false, scalable = true }
  |          ^^^ in `traffic.aimd`
  |
  = help: leave `ecn` out, or `scalable`
"#,
    );
    fails(
        &traffic("aimd = {}\npackets = 5"),
        r#"
error: `packets` cannot be used with `aimd`
  --> net.toml:10:1
   |
10 | packets = 5
   | ^^^^^^^ in `traffic`
   |
   = help: give the amount in bytes: aimd = { size = "1000000 bytes" }
"#,
    );
    fails(
        &traffic("constant = \"1/s\"\nprotocol = \"icmp\"\nsource-port = 5"),
        r#"
error: packets of protocol icmp have no ports
  --> net.toml:11:1
   |
11 | source-port = 5
   | ^^^^^^^^^^^ in `traffic`
"#,
    );
}

#[test]
fn traffic_to_nowhere_and_a_timeline_of_another_link() {
    fails(
        &with("[[traffic]]\nfrom = \"client\"\nto = \"sevrer\"\nconstant = \"1000/s\""),
        r#"
error: there is no host or port `sevrer`
 --> net.toml:8:6
  |
8 | to = "sevrer"
  |      ^^^^^^^^ in `traffic.to`
  |
  = help: did you mean `server`?
"#,
    );
    fails(
        &with("[[timeline]]\nat = \"5s\"\nset = { \"acces.down.rate\" = \"1mbit\" }"),
        r#"
error: there is no link `acces`
 --> net.toml:8:9
  |
8 | set = { "acces.down.rate" = "1mbit" }
  |         ^^^^^^^^^^^^^^^^^ in `timeline.set`
  |
  = help: did you mean `access`?
  = help: links: `access`
"#,
    );
}

#[test]
fn not_toml_not_a_scenario_not_a_file() {
    fails(
        &with("delay = \"10ms"),
        r#"
error: invalid TOML: invalid basic string, expected `"`
 --> net.toml:6:14
  |
6 | delay = "10ms
  |              ^
"#,
    );
    fails(
        "seed = 3\n",
        r#"
error: there is no link
 --> net.toml:1:1
  |
1 | seed = 3
  | ^
  |
  = help: a scenario has at least two hosts and a link: [links.access] with between = ["client", "server"]
"#,
    );
    let error = Scenario::load("nowhere/net.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        "error: the scenario `nowhere/net.toml` cannot be read: there is no such file"
    );
}

#[test]
fn everything_that_is_wrong_is_said_in_the_order_of_the_file() {
    let error =
        Scenario::parse(&with("rate = \"10mbt\"\ndelay = \"-5ms\"\nlos = \"1%\""), "net.toml").unwrap_err();
    let titles: Vec<String> =
        error.to_string().lines().filter(|l| l.starts_with("error")).map(Into::into).collect();
    assert_eq!(
        titles,
        ["error: `mbt` is not a unit of a rate", "error: `-5ms` is below zero", "error: unknown key `los`"]
    );
    assert_eq!(error.count(), 3);
}

#[track_caller]
fn flags_fail(flags: LinkFlags, expected: &str) {
    let found = Scenario::from_flags(&flags).expect_err("it is wrong").to_string();
    assert_eq!(found, expected.trim_matches('\n'), "\n{found}\n");
}

#[test]
fn flags() {
    flags_fail(
        LinkFlags::default().with("rate", "1.5mbt/0.5mbit").with("delay", "10ms"),
        r#"
error: `mbt` is not a unit of a rate
 --> command line:1:8
  |
1 | --rate 1.5mbt/0.5mbit --delay 10ms
  |        ^^^^^^ in `--rate`
  |
  = help: did you mean `mbit`?
  = help: write a rate like "10mbit", "unlimited" or "down"; units: bit, kbit, mbit, gbit, tbit (steps of 1000), kibit, mibit, gibit, tibit (steps of 1024), each a second
"#,
    );
    flags_fail(
        LinkFlags::default().with("rate", "10mbit/s"),
        r#"
error: `/` separates the value for down from the value for up
 --> command line:1:8
  |
1 | --rate 10mbit/s
  |        ^^^^^^^^ in `--rate`
  |
  = help: rates are per second: remove `/s`
"#,
    );
    flags_fail(
        LinkFlags::default().with("queue", "13 packets/4").with("loss", "5").with("seed", "x"),
        r#"
error: `5` is more than 1
 --> command line:1:8
  |
1 | --loss 5 --queue "13 packets/4" --seed x
  |        ^ in `--loss`
  |
  = help: a probability is from 0% to 100%
  = help: did you mean "5%"?

error: found `4`, expected a number of packets or bytes
 --> command line:1:30
  |
1 | --loss 5 --queue "13 packets/4" --seed x
  |                              ^ in `--queue`
  |
  = help: write it like "13 packets" or "64kB"

error: found `x`, expected a whole number from 0 to 18446744073709551615
 --> command line:1:40
  |
1 | --loss 5 --queue "13 packets/4" --seed x
  |                                        ^ in `--seed`
"#,
    );
}

#[track_caller]
fn assignment_fails(text: &str, expected: &str) {
    let mut scenario = Scenario::parse(&with("rate = \"1mbit\""), "net.toml").expect("it is right");
    let before = scenario.clone();
    let found = scenario.assign(text).expect_err("it is wrong").to_string();
    assert_eq!(found, expected.trim_matches('\n'), "\n{found}\n");
    assert_eq!(scenario, before, "a change that is wrong changes nothing");
}

#[test]
fn assignments() {
    assignment_fails(
        "access.down.rate=2mbt",
        r#"
error: `mbt` is not a unit of a rate
 --> set:1:18
  |
1 | access.down.rate=2mbt
  |                  ^^^^ in `access.down.rate`
  |
  = help: did you mean `mbit`?
  = help: write a rate like "10mbit", "unlimited" or "down"; units: bit, kbit, mbit, gbit, tbit (steps of 1000), kibit, mibit, gibit, tibit (steps of 1024), each a second
"#,
    );
    assignment_fails(
        "acess.rate=2mbit",
        r#"
error: there is no link `acess`
 --> set:1:1
  |
1 | acess.rate=2mbit
  | ^^^^^^^^^^
  |
  = help: did you mean `access`?
  = help: links: `access`
"#,
    );
    assignment_fails(
        "access.dwn.rate=2mbit",
        r#"
error: `dwn` is not a direction
 --> set:1:1
  |
1 | access.dwn.rate=2mbit
  | ^^^^^^^^^^^^^^^
  |
  = help: write access.up.rate, access.down.rate, or access.rate for both
"#,
    );
    assignment_fails(
        "access.down.rate",
        r#"
error: `access.down.rate` has no `=`
 --> set:1:1
  |
1 | access.down.rate
  | ^^^^^^^^^^^^^^^^
  |
  = help: write LINK.KEY=VALUE or LINK.down.KEY=VALUE, such as access.down.rate=2mbit
"#,
    );
}

#[test]
fn ingress_filters() {
    let head = "[hosts.client]\n[hosts.server]\n\n[links.access]\nbetween = [\"client\", \"server\"]\n";
    for (filter, expected) in [
        ("{ action = \"drop\", rate = \"1mbit\" }", "`rate` without `action = \"police\"`"),
        ("{ action = \"police\", rate = \"1mbit\" }", "a policer without `burst`"),
        ("{ action = \"police\", burst = \"20kB\" }", "a policer without `rate`"),
        (
            "{ action = \"police\", rate = \"1mbit\", burst = \"100B\" }",
            "a burst of 100 bytes is less than one packet of 1500 bytes",
        ),
        (
            "{ action = \"police\", rate = \"2mbit\", burst = \"20kB\", peakrate = \"1mbit\" }",
            "`peakrate`, 1mbit, is not above `rate`, 2mbit",
        ),
        ("{ match = { protocol = \"udp\" } }", "`action` is missing"),
        ("{ action = \"reject\" }", "`reject` is not an action of a filter"),
        ("[]", "an empty list, which matches no packet"),
    ] {
        let text = format!("{head}ingress = {filter}\n");
        let error = Scenario::parse(&text, "net.toml").expect_err(filter).to_string();
        assert!(error.contains(expected), "{filter}: {error}");
        assert!(error.contains("net.toml:6:"), "{error}");
    }
}

/// Only the lines around a place are rendered; of a very long line, a part.
#[test]
fn a_place_far_from_the_beginning_is_shown_as_any_other() {
    let before = "\n".repeat(100_000);
    let error =
        Scenario::parse(&with(&format!("{before}lss = \"1%\"\n")), "net.toml").unwrap_err().to_string();
    let near = Scenario::parse(&with("lss = \"1%\"\n"), "net.toml").unwrap_err().to_string();
    // The place is 100,000 lines further down, and its number as much wider.
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = 6;
    let moved = squeezed(&near).replace(&format!("toml:{line}:"), &format!("toml:{}:", line + 100_000));
    let moved = moved.replace(&format!(" {line} | lss"), &format!(" {} | lss", line + 100_000));
    assert_eq!(squeezed(&error), moved);
    let long = format!("{} = 1\n", "x".repeat(1 << 20));
    let error = Scenario::parse(&with(&long), "net.toml").unwrap_err().to_string();
    assert!(
        error.contains("unknown key `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…`") && error.len() < 70_000
    );
}

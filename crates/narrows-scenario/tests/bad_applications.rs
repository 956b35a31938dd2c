//! What a person reads who made a mistake in an application.

use narrows_scenario::Scenario;

/// The error about a source of traffic with these lines, the first of which is line 9.
#[track_caller]
fn fails(lines: &str, expected: &str) {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n\n[[traffic]]\n\
         from = \"client\"\nto = \"server\"\n{lines}\n"
    );
    let error = Scenario::parse(&text, "net.toml").expect_err("it is wrong");
    let found = error.to_string();
    assert_eq!(found, expected.trim_matches('\n'), "\n{found}\n");
}

/// The first line of that error.
#[track_caller]
fn says(lines: &str, title: &str) {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n[[traffic]]\n\
         from = \"client\"\nto = \"server\"\n{lines}\n"
    );
    let error = Scenario::parse(&text, "net.toml").expect_err("it is wrong").to_string();
    assert_eq!(error.lines().next(), Some(format!("error: {title}").as_str()), "{lines}\n{error}");
}

#[test]
fn the_place_and_what_is_allowed() {
    fails(
        r#"web = { load = "4mbit", users = 3, response = "10 kB" }"#,
        r#"
error: several starts of transactions are given
 --> net.toml:9:7
  |
9 | web = { load = "4mbit", users = 3, response = "10 kB" }
  |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ in `traffic.web`
  |
  = help: use one of: load = "4mbit", pace = "10/s", users = 20
"#,
    );
    fails(
        r#"file = { tcp = { congestion = "vegas" } }"#,
        r#"
error: `vegas` is not a congestion control
 --> net.toml:9:31
  |
9 | file = { tcp = { congestion = "vegas" } }
  |                               ^^^^^^^ in `traffic.file.tcp.congestion`
  |
  = help: allowed: `cubic`, `reno` or `none`
"#,
    );
    fails(
        "voip = { users = 1, duration = \"30s\", tcp = {} }",
        r#"
error: `tcp` cannot be used with UDP
 --> net.toml:9:39
  |
9 | voip = { users = 1, duration = "30s", tcp = {} }
  |                                       ^^^ in `traffic.voip`
  |
  = help: add protocol = "tcp"
"#,
    );
}

#[test]
fn what_is_missing_or_does_not_go_together() {
    for (lines, title) in [
        (r#"web = { pace = "1/s" }"#, "`response` is missing"),
        (r#"web = { response = "1 kB" }"#, "no start of transactions is given"),
        (r#"dns = {}"#, "no start of transactions is given"),
        (r#"voip = { users = 1 }"#, "`duration` is missing"),
        (r#"file = { load = "1mbit" }"#, "an endless transfer has no load"),
        (r#"web = { load = "1mbit", think = "1s", response = "1 kB" }"#, "`think` requires `users`"),
        (
            r#"web = { users = 1, arrivals = "constant", response = "1 kB" }"#,
            "`arrivals` requires `load` or `pace`",
        ),
        (r#"file = { users = 20, parallel = 10 }"#, "20 users, but at most 10 transactions at once"),
        (r#"voip = { users = 1, duration = "1s", talk = "1s" }"#, "`talk` and `silence` require each other"),
        (r#"dns = { pace = "1/s", tcp = {} }"#, "unknown key `tcp`"),
        (r#"dns = { pace = "1/s", patience = "1s" }"#, "unknown key `patience`"),
        ("web = { pace = \"1/s\", response = \"1 kB\" }\nprotocol = \"udp\"", "`web` does not run over udp"),
        ("dns = { pace = \"1/s\" }\nprotocol = \"tcp\"", "`dns` does not run over tcp"),
        ("voip = { users = 1, duration = \"1s\" }\nprotocol = \"sctp\"", "`voip` does not run over sctp"),
        ("file = {}\nlength = \"100 bytes\"", "`length` cannot be used with `file`"),
        ("file = {}\npackets = 3", "`packets` cannot be used with `file`"),
        ("file = {}\necn = \"ect0\"", "`ecn` cannot be used with `file`"),
        ("file = {}\ndestination-port = 0", "no host has a port 0"),
        ("file = {}\naimd = {}", "several packet timings are given"),
    ] {
        says(lines, title);
    }
}

#[test]
fn values_out_of_range() {
    for (lines, title) in [
        (
            r#"web = { pace = "4mbit", response = "1 kB" }"#,
            "found `4mbit`, expected transactions in a time, such as \"10/s\"",
        ),
        (
            r#"web = { load = "unlimited", response = "1 kB" }"#,
            "found `unlimited`, expected a rate above zero, such as \"1mbit\"",
        ),
        (
            r#"web = { users = 0, response = "1 kB" }"#,
            "found `0`, expected a number of users from 1 to 16384",
        ),
        (r#"web = { users = 1, response = "0B" }"#, "found `0B`, expected a size above zero"),
        (
            r#"web = { users = 1, response = {} }"#,
            "found a table, expected one of `exponential`, `pareto` and `mix`",
        ),
        (
            r#"web = { users = 1, response = { pareto = { mean = "1 kB", shape = 1 } } }"#,
            "found `1`, expected a number above 1, up to 1000, such as 1.5",
        ),
        (r#"web = { users = 1, response = { mix = [] } }"#, "a mix of 0 sizes"),
        (
            r#"dns = { users = 1, response = "1473 bytes" }"#,
            "found `1473 bytes`, expected a size from 1 to 1472 bytes",
        ),
        (r#"file = { tcp = { buffer = "1 kB" } }"#, "found `1 kB`, expected a size from 2 KiB to 1 GiB"),
        (
            r#"file = { tcp = { mtu = 500 } }"#,
            "found `500`, expected a number of bytes from 576 to 65535, such as 1400",
        ),
        (r#"file = { patience = "0s" }"#, "found `0s`, expected a time above zero"),
    ] {
        says(lines, title);
    }
}

fn explained(link: &str, lines: &str) -> narrows_scenario::Explanation {
    let text = format!(
        "duration = \"60s\"\n[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nfrom = \"client\"\nto = \"server\"\n{lines}\n"
    );
    Scenario::parse(&text, "net.toml").unwrap_or_else(|error| panic!("{error}")).explain()
}

#[test]
fn packets_that_are_too_long_for_the_path_are_warned_of() {
    let of = |lines| explained("up = { mtu = 1400 }", lines).warnings;
    assert_eq!(
        of("file = {}"),
        [
            "traffic-1: packets of up to 1500 bytes that must not be fragmented do not pass the MTU of 1400 of `access.up`; set `tcp = { mtu = 1400 }`"
        ]
    );
    assert_eq!(of("file = { tcp = { mtu = 1400 } }"), [""; 0]);
    assert_eq!(of("dns = { users = 1, request = \"1372 bytes\" }"), [""; 0]);
    assert_eq!(
        of("dns = { users = 1, request = \"1373 bytes\" }"),
        [
            "traffic-1: packets of up to 1401 bytes that must not be fragmented do not pass the MTU of 1400 of `access.up`"
        ]
    );
}

#[test]
fn check_says_what_an_application_comes_to() {
    let of = |lines| explained("", lines).traffic.concat();
    assert_eq!(
        of("web = { load = \"4mbit\", request = \"500 bytes\", response = \"9500 bytes\" }"),
        "traffic-1: client.access → server.access: requests of 500 bytes and responses of 9500 bytes; at random \
         (Poisson), 4mbit of application data, about 50.000 transactions a second, at most 1000 at once, given up \
         after 30s; TCP (cubic, window up to 65536 bytes)"
    );
    // 180 s in messages of 20 ms, both ways, 40 % of the time: 1,238,400 bytes for each of one call in 100 s.
    assert_eq!(
        of("voip = { pace = \"1/100s\", duration = \"3min\", talk = \"2s\", silence = \"3s\" }"),
        "traffic-1: client.access → server.access: calls of 180s, 172 bytes every 20ms both ways while somebody \
         talks; at random (Poisson), 1 every 100s, about 99.1kbit of application data, at most 1000 at once, given \
         up after 10s"
    );
}

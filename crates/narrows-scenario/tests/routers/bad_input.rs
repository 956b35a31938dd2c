//! What is wrong with routers, routes and their addresses.

use narrows_scenario::Scenario;

/// Two hosts, two routers, three links; `r1` has these lines.
fn with(lines: &str) -> String {
    format!(
        "[hosts.a]\n[hosts.b]\n[routers.r2]\n[links.in]\nbetween = [\"a\", \"r1\"]\n\
         [links.upper]\nbetween = [\"r1\", \"r2\"]\n[links.out]\nbetween = [\"r2\", \"b\"]\n[routers.r1]\n{lines}\n"
    )
}

/// The errors begin so, each with its place.
fn refused(text: &str, title: &str, help: &str) {
    let error = match Scenario::parse(text, "net.toml") {
        Ok(_) => panic!("{title}: it was read\n{text}"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(title), "{title}\n{error}");
    assert!(error.contains(help), "{help}\n{error}");
    assert!(error.contains(" --> net.toml:"), "{error}");
}

#[test]
fn routes_lead_to_what_there_is_by_links_that_there_are() {
    let route = |route: &str| with(&format!("routes = [{route}]"));
    for (text, title, help) in [
        (
            route("{ to = \"c\", via = \"in\" }"),
            "there is no host or router `c`",
            "in `routers.r1.routes.to`",
        ),
        (route("{ to = \"r1\", via = \"in\" }"), "a route of `r1` to itself", "routers.r1.routes.to"),
        (
            route("{ to = \"b\", via = \"out\" }"),
            "no link `out` at the router `r1`",
            "links here: `in` or `upper`",
        ),
        (route("{ to = \"b\", via = \"uper\" }"), "no link `uper`", "did you mean `upper`?"),
        (route("{ to = \"b\", via = [] }"), "a route with 0 ways", "1 to 64"),
        (route("{ to = \"b\", via = [\"in\", \"in\"] }"), "`in` is here twice", "give it more weight"),
        (route("{ to = \"b\", via = 5 }"), "found `5`, expected a link of this router", ""),
        (route("{ via = \"in\" }"), "`to` is missing", ""),
        (route("{ to = \"b\" }"), "`via` is missing", ""),
        (
            route("{ to = \"b\", via = \"in\", weights = [1, 2] }"),
            "`via` and `weights` differ in length: 1 and 2",
            "in the order of `via`",
        ),
        (
            route("{ to = \"b\", via = \"in\", weights = [0] }"),
            "found `0`, expected a weight from 1 to 1000000",
            "",
        ),
        (
            route("{ to = \"b\", via = \"in\", spread = \"random\" }"),
            "`random` is not a way to spread packets",
            "`flow` or `packet`",
        ),
        (
            route("{ to = \"b\", via = \"in\", metric = 5 }"),
            "unknown key `metric`",
            "`to`, `via`, `weights` or `spread`",
        ),
        (
            route("{ to = \"10.0.0.7/8\", via = \"in\" }"),
            "`10.0.0.7/8` has bits set beyond its prefix",
            "the network is 10.0.0.0/8",
        ),
        (route("{ to = \"fd00::/7/8\", via = \"in\" }"), "`fd00::/7/8` is not an address", "fd00::1/64"),
        (route("{ to = \"10.0.0.7\", via = \"in\" }"), "`10.0.0.7` is not an address", "its prefix length"),
        (
            route("{ to = \"b\", via = \"in\" }, { to = \"b\", via = \"upper\" }"),
            "a second route to `b`",
            "put several links into one route",
        ),
        (with("routes = \"b\""), "found `b`, expected a list of routes", "write routes = ["),
        (with("multipath = \"ecmp\""), "`ecmp` is not a kind of multipath", "`none`, `flow` or `packet`"),
        (with("mode = 1"), "unknown key `mode`", "`addresses`, `multipath` or `routes`"),
    ] {
        refused(&text, title, help);
    }
}

#[test]
fn names_are_told_apart() {
    for (text, title) in [
        (with("[routers.a]"), "a host and a router share the name `a`"),
        (with("[junctions.r2]"), "a junction and a router share the name `r2`"),
        (with("[links.r1]\nbetween = [\"a\", \"r2\"]"), "a router and a link share the name `r1`"),
        (with("[routers.\"r 3\"]"), "`r 3` cannot be the name of a router"),
    ] {
        refused(&text, title, "");
    }
    refused(
        &with("").replace("[\"r2\", \"b\"]", "[\"r3\", \"b\"]"),
        "there is no host, junction, router or switch `r3`",
        "add a line for it",
    );
}

#[test]
fn addresses_are_checked() {
    for (text, title, help) in [
        (
            with("addresses = [\"10.0.0.1/24\"]"),
            "the router `r1` is on 2 links: name the one that has 10.0.0.1/24",
            "addresses = { in = ",
        ),
        (with("addresses = { out = [\"10.0.0.1/24\"] }"), "the router `r1` is not on a link `out`", ""),
        (
            with("addresses = { in = [\"10.0.0.1/24\"] }"),
            "`a` and `r1` cannot reach each other",
            "in one network",
        ),
        (
            with("addresses = { in = [\"10.213.1.1/24\"] }")
                .replace("[hosts.a]", "[hosts.a]\naddresses = [\"10.213.1.9/24\"]"),
            "overlap: 10.213.1.0/24 and 10.213.1.0/24",
            "a separate network",
        ),
        (
            with("addresses = { in = [\"10.0.0.1/8\"] }")
                .replace("[hosts.a]", "[hosts.a]\naddresses = [\"10.0.0.9/8\"]"),
            "overlap: 10.213.",
            "a separate network",
        ),
        (
            with("addresses = { in = [\"10.0.0.1/24\"] }")
                .replace("[hosts.a]", "[hosts.a]\naddresses = [\"10.0.0.1/24\"]"),
            "`r1` and `a` have the address 10.0.0.1",
            "",
        ),
    ] {
        refused(&text, title, help);
    }
}

#[test]
fn costs_are_whole_numbers_from_1() {
    for cost in ["0", "65536", "\"1ms\"", "1.5"] {
        let text = with("").replace("[links.upper]", &format!("[links.upper]\ncost = {cost}"));
        refused(&text, "expected a cost from 1 to 65535", "links.upper.cost");
    }
}

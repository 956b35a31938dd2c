//! How flows and packets are spread over several ways.

use std::collections::BTreeMap;

use super::Run;

/// Two ways, told apart by their delays of 1 ms and 2 ms.
fn two_ways(router: &str) -> String {
    format!(
        "[hosts.a]\n[hosts.b]\n[routers.r2]\n[links.in]\nbetween = [\"a\", \"r1\"]\n\
         [links.lower]\nbetween = [\"r1\", \"r2\"]\ndelay = \"2ms\"\n\
         [links.upper]\nbetween = [\"r1\", \"r2\"]\ndelay = \"1ms\"\n\
         [links.out]\nbetween = [\"r2\", \"b\"]\n[routers.r1]\n{router}\n"
    )
}

/// Sends packets of so many flows, one after the other, and counts for each flow those by the way of 1 ms and of 2 ms.
fn count(text: &str, flows: u16, each: u64) -> BTreeMap<u16, [u64; 2]> {
    let mut run = Run::new(text);
    let to = run.address("b.out");
    let mut sent = Vec::new();
    for round in 0..each {
        for flow in 0..flows {
            let at = (round * u64::from(flows) + u64::from(flow)) * 1000;
            run.send(at, "a.in", to, flow, 64);
            sent.push((at, flow));
        }
    }
    let mut counts: BTreeMap<u16, [u64; 2]> = BTreeMap::new();
    for outcome in run.poll(1_000_000_000_000) {
        assert_eq!(outcome.place, "b.out");
        let (at, flow) = sent[outcome.number as usize];
        let way = match outcome.nanos - at {
            1_000_000 => 0,
            2_000_000 => 1,
            other => panic!("{other} ns"),
        };
        counts.entry(flow).or_default()[way] += 1;
    }
    counts
}

/// Pearson's statistic of what was counted against shares: with one degree of freedom it is above 10.83 once in a thousand.
fn chi_square(counts: [u64; 2], shares: [f64; 2]) -> f64 {
    let all = (counts[0] + counts[1]) as f64;
    let term = |(&count, share): (&u64, f64)| {
        let off = count as f64 - all * share;
        off * off / (all * share)
    };
    counts.iter().zip(shares).map(term).sum()
}

#[test]
fn by_flow_each_flow_keeps_to_one_way_and_shares_follow_weights() {
    for (router, shares) in [
        ("multipath = \"flow\"", [0.5, 0.5]),
        ("routes = [{ to = \"b\", via = [\"upper\", \"lower\"], weights = [2, 1] }]", [2.0 / 3.0, 1.0 / 3.0]),
        (
            "routes = [{ to = \"b\", via = [\"lower\", \"upper\"], weights = [900, 100], spread = \"flow\" }]",
            [0.1, 0.9],
        ),
    ] {
        let counts = count(&two_ways(router), 6000, 3);
        assert_eq!(counts.len(), 6000);
        let mut flows = [0, 0];
        for (flow, [upper, lower]) in &counts {
            assert!(matches!((upper, lower), (3, 0) | (0, 3)), "flow {flow}: {upper} and {lower}");
            flows[usize::from(*lower > 0)] += 1;
        }
        let statistic = chi_square(flows, shares);
        assert!(statistic < 10.83, "{flows:?} for {shares:?}: {statistic}");
    }
}

#[test]
fn by_packet_the_packets_of_one_flow_are_shared_30_to_70() {
    let router =
        "routes = [{ to = \"b\", via = [\"lower\", \"upper\"], weights = [30, 70], spread = \"packet\" }]";
    let counts = count(&two_ways(router), 1, 100_000)[&0];
    let statistic = chi_square(counts, [0.7, 0.3]);
    assert!(statistic < 10.83, "{counts:?}: {statistic}");
    // Each packet by itself: the way of one says nothing of the next. A flow of 100,000 has 2·0.3·0.7 changes a packet.
    let text = two_ways(router);
    let mut run = Run::new(&text);
    let to = run.address("b.out");
    for number in 0..20_000 {
        run.send(number * 10_000_000, "a.in", to, 1, 64);
    }
    let ways: Vec<bool> =
        run.poll(1_000_000_000_000).iter().map(|o| o.nanos - o.number * 10_000_000 == 2_000_000).collect();
    let changes = ways.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
    // The variance of the count is about 0.25 a packet: five times its root.
    assert!(changes.abs_diff(8400) < 355, "{changes}");
}

#[test]
fn without_multipath_the_link_whose_name_comes_first_counts() {
    assert_eq!(count(&two_ways(""), 50, 1).values().fold(0, |sum, ways| sum + ways[1]), 50);
    assert_eq!(
        count(&two_ways("").replace("links.lower", "links.zz"), 50, 1)
            .values()
            .fold(0, |sum, ways| sum + ways[0]),
        50
    );
    // A greater cost counts before the name.
    let costly = two_ways("multipath = \"packet\"").replace("[links.upper]", "[links.upper]\ncost = 3");
    assert_eq!(count(&costly, 50, 1).values().fold(0, |sum, ways| sum + ways[1]), 50);
}

#[test]
fn another_seed_spreads_flows_otherwise_and_one_more_router_does_not() {
    let text = two_ways("multipath = \"flow\"");
    let counts = count(&text, 200, 1);
    assert_ne!(counts, count(&format!("seed = 2\n{text}"), 200, 1));
    let more = format!("{text}[routers.another]\n[links.aside]\nbetween = [\"r1\", \"another\"]\n");
    assert_eq!(counts, count(&more, 200, 1));
}

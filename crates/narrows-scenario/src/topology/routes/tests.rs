use proptest::prelude::*;

use crate::scenario::Scenario;

/// Routers, links between them with their costs, and whether routers use all shortest paths. Each router has a host, and some
/// routers reach no other.
fn networks() -> impl Strategy<Value = (usize, Vec<(usize, usize, u16)>, bool)> {
    (2usize..7, any::<bool>()).prop_flat_map(|(routers, multipath)| {
        let link = (0..routers, 0..routers, 1u16..4).prop_filter("two ends", |(a, b, _)| a != b);
        (Just(routers), proptest::collection::vec(link, 0..10), Just(multipath))
    })
}

fn read(routers: usize, links: &[(usize, usize, u16)], multipath: bool) -> Scenario {
    let mut text = String::new();
    for router in 0..routers {
        let how = if multipath { "multipath = \"flow\"\n" } else { "" };
        text += &format!("[routers.r{router}]\n{how}[hosts.h{router}]\n");
        text += &format!("[links.edge{router}]\nbetween = [\"h{router}\", \"r{router}\"]\n");
    }
    for (number, (a, b, cost)) in links.iter().enumerate() {
        text += &format!("[links.l{number}]\nbetween = [\"r{a}\", \"r{b}\"]\ncost = {cost}\n");
    }
    Scenario::parse(&text, "t").unwrap_or_else(|error| panic!("{error}"))
}

proptest! {
    /// For every router and address, the links on shortest paths by Floyd and Warshall's distances.
    #[test]
    fn routes_are_shortest_paths((routers, links, multipath) in networks()) {
        let scenario = read(routers, &links, multipath);
        let mut far = vec![vec![None; routers]; routers];
        for (router, row) in far.iter_mut().enumerate() {
            row[router] = Some(0u32);
        }
        for &(a, b, cost) in &links {
            for (from, to) in [(a, b), (b, a)] {
                far[from][to] = Some(far[from][to].map_or(cost.into(), |known| known.min(cost.into())));
            }
        }
        for over in 0..routers {
            for from in 0..routers {
                for to in 0..routers {
                    if let (Some(one), Some(other)) = (far[from][over], far[over][to]) {
                        let sum = one + other;
                        far[from][to] = Some(far[from][to].map_or(sum, |known| known.min(sum)));
                    }
                }
            }
        }
        let topology = &scenario.topology;
        let ends = &topology.wiring.ends;
        for end in ends {
            // The routers at this network.
            let at = topology.wiring.domains[end.domain].iter().filter_map(|&end| topology.wiring.router(end));
            let at: Vec<usize> = at.collect();
            let nearest = |from: usize| at.iter().filter_map(|&to| far[from][to]).min();
            for router in 0..routers {
                let expected = if end.owner_name == format!("r{router}") {
                    Some(Vec::new())
                } else if at.contains(&router) {
                    Some(vec![end.link.clone()])
                } else {
                    nearest(router).map(|distance| {
                        let shortest = links.iter().enumerate().filter(|(_, (a, b, cost))| {
                            let other = if *a == router { b } else { a };
                            let is_here = *a == router || *b == router;
                            is_here && nearest(*other).is_some_and(|rest| rest + u32::from(*cost) == distance)
                        });
                        let most = if multipath { usize::MAX } else { 1 };
                        shortest.map(|(number, _)| format!("l{number}")).take(most).collect()
                    })
                };
                for address in &end.addresses {
                    let found = topology.routing.find(router, address.ip).map(|entry| {
                        entry.ways.iter().map(|way| ends[way.end].link.clone()).collect::<Vec<_>>()
                    });
                    prop_assert_eq!(found, expected.clone(), "{} at r{}", address.ip, router);
                }
            }
        }
    }
}

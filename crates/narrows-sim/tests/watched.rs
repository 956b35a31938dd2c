//! A run that is watched is the same, and one that is broken off is the beginning of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::cell::RefCell;
use std::fs;
use std::ops::ControlFlow;
use std::rc::Rc;

use narrows_core::Time;
use narrows_scenario::Scenario;
use narrows_sim::{Destination, SimOptions, simulate, simulate_watched};

mod common;

/// With `source`, of senders that do not respond, or do.
fn scenario(source: &str) -> Scenario {
    let text = format!(
        "duration = \"20s\"\n[hosts.client]\n[hosts.server]\n[links.l]\nbetween = [\"client\", \"server\"]\n\
         rate = \"10mbit\"\ndelay = \"20ms\"\nloss = \"1%\"\n\
         [[traffic]]\nfrom = \"client\"\nto = \"server\"\n{source}\n"
    );
    Scenario::parse(&text, "watched.toml").unwrap()
}

#[test]
fn what_is_broken_off_is_the_beginning_of_the_whole() {
    let folder = common::folder("watched");
    for (name, source) in [("even", "constant = \"9mbit\""), ("aimd", "aimd = {}")] {
        let scenario = scenario(source);
        let file = |of: &str| folder.join(format!("{name}-{of}.csv"));
        let options =
            |of: &str| SimOptions { packets: Some(Destination::File(file(of))), ..SimOptions::default() };
        let whole = simulate(&scenario, &options("whole")).unwrap();
        assert!(!whole.broken_off);
        let told: Rc<RefCell<Vec<Time>>> = Rc::default();
        let seen = Rc::clone(&told);
        let mut watch = move |at: Time| {
            seen.borrow_mut().push(at);
            ControlFlow::Continue(())
        };
        let watched = simulate_watched(&scenario, &options("watched"), &mut watch).unwrap();
        assert_eq!(watched.report, whole.report, "{name}");
        assert!(told.borrow().len() > 3 && told.borrow().is_sorted(), "{name}");

        let third = told.borrow()[2];
        let mut watch =
            |at: Time| if at >= third { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let part = simulate_watched(&scenario, &options("part"), &mut watch).unwrap();
        assert!(part.broken_off && part.report.notes[0].starts_with("interrupted after "), "{name}");
        assert!(part.report.end_ns <= third.nanos() && part.report.conservation.violations.is_empty());
        let of = |of: &str| fs::read_to_string(file(of)).unwrap();
        let (all, some) = (of("watched"), of("part"));
        assert_eq!(all, of("whole"), "{name}");
        assert!(all.starts_with(&some) && some.len() < all.len() && some.lines().count() > 500, "{name}");
    }
}

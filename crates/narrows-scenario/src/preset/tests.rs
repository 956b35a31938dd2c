//! What is wrong with a preset's file is found here, and not by whoever uses it.

use super::{ALL, Preset};
use crate::embedded::{TRACES, preset_trace};
use crate::way::Way;

#[test]
fn every_preset_says_all_that_there_is_to_say() {
    for name in Preset::names() {
        let preset = Preset::named(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!preset.about.is_empty() && !preset.chosen.is_empty(), "{name}");
        let links = preset.sources.iter().filter(|source| source.link.starts_with("http")).count();
        assert!(links > 0 && links == preset.sources.len(), "{name}: every source has a link");
        for way in [Way::Up, Way::Down] {
            assert!(!preset.keys(way).is_empty(), "{name}");
        }
        let figures = preset.figures;
        assert!(figures.round_trip.is_some() || figures.down.is_some(), "{name} gives no figure");
    }
    let mut names = Preset::names();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len(), "no name is taken twice");
}

#[test]
fn every_trace_is_used_and_every_trace_that_is_named_is_there() {
    let all: String = ALL.iter().map(|(_, text)| *text).collect();
    for (name, _) in TRACES {
        assert!(all.contains(&format!("\"preset:{name}\"")), "{name} is used by none");
    }
    for named in all.split("\"preset:").skip(1) {
        let name = named.split('"').next().unwrap();
        assert!(preset_trace(&format!("preset:{name}")).is_some(), "{name}");
    }
    assert_eq!(preset_trace("leo-satellite.csv"), None);
}

//! Presets: listed, shown with their sources, at work, overridden, refused.

use crate::common::{Scratch, finish, narrows, pair, run};

#[test]
fn presets_are_listed_and_shown_with_their_sources() {
    let list = finish(&mut narrows(["preset", "list"])).expect(0);
    assert!(list.out.contains("cable "), "{list}");
    assert!(
        list.out.contains("5.9mbit down, 1.6mbit up, round trip 63.5ms (measured: rates, round trip)"),
        "{list}"
    );
    let all = finish(&mut narrows(["preset", "list", "--json", "-"])).expect(0).json();
    let all = all["presets"].as_array().unwrap();
    assert!(all.len() > 10, "{all:?}");
    for preset in all {
        let name = preset["name"].as_str().unwrap();
        assert!(list.out.contains(name), "{name}");
        let shown = finish(&mut narrows(["preset", "show", name])).expect(0);
        assert!(shown.out.starts_with(&format!("{name}: ")), "{shown}");
        assert!(shown.out.contains("http"), "{shown}");
        let json = finish(&mut narrows(["preset", "show", name, "--json", "-"])).expect(0).json();
        assert_eq!(json["schema"], 1);
        for (key, value) in preset.as_object().unwrap() {
            assert_eq!(&json[key], value, "{name}: {key}");
        }
        assert!(json["sources"][0]["link"].as_str().unwrap().starts_with("http"), "{json}");
    }
}

#[test]
fn a_preset_is_checked_and_flags_change_it() {
    let link = |arguments: &[&str], name: &str| {
        let checked = narrows(["check", "--json", "-"].into_iter().chain(arguments.iter().copied()));
        let json = finish(&mut { checked }).expect(0).json();
        json["links"].as_array().unwrap().iter().find(|link| link["name"] == name).unwrap().clone()
    };
    let up = link(&["--preset", "cable"], "link.up");
    assert_eq!((up["rate"].as_str(), up["queue_bytes"].as_u64()), (Some("21.83mbit"), Some(614_000)));
    assert_eq!(up["mean_delay_ns"], 12_500_000);
    let flags = ["--rate", "1mbit", "--preset", "cable", "--queue", "10 packets"];
    let up = link(&flags, "link.up");
    assert_eq!((up["rate"].as_str(), up["queue_packets"].as_u64()), (Some("1mbit"), Some(10)));
    assert_eq!(up["mean_delay_ns"], 12_500_000, "the preset's");
}

/// Real packets have the preset's delays, and a log has all that a replay needs, traces of presets included.
#[test]
#[ignore = "needs namespaces, ping"]
fn a_preset_is_met_live_and_replayed() {
    let scratch = Scratch::new();
    let log = scratch.file("run.log");
    let flags = ["--preset", "leo-satellite", "--record", log.to_str().unwrap(), "--json", "-"];
    let report =
        finish(&mut run(flags, "ping -q -i 0.05 -c 20 $NARROWS_SERVER > /dev/null")).expect(0).json();
    for (from, to) in [("client.link", "server.link"), ("server.link", "client.link")] {
        let delay = &pair(&report, from, to)["delay"];
        // Its first satellite, one way; the handover at the start takes longer.
        let (min, max) = (delay["min_ns"].as_u64().unwrap(), delay["max_ns"].as_u64().unwrap());
        assert!(min >= 18_825_000 && max < 60_000_000, "{report:#}");
    }
    let ended = finish(&mut narrows(["sim", "--replay", log.to_str().unwrap()])).expect(0);
    assert!(ended.out.contains("delay by trace (22.633333ms on average)"), "{ended}");
}

#[test]
fn the_traces_of_presets_are_described_like_any_other() {
    let info = finish(&mut narrows(["trace", "info", "preset:leo-satellite.csv"])).expect(0);
    assert!(info.out.contains("trace of 60 s, 72 points"), "{info}");
    let done = finish(&mut narrows(["trace", "info", "preset:mars.csv"])).expect(2);
    assert!(done.err.contains("preset:mars.csv"), "{done}");
}

/// A scenario with a preset runs in virtual time, is recorded with what the preset came to, and keys count for more.
#[test]
fn a_scenario_with_a_preset_runs() {
    let scratch = Scratch::new();
    let text = "seed = 3\n[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n\
        preset = \"leo-satellite\"\nup.rate = \"5mbit\"\n\
        [[traffic]]\nfrom = \"client\"\nto = \"server\"\nconstant = \"7mbit\"\nlength = \"1500 bytes\"\n";
    let file = scratch.write("space.toml", text);
    let report = finish(&mut narrows(["sim", file.to_str().unwrap(), "--duration", "20s", "--json", "-"]));
    let report = report.expect(0).json();
    let rate = report["pairs"][0]["delivered"]["rate_bps"].as_f64().unwrap();
    // The queue is never empty, and half of what leaves in the two handovers' tenths of a second is lost.
    assert!((rate / 5e6 - 0.995).abs() < 0.003, "{rate}");
}

#[test]
fn a_preset_that_there_is_not_exits_with_2() {
    let scratch = Scratch::new();
    let file = scratch.write(
        "net.toml",
        "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\npreset = \"starling\"\n",
    );
    let file = file.to_str().unwrap();
    for (arguments, words) in [
        (&["preset", "show", "4gg"][..], &["`4gg` is not a preset", "did you mean `4g`?"][..]),
        (&["preset", "show"], &["NAME"]),
        (&["check", "--preset", "fiber"], &["`fiber` is not a preset", "did you mean `fibre`?", "--preset"]),
        (&["check", file], &["net.toml:5", "`starling` is not a preset", "narrows preset list"]),
        (&["check", "--preset", "leo-satellite", "--netem", "delay 1ms dealy"], &["dealy"]),
    ] {
        let done = finish(&mut narrows(arguments.iter().copied())).expect(2);
        for word in words {
            assert!(done.err.contains(word), "{word:?} is not said: {done}");
        }
        assert!(done.out.is_empty(), "{done}");
    }
}

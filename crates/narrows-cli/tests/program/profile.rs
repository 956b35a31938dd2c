//! Link profiles: described, drawn, refused, and at work in a simulation.

use std::fs;

use crate::common::{Scratch, finish, narrows, scenarios};

fn shipped(name: &str) -> String {
    scenarios().join("profiles").join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_profile_is_described_and_drawn() {
    let scratch = Scratch::new();
    let profile = shipped("802.11b-11-long.profile");
    let done = finish(&mut narrows(["profile", "info", &profile])).expect(0);
    for line in [
        "rate        11mbit\n",
        "air time    527.091us to 1.147091ms extra per packet, 837.091us on average\n",
        " 1500 bytes 1.928ms each: at most 518.7 a second, 6.224 Mbit/s\n",
    ] {
        assert!(done.out.contains(line), "{done}");
    }
    let json = finish(&mut narrows(["profile", "info", &profile, "--json", "-"])).expect(0).json();
    assert_eq!((json["samples"].as_u64(), json["min_ns"].as_u64()), (Some(32), Some(527_091)));

    let figure = scratch.file("figure.svg");
    for (name, lines) in [("802.11b-11-long.profile", 4), ("ethernet-100.profile", 3)] {
        finish(&mut narrows(["profile", "plot", &shipped(name), "-o", figure.to_str().unwrap()])).expect(0);
        let printed = finish(&mut narrows(["profile", "plot", &shipped(name), "--svg"])).expect(0);
        let written = fs::read_to_string(&figure).unwrap();
        assert_eq!(written, printed.out);
        assert!(written.starts_with("<svg"), "{name}");
        assert_eq!(written.matches("<path class=\"line").count(), 2 * lines, "{name}: and in the legend");
    }
}

#[test]
fn what_the_file_leaves_open_is_told() {
    let scratch = Scratch::new();
    let file = scratch.write("paper.profile", "samples 3\nprob delay\n0 1\n0.5 1\n1 2\nloss-level 0.9\n");
    let done = finish(&mut narrows(["profile", "info", file.to_str().unwrap()])).expect(0);
    assert!(done.out.contains("samples 3 is the number of points"), "{done}");
    assert!(done.out.contains("rate        not given: the link's"), "{done}");
    assert!(
        done.out.contains("loss        10.0000 % of packets, after their air time (from 0.9 on)"),
        "{done}"
    );
    // The curve, and the level from which on packets are lost.
    let done = finish(&mut narrows(["profile", "plot", file.to_str().unwrap(), "--svg"])).expect(0);
    assert!(done.out.contains("from here on lost after that time"), "{done}");
    assert!(done.err.contains("note: samples 3 is the number of points"), "{done}");
}

#[test]
fn what_is_wrong_with_a_profile_is_said_and_exits_with_2() {
    let scratch = Scratch::new();
    let down = scratch.write("down.profile", "prob delay\n0.4 10\n0.2 20\n");
    let down = down.to_str().unwrap();
    for (arguments, words) in [
        (
            &["profile", "info", down][..],
            &["down.profile:3:1", "the probability decreases, from 0.4 to 0.2"][..],
        ),
        (&["profile", "plot", down, "-o", "x.svg"], &["down.profile:3:1"]),
        (&["profile", "plot", &shipped("ethernet-10.profile"), "-o", "x.png"], &["SVG"]),
        (&["profile", "info", "/nowhere/x.profile"], &["cannot read /nowhere/x.profile"]),
        (&["check", "--profile", down], &["down.profile:3", "--profile"]),
        (&["check", "--burst", "-3kB"], &["below zero", "--burst"]),
    ] {
        let done = finish(&mut narrows(arguments.iter().copied())).expect(2);
        for word in words {
            assert!(done.err.contains(word), "{word:?} is not said: {done}");
        }
        assert!(done.out.is_empty(), "{done}");
    }
}

#[test]
fn the_example_runs_as_fast_as_by_hand() {
    let example = scenarios().join("wifi-profile.toml");
    let example = example.to_str().unwrap();
    let done = finish(&mut narrows(["sim", example, "--json", "-"])).expect(0).json();
    let radio =
        || done["directions"].as_array().unwrap().iter().filter(|direction| direction["link"] == "radio");
    let busy: f64 = radio().map(|direction| direction["utilisation_share"].as_f64().unwrap()).sum();
    let sent: f64 = radio().map(|direction| direction["wire_bits"].as_f64().unwrap() / 12_000.0).sum();
    // Each packet takes 1928 µs on average; a slot number's standard deviation is 9.23.
    let (each, error) = (1_928e-6, 9.23 * 20e-6 / sent.sqrt());
    assert!(sent > 9_000.0);
    assert!((busy * 20.0 / sent - each).abs() < 4.0 * error + 2e-7, "{busy} of the time for {sent} packets");
}

//! `narrows dist` as a user meets it.

use crate::common::{Finished, Scratch, finish, narrows};

fn dist<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Finished {
    finish(&mut narrows(["dist"].into_iter().chain(arguments)))
}

/// 500 delays of a Pareto distribution of shape 2, from 5 ms on: its quantiles.
fn delays() -> String {
    let value = |i: i32| 5.0 / ((f64::from(i) + 0.5) / 500.0).sqrt();
    (0..500).map(|i| format!("{:.4}\n", value(i * 197 % 500))).collect()
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_fit_is_a_table_and_an_entry_that_a_scenario_takes() {
    let scratch = Scratch::new();
    let file = scratch.write("rtt.txt", &delays());
    let (json, plot) = (scratch.file("fit.json"), scratch.file("fit.svg"));
    let fit =
        dist(["fit", path(&file), "--unit", "ms", "--json", path(&json), "--plot", path(&plot)]).expect(0);
    let entry = fit.out.lines().last().unwrap();
    assert!(entry.starts_with("delay = { pareto = { shape = 2.0"), "{}", fit.out);
    assert!(entry.contains("minimum = \"5.00"), "{}", fit.out);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(json["fits"][0]["name"], "Pareto");
    assert_eq!(json["fits"][0]["entry"], entry);
    assert_eq!(json["count"], 500);
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("Pareto"));
    let delay = entry.strip_prefix("delay = ").unwrap();
    finish(&mut narrows(["check", "--delay", delay])).expect(0);
    // The same numbers with their unit beside them, as a column.
    let table: String = delays().lines().map(|line| format!("x,{line}ms\n")).collect();
    let file = scratch.write("rtt.csv", &format!("host,rtt\n{table}"));
    let again = dist(["fit", path(&file), "--column", "rtt"]).expect(0);
    assert_eq!(again.out.lines().last().unwrap(), entry);
    let json = dist(["fit", path(&file), "--column", "rtt", "--json", "-"]).expect(0).json();
    assert_eq!(json["fits"][0]["entry"], entry);
}

#[test]
fn a_table_is_made_for_netem_and_for_a_scenario() {
    let scratch = Scratch::new();
    let file = scratch.write("rtt.txt", &delays());
    let table = scratch.file("rtt.dist");
    let made = dist(["make", path(&file), "--unit", "ms", "-o", path(&table)]).expect(0);
    assert!(made.out.contains("4096 entries, as iproute2's maketable makes it"), "{}", made.out);
    assert!(made.out.contains("distribution rtt\n"), "{}", made.out);
    let text = std::fs::read_to_string(&table).unwrap();
    assert!(text.starts_with("# This is the distribution table for the experimental distribution.\n"));
    assert_eq!(text.split_whitespace().filter(|word| word.parse::<i16>().is_ok()).count(), 4096);
    let entry = made.out.lines().find_map(|line| line.strip_prefix("scenario: delay = ")).unwrap();
    finish(&mut narrows(["check", "--delay", entry])).expect(0);
    // On the standard output there is the table and nothing else.
    let printed = dist(["make", path(&file), "--unit", "ms"]).expect(0);
    assert_eq!(printed.out, text);
    // Without a unit only the shape counts, and it is the same.
    assert_eq!(dist(["make", path(&file), "--plain"]).expect(0).out, text);

    for kind in ["histogram", "cdf", "samples"] {
        let made = dist(["make", path(&file), "--unit", "ms", &format!("--toml={kind}")]).expect(0);
        let entry = made.out.strip_prefix("delay = ").unwrap_or_else(|| panic!("{}", made.out)).trim();
        assert!(entry.starts_with(&format!("{{ {kind} = ")), "{entry}");
        finish(&mut narrows(["check", "--delay", entry])).expect(0);
    }
    let gamma = ["make", "--distribution", "{ gamma = { shape = 2.5, scale = \"1ms\" } }"];
    let made = dist(gamma).expect(0);
    assert!(made.err.contains("by quantiles") && made.err.contains("mean 2.4"), "{}", made.err);
    assert!(dist(gamma.into_iter().chain(["--toml"])).expect(0).out.starts_with("delay = { histogram"));
}

#[test]
fn a_picture_is_svg_or_png() {
    let scratch = Scratch::new();
    let file = scratch.write("rtt.txt", &delays());
    let svg = scratch.file("rtt.svg");
    let fit = "{ exponential = { mean = \"2ms\" }, shift = \"5ms\" }";
    dist(["plot", path(&file), "--unit", "ms", "--fit", fit, "--fit", "10ms", "-o", path(&svg)]).expect(0);
    let text = std::fs::read_to_string(svg).unwrap();
    for words in
        ["Histogram", "Distribution function", "Longer delays", "Quantiles against quantiles", "exponential"]
    {
        assert!(text.contains(words), "{words}");
    }
    let plain = scratch.file("plain.svg");
    dist(["plot", path(&file), "--unit", "ms", "-o", path(&plain)]).expect(0);
    let text = std::fs::read_to_string(plain).unwrap();
    assert!(
        text.contains("Longer delays") && !text.contains("Quantiles"),
        "nothing to compare quantiles with"
    );
}

#[test]
#[ignore = "needs rsvg-convert"]
fn pictures_of_a_distribution_are_converted() {
    let scratch = Scratch::new();
    let (file, png) = (scratch.write("rtt.txt", &delays()), scratch.file("rtt.png"));
    dist(["plot", path(&file), "--unit", "ms", "-o", path(&png)]).expect(0);
    assert!(std::fs::read(png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn bad_input_is_refused_with_its_line() {
    let scratch = Scratch::new();
    let empty = scratch.write("empty.txt", "# nothing\n");
    let one = scratch.write("one.txt", "5\n");
    let same = scratch.write("same.txt", "5\n5\n5\n");
    let negative = scratch.write("negative.txt", "5\n-1\n");
    let nan = scratch.write("nan.txt", "5\n6\nNaN\n");
    let mixed = scratch.write("mixed.csv", "a,b\n1,2\n3\n");
    let days = scratch.write("days.txt", "5\n100000\n");
    let good = scratch.write("good.txt", "5\n6\n8\n");
    let missing = scratch.file("missing.txt");
    for (arguments, message) in [
        (&["fit", path(&empty), "--unit", "ms"][..], "empty.txt: there is no number in this file"),
        (&["fit", path(&one), "--unit", "ms"], "one.txt: there is one value, 5ms: no distribution"),
        (&["make", path(&one), "--unit", "ms"], "one.txt: there is one value, 5ms"),
        (&["plot", path(&same), "--unit", "ms", "-o", "x.svg"], "same.txt: all 3 values are equal, 5ms"),
        (&["fit", path(&negative), "--unit", "ms"], "negative.txt:2: `-1` is negative"),
        (&["fit", path(&nan), "--unit", "ms"], "nan.txt:3: found `NaN`, expected a delay"),
        (&["fit", path(&mixed), "--unit", "ms"], "mixed.csv:1: 2 columns: select one"),
        (
            &["fit", path(&mixed), "--unit", "ms", "--column", "b"],
            "mixed.csv:3: 1 column here, 2 columns on line 1",
        ),
        (
            &["fit", path(&days), "--unit", "s"],
            "days.txt:2: `100000` s is longer than a day: is the unit right?",
        ),
        (&["fit", path(&good)], "good.txt:1: `5` has no unit"),
        (&["fit", path(&good), "--unit", "m"], "`m` is not a unit of these: ns, us, ms, s"),
        (&["fit", path(&missing), "--unit", "ms"], "cannot read"),
        (&["fit", path(&good), "--unit", "ms", "--plot", "fit.jpg"], "names end in .svg or .png"),
        (&["make"], "required"),
        (&["make", path(&good), "--distribution", "10ms"], "cannot be used with"),
        (&["make", "--distribution", "10ms"], "NetEm needs no table for that"),
        (&["make", "--distribution", "{ gama = { shape = 2, scale = \"1ms\" } }"], "gama"),
        (&["make", "--distribution", "{ feed = \"x\" }"], "a feed has no distribution"),
        (
            &["make", "--distribution", "{ exponential = { mean = \"1ms\" } }", "--toml=samples"],
            "needs a file of samples",
        ),
        (
            &["plot", path(&good), "--unit", "ms", "--fit", "{ normal = { mean = \"1\" } }", "-o", "x.svg"],
            "no unit",
        ),
    ] {
        let refused = dist(arguments.iter().copied()).expect(2);
        let text = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(message), "{arguments:?}: {refused}");
        assert_eq!(refused.out, "");
    }
}

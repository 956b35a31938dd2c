//! What is wrong with a file is said with its line, what was found and what is allowed.

use narrows_scenario::pattern::Pattern;
use narrows_scenario::trace::Trace;

#[test]
fn broken_traces_are_refused_with_the_line_what_was_found_and_what_is_allowed() {
    for (name, text, line, words) in [
        (
            "x.csv",
            "time_s,rate_mbit\n0,1\n5,2\n4.9,3\n",
            4,
            &["`4.9` goes back", "5s", "order of time"] as &[&str],
        ),
        ("x.csv", "time_s,rate_mbit\n0,nan\n", 2, &["found `nan`", "a rate"]),
        ("x.csv", "time_s,rate_mbit\n0,inf\n", 2, &["found `inf`", "a rate"]),
        ("x.csv", "time_s,rate_mbit\n0,-1\n", 2, &["`-1` is below zero"]),
        ("x.csv", "time_s,rate_mbit\n0,1e12\n", 2, &["too large for a rate", "at most 1000000000"]),
        ("x.csv", "time_s,rate_mbit\n1e99,1\n", 2, &["too large for a time"]),
        ("x.csv", "time_s,loss\n0,1.5\n", 2, &["too large", "from 0 to 1", "_percent"]),
        ("x.csv", "time_s,loss_percent\n0,101\n", 2, &["too large", "from 0 to 100"]),
        ("x.csv", "time_s,rate_mbit\n0,1,2\n", 2, &["found 3 cells, expected 2"]),
        ("x.csv", "time_s,rate_mbit,delay_ms\n0,1,\n", 2, &["the first row lacks a value"]),
        ("x.csv", "time_s,rate_mbit\n0\n1,2\n", 2, &["the first row lacks a value"]),
        (
            "x.csv",
            "time_s,rate_mbits\n0,1\n",
            1,
            &["`rate_mbits` is not a column", "did you mean `rate_mbit`?", "delay_ms"],
        ),
        ("x.csv", "time_s,rate_mbit,rate_kbit\n0,1,1\n", 1, &["duplicates another column"]),
        ("x.csv", "rate_mbit,delay_ms\n1,1\n", 1, &["there is no time column", "`time_s`"]),
        ("x.csv", "time_s\n1\n", 1, &["no column besides the time"]),
        ("x.csv", "time_s,rate_mbit\n", 1, &["no row with values"]),
        ("x.csv", "time_s,queue_packets\n0,0\n", 2, &["one packet or more"]),
        ("x.csv", "", 1, &["the file is empty"]),
        ("x.csv", "# only this\n\n", 1, &["the file is empty"]),
        ("x.up", "1\n2\n\n4\n", 3, &["an empty line", "whole milliseconds"]),
        ("x.up", "0\n0\n", 2, &["has no duration"]),
        ("x.up", "5\n3\n", 2, &["`3` goes back", "5"]),
        ("x.up", "1\n2.5\n", 2, &["found `2.5`", "whole milliseconds"]),
        ("x.up", "1\n-2\n", 2, &["found `-2`", "whole milliseconds"]),
        ("x.up", "1\n99999999999999999999999\n", 2, &["too large", "at most"]),
        ("x.up", "1\n18446744073709551615\n", 2, &["too large"]),
        ("x.raw", "0,1,1,1,1\n", 1, &["found `0`", "a time above zero"]),
        ("x.raw", "1,1,1,1\n", 1, &["found 4 cells", "5 (simple)"]),
        ("x.raw", "1,1,1,1,1\n1,1,0,1,1,1,0,0,0,0\n", 2, &["found 10 cells, expected 5"]),
        ("x.raw", "1,1,-2,1,1\n", 1, &["found `-2`", "-1 for no limit"]),
        ("x.raw", "1,1,1,4294967296,1\n", 1, &["too large", "4294967295"]),
        ("x.raw", "1,x,1,1,1\n", 1, &["found `x`", "a delay in whole nanoseconds"]),
        ("x.json", "{\n\"StaticBwConfig\": {\n\"bw\": \"12Mbit\" }}", 3, &["found `12Mbit`", "Mbps"]),
        ("x.json", "{\n\"StaticBwConfigs\": {}}", 2, &["unknown model", "did you mean `StaticBwConfig`?"]),
        ("x.json", "{\"StaticBwConfig\": {\"bw\": \"1Mbps\"},\n\"x\": 1}", 2, &["a second key"]),
        (
            "x.json",
            "{\"StaticBwConfig\": {\n\"bandwidth\": \"1Mbps\"}}",
            2,
            &["unknown key `bandwidth`", "`bw`"],
        ),
        ("x.json", "{\"StaticBwConfig\": {\n\"bw\": 12 }}", 2, &["found `12`", "\"12Mbps\""]),
        ("x.json", "{\"StaticBwConfig\":\n", 1, &["this is not JSON"]),
        ("x.json", "", 1, &["the file is empty"]),
        ("x.json", "{\"RepeatedBwPatternConfig\":{\"pattern\":[],\"count\":0}}", 1, &["has no duration"]),
        ("x.json", "{\"StaticBwConfig\":{\"duration\":\"0s\"}}", 1, &["has no duration"]),
        ("x.json", "{\"NormalizedBwConfig\":{\n\"step\":\"0s\"}}", 2, &["a time above zero"]),
        ("x.json", "{\"NormalizedBwConfig\":{\"duration\":\"9000days\",\"step\":\"1ns\"}}", 1, &["too long"]),
        ("x.json", "{\"SawtoothBwConfig\":{\n\"interval\":\"0s\"}}", 2, &["a time above zero"]),
        (
            "x.json",
            "{\"SawtoothBwConfig\":{\"bottom\":\"2Mbps\",\"top\":\"1Mbps\"}}",
            1,
            &["`bottom` is above `top`"],
        ),
        ("x.json", "{\"SawtoothBwConfig\":{\n\"duty_ratio\":1.1}}", 2, &["from 0 to 1"]),
        ("x.json", "{\"StaticLossConfig\":{\n\"loss\":[1.5]}}", 2, &["found `1.5`", "from 0 to 1"]),
        ("x.json", "{\"StaticLossConfig\":{}}", 1, &["`loss` is missing"]),
        ("x.json", "{\"StaticDelayPerPacketConfig\":{}}", 1, &["a delay for each packet"]),
        ("x.json", "{\"StaticRwndConfig\":{}}", 1, &["receive window"]),
        (
            "x.json",
            "{\"RepeatedBwPatternConfig\":{\"count\":2,\"pattern\":[{\"RepeatedBwPatternConfig\":{\"pattern\":[\n\
             {\"StaticBwConfig\":{}}]}}]}}",
            1,
            &["unreachable"],
        ),
        (
            "x.json",
            "{\"RepeatedBwPatternConfig\":{\"pattern\":[{\"StaticBwConfig\":{}},\n{\"StaticDelayConfig\":{}}]}}",
            2,
            &["different kinds"],
        ),
        ("x.json", "{\n\"id\": 0, \"rates\": [1, 2]}", 1, &["unknown format", "`netem-trace`"]),
        ("x.toml", "[StaticBwConfig]\nbw = \"1Mbps\nduration = 1\n", 2, &["invalid TOML"]),
        (
            "x.pattern",
            "pattern loss\nper packet\nlength 9\n1\n",
            1,
            &["loss per packet is not a trace", "per millisecond"],
        ),
        ("x", "?\n", 1, &["unknown format", "`mahimahi`"]),
        (
            "x.csv",
            "0,3.7,0.01,0.02\n1,3.5,0.01,0.02\n",
            1,
            &[
                "4 columns separated by commas, without a header",
                "`--columns time=1,rate=2,unit=mbyte,delay=4,delay-unit=s,loss=3,loss-unit=share`",
                "mbyte",
            ],
        ),
        (
            "x.csv",
            "1,5431368\n2,6703920\n",
            1,
            &["2 columns separated by commas", "`--columns time=1,rate=2,unit=bit`", "`mahimahi`"],
        ),
        (
            "x",
            "1;2;8\n1;3;9\n",
            1,
            &["3 columns separated by semicolons", "`--columns time=2,rate=1,unit=mbit`"],
        ),
        (
            "x",
            "7\t5\ta\n7\t5\tb\n",
            1,
            &["3 columns separated by tabs", "`--columns interval=1s,rate=1,unit=mbit`"],
        ),
    ] {
        let error = Trace::read(name, text.as_bytes(), None).expect_err(text).to_string();
        let place = format!("{name}:{line}:");
        for word in words.iter().copied().chain([place.as_str()]) {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let error = Trace::read("x.csv", b"time_s,rate_mbit\n0,\xff\n", None).unwrap_err().to_string();
    assert!(error.contains("0xff") && error.contains("UTF-8") && error.contains("x.csv:2"), "{error}");
    let error = Pattern::read("x", b"\xfe\xff\x00p").unwrap_err().to_string();
    assert!(error.contains("0xfe"), "{error}");
    // What another program wrote ahead of its text is no part of it.
    assert!(Trace::read("x.csv", b"\xef\xbb\xbftime_s,rate_mbit\n0,1\n", None).is_ok());
}

#[test]
fn broken_patterns_are_refused_likewise() {
    for (text, line, words) in [
        ("", 1, &["`pattern …` is missing"] as &[&str]),
        ("pattern loss\nlength 9\n1\n", 3, &["`per …` is missing"]),
        ("pattern loss\nper packet\n1\n", 3, &["`length …` is missing"]),
        ("pattern lost\nper packet\nlength 9\n", 1, &["found `lost`", "did you mean `loss`?"]),
        ("pattern rate\nper packet\nlength 9\n1 1mbit\n", 2, &["rate is not per packet", "`millisecond`"]),
        ("pattern loss\nper bit\nlength 9\n", 2, &["loss is not per bit"]),
        ("pattern loss\npattern loss\n", 2, &["duplicate"]),
        ("patern loss\n", 1, &["unknown word `patern`", "did you mean `pattern`?"]),
        ("pattern loss\nper packet\nlength 0\n", 3, &["one place or more"]),
        ("pattern loss\nper packet\nlength 9\n0\n", 4, &["count from 1"]),
        ("pattern loss\nper packet\nlength 9\n10\n", 4, &["beyond the length, 9"]),
        ("pattern loss\nper packet\nlength 9\n5\n5\n", 5, &["`5` is not after 5"]),
        ("pattern loss\nper packet\nlength 9\n5-3\n", 4, &["found `3`"]),
        ("pattern loss\nper packet\nlength 9\n5\nlength 10\n", 5, &["found `length 10`", "come first"]),
        ("pattern delay\nper packet\nlength 9\n", 1, &["is empty"]),
        ("pattern delay\nper packet\nlength 9\n2 1ms\n", 4, &["found `2`", "from the start"]),
        ("pattern delay\nper packet\nlength 9\n1 1ms\n1 2ms\n", 5, &["`1` is not after 1"]),
        ("pattern delay\nper packet\nlength 9\n1 1mbit\n", 4, &["not a unit of a time"]),
        ("pattern delay\nper packet\nlength 9\n1\n", 4, &["such as `1 10ms`"]),
        ("pattern loss\nper packet\nlength 99999999999999999999\n", 3, &["too large"]),
    ] {
        let error = Pattern::read("x.pattern", text.as_bytes()).expect_err(text).to_string();
        let place = format!("x.pattern:{line}:");
        for word in words.iter().copied().chain([place.as_str()]) {
            assert!(error.contains(word), "{word:?} is not in what is said of {text:?}:\n{error}");
        }
    }
}

mod any_bytes {
    use super::*;
    use narrows_scenario::trace::Format;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever comes in, there is a trace that can be written again, or an error that can be printed.
        #[test]
        fn nothing_ends_the_program(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "time_s", "time_ms", "rate_mbit", "delay_ms", "loss", ",", "\n", "0", "1", "17", "-1", "1e3", "nan",
                    "{", "}", "[", "]", "\"", ":", "StaticBwConfig", "RepeatedBwPatternConfig", "pattern", "count",
                    "bw", "12Mbps", "duration", "1s", "per packet", "per ms", "length 9", "loss", "µ", "\\", " ", ".",
                ]),
                0..40,
            ),
            format in prop::option::of(prop::sample::select(Format::ALL.to_vec())),
        ) {
            let text = parts.concat();
            match Trace::read("x", text.as_bytes(), format) {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(trace) => {
                    prop_assert!(trace.length().nanos() > 0);
                    prop_assert!(trace.write(Format::CSV).is_ok());
                    prop_assert!(!trace.info().to_string().is_empty());
                }
            }
            let _ = Pattern::read("x", text.as_bytes()).map_err(|error| error.to_string());
        }
    }
}

//! Tables that are read by the names of their columns, and what is said of those that are not.

use narrows_scenario::trace::{Columns, Format, Trace};

use crate::{at, delays, mbit, ms, rates, read, refused};

fn by(text: &str, columns: &str) -> Trace {
    let columns: Columns = columns.parse().expect("these are columns");
    Trace::read_columns("x.csv", text.as_bytes(), &columns).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn half_of_a_round_trip_is_the_delay() {
    for text in [
        "timestamp,latency(ms)\n2018-04-01T19:42:45,19\n2018-04-01T19:42:46,21.5\n",
        "time_s;rtt_ms\n0;19\n1;21.5\n",
        "frame.number,frame.time_epoch,tcp.analysis.ack_rtt\n\"4\",\"1757509684.1\",\"0.019\"\n\"9\",\"1757509685.1\",\"0.0215\"\n",
        "StartTime,LastTime,TcpRtt\n22:47:01.5,22:47:06,0.019\n22:47:02.5,22:47:03,0.0215\n",
        // An index without a name, as pandas writes it; names in quotes.
        ",time_s,Ping (ms)\n0,0,19\n1,1,21.5\n",
        "\"time_s\",\"rtt [ms]\"\n0,19\n1,21.5\n",
    ] {
        let trace = read("x.csv", text);
        assert_eq!((trace.length(), delays(&trace)), (ms(2000), vec![(0, 9500), (1000, 10_750)]), "{text}");
        let said = trace.remarks().join("\n");
        assert!(said.contains("round trip") && said.contains("is the one-way delay"), "{said}");
    }
    // A latency may be one way, which is said with how to take it.
    let said = read("x", "time_s,latency_ms\n0,19\n1,20\n").remarks().join("\n");
    assert!(said.contains("`--columns time=time_s,time-unit=s,delay=latency_ms,delay-unit=ms`"), "{said}");
    let whole = by("time_s,latency_ms\n0,19\n1,20\n", "time=time_s,delay=latency_ms");
    assert_eq!(delays(&whole), [(0, 19_000), (1000, 20_000)]);
    assert!(whole.remarks().join("\n").contains("`rtt=` instead of `delay=` takes half"), "{whole:?}");
}

#[test]
fn a_round_trip_beside_a_rate_is_left_out_until_asked_for() {
    let text = "time_s,throughput_mbps,rtt_ms\n0,5,40\n1,2.5,50\n";
    let trace = read("x.csv", text);
    assert_eq!(trace.columns(), ["rate"]);
    let said = trace.remarks().join("\n");
    let asked = "time=time_s,time-unit=s,rate=throughput_mbps,unit=mbit,rtt=rtt_ms,delay-unit=ms";
    assert!(said.contains("`rtt_ms` (a round trip)") && said.contains(asked), "{said}");
    assert_eq!(delays(&by(text, asked)), [(0, 20_000), (1000, 25_000)]);
}

#[test]
fn times_of_day_go_on_after_midnight() {
    let trace = read("x.csv", "time,rate_mbit\n23:59:59.5,1\n00:00:00.25,2\n00:00:01.25,3\n");
    assert_eq!(trace.length(), ms(2750));
    assert_eq!(trace.rate().map(|rates| rates[1].0), Some(at(750)));
    assert!(trace.remarks().join("\n").contains("the next day, 1 times"), "{trace:?}");
    let dated = by("10:00:00 PM,1\n10:00:02 PM,2\n", "time=1,time-unit=date,rate=2,unit=mbit");
    assert_eq!(dated.length(), ms(4000));
    refused("x.csv", "time,rate_mbit\n10:00:05,1\n10:00:04,2\n", &["`10:00:04` goes back"]);
    refused(
        "x.csv",
        "time,rate_mbit\n10:00:05,1\n2020-01-01,2\n",
        &["found `2020-01-01`, expected a time of day"],
    );
}

#[test]
fn of_several_series_one_is_asked_for() {
    let text = "timestamp,target,ip,rtt_ms\n2025-07-01T10:00:00,gw,a,0.8\n2025-07-01T10:00:00,quad9,b,15\n\
        2025-07-01T10:00:02,gw,a,0.9\n2025-07-01T10:00:02,quad9,b,\n";
    let one = "time=timestamp,time-unit=date,rtt=rtt_ms,delay-unit=ms,where=target:gw";
    refused("x.csv", text, &["several series", "`target`: `gw`, `quad9`", &format!("`--columns {one}`")]);
    assert_eq!(delays(&by(text, one)), [(0, 400), (2000, 450)]);
    let columns: Columns = one.replace(":gw", ":x").parse().unwrap();
    let error = Trace::read_columns("x", text.as_bytes(), &columns).unwrap_err().to_string();
    assert!(error.contains("no row has `x` in `target`") && error.contains("`gw` or `quad9`"), "{error}");
    // At other times, they are one series, which is said.
    let trace = read("x.csv", "time_s,host,rtt_ms\n0,a,5\n1,b,6\n2,a,7\n");
    let said = trace.remarks().join("\n");
    assert!(said.contains("2 values of `host` (`a`, `b`)") && said.contains("where=host:a"), "{said}");
    // Rows of whole seconds are one series if nothing tells them apart.
    assert_eq!(read("x", "time_s,rate_mbit,note\n0,1,a\n0,2,a\n1,3,b\n1,4,b\n").format(), Format::CSV);
}

#[test]
fn examples_are_made_of_the_columns_of_the_file() {
    for (text, words) in [
        (
            "Timestamp,Latency (ms),Jitter (ms),Download (Mbps),Upload (Mbps)\n1656622594.5,9,3,43,21\n1656622709,8,2,37,22\n",
            [
                "2 columns may be the rate: `Download (Mbps)` or `Upload (Mbps)`",
                "the columns are 1 `Timestamp`, 2 `Latency (ms)`, 3 `Jitter (ms)`, 4 `Download (Mbps)`",
                "`--columns time=Timestamp,rate=4,unit=mbit,rtt=2,delay-unit=ms`",
            ],
        ),
        (
            ",date,google,wiki\n0,2023-09-29 17:05:56,66.0,101.0\n1,2023-09-29 17:06:06,68.0,108.0\n",
            [
                "1 without a name, 2 `date`",
                "no column is a rate",
                "`--columns time=date,rate=google,unit=mbit`",
            ],
        ),
        (
            "Server ID,name,Time,Distance,Download\n4068,York,2018-04-01T18:42:03,5.5,5888372\n4069,York,2018-04-01T18:43:03,5.6,5788372\n",
            [
                "no column is a rate",
                "`--columns time=Time,rate=Download,unit=bit`",
                "`loss=COLUMN,loss-unit=percent`",
            ],
        ),
        (
            "time_s,loss,note\n0,12,a\n1,0,b\n",
            [
                "no column is a rate",
                "2 `loss`",
                "`--columns time=time_s,time-unit=s,loss=loss,loss-unit=percent`",
            ],
        ),
        ("frame.number,len\n1,60\n2,52\n", ["by its name", "`delay=COLUMN`", "time=frame.number,rate=len"]),
        (
            "time_s,rate_mbits\n0,1\n",
            [
                "`rate_mbits` is not a column",
                "did you mean `rate_mbit`?",
                "`--columns time=time_s,time-unit=s,rate=rate_mbits",
            ],
        ),
        (
            "host,time,Loss%,\na,2020-01-01,0\nb,2020-01-01,0\n",
            ["several series", "`host`: `a`, `b`", "where=host:a"],
        ),
        ("t;r\n1;2\n3;4;5\n", ["x.csv:3:", "found 3 cells", "the first line has 2"]),
    ] {
        refused("x.csv", text, &words);
    }
}

#[test]
fn json_objects_are_the_rows_of_a_table() {
    let text = "{\"time\": 0, \"bandwidth\": 5, \"net\": {\"rtt_ms\": 10}}\n{\"time\": 1, \"bandwidth\": 6, \"net\": {\"rtt_ms\": 12}}\n";
    let list = format!("[{}]", text.trim().replace('\n', ",\n"));
    let example = "`--columns time=time,rate=bandwidth,unit=mbit,rtt=net.rtt_ms,delay-unit=ms`";
    for text in [text, &list] {
        refused("x.csv", text, &["x.csv:1:", "`time` does not say the unit", "3 `net.rtt_ms`", example]);
        let trace = by(text, "time=time,rtt=net.rtt_ms");
        assert_eq!((trace.format(), delays(&trace)), (Format::JSON_ROWS, vec![(0, 5000), (1000, 6000)]));
    }
    for (text, words) in [
        (
            "{\"time_s\": 0, \"rate_mbit\": 5}\n{\"time_s\": 1, \"rate_mbit\": 1e99}\n",
            ["x.csv:2:", "`1e99` is too large for a rate"],
        ),
        ("{\"time_s\": 0, \"rate_mbit\": 5}\n\n{\"time_s\": 1, \"rate\n", ["x.csv:3:", "this is not JSON"]),
        (
            "{\"time_s\": 0, \"rate_mbit\": 5}\n{\"time_s\": 0, \"time_s\": 5}\n",
            ["x.csv:2:", "duplicate `time_s`"],
        ),
        ("[{\"time_s\": 0, \"rate_mbit\": 5},\n5]\n", ["x.csv:2:", "found `5`, expected an object"]),
        ("{\"a\": 0}\n{\"a\": 1}\n", ["x.csv:1:", "no two columns with names"]),
    ] {
        refused("x.csv", text, &words);
    }
}

#[test]
fn values_of_failed_measurements_are_missing() {
    let text = "time_s,rate_mbit,delay_ms,loss_pct,note\n0,-1,['20'],-1,\n1,['5'],[],0,\n2,[-1.0],[''],2,\n3,[6],-0.5,[],\n";
    let trace = read("x.csv", text);
    assert_eq!(rates(&trace), [(0, mbit(5)), (3000, mbit(6))]);
    assert_eq!(delays(&trace), [(0, 20_000)]);
    let said = trace.remarks().join("\n");
    for words in [
        "4 values are below zero",
        "5 values are missing; the one before",
        "2 values are missing at the beginning",
    ] {
        assert!(said.contains(words), "{said}");
    }
    // In the tables of narrows' own, they are slips.
    refused("x.csv", "time_s,rate_mbit\n0,5\n1,-1\n", &["x.csv:3:3", "`-1` is below zero"]);
}

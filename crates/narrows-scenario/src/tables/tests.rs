use narrows_core::Duration;

use super::*;

fn column(unit: Option<&str>, name: Option<&str>) -> SampleColumn {
    SampleColumn { unit: unit.map(|unit| unit.parse().unwrap()), name: name.map(Into::into), plain: false }
}

fn samples(text: &str, unit: Option<&str>, name: Option<&str>) -> Result<Vec<f64>, String> {
    let samples = read_samples("f", text.as_bytes(), &column(unit, name));
    samples.map(|samples| samples.nanoseconds()).map_err(|error| error.to_string())
}

#[test]
fn samples_are_a_number_a_line_or_a_column() {
    let nanos = [1_500_000.0, 2_000_000.0];
    assert_eq!(samples("1.5\n2\n", Some("ms"), None).unwrap(), nanos);
    assert_eq!(samples("# ping\n\n1.5 ms\r\n2000us", None, None).unwrap(), nanos);
    assert_eq!(samples("\u{feff}rtt\n1.5\n2e0", Some("ms"), None).unwrap(), nanos);
    assert_eq!(samples("time,rtt\n0,1.5\n1,2", Some("ms"), Some("rtt")).unwrap(), nanos);
    assert_eq!(samples("0;1.5;x\n1;2;y", Some("ms"), Some("2")).unwrap(), nanos);
    assert_eq!(samples("\"time\"\t\"rtt\"\n0\t1500\n1\t2000", Some("us"), Some("rtt")).unwrap(), nanos);
    assert_eq!(samples("0 1.5\n1   2", Some("ms"), Some("2")).unwrap(), nanos);
    let plain = SampleColumn { plain: true, ..SampleColumn::default() };
    assert_eq!(read_samples("f", b"-3\n0.5\n", &plain).unwrap().values, [-3.0, 0.5]);
    let read = read_samples("f", b"1.5\n\n2\n", &column(Some("ms"), None)).unwrap();
    assert_eq!((read.values, read.lines), (vec![1.5, 2.0], vec![1, 3]));
    let durations = read_samples("f", b"1.1\n", &column(Some("ms"), None)).unwrap().durations();
    assert_eq!(durations, [Duration::from_nanos(1_100_000)]);
}

#[test]
fn what_is_wrong_with_samples_is_said_with_the_line() {
    for (text, unit, name, error) in [
        ("", Some("ms"), None, "f: there is no number in this file"),
        ("# nothing\n", Some("ms"), None, "f: there is no number in this file"),
        ("1\n-2\n", Some("ms"), None, "f:2: `-2` is negative"),
        ("1\nNaN\n", Some("ms"), None, "f:2: found `NaN`, expected a delay"),
        ("nan\n1\n", Some("ms"), None, "f:1: found `nan`"),
        ("1\ninf\n", Some("ms"), None, "f:2: found `inf`"),
        ("1\n1e999\n", Some("ms"), None, "f:2: found `1e999`"),
        ("1\nthree\n", Some("ms"), None, "f:2: found `three`"),
        ("1\n2\n", None, None, "f:1: `1` has no unit: give the file's (ns, us, ms or s)"),
        ("1ms\n2\n", None, None, "f:2: `2` has no unit, but the number on line 1 has one"),
        ("1ms\n", Some("us"), None, "f:1: `1ms` has its own unit, but one is given"),
        ("1m\n", None, None, "f:1: `m` is not a unit of `1m`: ns, us, ms, s"),
        ("1\n90000\n", Some("s"), None, "f:2: `90000` s is longer than a day: is the unit right?"),
        ("90000s\n", None, None, "f:1: `90000s` is longer than a day"),
        ("1,2\n", Some("ms"), None, "f:1: 2 columns: select one by name or number"),
        ("a,b\n1,2\n", Some("ms"), None, "by name or number: `a` or `b`"),
        ("time,rtt\n1,2\n", Some("ms"), Some("rt"), "f:1: there is no column `rt`; did you mean `rtt`?"),
        ("time,rtt\n1,2\n", Some("ms"), Some("3"), "f:1: there is no column 3: 2 columns"),
        ("1,2\n", Some("ms"), Some("rtt"), "f:1: this line has no names"),
        ("a,b\n1,2\n3\n", Some("ms"), Some("b"), "f:3: 1 column here, 2 columns on line 1"),
        ("a,b\n1,2\n3,\n", Some("ms"), Some("b"), "f:3: found ``"),
    ] {
        let found = samples(text, unit, name).unwrap_err();
        assert!(found.contains(error), "{text:?}: {found:?} is not {error:?}");
    }
    let error = read_samples("f", b"1\n\xff\n", &column(Some("ms"), None)).unwrap_err();
    assert_eq!(error.to_string(), "f:2: not a text");
    assert!("m".parse::<TimeUnit>().is_err());
}

#[test]
fn a_dist_table_is_read_as_it_is_written() {
    let table: Vec<i16> = (0..20).map(|number| number * 1000 - 9000).collect();
    let text = write_dist("A table", &table);
    assert!(text.starts_with("# A table\n-9000 -8000 -7000 -6000 -5000 -4000 -3000 -2000\n"));
    assert_eq!(read_dist("f", text.as_bytes()).unwrap(), table);
    for (text, error) in [
        ("# no more\n", "f: there is no number in this table"),
        ("1 2\n3 40000\n", "f:2: found `40000`, expected a whole number from -32768 to 32767"),
        ("1 2.5\n", "f:1: found `2.5`"),
        (&format!("{}\n1\n", "7 ".repeat(16_384)), "f:2: this is number 16385; a table may have 16384"),
    ] {
        assert!(read_dist("f", text.as_bytes()).unwrap_err().to_string().starts_with(error), "{error}");
    }
}

#[test]
fn a_histogram_ends_with_a_row_of_count_0() {
    let micros = |micros: u64| Duration::from_nanos(micros * 1000);
    let bins = read_histogram("f", b"3000,5,ns\n4000,7,ns\n10,0,us\n", None).unwrap();
    assert_eq!(bins, [(micros(3), micros(4), 5.0), (micros(4), micros(10), 7.0)]);
    assert_eq!(read_histogram("f", b"3,5\n4,0\n", "us".parse().ok()).unwrap(), [(micros(3), micros(4), 5.0)]);
    for (text, error) in [
        ("", "f: there is no row in this file"),
        ("3,5,ns\n4,7,ns\n", "f:2: the last row ends the last bin, so its count has to be 0"),
        ("3,5,ns\n3,0,ns\n", "f:2: the bound 3ns is not above the previous one, 3ns"),
        ("3,5,ns\n4,-1,ns\n", "f:2: found `-1`, expected a count"),
        ("3,5,m\n", "f:1: found `m`, expected a unit"),
        ("3,5\n", "f:1: `3` has no unit"),
        ("-3,5,ns\n", "f:1: found `-3`, expected a delay from zero to a day"),
        ("3,0,ns\n4,0,ns\n", "f: all counts are 0"),
        ("3\n", "f:1: found `3`, expected lower bound,count,unit"),
    ] {
        let found = read_histogram("f", text.as_bytes(), None).unwrap_err().to_string();
        assert!(found.starts_with(error), "{text:?}: {found}");
    }
}

#[test]
fn a_distribution_function_rises_to_1() {
    let millis = |millis: u64| Duration::from_nanos(millis * 1_000_000);
    let points = read_cdf("f", b"delay,share\n1,0\n2,50%\n9,1\n", "ms".parse().ok()).unwrap();
    assert_eq!(points, [(millis(1), 0.0), (millis(2), 0.5), (millis(9), 1.0)]);
    for (text, error) in [
        ("", "f: there is no point in this file"),
        ("1ms,0\n2ms,0.5\n", "f:2: the last probability is 0.5, not 1"),
        ("1ms,0.6\n2ms,0.5\n3ms,1\n", "f:2: the probability falls, from 0.6 to 0.5"),
        ("2ms,0\n1ms,1\n", "f:2: the delay falls, from 2ms to 1ms"),
        ("1ms,1.5\n", "f:1: found `1.5`, expected a probability from 0 to 1"),
        ("1ms,nan\n", "f:1: found `nan`, expected a probability from 0 to 1"),
        ("1,1\n", "f:1: `1` has no unit"),
        ("1ms\n", "f:1: found `1ms`, expected delay,probability"),
    ] {
        let found = read_cdf("f", text.as_bytes(), None).unwrap_err().to_string();
        assert!(found.starts_with(error), "{text:?}: {found}");
    }
}

//! `narrows sched bench` as a user meets it. Nothing depends on how long anything takes, but that it takes some time.

use crate::common::{Finished, finish, narrows};

fn bench<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Finished {
    finish(&mut narrows(["sched", "bench"].into_iter().chain(arguments)))
}

/// The command that the work was ordered with, for fewer packets.
#[test]
fn a_program_gets_a_list_with_a_figure_for_each_algorithm() {
    let list = bench([
        "--algorithms",
        "none,fifo,prio,drr,qfq,wf2q+,kps,fq_codel",
        "--flows",
        "1::32k,2::4k,4::2k,8::1k,128::16,1k::1",
        "--qmin",
        "1n",
        "--qmax",
        "2n",
        "--packets",
        "100k",
        "--runs",
        "1",
        "--json",
    ])
    .expect(0)
    .json();
    let rows = list["runs"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["algorithm"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "fifo", "prio", "drr", "qfq", "wf2q+", "kps", "fq_codel"]);
    for row in rows {
        assert_eq!(row["flows"], 39_953);
        assert_eq!(row["qmin"], 39_953);
        assert_eq!(row["qmax"], 79_906);
        assert_eq!(row["packets"], 102_400);
        assert!(row["ns_per_packet"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row.as_object().unwrap().len(), 6);
    }
}

#[test]
fn a_person_gets_a_table_with_what_is_left_when_the_harness_is_taken_away() {
    let few = ["--packets", "10k", "--runs", "2"];
    let one = bench(["--algorithms", "none,fifo,drr", "--flowsets", "1::4,8:1500:2"].into_iter().chain(few));
    let one = one.expect(0).out;
    assert!(one.contains("1::4,8:1500:2: 6 flows; 0 to 120 packets wait"), "{one}");
    // Columns are as wide as their figures.
    let words = one.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" ns per packet min net of NONE to NONE to FIFO none "), "{one}");
    let several =
        bench(["--algorithms", "none,fifo,drr", "--flows", "1,8", "--flows", "1::4"].into_iter().chain(few));
    let several = several.expect(0).out;
    for title in ["ns per packet, p50/min", "net of NONE", "to NONE", "to FIFO"] {
        let heads =
            several.lines().find(|line| line.starts_with(title)).unwrap_or_else(|| panic!("{several}"));
        assert!(heads.split_whitespace().rev().take(3).eq(["1::4", "8", "1"]), "{heads}");
    }
    // Without NONE there is nothing to take away.
    let alone = bench(["--algorithms", "drr", "--flows", "1"].into_iter().chain(few)).expect(0).out;
    assert!(!alone.contains("NONE") && !alone.contains("FIFO"), "{alone}");
}

#[test]
fn every_algorithm_that_can_be_timed_is_timed() {
    let all = bench(["--flows", "3", "--packets", "1k", "--runs", "1"]).expect(0).out;
    for name in [
        "none",
        "fifo",
        "prio",
        "pfifo_fast",
        "drr",
        "wf2q+",
        "qfq",
        "gfq",
        "kps",
        "sfq",
        "fq_codel",
        "fq_pie",
        "hpd",
        "abe",
    ] {
        assert!(all.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {all}");
    }
}

#[test]
fn bad_words_are_refused_with_the_option_that_has_them() {
    for (arguments, message) in [
        (
            &["--algorithms", "none,sjf"][..],
            "--algorithms: `sjf` is not an algorithm that can be used here: none, fifo, prio, pfifo_fast, drr, wf2q+, qfq, gfq, kps, sfq, fq_codel, fq_pie, hpd, abe, tbf, htb, hfsc, cbq, all",
        ),
        (&["--algorithms", "dcf"], "--algorithms: `dcf` is not an algorithm that can be used here"),
        (&["--flows", "1::0"], "--flows: the number in `0` must be at least 1"),
        (&["--flows", "0"], "--flows: the number in `0` must be at least 1"),
        (&["--flows", "1::2:3"], "--flows: `1::2:3` is not a flow set; one is weight:maxlen:flows"),
        (&["--flows", "1::512,8"], "--flows: `1::512,8` has plain counts beside flow sets"),
        (&["--flows", "8g"], "--flows: `8g` is not a number; numbers look like"),
        (&["--flows", ";"], "--flows: no flows: name at least one load"),
        (
            &["--flows", "8", "--qmin", "20n"],
            "the load `8`: qmin (160 packets) must be less than qmax (160 packets)",
        ),
        (&["--qmin", "-1"], "--qmin: `-1` is not a number"),
        (&["--qmax", "many"], "--qmax: `many` is not a number"),
        (&["--packets", "0"], "--packets: a number of at least 1 is needed"),
        (&["--packets", "20n"], "--packets: a number of at least 1 is needed, the same for every load"),
        (&["--flows", "2k", "--qmax", "2m", "--qmin", "2048m"], "must be less than qmax"),
        (&["--flows", "2k", "--qmax", "2m", "--flows", "1", "--qmax", "2m"], "cannot be used multiple times"),
        (&["--flows", "1k", "--qmax", "4m", "--qmin", "3m", "--runs", "0"], "--runs"),
        (&["--flows", "2k", "--qmax", "2m", "--packets", "99999999999999999999"], "is not a number"),
        (&["--flows", "1024m", "--qmax", "4n"], "waiting packets are 4294967296; the maximum is 2147483648"),
    ] {
        let refused = bench(arguments.iter().copied()).expect(2);
        let text = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(message), "{arguments:?}: {refused}");
        assert_eq!(refused.out, "");
    }
}

/// A weight that a scheduler cannot serve is refused by it, with the flows that have it.
#[test]
fn flows_that_a_scheduler_does_not_take_are_named() {
    let refused = bench(["--algorithms", "none,prio", "--flows", "1::2,1m::3", "--packets", "100"]).expect(2);
    let expected = "the load `1::2,1m::3`: prio does not take the flows 1048576:1000:3: the band is 1048576, the last one \
                    is 262143";
    assert!(refused.err.contains(expected), "{refused}");
}

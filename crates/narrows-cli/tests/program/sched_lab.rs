//! `narrows sched fairness` and `narrows sched compare` as a user meets them.

use std::fs;

use crate::common::{Finished, Scratch, finish, narrows, scenarios};

fn sched<'a>(what: &'a str, arguments: impl IntoIterator<Item = &'a str>) -> Finished {
    finish(&mut narrows(["sched", what].into_iter().chain(arguments)))
}

#[test]
fn the_bounds_of_qfq_hold() {
    let ended = sched("fairness", ["--algorithm", "qfq", "--packets", "5000", "--flows", "40"]).expect(0);
    assert!(ended.err.is_empty(), "{ended}");
    let rows: Vec<&str> = ended.out.lines().filter(|line| line.starts_with("qfq ")).collect();
    // Seven kinds of traffic, in the table of promises and in that of distances.
    let (promises, distances) = rows.split_at(7);
    assert_eq!(distances.len(), 7, "{ended}");
    assert!(promises.iter().all(|row| row.ends_with("  hold")), "{ended}");
    assert!(rows.iter().all(|row| row.contains('%')), "{ended}");
    assert!(ended.out.lines().all(|line| line.chars().count() <= 100), "{ended}");
}

#[test]
fn fairness_for_a_program_and_as_a_figure() {
    let scratch = Scratch::new();
    let plot = scratch.file("burst.svg");
    let arguments =
        ["--algorithms", "FIFO,wf2q+", "--traffic", "burst,random", "--flows", "11", "--packets", "2K"];
    let arguments =
        arguments.into_iter().chain(["--longest", "1500", "--json", "--plot", plot.to_str().unwrap()]);
    let list = sched("fairness", arguments).expect(0).json();
    let rows = list["trials"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| (row["algorithm"].as_str(), row["traffic"].as_str())).collect();
    let expected = ["fifo", "wf2q+"].map(|name| [(Some(name), Some("burst")), (Some(name), Some("random"))]);
    assert_eq!(names, expected.as_flattened());
    for row in rows {
        assert_eq!((&row["packets"], &row["flows"]), (&2000.into(), &11.into()));
        match row["algorithm"].as_str() {
            Some("fifo") => assert!(row["holds"].is_null() && row["b_wfi"]["bound"].is_null(), "{row}"),
            _ => assert!(row["holds"] == true && row["b_wfi"]["bound"].as_f64() <= Some(1500.0), "{row}"),
        }
    }
    // Bennett and Zhang's example: the flows take turns with the heavy one, so that 19 packets go ahead of the last light
    // one, whose share of these is a twentieth.
    assert_eq!(rows[2]["shortfall"]["worst"], 19.0 * 1500.0 / 20.0);
    let svg = fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert!(svg.contains("fifo: behind the fluid system") && svg.contains("wf2q+: behind its share"));
}

#[test]
fn the_same_call_and_downloads_through_four_schedulers() {
    let arguments = ["--algorithms", "fifo,drr,qfq,fq_codel", "--duration", "8s"];
    let ended = sched("compare", arguments).expect(0);
    assert!(ended.err.is_empty(), "{ended}");
    for name in ["fifo", "drr", "qfq", "fq_codel"] {
        assert!(ended.out.lines().any(|line| line.starts_with(name)), "{ended}");
    }
    // The built-in scenario is the one in the folder, and nothing depends on when it runs.
    let file = scenarios().join("voip-and-bulk.toml");
    let again = sched("compare", arguments.into_iter().chain([file.to_str().unwrap()])).expect(0);
    let table = |text: &str| text.split_once('\n').map(|(_, table)| table.to_owned());
    assert_eq!(table(&ended.out), table(&again.out));
}

#[test]
fn compare_for_a_program_and_as_a_figure() {
    let scratch = Scratch::new();
    let plot = scratch.file("delays.svg");
    let adsl = scenarios().join("adsl.toml");
    let arguments =
        ["--algorithms", "fifo,fq_codel", "--duration", "5s", "--weights", "download=2", "--json", "--plot"];
    let arguments = arguments.into_iter().chain([plot.to_str().unwrap(), adsl.to_str().unwrap()]);
    let all = sched("compare", arguments).expect(0).json();
    assert_eq!(all["link"], "access.down");
    assert_eq!(all["seed"], 7);
    let [fifo, fq] = [0, 1].map(|run| &all["algorithms"][run]);
    let voice = |run: &serde_json::Value| {
        let flows = run["flows"].as_array().unwrap();
        let voice = flows.iter().find(|flow| flow["name"] == "voice-down").unwrap();
        voice["delay"]["p50_ns"].as_u64().unwrap()
    };
    // A full queue of 13 packets of 8 ms in front of it, or a turn after no more than one.
    assert!(voice(fifo) > 60_000_000 && voice(fq) < 40_000_000, "{all}");
    assert_eq!(fifo["flows"][0]["weight"], 2);
    assert!(fs::read_to_string(plot).unwrap().contains("voice-down"));
}

#[test]
fn all_are_those_that_the_link_can_have() {
    let adsl = scenarios().join("adsl.toml");
    let arguments = ["--algorithms", "all", "--duration", "1s", adsl.to_str().unwrap()];
    let ended = sched("compare", arguments).expect(0);
    assert!(ended.out.contains("\nprio is left out: `prio` has no classes\n"), "{ended}");
    assert!(
        ended.out.contains("\ndcf is left out: `dcf` does not support the link's rate, 1.5mbit\n"),
        "{ended}"
    );
    let all = sched("compare", arguments.into_iter().chain(["--json"])).expect(0).json();
    assert_eq!(all["algorithms"].as_array().unwrap().len(), 16);
    assert_eq!(all["left_out"][0]["algorithm"], "prio");
    assert_eq!(all["left_out"][1]["why"], "`ets` has no classes");
    assert_eq!(all["left_out"][2]["why"], "`taprio` has no classes");
    assert_eq!(all["left_out"][3]["why"], "`dcf` does not support the link's rate, 1.5mbit");
    let named = ["--traffic", "burst,all", "--packets", "1k", "--algorithm", "drr", "--json"];
    assert_eq!(sched("fairness", named).expect(0).json()["trials"].as_array().unwrap().len(), 7);
}

#[test]
fn what_is_wrong_is_said_with_what_is_allowed() {
    let says = |what: &str, arguments: &[&str], text: &str| {
        let ended = sched(what, arguments.iter().copied()).expect(2);
        assert!(ended.err.contains(text), "{ended}");
        assert!(ended.out.is_empty(), "{ended}");
    };
    says(
        "fairness",
        &["--algorithm", "sjf"],
        "`sjf` is not an algorithm that can be used here: fifo, prio, drr, wf2q+, qfq",
    );
    says("fairness", &["--flows", "1"], "the number of flows is 1: give 2 to 1048576");
    says("fairness", &["--longest", "20"], "the longest packet is 20: give 28 to 65536 bytes");
    says("fairness", &["--packets", "4n"], "--packets: ");
    says("fairness", &["--plot", "f.png"], "--plot f.png: plots are SVG");
    says("fairness", &["--traffic", "nice"], "possible values: random, greedy, burst");
    says("fairness", &["--plot", "/no/such/folder/f.svg"], "there is no folder /no/such/folder");
    says("compare", &["--algorithms", "fifo,sjf"], "`sjf` is not an algorithm");
    says(
        "compare",
        &["--link", "access.sideways"],
        "has no link `access.sideways`: there is access.down, access.up",
    );
    says("compare", &["--weights", "nobody=2"], "no traffic called `nobody` crosses access.down");
    says("compare", &["--weights", "call=0"], "a whole number above zero");
    says(
        "compare",
        &["--algorithms", "prio", scenarios().join("adsl.toml").to_str().unwrap()],
        "with prio: ",
    );
    let scratch = Scratch::new();
    let quiet = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\n";
    let quiet = scratch.write("quiet.toml", quiet);
    says("compare", &[quiet.to_str().unwrap()], "has no traffic to compare schedulers with");
}

#[test]
fn ratios_of_delays_for_a_person_a_program_and_as_a_figure() {
    let folder = Scratch::new();
    let plot = folder.file("ratios.svg");
    let few =
        ["--packets", "5K", "--ddp", "1,3", "--g", "0,1024", "--loads", "80,95", "--traffic", "poisson"];
    let table =
        sched("differentiation", few.into_iter().chain(["--plot", plot.to_str().unwrap()])).expect(0).out;
    assert!(table.contains("\npoisson, ddp 1:3: asked 3.00\n"), "{table}");
    assert!(fs::read_to_string(plot).unwrap().contains("g = 1024/1024"));
    let list = sched("differentiation", few.into_iter().chain(["--json"])).expect(0).json();
    let list = &list["points"];
    assert_eq!(list.as_array().unwrap().len(), 4);
    assert_eq!((&list[0]["g"], &list[3]["g"]), (&0.into(), &1024.into()));
    assert!(list[0]["theory"][0].as_f64().unwrap() > 1.5 && list[3]["theory"].is_null(), "{list}");
    for (arguments, text) in [
        (["--ddp", "2,1"], "--ddp: `2,1` is not a list of ascending whole numbers from 1"),
        (["--ddp", "1,0"], "--ddp: `1,0` is not a list"),
        (["--gamma", "1025"], "--gamma: `1025` is none of: exact, auto, a whole number from 0 to 1024"),
        (["--g", "2000"], "g is 2000, the maximum is 1024"),
        (["--loads", "100"], "the load is 100 %, and must be above 0 and below 100"),
        (["--ddp", "1"], "an experiment has from 2 to 32 classes"),
        (["--packets", "3n"], "--packets: a number is needed"),
    ] {
        let ended = sched("differentiation", arguments).expect(2);
        assert!(ended.err.contains(text), "{ended}");
    }
}

#[test]
fn the_program_says_where_published_evaluations_are() {
    for arguments in [&["lab"][..], &["lab", "dbhpd", "tail", "--out", "tail"]] {
        let ended = finish(&mut narrows(arguments.iter().copied())).expect(2);
        assert!(ended.err.contains("cargo run --release -p narrows-dbhpd -- --out dbhpd"), "{ended}");
    }
}

//! `narrows calibrate` as a user meets it. How exact this machine is does not matter here.

use std::fs;

use crate::common::{Scratch, finish, narrows};

#[test]
#[ignore = "needs namespaces"]
fn a_table_a_page_and_figures_that_agree() {
    let scratch = Scratch::new();
    let (json, page) = (scratch.file("host.json"), scratch.file("host.svg"));
    let flags = ["--json", json.to_str().unwrap(), "--plot", page.to_str().unwrap()];
    let ended = finish(&mut narrows(["calibrate", "--quick"].into_iter().chain(flags))).expect(0);
    assert!(ended.err.is_empty(), "{ended}");
    for part in [
        "The host's floor",
        "     mean       p50",
        "narrows    1ms",
        "100 links in series",
        "A delay of 10 ms",
        "32 links",
    ] {
        assert!(ended.out.contains(part), "{part} is missing: {ended}");
    }
    let figures: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert!(ended.out.contains(figures["verdict"].as_str().unwrap()), "{ended}");
    let rows = figures["accuracy"].as_array().unwrap();
    // The kernel's own stand beside it wherever the kernel has them, or it says that it has not.
    for path in ["pfifo-fast", "netem"] {
        let has = rows.iter().any(|row| row["path"] == path && row["one_way"]["values"].as_u64() > Some(0));
        let lacks = figures["lacking"].as_array().unwrap().iter().any(|other| other == path);
        assert!(has != lacks, "{path}: {ended}");
        let said = ended.out.contains(&format!("this kernel has no sch_{}", path.replace('-', "_")));
        assert_eq!(said, lacks, "{path}: {ended}");
    }
    for row in rows.iter().filter(|row| row["path"] == "narrows") {
        // However late: never early, but for the delays of a distribution below its percentiles.
        let (least, delay) = (&row["error"]["percentiles_ns"][0], &row["setting"]["constant"]);
        assert!(delay.is_null() || least.as_f64() > Some(0.0), "{row}");
        assert_eq!(
            row["one_way"]["values"].as_u64(),
            Some(row["sent"].as_u64().unwrap() - row["lost"].as_u64().unwrap())
        );
    }
    assert!(fs::read_to_string(page).unwrap().contains("Accuracy of this host"));
}

#[test]
#[ignore = "needs namespaces"]
fn an_end_that_is_asked_for_gives_what_there_is() {
    let scratch = Scratch::new();
    let path = scratch.file("host.json");
    let started = crate::common::start(&mut narrows(["calibrate", "--json", path.to_str().unwrap()]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    started.signal("INT");
    let ended = started.wait().expect(130);
    assert!(ended.err.contains("interrupted") && ended.out.contains("Interrupted before"), "{ended}");
    let figures: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert_eq!((figures["interrupted"].as_bool(), figures["schema"].as_u64()), (Some(true), Some(3)));
}

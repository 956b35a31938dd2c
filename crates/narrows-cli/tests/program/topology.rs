//! `narrows topology`: what it writes is checked, simulated and run by the other commands.

use std::fs;
use std::process::{Command, Stdio};

use crate::common::{NARROWS, Scratch, finish, narrows, quoted, run};

#[test]
fn each_shape_is_a_scenario_that_check_takes_from_stdin() {
    for (kind, hosts) in [
        ("star", "4 hosts"),
        ("line", "2 hosts"),
        ("ring", "4 hosts"),
        ("mesh", "4 hosts"),
        ("dumbbell", "4 hosts"),
        ("grid", "9 hosts"),
        ("leaf-spine", "8 hosts"),
        ("fat-tree", "16 hosts"),
        ("waxman", "10 hosts"),
    ] {
        let text =
            finish(&mut narrows(["topology", kind, "--rate", "10mbit", "--delay", "5ms"])).expect(0).out;
        let line = format!("printf %s {} | {NARROWS} check -", quoted(&text));
        let shown = finish(Command::new("sh").args(["-c", &line])).expect(0);
        assert!(
            shown.out.contains(hosts) || text.matches("[hosts.").count().to_string() + " hosts" == hosts,
            "{shown}"
        );
        assert!(shown.out.contains("standard input"), "{shown}");
    }
}

#[test]
fn what_is_wrong_is_said_in_the_words_of_the_command() {
    for (words, says) in [
        (&["fat-tree", "--size", "5"][..], "--size 5"),
        (&["grid", "--size", "5"], "two sizes"),
        (&["ring", "net.csv"], "reads no file"),
        (&["csv"], "name the file"),
        (&["csv", "x.csv", "--hosts", "4"], "do not apply to files"),
        (&["csv", "no/such.csv"], "no/such.csv` cannot be read: there is no such file"),
        (&["star", "--rate", "10"], "no unit"),
        (&["star", "--hosts", "60000"], "1 to 50000"),
    ] {
        let refused = finish(&mut narrows([&["topology"], words].concat())).expect(2);
        assert!(refused.err.contains(says) && refused.out.is_empty(), "{words:?}: {refused}");
    }
    let scratch = Scratch::new();
    let list = scratch.write("links.csv", "a,b,rate\nx,y,10mbit\ny,z,fast\n");
    let refused = finish(&mut narrows(["topology", "csv", list.to_str().unwrap()])).expect(2);
    assert!(
        refused.err.contains("links.csv:3:5") && refused.err.contains("`fast` is not a rate"),
        "{refused}"
    );
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_network_from_a_file_runs_and_one_comes_by_a_pipe() {
    let scratch = Scratch::new();
    let list = scratch.write("links.csv", "a,b,delay\none,r1,3ms\nr1,r2,4ms\nr2,two,\n");
    let text = finish(&mut narrows(["topology", "csv", list.to_str().unwrap()])).expect(0).out;
    let file = scratch.write("net.toml", &text);
    let line = "ping -q -c 2 -i 0.05 two";
    let ended = finish(&mut run([file.to_str().unwrap()], line)).expect(0);
    assert!(ended.out.contains("2 received"), "{ended}");
    let piped = format!("cat {} | {} run - --quiet -- {line}", file.display(), quoted(NARROWS));
    let ended = finish(Command::new("sh").args(["-c", &piped]).stdin(Stdio::null())).expect(0);
    assert!(ended.out.contains("2 received"), "{ended}");
    assert!(fs::read_to_string(&file).unwrap().starts_with("seed = 1\n"));
}

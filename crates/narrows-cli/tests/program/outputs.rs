//! Outputs overwrite no input, no scenario and no other output.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::common::{Scratch, finish, narrows};

/// Two hosts, a link between them, and `rest` in the link's table.
fn two_hosts(rest: &str) -> String {
    format!("[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{rest}\n")
}

/// A folder with inputs of all commands. Those in `net/` are named by a scenario and scripts there.
fn folder_of_inputs() -> Scratch {
    let scratch = Scratch::new();
    let plain = two_hosts("");
    let samples = "delay = { samples = { file = \"rtt.txt\", unit = \"ms\" } }";
    let played =
        "[[traffic]]\nname = \"t\"\nfrom = \"client\"\nto = \"server\"\ncapture = \"played.pcapng\"\n";
    let mobile = two_hosts(&format!("down = {{ trace = \"cell.csv\" }}\nup = {{ {samples} }}\n{played}"));
    let cell = "time_s,rate_mbit\n0,1\n1,2\n";
    let profile = "name measured\nsamples 2\nloss-level 0.9\nprob delay\n0 1\n1 5\n";
    let netem = |table| format!("tc qdisc add dev eth0 root netem delay 10ms 1ms distribution {table}\n");
    let pipe =
        |profile| format!("pipe 1 config bw 1Mbit/s profile {profile}\nadd pipe 1 ip from any to any out\n");
    fs::create_dir(scratch.file("net")).unwrap();
    for (name, text) in [
        ("net/mobile.toml", &*mobile),
        ("net/cell.csv", cell),
        ("net/rtt.txt", "10\n12\n11\n"),
        ("net/played.pcapng", "never read"),
        ("net/shape.sh", &netem("beside.dist")),
        ("net/rules.conf", &pipe("beside.profile")),
        ("net/beside.dist", "-8192 0 8192\n"),
        ("net/beside.profile", profile),
        ("a.toml", &plain),
        ("b.toml", &plain),
        ("cell.csv", cell),
        ("rtt.txt", "10\n12\n11\n"),
        ("list.txt", "0\n1\n"),
        ("some.profile", profile),
        ("mine.dist", "-8192 0 8192\n"),
        ("shape.sh", &netem("mine.dist")),
        ("rules.conf", &pipe("some.profile")),
        ("a.json", "{}"),
        ("a.csv", "series"),
        ("run.log", "log"),
        ("module.wasm", "module"),
        ("fig.svg", "an earlier figure"),
    ] {
        scratch.write(name, text);
    }
    fs::hard_link(scratch.file("rtt.txt"), scratch.file("hard.txt")).unwrap();
    symlink("net/cell.csv", scratch.file("link.csv")).unwrap();
    scratch
}

/// The name and the bytes of every file.
fn contents(scratch: &Scratch) -> Vec<(PathBuf, Vec<u8>)> {
    let in_folder = |folder: &Path| {
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    let mut files = [in_folder(scratch.path()), in_folder(&scratch.file("net"))].concat();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// No command overwrites a file that it reads, nor one output by another.
#[test]
fn outputs_spare_the_inputs_of_every_command() {
    const READ: &str = "this file is read";
    const BOTH: &str = "would both go to";
    let scratch = folder_of_inputs();
    let before = contents(&scratch);
    for (line, flag, said) in [
        // Files that an argument names.
        ("diff a.toml b.toml --json b.toml", "--json", READ),
        ("diff a.toml b.toml --json a.toml", "--json", READ),
        ("diff a.toml b.toml --json net/mobile.toml", "--json", "a file of scenarios"),
        ("compare a.json b.json --json a.json", "--json", READ),
        ("compare a.json,a.csv b.json --json a.csv", "--json", READ),
        ("report a.json --json a.json", "--json", READ),
        ("dist make rtt.txt --unit ms -o rtt.txt", "--output", READ),
        ("dist make rtt.txt --unit ms -o hard.txt", "--output", READ),
        ("dist fit rtt.txt --unit ms --json rtt.txt", "--json", READ),
        ("dist fit rtt.txt --unit ms --json fig.svg --plot fig.svg", "--plot", BOTH),
        ("dist fit rtt.txt --unit ms --json new.svg --plot net/../new.svg", "--plot", BOTH),
        ("dist fit rtt.txt --unit ms --json - --plot -", "--plot", "the standard output"),
        ("dist plot fig.svg --unit ms --plot fig.svg", "--plot", READ),
        ("trace info cell.csv --json cell.csv", "--json", READ),
        ("trace convert cell.csv cell.csv --resample 1s", "OUTPUT", READ),
        ("trace convert cell.csv -o cell.csv", "--output", READ),
        ("trace convert net/cell.csv link.csv", "OUTPUT", READ),
        ("trace convert cell.csv new.toml --to csv", "OUTPUT", "a file of scenarios"),
        ("trace plot fig.svg --plot fig.svg", "--plot", READ),
        ("pattern info list.txt --json list.txt", "--json", READ),
        ("pattern make loss --list list.txt -o list.txt", "--output", READ),
        ("profile info some.profile --json some.profile", "--json", READ),
        ("profile plot fig.svg -o fig.svg", "--plot", READ),
        ("plot fig.svg --plot fig.svg", "--plot", READ),
        ("tc check shape.sh --json shape.sh", "--json", READ),
        ("ipfw check rules.conf --json rules.conf", "--json", READ),
        ("sched compare a.toml --json a.toml", "--json", READ),
        ("sched compare --json fig.svg --plot fig.svg", "--plot", BOTH),
        ("sched fairness --json fig.svg --plot fig.svg", "--plot", BOTH),
        ("sched differentiation --json fig.svg --plot fig.svg", "--plot", BOTH),
        ("sched bench --plugin module.wasm --json module.wasm", "--json", READ),
        ("calibrate --json fig.svg --plot fig.svg", "--plot", BOTH),
        ("sweep a.toml --out a.toml", "--out", READ),
        ("probe 192.0.2.1 --output cell.csv --json cell.csv", "--json", BOTH),
        ("probe 192.0.2.1 --scenario new.toml --json new.csv", "--scenario", BOTH),
        ("check a.toml --json a.toml", "--json", READ),
        ("check --tc shape.sh --json shape.sh", "--json", READ),
        ("check --ipfw rules.conf --json rules.conf", "--json", READ),
        ("sim a.toml --series a.toml", "--series", READ),
        ("run a.toml --record a.toml -- true", "--record", READ),
        ("run --tc shape.sh --packets shape.sh -- true", "--packets", READ),
        ("run --record new --json new -- true", "--json", BOTH),
        ("sim --rate 1mbit --packets a.toml", "--packets", "results do not go to a file of scenarios"),
        ("sim --rate 1mbit --packets new --series net/../new", "--series", BOTH),
        ("sim --replay run.log --packets run.log", "--packets", READ),
        ("sim a.toml --capture new --series new", "--series", BOTH),
        ("up a.toml --record a.toml", "--record", READ),
        ("shell a.toml --capture a.toml", "--capture", READ),
        ("bridge x y a.toml --record a.toml", "--record", READ),
        ("route x y a.toml --series a.toml", "--series", READ),
        ("attach x a.toml --packets a.toml", "--packets", READ),
        ("interop --capture new --json new", "--json", BOTH),
        // Files that a scenario, a script or a value names.
        ("sim net/mobile.toml --series net/cell.csv", "--series", READ),
        ("sim net/mobile.toml --series link.csv", "--series", READ),
        ("sim net/mobile.toml --packets net/rtt.txt", "--packets", READ),
        ("sim net/mobile.toml --capture net/played.pcapng", "--capture", READ),
        ("sim --trace cell.csv --traffic aimd --packets cell.csv", "--packets", READ),
        ("sim a.toml --set access.down.trace=cell.csv --json cell.csv", "--json", READ),
        ("sim --ipfw rules.conf --traffic aimd --packets some.profile", "--packets", READ),
        ("sim --tc shape.sh --traffic aimd --packets mine.dist", "--packets", READ),
        ("sim --tc net/shape.sh --traffic aimd --packets net/beside.dist", "--packets", READ),
        ("sim --ipfw net/rules.conf --traffic aimd --packets net/beside.profile", "--packets", READ),
        ("check --trace cell.csv --json cell.csv", "--json", READ),
        ("sched compare net/mobile.toml --json net/cell.csv", "--json", READ),
        ("diff a.toml net/mobile.toml --json net/cell.csv", "--json", READ),
        ("ipfw check rules.conf --json some.profile", "--json", READ),
        ("tc check shape.sh --json mine.dist", "--json", READ),
        ("run net/mobile.toml --record net/cell.csv -- true", "--record", READ),
        ("run --trace cell.csv --packets cell.csv -- true", "--packets", READ),
        ("bridge x y net/mobile.toml --record net/rtt.txt", "--record", READ),
    ] {
        let ended = finish(narrows(line.split(' ')).current_dir(scratch.path())).expect(2);
        assert!(ended.err.contains(flag) && ended.err.contains(said), "{line}: {ended}");
        assert!(contents(&scratch) == before, "{line}");
    }
}

/// Inputs are not those of the same name in another folder, nor what an earlier command has written.
#[test]
fn other_files_may_be_written() {
    let scratch = folder_of_inputs();
    fs::remove_file(scratch.file("net/played.pcapng")).unwrap();
    let text = fs::read_to_string(scratch.file("net/mobile.toml")).unwrap();
    let (mobile, _) = text.split_once("[[traffic]]").unwrap();
    scratch.write("net/mobile.toml", mobile);
    for line in [
        "sim net/mobile.toml --traffic down:constant=500kbit --duration 1s --series cell.csv --json /dev/null --packets /dev/null",
        "dist fit rtt.txt --unit ms --json a.json --plot fig.svg",
        "dist make rtt.txt --unit ms -o mine.dist",
        "trace convert - - --from csv --to csv",
        "trace convert link.csv cell.csv",
        "check net/mobile.toml --json mobile.json",
    ] {
        let mut command = narrows(line.split(' '));
        command.current_dir(scratch.path()).stdin(fs::File::open(scratch.file("net/cell.csv")).unwrap());
        finish(&mut command).expect(0);
    }
}

//! Delays streamed into runs from outside.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::{
    Finished, NARROWS, Scratch, Started, direction, eventually, finish, narrows, pair, quoted, sound, start,
};
use crate::leftovers::{clean, turn};

/// One feed, upward; downward a plain wire.
fn scenario(scratch: &Scratch, feed: &str) -> String {
    let text = format!(
        "seed = 3\n[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n\
         up = {{ delay = {{ feed = \"radio\", {feed} }}, order = \"allow\" }}\n"
    );
    scratch.write("feed.toml", &text).into_os_string().into_string().unwrap()
}

/// The examples that come with the program.
fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/feeds").canonicalize().unwrap()
}

/// `narrows run` of a scenario and a line for the shell, in which `narrows` is the program.
fn run_line<'a>(arguments: impl IntoIterator<Item = &'a str>, line: &str) -> Command {
    let line = format!("narrows() {{ {} \"$@\"; }}; {line}", quoted(NARROWS));
    let mut command = narrows(["run"].into_iter().chain(arguments));
    command.args(["--", "sh", "-c", &line]);
    command
}

/// What the report says of the one feed.
#[track_caller]
fn fed(report: &Value) -> &Value {
    match report["feeds"].as_array().unwrap().as_slice() {
        [feed] => feed,
        other => panic!("one feed: {other:?}"),
    }
}

/// The delays of the packets that came in at a port, in their order, from a recorded run; nothing for a lost one.
fn delays(log: &Path, port: &str) -> Vec<Option<u64>> {
    let csv = log.with_extension("csv");
    let replay = ["sim", "--quiet", "--replay", log.to_str().unwrap(), "--packets", csv.to_str().unwrap()];
    finish(&mut narrows(replay)).expect(0);
    let text = fs::read_to_string(csv).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|other| *other == name).unwrap();
    let (of, number, verdict) = (column("port"), column("number"), column("verdict"));
    let (begin, end) = (column("arrival_ns"), column("departure_ns"));
    let instant = |text: &str| text.parse::<u64>().unwrap();
    let mut all: Vec<_> = rows
        .filter(|row| row[of] == port)
        .map(|row| {
            (instant(row[number]), row[verdict] == "delivered", instant(row[end]) - instant(row[begin]))
        })
        .collect();
    all.sort_unstable();
    all.into_iter().map(|(_, delivered, delay)| delivered.then_some(delay)).collect()
}

#[test]
#[ignore = "needs namespaces, ping"]
fn each_value_is_used_once_in_order_by_one_packet_and_a_replay_agrees() {
    let scratch = Scratch::new();
    let (scenario, log) = (scenario(&scratch, "on-empty = \"drop\""), scratch.file("run.log"));
    let line = "exec >&2
        seq 1 10 | sed 's/$/ms/' | narrows feed access.up/radio || exit 3
        printf '# a loss and bare numbers\\nlose\\n\\n11000000 # ns\\n12.5e6\\n' | narrows feed access || exit 4
        ping -q -i 0.02 -c 20 $NARROWS_SERVER; true";
    let flags = [&scenario, "--json", "-", "--record", log.to_str().unwrap()];
    let ended = finish(&mut run_line(flags, line)).expect(0);
    assert!(ended.err.contains("narrows: 10 values went to access.up/radio\n"), "{ended}");
    assert!(ended.err.contains("narrows: 3 values went to access.up/radio\n"), "{ended}");
    let report = ended.json();
    sound(&report);
    let feed = fed(&report);
    for (field, expected) in [
        ("taken_values", 13),
        ("used_values", 13),
        ("lost_packets", 1),
        ("underruns_packets", 7),
        ("waiting_values", 0),
        ("clamped_values", 0),
    ] {
        assert_eq!(feed[field], expected, "{field}: {feed:#}");
    }
    assert_eq!(feed["writers"]["writers"], 2, "{feed:#}");
    let ms = |ms: u64| Some(ms * 1_000_000);
    let mut expected: Vec<_> = (1..=10).map(ms).collect();
    expected.extend([None, ms(11), Some(12_500_000)]);
    expected.extend([None; 7]);
    assert_eq!(delays(&log, "client.access"), expected);
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_class_has_a_feed_of_its_own() {
    let scratch = Scratch::new();
    let (scenario, log) = (examples().join("../../scenarios/fed-class.toml"), scratch.file("run.log"));
    let line = "exec >&2
        printf '20ms\\nlose\\n30ms\\n' | narrows feed access.up/radio || exit 3
        ping -q -i 0.1 -c 4 $NARROWS_SERVER
        ping -q -i 0.1 -c 2 -Q 0xb8 $NARROWS_SERVER";
    let flags = [scenario.to_str().unwrap(), "--json", "-", "--record", log.to_str().unwrap()];
    let ended = finish(&mut run_line(flags, line)).expect(0);
    let report = ended.json();
    sound(&report);
    let feed = fed(&report);
    for (field, expected) in [("used_values", 3), ("lost_packets", 1), ("underruns_packets", 1)] {
        assert_eq!(feed[field], expected, "{field}: {feed:#}");
    }
    // 84 bytes at 10 Mbit/s take 67.2 µs; the last delay is used again; packets of the other class have none.
    let after = |ms: u64| Some(ms * 1_000_000 + 67_200);
    let expected = [after(20), None, after(30), after(30), after(0), after(0)];
    assert_eq!(delays(&log, "client.access"), expected);
}

#[test]
#[ignore = "needs namespaces, ping, awk"]
fn the_shells_one_liner_of_the_documentation() {
    let docs = fs::read_to_string(examples().join("../../docs/feeds.md")).unwrap();
    let block = docs.split("```sh\n").find(|block| block.contains("awk")).unwrap();
    let line = block.split("```").next().unwrap();
    let line = line.replacen("narrows run", &format!("{} run --json - --quiet", quoted(NARROWS)), 1);
    let line = line.replace("| narrows feed", &format!("| {} feed", quoted(NARROWS)));
    let mut command = Command::new("sh");
    command.args(["-c", &line]).env_remove("NARROWS_CONTROL").env_remove("NARROWS_RUN").stdin(Stdio::null());
    let ended = finish(&mut command).expect(0);
    let report = ended.json();
    let feed = fed(&report);
    assert!(feed["used_values"].as_u64() > Some(0), "{feed:#}");
    assert_eq!(feed["used_values"].as_u64().unwrap() + feed["underruns_packets"].as_u64().unwrap(), 20);
    let delay = &pair(&report, "client.link", "server.link")["delay"];
    assert!(delay["max_ns"].as_u64() <= Some(3_000_000), "{delay:#}");
}

/// A run that waits for a line on its standard input, and its control number and the socket of its feed.
fn waiting(scenario: &str, more: &[&str]) -> (Started, String, PathBuf) {
    let line = "echo feed $NARROWS_FEED ready >&2; read go; ping -q -i 0.02 -c 20 $NARROWS_SERVER >&2; true";
    let mut command = run_line([&[scenario, "--quiet"], more].concat(), line);
    let mut started = start(command.stdin(Stdio::piped()));
    let out = started.until_it_complains("ready");
    let path = PathBuf::from(out.split_whitespace().nth(1).unwrap());
    let run = started.id().to_string();
    (started, run, path)
}

fn values(integers: &[i64]) -> Vec<u8> {
    integers.iter().flat_map(|integer| integer.to_le_bytes()).collect()
}

/// The last integer before the connection ends.
fn last_word(mut stream: UnixStream) -> i64 {
    let mut all = Vec::new();
    // Where something was left unread the kernel says so, behind what we are after.
    let _ = stream.read_to_end(&mut all);
    i64::from_le_bytes(*all.last_chunk().unwrap())
}

#[test]
#[ignore = "needs namespaces, ping"]
fn a_feed_ends_well_with_its_run_and_there_is_one_writer() {
    let scratch = Scratch::new();
    let (mut started, run, path) = waiting(&scenario(&scratch, "lead = \"50 values\""), &["--json", "-"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));

    let listed = finish(&mut narrows(["feed", "--list", "--run", &run])).expect(0);
    assert_eq!(listed.out, format!("access.up/radio: {}\n", path.display()));
    let input = scratch.write("values.txt", "5ms\n");
    let input = || Stdio::from(fs::File::open(&input).unwrap());
    let mut feed = narrows(["feed", "access.up", "--repeat", "--run", &run]);
    let feeder = start(feed.stdin(input()));
    eventually("it has its place", || {
        let stats = finish(&mut narrows(["stats", "--json", "--run", &run])).expect(0).json();
        fed(&stats)["writers"]["writers"] == 1
    });
    let mut second = narrows(["feed", "access", "--run", &run]);
    let second = finish(second.stdin(input())).expect(2);
    assert!(second.err.contains("access.up/radio: another process writes to this feed"), "{second}");
    started.tell("go");
    let report = started.wait().expect(0).json();
    let ended = feeder.wait().expect(0);
    assert!(ended.err.contains("values went to access.up/radio; the run has ended"), "{ended}");
    assert!(!path.exists(), "{}", path.display());
    let feed = fed(&report);
    assert_eq!((&feed["used_values"], &feed["underruns_packets"]), (&20.into(), &0.into()), "{feed:#}");
    assert_eq!(feed["waiting_values"], 50, "no further ahead than the lead: {feed:#}");
    let delay = &pair(&report, "client.access", "server.access")["delay"];
    assert_eq!((&delay["min_ns"], &delay["max_ns"]), (&5_000_000.into(), &5_000_000.into()));
}

#[test]
#[ignore = "needs namespaces"]
fn what_is_no_value_is_told_with_its_line_and_which_feed_is_asked() {
    let scratch = Scratch::new();
    let text = "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n\
                up = { delay = { classes = [ { match = \"udp\", delay = { feed = \"voice\" } }, \
                { delay = { feed = \"rest\" } } ] } }\ndown = { delay = { feed = \"back\", ask = \"1ms\" } }\n";
    let scenario = scratch.write("several.toml", text);
    let scenario = scenario.to_str().unwrap();
    let feed = |arguments: &str, input: &str| {
        let line = format!("printf '{input}' | narrows feed {arguments}");
        finish(&mut run_line([scenario, "--quiet"], &line))
    };
    let wrong = feed("access.up/rest", "1ms\\n2ms\\n3 parsecs\\n4ms\\n").expect(2);
    assert!(wrong.err.contains("line 3: `3 parsecs` is not a value"), "{wrong}");
    assert!(wrong.err.contains("2 values went before it to access.up/rest"), "{wrong}");
    let torn = feed("--binary access.up/voice", "1234567").expect(2);
    assert!(torn.err.contains("the input ends with 7 bytes of an incomplete value"), "{torn}");
    let which = feed("access.up", "1\\n").expect(2);
    assert!(which.err.contains("name one of access.up/voice, access.up/rest"), "{which}");
    let none = feed("access.up/noise", "1\\n").expect(2);
    assert!(
        none.err
            .contains("no feed `access.up/noise`; feeds: access.down/back, access.up/voice, access.up/rest"),
        "{none}"
    );
    let by_name = feed("voice", "1h # as long as it may be\\n").expect(0);
    assert!(by_name.err.contains("1 value went to access.up/voice"), "{by_name}");
    let two_way = feed("access.down", "1\\n").expect(2);
    assert!(two_way.err.contains("is interactive"), "{two_way}");
    let environment =
        finish(&mut run_line([scenario, "--quiet"], "env | grep ^NARROWS_FEED | cut -d= -f1 | sort"));
    let names = "NARROWS_FEED_ACCESS_DOWN_BACK\nNARROWS_FEED_ACCESS_UP_REST\nNARROWS_FEED_ACCESS_UP_VOICE\n";
    assert_eq!(environment.out, names);
    let plain = finish(&mut run_line(["--quiet"], "narrows feed </dev/null")).expect(2);
    assert!(plain.err.contains("the run has no feeds"), "{plain}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_feed_comes_and_goes_while_the_run_goes_on() {
    let line =
        "narrows set 'link.up.delay={ feed = \"late\" }' && narrows feed --list && echo 1us | narrows feed
        path=$(narrows feed --list | cut -d' ' -f2); test -S $path || exit 3
        narrows set 'link.up.delay={ feed = \"late\", lead = \"7 values\" }' && test -S $path || exit 4
        narrows set link.up.delay=1ms && test ! -e $path || exit 5
        narrows feed --list";
    let ended = finish(&mut run_line(["--quiet"], line)).expect(0);
    assert!(ended.out.contains("link.up/late: ") && ended.out.ends_with("the run has no feeds\n"), "{ended}");
}

/// Nobody asks the run for anything meanwhile.
#[test]
#[ignore = "needs namespaces"]
fn feeds_of_the_timeline_come_and_go_at_their_instants() {
    let scratch = Scratch::new();
    let scenario = fs::read_to_string(scenario(&scratch, "lead = 8")).unwrap();
    let step = |at: &str, delay: &str| {
        format!("[[timeline]]\nat = \"{at}\"\nset = {{ \"access.down.delay\" = {delay} }}\n")
    };
    let steps = step("500ms", "{ feed = \"late\" }") + &step("2s", "\"1ms\"");
    let file = scratch.write("steps.toml", &(scenario + &steps));
    let line = "late=${NARROWS_FEED%up.radio.feed}down.late.feed
        test ! -e $late || exit 3
        until test -S $late; do sleep 0.02; done
        while test -e $late; do sleep 0.02; done
        test -S $NARROWS_FEED || exit 4";
    finish(&mut run_line(["--quiet", file.to_str().unwrap()], line)).expect(0);
}

#[test]
#[ignore = "needs namespaces, ping"]
fn whatever_writers_do_the_run_goes_on() {
    let scratch = Scratch::new();
    let (mut started, _, path) = waiting(&scenario(&scratch, "on-empty = \"last\""), &["--json", "-"]);
    let connect = || UnixStream::connect(&path).unwrap();
    // Garbage without end, after one value.
    let mut garbage = connect();
    garbage.write_all(&values(&[2_000_000])).unwrap();
    while garbage.write_all(&[0x80; 4096]).is_ok() {}
    assert_eq!(last_word(garbage), -2);
    // A value of which the end is missing.
    let mut torn = connect();
    torn.write_all(&values(&[2_000_000])[..5]).unwrap();
    drop(torn);
    // One that asks and asks and never reads. Then it is killed, as it were.
    let mut deaf = connect();
    deaf.write_all(&values(&[2_000_000])).unwrap();
    deaf.set_nonblocking(true).unwrap();
    while deaf.write_all(&values(&[-2; 512])).is_ok() {}
    drop(deaf);
    // One that is slow, while hundreds more want its place.
    let mut slow = connect();
    for byte in values(&[7_200_000_000_000]) {
        slow.write_all(&[byte]).unwrap();
    }
    let flood: Vec<_> = (0..200).map(|_| connect()).collect();
    slow.write_all(&values(&[2_000_000; 10])).unwrap();
    slow.write_all(&values(&[-2])).unwrap();
    let mut room = [0; 8];
    slow.read_exact(&mut room).unwrap();
    assert_eq!(i64::from_le_bytes(room), 4096 - 13);
    assert!(flood.into_iter().all(|other| last_word(other) == -1));
    // And holds on.
    started.tell("go");
    let ended = started.wait().expect(0);
    assert_eq!(last_word(slow), -3);
    let report = ended.json();
    sound(&report);
    let feed = fed(&report);
    let writers = &feed["writers"];
    for (field, expected) in
        [("writers", 4), ("refused_writers", 200), ("malformed_writers", 1), ("truncated_values", 1)]
    {
        assert_eq!(writers[field], expected, "{field}: {feed:#}");
    }
    assert_eq!((&feed["used_values"], &feed["underruns_packets"]), (&13.into(), &7.into()), "{feed:#}");
    assert_eq!(feed["clamped_values"], 1, "two hours are too much: {feed:#}");
    let link = direction(&report, "access.up");
    assert_eq!((&link["offered"]["packets"], &link["inside_packets"]), (&20.into(), &1.into()), "{link:#}");
}

#[test]
#[ignore = "needs namespaces"]
fn what_a_killed_run_leaves_of_feeds_is_cleaned_away() {
    let _turn = turn();
    let scratch = Scratch::new();
    let (started, _, path) = waiting(&scenario(&scratch, "lead = 1"), &[]);
    let mut writer = UnixStream::connect(&path).unwrap();
    writer.write_all(&values(&[1])).unwrap();
    started.signal("KILL");
    assert_eq!(started.wait().ended_by(), Some(9));
    assert!(path.exists(), "so that there is something to clean");
    let cleaned = clean();
    assert!(cleaned.out.contains(&format!("removed {}\n", path.display())), "{cleaned}");
    assert!(!path.exists());
}

/// A run with a program of the examples that feeds it, and 40 pings once `filled` says so.
fn with_example(scratch: &Scratch, feed: &str, program: &str, filled: &str) -> Finished {
    let log = scratch.file("run.log");
    let line = format!(
        "exec >&2; {program} & feeder=$!
         tries=0; until {filled}; do tries=$((tries + 1)); test $tries -lt 3000 || exit 3; sleep 0.02; done
         ping -q -i 0.01 -c 40 $NARROWS_SERVER; kill $feeder; wait; true"
    );
    let flags = [&scenario(scratch, feed), "--json", "-", "--record", log.to_str().unwrap()];
    finish(&mut run_line(flags, &line)).expect(0)
}

/// Until the feed has been given as many values as it takes.
const FULL: &str = "narrows stats --json | grep -q '\"writers\": 1'";

#[test]
#[ignore = "needs namespaces, ping, numpy"]
fn the_examples_in_python() {
    let folder = examples();
    let file = |name: &str| quoted(folder.join(name).to_str().unwrap());
    for (program, least, most) in [
        // Normal: 200 µs and eight times 25 µs around it.
        (format!("python3 {}", file("normal.py")), 0, 400_000),
        (format!("python3 {}", file("random_walk.py")), 9_000_000, 11_000_000),
        (format!("python3 {} {}", file("histogram.py"), file("delays.csv")), 150_000, 1_000_000),
    ] {
        let scratch = Scratch::new();
        let ended = with_example(&scratch, "on-empty = \"drop\"", &program, FULL);
        let report = ended.json();
        sound(&report);
        let delays: Vec<_> =
            delays(&scratch.file("run.log"), "client.access").into_iter().flatten().collect();
        let feed = fed(&report);
        assert_eq!(feed["used_values"], delays.len(), "{program}: {feed:#}");
        // The first packets may have been faster than numpy.
        assert!(!delays.is_empty(), "{program}: {feed:#}");
        assert!(delays.iter().all(|delay| (least..=most).contains(delay)), "{program}: {delays:?}");
    }
}

#[test]
#[ignore = "needs namespaces, ping, numpy"]
fn the_two_way_example_answers_by_length_and_protocol() {
    let scratch = Scratch::new();
    let program = format!("python3 {}", quoted(examples().join("by_length.py").to_str().unwrap()));
    // A patience that outlasts any pause of this machine; every 40th of a second a packet is delayed by 1 ms.
    let ended = with_example(&scratch, "on-empty = \"drop\", ask = \"30s\"", &program, FULL);
    let report = ended.json();
    sound(&report);
    let feed = fed(&report);
    assert_eq!((&feed["asked_packets"], &feed["used_values"]), (&40.into(), &40.into()), "{feed:#}");
    let delays = delays(&scratch.file("run.log"), "client.access");
    assert_eq!(delays.len(), 40);
    assert!(delays.iter().all(|delay| *delay >= Some(1_000_000)), "{delays:?}");
}

#[test]
#[ignore = "needs namespaces, ping, cc"]
fn the_example_in_c() {
    let scratch = Scratch::new();
    let program = scratch.file("constant");
    let source = examples().join("constant.c");
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-o"];
    assert!(Command::new("cc").args(flags).arg(&program).arg(&source).status().unwrap().success());
    let program = format!("{} \"$NARROWS_FEED\" 300000", quoted(program.to_str().unwrap()));
    let ended = with_example(&scratch, "on-empty = \"drop\"", &program, FULL);
    let delays = delays(&scratch.file("run.log"), "client.access");
    assert!(delays.iter().flatten().count() > 0 && delays.iter().flatten().all(|delay| *delay == 300_000));
    assert_eq!(fed(&ended.json())["writers"]["malformed_writers"], 0);
}

/// The example for device files, compiled.
fn device_program(scratch: &Scratch) -> String {
    let program = scratch.file("sch_delay_poll");
    let source = examples().join("sch_delay_poll.c");
    let flags = ["-O2", "-Wall", "-Wextra", "-Werror", "-o"];
    assert!(Command::new("cc").args(flags).arg(&program).arg(&source).status().unwrap().success());
    quoted(program.to_str().unwrap())
}

/// It ends with its run; and what a killed one leaves is cleaned away.
#[test]
#[ignore = "needs namespaces, root"]
fn a_device_file_is_gone_with_its_run_and_after_kill() {
    let scratch = Scratch::new();
    let device = scratch.file("a b/eth0");
    let path = device.to_str().unwrap();
    let name = format!("device-{}", std::process::id());
    let delay = "link.up.delay={ feed = \"radio\", on-empty = \"drop\" }";
    finish(&mut narrows(["up", "-q", "-d", "--delay", "5ms", "--set", delay, "--name", &name])).expect(0);
    let serve = || {
        let mut feeder = start(&mut narrows(["feed", "--run", &name, "--device", path]));
        feeder.until_it_complains("link.up/radio is at");
        feeder
    };
    let killed = serve();
    killed.signal("KILL");
    killed.wait();
    assert!(fs::metadata(&device).is_err(), "nobody answers");
    let cleaned = finish(&mut narrows(["clean"])).expect(0);
    assert!(cleaned.out.contains(&format!("removed {path}\n")), "{cleaned}");
    assert!(!fs::read_dir(scratch.file("a b")).unwrap().any(|entry| entry.is_ok()));
    let served = serve();
    finish(&mut narrows(["down", "-q", &name])).expect(0);
    let ended = served.wait().expect(0);
    assert!(ended.err.contains("0 values went to link.up/radio; the run has ended"), "{ended}");
    assert!(!device.exists());
}

#[test]
#[ignore = "needs namespaces, root, ping, cc"]
fn a_device_file_takes_the_delays_of_a_program_that_knows_nothing_of_narrows() {
    let scratch = Scratch::new();
    let program = device_program(&scratch);
    let device = scratch.file("made/sch_delay/eth0");
    let path = quoted(device.to_str().unwrap());
    let log = scratch.file("run.log");
    // 30 values into a lead of 16: it waits in `poll` and in `write` until packets have used some.
    let line = format!(
        "exec >&2; narrows feed --device {path} --wake-level 4 -- {program} {path} 3000000 9000000 30 & feeder=$!
         tries=0; until {FULL}; do tries=$((tries + 1)); test $tries -lt 3000 || exit 3; sleep 0.02; done
         {program} {path} 1 1; test $? = 3 || exit 4
         ping -q -i 0.05 -c 30 $NARROWS_SERVER; wait $feeder || exit 5; test -e {path} && exit 6; true"
    );
    let flags = [&scenario(&scratch, "on-empty = \"drop\", lead = \"16 values\""), "--json", "-", "--record"];
    let flags = flags.into_iter().map(|flag| flag as &str).chain([log.to_str().unwrap()]);
    let ended = finish(&mut run_line(flags, &line)).expect(0);
    let report = ended.json();
    sound(&report);
    let delays = delays(&log, "client.access");
    assert_eq!(delays.len(), 30);
    // What came in time was used in order; a busy machine may have let a packet find nothing.
    let used: Vec<_> = delays.iter().flatten().copied().collect();
    let expected: Vec<_> = [3_000_000, 9_000_000].into_iter().cycle().take(used.len()).collect();
    assert!(used.len() >= 16 && used == expected, "{delays:?}");
    assert!(ended.err.contains("30 values went to access.up/radio"), "{ended}");
    assert!(!scratch.file("made").exists(), "folders that were made are gone, too");
}

#[test]
#[ignore = "needs namespaces, root, python3"]
fn a_device_file_behaves_as_the_source_says() {
    let scratch = Scratch::new();
    let path = scratch.file("delay");
    let program = scratch.write(
        "calls.py",
        "import errno, os, select, signal, sys
def fails(number, call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        assert error.errno == number, error
    else:
        assert False, 'no error'
path, discards = sys.argv[1], len(sys.argv) > 2
device = os.open(path, os.O_RDWR)
fails(errno.EBUSY, os.open, path, os.O_RDWR)
def room(): return int.from_bytes(os.read(device, 8), 'little')
assert len(os.read(device, 100)) == 4 and room() == 16
fails(errno.EINVAL, os.read, device, 3)
fails(errno.EINVAL, os.write, device, bytes(7))
assert os.write(device, bytes(12)) == 8 and room() == 15
assert os.write(device, (-5).to_bytes(8, 'little', signed=True)) == 8 and room() == 14
poll = select.poll()
poll.register(device, select.POLLIN | select.POLLOUT)
assert poll.poll(0) == [(device, select.POLLIN | select.POLLOUT)]
os.write(device, bytes(8 * 10))
assert room() == 4 and poll.poll(0) == [(device, select.POLLIN)], 'writable from half of the lead on'
if discards:
    assert os.write(device, bytes(8 * 100)) == 800 and room() == 0
else:
    class Alarm(Exception): pass
    def ring(*_): raise Alarm
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        taken = os.write(device, bytes(8 * 100))
        assert taken == 32, taken
        os.write(device, bytes(8))
        assert False, 'it did not wait'
    except Alarm:
        pass
    os.set_blocking(device, False)
    fails(errno.EAGAIN, os.write, device, bytes(8))
    assert room() == 0
os.close(device)
assert os.read(os.open(path, os.O_RDWR), 4) == bytes(4)
",
    );
    let [path, program] = [&path, &program].map(|path| quoted(path.to_str().unwrap()));
    let line = format!(
        "exec >&2; narrows feed --device {path} -- python3 {program} {path} || exit 3
         ping -q -i 0.02 -c 16 $NARROWS_SERVER
         narrows feed --device {path} --when-full discard -- python3 {program} {path} discard || exit 4
         narrows feed --device /proc/none/delay && exit 5
         touch {path}; narrows feed --device {path} && exit 6; true"
    );
    let flags = [&scenario(&scratch, "on-empty = \"zero\", lead = \"16 values\"") as &str];
    let ended = finish(&mut run_line(flags, &line)).expect(0);
    assert!(ended.err.contains("96 dropped (queue full), 1 negative ones counted as no delay"), "{ended}");
    assert!(ended.err.contains("exists: name a path at which there is nothing"), "{ended}");
    assert!(ended.err.contains("cannot make /proc/none:"), "{ended}");
}

#[test]
#[ignore = "needs namespaces, root, ping, numpy"]
fn the_device_example_in_python() {
    let scratch = Scratch::new();
    let device = quoted(scratch.file("delay").to_str().unwrap());
    let example = quoted(examples().join("sch_delay.py").to_str().unwrap());
    let program = format!("narrows feed --device {device} -- python3 {example} {device}");
    let ended = with_example(&scratch, "on-empty = \"drop\"", &program, FULL);
    sound(&ended.json());
    // The first packets may have been faster than numpy.
    let delays: Vec<_> = delays(&scratch.file("run.log"), "client.access").into_iter().flatten().collect();
    assert!(
        delays.len() > 5 && delays.iter().all(|delay| (100_000..=1_300_000).contains(delay)),
        "{delays:?}"
    );
}

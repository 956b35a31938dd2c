//! `narrows packets`: what happened to packets of a run, and why.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Finished, Scratch, finish, narrows, start};
use crate::leftovers::RunFolder;

/// A network called `lab`, of which up holds 5 packets and gets more than it can send, and down loses packets.
struct Place {
    folder: RunFolder,
    state: Scratch,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: RunFolder::new(), state: Scratch::new() };
        // The folder stays when no run is active: without it, it would be that of everybody.
        fs::write(place.folder.file("stays"), "").unwrap();
        let file = place.state.write(
            "net.toml",
            "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"1mbit\"\ndelay = \"1ms\"\n\
             [links.l.up]\nqueue = \"5 packets\"\n[links.l.down]\nloss = \"50%\"\n\
             [[traffic]]\nname = \"flood\"\nfrom = \"a\"\nto = \"b\"\nconstant = \"2mbit\"\nlength = \"500 bytes\"\n\
             [[traffic]]\nname = \"answers\"\nfrom = \"b\"\nto = \"a\"\nconstant = \"100kbit\"\nlength = \"100 bytes\"\n",
        );
        place.narrows(&["up", file.to_str().unwrap(), "--name", "lab", "-d"]).expect(0);
        place
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.folder.narrows(arguments.iter().copied());
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn narrows(&self, arguments: &[&str]) -> Finished {
        finish(&mut self.command(arguments))
    }

    /// So many packets, as JSON; lines of counts are left out.
    fn packets(&self, arguments: &[&str]) -> Vec<Value> {
        let all = [&["packets", "--run", "lab", "--json"], arguments].concat();
        let out = self.narrows(&all).expect(0).out;
        let lines = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["verdict"].is_string()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        finish(&mut self.command(&["down", "--all", "--quiet"]));
    }
}

/// A word that no packet could have is refused, rather than waited for.
#[test]
#[ignore = "needs namespaces"]
fn what_no_packet_could_be_is_refused() {
    let place = Place::new();
    for (flag, word, known) in [
        ("--reason", "nonsense", "queue full"),
        ("--protocol", "256", "tcp, udp"),
        ("--host", "nobody", "known: a, b"),
        ("--link", "nolink", "known: l, l.down, l.up"),
    ] {
        let refused = place.narrows(&["packets", "--run", "lab", flag, word]).expect(2);
        assert!(refused.err.contains(&format!("{flag} {word}: there is no such thing")), "{refused}");
        assert!(refused.err.contains(known), "{refused}");
    }
    // Both directions of a link.
    let shown = place.narrows(&["packets", "--run", "lab", "--link", "l", "--count", "3"]).expect(0);
    assert_eq!(shown.out.lines().filter(|line| line.contains(" s  ")).count(), 3, "{shown}");
}

#[test]
#[ignore = "needs namespaces"]
fn a_drop_is_explained_by_the_setting_behind_it() {
    let place = Place::new();
    let full = place.packets(&["--reason", "queue full", "--count", "3"]);
    assert_eq!(full.len(), 3);
    for packet in &full {
        assert_eq!(packet["text"], "dropped by l.up: the queue was full (queue=5 packets)");
        assert_eq!(packet["settings"], json!(["l.up.queue=5 packets"]));
        assert_eq!((&packet["where"], &packet["path"]), (&json!("l.up"), &json!(["l.up"])));
        assert_eq!((&packet["from"], &packet["to"]), (&json!("a"), &json!("b")));
        assert_eq!((&packet["feed"], &packet["length_bytes"]), (&json!("flood"), &json!(500)));
        assert_eq!(packet["departure_ns"], packet["arrival_ns"], "dropped on arrival");
    }
    let lost = place.packets(&["--drops", "--host", "b", "--link", "l.down", "--count", "1"]);
    assert_eq!(lost[0]["text"], "dropped by l.down: lost on the wire (loss=50%)");
    place.narrows(&["set", "--run", "lab", "l.up.queue=7 packets"]).expect(0);
    let after = place.packets(&["--reason", "queue full", "--count", "400"]);
    let texts: Vec<_> = after.iter().filter_map(|packet| packet["text"].as_str()).collect();
    assert_eq!(*texts.last().unwrap(), "dropped by l.up: the queue was full (queue=7 packets)");
    // Accepted by a queue that was full before one left, a packet waits for six others, 4 ms each, and for the rest of
    // the one being sent.
    let delivered = place.packets(&["--link", "l.up", "--count", "400"]);
    let waited = |packet: &Value| packet["queueing_ns"].as_u64().unwrap();
    let mut delivered = delivered[380..].iter().filter(|packet| packet["verdict"] == "delivered");
    let link =
        |packet: &Value| packet["links"].as_array().filter(|links| links.len() == 1).unwrap()[0].clone();
    assert!(delivered.all(|packet| {
        let times = ["entered_ns", "queueing_ns", "left_ns"].map(|name| link(packet)[name].clone());
        assert_eq!(times, ["arrival_ns", "queueing_ns", "departure_ns"].map(|name| packet[name].clone()));
        (24_000_000..=28_000_000).contains(&waited(packet))
    }));
}

/// One record serves files and clients.
#[test]
#[ignore = "needs namespaces"]
fn a_packet_has_the_columns_of_a_simulation() {
    let flags = ["sim", "--rate", "1mbit", "--duration", "10ms", "--packets", "-"];
    let out = finish(&mut narrows(flags)).expect(0).out;
    let place = Place::new();
    let packet = &place.packets(&["--count", "1"])[0];
    let columns: Vec<_> = out.lines().next().unwrap().split(',').collect();
    assert!(columns.len() > 10, "{columns:?}");
    for column in columns {
        assert!(packet.get(column).is_some(), "{column}: {packet}");
    }
}

#[test]
#[ignore = "needs namespaces, ping"]
fn packets_of_programs_are_shown_as_they_pass() {
    let place = Place::new();
    place.narrows(&["set", "--run", "lab", "l.down.loss=0%", "l.up.rate=100mbit"]).expect(0);
    let mut shown = start(&mut place.command(&["packets", "--run", "lab"]));
    shown.until_it_says("udp ");
    place.narrows(&["exec", "lab", "a", "ping", "-c", "2", "-W", "5", "b"]).expect(0);
    shown.until_it_says(" bytes: delivered to a.l\n");
    shown.until_it_says("icmpv6 ");
    place.narrows(&["down", "lab", "--quiet"]).expect(0);
    let ended = shown.wait().expect(0);
    assert!(ended.err.contains("has ended"), "{ended}");
    place.narrows(&["packets", "--run", "lab"]).expect(2);
}

//! The program's own probes: what they look like on the wire.

use std::fs;

use crate::common::{Scratch, finish, narrows, run, sound};
use crate::traffic::rows;

#[test]
#[ignore = "needs namespaces"]
fn probes_are_what_a_classifier_can_know_them_by() {
    let asked = ["--probe-dscp", "ef", "--probe-length", "200", "--probe-port", "5060", "--probe-ecn"];
    // DSCP 46 and ECT(0).
    for (options, length, port, class) in [(&[][..], 64, 27182, 0), (&asked[..], 200, 5060, 46 << 2 | 2)] {
        let scratch = Scratch::new();
        let (log, csv) = (scratch.file("run.log"), scratch.file("packets.csv"));
        let (log, csv_path) = (log.to_str().unwrap(), csv.to_str().unwrap());
        let flags = ["--delay", "1ms", "--probe=100", "--record", log, "--json", "-"];
        let report =
            finish(&mut run(flags.into_iter().chain(options.iter().copied()), "sleep 0.2")).expect(0).json();
        sound(&report);
        let mut sent = 0;
        for probe in report["probes"].as_array().unwrap() {
            assert_eq!(probe["lost_packets"], 0, "{probe:#}");
            assert_eq!(probe["marked_packets"], 0, "{probe:#}");
            assert_eq!((&probe["port"], &probe["length_bytes"]), (&port.into(), &length.into()), "{probe:#}");
            assert_eq!((&probe["dscp"], &probe["ecn"]), (&(class >> 2).into(), &(class & 3).into()));
            sent += probe["sent_packets"].as_u64().unwrap();
        }
        finish(&mut narrows(["sim", "--quiet", "--replay", log, "--packets", csv_path])).expect(0);
        let csv = fs::read_to_string(&csv).unwrap();
        let rows = rows(&csv);
        let port = port.to_string();
        let probes: Vec<_> = rows.iter().filter(|row| row["destination_port"] == port).collect();
        assert_eq!(probes.len() as u64, sent);
        for row in probes {
            assert_eq!((row["protocol"], row["verdict"]), ("udp", "delivered"));
            assert_eq!(
                (row["length_bytes"], row["traffic_class"]),
                (&*length.to_string(), &*class.to_string())
            );
        }
    }
}

//! What `list`, `show` and their like print: the layouts of `ipfw/ipfw2.c` and `ipfw/dummynet.c`.

use std::net::IpAddr;
use std::slice;

use narrows_core::classify::Flow;
use narrows_core::rules::Rule;
use narrows_scenario::Scenario;
use narrows_scenario::ipfw::{
    self, Command, Context, ListedFlow, ListedRule, ListedState, Listing, Object, Script, StateKind,
};

fn rules() -> Vec<Rule> {
    let script = "add 100 count ip from any to any\n\
                  add 200 set 3 pipe 1 tcp from 10.0.0.0/8 to any 80 in // web\n\
                  add 65000 allow ip from any to any\n\
                  pipe 1 config bw 1Mbit/s\n";
    Script::parse(script, "rules.conf", &Context::default()).unwrap_or_else(|error| panic!("{error}")).rules
}

fn listing(command: &str) -> Listing {
    match Command::parse(command, &Context::default()).unwrap_or_else(|error| panic!("{error}")).0 {
        Command::List(listing) => listing,
        other => panic!("{other:?}"),
    }
}

fn shown(command: &str, states: &[ListedState]) -> String {
    let rules = rules();
    let mut listed: Vec<ListedRule<'_>> = rules
        .iter()
        .zip([(5, 420, Some(1_269_820_800)), (12, 18_000, None), (0, 0, None)])
        .map(|(rule, (packets, bytes, last))| ListedRule { rule, packets, bytes, last, enabled: true })
        .collect();
    listed[1].enabled = false;
    ipfw::rule_lines(&listed, states, &listing(command))
}

#[test]
fn rules_with_and_without_counters() {
    assert_eq!(
        shown("ipfw list", &[]),
        "00100 count ip from any to any\n\
         65000 allow ip from any to any\n"
    );
    assert_eq!(
        shown("ipfw -S show", &[]),
        "00100  5   420 set 0 count ip from any to any\n\
         # DISABLED 00200 12 18000 set 3 pipe 1 tcp from 10.0.0.0/8 to any dst-port 80 in // web\n\
         65000  0     0 set 0 allow ip from any to any\n"
    );
    assert_eq!(shown("ipfw -a list 60000-65535", &[]), "65000 0 0 allow ip from any to any\n");
    assert_eq!(shown("ipfw -S set 3 list", &[]).lines().count(), 1);
    assert_eq!(
        shown("ipfw -t list", &[]),
        "00100 Mon Mar 29 00:00:00 2010 count ip from any to any\n\
         65000                         allow ip from any to any\n"
    );
    assert_eq!(
        shown("ipfw -T list", &[]),
        "00100 1269820800 count ip from any to any\n\
         65000          0 allow ip from any to any\n"
    );
}

#[test]
fn dynamic_rules_stand_behind_the_others() {
    let [client, server] = [IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2])];
    let state = |kind, protocol| ListedState {
        rule: 100,
        set: 0,
        packets: 7,
        bytes: 1234,
        seconds: 299,
        kind,
        protocol,
        source: (client, 40_000),
        destination: (server, 80),
    };
    let states = [state(StateKind::Limit, 6), state(StateKind::Parent(1), 253)];
    assert_eq!(
        shown("ipfw -d show 100", &states),
        "00100 5  420 count ip from any to any\n\
         ## Dynamic rules (2):\n\
         00100 7 1234 (299s) LIMIT tcp 10.0.0.1 40000 <-> 10.0.0.2 80\n\
         00100 7 1234 (299s) PARENT 1 proto 253 10.0.0.1 40000 <-> 10.0.0.2 80\n"
    );
    assert!(!shown("ipfw show 100", &states).contains("Dynamic"));
}

/// A script becomes a scenario, and what a run of that lists is what the script said, or what ipfw takes where it is silent.
#[test]
fn fair_queueing_is_listed_as_it_was_said() {
    let listed = |options: &str| {
        let script = format!(
            "pipe 2 config bw 1Mbit/s\nsched 2 config type {options}\nqueue 9 config sched 2\nadd 9 queue 9 ip from any to any\n"
        );
        let script = Script::parse(&script, "fair.conf", &Context::default())
            .unwrap_or_else(|error| panic!("{error}"));
        let scenario = Scenario::parse(&script.to_toml("net", ["a", "b"]), "fair.toml");
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let objects = scenario.links[0].rules().expect("it has rules").objects();
        let text =
            ipfw::object_lines(&objects, Object::Scheduler, slice::from_ref(&(2..=2)), |_, _| Vec::new());
        text.lines().rev().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        listed("fq_pie quantum 300 limit 600 flows 16 target 20ms nocapdrop noecn"),
        " FQ_PIE target 20ms tupdate 15ms alpha 0.125 beta 1.25 max_burst 150ms max_ecnth 0.100 quantum 300 limit 600 \
         flows 16 NoECN NoCapDrop TS Derand"
    );
    assert_eq!(
        listed("fq_pie"),
        " FQ_PIE target 15ms tupdate 15ms alpha 0.125 beta 1.25 max_burst 150ms max_ecnth 0.100 quantum 1514 limit 10240 \
         flows 1024 ECN CapDrop TS Derand"
    );
    assert_eq!(
        listed("fq_codel interval 50ms noecn"),
        " FQ_CODEL target 5ms interval 50ms quantum 1514 limit 10240 flows 1024 NoECN"
    );
}

/// In either case; its queues keep their weights and their longest packets.
#[test]
fn kps_shares_a_pipe_among_its_queues() {
    for word in ["KPS", "kps"] {
        let script = format!(
            "pipe 5 config bw 1Mbit/s\nsched 5 config type {word}\nqueue 8 config sched 5 weight 3 lmax 600\n\
             add 9 queue 8 ip from any to any\n"
        );
        let script =
            Script::parse(&script, "kps.conf", &Context::default()).unwrap_or_else(|error| panic!("{error}"));
        let toml = script.to_toml("net", ["a", "b"]);
        assert!(script.lines.iter().all(|line| line.remarks.is_empty()), "{:?}", script.lines);
        for key in ["scheduler = \"kps\"", "weight = 3", "longest = \"600 bytes\""] {
            assert!(toml.contains(key), "{key}: {toml}");
        }
        let scenario = Scenario::parse(&toml, "kps.toml").unwrap_or_else(|error| panic!("{error}"));
        let objects = scenario.links[0].rules().expect("it has rules").objects();
        let sched = ipfw::object_lines(&objects, Object::Scheduler, &[], |_, _| Vec::new());
        assert!(sched.contains(" sched 5 type KPS "), "{sched}");
    }
}

#[test]
fn pipes_queues_and_schedulers_with_their_flows() {
    let script = "pipe 1 config bw 3Mbit/s delay 32ms burst 15000\n\
                  pipe 2 config delay 0.5 queue 30Kbytes plr 0.06 mask src-ip 0xff\n\
                  pipe 3 config bw 640Kbit/s gred 0.002/5/15/0.1 ecn\n\
                  pipe 5 config bw 1.5Gbit/s\n\
                  sched 5 config type qfq mask src-ip 0xffffff00\n\
                  sched 1 config type fq_codel limit 600\n\
                  queue 10 config sched 5 weight 20 lmax 1500 codel\n\
                  queue 8 config sched 5 weight 10 mask src-ip6 /64 dst-port 0xffff\n";
    let script =
        Script::parse(script, "pipes.conf", &Context::default()).unwrap_or_else(|error| panic!("{error}"));
    let none = |_, _| Vec::new();
    assert_eq!(
        ipfw::object_lines(&script.objects, Object::Pipe, &[], none),
        "00001:   3.000 Mbit/s   32 ms burst 15000\n\
         q131073  50 sl. 0 flows (1 buckets) sched 65537 weight 0 lmax 0 pri 0 droptail\n \
         sched 65537 type FIFO flags 0x0 0 buckets 0 active\n\
         00002: unlimited       0.5 ms burst 0\n\
         q131074 30 KBplr 0.060000 0 flows (1 buckets) sched 65538 weight 0 lmax 0 pri 0 droptail\n \
         sched 65538 type FIFO flags 0x1 64 buckets 0 active\n    \
         mask:  0x00 0x000000ff/0x0000 -> 0x00000000/0x0000\n\
         00003: 640.000 Kbit/s    0 ms burst 0\n\
         q131075  50 sl. 0 flows (1 buckets) sched 65539 weight 0 lmax 0 pri 0 \n\t \
         GRED w_q 0.002000 min_th 5 max_th 15 max_p 0.100000 (ecn)\n \
         sched 65539 type FIFO flags 0x0 0 buckets 0 active\n\
         00005:   1.500 Gbit/s    0 ms burst 0\n\
         q131077  50 sl. 0 flows (1 buckets) sched 65541 weight 0 lmax 0 pri 0 droptail\n \
         sched 65541 type FIFO flags 0x0 0 buckets 0 active\n"
    );
    assert_eq!(
        ipfw::object_lines(&script.objects, Object::Scheduler, slice::from_ref(&(5..=9)), none),
        "00005:   1.500 Gbit/s    0 ms burst 0\n \
         sched 5 type QFQ flags 0x1 64 buckets 0 active\n    \
         mask:  0x00 0xffffff00/0x0000 -> 0x00000000/0x0000\n   \
         Children flowsets: 8 10\n"
    );
    let fair = ipfw::object_lines(&script.objects, Object::Scheduler, slice::from_ref(&(1..=1)), none);
    assert!(
        fair.ends_with(" FQ_CODEL target 5ms interval 100ms quantum 1514 limit 600 flows 1024 ECN\n"),
        "{fair}"
    );

    let mapped = |last: u8| u128::from(last) | 0xffff_0000_0000;
    let flow = ListedFlow {
        flow: Flow { source: mapped(7), protocol: 6, source_port: 80, ..Flow::default() },
        by_queue: false,
        packets: 12,
        bytes: 18_000,
        waiting: 3,
        waiting_bytes: 4500,
        dropped: 1,
    };
    let flows = |object, number| match (object, number) {
        (Object::Pipe, 2) => vec![flow, ListedFlow { flow: Flow::default(), by_queue: true, ..flow }],
        (Object::Queue, 8) => {
            let source = 0x2001_0db8 << 96;
            vec![ListedFlow { flow: Flow { source, destination_port: 443, ..Flow::default() }, ..flow }]
        }
        _ => Vec::new(),
    };
    assert!(ipfw::object_lines(&script.objects, Object::Pipe, slice::from_ref(&(2..=2)), flows).ends_with(
        "BKT Prot ___Source IP/port____ ____Dest. IP/port____ Tot_pkt/bytes Pkt/Byte Drp\n  \
             0 tcp          0.0.0.7/80            0.0.0.0/0       12    18000  3 4500   1\n  \
             1*ip           0.0.0.0/0             0.0.0.0/0       12    18000  3 4500   1\n"
    ));
    assert_eq!(
        ipfw::object_lines(&script.objects, Object::Queue, &[], flows),
        "q00008  50 sl. 1 flows (1 buckets) sched 5 weight 10 lmax 0 pri 0 droptail\n        \
         mask: proto: 0x00, flow_id: 0x00000000,  ffff:ffff:ffff:ffff::/0x0000 -> ::/0xffff\n\
         BKT ___Prot___ _flow-id_ ______________Source IPv6/port_______________ _______________Dest. IPv6/port_______________ Tot_pkt/bytes Pkt/Byte Drp\n  \
         0        ip       0                               2001:db8::/0                                           ::/443     12    18000  3 4500   1\n\
         q00010  50 sl. 0 flows (1 buckets) sched 5 weight 20 lmax 1500 pri 0  AQM CoDel target 5ms interval 100ms NoECN\n"
    );
}

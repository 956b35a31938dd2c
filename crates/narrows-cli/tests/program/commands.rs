//! What scripts would configure, as a shell runs them in a sandbox.

use std::fs;

use crate::common::{Finished, Scratch, eventually, finish, narrows, start};

fn commands(dialect: &str, words: &[&str]) -> Finished {
    let mut arguments = vec![dialect, "commands"];
    arguments.extend(words);
    finish(&mut narrows(arguments))
}

/// Whatever a shell can do.
const SHAPE: &str = r#"#!/bin/sh
IF=$(ip route | awk '/default/ {print $5}')
[ "$(id -u)" -eq 0 ] || exit 1
command -v iperf3 >/dev/null || exit 1
case "$1" in
start)
  . "$(dirname "$0")/rates"
  "$(dirname "$0")/helper" || exit 1
  sudo tc qdisc add dev $IF root handle 1: htb default 10
  /sbin/tc class add dev $IF parent 1: classid 1:10 htb rate ${2:-1mbit}
  n=0
  while [ $n -lt 2 ]; do
    tc filter add dev "$IF" parent 1: protocol ip prio 1 u32 match ip dport $((8000 + n)) 0xffff flowid 1:10
    n=$((n + 1))
  done
  tc qdisc show dev $IF | grep -q netem || ip netns exec blue tc qdisc add dev veth0 root netem delay 10ms
  echo "class add dev $IF parent 1: classid 1:20 htb rate $FAST" | tc -batch -
  iptables -C OUTPUT -j MARK --set-mark 1 || iptables -A OUTPUT -p tcp -j MARK --set-mark 1
  iperf3 -c server
  printf 'eth5\n' | xargs -n 1 sh -c 'tc qdisc add dev $0 root pfifo limit "1""0"'
  while true; do
    sleep 30m
    tc qdisc change dev $IF root netem delay "10ms"
  done
  ;;
*)
  echo "usage: $0 start [RATE]" >&2
  exit 3
  ;;
esac
"#;

#[test]
#[ignore = "needs namespaces"]
fn a_script_does_here_what_it_would_do() {
    let scratch = Scratch::new();
    let script = scratch.write("shape.sh", SHAPE);
    scratch.write("rates", "FAST=8mbit\n");
    scratch.write("helper", "#!/bin/sh\nexit 0\n");
    let script = script.to_str().unwrap();
    let ended = commands("tc", &["--device", "wan0", script, "start", "5mbit"]).expect(0);
    let expected = "\
tc qdisc add dev wan0 root handle 1: htb default 10 # shape.sh:9
tc class add dev wan0 parent 1: classid 1:10 htb rate 5mbit # shape.sh:10
tc filter add dev wan0 parent 1: protocol ip prio 1 u32 match ip dport 8000 0xffff flowid 1:10 # shape.sh:13
tc filter add dev wan0 parent 1: protocol ip prio 1 u32 match ip dport 8001 0xffff flowid 1:10 # shape.sh:13
ip netns exec blue tc qdisc add dev veth0 root netem delay 10ms # shape.sh:16
tc class add dev wan0 parent 1: classid 1:20 htb rate 8mbit # shape.sh:17
iptables -A OUTPUT -p tcp -j MARK --set-mark 1 # shape.sh:18
tc qdisc add dev eth5 root pfifo limit 10
sleep 30m # shape.sh:22
tc qdisc change dev wan0 root netem delay 10ms # shape.sh:23
sleep 30m # shape.sh:22
tc qdisc change dev wan0 root netem delay 10ms # shape.sh:23
sleep 30m # shape.sh:22
";
    assert_eq!(ended.out, expected, "{ended}");
    assert!(ended.err.contains("after it had slept for 1h (--until)"), "{ended}");
    assert!(ended.err.contains("without effect here: iperf3"), "{ended}");
    // Without arguments it only says how it is used.
    let ended = commands("tc", &[script]).expect(1);
    assert!(ended.out.is_empty() && ended.err.contains("status 3: usage: "), "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn what_it_prints_is_a_script_that_is_read() {
    let scratch = Scratch::new();
    let text =
        "case $1 in on) for n in 10 20; do tc qdisc add dev eth$n root netem delay ${n}ms; done;; esac";
    let script = scratch.write("two.sh", text);
    let refused = finish(&mut narrows(["tc", "check", script.to_str().unwrap()]));
    assert!(refused.code() == 2 && refused.err.contains("`narrows tc commands`"), "{refused}");
    let ended = commands("tc", &[script.to_str().unwrap(), "on"]).expect(0);
    let printed = scratch.write("two.tc", &ended.out);
    let explained = finish(&mut narrows(["tc", "check", printed.to_str().unwrap()])).expect(0);
    assert!(explained.out.contains("[links.link.down]\ndelay = \"20ms\""), "{explained}");

    let rules = "add 100 pipe 1 ip from any to any\n# of the line\npipe 1 config bw 2Mbit/s\n";
    scratch.write("rules", rules);
    let script = "fw='/sbin/ipfw -q'\n$fw -f flush\nif_=$(route -n get default | awk '/interface:/ {print $2}')\n\
                  ipfw -q $(dirname $0)/rules\n[ \"$(sysctl -n net.inet.ip.fw.enable)\" = 1 ] && $fw add 200 allow ip from any to any via $if_\n\
                  ipfw list";
    let script = scratch.write("fw.sh", script);
    let ended = commands("ipfw", &[script.to_str().unwrap()]).expect(0);
    let expected = "\
ipfw -q -f flush # fw.sh:2
ipfw -q add 100 pipe 1 ip from any to any # fw.sh:4
ipfw -q pipe 1 config bw 2Mbit/s # fw.sh:4
ipfw -q add 200 allow ip from any to any via em0 # fw.sh:5
";
    assert_eq!(ended.out, expected, "{ended}");
    let printed = scratch.write("fw.ipfw", &ended.out);
    finish(&mut narrows(["ipfw", "check", printed.to_str().unwrap()])).expect(0);
}

/// A line of a batch is words for tc, whatever a shell would make of it; and nothing steers the terminal.
#[test]
#[ignore = "needs namespaces"]
fn what_it_prints_is_harmless() {
    let scratch = Scratch::new();
    scratch.write(
        "batch",
        "qdisc add dev eth0 root netem delay 2ms; touch /tmp/x\nqdisc add dev eth1 root netem delay $(id)\n",
    );
    let script = "tc -batch $(dirname $0)/batch\ntc qdisc add dev \"$(printf '\\033]0;owned\\007')\" root netem delay 1ms\n";
    let script = scratch.write("odd.sh", script);
    let ended = commands("tc", &[script.to_str().unwrap()]).expect(0);
    let expected = "\
tc qdisc add dev eth0 root netem delay '2ms;' touch /tmp/x # odd.sh:1
tc qdisc add dev eth1 root netem delay '$(id)' # odd.sh:1
tc qdisc add dev '\\u001b]0;owned\\u0007' root netem delay 1ms # odd.sh:2
";
    assert_eq!(ended.out, expected, "{ended}");
}

#[test]
#[ignore = "needs namespaces"]
fn nothing_of_the_host_is_reached() {
    let scratch = Scratch::new();
    let text = r#"
ip link set eth0 mtu 1400; ip l set eth0 up; timeout -s KILL 10 tc after
ipfw add 100 allow ip from any to any // let internal hosts show a list
for setting in /proc/sys/vm/swappiness /proc/sys/kernel/core_pattern; do [ ! -w $setting ] || tc writes $setting; done
chmod 606 /dev/full 2>/dev/null && tc changed
[ ! -w /usr/lib ] || tc writes /usr/lib
echo left >/tmp/narrows-commands-left; echo left >/usr/lib/narrows-commands-left
rm -rf /usr/lib/* /etc/* /home 2>/dev/null
for file in /etc/shadow /etc/hostname /root/.ssh /proc/1/root/etc/shadow /old /sys/kernel /dev/sda; do
  [ ! -e $file ] || tc seen $file
done
tc processes $(ls -d /proc/[0-9]* | wc -w | awk '{print ($1 < 20)}')
tc interfaces $(grep -c : /proc/net/dev)
(exec 3<>/dev/tcp/127.0.0.1/22) 2>/dev/null && tc connected
kill -9 1
echo changed >"$0"; echo changed >"$(dirname "$0")/beside"; rm -rf "$(dirname "$0")"/*
kill -9 -1
"#;
    let script = scratch.write("evil.sh", text);
    let beside = scratch.write("beside", "as it was");
    let ended = commands("tc", &[script.to_str().unwrap()]).expect(0);
    // The loopback interface alone.
    let expected = "\
ip link set eth0 mtu 1400 # evil.sh:2
ip l set eth0 up # evil.sh:2
tc after # evil.sh:2
ipfw add 100 allow ip from any to any // let internal hosts show a list # evil.sh:3
tc processes 1 # evil.sh:12
tc interfaces 1 # evil.sh:13
";
    assert_eq!(ended.out, expected, "{ended}");
    assert_eq!(
        (fs::read_to_string(script).unwrap(), fs::read_to_string(beside).unwrap()),
        (text.into(), "as it was".into())
    );
    for left in ["/tmp/narrows-commands-left", "/usr/lib/narrows-commands-left"] {
        assert!(!fs::exists(left).unwrap(), "{left}");
    }
}

#[test]
#[ignore = "needs namespaces"]
fn a_script_ends_with_who_asked_for_it() {
    let scratch = Scratch::new();
    let endless = scratch.write("endless.sh", "while :; do :; done");
    let marked = format!("{}/endless.sh", scratch.path().display());
    let runs = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        all.filter(|process| {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let words = line.split(|byte| *byte == 0);
            words.into_iter().any(|word| word == marked.as_bytes())
        })
        .count()
    };
    for signal in ["INT", "KILL"] {
        let mut command = narrows(["tc", "commands", endless.to_str().unwrap()]);
        let started = start(&mut command);
        // This program, unshare, the cage and the script.
        eventually("the script runs", || runs() >= 4);
        started.signal(signal);
        started.wait();
        eventually("nothing is left", || runs() == 0);
    }
}

#[test]
fn what_is_no_script_is_refused() {
    let scratch = Scratch::new();
    let folder = scratch.file("");
    let python = scratch.write("x.py", "#!/usr/bin/env python3\nprint()\n");
    for (words, why) in [
        (vec!["/nowhere/x.sh"], "the script `/nowhere/x.sh`: No such file"),
        (vec![folder.to_str().unwrap()], "not a file"),
        (vec![python.to_str().unwrap()], "it is for `python3`, not for a shell like sh or bash"),
        (vec!["--device", "a/b", "/bin/true"], "--device `a/b`: no interface can have this name"),
        (vec!["--until", "soon", "/bin/true"], "--until"),
    ] {
        let ended = commands("tc", &words);
        assert!(ended.code() == 2 && ended.err.contains(why), "{why}: {ended}");
    }
}

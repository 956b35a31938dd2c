//! Scripts of a shell: loops, conditions, calculations, here-documents.

use narrows_scenario::tc::Script;

use super::{fails, keys};

#[test]
fn loops_are_written_out() {
    let plain = "tc qdisc add dev eth0 root handle 1: htb default 13\n\
        tc class add dev eth0 parent 1: classid 1:11 htb rate 1mbit\n\
        tc class add dev eth0 parent 1: classid 1:12 htb rate 2mbit\n\
        tc class add dev eth0 parent 1: classid 1:13 htb rate 3mbit\n";
    for list in ["1 2 3", "$(seq 1 3)", "`seq 3`", "{1..3}", "$ALL", "1 $(seq 2 3)"] {
        for body in [
            format!(
                "for i in {list}; do\n  tc class add dev eth0 parent 1: classid 1:1$i htb rate ${{i}}mbit\ndone\n"
            ),
            format!(
                "for i in {list}\ndo tc class add dev eth0 parent 1: classid 1:$((i+10)) htb rate $((i * 1000))kbit; done\n"
            ),
        ] {
            let text = format!("ALL='1 2 3'\ntc qdisc add dev eth0 root handle 1: htb default 13\n{body}");
            assert_eq!(keys(&text), keys(plain), "{text}");
            assert_eq!(Script::parse(&text, "x.sh").unwrap().explain().unwrap().len(), 4, "{text}");
        }
    }
    // Within one another, and over devices.
    let nested = "for dev in eth0; do tc qdisc add dev $dev root handle 1: htb default 13; for i in 1 2 3; do\n\
        tc class add dev $dev parent 1: classid \"1:1$i\" htb rate \"${i}\"mbit # each\ndone; done\n";
    assert_eq!(keys(nested), keys(plain));
}

#[test]
fn conditions_in_the_script_choose() {
    let text = "RATE=${1:-5}\nMODE=slow\n\
        if [ \"$MODE\" = fast ]; then\n  tc qdisc add dev eth0 root netem delay 1ms\n\
        elif [ $RATE -gt 3 ] ; then tc qdisc add dev eth0 root netem delay 2ms\n\
        else\n  tc qdisc add dev eth0 root netem delay 3ms\nfi\n";
    assert_eq!(keys(text), ["link.up.delay=\"2ms\""]);
    fails(
        &text.replace("$RATE -gt 3", "-e /sys/class/net/eth0"),
        "a condition that depends on more than the script",
        "[ -e",
        &["keep the branch that applies"],
    );
}

/// A command of tc that is a condition is executed, and succeeds, as it does where it is understood.
#[test]
fn commands_are_conditions() {
    let text = "if ! command -v tc >/dev/null 2>&1; then echo 'no tc'; exit 1; fi\n\
        if sudo tc qdisc add dev eth0 root netem delay 2ms 2>/dev/null; then echo done\n\
        else tc qdisc replace dev eth0 root netem delay 3ms; fi\n\
        if ! tc qdisc change dev eth0 root netem delay 4ms; then tc qdisc add dev eth0 root netem delay 5ms; fi\n";
    assert_eq!(keys(text), ["link.up.delay=\"4ms\""]);
    fails(
        "tc qdisc add dev eth0 root netem delay 2ms\nif tc qdisc show dev eth0 | grep -q netem; then tc qdisc del dev eth0 root; fi\n",
        "a condition that depends on more than the script",
        "tc qdisc show",
        &["keep the branch that applies"],
    );
    // Before the first command, nothing is there.
    let text = "if tc qdisc show dev eth0 | grep -q netem; then tc qdisc del dev eth0 root; fi\n\
        [ -n \"$(tc class show dev eth0)\" ] || tc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(text), ["link.up.delay=\"2ms\""]);
    fails(
        "if tc qdisc add dev eth0 root netem delay 2mss; then echo; fi\n",
        "`mss` is not a unit of a time",
        "2mss",
        &[],
    );
}

#[test]
fn conditions_stand_before_what_depends_on_them() {
    let text = "[ \"$(id -u)\" -eq 0 ] || { echo 'as root'; exit 1; }\n\
        [ -e /etc/qos.conf ] && echo found\n\
        usage() { echo 'usage: qos'; exit 2; }\n\
        if [ $# -gt 1 ]; then usage; fi\n\
        LATENCY=2ms JITTER= LOSS=1%\nTC=$(which tc)\n\
        OPTIONS=\"delay $LATENCY\"\n\
        [[ -n \"$JITTER\" ]] && OPTIONS+=\" $JITTER\"\n\
        [ -z \"$LOSS\" ] || [ $LOSS = 0% ] || OPTIONS+=\" loss $LOSS\"\n\
        test $LATENCY = 1ms && { $TC qdisc add dev eth0 root fq; exit; }\n\
        { $TC qdisc add dev eth0 root netem $OPTIONS; }\n";
    assert_eq!(keys(text), ["link.up.delay=\"2ms\"", "link.up.loss={ ingress = \"1%\" }"]);
    for unknown in ["[ -e /etc/a ] && ", "[ -e /etc/a ] || ", "[ a = a ] && [ -e /etc/a ] && "] {
        let text = format!("{unknown}tc qdisc add dev eth0 root fq\n");
        fails(&text, "a condition that depends on more than the script", "[ -e", &["keep the branch"]);
    }
    fails("{ tc qdisc add dev eth0 root fq\n", "`{` without `}`", "{ tc", &[]);
    // Neither loops without commands nor functions that call one another twice take for ever.
    for body in ["", "[ -e a ] && echo"] {
        let text = format!("for i in $(seq 9000); do for j in $(seq 9000); do {body}\ndone; done\n");
        let error = Script::parse(&text, "x.sh").unwrap_err().to_string();
        assert!(error.contains("more than 2097152 turns of loops and conditions"), "{text}{error}");
    }
    let calls: String = (0..30).map(|at| format!("f{at}() {{ f{0}; f{0}; }}\n", at + 1)).collect();
    let text = format!("{calls}f30() {{ echo; }}\n[ -e /etc/a ] && f0\n");
    fails(&text, "a condition that depends on more than the script", "[ -e", &["keep the branch"]);
}

/// What prepares folders, names and namespaces changes no packet.
#[test]
fn other_programs_prepare_things() {
    let text = "mkdir -p /sys/fs/cgroup/net_cls; mount -t cgroup net_cls -o net_cls /sys/fs/cgroup/net_cls\n\
        ip netns exec a ip link set eth0 up\nip netns exec a ip route add default via 10.0.0.1\n\
        tc qdisc add dev eth0 root cake_mq bandwidth 10mbit; tc qdisc change dev eth0 root cake_mq mpu 128\n";
    let all = keys(text).join("\n");
    assert!(all.contains("type = \"cake\"") && all.contains("10mbit"), "{all}");
    fails("ip netns exec a bash setup.sh\n", "`ip` is not a command of tc", "ip netns", &[]);
    // Filters of `route` look at realms.
    fails("ip route add 10.0.0.0/24 via 10.1.0.1 realm 2\n", "`ip` is not a command of tc", "ip route", &[]);
}

#[test]
fn batches_are_commands() {
    for text in [
        "tc -batch - <<EOF\nqdisc add dev $DEV root netem delay 2ms\nEOF\n",
        "sudo tc -force -b <<-EOF\n\tqdisc add dev eth0 root netem delay 2ms\n\tEOF\n",
        "TC=tc\n$TC -b - <<EOF\nqdisc add dev eth0 root netem delay 2ms\nEOF\n",
        "echo \"qdisc add dev eth0 root netem delay 2ms\" | tc -b -\n",
        "cat <<EOF | tc -b -\nqdisc add dev eth0 root netem delay 2ms\nEOF\n",
        "tc -b - <<< 'qdisc add dev eth0 root netem delay 2ms'\n",
        "echo \"qdisc add dev $DEV root netem delay 2ms\" > /tmp/rules; tc -batch /tmp/rules\n",
    ] {
        assert_eq!(keys(&format!("DEV=eth0\n{text}")), ["link.up.delay=\"2ms\""], "{text}");
    }
    // A file of `tc -batch` itself.
    assert_eq!(keys("qdisc add dev eth0 root netem delay 2ms\n"), ["link.up.delay=\"2ms\""]);
    fails(
        "tc -batch rules.txt\n",
        "commands of a file that is not beside the script, `rules.txt`",
        "rules.txt",
        &["give that file itself"],
    );
    fails("tc -batch < rules.txt\n", "a batch whose lines are not read here", "-b", &["tc -batch - <<EOF"]);
}

#[test]
fn what_a_shell_would_run_is_refused_by_name() {
    let tc = "tc qdisc add dev eth0 root netem delay 2ms\n";
    for (text, title, at, says) in [
        (
            "while read x; do tc qdisc add dev $x root fq; done\n",
            "a condition that depends on more than the script",
            "read x",
            "keep the branch",
        ),
        (
            "case $(uname) in Linux) tc qdisc add dev a root fq;; esac\n",
            "`$(uname)` is a command or an expansion of a shell",
            "$(uname)",
            "keep the branch",
        ),
        ("shape() {\n tc qdisc add dev a root fq\n", "`{` without `}`", "{", ""),
        (
            "shape() tc qdisc add dev a root fq\n",
            "a function of a shell that is not understood",
            "shape",
            "as in",
        ),
        ("again() { again; }\nagain\n", "functions that call one another more than 32 deep", "again;", ""),
        (
            "for ((i=0; i<3)); do tc qdisc add dev a root fq; done\n",
            "`for` that is not understood",
            "for",
            "for i in 1 2 3",
        ),
        ("for i in 1 2\ntc qdisc add dev a root fq\n", "`for` without `do`", "for", ""),
        ("for i in 1 2; do tc qdisc add dev a$i root fq\n", "`for` without `done`", "for", ""),
        ("done\n", "`done` without what it belongs to", "done", ""),
        (
            "for i in $(ls); do tc qdisc add dev $i root fq; done\n",
            "a device beside those of a list that is not in the script, of which it may be one",
            "tc qdisc add dev $i",
            "",
        ),
        (
            "for i in $(ls); do tc qdisc add dev eth$i root fq; sleep 1; done\n",
            "`$(ls)` is a command or an expansion of a shell",
            "$(ls)",
            "scripts are read and not run",
        ),
    ] {
        fails(&format!("{tc}{text}"), title, at, &[says]);
    }
    // A problem in a loop is said once.
    let error =
        Script::parse("for i in 1 2 3; do tc qdisc add dev e$i root fqq; done\n", "x.sh").unwrap_err();
    assert_eq!(error.count(), 1);
    // Loops in loops do not grow without bound.
    let mut text = "tc qdisc add dev eth0 root handle 1: prio\n".to_owned();
    (0..6).for_each(|_| text += "for i in $(seq 1 100); do ");
    text += "echo x; ";
    (0..6).for_each(|_| text += "done; ");
    assert!(Script::parse(&text, "x.sh").unwrap_err().to_string().contains("more than 1048576 commands"));
}

/// Devices of VLANs are not the two ends of a link.
#[test]
fn devices_of_vlans_are_one_device() {
    let pfifo = |device: &str| format!("tc qdisc add dev {device} root pfifo limit 7\n");
    let made = "ip link add link eth0 name vlan10 type vlan id 10\n";
    assert_eq!(keys(&pfifo("eth0.10")), ["link.up.queue=\"7 packets\""]);
    assert_eq!(keys(&format!("{made}{}", pfifo("vlan10"))), ["link.up.queue=\"7 packets\""]);
    // Two of one device are on two links.
    for second in ["eth0.20", "vlan10"] {
        let text = format!("{made}{}{}", pfifo("eth0.10"), pfifo(second));
        let script = Script::parse(&text, "x.sh").unwrap();
        let links: Vec<String> =
            script.placed(false).unwrap().into_iter().map(|one| one.place.link).collect();
        assert_eq!(links, ["eth0-10", second.replace('.', "-").as_str()]);
    }
    for (first, second) in [("eth0", "eth0.10"), ("eth0", "vlan10")] {
        fails(
            &format!("{made}{}{}", pfifo(first), pfifo(second)),
            &format!("`{first}` and `{second}` are one device, with and without a VLAN"),
            pfifo(second).trim_end(),
            &["a link stands for one of them"],
        );
    }
    let two = keys(&format!("{}{}", pfifo("eth0.10"), pfifo("eth1.10")));
    assert_eq!(two, ["link.up.queue=\"7 packets\"", "link.down.queue=\"7 packets\""]);
}

/// Functions are written out where they are called.
#[test]
fn functions_of_a_shell_are_written_out() {
    let text = "limit() {\n  local packets=$2\n  tc qdisc add dev $1 root pfifo limit $packets\n}\n\
        function clean { tc qdisc del dev eth0 root; return; tc qdisc add dev eth0 root fq; }\n\
        never () { tc qdisc add dev eth2 root fq\n}\n\
        clean\nlimit eth0 7\nlimit eth1 8\nsleep 1\ntc -s qdisc show dev eth0\n";
    assert_eq!(keys(text), ["link.up.queue=\"7 packets\"", "link.down.queue=\"8 packets\""]);
    let sudo =
        "sudo -u root -E /sbin/tc qdisc add dev eth0 root pfifo limit 7\ntc class del dev eth0 classid 1:9\n";
    assert_eq!(keys(sudo), ["link.up.queue=\"7 packets\""]);
}

/// Commands about the rest of a host are passed over, also in other namespaces; what decides which disciplines there are is not.
#[test]
fn what_prepares_a_host_is_passed_over() {
    let text = "sysctl -qw net.ipv4.ip_forward=1\nip netns exec blue sysctl -w net.ipv4.tcp_ecn=1\n\
        ip -netns blue addr add 10.0.0.1/24 dev eth0\nip -n blue l set eth0 up\nip a add 10.0.0.2/24 dev eth0\n\
        ip n r 10.0.0.1 lladdr 02:00:00:00:00:01 dev eth0\ntc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(text), ["link.up.delay=\"2ms\""]);
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    let none = format!("nft flush ruleset\nnft delete table ip x || true\nnft list ruleset\n{add}");
    assert_eq!(keys(&none), ["link.up.delay=\"2ms\""]);
    for rules in ["nft add table ip x", "nft -f x.rules", "nft -f - <<E\ntable ip x {}\nE"] {
        fails(&format!("{add}{rules}\n"), "rules of nftables are not read", "nft", &["rules of iptables"]);
    }
    fails(
        "sysctl net.core.default_qdisc=fq\ntc qdisc add dev eth0 root handle 1: mq\n",
        "a default for the queues of `mq`",
        "sysctl",
        &[],
    );
    assert_eq!(keys(&format!("ip link set dev eth0 mtu 1500\ndoas {add}")), ["link.up.delay=\"2ms\""]);
}

/// The MTU of a device is that of its link.
#[test]
fn mtus_of_devices() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    for line in [
        "ip link set dev eth0 mtu 900",
        "ip li set eth0 mtu 900 up",
        "ifconfig eth0 mtu 900",
        "ip link add eth0 mtu 900 type dummy",
        "ip link add link eth1 eth0 mtu 900 type vlan id 10",
        "ip link add eth0 mtu 900 type veth peer name eth1",
        "ip link add eth1 type veth peer name eth0 mtu 900",
    ] {
        assert_eq!(keys(&format!("{line}\n{add}")), ["link.up.delay=\"2ms\"", "link.up.mtu=900"], "{line}");
    }
    for line in [
        "ip link set dev eth1 mtu 900",
        "ip -n blue link set eth0 mtu 900",
        "ip netns exec blue ip link set eth0 mtu 900",
    ] {
        assert_eq!(keys(&format!("{line}\n{add}")), ["link.up.delay=\"2ms\""], "{line}");
    }
    let inside = format!("ip -n blue link set eth0 mtu 900\nip netns exec blue {add}");
    assert_eq!(keys(&inside), ["link.up.delay=\"2ms\"", "link.up.mtu=900"]);
    for (line, title, at) in [
        ("ip link set dev eth0 mtu 60", "found `60`, expected an MTU from 68 to 65535 bytes", "60"),
        ("ip link set dev eth0 mtu", "`mtu` lacks a number of bytes", "\n"),
        ("ip link add a mtu 900 type veth peer name b mtu 800", "a second MTU", "mtu 800"),
        ("ip link set a mtu 900 mtu 800", "a second MTU", "mtu 800"),
        ("ip route add default mtu 900", "`ip` is not a command of tc", "ip"),
        ("ip link set dev eth0 mtu 900 down", "`ip` is not a command of tc", "ip"),
    ] {
        fails(&format!("{line}\n"), title, at, &[]);
    }
    fails(
        &format!("{add}sleep 1\nip link set eth0 mtu 900\n"),
        "an MTU or a queue length after `sleep`",
        "ip link",
        &["before the `sleep`"],
    );
}

/// Programs that narrows does not know are told of; those that may run tc, and words of tc, are refused.
#[test]
fn programs_that_are_not_known() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    let text = format!(
        "ptp4l -i eth0 -2 &\n/usr/bin/killall iperf3\ncgcreate -g net_cls:/a\n{add}exec \"$@\"\ntc qdisc add dev eth1 root fq\n"
    );
    assert_eq!(keys(&text), ["link.up.delay=\"2ms\""]);
    let said = Script::parse(&text, "x.sh").unwrap().explain().unwrap();
    let words: Vec<&String> = said.iter().flat_map(|one| &one.words).collect();
    let killall =
        "Not a command of tc: ignored. What `killall` does to devices or packets is not known here.";
    assert!(words.iter().any(|word| *word == killall), "{words:?}");
    for line in [
        "./setup.sh",
        "/opt/setup.sh",
        "setup.sh eth0",
        "bash setup.sh",
        "ebtables -A FORWARD -j DROP",
        "tcc qdisc add dev eth0 root fq",
        "qdsic add dev eth0 root fq",
        "watch tc -s qdisc",
        "run 'tc qdisc add dev eth0 root fq'",
    ] {
        let name = line.split(' ').next().unwrap();
        fails(
            &format!("{add}{line}\n"),
            &format!("`{name}` is not a command of tc"),
            line,
            &["narrows tc commands"],
        );
    }
}

/// A device whose name a command prints, or that is an argument, has the name of the variable.
#[test]
fn devices_that_are_not_in_the_script() {
    let text = "IF=$(ip route get 8.8.8.8 | awk '{print $5}')\nDEV=\"$IF\"\ntc qdisc add dev $IF root handle 1: prio\n\
        tc qdisc add dev ${DEV} parent 1:1 handle 10: pfifo limit 7\ntc qdisc add dev $1 root pfifo limit 8\n\
        ip link set dev $DEV up\nethtool -K $IF gro off\ntc -s qdisc show dev $DEV\n";
    let script = Script::parse(text, "x.sh").unwrap();
    assert_eq!(script.changed_devices(), ["$IF", "$1"]);
    let all = keys(text).join("\n");
    assert!(all.contains("{ name = \"1:1\", queue = \"7 packets\" }"), "{all}");
    let some = "IF=$(ip route)\nIP=$(hostname -I)\n";
    for (line, at) in [
        ("tc qdisc add dev eth0 root tbf rate $IP burst 5kb latency 5ms", "$IP"),
        ("tc filter add dev $IF parent 1: protocol ip u32 match ip dst $IP/32 flowid 1:1", "$IP"),
        ("$IF qdisc add dev eth0 root fq", "$IF"),
    ] {
        let error = Script::parse(&format!("{some}{line}\n"), "x.sh").unwrap_err().to_string();
        assert!(
            error.contains(&format!("`{at}` has the output of a command as its value")),
            "{line}: {error}"
        );
    }
}

/// What runs tc in a container or on another machine names where the device is.
#[test]
fn devices_elsewhere() {
    let pfifo = "tc qdisc add dev eth0 root pfifo limit 7";
    for (before, place) in [
        ("kubectl exec -it -n demo deployment/api --", "api"),
        ("kubectl -n demo exec api -c app -- sudo", "api"),
        ("lxc exec box --", "box"),
        ("pct exec 210 --", "210"),
        ("lxc-attach -n box --", "box"),
        ("sudo lxc-attach --name=box --clear-env --", "box"),
        ("adb shell", "adb"),
        ("adb -s emulator-5554 shell su root", "emulator-5554"),
        ("adb shell su -c", "adb"),
        ("ssh -p 2222 root@host", "host"),
        ("docker run --rm --net=container:redis image", "redis"),
        ("docker exec -u root web", "web"),
        ("ip netns exec a", "a"),
    ] {
        for command in [pfifo.to_owned(), format!("sh -c '{pfifo}'")] {
            let text = format!("{before} {command}\n");
            let script = Script::parse(&text, "x.sh").unwrap();
            assert_eq!(script.changed_devices(), [format!("{place}/eth0")], "{text}");
            assert_eq!(keys(&text), ["link.up.queue=\"7 packets\""], "{text}");
        }
    }
    assert_eq!(keys(&format!("ssh host \"{pfifo}\"\n")), ["link.up.queue=\"7 packets\""]);
    // Several commands, with what the other shell makes of them.
    for text in [
        format!("ssh host '{pfifo}; uptime'\n"),
        format!("N=7; ssh -p 22 host \"sudo {} && \\\n echo ok\"\n", pfifo.replace('7', "$N")),
        format!("ip netns exec a bash -c 'for d in eth0; do {}; done'\n", pfifo.replace("eth0", "$d")),
        format!("sudo sh -c \"{pfifo}\"\n"),
        format!("echo '{pfifo}' > shape.sh; sh ./shape.sh\n"),
    ] {
        assert_eq!(keys(&text), ["link.up.queue=\"7 packets\""], "{text}");
    }
    let script = Script::parse(&format!("ssh host '{pfifo}; uptime'\n"), "x.sh").unwrap();
    assert_eq!(script.changed_devices(), ["host/eth0"]);
    for (before, place) in [
        ("adb -s R58 shell", "R58"),
        ("adb shell -T", "adb"),
        ("vagrant ssh router -c", "router"),
        ("vagrant ssh --command", "vagrant"),
    ] {
        for sudo in ["", "sudo "] {
            let text = format!("{before} '{sudo}{pfifo}'\n");
            let script = Script::parse(&text, "x.sh").unwrap();
            assert_eq!(script.changed_devices(), [format!("{place}/eth0")], "{text}");
            assert_eq!(keys(&text), ["link.up.queue=\"7 packets\""], "{text}");
        }
    }
}

/// Rules of other tables change no marks; those that translate addresses are in the way of filters by addresses.
#[test]
fn tables_of_iptables_beside_mangle() {
    let rules = "iptables -t nat -A POSTROUTING -j MASQUERADE\niptables -A FORWARD -i eth1 -m conntrack --ctstate NEW -j ACCEPT\n\
        iptables -t raw -A PREROUTING -d 10.0.0.1 -j NOTRACK\niptables -F\n\
        tc qdisc add dev eth0 root handle 1: prio\n";
    let all = keys(&format!("{rules}tc filter add dev eth0 parent 1: protocol ip matchall classid 1:2\n"));
    assert!(all.join("\n").contains("class = \"1:2\""), "{all:?}");
    fails(
        &format!("{rules}tc filter add dev eth0 parent 1: protocol ip flower dst_ip 10.0.0.1 classid 1:2\n"),
        "a filter by addresses or ports, which iptables translates before it sees them",
        "tc filter",
        &["leave out the translation"],
    );
    fails("iptables -R FORWARD 1 -j DROP\n", "there is no rule with this number", "iptables", &[]);
    fails("iptables -P FORWARD DROP\n", "a chain of iptables whose policy is `DROP`", "DROP", &[]);
    // A rule that is not there yet is added.
    let mark = "-t mangle -A POSTROUTING -p tcp -j MARK --set-mark 6";
    let added = format!(
        "iptables {} || iptables {mark}\ntc qdisc add dev eth0 root handle 1: prio\n\
         tc filter add dev eth0 parent 1: protocol ip handle 6 fw classid 1:2\n",
        mark.replace("-A", "-C")
    );
    assert!(keys(&added).join("\n").contains("protocol = \"tcp\""), "{:?}", keys(&added));
    fails(
        &format!("setup || iptables {mark}\n"),
        "what depends on the success or failure of another command",
        "iptables",
        &[],
    );
    fails(
        "iptables -t nat -A PREROUTING -j mine\n",
        "a rule of the table `nat` of iptables",
        "-A",
        &["mangle"],
    );
}

/// What depends on whether another command succeeds, or is for one command alone, has no effect on the rest.
#[test]
fn what_a_shell_does_beside_the_commands() {
    let add = "tc qdisc add dev eth0 root netem delay ${D}ms\n";
    for before in [
        "D=2\nmodprobe ifb || { echo no ifb; exit 1; }\n",
        "D=2\ndie() { echo \"$1\"; exit 1; }\nip link add ifb0 type ifb || die failed\n",
        "D=2\ngrep -q x <<< \"a b\"\n",
        "D=2\nexec > >(tee log) 2>&1\n",
        "D=2\nf() { local D=9; echo $D; }\nf\n",
        "D=2\nD=9 echo hi\n",
        "D=2\necho a | D=9\n",
        "D=2\nsleep 5 &\n",
        "D=2\nmodprobe ifb || return 1\n",
        "A=$1 D=2\n",
        "D=2\nip link set eth0 txqueuelen 100\n",
        "D=3\nprintf -v D %d 2\n",
        "D=2\ncontinue\n",
    ] {
        assert_eq!(keys(&format!("{before}{add}")), ["link.up.delay=\"2ms\""], "{before}");
    }
    for (before, title) in [
        (
            "D=2\ngrep -q x f || D=8\n",
            "`$D` has what a condition decides that depends on more than the script",
        ),
        ("D=2\nread D\n", "`$D` has what the script reads as its value"),
        ("D=2\ngrep -q x f && exit\n", "what depends on the success or failure of another command"),
        ("D=2\ngrep -q x f && ", "what depends on the success or failure of another command"),
        (
            "D=2\nmodprobe ifb || { tc qdisc add dev eth1 root fq; }\n",
            "what depends on the success or failure of another command",
        ),
    ] {
        let error = Script::parse(&format!("{before}{add}"), "x.sh").unwrap_err().to_string();
        assert!(error.contains(title), "{before}{error}");
    }
}

#[test]
fn a_script_that_needs_arguments_says_so() {
    let text = "case $1 in on) tc qdisc add dev eth0 root fq;; esac\n";
    let error = Script::parse(text, "x.sh").unwrap_err().to_string();
    assert!(
        error.contains("there is no command of tc") && error.contains("`narrows tc commands`"),
        "{error}"
    );
    let plain = Script::parse("echo a\n", "x.sh").unwrap_err().to_string();
    assert!(plain.contains("as in: tc qdisc add"), "{plain}");
    let rate =
        Script::parse("tc qdisc add dev eth0 root tbf rate $1 burst 5kb latency 1s", "x.sh").unwrap_err();
    assert!(rate.to_string().contains("narrows tc check SCRIPT ARG"), "{rate}");
}

#[test]
fn scripts_have_the_arguments_that_they_are_started_with() {
    let text = "[ $# -lt 2 ] && { echo usage; exit 1; }\nDEV=$1; shift\n\
        for limit in \"$@\"; do tc qdisc replace dev $DEV root pfifo limit $limit; done\n\
        case ${3:-keep} in keep) ;; *) tc qdisc del dev $DEV root;; esac\n";
    let given = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|&word| word.into()).collect();
        Script::parse_with(
            text,
            "x.sh",
            narrows_scenario::Start { arguments: Some(&arguments), variables: &[], path: None },
        )
        .map(|script| script.assignments(false).unwrap())
    };
    assert_eq!(given(&["eth0", "5", "7"]).unwrap(), ["link.up.queue=\"7 packets\""]);
    assert!(given(&["eth0", "5", "6", "7"]).unwrap().is_empty());
    assert!(given(&["eth0"]).unwrap_err().to_string().contains("there is no command of tc"));
}

/// Each of a list of the host's devices is configured alike: the device of the link is one of them.
#[test]
fn lists_of_devices_that_are_not_in_the_script() {
    for head in [
        "for d in $(ip link show | awk -F: '{print $2}')",
        "for d in $(ls /sys/class/net | grep -v lo)",
        "for p in /sys/class/net/*; do d=$(basename $p); [ \"$d\" = lo ] && continue",
        "for p in /sys/class/net/*; do d=$(basename $p); if [ \"$d\" = lo ]; then continue; fi",
        "for c in $(docker ps -q); do d=eth0; nsenter -t $c -n true",
    ] {
        let start = if head.contains("do ") { format!("{head};") } else { format!("{head}; do") };
        let add = match head.contains("docker") {
            true => "docker exec $c tc qdisc add dev $d root netem delay 2ms",
            false => "tc qdisc add dev $d root netem delay 2ms",
        };
        let text = format!("{start} {add}; done\n");
        assert_eq!(keys(&text), ["link.up.delay=\"2ms\""], "{text}");
        assert!(crate::hooks::said(&text).contains("as for one of its values"), "{text}");
    }
    // What is only removed from each of them is not there.
    let clears = "for d in $(ls /sys/class/net); do tc qdisc del dev $d root; done\n\
        tc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(clears), ["link.up.delay=\"2ms\""]);
    fails(
        "for i in $(cat list); do tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit; done\n",
        "a command for each of a list that is not in the script, and not for a device of it",
        "tc class add",
        &[],
    );
    fails(
        "for d in $(ls); do tc qdisc add dev $d root netem delay 2ms; done\ntc qdisc add dev eth0 root fq\n",
        "a device beside those of a list that is not in the script, of which it may be one",
        "tc qdisc add dev eth0",
        &[],
    );
}

/// A function that returns where something holds that is not known, and has no effect if it goes on, is asked.
#[test]
fn functions_that_may_return_in_between() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    for function in [
        "f() { if [ -e /sys/x ]; then return 0; fi; return 1; }",
        "f() { [ -x /sbin/foo ] && return 0; echo no; return 1; }",
        "f() { if tc qdisc show dev lo | grep -q fq; then echo yes; return; fi; A=5; return 1; }",
        "f() { if [ -e /a ]; then if [ -e /b ]; then return 0; fi; fi; return 1; }",
    ] {
        let text = format!("{function}\nA=2\nif f; then echo yes; fi\nf || echo no\n{add}");
        assert_eq!(keys(&text), ["link.up.delay=\"2ms\""], "{text}");
    }
    let sets = "f() { [ -e /x ] && return 0; D=3; }\nD=2\nf\ntc qdisc add dev eth0 root netem delay ${D}ms\n";
    fails(
        sets,
        "`$D` has what a condition decides that depends on more than the script as its value",
        "${D}",
        &[],
    );
    let acts = format!("f() {{ [ -e /x ] && return 0; {} }}\nf\n", add.trim_end());
    fails(&acts.replace(" }", "; }"), "a condition that depends on more than the script", "[ -e", &[]);
    let loops = format!("f() {{ for i in 1 2; do [ -e /x$i ] && return 0; done; }}\nf\n{add}");
    fails(&loops, "a loop of a function that may return in it", "for i", &[]);
}

#[test]
fn values_of_the_surroundings_are_optional() {
    let add = "tc qdisc add dev ${DEV:-eth0} root netem delay 2ms $MORE ${LIST[@]}\n";
    // What has no value may still be the name of a device.
    let named = "IF=$OUT\niptables -t mangle -A POSTROUTING -o $IF -p tcp -j MARK --set-mark 1\n\
        tc qdisc add dev $IF root handle 1: prio\ntc filter add dev $IF parent 1: handle 1 fw flowid 1:1\n";
    assert!(keys(named).concat().contains("protocol = \"tcp\""), "{:?}", keys(named));
    let given = |name: &str, value: &str| {
        let variables = [(name.to_owned(), value.to_owned())];
        let start = narrows_scenario::Start { variables: &variables, ..narrows_scenario::Start::default() };
        Script::parse_with("tc qdisc add dev $DEV root netem delay ${D:-3ms}\n", "x.sh", start)
    };
    let device = |script: &Script| script.devices(false).unwrap()[0].name.clone();
    assert_eq!(device(&given("DEV", "eth7").unwrap()), "eth7");
    assert!(given("D", "2ms").unwrap_err().to_string().contains("--env DEV=VALUE"));
    let list =
        "export L=$L\nfor d in \"${L[@]}\" $L; do [ -n \"$d\" ] || continue; tc filter add dev $d; done\n";
    assert_eq!(keys(&format!("{list}DEV=eth0\n{add}")), ["link.up.delay=\"2ms\""]);
    for before in ["MORE=$MORE\n", "export MORE=${MORE}\n", "eval export LIST=$LIST\n", "DEV=$(ip route)\n"] {
        assert_eq!(keys(&format!("{before}{add}")), ["link.up.delay=\"2ms\""], "{before}");
    }
}

/// PPP and tunnels add their headers behind the disciplines of their devices.
#[test]
fn devices_without_a_link_header_count_ip_packets() {
    let of = |device: &str, more: &str| {
        keys(&format!("tc qdisc add dev {device} {more}root tbf rate 1mbit burst 10k latency 50ms\n"))
            .concat()
    };
    assert!(of("eth0", "").contains("overhead=\"frame\""));
    for device in ["ppp0", "wg0", "tun1", "pppoe-wan"] {
        assert!(!of(device, "").contains("overhead"), "{device}");
        assert!(of(device, "stab overhead 10 ").contains("base = \"ip\", bytes = 10"), "{device}");
    }
    let queue = |device: &str, before: &str| {
        keys(&format!("{before}tc qdisc add dev {device} root pfifo\n")).concat()
    };
    assert_eq!(queue("ppp0", ""), "link.up.queue=\"3 packets\"");
    assert_eq!(queue("tun0", ""), "link.up.queue=\"500 packets\"");
    assert_eq!(queue("ppp0", "ip link set ppp0 txqueuelen 100\n"), "link.up.queue=\"100 packets\"");
    assert_eq!(queue("eth0", ""), "link.up.queue=\"1000 packets\"");
}

#[test]
fn a_device_may_get_no_queue() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    let without = "tc qdisc replace dev eth0 root noqueue\n";
    assert_eq!(keys(&format!("{without}{add}")), ["link.up.delay=\"2ms\""]);
    assert!(keys(&format!("{add}{without}")).is_empty());
}

#[test]
fn sessions_with_traces_of_a_shell() {
    let text = "+ sudo tc qdisc add dev eth0 root handle 1: netem delay 2ms\n++ date\n";
    assert_eq!(keys(text), ["link.up.delay=\"2ms\""]);
    let session = "me@host % sudo tc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(session), ["link.up.delay=\"2ms\""]);
}

/// A device that the script has not configured has nothing to lose, whatever the host says of it.
#[test]
fn what_is_there_before_the_script_is_taken_away() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    let asks = "tc qdisc show dev eth0 | grep \"noqueue 0\" >/dev/null\nif [ $? -ne 0 ]; then echo old; tc qdisc del dev eth0 root; fi\n";
    assert_eq!(keys(&format!("{asks}{add}")), ["link.up.delay=\"2ms\""]);
    fails(&format!("{add}{asks}"), "a condition that depends on more than the script", "[ $? -ne 0 ]", &[]);
    // Nobody has set it; what `if` asks for depends on both.
    let modes = "if [[ ! -z $MODE ]] && [[ -z $IFACE ]]; then exit 1; fi\nif [[ -z $MODE ]] || [[ -z $D ]]; then D=2; fi\n";
    let text = format!("{modes}tc qdisc add dev eth0 root netem delay ${{D}}ms\n");
    assert_eq!(keys(&text), ["link.up.delay=\"2ms\""]);
    let rate = "R=`echo \"60 * 80 / 100\" | bc -l | xargs printf \"%.2fkbit\"`\ntc qdisc add dev eth0 root netem rate $R\n";
    assert!(keys(rate).concat().contains("link.up.rate=\"48kbit\""), "{:?}", keys(rate));
    let prompts = "# sudo tc qdisc add dev eth0 root \\\n handle 1: netem delay 2ms\n# tc qdisc show\n";
    assert_eq!(keys(prompts), ["link.up.delay=\"2ms\""]);
}

/// What changes nothing goes on like that: nothing is behind it.
#[test]
fn loops_that_change_nothing() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    for after in [
        "while true; do iperf -c 10.0.0.1 -t 1; ping -c 1 a; done\ntc qdisc del dev eth0 root\n",
        "while :; do sleep 60; done\n",
        "until false; do true; done\n",
    ] {
        assert_eq!(keys(&format!("{add}{after}")), ["link.up.delay=\"2ms\""], "{after}");
    }
}

/// What a script asks for, and has not configured, is not there.
#[test]
fn what_is_not_there_is_not_found() {
    let before = "IF=eth0\nhas() { if ip link show \"$1\" > /dev/null; then return 0; else return 1; fi; }\n\
        has ifb0 || modprobe ifb\n\
        first() { for dev in ens3 eth0; do if has $dev; then echo $dev; return 0; fi; done; }\nOTHER=${IF:-$(first)}\n\
        [[ $(tc qdisc | grep '^qdisc htb 1:') ]] && tc qdisc del dev $IF root\n\
        end=$(date +%s); time=$((end - 5)); echo $time\n";
    let text = format!(
        "{before}tc qdisc add dev $OTHER root handle 1: htb default 1\nTCN='tc qdisc add'\n\
         tc class add dev $IF parent 1: classid 1:1 htb rate 1mbit\n\
         [[ $(tc qdisc show | grep \"netem .* $IF\") ]] && TCN='tc qdisc change'\n$TCN dev $IF parent 1:1 netem delay 2ms\n"
    );
    let found = keys(&text).concat();
    assert!(found.contains("netem = \"delay 2ms\""), "{found}");
    // A number tells disciplines of one kind apart.
    let numbered = |asked: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 handle 10: netem delay 2ms\n\
             D=3ms; [[ $(tc qdisc | grep '{asked}') ]] && D=4ms\n\
             sudo-g5k tc qdisc add dev eth0 parent 1:2 handle 20: netem delay $D\n"
        )
    };
    let short = numbered("^qdisc netem 10:").replace("handle 10:", "handle 10");
    assert!(Script::parse(&short, "x.sh").is_err(), "tc takes `handle 10` for `10:`");
    let found = keys(&numbered("^qdisc netem 20:")).concat();
    assert!(found.contains("netem = \"delay 3ms\""), "{found}");
    for known in ["^qdisc netem 10:", "qdisc pfifo_fast 0:", "qdisc netem 8001:", "netem 2?0:"] {
        let title = "`$D` has what a condition decides that depends on more than the script as its value";
        fails(&numbered(known), title, "$D", &[]);
    }
    // Of nothing, filters of lines leave nothing.
    let old = "IF=\"$(tc qdisc show | grep netem | awk '{print $5}' | head -n 1 | head -c -1)\"\n\
        while [ -n \"$IF\" ]; do tc qdisc del dev $IF root; done\ntc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(old), ["link.up.delay=\"2ms\""]);
    // `ls` is an option of hfsc: the command shows nothing.
    for head in ["read x\nif [ \"$x\" = yes ]; then", "for ip in $(wg show wg0); do"] {
        let end = if head.contains("if") { "fi" } else { "done" };
        let text = format!("{head} tc class add dev eth0 parent 1: classid 1:1 hfsc ls rate 6mbit; {end}\n");
        assert!(Script::parse(&text, "x.sh").is_err(), "{text}");
    }
    // Which system it is is not known either; that it is another one is a guard.
    let guard = "[[ \"${OSTYPE:-}\" != linux* ]] && exit 1\ntc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(guard), ["link.up.delay=\"2ms\""]);
    // What it has configured may be found.
    let asks = "tc qdisc add dev eth0 root netem delay 2ms\n[[ $(tc qdisc | grep netem) ]] && tc qdisc del dev eth0 root\n";
    fails(asks, "a condition that depends on more than the script", "[[", &[]);
}

/// In a document, what is not closed goes to its end.
#[test]
fn expansions_that_are_not_closed_end_anywhere() {
    for text in ["a `\u{e9}", "b $[\u{e9}", "c $(\u{e9}", "d ${\u{e9}", "`", "$["] {
        let _ = Script::parse(&format!("cat <<EOF\n{text}\nEOF\ntc qdisc add dev eth0 root fq\n"), "x.sh");
        let _ = Script::parse(text, "x.sh");
        let _ = Script::parse(&format!("A=\"{text}\"\ncat <<EOF\n{text}"), "x.sh");
    }
}

/// A session as people show it.
#[test]
fn prompts_stand_before_commands() {
    for text in [
        "% D=2\n% tc qdisc add dev eth0 root netem delay ${D}ms\n",
        "$ D=2\n$ sudo tc qdisc add dev eth0 root netem delay ${D}ms\n",
        "# D=2\n# tc qdisc add dev eth0 root netem delay ${D}ms\n",
        "root@gateway:~# tc qdisc add dev eth0 root netem delay 2ms\n",
        "[root@gateway ~]# D=2\n[root@gateway ~]# tc qdisc add dev eth0 root netem delay ${D}ms\n",
        "alice@host:/etc/net$ sudo tc qdisc add dev eth0 root netem delay 2ms\n",
        "mininet> h1 tc qdisc add dev eth0 root netem delay 2ms\n",
    ] {
        assert_eq!(keys(text), ["link.up.delay=\"2ms\""], "{text}");
    }
    fails(
        "tc qdisc add dev <your interface> root netem delay 2ms\n",
        "`<your interface>` stands for a word that is to be written there",
        "<your",
        &[],
    );
    fails(
        "tc qdisc add dev eth0 handle 1: ingress\ntc filter add dev eth0 parent 1: matchall action drop\n",
        "there is no discipline 1: at this device",
        "tc filter",
        &["parent ffff:"],
    );
}

/// What tc prints when it changes something is nothing, and a shell runs nothing then.
#[test]
fn commands_may_stand_where_their_output_is_run() {
    assert_eq!(
        keys("`sudo tc qdisc add dev eth0 root netem delay ${1:-2}ms`\nexit 0\n"),
        ["link.up.delay=\"2ms\""]
    );
}

/// Packets and their answers leave by the loopback device.
#[test]
fn the_loopback_device_is_a_link_both_ways() {
    let lo = "tc qdisc add dev lo root netem delay 2ms\n";
    assert_eq!(keys(lo), ["link.up.delay=\"2ms\"", "link.down.delay=\"2ms\""]);
    let policer = "tc qdisc add dev lo clsact\ntc filter add dev lo ingress protocol all matchall action police rate 1mbit burst 10k drop\n";
    let both = keys(policer);
    assert!(
        both.len() == 2
            && both[0].starts_with("link.down.policer=")
            && both[1].starts_with("link.up.policer="),
        "{both:?}"
    );
    // Packets of another device never pass it.
    let beside = format!("{lo}tc qdisc add dev eth0 root netem delay 5ms\n");
    assert_eq!(keys(&beside), ["link.up.delay=\"5ms\""]);
    let script = Script::parse(&beside, "x").unwrap();
    let notes = script.placed(false).unwrap().remove(0).device.egress.notes;
    assert!(notes.iter().any(|note| note.contains("No packet between hosts passes lo")), "{notes:?}");
}

#[test]
fn one_of_several_transmit_queues_is_not_all_of_them() {
    let root = "tc qdisc add dev eth0 root handle 1: mqprio num_tc 2 map 0 1 queues 1@0 1@1 hw 0\n";
    let child = "tc qdisc add dev eth0 parent 1:1 tbf rate 1mbit burst 5kb latency 70ms\n";
    fails(
        &format!("{root}{child}"),
        "`tbf` for one of several transmit queues",
        "tc qdisc add dev eth0 parent",
        &["`prio`"],
    );
    let usual = root.replace("num_tc 2 map 0 1 queues 1@0 1@1 ", "");
    fails(
        &format!("{usual}{child}"),
        "`tbf` for one of several transmit queues",
        "tc qdisc add dev eth0 parent",
        &[],
    );
    assert!(
        keys(&format!("{}{child}", root.replace("num_tc 2 map 0 1", "num_tc 1 map 0")))
            .join(" ")
            .contains("tbf")
    );
}

/// As `get_tc_classid` of iproute2 reads them, and as the kernel completes them.
#[test]
fn numbers_of_classes_without_a_discipline() {
    let root = "tc qdisc add dev eth0 root handle 2: htb default 10\n";
    let class = |words: &str| keys(&format!("{root}tc class add dev eth0 {words} htb rate 2mbit\n"));
    let whole = class("parent 2: classid 2:10");
    // A class may have a parent that is missing: it is below the discipline.
    for words in [
        "parent 2: classid 10",
        "parent 2: classid 0:10",
        "parent 2: classid 20010",
        "classid 10",
        "parent 1 classid 2:10",
        "parent root classid 10",
    ] {
        assert_eq!(class(words), whole, "{words}");
    }
    let filter = |to: &str| {
        keys(&format!(
            "{root}tc class add dev eth0 parent 2: classid 2:10 htb rate 2mbit\n\
            tc class add dev eth0 parent 2: classid 2:20 htb rate 2mbit\n\
            tc filter add dev eth0 parent 2: protocol ip u32 match ip dport 80 0xffff flowid {to}\n"
        ))
    };
    assert_eq!(filter("20"), filter("2:20"));
}

/// What a script notes for itself is not there before, and is not known afterwards.
#[test]
fn files_that_a_script_makes_itself() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms";
    for text in [
        format!("F=/var/run/x.pid\nif [ -f $F ]; then echo there; else {add}; touch $F; fi\n"),
        format!("if [ -e /tmp/on ]; then tc qdisc del dev eth0 root; else {add}; echo 1 > \"/tmp/on\"; fi\n"),
        format!("[ -s /tmp/on ] || {{ {add}; date >/tmp/on; }}\n"),
    ] {
        assert_eq!(keys(&text), ["link.up.delay=\"2ms\""], "{text}");
    }
    for text in [
        format!("if [ -f /tmp/on ]; then echo there; else {add}; fi\n"),
        format!("touch /tmp/on\nif [ -f /tmp/on ]; then echo there; else {add}; touch /tmp/on; fi\n"),
    ] {
        fails(&text, "a condition that depends on more than the script", "[ -f", &[]);
    }
}

#[test]
fn what_waits_in_the_background_and_is_waited_for() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms";
    for wait in ["wait", "wait $!", "# until then\nwait"] {
        let text = format!(
            "f() {{ {add}; sleep 5; tc qdisc change dev eth0 root netem delay 7ms; }}\nf &\n{wait}\n"
        );
        match wait.starts_with('#') {
            true => assert!(Script::parse(&text, "x.sh").is_err(), "a comment between them"),
            false => {
                assert_eq!(Script::parse(&text, "x.sh").unwrap().steps(false).unwrap().len(), 1, "{text}")
            }
        }
    }
    let text = format!("(sleep 5; {add}) &\nwaiting\n");
    assert!(Script::parse(&text, "x.sh").unwrap_err().to_string().contains("in the background that wait"));
}

#[test]
fn users_without_rights_change_nothing() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms";
    for before in [
        "su -c 'cd x && ./run.sh' - user",
        "su - user -c './run.sh'",
        "source /dev/null",
        "which tc > /dev/null",
    ] {
        assert_eq!(keys(&format!("{before}\n{add}\n")), ["link.up.delay=\"2ms\""], "{before}");
    }
    assert_eq!(keys(&format!("su -c '{add}'\n")), ["link.up.delay=\"2ms\""]);
    assert_eq!(keys(&format!("su - root -c '{add}'\n")), ["link.up.delay=\"2ms\""]);
    let error = Script::parse(&format!("su user -c '{add}'\n"), "x.sh").unwrap_err().to_string();
    assert!(error.contains("`su` is not a command of tc"), "{error}");
}

/// Devices that are down matter where the script has something there.
#[test]
fn devices_that_stay_down() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    assert_eq!(keys(&format!("ifconfig eth1 down\n{add}sleep 3\n")), ["link.up.delay=\"2ms\""]);
    let redirected = "tc qdisc add dev eth0 ingress\ntc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n";
    let others = add.replace("eth0", "eth2") + &add.replace("eth0", "eth3");
    for (down, more) in [("eth0", ""), ("ifb0", redirected), ("eth1", &others)] {
        let text = format!("{more}ip link set {down} down\n{add}");
        let error = Script::parse(&text, "x.sh").unwrap_err().to_string();
        assert!(error.contains("is taken down, and no packet passes it"), "{text}{error}");
    }
}

#[test]
fn a_password_is_no_input() {
    let add = "tc qdisc add dev eth0 root netem delay 2ms";
    for text in [
        format!("echo secret | sudo -S {add}\n"),
        format!("printf '%s\\n' secret | sudo -k -S -p '' {add}\n"),
        format!("ssh host \"echo secret | sudo --stdin {add}\"\n"),
    ] {
        assert_eq!(keys(&text), ["link.up.delay=\"2ms\""], "{text}");
    }
    fails(
        &format!("echo x | sudo {add}\n"),
        "a tc command that reads another command's output",
        "tc qdisc",
        &[],
    );
}

/// What a script sources, or reads, is beside it; nothing else of the host is opened.
#[test]
fn files_of_a_script_are_beside_it() {
    let folder = std::env::temp_dir().join(format!("narrows-tc-beside-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("lib")).unwrap();
    let script = folder.join("shape.sh");
    std::fs::write(
        folder.join("lib/qos.conf"),
        "DELAY=2ms\nshape() { tc qdisc add dev $1 root netem delay $DELAY; }\n",
    )
    .unwrap();
    std::fs::write(folder.join("devices"), "# devices\neth0\n").unwrap();
    for text in [
        "HERE=$(cd \"$(dirname \"$0\")\" && pwd)\n. \"$HERE/lib/qos.conf\"\nshape eth0\n",
        "source ./lib/qos.conf\nwhile read -r dev; do case $dev in '#'*) continue;; esac; shape $dev; done < devices\n",
        "[ -f lib/qos.conf ] && . lib/qos.conf\nfor dev in $(grep -v '#' devices); do shape $dev; done\n",
    ] {
        std::fs::write(&script, text).unwrap();
        let made = Script::load(&script).unwrap_or_else(|error| panic!("{text}{error}"));
        assert_eq!(made.assignments(false).unwrap(), ["link.up.delay=\"2ms\""], "{text}");
    }
    // What takes the place of the shell runs, too, and nothing behind it.
    std::fs::write(folder.join("more.sh"), "tc qdisc change dev eth0 root netem delay 2ms\n").unwrap();
    for exec in [
        "exec sh more.sh",
        "exec ./more.sh \"$@\"",
        "(exec ./more.sh); exec /opt/other.sh",
        "exec bash -c '. ./more.sh'",
    ] {
        let text =
            format!("tc qdisc add dev eth0 root netem delay 7ms\n{exec}\ntc qdisc del dev eth0 root\n");
        std::fs::write(&script, text).unwrap();
        let made = Script::load(&script).unwrap_or_else(|error| panic!("{exec}{error}"));
        assert_eq!(made.assignments(false).unwrap(), ["link.up.delay=\"2ms\""], "{exec}");
        let said: String = made.explain().unwrap().into_iter().flat_map(|one| one.words).collect();
        assert_eq!(said.contains("takes the place of the shell"), exec.contains("other"), "{exec}");
    }
    // A program is none of them, whatever its name.
    for (name, bytes) in
        [("server", &b"\x7fELF\x00\xff("[..]), ("client.py", b"#!/usr/bin/env python3\nprint(1)\n")]
    {
        std::fs::write(folder.join(name), bytes).unwrap();
        std::fs::write(&script, format!("./{name} &\ntc qdisc add dev eth0 root netem delay 2ms\n")).unwrap();
        let made = Script::load(&script).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(made.assignments(false).unwrap(), ["link.up.delay=\"2ms\""], "{name}");
    }
    // A script that is not there fails, unless something else may have made it.
    let add = "tc qdisc add dev eth0 root netem delay 2ms\n";
    for (text, is_read) in [
        ("./clear.sh\n", true),
        ("bash clear.sh a b\nsh ./clear.sh\n", true),
        ("./clear.sh && tc qdisc add dev eth0 root fq\n", true),
        ("if ./clear.sh; then exit; fi; [ $? = 0 ] || exit\n", true),
        ("# clear.sh clears\necho clear.sh; bash clear.sh -i eth0\n", true),
        ("clear.sh\n", false),
        ("lib/clear.sh\n", false),
        ("curl -o clear.sh http://a.net\n./clear.sh\n", false),
        ("wget http://a.net/clear.sh\nsh clear.sh\n", false),
        ("cd /srv; ./clear.sh\n", false),
        ("set -e\n./clear.sh\n", false),
    ] {
        std::fs::write(&script, format!("{text}{add}")).unwrap();
        let made = Script::load(&script);
        assert_eq!(made.is_ok(), is_read, "{text}");
        let Ok(made) = made else { continue };
        assert_eq!(made.assignments(false).unwrap(), ["link.up.delay=\"2ms\""], "{text}");
        let said: String = made.explain().unwrap().into_iter().flat_map(|one| one.words).collect();
        assert!(said.contains("clear.sh` beside the script"), "{text}: {said}");
    }
    for outside in ["/srv/shape.conf", "../shape.conf", "lib/../../x", "missing.conf"] {
        std::fs::write(&script, format!(". {outside}\ntc qdisc add dev eth0 root fq\n")).unwrap();
        let error = Script::load(&script).unwrap_err().to_string();
        assert!(error.contains(&format!("the file `{outside}` is not read")), "{error}");
    }
    // One of the host may set what the script does not, which is then not known.
    for (sets, known) in [("D=2\n", true), ("", false)] {
        let text = format!("{sets}. /etc/rc.conf\n{sets}tc qdisc add dev $IF root netem delay ${{D}}ms\n");
        std::fs::write(&script, text).unwrap();
        match Script::load(&script) {
            Ok(made) => assert_eq!(made.assignments(false).unwrap(), ["link.up.delay=\"2ms\""]),
            Err(error) => {
                let error = error.to_string();
                assert!(!known && error.contains("has what a file of the host says"), "{error}");
            }
        }
    }
    std::os::unix::fs::symlink("/etc/hostname", folder.join("link")).unwrap();
    std::fs::write(&script, ". ./link\ntc qdisc add dev eth0 root fq\n").unwrap();
    assert!(Script::load(&script).unwrap_err().to_string().contains("is not read"));
    // What is wrong in such a file is said where it is sourced, without its lines.
    std::fs::write(folder.join("lib/qos.conf"), "tc qdisc add dev eth0 root secret\n").unwrap();
    std::fs::write(&script, "\n. lib/qos.conf\n").unwrap();
    let error = Script::load(&script).unwrap_err().to_string();
    assert!(error.contains("shape.sh:2:1"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A variable that nothing sets is no word, as in a shell, and a note says so; where a word is missing then, that is why.
#[test]
fn variables_that_are_not_set() {
    let text = "tc qdisc add dev eth0 root netem delay 2ms $JITTER\n";
    assert_eq!(keys(text), ["link.up.delay=\"2ms\""]);
    let said = Script::parse(text, "x.sh").unwrap().explain().unwrap();
    let words: Vec<&String> = said.iter().flat_map(|one| &one.words).collect();
    let unset = "`$JITTER` is a variable of a shell that is not set: a shell has no word in its place.";
    assert!(words.iter().any(|word| *word == unset), "{words:?}");
    for (text, at) in [
        ("tc qdisc add dev eth0 root netem delay $DELAY\n", "$DELAY"),
        ("tc qdisc add dev eth0 root netem delay ${DELAY}ms\n", "${DELAY}ms"),
        ("$TC qdisc add dev eth0 root fq\n", "$TC"),
    ] {
        fails(
            text,
            &format!(
                "`${}` is a variable of a shell that is not set",
                at.trim_start_matches("${")
                    .trim_start_matches('$')
                    .trim_end_matches("ms")
                    .trim_end_matches('}')
            ),
            at,
            &["set it above"],
        );
    }
}

/// A script with `set -e` ends at a deletion of nothing, and nothing behind it is executed.
#[test]
fn deletions_of_nothing_end_a_script_that_exits_on_failure() {
    let add = "tc qdisc add dev eth0 root netem delay 3ms\n";
    for nothing in [
        "tc qdisc del dev eth0 root",
        "tc qdisc del dev eth0 root 2> /dev/null",
        "tc qdisc del dev eth0 ingress",
        "tc filter del dev eth0",
        "true && tc class del dev eth0 classid 1:1",
        "clean() { tc qdisc del dev eth0 root; }; clean",
    ] {
        let at = &nothing[nothing.find("tc").expect("it is a command")..];
        let at = at.split(';').next().expect("of a function, or alone");
        let why = "there is nothing to delete: tc fails, and with `set -e` the script ends here";
        fails(&format!("set -e\n{nothing}\n{add}"), why, at, &["`|| true`"]);
        fails(&format!("#!/bin/sh -e\n{nothing}\n{add}"), why, at, &["`|| true`"]);
        for goes_on in [
            format!("{nothing}\n{add}"),
            format!("set -e\n{{ {nothing}; }} || true\n{add}"),
            format!("set -e\nif {{ {nothing}; }}; then :; fi\n{add}"),
            format!("set -e\nset +e\n{nothing}\nset -e\n{add}"),
            format!("set -e\n! {{ {nothing}; }}\n{add}"),
        ] {
            assert_eq!(keys(&goes_on), ["link.up.delay=\"3ms\""], "{goes_on}");
        }
    }
    // Of a pipe, the last command counts, or with `pipefail` each.
    let piped = format!("tc qdisc del dev eth0 root | cat\n{add}");
    assert_eq!(keys(&format!("set -e\n{piped}")), ["link.up.delay=\"3ms\""]);
    assert!(
        Script::parse(&format!("set -eo pipefail\n{piped}"), "x.sh").unwrap().assignments(false).is_err()
    );
    let there = format!("set -e\n{add}tc qdisc del dev eth0 root\n{add}");
    assert_eq!(keys(&there), ["link.up.delay=\"3ms\""]);
}

/// `tc` finds the device of `eth0:1` by a system call that leaves the label out.
#[test]
fn labels_of_addresses_are_no_devices() {
    let text = "tc qdisc add dev eth0:0 root handle 1: htb default 1\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                tc qdisc replace dev eth0:1 root netem delay 3ms\n";
    assert_eq!(keys(text), ["link.up.delay=\"3ms\""]);
}

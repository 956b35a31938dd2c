use super::*;
use std::io;
use std::net::IpAddr;

/// A rule as it is listed.
fn listed(text: &str) -> String {
    rule_text(&rule(text, &context()).unwrap_or_else(|error| panic!("{error}")))
}

/// Names without a network: `xy.it`, and `v6.example` with both families.
fn names(name: &str) -> io::Result<Vec<IpAddr>> {
    let addresses: &[&str] = match name {
        "xy.it" => &["203.0.113.7"],
        "v6.example" => &["2001:db8::7", "203.0.113.8"],
        _ => return Err(io::Error::other("nobody knows")),
    };
    Ok(addresses.iter().filter_map(|address| address.parse().ok()).collect())
}

fn context() -> Context<'static> {
    Context { interfaces: &["em0", "em1"], outside: &[], hosts: &[], resolve: names, ..Context::default() }
}

#[test]
fn rules_are_listed_as_ipfw_lists_them() {
    let same = |text: &str, expected: &str| {
        assert_eq!(listed(text), expected, "{text}");
        assert_eq!(listed(expected), expected, "{text}");
    };
    same("add pipe 1 ip from any to any", "pipe 1 ip from any to any");
    same("add pipe 1 all from any to any", "pipe 1 ip from any to any");
    same("add 00100 pipe 1 out dst-ip 1.2.3.4", "100 pipe 1 ip from any to any out dst-ip 1.2.3.4");
    same("allow tcp from any to any 80", "allow tcp from any to any dst-port 80");
    same(
        "allow tcp from any 1024-65535,22 to me http, https",
        "allow tcp from any 1024-65535,22 to me dst-port 80,443",
    );
    same("allow proto tcp src-port 80", "allow tcp from any 80 to any");
    same("allow in proto tcp src-port 80", "allow ip from any to any in proto tcp src-port 80");
    same(
        "200 set 3 prob 0.25 deny log logamount 5 tag 7 { tcp or udp } from 10.0.0.0/8 to not me 53 in // no DNS",
        "200 set 3 prob 0.250000 deny log tag 7 { tcp or udp } from 10.0.0.0/8 to not me dst-port 53 in // no DNS",
    );
    same("// only a remark", "count ip from any to any // only a remark");
    same("// \\ # not read", "count ip from any to any //");
    same("// one \\ \\", "count ip from any to any // one");
    same("check-state", "check-state");
    same("check-state :default", "check-state");
    same(
        "skipto tablearg ip from table(5,17) to table(web)",
        "skipto tablearg ip from table(5,17) to table(web)",
    );
    same("setdscp 10 ip from any to any dscp 46,af11", "setdscp af11 ip from any to any dscp af11,ef");
    same("count src-ip xy.it", "count ip from 203.0.113.7 to any");
    same("count src-ip xy.it/24", "count ip from 203.0.113.0/24 to any");
    same("count src-ip6 v6.example", "count ip from 2001:db8::7 to any");
    same("count ip6 from v6.example to any", "count ip6 from 2001:db8::7 to any");
    same("count ip from v6.example to any", "count ip from 203.0.113.8 to any");
    same(
        "deny src-ip 10.1.2.3:255.0.255.0, 10.0.0.0:255.0.0.0",
        "deny ip from 10.0.2.0:255.0.255.0,10.0.0.0/8 to any",
    );
    same("deny src-ip 10.0.0.9/24{1,5-9,200}", "deny ip from 10.0.0.0/24{1,5-9,200} to any");
    same("deny src-ip 10.0.0.32/28{33, 35, 34, 40}", "deny ip from 10.0.0.32/28{33-35,40} to any");
    same("deny src-ip 10.0.0.1,10.0.0.2", "deny ip from 10.0.0.1,10.0.0.2 to any");
    same("deny {src-port 53 or dst-port domain}", "deny ip from any to any { src-port 53 or dst-port 53 }");
    same("deny \\( not in or !established \\)", "deny ip from any to any { not in or not established }");
    same(
        "deny tcpflags syn,!ack iptos lowdelay,!throughput",
        "deny ip from any to any tcpflags syn,!ack iptos lowdelay,!throughput",
    );
    same("allow MAC 0a:00:27:0:0:1 any", "allow ip from any to any MAC 0a:00:27:00:00:01 any");
    same(
        "allow MAC a:b:c:d:e:f/24 1:2:3:4:5:6&ff:ff:00:00:00:ff layer2 mac-type arp,ipv6",
        "allow ip from any to any MAC 0a:0b:0c:00:00:00/24 01:02:00:00:00:06&ff:ff:00:00:00:ff layer2 mac-type 0x0806,0x86dd",
    );
    same("allow via em*", "allow ip from any to any via any");
    same("allow recv em1 iplen 0-100", "allow ip from any to any in iplen 0-100");
    same("allow xmit wlan0", "allow ip from any to any via none");
    same("allow src-ip any dst-ip 0.0.0.0/0", "allow ip from any to any");
    same("allow dst-ip6 me6", "allow ip from any to me ip6");
    same("allow icmptypes 8,0 icmp6types 128", "allow ip from any to any icmptypes 0,8 icmp6types 128");
    same(
        "allow tcp from any to any setup limit src-addr dst-port 4",
        "allow tcp from any to any setup limit src-addr,dst-port 4",
    );
    same(
        "allow limit all 4 proto 41 flow-id 1,0xfffff",
        "allow 41 from any to any flow-id 1,1048575 limit all 4",
    );
    same(
        "allow lookup dst-port 9 tagged 1-3,7 ipttl 64 ipprecedence 3 frag tcpdatalen 0 ipversion 6",
        "allow ip from any to any lookup dst-port 9 tagged 1-3,7 ipttl 64 ipprecedence 3 frag tcpdatalen 0 ip6",
    );
    same(
        "allow ipid 0,5-0x10 ipopts ssrr,!rr frag df,!mf,!offset",
        "allow ip from any to any ipid 0,5-16 ipoptions ssrr,!rr frag df,!mf,!offset",
    );
    same(
        "allow ext6hdr hopopt,rthdr0 fib 1 fib 0,2",
        "allow ip from any to any ext6hdr hopopt,rthdr0 fib 1 fib 0,2",
    );
    same("allow frag offset not frag mf", "allow ip from any to any frag not frag mf");
    same(
        "allow tcpseq 0xffffffff tcpack 7 tcpwin 0,100-200 tcpmss 536-1460 tcpopts mss,window,!sack,ts,!cc",
        "allow ip from any to any tcpseq 4294967295 tcpack 7 tcpwin 0,100-200 tcpmss 536-1460 tcpoptions mss,window,ts,!sack,!cc",
    );
    same(
        "allow src-mac 0a:00:27:0:0:1 dst-mac any dst-mac table(t,4)",
        "allow ip from any to any MAC any 0a:00:27:00:00:01 lookup dst-mac t,4",
    );
    same(
        "deny not recv table(1) xmit table(b,2)",
        "deny ip from any to any not recv table(1) xmit table(b,2)",
    );
    same("prob 0.333333333333 count in", "prob 0.333333333333 count ip from any to any in");
    same("prob 1 count in", "count ip from any to any in");
}

//! The meaning of `me` for a network between existing interfaces: their addresses, instead of automatic
//! ones.

use super::Scenario;
use crate::host::{Address, HostAddress};
use crate::ipfw::Written;
use crate::rules_link::RulesLink;

impl Scenario {
    /// What uses `me`: a rule, such as `rule 100`, a translator without an outer address, or a command of the timeline.
    pub fn says_me(&self) -> Option<String> {
        let mut rules = self.links.iter().filter_map(|link| link.rules());
        let is_me = |word: &str| matches!(word, "me" | "me6");
        let says = |command: &&Written| {
            let words: Vec<&str> = command.text.split(|c: char| !c.is_alphanumeric()).collect();
            let is_translator = words.starts_with(&["nat"]) && words.contains(&"config");
            words.iter().any(|word| is_me(word)) || is_translator && !words.contains(&"ip")
        };
        let says_me = |link: &RulesLink| {
            let rule = link.says_me().map(|rule| format!("rule {}", rule.number));
            rule.or_else(|| link.needs_own_address().map(|nat| format!("translator {nat}")))
        };
        match rules.find_map(says_me) {
            Some(rule) => Some(rule),
            None => {
                let command = self.timeline.iter().flat_map(|entry| &entry.ipfw).find(says)?;
                Some(format!("the timeline's `{}`", command.text))
            }
        }
    }

    /// Makes `me` mean these addresses, if a rule uses it and the first host has no configured addresses.
    /// The other host gets unused neighbouring addresses. The scenario's text then records the meaning, so
    /// that a replay uses the same addresses.
    pub fn let_me_be(&mut self, addresses: &[Address]) {
        let is_open = self.hosts.iter().all(|host| host.addresses.is_empty());
        if self.says_me().is_none() || !is_open || addresses.is_empty() {
            return;
        }
        let given = |address: Address| HostAddress { link: None, address };
        let with_room = addresses.iter().map(|&address| with_room(address));
        if let [first, second, ..] = &mut self.hosts[..] {
            first.addresses = with_room.clone().map(given).collect();
            second.addresses = with_room.map(neighbour).map(given).collect();
        }
        self.renumber(|_| true);
    }
}

/// The address, in a network large enough for another one.
fn with_room(address: Address) -> Address {
    let most = if address.ip.is_ipv4() { 31 } else { 127 };
    Address { prefix: address.prefix.min(most), ..address }
}

fn neighbour(address: Address) -> Address {
    let ip = match address.ip {
        std::net::IpAddr::V4(ip) => std::net::Ipv4Addr::from_bits(ip.to_bits() ^ 1).into(),
        std::net::IpAddr::V6(ip) => std::net::Ipv6Addr::from_bits(ip.to_bits() ^ 1).into(),
    };
    Address { ip, ..address }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipfw::Script;

    fn scenario(rules: &str) -> Scenario {
        Script::for_two_hosts(rules, "rules").unwrap().scenario("rules").unwrap()
    }

    fn address(text: &str, prefix: u8) -> Address {
        Address { ip: text.parse().unwrap(), prefix }
    }

    #[test]
    fn me_is_what_the_interface_has_and_a_replay_knows_it() {
        let mut scenario = scenario("pipe 1 config bw 1Mbit/s\nadd 100 pipe 1 ip from me to any out\n");
        assert_eq!(scenario.says_me().as_deref(), Some("rule 100"));
        scenario.let_me_be(&[address("192.0.2.7", 32), address("2001:db8::1", 64)]);
        let me = |scenario: &Scenario| scenario.site(&scenario.links[0]).me;
        let expected: Vec<std::net::IpAddr> =
            vec!["192.0.2.7".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        assert_eq!(me(&scenario), expected);
        let again = Scenario::parse(&scenario.to_toml(), "again").unwrap();
        assert_eq!(me(&again), expected);
    }

    #[test]
    fn a_command_that_comes_later_may_say_me() {
        let mut scenario =
            scenario("pipe 1 config bw 1Mbit/s\nadd pipe 1 out\nsleep 1\nadd 5 deny ip from me to any\n");
        assert_eq!(scenario.says_me().as_deref(), Some("the timeline's `add 5 deny ip from me to any`"));
        scenario.let_me_be(&[address("192.0.2.7", 24)]);
        assert_eq!(scenario.site(&scenario.links[0]).me, ["192.0.2.7".parse::<std::net::IpAddr>().unwrap()]);
    }

    #[test]
    fn where_nobody_says_me_nothing_changes() {
        let mut scenario = scenario("pipe 1 config bw 1Mbit/s\nadd 100 pipe 1 ip from any to any out\n");
        let before = scenario.to_toml();
        assert_eq!(scenario.says_me(), None);
        scenario.let_me_be(&[address("192.0.2.7", 24)]);
        assert_eq!(scenario.to_toml(), before);
    }
}

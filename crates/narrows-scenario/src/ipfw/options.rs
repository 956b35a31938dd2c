//! The options of a rule: conditions in addition to the body.

use narrows_core::rules::{Addresses, Argument, By, Field, Flags, Keep, Literal, Test, Tos};

use super::address::{self, Context, Family, Said};
use super::lexer::Word;
use super::names::{self, OPTIONS, REFUSED_OPTIONS};
use super::numbers::{
    self, ETHER_TYPES, HOP_LIMITS, IDENTIFICATIONS, LENGTHS, PORTS, ROUTING_TABLES, SEGMENT_SIZES, TAGS,
    WINDOWS,
};
use super::reader::{LAST, Reader, field, protocol_test, unknown};
use crate::problem::{Found, Problem, one_of};

/// The condition that a word and its arguments make.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Made {
    /// No condition.
    Nothing,
    One(Test),
    Both(Test, Test),
    Either(Literal, Literal),
    /// A dynamic rule, which is only recorded if so.
    Keep(Keep, bool),
    /// The action is deferred.
    Defers,
}

impl Reader<'_> {
    /// A source or destination address of the body or of an option.
    pub(super) fn party(
        &mut self,
        word: &Word,
        family: Family,
        test: fn(Addresses) -> Test,
    ) -> Result<Made, Problem> {
        Ok(match address::addresses(word, family, self.context, self.remarks)? {
            Said::Any => Made::Nothing,
            Said::Me6 => Made::Both(test(Addresses::Me), Test::IpVersion(6)),
            Said::These(addresses) => Made::One(test(addresses)),
        })
    }

    /// Parses the arguments of an option.
    pub(super) fn option(&mut self, word: &Word) -> Result<Made, Problem> {
        Ok(Made::One(match word.text.as_str() {
            "in" if self.directions.covers_in() => return Ok(Made::Nothing),
            "in" => Test::In,
            "out" if self.directions.covers_out() => return Ok(Made::Nothing),
            "out" => Test::Out,
            "layer2" | "bridged" => Test::Layer2,
            "setup" => Test::Setup,
            "established" | "estab" => Test::Established,
            "ip4" | "ipv4" => Test::IpVersion(4),
            "ip6" | "ipv6" => Test::IpVersion(6),
            "frag" | "fragment" => return self.fragment(),
            "src-ip" | "dst-ip" | "src-ip6" | "src-ipv6" | "dst-ip6" | "dst-ipv6" => {
                let family = if word.text.ends_with('6') { Family::V6 } else { Family::V4 };
                let side = if word.text.starts_with("src") { Test::Source } else { Test::Destination };
                let addresses = self.words.expect("an address")?;
                return self.party(addresses, family, side);
            }
            "src-port" | "dst-port" => {
                let ports = self.words.expect("a port")?;
                if ports.text == "any" {
                    return Ok(Made::Nothing);
                }
                let ranges = numbers::ranges(ports, PORTS)?;
                if word.text == "src-port" { Test::SourcePort(ranges) } else { Test::DestinationPort(ranges) }
            }
            "proto" => match protocol_test(self.words.expect("a protocol")?)? {
                Some(test) => test,
                None => return Ok(Made::Nothing),
            },
            "MAC" | "mac" => return self.link_addresses(),
            "src-mac" | "dst-mac" => return self.link_address(word),
            "mac-type" => {
                let types = self.words.expect("an ether type")?;
                if types.text == "any" {
                    return Ok(Made::Nothing);
                }
                Test::EtherType(numbers::ranges(types, ETHER_TYPES)?)
            }
            "iplen" => Test::Length(numbers::ranges(self.words.expect("a length")?, LENGTHS)?),
            "ipttl" => Test::HopLimit(numbers::ranges(self.words.expect("a time to live")?, HOP_LIMITS)?),
            "tcpdatalen" => Test::TcpDataLength(numbers::ranges(self.words.expect("a length")?, LENGTHS)?),
            "ipid" => Test::IpId(numbers::ranges(self.words.expect("an identification")?, IDENTIFICATIONS)?),
            "ipoptions" | "ipopts" => {
                Test::IpOptions(self.bits("options of IPv4", "option of IPv4", names::IP_OPTIONS)?)
            }
            "ext6hdr" => Test::ExtensionHeader(self.extension_headers()?),
            "fib" => Test::Fib(numbers::ranges(
                self.words.expect("the number of a routing table")?,
                ROUTING_TABLES,
            )?),
            "mark" => self.mark()?,
            "flow" => {
                let table = self.words.expect("a table of flows, as in table(1)")?;
                Test::Flow(address::named_table(table)?.ok_or_else(|| {
                    table
                        .expected("a table of flows")
                        .help("as in flow table(fl), or table(fl,5) for a value")
                })?)
            }
            "tcpseq" => Test::TcpSequence(self.number("a sequence number")?),
            "tcpack" => Test::TcpAcknowledgement(self.number("an acknowledgement number")?),
            "tcpwin" => Test::TcpWindow(numbers::ranges(self.words.expect("a window")?, WINDOWS)?),
            "tcpmss" => Test::TcpMss(numbers::ranges(self.words.expect("a segment size")?, SEGMENT_SIZES)?),
            "tcpoptions" | "tcpopts" => {
                Test::TcpOptions(self.bits("options of TCP", "option of TCP", names::TCP_OPTIONS)?)
            }
            "tagged" => {
                let tags = self.words.expect("a tag")?;
                if tags.text == "tablearg" {
                    return Err(tags
                        .problem("a tag from a table exists in ipfw but not in narrows")
                        .help("write the tag, a number from 1 to 65534"));
                }
                Test::Tagged(numbers::ranges(tags, TAGS)?)
            }
            "iptos" => {
                let (set, clear) = numbers::flags(
                    self.words.expect("bits of the TOS byte")?,
                    "bit of the TOS byte",
                    names::TOS,
                )?;
                Test::Tos(Tos { set, clear })
            }
            "tcpflags" | "tcpflgs" => {
                let (set, clear) =
                    numbers::flags(self.words.expect("TCP flags")?, "TCP flag", names::TCP_FLAGS)?;
                Test::TcpFlags { set, clear }
            }
            "dscp" => {
                let points = self.words.expect("a code point")?;
                let set = points.text.split(',').try_fold(0, |set, item| {
                    numbers::code_point(&points.part(item)).map(|point| set | 1 << point)
                })?;
                Test::Dscp(set)
            }
            "ipprecedence" => {
                Test::Precedence(numbers::integer(self.words.expect("a precedence")?, "a precedence", 7)?)
            }
            "ipversion" | "ipver" => {
                let version = self.words.expect("a version of IP")?;
                match version.text.as_str() {
                    "4" => Test::IpVersion(4),
                    "6" => Test::IpVersion(6),
                    _ => return Err(version.expected("4 or 6, a version of IP")),
                }
            }
            "icmptypes" | "icmptype" => {
                Test::IcmpType(numbers::types(self.words.expect("an ICMP type")?, "an ICMP type")?)
            }
            "icmp6types" | "icmp6type" => {
                Test::Icmp6Type(numbers::types(self.words.expect("an ICMPv6 type")?, "an ICMPv6 type")?)
            }
            "flow-id" => {
                let labels = self.words.expect("a flow label")?;
                let label = |item| numbers::integer(&labels.part(item), "a flow label", 0xf_ffff_u32);
                Test::FlowLabel(labels.text.split(',').map(label).collect::<Result<_, _>>()?)
            }
            "lookup" => {
                let (field, version, mask) = field(self.words.expect("the field that is looked up")?)?;
                let table = address::table(self.words.expect("the number or the name of a table")?, ',')?;
                let lookup = Test::Lookup { field, mask, table };
                match version {
                    Some(version) => return Ok(Made::Both(Test::IpVersion(version), lookup)),
                    None => lookup,
                }
            }
            "recv" | "xmit" | "via" => return self.interface(word),
            "verrevpath" | "antispoof" => return self.reverse_path(word),
            "keep-state" | "record-state" => {
                self.state_name()?;
                return Ok(Made::Keep(Keep::State, word.text == "record-state"));
            }
            "limit" | "set-limit" => {
                return Ok(Made::Keep(self.limit()?, word.text == "set-limit"));
            }
            "defer-action" | "defer-immediate-action" => return Ok(Made::Defers),
            other => return Err(unknown(word, other, "option of a rule", OPTIONS, REFUSED_OPTIONS)),
        }))
    }

    /// `frag`, alone or with bits of the fragmentation fields.
    fn fragment(&mut self) -> Result<Made, Problem> {
        let is_bit = |item: &str| names::number(names::FRAGMENT, item.trim_start_matches('!')).is_some();
        let has_bits = self.words.peek().is_some_and(|word| word.text.split(',').all(is_bit));
        // As in ipfw, `frag` is `frag offset`, which alone is for IPv6, too.
        if !has_bits || self.words.take_if(&["offset"]).is_some() {
            return Ok(Made::One(Test::Fragment));
        }
        self.bits("fragmentation bits", "fragmentation bit", names::FRAGMENT)
            .map(|bits| Made::One(Test::FragmentBits(bits)))
    }

    fn extension_headers(&mut self) -> Result<u8, Problem> {
        let word = self.words.expect("an extension header of IPv6")?;
        word.text.split(',').try_fold(0, |found, name| {
            names::number(names::EXTENSION_HEADERS, name).map(|bit| found | bit).ok_or_else(|| {
                let known: Vec<&str> = names::EXTENSION_HEADERS.iter().map(|(name, _)| *name).collect();
                word.part(name)
                    .expected("an extension header of IPv6")
                    .did_you_mean(name, known.iter().copied())
                    .help(format!("allowed: {}", one_of(&known)))
            })
        })
    }

    /// `mark VALUE`, `mark tablearg`, both also with `:MASK`.
    fn mark(&mut self) -> Result<Test, Problem> {
        let word = self.words.expect("a mark")?;
        let (value, mask) = match word.text.split_once(':') {
            Some((value, mask)) => {
                (word.part(value), numbers::integer(&word.part(mask), "a mask", u32::MAX)?)
            }
            None => (word.clone(), u32::MAX),
        };
        Ok(Test::Mark { value: self.value(&value, "a mark")?, mask })
    }

    /// A number of 32 bits, or `tablearg`.
    pub(super) fn value(&self, word: &Word, what: &str) -> Result<Argument, Problem> {
        match word.text.as_str() {
            "tablearg" => Ok(Argument::TableArgument),
            _ => numbers::integer(word, what, u32::MAX).map(Argument::Number),
        }
    }

    fn bits(&mut self, what: &str, one: &str, known: names::Names<u8>) -> Result<Flags, Problem> {
        numbers::flags(self.words.expect(what)?, one, known).map(|(set, clear)| Flags { set, clear })
    }

    fn number(&mut self, what: &str) -> Result<u32, Problem> {
        numbers::integer(self.words.expect(what)?, what, u32::MAX)
    }

    /// `src-mac ADDRESS`, `dst-mac ADDRESS`, or one of the addresses in a table.
    fn link_address(&mut self, word: &Word) -> Result<Made, Problem> {
        let is_source = word.text.starts_with("src");
        let address = self.words.expect("an address of the link layer, or a table of them")?;
        if let Some(table) = address::named_table(address)? {
            let field = if is_source { Field::LinkSource } else { Field::LinkDestination };
            return Ok(Made::One(Test::Lookup { field, mask: u128::MAX, table }));
        }
        Ok(match address::link_address(address)? {
            None => Made::Nothing,
            Some((address, mask)) if is_source => Made::One(Test::LinkSource { address, mask }),
            Some((address, mask)) => Made::One(Test::LinkDestination { address, mask }),
        })
    }

    /// `MAC DESTINATION SOURCE`.
    fn link_addresses(&mut self) -> Result<Made, Problem> {
        let mut next = |what| address::link_address(self.words.expect(what)?);
        let to = next("the destination address of the link layer")?;
        let from = next("the source address of the link layer")?;
        let to = to.map(|(address, mask)| Test::LinkDestination { address, mask });
        let from = from.map(|(address, mask)| Test::LinkSource { address, mask });
        Ok(match (to, from) {
            (None, None) => Made::Nothing,
            (Some(test), None) | (None, Some(test)) => Made::One(test),
            (Some(to), Some(from)) => Made::Both(to, from),
        })
    }

    /// A host with a single interface reaches every source through it but its own addresses.
    fn reverse_path(&mut self, word: &Word) -> Result<Made, Problem> {
        if !self.context.is_end {
            return Err(word
                .problem(format!("{} needs the routes of the host that the rules are on", Found(&word.text)))
                .help("here, write what it stands for: { out or not src-ip me }"));
        }
        self.remarks.push(format!(
            "`{}`: with a single interface, an arriving packet fails it only if its source is an own address",
            word.text
        ));
        let own = Literal { not: true, test: Test::Source(Addresses::Me) };
        Ok(Made::Either(Literal { not: false, test: Test::Out }, own))
    }

    fn state_name(&mut self) -> Result<(), Problem> {
        match self.words.peek().filter(|word| word.text.starts_with(':')) {
            Some(name) => {
                self.words.take();
                state_name(name, self.context)
            }
            None => Ok(()),
        }
    }

    fn limit(&mut self) -> Result<Keep, Problem> {
        let mut by = By::default();
        let first = self.words.expect("what the limit counts")?;
        let mut word = first;
        let is_part = |text: &str| text.split(',').all(|item| item == "all" || names::LIMITS.contains(&item));
        while is_part(&word.text) {
            for item in word.text.split(',') {
                let all = item == "all";
                by.source |= all || item == "src-addr";
                by.source_port |= all || item == "src-port";
                by.destination |= all || item == "dst-addr";
                by.destination_port |= all || item == "dst-port";
            }
            word = self.words.expect("the number of the limit")?;
        }
        if by == By::default() {
            return Err(first
                .expected("what the limit counts")
                .did_you_mean(&first.text, names::LIMITS.iter().copied())
                .help(format!("allowed: {}, or several of them", one_of(names::LIMITS))));
        }
        if word.text == "tablearg" {
            return Err(word
                .problem("a limit from a table exists in ipfw but not in narrows")
                .help("write the number"));
        }
        let most = numbers::decimal(word, "a limit", 1..=LAST)?;
        self.state_name()?;
        Ok(Keep::Limit { most, by })
    }
}

/// Checks the name of a set of dynamic rules. There is only one set.
pub(super) fn state_name(word: &Word, context: &Context<'_>) -> Result<(), Problem> {
    match word.text.as_str() {
        ":default" | ":any" => Ok(()),
        name if context.states == Some(name) => Ok(()),
        other => Err(word
            .problem(format!("{} names dynamic rules, which narrows does not support", Found(other)))
            .help("remove the name: all dynamic rules are checked")),
    }
}

/// Whether a name matches a pattern in which `*` stands for any text and `?` for one character.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    // The set of positions in the pattern that the name so far can match.
    let pattern: Vec<char> = pattern.chars().collect();
    let past_stars = |places: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            places[at + 1] |= places[at] && pattern[at] == '*';
        }
    };
    let mut places = vec![false; pattern.len() + 1];
    places[0] = true;
    past_stars(&mut places);
    for c in name.chars() {
        let mut next = vec![false; pattern.len() + 1];
        for (at, p) in pattern.iter().enumerate() {
            next[at] |= places[at] && *p == '*';
            next[at + 1] |= places[at] && (*p == c || *p == '?');
        }
        past_stars(&mut next);
        places = next;
    }
    places.last().copied().unwrap_or(false)
}

//! `protocol ip`: which packets a filter sees.

use narrows_core::classify::Families;

use crate::dialect::Word;
use crate::netem::units;
use crate::problem::{Found, Problem};

/// Protocols that tc knows by name, in lower case, and that no host of a link sends.
const FOREIGN: &[&str] = &[
    "loop",
    "pup",
    "pupat",
    "x25",
    "bpq",
    "ieeepup",
    "ieeepupat",
    "dec",
    "dna_dl",
    "dna_rc",
    "dna_rt",
    "lat",
    "diag",
    "cust",
    "sca",
    "rarp",
    "atalk",
    "aarp",
    "ipx",
    "ppp_disc",
    "ppp_ses",
    "atmmpoa",
    "atmfate",
    "802_3",
    "ax25",
    "802_2",
    "snap",
    "ddcmp",
    "wan_ppp",
    "ppp_mp",
    "localtalk",
    "can",
    "ppptalk",
    "tr_802_2",
    "mobitex",
    "control",
    "irda",
    "econet",
    "tipc",
    "profinet",
    "aoe",
    "ethercat",
    "mpls_uc",
    "mpls_mc",
    "teb",
    "cfm",
    "lldp",
];

/// Reads the protocol of a filter, a name or the number of an Ethernet type. Empty for protocols that no host of a link
/// sends.
pub(super) fn read(word: Word<'_>) -> Result<Families, Problem> {
    let name = word.text.to_ascii_lowercase();
    let number = units::integer(word, "a number", 0, 0xffff).ok();
    match (name.as_str(), number) {
        ("all", _) | (_, Some(3)) => Ok(Families::ALL),
        ("ip" | "ipv4", _) | (_, Some(0x0800)) => Ok(Families::IPV4),
        ("ipv6", _) | (_, Some(0x86dd)) => Ok(Families::IPV6),
        ("arp", _) | (_, Some(0x0806)) => Ok(Families::OTHER),
        ("802.1q", _) | (_, Some(0x8100)) => Err(word
            .problem(format!("{} here: packets with two VLAN tags", Found(word.text)))
            .help("only the first tag is seen")),
        ("802.1ad", _) | (_, Some(0x88a8)) => Err(word
            .problem(format!("{} in `protocol`: packets with a tag of a provider (QinQ)", Found(word.text)))
            .help("tags of this type and of 802.1Q are not told apart: match 802.1Q")),
        (name, _) if FOREIGN.contains(&name) => Ok(Families::NONE),
        (_, Some(_)) => Ok(Families::NONE),
        _ => Err(word
            .problem(format!("unknown protocol {}", Found(word.text)))
            .help("allowed: `ip`, `ipv6`, `arp`, `all`, or the number of an Ethernet type, as in 0x88f7")),
    }
}

/// Whether it stands for packets with a VLAN tag.
pub(super) fn is_tag(word: Word<'_>) -> bool {
    matches!(word.text.to_ascii_lowercase().as_str(), "802.1q" | "0x8100" | "33024" | "8021q")
}

/// The value of `family` for these packets; empty for all.
pub(super) fn written(families: Families) -> Vec<Families> {
    match families {
        Families::ALL => Vec::new(),
        one => vec![one],
    }
}

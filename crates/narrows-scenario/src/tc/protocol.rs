//! `protocol ip`: which packets a filter sees.

use narrows_core::classify::Families;

use crate::dialect::Word;
use crate::problem::{Found, Problem};

/// Reads the protocol of a filter, a name or the number of an Ethernet type. Empty for protocols that no host of a link
/// sends.
pub(super) fn read(word: Word<'_>) -> Result<Families, Problem> {
    let number = word.text.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok());
    match (word.text, number) {
        ("all", _) | (_, Some(3)) => Ok(Families::ALL),
        ("ip" | "ipv4", _) | (_, Some(0x0800)) => Ok(Families::IPV4),
        ("ipv6", _) | (_, Some(0x86dd)) => Ok(Families::IPV6),
        ("arp", _) | (_, Some(0x0806)) => Ok(Families::OTHER),
        // No host sends such packets.
        ("mpls_uc" | "mpls_mc" | "ppp_ses" | "ppp_disc" | "ipx" | "aarp" | "atalk", _)
        | (_, Some(0x8847 | 0x8848 | 0x8863 | 0x8864)) => Ok(Families::NONE),
        ("802.1q" | "802.1Q", _) | (_, Some(0x8100)) => Err(word
            .problem(format!("{} here: packets with two VLAN tags", Found(word.text)))
            .help("only the first tag is seen")),
        ("802.1ad" | "802.1AD" | "802.1aD", _) | (_, Some(0x88a8)) => Err(word
            .problem(format!("{} in `protocol`: packets with a tag of a provider (QinQ)", Found(word.text)))
            .help("tags of this type and of 802.1Q are not told apart: match 802.1Q")),
        _ => Err(word
            .problem(format!("unknown protocol {}", Found(word.text)))
            .help("allowed: `ip`, `ipv6`, `arp` or `all`")),
    }
}

/// Whether it stands for packets with a VLAN tag.
pub(super) fn is_tag(word: Word<'_>) -> bool {
    matches!(word.text.to_ascii_lowercase().as_str(), "802.1q" | "0x8100" | "8021q")
}

/// The value of `family` for these packets; empty for all.
pub(super) fn written(families: Families) -> Vec<Families> {
    match families {
        Families::ALL => Vec::new(),
        one => vec![one],
    }
}

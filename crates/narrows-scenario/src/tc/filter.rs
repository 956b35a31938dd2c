//! Filters: which packets go to which class.

use std::net::IpAddr;
use std::ops::{Range, RangeInclusive};

use narrows_core::classify::Families;

use super::Handle;
use super::action::Shared;
use super::action::{self, Actions, Outcome};
use super::both::both;
use super::ematch::{self, Lengths};
use super::flow::Flow;
use super::u32::{Id, U32};
use super::verdict::Verdict;
use super::{abbreviation, flower, protocol};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::{Found, Problem, one_of};
use crate::value::{Match, Party};

/// What stands before the kind of a filter.
#[derive(Clone, Debug, Default)]
pub(super) struct Head {
    /// Filters with a lower priority number are tried first.
    pub(super) prio: Option<u32>,
    /// The packets that it sees; all without a `protocol`.
    pub(super) families: Option<Families>,
    /// Whether these have a VLAN tag, whatever is within.
    pub(super) tagged: bool,
    pub(super) handle: Option<Name>,
    /// The chain that it is in; packets begin in chain 0.
    pub(super) chain: u32,
}

/// A word that is kept: the handle of a filter.
#[derive(Clone, Debug)]
pub(super) struct Name {
    text: String,
    span: Range<usize>,
}

impl Name {
    pub(super) fn new(word: Word<'_>) -> Self {
        Self { text: word.text.into(), span: word.span() }
    }

    pub(super) fn word(&self) -> Word<'_> {
        Word::new(&self.text, &self.span)
    }

    /// The handle of a filter `basic`, as tc reads it: the number that the text begins with; `None` if that is zero.
    pub(super) fn of_basic(self) -> Option<Self> {
        let (digits, radix) = match self.text.strip_prefix("0x") {
            Some(digits) => (digits, 16),
            None if self.text.starts_with('0') => (&self.text[1..], 8),
            None => (&self.text[..], 10),
        };
        let end = digits.find(|digit: char| !digit.is_digit(radix)).unwrap_or(digits.len());
        let number = u32::from_str_radix(&digits[..end], radix).unwrap_or(0);
        (number > 0).then(|| Self { text: number.to_string(), ..self })
    }

    /// The number in it: of a `u32`, the table, bucket and number there.
    pub(super) fn number(&self) -> Result<u32, Problem> {
        let word = self.word();
        if word.text.contains(':') {
            return Ok(Id::read(word)?.number());
        }
        let text = word.text.split('/').next().unwrap_or_default();
        Ok(units::integer(word.part(text), "a handle", 0, i64::from(u32::MAX))? as u32)
    }
}

/// A filter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) kind: &'static str,
    /// Filters with a lower priority number are tried first; 0 until the tree chooses one.
    pub(super) prio: u32,
    /// The chain that it is in.
    pub(super) chain: u32,
    /// The packets that it sees.
    pub(super) families: Families,
    /// The number by which it can be deleted; 0 until the tree chooses one.
    pub(super) handle: u32,
    pub(super) which: Which,
    /// The class of matching packets.
    pub(super) class: Option<Handle>,
    /// Whether matching packets go to the class.
    pub(super) verdict: Verdict,
    /// The keys of a policer.
    pub(super) police: Option<crate::node::Table>,
    /// The device that matching packets are redirected to.
    pub(super) redirect: Option<String>,
    /// The device that packets above the policer's rate are redirected to.
    pub(super) exceeding: Option<String>,
    /// Whether its packets are changed before they are redirected.
    pub(super) edits: bool,
    /// The keys of an edit of its packets.
    pub(super) set: Option<crate::node::Table>,
    /// The packets that it changes, if it leaves others as they are.
    pub(super) only: Option<Box<Match>>,
    /// The keys of a gate.
    pub(super) gate: Option<crate::node::Table>,
    /// Its packets that are too long, which are dropped before anything else.
    pub(super) too_long: Option<Box<Match>>,
    /// The devices that copies of its packets leave by.
    pub(super) copies: Vec<String>,
    /// The priority that it gives to packets, at which disciplines look.
    pub(super) prioritizes: Option<u32>,
    /// The device by which its packets must have come in.
    pub(super) came_by: Option<String>,
    /// The mark that it gives to them.
    pub(super) marks: Option<u32>,
    /// Whether it gives them the mark of their connection.
    pub(super) restores: bool,
    pub(super) runs: Runs,
    /// What is surprising about it.
    pub(super) notices: Vec<String>,
}

/// Who applies a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Runs {
    /// The device, if it can, and then the kernel.
    #[default]
    Anywhere,
    /// The device alone: `skip_sw`.
    Hardware,
    /// The kernel alone: `skip_hw`.
    Software,
}

impl Filter {
    /// The devices that it names.
    pub(super) fn devices(&mut self) -> impl Iterator<Item = &mut String> {
        self.redirect.iter_mut().chain(&mut self.exceeding).chain(&mut self.copies).chain(&mut self.came_by)
    }
}

/// The packets that a filter matches.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Which {
    /// Those with a condition; `None` for all packets.
    Match(Option<Box<Match>>),
    /// Those with one of several conditions.
    Any(Vec<Match>),
    /// Those that come to this filter through tables of `u32`.
    Tables(Box<U32>),
    /// Those with a firewall mark.
    Mark(Mark),
    /// Those with any mark: it is the number of the class.
    AnyMark,
    /// All, into classes that it computes.
    Flow(Flow),
    /// None.
    Nothing,
}

/// A firewall mark: the bits that count, and their value; and what else packets must have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) mask: u32,
    pub(super) value: u32,
    pub(super) also: Option<Box<Match>>,
}

impl Mark {
    pub(super) fn is(&self, mark: u32) -> bool {
        mark & self.mask == self.value
    }
}

impl Which {
    /// Packets with a condition, which may be that of all packets.
    pub(super) fn of(all: Match) -> Self {
        Self::Match(Some(all).filter(|all| *all != Match::default()).map(Box::new))
    }

    /// An address of a host for itself that packets must have.
    fn loopback(&self) -> Option<IpAddr> {
        let all = match self {
            Self::Match(matches) => matches.as_deref(),
            Self::Mark(mark) => mark.also.as_deref(),
            _ => None,
        }?;
        let of = |parties: &[Party]| {
            let mut found = None;
            let is_own = |party: &Party| match party {
                Party::Network { ip, prefix } if ip.is_loopback() && (ip.is_ipv6() || *prefix >= 8) => {
                    found = Some(*ip);
                    true
                }
                _ => false,
            };
            (!parties.is_empty() && parties.iter().all(is_own)).then_some(found).flatten()
        };
        of(&all.sources).or(of(&all.destinations))
    }
}

/// For `match tcp dst` and `at nexthdr+0` in the root table.
const NO_NEXT_HEADER: &str = "`tcp`, `udp`, `icmp` and `nexthdr+` count from the beginning of the IP header in the kernel, unless a `link` with an `offset` leads to the filter: ports are `match ip sport` and `match ip dport`.";

/// The highest number of a VLAN in a tag.
const MOST_VLAN: u16 = 4095;

/// What a filter of packets with a tag sees here.
const TAGGED: &str = "Packets with a VLAN tag: those that come to narrows with one (`bridge`, `attach`, a trunk of a switch). Hosts of a run send none, unless a program makes a VLAN interface of its own. A tag of VLAN 0, which gives only a priority, counts as none.";

/// Why filters match nothing.
const NO_PACKET: &str = "No packet matches: such a packet does not exist.";
const FOREIGN: &str = "No packet matches: hosts here send no packets of this protocol.";
const NO_TUNNEL: &str =
    "No packet matches: packets here do not come out of a tunnel device, whose keys `enc_…` compares.";
const NO_REALM: &str = "No packet matches: routes of hosts here have no realms. `match ip src` or `dst` of u32 compares addresses.";
const NO_CGROUP: &str =
    "No packet matches: programs of a run are in no control group with a class of packets (net_cls).";
const NO_END: &str = "No packet is decided by it: without a class or an action, a filter of u32 has no effect, as in the kernel.";
const OF_PORTS: &str = "Where ports are compared, packets without ports do not match; the kernel compares their bytes, those of ICMP as well. `cmp(u8 at 9 layer network eq 6)` beside it asks for TCP over IPv4.";
const IN_HARDWARE: &str =
    "`skip_sw` leaves the filter to the device's hardware: here the link does what the device would.";
const HARDWARE_CLASS: &str =
    "`hw_tc` chooses among the receive queues of the device, of which a link has one: the packets pass.";
const TRAPPED: &str =
    "`trap` hands packets of a switch to its processor, the host at this end of the link: they pass.";
const NOT_TRAPPED: &str = "`trap` hands packets of a switch to its processor; without such hardware the kernel drops them, as here.";
/// The class that tc makes of `hw_tc 0` (`TC_H_MIN_PRIORITY`).
const FIRST_HARDWARE_CLASS: u16 = 0xffe0;
const NO_MARK: &str = "No packet matches: the mask clears bits of the value.";
const ROOT_TABLE: &str = "It makes the root table of u32, which is there anyway.";

/// The supported kinds.
const NAMES: &[&str] = &["u32", "flower", "matchall", "basic", "fw", "flow", "route", "cgroup"];

/// What the unsupported kinds match on.
const OTHERS: &[(&str, &str)] = &[
    ("rsvp", "it uses RSVP reservations: match the addresses and ports with u32"),
    ("rsvp6", "it uses RSVP reservations: match the addresses and ports with u32"),
    ("tcindex", "it uses dsmark's index: match the code point with u32, `match ip dsfield`"),
    ("bpf", "it runs a program: match with u32 or flower"),
];

/// Parses what follows the device and the parent: `protocol ip prio 1 u32 match ip dport 80 0xffff flowid
/// 1:10`.
/// `arrives` says whether it is for packets that arrive, which have no link header any more.
pub(super) fn read(
    object: Word<'_>,
    words: &mut Words<'_>,
    head: &mut Head,
    arrives: bool,
    shared: &mut Shared,
) -> Result<Filter, Problem> {
    let hook = if arrives { Lengths::Packets } else { Lengths::Frames };
    let Some(kind) = words.take() else {
        return Err(object
            .problem("the kind of the filter is missing")
            .help("as in: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10"));
    };
    if let Some((_, why)) = OTHERS.iter().find(|(name, _)| *name == kind.text) {
        return Err(kind
            .problem(format!("{} does not apply here", Found(kind.text)))
            .help(*why)
            .help(format!("understood: {}", one_of(NAMES))));
    }
    let Some(name) = NAMES.iter().find(|name| **name == kind.text) else {
        return Err(kind
            .problem(format!("unsupported filter {}", Found(kind.text)))
            .did_you_mean(kind.text, NAMES.iter().copied())
            .help(format!("understood: {}", one_of(NAMES))));
    };
    let families = head.families.unwrap_or(Families::ALL);
    let is_foreign = families.is_empty();
    let families = if is_foreign { Families::ALL } else { families };
    let handle = head.handle.clone();
    let mut number = match (&handle, *name) {
        (None, _) | (_, "u32") => 0,
        (Some(handle), _) => handle.number()?,
    };
    let mut table = match *name {
        "u32" => Some(U32::new(families, handle.as_ref().map(Name::word))?),
        _ => None,
    };
    let mut all = Match { families: protocol::written(families), ..Match::default() };
    if head.tagged {
        if matches!(*name, "fw" | "flow" | "route" | "cgroup") {
            return Err(kind
                .problem(format!("a filter `{name}` of packets with a VLAN tag"))
                .help("match them with flower, as in: protocol 802.1Q flower vlan_id 100"));
        }
        all.vlans = vec![1..=MOST_VLAN];
    }
    let (mut any, mut came_by) = (None, None);
    let mut nothing = is_foreign.then_some(FOREIGN);
    let mut class = None;
    let mut actions = Actions::default();
    let mut said = *name != "u32";
    let mut flow = Flow::default();
    let mut marked = None;
    let (mut runs, mut of_hardware) = (Runs::Anywhere, false);
    let mut keys = flower::Keys::new(families, head.tagged);
    while let Some(word) = words.take() {
        let word = abbreviation::in_full(word, short(name));
        if table.is_some() && word.text == "match" && words.peek().is_some_and(|next| next.text == "mark") {
            if marked.replace(mark_of_u32(words)?).is_some() {
                return Err(word.problem("a second `match mark`").help("a filter of u32 compares one mark"));
            }
            continue;
        }
        if let Some(filter) = &mut table
            && filter.option(word, words)?
        {
            said |= word.text == "match";
            continue;
        }
        match word.text {
            "flowid" | "classid" | "class" => class = Some(Handle::class(words.expect(word, "a class")?)?),
            "police" => actions.one(word, words, shared)?,
            "action" => action::read(word, words, &mut actions, shared)?,
            // As in tc's output, or without effect on the result.
            "fh" | "order" | "bkt" | "key" | "handle" | "in_hw_count" => {
                words.expect(word, "a value")?;
            }
            "terminal" | "not_in_hw" | "in_hw" => {}
            "skip_hw" | "skip_sw" => {
                let new = if word.text == "skip_sw" { Runs::Hardware } else { Runs::Software };
                if runs != Runs::Anywhere && runs != new {
                    return Err(word
                        .problem("both `skip_sw` and `skip_hw`: nobody would apply the filter")
                        .help("keep one of them"));
                }
                runs = new;
            }
            "hw_tc" if *name == "flower" => {
                if !arrives {
                    return Err(word
                        .problem(
                            "`hw_tc` of packets that do not arrive: it chooses a receive queue of the device",
                        )
                        .help("name the class, as in: flowid 1:10"));
                }
                let queue = super::unit::number(word, words, 0, 15)? as u16; // as it was read
                class = Some(Handle { major: 0xffff, minor: FIRST_HARDWARE_CLASS + queue });
                of_hardware = true;
            }
            "prio" | "pref" => head.prio = Some(super::unit::number(word, words, 1, 0xffff)? as u32),
            _ if *name == "flow" && flow.option(word, words)? => {}
            _ if *name == "flower" && flower::is_of_tunnels(word.text) => {
                words.expect(word, "a value")?;
                nothing = Some(NO_TUNNEL);
            }
            "indev" if matches!(*name, "flower" | "u32" | "fw") => {
                came_by = Some(words.expect(word, "the name of a device")?.text.to_owned());
            }
            _ if *name == "flower" && is_foreign && word.text.starts_with("mpls_") => {
                words.expect(word, "a value")?;
            }
            _ if *name == "flower" && keys.read(word, words, &mut all)? => {}
            "match" if *name == "basic" => {
                any = Some(ematch::read(word, words, families, hook)?);
            }
            "match" if *name == "cgroup" => {
                words.expect(word, "conditions")?;
            }
            "from" | "to" | "fromif" if *name == "route" => {
                let value = words.expect(word, "a realm")?;
                if word.text != "fromif" && value.text != "0" {
                    nothing = Some(NO_REALM);
                }
            }
            other => {
                return Err(word
                    .problem(format!("unsupported {} in a filter `{name}`", Found(other)))
                    .help("understood: `match`, `flowid`, `classid`, `police` and `action`"));
            }
        }
    }
    let ends = class.is_some() || !actions.is_empty() || *name == "flow";
    let mut notices = std::mem::take(&mut actions.notices);
    notices.extend((runs == Runs::Hardware).then(|| IN_HARDWARE.to_owned()));
    notices.extend(of_hardware.then(|| HARDWARE_CLASS.to_owned()));
    actions.in_hardware = runs == Runs::Hardware;
    if actions.traps {
        notices.push(if actions.in_hardware { TRAPPED } else { NOT_TRAPPED }.into());
    }
    notices.extend(actions.stale_checksums());
    notices.extend(head.tagged.then(|| TAGGED.to_owned()));
    match keys.finish(&mut all) {
        Some(unseen) => notices.extend(unseen),
        None => nothing = Some(NO_PACKET),
    }
    let of_ports = |one: &Match| {
        one.protocols.is_empty() && !(one.source_ports.is_empty() && one.destination_ports.is_empty())
    };
    if any.iter().flatten().any(of_ports) {
        notices.push(OF_PORTS.into());
    }
    if table.as_ref().is_some_and(U32::misses_the_next_header) {
        notices.push(NO_NEXT_HEADER.into());
    }
    notices.extend(table.as_ref().and_then(U32::of_other_header).map(str::to_owned));
    number = table.as_ref().map_or(number, U32::number);
    let which = match table {
        Some(_) if marked.is_some() && head.tagged => {
            return Err(kind.problem("`match mark` of packets with a VLAN tag"));
        }
        Some(filter) if marked.is_some() => {
            let also = match said {
                true => of_u32(kind, filter, said, ends, &mut nothing)?,
                false if filter.is_at_root() && !filter.links() => Which::of(all),
                false => Which::Tables(Box::new(filter)),
            };
            match (also, marked) {
                (Which::Match(also), Some(mark)) => Which::Mark(Mark { also, ..mark }),
                (Which::Nothing, _) => Which::Nothing,
                _ => {
                    return Err(kind
                        .problem("`match mark` in a table of u32, or in a filter that leads to one")
                        .help("put the filter into the root table, and leave `ht` and `link` out"));
                }
            }
        }
        Some(filter) => within_tag(kind, of_u32(kind, filter, said, ends, &mut nothing)?, &all.vlans)?,
        None if *name == "fw" && handle.is_none() && ends => {
            return Err(kind
                .problem("`fw` with a class or an action, and without a mark")
                .help("as in: handle 6 fw flowid 1:10; `fw` alone takes the mark for the class"));
        }
        None if *name == "fw" => {
            let which = mark(handle.as_ref(), all)?;
            if which == Which::Nothing {
                nothing = Some(NO_MARK);
            }
            which
        }
        None if *name == "flow" => Which::Flow(flow),
        None if *name == "cgroup" => {
            nothing = Some(NO_CGROUP);
            Which::Nothing
        }
        None if *name == "route" && nothing.is_none() => {
            return Err(kind
                .problem("a filter `route` without a realm")
                .help("routes have no realms here: match the addresses, with u32 or flower"));
        }
        None => match any {
            None => Which::of(all),
            Some(any) => {
                let mut any: Vec<Match> = any.iter().filter_map(|one| both(&all, one)).collect();
                if any.is_empty() {
                    nothing = Some(NO_PACKET);
                }
                if any.len() > 1 { Which::Any(any) } else { any.pop().map_or(Which::Nothing, Which::of) }
            }
        },
    };
    let which = if nothing.is_some() { Which::Nothing } else { which };
    notices.extend(nothing.map(str::to_owned));
    let leads = matches!(&which, Which::Tables(filter) if filter.makes.is_some() || filter.links());
    if !ends && !leads && !matches!(which, Which::AnyMark | Which::Nothing) {
        return Err(kind
            .problem("the filter names no class")
            .help("end it with a class, as in: flowid 1:10"));
    }
    let Outcome { mut verdict, police, redirect, exceeding, edits, set, only, gate, longest } =
        actions.outcome(kind)?;
    let too_long = longest.map(|longest| hook.longer(longest));
    notices.extend(
        longest.map(|longest| {
            format!("Of these, packets of more than {longest} are dropped ({}).", hook.words())
        }),
    );
    if only.is_some() && (actions.mark.is_some() || actions.priority.is_some()) {
        return Err(kind
            .problem("`nat`, and a mark or a priority in one filter")
            .help("use two filters: the first with `continue`"));
    }
    if !ends && which != Which::AnyMark {
        verdict = Verdict::Next;
    }
    notices.extend(which.loopback().map(|address| {
        format!("No packet of a link is to or from {address}, by which a host talks to itself: the filter matches none.")
    }));
    Ok(Filter {
        kind: name,
        prio: head.prio.unwrap_or(0),
        chain: head.chain,
        families,
        handle: number,
        which,
        class,
        verdict,
        police,
        redirect,
        exceeding,
        prioritizes: actions.priority,
        came_by,
        marks: actions.mark,
        restores: actions.restores,
        runs,
        edits,
        set,
        only,
        gate,
        too_long,
        copies: actions.copies,
        notices,
    })
}

/// The words of a filter that tc lets one shorten, in its order.
fn short(kind: &str) -> &'static [&'static str] {
    match kind {
        "u32" => &["match", "offset", "hashkey", "classid", "divisor", "order", "action", "police"],
        "flower" => flower::SHORT,
        "flow" => &[
            "map",
            "hash",
            "keys",
            "and",
            "or",
            "xor",
            "rshift",
            "addend",
            "divisor",
            "baseclass",
            "perturb",
            "police",
            "action",
            "match",
        ],
        "fw" => &["classid", "flowid", "police", "action"],
        "route" => &["to", "from", "fromif", "classid", "police", "action", "order"],
        _ => &["match", "classid", "action", "police"],
    }
}

/// The packets of a filter of `u32`, of those with a VLAN tag.
fn within_tag(kind: Word<'_>, which: Which, vlans: &[RangeInclusive<u16>]) -> Result<Which, Problem> {
    let tag = Match { vlans: vlans.to_vec(), ..Match::default() };
    match which {
        which if vlans.is_empty() => Ok(which),
        Which::Match(None) => Ok(Which::of(tag)),
        Which::Match(Some(all)) => Ok(both(&all, &tag).map_or(Which::Nothing, Which::of)),
        Which::Nothing => Ok(Which::Nothing),
        _ => Err(kind.problem("tables of u32 for packets with a VLAN tag").help("match them with flower")),
    }
}

/// A filter of the root table that leads nowhere else is a condition; any other depends on tables. `ends` says whether it
/// has a class or an action.
fn of_u32(
    kind: Word<'_>,
    filter: U32,
    said: bool,
    ends: bool,
    nothing: &mut Option<&'static str>,
) -> Result<Which, Problem> {
    if filter.makes.is_some() {
        return Ok(Which::Tables(Box::new(filter)));
    }
    if !ends && !filter.links() {
        *nothing = Some(if said { NO_END } else { ROOT_TABLE });
        return Ok(Which::Nothing);
    }
    if !said {
        return Err(kind
            .problem("`u32` without `match`")
            .help("for all packets write: match u32 0 0, as in: u32 match u32 0 0 flowid 1:10"));
    }
    if filter.is_at_root() && !filter.links() {
        let condition = filter.condition(kind)?;
        if condition.is_none() {
            *nothing = Some(NO_PACKET);
        }
        return Ok(condition.map_or(Which::Nothing, Which::of));
    }
    Ok(Which::Tables(Box::new(filter)))
}

/// `match mark 0x10 0xf0`, from the word `mark` on.
fn mark_of_u32(words: &mut Words<'_>) -> Result<Mark, Problem> {
    let name = words.take().expect("the caller looked");
    let mut number = |what| {
        let word = words.expect(name, what)?;
        Ok::<_, Problem>(units::integer(word, what, 0, i64::from(u32::MAX))? as u32)
    };
    let (value, mask) = (number("a mark")?, number("a mask")?);
    // The kernel compares the bits of the mask alone.
    Ok(Mark { mask, value: value & mask, also: None })
}

/// `handle 6 fw` or `handle 0x10/0xf0 fw`, of packets with a condition.
fn mark(handle: Option<&Name>, also: Match) -> Result<Which, Problem> {
    let Some(name) = handle else { return Ok(Which::AnyMark) };
    let word = name.word();
    let (value, mask) = word.text.split_once('/').unwrap_or((word.text, "0xffffffff"));
    let number =
        |text| Ok::<_, Problem>(units::integer(word.part(text), "a mark", 0, i64::from(u32::MAX))? as u32);
    let (value, mask) = (number(value)?, number(mask)?);
    // fw_change of cls_fw.c.
    if value == 0 {
        return Err(word
            .problem("the mark 0 for a filter `fw`, which the kernel refuses")
            .help("packets without a mark go on to the filters behind, and to the default class"));
    }
    let Which::Match(also) = Which::of(also) else { return Ok(Which::Nothing) };
    Ok(if value & !mask == 0 { Which::Mark(Mark { mask, value, also }) } else { Which::Nothing })
}

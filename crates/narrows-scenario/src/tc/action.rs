//! Actions of filters: `action police …`, `action mirred egress redirect dev ifb0`, `action drop`.
//!
//! Source: `act_api.c` of Linux and `m_action.c` of iproute2. The actions of a filter are executed in order. After
//! each, its control says how it goes on: `pipe` with the next action, `continue` with the next filter, all others end
//! here. The word `action` between actions is optional.

use narrows_core::Bytes;

use super::abbreviation::in_full;
use super::edit::{self, Edit, Sums};
use super::shared::{self, CONTROL, Shareable};
use super::unit;
use super::verdict::{Control, Verdict};
use super::{Handle, bucket, gate};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::node::Table;
use crate::problem::{Found, Problem, one_of};
use crate::value::Match;

/// An action.
#[derive(Clone, Debug)]
enum Step {
    /// One without effect on packets here.
    Nothing(Control),
    Police(Box<bucket::Police>),
    Redirect(String),
    /// One that changes packets: how, or why it has no counterpart, which matters unless they are dropped or redirected to
    /// another device; and its control.
    Edit(Result<Edit, Box<Problem>>, Control),
    /// Checksums are computed.
    Checksum(Sums, Control),
    /// The keys of a gate.
    Gate(Table, Control),
}

/// The actions that filters of a script share.
pub(super) type Shared = shared::Shared<Actions>;

/// The actions of a filter, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Actions {
    steps: Vec<Step>,
    /// The number of the action, while it is alone.
    index: Option<u32>,
    /// Whether an action before it changes packets, likewise.
    behind_a_change: bool,
    pub(super) notices: Vec<String>,
    /// Devices that copies of packets leave by.
    pub(super) copies: Vec<String>,
    /// The priority that they give to packets.
    pub(super) priority: Option<u32>,
    /// The mark.
    pub(super) mark: Option<u32>,
    /// Whether packets get the mark of their connection.
    pub(super) restores: bool,
    /// Whether the device's hardware executes them, not the kernel.
    pub(super) in_hardware: bool,
    /// Whether one of them is `trap`.
    pub(super) traps: bool,
}

/// What the actions of a filter come to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// For packets that no policer holds back.
    pub(super) verdict: Verdict,
    /// The keys of a policer. Its `exceed` is `"pass"` or `"next"` unless it drops packets.
    pub(super) police: Option<Table>,
    /// The device that packets are redirected to.
    pub(super) redirect: Option<String>,
    /// The same, for packets that exceed the policer.
    pub(super) exceeding: Option<String>,
    /// Whether packets are changed before they are redirected.
    pub(super) edits: bool,
    /// The keys of an edit of packets that stay on the link.
    pub(super) set: Option<Table>,
    /// The packets that it changes, if it leaves others as they are.
    pub(super) only: Option<Box<Match>>,
    /// The keys of a gate.
    pub(super) gate: Option<Table>,
    /// The longest packets; the others are dropped.
    pub(super) longest: Option<Bytes>,
}

impl Outcome {
    fn polices(&self) -> bool {
        self.police.is_some() || self.longest.is_some()
    }
}

/// Whether a word behind an action that changes packets is none of its options.
fn ends_edit(word: &str) -> bool {
    matches!(word, "action" | "flowid" | "classid" | "index" | "cookie" | "stolen")
        || matches!(word, "goto" | "jump")
        || Control::read(word).is_some()
        || is_action(word) && word != "vlan" && word != "mpls"
}

/// Actions that have no counterpart, and why.
const OTHERS: &[(&str, &str)] = &[
    ("ct", "there is no connection tracking here"),
    ("bpf", "it runs a program: match with u32 or flower"),
    ("tunnel_key", "packets are not in tunnels here"),
    ("ife", "classes do not change packets"),
    ("mpls", "classes do not change packets"),
];

/// The kernel's limit of jumps (`TCA_ACT_MAX_PRIO`).
const MOST_JUMPS: usize = 32;

/// The supported ones.
const NAMES: &[&str] = &[
    "police",
    "mirred",
    "drop",
    "pass",
    "continue",
    "pipe",
    "reclassify",
    "goto chain",
    "jump",
    "gate",
    "pedit",
    "skbmod",
    "vlan",
    "nat",
    "csum",
    "connmark",
    "ctinfo",
    "sample",
    "simple",
    "skbedit",
];
/// Those that the word `action` need not precede.
const WITHOUT_ACTION: &[&str] = &["mirred", "gate", "pedit", "skbmod", "vlan", "nat", "csum"];

/// Parses what follows the word `action`: one action, and its control.
pub(super) fn read<'a>(
    word: Word<'a>,
    words: &mut Words<'a>,
    all: &mut Actions,
    shared: &mut Shared,
) -> Result<(), Problem> {
    let action = words.expect(word, "what to do")?;
    if action.text == "order" {
        words.take_number(false);
        words.take_if(":");
        return Ok(());
    }
    all.one(action, words, shared)?;
    // The word `action` is optional before the next one.
    while let Some(next) = words.peek().filter(|next| is_action(next.text)) {
        words.take();
        all.one(next, words, shared)?;
    }
    Ok(())
}

/// Whether an action with nothing but a number may be a new one.
fn needs_no_options(action: &str) -> bool {
    Control::read(action).is_some() || matches!(action, "connmark" | "ctinfo" | "simple" | "skbedit")
}

/// Whether a word begins another action rather than the next option of a filter. `police` may be either, and `gact` is
/// followed by its control.
fn is_action(word: &str) -> bool {
    WITHOUT_ACTION.contains(&word) || OTHERS.iter().any(|(name, _)| *name == word)
}

/// The priority that `skbedit priority` gives packets: a class, `1:10`, or a number, `6`, in hexadecimal as all of tc's handles.
fn priority(word: Word<'_>) -> Result<u32, Problem> {
    let digits = word.text.strip_prefix("0x").unwrap_or(word.text);
    if let Ok(number) = u32::from_str_radix(digits, 16) {
        return Ok(number);
    }
    let Handle { major, minor } = Handle::read(word)?;
    Ok(u32::from(major) << 16 | u32::from(minor))
}

/// How it goes on after an action that changes packets, where that is not said: tc lets three of them end there.
fn usual_control(action: &str) -> Control {
    match action {
        "pedit" | "csum" | "nat" => Control::Ends(Verdict::Class),
        _ => Control::Pipe,
    }
}

/// What is surprising about `skbedit priority` at a discipline other than CAKE.
pub(super) const PRIORITY_COMES_LATE: &str = "A discipline looks at the priority of a packet before its filters: at one of them, `skbedit priority` chooses none of its classes, in the kernel and here. `flowid` does; and so does `skbedit priority` at the egress of clsact.";

impl Shareable for Actions {
    fn polices(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Police(_)))
    }

    fn alone<'a>(action: Word<'a>, words: &mut Words<'a>) -> Result<(String, Option<u32>, Self), Problem> {
        let mut own = Self::default();
        let kind = own.parse(action, words)?;
        Ok((kind, own.index, own))
    }
}

impl Actions {
    /// Parses an action of a filter, which may be one of those that filters share.
    pub(super) fn one<'a>(
        &mut self,
        action: Word<'a>,
        words: &mut Words<'a>,
        shared: &mut Shared,
    ) -> Result<(), Problem> {
        if let Some(
            Step::Edit(_, Control::Ends(Verdict::Class)) | Step::Checksum(_, Control::Ends(Verdict::Class)),
        ) = self.steps.last()
        {
            self.notices.push(format!(
                "`{}` is not executed: the action before it, which changes packets, lets them pass. `pipe` behind that leads on.",
                action.text
            ));
        }
        let behind_a_change = self.steps.iter().any(|step| matches!(step, Step::Edit(..)));
        let mut own = Self { behind_a_change, ..Self::default() };
        // A number alone names an action that is there.
        let mut ahead = words.clone();
        let number = ahead.take().filter(|word| word.text == "index" && !needs_no_options(action.text));
        if let Some(number) = number {
            let index = unit::index(number, &mut ahead)?;
            let is_alone = ahead.peek().is_none_or(|word| ends_edit(word.text));
            match shared.take(action.text, index, action)? {
                Some(there) => {
                    *words = ahead;
                    if action.text == "police" {
                        bucket::skip_options(words)?;
                    }
                    own.control(words)?;
                    self.add(there);
                    return Ok(());
                }
                None if is_alone => {
                    return Err(number
                        .problem(format!("there is no action `{}` with the index {index}", action.text))
                        .help(format!(
                            "as in, before: tc actions add action {} … index {index}",
                            action.text
                        )));
                }
                None => {}
            }
        }
        let kind = own.parse(action, words)?;
        if let Some(index) = own.index {
            if let Some(there) = shared.take(&kind, index, action)? {
                self.notices.push(format!(
                    "There is an action `{kind}` with the index {index} already: the filter has that one, as in the kernel."
                ));
                self.add(there);
                return Ok(());
            }
            shared.keep(&kind, index, own.clone(), action);
        }
        self.add(own);
        Ok(())
    }

    /// Adds an action.
    fn add(&mut self, own: Self) {
        self.steps.extend(own.steps);
        self.notices.extend(own.notices);
        self.copies.extend(own.copies);
        self.priority = own.priority.or(self.priority);
        self.mark = own.mark.or(self.mark);
        self.restores |= own.restores;
        self.traps |= own.traps;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Parses the only action, and returns its kind.
    fn parse<'a>(&mut self, mut action: Word<'a>, words: &mut Words<'a>) -> Result<String, Problem> {
        while action.text == CONTROL {
            action = words.expect(action, "what to do")?;
        }
        let mut kind = action.text.to_owned();
        let pipes = Step::Nothing(Control::Pipe);
        let step = match action.text {
            "police" => {
                let (police, index) = bucket::police(action, words)?;
                self.index = index;
                Step::Police(Box::new(police))
            }
            "mirred" => match mirred(action, words)? {
                Mirred::Redirect(device) => Step::Redirect(device),
                Mirred::Mirror(device) => {
                    self.notices.push(format!(
                        "Copies leave by {device}, which is not an end of this link; the packets themselves go on."
                    ));
                    self.copies.push(device);
                    pipes
                }
            },
            "connmark" => {
                skip_options(words, &["zone"], &[]);
                self.restores = true;
                pipes
            }
            "ctinfo" => {
                skip_options(words, &["zone", "cpmark"], &["dscp"]);
                self.notices.push(
                    "Connections have no marks here: `ctinfo` changes nothing, as in the kernel for a connection without a mark."
                        .into(),
                );
                pipes
            }
            "sample" => {
                if !skip_options(words, &["rate", "group", "trunc"], &[]).contains(&"rate") {
                    return Err(action
                        .problem("`sample` without `rate`")
                        .help("as in: sample rate 100 group 12"));
                }
                self.notices.push(
                    "Samples go to a program that collects them: the packets go on. `--pcap` records all packets of a run."
                        .into(),
                );
                pipes
            }
            "skbedit" => {
                self.skbedit(words)?;
                pipes
            }
            // It prints a text to the kernel's log.
            "simple" => {
                skip_options(words, &["sdata"], &[]);
                pipes
            }
            "pedit" | "skbmod" | "mpls" | "vlan" | "tunnel_key" | "nat" | "ife" => {
                let edit = edit::read(action, words).unwrap_or_else(|| Err(unknown(action, action.text)));
                // What is written does not matter if the packets are then dropped.
                while edit.is_err() && words.peek().is_some_and(|word| !ends_edit(word.text)) {
                    words.take();
                }
                match edit {
                    Ok(edit) if edit.set.iter().next().is_none() => {
                        self.notices.push(edit::OF_ANY.into());
                        Step::Nothing(usual_control(action.text))
                    }
                    edit => Step::Edit(edit.map_err(Box::new), usual_control(action.text)),
                }
            }
            "csum" => Step::Checksum(edit::csum(words), usual_control(action.text)),
            "gate" => {
                self.notices.push(gate::CLOCK.into());
                let (keys, index) = gate::read(action, words)?;
                self.index = index;
                Step::Gate(keys, Control::Pipe)
            }
            other => match Control::from_word(action, words)? {
                Some(control) => {
                    self.check_control(action)?;
                    CONTROL.clone_into(&mut kind);
                    Step::Nothing(control)
                }
                None => return Err(unknown(action, other)),
            },
        };
        let is_police = matches!(step, Step::Police(_));
        self.steps.push(step);
        // A policer has read its own.
        if !is_police {
            self.control(words)?;
        }
        Ok(kind)
    }

    /// Notes `trap`, says what `reclassify` comes to, and refuses it where it comes to something else.
    fn check_control(&mut self, word: Word<'_>) -> Result<(), Problem> {
        self.traps |= word.text == "trap";
        if word.text != "reclassify" {
            return Ok(());
        }
        if self.behind_a_change || self.steps.iter().any(|step| matches!(step, Step::Edit(..))) {
            return Err(word
                .problem("packets are changed, and then meet the filters again")
                .help("let a filter of another `prio` do the rest: end this one with `continue`"));
        }
        self.notices.push(
            "`reclassify` starts the filters again, with the same result each time: the kernel gives up and drops the packet."
                .into(),
        );
        Ok(())
    }

    /// What may stand behind any action: its control, `index`, and `cookie`.
    fn control(&mut self, words: &mut Words<'_>) -> Result<(), Problem> {
        while let Some(next) = words.peek() {
            match next.text {
                "random" => {
                    return Err(next
                        .problem("an action for a random share of packets")
                        .help("losses are the link's: `loss = \"1%\"`"));
                }
                "index" => {
                    words.take();
                    self.index = Some(unit::index(next, words)?);
                }
                "cookie" => {
                    words.take();
                    cookie(words.expect(next, "hexadecimal digits")?)?;
                }
                "stolen" => {
                    words.take();
                }
                _ => {
                    let Some(control) = Control::take(words)? else { break };
                    self.check_control(next)?;
                    if let Some(
                        Step::Nothing(last)
                        | Step::Edit(_, last)
                        | Step::Checksum(_, last)
                        | Step::Gate(_, last),
                    ) = self.steps.last_mut()
                    {
                        *last = control;
                    }
                }
            }
        }
        Ok(())
    }

    /// `skbedit priority 1:1`. Filters of a discipline come after it has looked at the priority of a packet, so that it
    /// matters to disciplines inside alone, which is checked elsewhere.
    fn skbedit(&mut self, words: &mut Words<'_>) -> Result<(), Problem> {
        while let Some(word) = words.peek() {
            let word = in_full(word, &["queue_mapping", "priority", "mark", "ptype"]);
            match word.text {
                "priority" | "queue_mapping" | "ptype" => {
                    words.take();
                    let value = words.expect(word, "a value")?;
                    if word.text == "priority" {
                        self.priority = Some(priority(value)?);
                        self.notices.push(PRIORITY_COMES_LATE.into());
                    }
                }
                "mark" => {
                    words.take();
                    let value = words.expect(word, "a mark")?;
                    let mark = units::integer(value, "a mark", 0, u32::MAX.into())?;
                    self.mark = Some(mark as u32);
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// What they come to; `None` if there is no action.
    pub(super) fn outcome(&self, place: Word<'_>) -> Result<Outcome, Problem> {
        self.from(0, MOST_JUMPS, place)
    }

    /// Notices about checksums that its edits leave wrong in the kernel.
    pub(super) fn stale_checksums(&self) -> impl Iterator<Item = String> {
        let sums = |steps: &[Step]| {
            let named = steps.iter().filter_map(|step| match step {
                Step::Checksum(sums, _) => Some(*sums),
                _ => None,
            });
            named.fold(Sums::default(), Sums::and)
        };
        self.steps.iter().enumerate().filter_map(move |(at, step)| match step {
            Step::Edit(Ok(edit), _) if edit.needs_checksum && !self.steps[at..].iter().any(sums_header) => Some(
                "`pedit` leaves the checksum of an IPv4 header as it was, and receivers drop the packets: here the link does. `csum ip` behind it updates the checksum."
                    .into(),
            ),
            Step::Edit(Ok(edit), _) => edit.stale(sums(&self.steps[at..])),
            _ => None,
        })
    }

    /// What the actions from the one at `at` on come to. After `jumps` more jumps the kernel lets a packet pass.
    fn from(&self, at: usize, jumps: usize, place: Word<'_>) -> Result<Outcome, Problem> {
        let plain = |verdict| Outcome {
            verdict,
            police: None,
            redirect: None,
            exceeding: None,
            edits: false,
            set: None,
            only: None,
            gate: None,
            longest: None,
        };
        let after = |control: &Control| match control {
            Control::Pipe => self.from(at + 1, jumps, place),
            Control::Ends(verdict) => Ok(plain(*verdict)),
            Control::Trap if self.in_hardware => Ok(plain(Verdict::Class)),
            Control::Trap => Ok(plain(Verdict::Drop)),
            Control::Jump(to) if *to == 0 || *to >= self.steps.len() || jumps == 0 => {
                Ok(plain(Verdict::Class))
            }
            Control::Jump(to) => self.from(*to, jumps - 1, place),
        };
        match self.steps.get(at..).unwrap_or_default() {
            [] => Ok(plain(Verdict::Class)),
            [Step::Nothing(control) | Step::Checksum(_, control), ..] => after(control),
            [Step::Gate(keys, control), ..] => {
                let after = after(control)?;
                if after.polices() || after.gate.is_some() || after.redirect.is_some() {
                    return Err(place
                        .problem("a gate, and more that decides about its packets")
                        .help("use two filters: the first with `continue` behind the gate"));
                }
                Ok(Outcome { gate: Some(keys.clone()), ..after })
            }
            [Step::Edit(edit, control), rest @ ..] => {
                let mut after = after(control)?;
                if after.verdict == Verdict::Drop || after.redirect.is_some() {
                    return Ok(Outcome { edits: true, ..after });
                }
                let mut edit = edit.clone().map_err(|problem| *problem)?;
                if edit.needs_checksum && (*control != Control::Pipe || !rest.iter().any(sums_header)) {
                    return Ok(plain(Verdict::Drop));
                }
                if after.polices() || after.gate.is_some() {
                    return Err(place
                        .problem("an edit of packets that are then policed or gated")
                        .help("use two filters: the first with `continue` behind the edit"));
                }
                if let Some(set) = after.set.take() {
                    if edit.only.is_some() || after.only.is_some() {
                        return Err(place
                            .problem("`nat`, and another change of packets in one filter")
                            .help("use two filters: the first with `continue` behind the change"));
                    }
                    edit.then(&set);
                }
                Ok(Outcome { set: Some(edit.set), only: edit.only, ..after })
            }
            [Step::Redirect(device), ..] => {
                Ok(Outcome { redirect: Some(device.clone()), ..plain(Verdict::Class) })
            }
            [Step::Police(police), ..] => {
                let (conforming, exceeding) = (after(&police.conform)?, after(&police.exceed)?);
                if [&conforming, &exceeding].into_iter().any(|then| then.set.is_some() || then.gate.is_some())
                {
                    return Err(place
                        .problem("a policer, and an edit or a gate behind it")
                        .help("use two filters: the first with conform-exceed drop/continue"));
                }
                if conforming.polices() || exceeding.polices() {
                    return Err(place
                        .problem("two policers of one filter")
                        .help("use two filters: the first with conform-exceed drop/continue"));
                }
                if let Some(longest) = police.longest {
                    let drops = exceeding.verdict == Verdict::Drop && conforming.verdict != Verdict::Drop;
                    if !drops || exceeding.redirect.is_some() || conforming.redirect.is_some() {
                        return Err(place
                            .problem(
                                "a policer by length alone (`mtu`) that does more than drop longer packets",
                            )
                            .help("as in: police mtu 1500 drop, or mtu 1500 conform-exceed drop/continue"));
                    }
                    return Ok(Outcome { longest: Some(longest), ..conforming });
                }
                // It decides nothing then; one that passes all packets counts them.
                if conforming == exceeding && conforming.verdict != Verdict::Class {
                    return Ok(conforming);
                }
                if conforming.verdict == Verdict::Drop
                    || exceeding.redirect.is_some() && conforming.redirect.is_some()
                {
                    return Err(place.problem("a policer that drops packets below its rate").help(
                        "packets that conform pass here: conform-exceed drop, or conform-exceed drop/pipe",
                    ));
                }
                let mut keys = police.keys.clone();
                match (exceeding.verdict, &exceeding.redirect) {
                    (Verdict::Drop, _) | (_, Some(_)) => {}
                    (Verdict::Class, None) => keys.put("exceed", crate::keys::kind::text("pass")),
                    (Verdict::Next, None) => keys.put("exceed", crate::keys::kind::text("next")),
                    (Verdict::Goto(_), None) => {
                        return Err(place
                            .problem("packets that exceed a policer go to another chain")
                            .help("let those that conform go there, and drop the others"));
                    }
                }
                Ok(Outcome { police: Some(keys), exceeding: exceeding.redirect, ..conforming })
            }
        }
    }
}

/// A number that the kernel keeps with an action for the program that added it; packets do not meet it.
fn cookie(word: Word<'_>) -> Result<(), Problem> {
    let digits = word.text.len();
    let hexadecimal = word.text.chars().all(|digit| digit.is_ascii_hexdigit());
    if digits <= 32 && digits.is_multiple_of(2) && hexadecimal {
        return Ok(());
    }
    Err(word
        .problem(format!("{} is not a cookie", Found(word.text)))
        .help("allowed: up to 32 hexadecimal digits, in pairs"))
}

/// Whether an action updates the checksum of an IPv4 header.
fn sums_header(step: &Step) -> bool {
    matches!(step, Step::Checksum(Sums { ip: true, .. }, _))
}

fn unknown(action: Word<'_>, name: &str) -> Problem {
    let why = OTHERS.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
    let mut problem = action.problem(format!("unsupported action {}", Found(name)));
    if let Some(why) = why {
        problem = problem.help(why);
    }
    problem.help(format!("understood: {}", one_of(NAMES)))
}

/// Skips options with one value, and options with numbers. Returns those that were there.
fn skip_options<'a>(words: &mut Words<'a>, one: &[&str], numbers: &[&str]) -> Vec<&'a str> {
    let mut there = Vec::new();
    while let Some(word) = words.peek() {
        if one.contains(&word.text) {
            words.take();
            words.take();
        } else if numbers.contains(&word.text) {
            words.take();
            while words.take_number(false).is_some() {}
        } else {
            break;
        }
        there.push(word.text);
    }
    there
}

enum Mirred {
    Redirect(String),
    Mirror(String),
}

/// Parses `mirred egress redirect dev ifb0`.
fn mirred(action: Word<'_>, words: &mut Words<'_>) -> Result<Mirred, Problem> {
    let (mut device, mut copies) = (None, false);
    while let Some(word) = words.peek() {
        match word.text {
            "egress" | "redirect" => {}
            "mirror" => copies = true,
            "dev" => {
                words.take();
                device = Some(words.expect(word, "the name of a device")?.text.to_owned());
                continue;
            }
            "ingress" => {
                return Err(word
                    .problem("unsupported `ingress` of `mirred`")
                    .help("understood: `egress redirect dev IFB`, and `egress mirror dev X`"));
            }
            _ => break,
        }
        words.take();
    }
    let device = device.ok_or_else(|| {
        action.problem("`mirred` without `dev`").help("as in: action mirred egress redirect dev ifb0")
    })?;
    Ok(if copies { Mirred::Mirror(device) } else { Mirred::Redirect(device) })
}

//! One line of `iptables` or `ipset`.

use std::collections::BTreeMap;

use narrows_core::classify::Families;

use super::list::{Change, Number};
use super::sets::{self, Sets};
use super::values::mark_and_mask;
use super::words::{self, Conditions};
use super::{OF_FILTER, Place, Rule, Target, Unclear, written};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::{Found, Problem};
use crate::tc::Handle;

/// Addresses and ports are translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tc) struct Translation {
    /// The device by which packets leave that get other sources; `None` for any, and for other destinations.
    pub(in crate::tc) leaves: Option<String>,
}

/// What a line does to a table.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tc) struct Line {
    six: bool,
    does: Does,
}

/// The tables whose rules are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Mangle,
    Filter,
}

impl Table {
    /// The name of a chain among those of both tables.
    fn chain(self, name: &str) -> String {
        match self {
            Self::Mangle => name.to_owned(),
            Self::Filter => format!("{OF_FILTER}{name}"),
        }
    }

    fn has(self, chain: &str) -> bool {
        chain.starts_with(OF_FILTER) == (self == Self::Filter)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Does {
    Add {
        chain: String,
        at: Option<usize>,
        rule: Rule,
    },
    Delete {
        chain: String,
        rule: Rule,
    },
    DeleteAt {
        chain: String,
        at: usize,
    },
    Replace {
        chain: String,
        at: usize,
        rule: Rule,
    },
    /// Of one chain, or of all of a table.
    Flush(Table, Option<String>),
    Sets(sets::Change),
    Translate(Translation),
    Nothing,
}

impl Line {
    /// Whether it changes nothing that is known here.
    pub(in crate::tc) fn does_nothing(&self) -> bool {
        self.does == Does::Nothing
    }

    /// Whether it takes rules away.
    pub(in crate::tc) fn removes(&self) -> bool {
        matches!(self.does, Does::Flush(..) | Does::Delete { .. } | Does::DeleteAt { .. })
    }

    /// Whether it is a rule of `filter` that gives no marks itself.
    pub(in crate::tc) fn only_accepts(&self) -> bool {
        let decides = |target: &Target| matches!(target, Target::Accept | Target::Return | Target::Nothing);
        matches!(&self.does, Does::Add { chain, rule, .. } if Table::Filter.has(chain) && decides(&rule.target))
    }

    /// Whether it is a rule of a chain that only some of the packets pass which leave a device.
    pub(in crate::tc) fn is_for_some(&self) -> bool {
        matches!(&self.does, Does::Add { chain, .. } if matches!(chain.trim_start_matches(OF_FILTER), "OUTPUT" | "FORWARD" | "PREROUTING"))
    }

    /// Whether it is a rule for packets of connections that are established.
    pub(in crate::tc) fn is_of_established(&self) -> bool {
        matches!(&self.does, Does::Add { rule, .. } if rule.is_established)
    }

    /// Whether it keeps marks with connections.
    pub(in crate::tc) fn is_of_connections(&self) -> bool {
        matches!(&self.does, Does::Add { rule: Rule { target: Target::Mark(change), .. }, .. } if change.is_of_connections())
    }

    /// Whether it drops packets.
    pub(in crate::tc) fn drops(&self) -> bool {
        let (Does::Add { rule, .. } | Does::Replace { rule, .. }) = &self.does else { return false };
        rule.target == Target::Drop
    }

    /// Whether it writes into headers of packets.
    pub(in crate::tc) fn writes(&self) -> bool {
        let (Does::Add { rule, .. } | Does::Replace { rule, .. }) = &self.does else { return false };
        matches!(rule.target, Target::Write(_))
    }

    /// Whether it translates addresses or ports, which does not happen here.
    pub(in crate::tc) fn translates(&self) -> Option<&Translation> {
        match &self.does {
            Does::Translate(translation) => Some(translation),
            _ => None,
        }
    }

    /// Executes the line.
    ///
    /// # Errors
    /// If it names what is not there.
    pub(super) fn change(
        &self,
        chains: &mut BTreeMap<(bool, String), Vec<Rule>>,
        sets: &mut Sets,
    ) -> Result<(), Problem> {
        match &self.does {
            Does::Nothing | Does::Translate(_) => {}
            Does::Sets(change) => {
                let rules = || chains.values().flatten();
                let is_used =
                    |name: &str| rules().any(|rule| rule.sets.iter().any(|looked| looked.is_of(name)));
                change.apply(sets, &is_used)?;
            }
            Does::Flush(table, None) => {
                chains.retain(|(six, chain), _| *six != self.six || !table.has(chain))
            }
            Does::Flush(_, Some(chain)) => {
                chains.remove(&(self.six, chain.clone()));
            }
            Does::Add { chain, at, rule } => {
                rule.sets.iter().try_for_each(|looked| looked.check(sets))?;
                let rules = chains.entry((self.six, chain.clone())).or_default();
                rules.insert(at.unwrap_or(rules.len()).min(rules.len()), rule.clone());
            }
            Does::Delete { chain, rule } => {
                if let Some(rules) = chains.get_mut(&(self.six, chain.clone()))
                    && let Some(at) = rules.iter().position(|known| known == rule)
                {
                    rules.remove(at);
                }
            }
            Does::Replace { chain, at, rule } => {
                rule.sets.iter().try_for_each(|looked| looked.check(sets))?;
                let rules = chains.get_mut(&(self.six, chain.clone()));
                match rules.and_then(|rules| rules.get_mut(*at)) {
                    Some(replaced) => replaced.clone_from(rule),
                    None => return Err(Problem::new("there is no rule with this number")),
                }
            }
            Does::DeleteAt { chain, at } => {
                if let Some(rules) =
                    chains.get_mut(&(self.six, chain.clone())).filter(|rules| *at < rules.len())
                {
                    rules.remove(*at);
                }
            }
        }
        Ok(())
    }
}

/// Commands of a line, by their short and long names, and whether the chain is named behind them.
const COMMANDS: &[(&str, &str)] = &[
    ("-A", "--append"),
    ("-I", "--insert"),
    ("-D", "--delete"),
    ("-R", "--replace"),
    ("-N", "--new-chain"),
    ("-F", "--flush"),
    ("-X", "--delete-chain"),
    ("-P", "--policy"),
    ("-Z", "--zero"),
    ("-L", "--list"),
    ("-S", "--list-rules"),
    ("-C", "--check"),
];

/// Reads the words behind `iptables`, `ip6tables` or `ipset`.
pub(in crate::tc) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Line, Problem> {
    if name.text.ends_with("ipset") {
        return Ok(Line { six: false, does: Does::Sets(sets::read(name, words)?) });
    }
    let six = name.text.ends_with("ip6tables");
    // `--dport=80` is `--dport 80`.
    let (mut all, mut end) = (Vec::new(), name.span().end);
    while let Some(word) = words.take() {
        end = word.span().end;
        match word.text.split_once('=').filter(|(option, _)| option.starts_with("--")) {
            Some((option, value)) => all.extend([word.part(option), word.part(value)]),
            None => all.push(word),
        }
    }
    if all.iter().any(|word| lists(word.text)) {
        words.take_all();
        return Ok(Line { six, does: Does::Nothing });
    }
    let table = match table(&all, name)? {
        Ok(table) => table,
        Err(does) => {
            words.take_all();
            return Ok(Line { six, does });
        }
    };
    let decides = decides(&all, table);
    *words = Words::of_words(all, end);
    let mut unclear = None;
    let mut command: Option<(&str, Word<'_>)> = None;
    let mut chain = None;
    let mut at = None;
    let mut conditions = Conditions::new(if six { Families::IPV6 } else { Families::IPV4 });
    let mut target = None;
    let mut inverted = false;
    while let Some(word) = words.take() {
        let known = COMMANDS.iter().find(|(short, long)| word.text == *short || word.text == *long);
        if let Some((short, _)) = known {
            command = Some((short, word));
            let takes = words.peek().filter(|next| !next.text.starts_with('-'));
            if let Some(next) = takes {
                words.take();
                chain = Some(next);
            }
            at = words.take_number(false);
            if *short == "-P" {
                words.take();
            }
            continue;
        }
        match word.text {
            "!" => {
                inverted = true;
                continue;
            }
            "-t" | "--table" => drop(words.expect(word, "a table")?),
            "-w" | "--wait" => {
                words.take_number(false);
            }
            "-n" | "-v" | "-nv" | "-vn" | "-x" | "--line-numbers" | "-q" => {}
            "-j" | "--jump" | "-g" | "--goto" => target = Some(jump(word, words, table)?),
            _ => match words::condition(word, words, std::mem::take(&mut inverted), &mut conditions) {
                Ok(()) => {}
                // What follows may belong to it.
                Err(problem) if decides.is_some() && (table == Table::Filter || conditions.is_other) => {
                    let place = problem.place().cloned().unwrap_or_else(|| word.span());
                    unclear = Some(Unclear { what: problem.title().to_owned(), place });
                    target.clone_from(&decides);
                    words.take_all();
                }
                Err(problem) => return Err(problem),
            },
        }
        if std::mem::take(&mut inverted) {
            return Err(word.problem(format!("`!` before {}", Found(word.text))));
        }
    }
    let Some((command, word)) = command else {
        return Err(name
            .problem("a line of iptables without a command")
            .help("as in: -t mangle -A POSTROUTING …"));
    };
    let rule = |target| Rule {
        matches: conditions.alternatives(),
        leaves: conditions.leaves.clone(),
        arrives: conditions.arrives.clone(),
        sets: conditions.sets.clone(),
        bits: conditions.bits,
        not: conditions.not.clone(),
        is_established: conditions.is_established,
        unclear: unclear.clone(),
        target,
        place: Place(word.span().start..end),
    };
    let name = chain.map(|chain| table.chain(chain.text));
    let number = at.map(|at| units::integer(at, "a number of a rule", 1, 1 << 30)).transpose()?;
    let at = number.map(|number| number as usize - 1);
    let does = match (command, name) {
        ("-F", chain) => Does::Flush(table, chain),
        ("-R", Some(chain)) => {
            let at = at.ok_or_else(|| word.problem("the number of the rule is missing"))?;
            Does::Replace { chain, at, rule: rule(target.unwrap_or(Target::Nothing)) }
        }
        ("-D", Some(chain)) if at.is_some() => Does::DeleteAt { chain, at: at.unwrap_or(0) },
        ("-D", Some(chain)) => Does::Delete { chain, rule: rule(target.unwrap_or(Target::Nothing)) },
        ("-A" | "-I", Some(chain)) => {
            let target = target.unwrap_or(Target::Nothing);
            let at = if command == "-A" { None } else { Some(at.unwrap_or(0)) };
            Does::Add { chain, at, rule: rule(target) }
        }
        ("-A" | "-I" | "-D" | "-R", None) => return Err(words.missing(word, "a chain")),
        _ => Does::Nothing,
    };
    Ok(Line { six, does })
}

/// Whether a word has several short options, of which one is `-L` or `-S`: `-vnL`.
fn lists(word: &str) -> bool {
    let flags = word.strip_prefix('-').unwrap_or_default();
    flags.len() > 1 && flags.contains(['L', 'S']) && flags.chars().all(|flag| "vnxLSZ".contains(flag))
}

/// The word behind one of these.
fn behind<'a>(all: &[Word<'a>], known: &[&str]) -> Option<Word<'a>> {
    let at = all.iter().position(|word| known.contains(&word.text))?;
    all.get(at + 1).copied()
}

const JUMPS: &[&str] = &["-j", "--jump", "-g", "--goto"];

/// Where a rule sends packets, if it gives them no marks itself: what it looks at then matters only if others do behind it.
fn decides(all: &[Word<'_>], table: Table) -> Option<Target> {
    match behind(all, JUMPS)?.text {
        "ACCEPT" => Some(Target::Accept),
        "RETURN" => Some(Target::Return),
        "LOG" | "NFLOG" => Some(Target::Nothing),
        chain if chain.chars().any(|c| c.is_ascii_lowercase()) => Some(Target::Call(table.chain(chain))),
        _ => None,
    }
}

/// The table of a rule, or what it does in one whose rules give packets no marks: what it looks at does not matter there.
fn table(all: &[Word<'_>], name: Word<'_>) -> Result<Result<Table, Does>, Problem> {
    let table = behind(all, &["-t", "--table"]).map_or("filter", |word| word.text);
    const CHANGES: [&str; 8] = ["-A", "-I", "-D", "-R", "--append", "--insert", "--delete", "--replace"];
    let command = all.iter().find(|word| CHANGES.contains(&word.text));
    if table == "mangle" {
        return Ok(Ok(Table::Mangle));
    }
    let policy = ["-P", "--policy"].iter().find_map(|flag| {
        let at = all.iter().position(|word| word.text == *flag)?;
        all.get(at + 2).filter(|policy| policy.text == "DROP")
    });
    if let Some(policy) = policy {
        return Err(policy
            .problem("a chain of iptables whose policy is `DROP`")
            .help("a filter of tc with `action drop` drops packets"));
    }
    if table == "filter" && all.iter().any(|word| matches!(word.text, "-F" | "--flush")) {
        return Ok(Ok(Table::Filter));
    }
    let Some(command) = command else { return Ok(Err(Does::Nothing)) };
    let target = behind(all, JUMPS);
    match (table, target.map(|target| target.text)) {
        ("filter", Some(target)) if !matches!(target, "LOG" | "NFLOG") => Ok(Ok(Table::Filter)),
        (_, None | Some("ACCEPT" | "RETURN" | "LOG" | "NFLOG")) | ("raw", Some("NOTRACK" | "CT")) => {
            Ok(Err(Does::Nothing))
        }
        ("nat", Some("MASQUERADE" | "SNAT")) => {
            let device = behind(all, &["-o", "--out-interface"]);
            let leaves = device.filter(|device| device.text != "!" && !device.text.ends_with('+'));
            Ok(Err(Does::Translate(Translation { leaves: leaves.map(|device| device.text.to_owned()) })))
        }
        ("nat", Some("DNAT" | "REDIRECT" | "NETMAP")) => {
            Ok(Err(Does::Translate(Translation { leaves: None })))
        }
        (_, Some("DROP" | "REJECT")) => Err(target
            .unwrap_or(name)
            .problem(format!("{} of iptables", Found(target.unwrap_or(name).text)))
            .help("a filter of tc with `action drop` drops packets")),
        _ => Err(command
            .problem(format!("a rule of the table `{table}` of iptables"))
            .help("understood: marks and classes of packets, in the tables `mangle` and `filter`")),
    }
}

/// Reads a target and its options.
fn jump(after: Word<'_>, words: &mut Words<'_>, table: Table) -> Result<Target, Problem> {
    let name = words.expect(after, "a target")?;
    if let Some(change) = written::read(name, words) {
        return Ok(Target::Write(change?));
    }
    let target = match name.text {
        "MARK" => Target::Mark(mark(name, words)?),
        "CLASSIFY" => {
            let option = words.expect(name, "`--set-class`")?;
            if option.text != "--set-class" {
                return Err(option.expected("`--set-class`"));
            }
            let class = Handle::read(words.expect(option, "a class")?)?;
            Target::Classify(u32::from(class.major) << 16 | u32::from(class.minor))
        }
        "ACCEPT" => Target::Accept,
        "RETURN" => Target::Return,
        "LOG" | "NFLOG" => {
            while words
                .peek()
                .is_some_and(|word| word.text.starts_with("--log") || word.text.starts_with("--nflog"))
            {
                words.take();
                if words.peek().is_some_and(|word| !word.text.starts_with('-')) {
                    words.take();
                }
            }
            Target::Nothing
        }
        "ECN" | "TCPMSS" => {
            return Err(name
                .problem(format!("{} changes packets", Found(name.text)))
                .help("understood: DSCP, TOS, TTL and HL"));
        }
        "CONNMARK" => Target::Mark(connection(name, words)?),
        "DROP" => Target::Drop,
        "REJECT" => {
            return Err(name
                .problem("`REJECT` of iptables, which answers that packets are not wanted")
                .help("`DROP` drops them without an answer"));
        }
        "IMQ" | "NFQUEUE" | "TEE" | "TPROXY" | "MASQUERADE" | "SNAT" | "DNAT" | "REDIRECT" | "NETMAP"
        | "NOTRACK" | "CT" => {
            return Err(name
                .problem(format!("{} of iptables has no counterpart here", Found(name.text)))
                .help("understood: MARK, CLASSIFY, ACCEPT, RETURN, LOG and chains of the script"));
        }
        chain => Target::Call(table.chain(chain)),
    };
    Ok(target)
}

/// `--set-mark 10`, `--set-xmark 0x10/0xff`, `--or-mark 1`, `--and-mark 0xf0`.
fn mark(after: Word<'_>, words: &mut Words<'_>) -> Result<Change, Problem> {
    let option = words.expect(after, "`--set-mark`")?;
    given(option, Number::Mark, words)?.ok_or_else(|| {
        option
            .problem(format!("unsupported {} of `MARK`", Found(option.text)))
            .help("understood: --set-mark, --set-xmark, --or-mark, --and-mark and --xor-mark")
    })
}

/// A value for a mark; `None` for another option.
fn given(option: Word<'_>, number: Number, words: &mut Words<'_>) -> Result<Option<Change>, Problem> {
    const OPTIONS: [&str; 5] = ["--set-mark", "--set-xmark", "--or-mark", "--and-mark", "--xor-mark"];
    if !OPTIONS.contains(&option.text) {
        return Ok(None);
    }
    let (value, mask) = mark_and_mask(words.expect(option, "a mark")?)?;
    let (clear, invert) = match option.text {
        "--set-mark" => (mask | value, value),
        "--set-xmark" => (mask, value),
        "--or-mark" => (value, value),
        "--and-mark" => (!value, 0),
        _ => (0, value),
    };
    Ok(Some(Change::of(number, clear, invert)))
}

/// `--restore-mark`, `--save-mark --mask 0xff`, `--set-mark 10`: between a packet and its connection.
fn connection(after: Word<'_>, words: &mut Words<'_>) -> Result<Change, Problem> {
    let option = words.expect(after, "`--restore-mark`, `--save-mark` or `--set-mark`")?;
    if let Some(change) = given(option, Number::Connection, words)? {
        return Ok(change);
    }
    // `--mask` is both others at once.
    let (mut of_packets, mut of_connections) = (u32::MAX, u32::MAX);
    let mut last = option;
    while let Some(word) = words.peek().filter(|word| ["--mask", "--nfmask", "--ctmask"].contains(&word.text))
    {
        words.take();
        last = word;
        let mask = units::integer(words.expect(word, "a mask")?, "a mask", 0, u32::MAX.into())? as u32;
        match word.text {
            "--nfmask" => of_packets = mask,
            "--ctmask" => of_connections = mask,
            _ => (of_packets, of_connections) = (mask, mask),
        }
    }
    if of_packets != of_connections {
        return Err(last
            .problem("two masks, of the packet's mark and of the connection's")
            .help("one mask for both is understood: --mask 0xff"));
    }
    match option.text {
        "--restore-mark" => Ok(Change::restore(of_packets)),
        "--save-mark" => Ok(Change::save(of_packets)),
        other => Err(option
            .problem(format!("unsupported {} of `CONNMARK`", Found(other)))
            .help("understood: --restore-mark and --save-mark with --mask, and --set-mark, --set-xmark, --or-mark, --and-mark, --xor-mark")),
    }
}

//! Rules: `[N] [set S] [prob p] action [log] [tag N] [proto from SRC to DST] [options]`.

use narrows_core::Probability;
use narrows_core::rules::{Action, Answer, Argument, Literal, NextHop, Rule, Tag, Term, Test};

use super::address::{self, Context, Family};
use super::directions::Directions;
use super::lexer::{Line, Word, Words};
use super::names::{self, ACTIONS, Names, OPTIONS, REFUSED_ACTIONS};
use super::numbers;
use super::options::{self, Made};
use super::reader::{LAST, Reader, protocol_test, set_number, unknown};
use crate::problem::{Found, Problem};

/// Parses a rule without `add`. Its number is 0 if none is given.
pub(super) fn read(
    words: Words<'_>,
    comment: Option<&str>,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Rule, Problem> {
    let directions = Directions::of(words.rest());
    let mut reader = Reader { words, context, remarks, directions };
    let rule = reader.rule(comment)?;
    reader.words.end()?;
    Ok(rule)
}

/// Same for a whole line, which may start with `add`.
pub(super) fn read_line(
    line: &Line,
    context: &Context<'_>,
    remarks: &mut Vec<String>,
) -> Result<Rule, Problem> {
    let mut words = Words::new(&line.words);
    words.take_if(&["add"]);
    read(words, line.comment.as_deref(), context, remarks)
}

impl Reader<'_> {
    fn rule(&mut self, comment: Option<&str>) -> Result<Rule, Problem> {
        let mut rule = Rule { comment: comment.map(Into::into), ..Rule::new(0, Action::Count) };
        if self.words.peek().is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit())) {
            let word = self.words.expect("the number of a rule")?;
            rule.number = numbers::decimal(word, "the number of a rule", 1..=LAST)? as u16; // at most LAST
        }
        if self.words.take_if(&["set"]).is_some() {
            let word = self.words.expect("the number of a set")?;
            rule.set = set_number(word)?;
        }
        if self.words.take_if(&["prob"]).is_some() {
            let word = self.words.expect("a probability")?;
            rule.probability = Some(numbers::probability(word)?).filter(|p| *p != Probability::ONE);
        }
        let action = match self.words.peek() {
            // As in ipfw, a comment alone is a `count` rule.
            None if rule.comment.is_some() => return Ok(rule),
            _ => self.words.expect("the action of the rule")?,
        };
        rule.action = self.action(action)?;
        if let (Action::SkipTo(Argument::Number(to)), number @ 1..) = (rule.action, rule.number)
            && to <= number.into()
        {
            return Err(backwards(to, number).at(&action.span));
        }
        self.parameters(&mut rule)?;
        if rule.action == Action::CheckState {
            if let Some(name) = self.words.peek().filter(|word| word.text.starts_with(':')) {
                options::state_name(name, self.context)?;
                self.words.take();
            }
            return match self.words.peek() {
                None => Ok(rule),
                Some(word) => Err(word
                    .expected("the end of the command")
                    .help("`check-state` applies to every packet: it has no conditions")),
            };
        }
        self.body(&mut rule)?;
        self.options(&mut rule)?;
        Ok(rule)
    }

    fn action(&mut self, word: &Word) -> Result<Action, Problem> {
        Ok(match word.text.as_str() {
            "allow" | "accept" | "pass" | "permit" => Action::Allow,
            "deny" | "drop" => Action::Deny,
            "count" => Action::Count,
            "reass" => {
                self.remarks.push(
                    "`reass` counts: fragments go on as they are, and later ones have no ports to match"
                        .into(),
                );
                Action::Count
            }
            "return" => Action::Return,
            "check-state" => Action::CheckState,
            "pipe" => Action::Pipe(self.argument("the number of a pipe")?),
            "queue" => Action::Queue(self.argument("the number of a queue")?),
            "nat" => self.translator()?,
            "skipto" => Action::SkipTo(self.argument("the number of a rule")?),
            "call" => Action::Call(self.argument("the number of a rule")?),
            "setmark" => {
                let mark = self.words.expect("a mark")?;
                Action::SetMark(self.value(mark, "a mark")?)
            }
            "setfib" => {
                let fib = self.words.expect("the number of a routing table")?;
                self.remarks.push(
                    "later rules can test the number with `fib`; routes are the same for all numbers".into(),
                );
                Action::SetFib(match fib.text.as_str() {
                    "tablearg" => Argument::TableArgument,
                    _ => {
                        let number = numbers::integer(fib, "the number of a routing table", u16::MAX)?;
                        Argument::Number(number.into())
                    }
                })
            }
            "fwd" | "forward" => Action::Forward(self.next_hop(word)?),
            "setdscp" => {
                let point = self.words.expect("a code point")?;
                Action::SetDscp(match point.text.as_str() {
                    "tablearg" => Argument::TableArgument,
                    _ => Argument::Number(numbers::code_point(point)?.into()),
                })
            }
            "reset" => Action::Reject(Answer::Reset),
            "reset6" => Action::Reject(Answer::Reset6),
            "reject" => Action::Reject(Answer::Unreachable(names::HOST)),
            "unreach" => Action::Reject(self.unreachable()?),
            "unreach6" => Action::Reject(Answer::Unreachable6(self.code(names::UNREACHABLE_6)?)),
            "abort" | "abort6" => {
                self.remarks
                    .push("a drop without an answer: ipfw also sends an SCTP abort to the sender".into());
                Action::Deny
            }
            other => return Err(unknown(word, other, "action", ACTIONS, REFUSED_ACTIONS)),
        })
    }

    /// The code of `unreach`, and the MTU behind `needfrag`.
    fn unreachable(&mut self) -> Result<Answer, Problem> {
        let code = self.code(names::UNREACHABLE)?;
        if code != names::NEEDS_FRAGMENTATION {
            return Ok(Answer::Unreachable(code));
        }
        let is_number = |word: &&Word| word.text.starts_with(|c: char| c.is_ascii_digit());
        let Some(mtu) = self.words.peek().filter(is_number) else {
            return Ok(Answer::FragmentationNeeded(0));
        };
        self.words.take();
        let mtu = numbers::decimal(mtu, "an MTU", 0..=u16::MAX.into())?;
        Ok(Answer::FragmentationNeeded(mtu as u16)) // at most that
    }

    fn code(&mut self, codes: Names<u8>) -> Result<u8, Problem> {
        let code = self.words.expect("a code")?;
        if let Some(number) = names::number(codes, &code.text) {
            return Ok(number);
        }
        let known: Vec<_> = codes.iter().map(|(name, _)| *name).collect();
        numbers::integer(code, "a code", u8::MAX).map_err(|_| {
            code.expected("a code from 0 to 255, or its name")
                .help(format!("names: {}", crate::problem::one_of(&known)))
        })
    }

    pub(super) fn argument(&mut self, what: &str) -> Result<Argument, Problem> {
        let word = self.words.expect(what)?;
        if word.text == "tablearg" {
            return Ok(Argument::TableArgument);
        }
        let read = numbers::decimal(word, what, 1..=LAST).map(Argument::Number);
        read.map_err(|problem| problem.help("or `tablearg`, for the value that a look-up in a table found"))
    }

    /// The address of `fwd ADDRESS[,PORT]`.
    fn next_hop(&mut self, action: &Word) -> Result<NextHop, Problem> {
        let word = self.words.expect("the address of the next hop, or `tablearg`")?;
        if self.context.no_router {
            return Err(action
                .problem(format!("{} needs a router at the link, and there is none", Found(&action.text)))
                .help("in a scenario with routers, the next router sends the packet to that address"));
        }
        let (address, port) = match word.text.split_once(',') {
            Some((address, port)) => (word.part(address), Some(word.part(port))),
            None => (word.clone(), None),
        };
        if let Some(port) = port {
            numbers::ranges(&port, numbers::PORTS)?;
            self.remarks.push("the port counts in ipfw only if the address is one of the host itself".into());
        }
        if address.text == "tablearg" {
            return Ok(NextHop::TableArgument);
        }
        let found = address::host_address(&address, Family::V4, self.context, self.remarks)?;
        if found.is_loopback() || found.is_unspecified() {
            return Err(address
                .problem(format!(
                    "`{} {found}` passes packets to a program on the host of the rules",
                    action.text
                ))
                .help("narrows has no programs at its rules: write the address of another host or router"));
        }
        Ok(NextHop::Address(address::mapped(found).to_be_bytes()))
    }

    /// Parses `log`, `tag`, `untag`.
    fn parameters(&mut self, rule: &mut Rule) -> Result<(), Problem> {
        while let Some(word) = self.words.take_if(&["log", "tag", "untag", "altq"]) {
            match word.text.as_str() {
                "log" if rule.log => return Err(word.problem("`log` twice")),
                "log" => {
                    rule.log = true;
                    if self.words.take_if(&["logamount"]).is_some() {
                        let number = self.words.expect("a number of packets")?;
                        numbers::decimal(number, "a number of packets", 0..=u32::MAX)?;
                    }
                    if self.words.take_if(&["logdst"]).is_some() {
                        self.words.expect("where to log")?;
                    }
                    self.remarks.push("`log` writes no log; matches are counted as usual".into());
                }
                "altq" => {
                    return Err(word
                        .problem("`altq` exists in ipfw but not in narrows")
                        .help("narrows has no queues of ALTQ; use `queue` and `pipe`"));
                }
                _ if rule.tag.is_some() => {
                    return Err(word.problem(format!(
                        "{} with another tag: a rule sets or removes one",
                        Found(&word.text)
                    )));
                }
                name => {
                    let number = self.words.expect("a tag")?;
                    if number.text == "tablearg" {
                        return Err(number
                            .problem("a tag from a table exists in ipfw but not in narrows")
                            .help("write the tag, a number from 1 to 65534"));
                    }
                    let tag = numbers::decimal(number, "a tag", 1..=LAST)? as u16; // at most LAST
                    rule.tag = Some(if name == "tag" { Tag::Add(tag) } else { Tag::Remove(tag) });
                }
            }
        }
        Ok(())
    }

    /// Parses `proto from SRC [ports] to DST [ports]`, if present.
    fn body(&mut self, rule: &mut Rule) -> Result<(), Problem> {
        let start = self.words.position();
        // A protocol name is a protocol only if `from` follows: `ip6` is an option, too.
        let skipped = self.words.rest().iter().take_while(|word| word.text != "from").count();
        let has_from = skipped < self.words.rest().len();
        let first =
            self.words.rest().iter().find(|word| !matches!(word.text.as_str(), "{" | "(" | "not" | "!"));
        let Some(first) = first else { return Ok(()) };
        let bare = first.text.trim_start_matches('!');
        if !has_from && (OPTIONS.contains(&bare) || protocol_test(&first.part(bare)).is_err()) {
            return Ok(());
        }
        if has_from && OPTIONS.contains(&bare) && protocol_test(&first.part(bare)).is_err() {
            self.words.back_to(start);
            return Ok(());
        }
        let mut family = Family::V4;
        let protocols = self.block("a protocol", |_, word| {
            let test = protocol_test(word)?;
            if test == Some(Test::IpVersion(6)) {
                family = Family::V6;
            }
            Ok(test.map_or(Made::Nothing, Made::One))
        })?;
        rule.terms.extend(protocols);
        self.keyword("from", "after the protocol, as in: ip from any to any")?;
        let sources =
            self.block("a source address", |reader, word| reader.party(word, family, Test::Source))?;
        rule.terms.extend(sources);
        rule.terms.extend(self.body_ports(Test::SourcePort)?);
        self.keyword("to", "after the source, as in: ip from any to any")?;
        let to = self
            .block("a destination address", |reader, word| reader.party(word, family, Test::Destination))?;
        rule.terms.extend(to);
        rule.terms.extend(self.body_ports(Test::DestinationPort)?);
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, place: &str) -> Result<(), Problem> {
        let word = self
            .words
            .expect(&format!("`{keyword}`"))
            .map_err(|problem| problem.help(format!("`{keyword}` stands {place}")))?;
        if word.text == keyword {
            return Ok(());
        }
        Err(word.expected(&format!("`{keyword}`")).help(format!("`{keyword}` stands {place}")))
    }

    /// Ports of the body: anything before `to`, and after the destination whatever looks like ports.
    fn body_ports(
        &mut self,
        test: fn(Vec<std::ops::RangeInclusive<u16>>) -> Test,
    ) -> Result<Option<Term>, Problem> {
        let not = self.words.next_is(&["not"]);
        let word = if not { self.words.peek_second() } else { self.words.peek() };
        let Some(word) = word.filter(|word| word.text != "to") else { return Ok(None) };
        let is_option = OPTIONS.contains(&word.text.as_str());
        if word.text != "any" && (is_option || !numbers::is_port(word)) {
            return Ok(None);
        }
        self.words.take();
        if not {
            self.words.take();
        }
        if word.text == "any" {
            return if not { Err(never(word)) } else { Ok(None) };
        }
        let ports = numbers::ranges(word, numbers::PORTS)?;
        Ok(Some(Term(vec![Literal { not, test: test(ports) }])))
    }

    fn options(&mut self, rule: &mut Rule) -> Result<(), Problem> {
        while let Some(word) = self.words.peek() {
            let in_block = matches!(word.text.as_str(), "{" | "(");
            if matches!(word.text.as_str(), "or" | "|") {
                return Err(word
                    .problem("`or` outside of braces")
                    .help("as in: { dst-port 80 or dst-port 443 }"));
            }
            let terms = self.block("an option", |reader, word| {
                let made = reader.option(word)?;
                match made {
                    Made::Keep(..) | Made::Defers if in_block => {
                        Err(word.problem(format!("{} cannot be part of an or-block", Found(&word.text))))
                    }
                    Made::Keep(..) if rule.keep.is_some() => Err(word.problem(
                        "two of `keep-state`, `limit`, `record-state` and `set-limit`: a rule has one",
                    )),
                    Made::Keep(keep, records) => {
                        (rule.keep, rule.records) = (Some(keep), records);
                        Ok(Made::Nothing)
                    }
                    Made::Defers => {
                        rule.defers = true;
                        Ok(Made::Nothing)
                    }
                    made => Ok(made),
                }
            })?;
            rule.terms.extend(terms);
        }
        Ok(())
    }

    /// One condition, or several joined by `or` in braces, each with or without `not`.
    fn block(
        &mut self,
        what: &str,
        mut one: impl FnMut(&mut Self, &Word) -> Result<Made, Problem>,
    ) -> Result<Vec<Term>, Problem> {
        let open = self.words.take_if(&["{", "("]);
        let mut literals = Vec::new();
        loop {
            let mut not = false;
            while let Some(word) = self.words.take_if(&["not", "!"]) {
                if std::mem::replace(&mut not, true) {
                    return Err(word.problem("`not` twice"));
                }
            }
            let word = self.words.expect(what)?;
            let bare = match word.text.strip_prefix('!') {
                Some(_) if not => return Err(word.problem("`not` twice")),
                Some(bare) => {
                    not = true;
                    word.part(bare)
                }
                None => word.clone(),
            };
            if matches!(bare.text.as_str(), "{" | "(") {
                return Err(bare.problem("a block within a block"));
            }
            match (one(self, &bare)?, open, not) {
                (Made::Keep(..) | Made::Defers | Made::Nothing, _, true) => return Err(never(&bare)),
                (Made::Keep(..) | Made::Defers | Made::Nothing, None, false) => {}
                (Made::Keep(..) | Made::Defers | Made::Nothing, Some(_), false) => {
                    literals.push(Literal { not, test: Test::Any })
                }
                (Made::One(test), ..) => literals.push(Literal { not, test }),
                (Made::Either(a, b), None, false) => return Ok(vec![Term(vec![a, b])]),
                (Made::Either(a, b), Some(_), false) => literals.extend([a, b]),
                (Made::Either(a, b), None, true) => {
                    let negated = |literal: Literal| Term(vec![Literal { not: !literal.not, ..literal }]);
                    return Ok(vec![negated(a), negated(b)]);
                }
                (Made::Either(..), Some(_), true) => {
                    return Err(bare
                        .problem(format!("`not {}` in an or-block", bare.text))
                        .help("write a rule for each"));
                }
                // Not both: one of the two does not match.
                (Made::Both(a, b), _, true) => {
                    literals.extend([Literal { not, test: a }, Literal { not, test: b }]);
                }
                (Made::Both(a, b), None, false) => {
                    return Ok([a, b].map(|test| Term(vec![Literal { not, test }])).into());
                }
                (Made::Both(..), Some(_), false) => {
                    return Err(bare
                        .problem(format!(
                            "{} combines two conditions, which an or-block cannot",
                            Found(&bare.text)
                        ))
                        .help("write a rule for each"));
                }
            }
            let Some(open) = open else { break };
            match self.words.take() {
                Some(word) if matches!(word.text.as_str(), "or" | "|") => {}
                Some(word) if matches!(word.text.as_str(), "}" | ")") => break,
                Some(word) => {
                    return Err(word.expected("`or` or `}`").also(&open.span, "the block begins here"));
                }
                None => {
                    return Err(open
                        .problem("this block has no end")
                        .help("as in: { dst-port 80 or dst-port 443 }"));
                }
            }
        }
        Ok(if literals.is_empty() { Vec::new() } else { vec![Term(literals)] })
    }
}

/// The error for a condition that no packet matches.
fn never(word: &Word) -> Problem {
    word.problem(format!("`not {}` matches no packet", word.text))
}

/// The error for a rule that jumps backwards.
pub(super) fn backwards(to: u32, number: u16) -> Problem {
    let way = if to == u32::from(number) { "to itself" } else { "backwards" };
    Problem::new(format!("`skipto {to}` in rule {number} leads {way}"))
        .help("`skipto` only jumps forward; `call` may jump backward and `return` returns")
}

//! Parses what follows `config`.

use super::options::{self, AQMS, SCHEDULERS, plain, share};
use super::{Config, Object, of_type};
use crate::dialect::number;
use crate::ipfw::lexer::{Word, Words};
use crate::ipfw::reader::{LAST, unknown};
use crate::ipfw::{mask, numbers, quantity};
use crate::keys::kind::text;
use crate::node::{Node, Table, Value};
use crate::problem::{Found, Problem};
use crate::units::Share;

/// Parses the number of a pipe, queue or scheduler.
pub(in crate::ipfw) fn object_number(word: &Word, object: Object) -> Result<u32, Problem> {
    numbers::decimal(word, &format!("the number of a {}", object.word()), 1..=LAST)
}

/// Options of an object with more than a plain value as arguments, each with the word that identifies it.
fn others(object: Object) -> impl Iterator<Item = (&'static str, &'static str)> {
    const MANAGED: &[(&str, &str)] =
        &[("red", "red"), ("gred", "red"), ("codel", "red"), ("pie", "red"), ("droptail", "red")];
    let (managed, own): (_, &[_]) = match object {
        Object::Pipe => (MANAGED, &[("mask", "mask"), ("sched_mask", "mask"), ("type", "type")]),
        Object::Queue => (
            MANAGED,
            &[("sched", "pipe"), ("pipe", "pipe"), ("link", "pipe"), ("mask", "mask"), ("flow_mask", "mask")],
        ),
        Object::Scheduler => (
            &[][..],
            &[("type", "type"), ("mask", "mask"), ("sched_mask", "mask"), ("pipe", "pipe"), ("link", "pipe")],
        ),
    };
    managed.iter().chain(own).copied()
}

/// The name that identifies an option of an object; `None` for an unknown word.
fn name(object: Object, word: &str) -> Option<&'static str> {
    let other = others(object).find(|(known, _)| *known == word).map(|(_, name)| name);
    other.or_else(|| options::of(object).find(word).map(|option| option.name()))
}

/// Names the object that accepts this option instead.
fn elsewhere(word: &str) -> Option<&'static str> {
    let has = |object| name(object, word).is_some();
    match (has(Object::Pipe), has(Object::Queue), has(Object::Scheduler)) {
        (true, true, _) => Some("pipes and queues"),
        (true, false, _) => Some("pipes"),
        (false, true, _) => Some("queues"),
        (false, false, true) => Some("schedulers"),
        _ => None,
    }
}

/// Parses what follows `config`.
pub(in crate::ipfw) fn read(
    object: Object,
    number: u32,
    words: &mut Words<'_>,
    remarks: &mut Vec<String>,
) -> Result<Config, Problem> {
    let mut config = Config::new(object, number);
    let mut seen: Vec<&str> = Vec::new();
    while let Some(word) = words.peek() {
        let Some(name) = name(object, &word.text) else { return Err(not_an_option(word, object)) };
        if seen.contains(&name) {
            return Err(word.problem(format!("duplicate {}", Found(&word.text))).help("keep one of the two"));
        }
        seen.push(name);
        if !options::of(object).read_one(words, &mut config.keys, remarks)? {
            words.take();
            Reader { config: &mut config, words, remarks }.other(word)?;
        }
    }
    Ok(config)
}

fn not_an_option(word: &Word, object: Object) -> Problem {
    let name = word.text.as_str();
    if name == "ecn" || name == "noecn" {
        return word.problem(format!("{} follows `red`, `gred`, `codel` or `pie`", Found(name)));
    }
    if let Some(others) = elsewhere(name) {
        return word.problem(format!("{} is an option of {others}, not of a {}", Found(name), object.word()));
    }
    let mut known = options::of(object).known();
    known.extend(others(object).map(|(word, _)| word));
    unknown(
        word,
        name,
        &format!("option of a {}", object.word()),
        &known,
        &[
            ("src-port", "it follows `mask`"),
            ("dst-port", "it follows `mask`"),
            ("src-ip", "it follows `mask`"),
            ("dst-ip", "it follows `mask`"),
            ("delay-profile", "use `profile`"),
            ("slotsize", "narrows counts bytes"),
        ],
    )
}

struct Reader<'a, 'w> {
    config: &'a mut Config,
    words: &'a mut Words<'w>,
    remarks: &'a mut Vec<String>,
}

impl Reader<'_, '_> {
    fn other(&mut self, word: &Word) -> Result<(), Problem> {
        let table = match word.text.as_str() {
            "mask" | "flow_mask" | "sched_mask" => {
                self.config.mask = Some(mask::read(self.words, self.remarks)?);
                return Ok(());
            }
            "pipe" | "link" | "sched" => return self.parent(),
            "droptail" => return Ok(()),
            "type" => self.scheduler()?,
            "red" | "gred" => self.red(&word.text)?,
            name => {
                let aqm = AQMS.iter().find(|aqm| aqm.name == name).expect("it is one of `others`");
                let keys = aqm.options.read_some(self.words, self.remarks)?;
                self.last_option(name)?;
                typed(name, keys)
            }
        };
        let key = if word.text == "type" { "scheduler" } else { "queue" };
        self.config.keys.put(key, Value::Table(table));
        Ok(())
    }

    fn parent(&mut self) -> Result<(), Problem> {
        let word = self.words.expect("the number of a pipe or scheduler")?;
        let parent = object_number(word, Object::Scheduler)?;
        let own = self.config.number;
        if self.config.object == Object::Scheduler {
            return match parent == own {
                true => Ok(()),
                false => Err(word.problem(format!("scheduler {own} sends through pipe {parent}")).help(
                    format!("a scheduler sends through the pipe with its number: configure pipe {own}"),
                )),
            };
        }
        self.config.keys.put("pipe", number(parent));
        Ok(())
    }

    /// `w_q/min/max/max_p [ecn]`
    fn red(&mut self, name: &str) -> Result<Table, Problem> {
        const EXPECTED: &str = "w_q/min_th/max_th/max_p, as in 0.002/5/15/0.1";
        let word = crate::dialect::Word::from(self.words.expect(EXPECTED)?);
        let parts: Vec<_> = word.text.split('/').map(|part| word.part(part)).collect();
        let &[weight, min, max, probability] = parts.as_slice() else { return Err(word.expected(EXPECTED)) };
        let above_zero = |word: crate::dialect::Word<'_>, share: Share| match share.is_zero() {
            true => Err(word.expected("a number above 0, at most 1")),
            false => Ok(share),
        };
        above_zero(weight, share(weight)?)?;
        let weight = plain(weight, "a weight above 0, at most 1")?;
        let probability = above_zero(probability, share(probability)?)?;
        let (low, high) = (quantity::kilo(min, "a threshold")?, quantity::kilo(max, "a threshold")?);
        if low >= high {
            return Err(min
                .problem(format!("the lower threshold, {low}, is not below the upper threshold, {high}"))
                .help(EXPECTED));
        }
        let mut table = of_type(name);
        table.put("min", number(low));
        table.put("max", number(high));
        table.put("probability", text(probability));
        table.put("weight", weight);
        table.put("ecn", Value::Boolean(self.words.take_if(&["ecn"]).is_some()));
        Ok(table)
    }

    fn scheduler(&mut self) -> Result<Table, Problem> {
        let word = self.words.expect("the type of a scheduler")?;
        let name = word.text.to_ascii_lowercase();
        let Some(kind) = SCHEDULERS.iter().find(|kind| kind.word == name) else {
            const REFUSED: &[(&str, &str)] = &[
                ("gfq", "use `qfq` or `kps`"),
                ("abe", "a link without rules has it: `scheduler = \"abe\"`"),
                ("drr", "ipfw calls it `rr`"),
            ];
            let known: Vec<&str> = SCHEDULERS.iter().map(|kind| kind.word).collect();
            return Err(unknown(word, &name, "type of a scheduler", &known, REFUSED));
        };
        let keys = kind.options.read_some(self.words, self.remarks)?;
        if kind.manages() {
            self.last_option(&word.text)?;
        }
        Ok(typed(kind.name, keys))
    }

    /// ipfw takes the rest of a line as options of CoDel, PIE and their fair variants, and ignores those
    /// that they do not have.
    fn last_option(&self, name: &str) -> Result<(), Problem> {
        let Some(word) = self.words.peek() else { return Ok(()) };
        let title = format!("{} is not an option of `{name}`: ipfw ignores it there", Found(&word.text));
        Err(word.problem(title).help(format!(
            "write it before `{}`",
            match AQMS.iter().any(|aqm| aqm.name == name) {
                true => name.to_owned(),
                false => format!("type {name}"),
            }
        )))
    }
}

/// Prepends the `type` to its keys.
fn typed(name: &str, keys: Table) -> Table {
    let mut table = of_type(name);
    keys.iter().for_each(|(key, node)| table.set(&key.name, Node::new(node.value.clone())));
    table
}

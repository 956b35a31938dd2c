//! Reading what stands behind `config`.

use std::path::PathBuf;

use narrows_core::Duration;

use super::{Codel, Config, Hashed, Loss, Management, Object, Pie, SchedulerType};
use crate::ipfw::lexer::{Word, Words};
use crate::ipfw::quantity::{self, Read};
use crate::ipfw::rule::{LAST, unknown};
use crate::ipfw::{mask, numbers};
use crate::node::{Node, Value};
use crate::problem::{Found, Problem};
use crate::units::{Number, Share};

/// The numbers of pipes, queues and schedulers.
pub(in crate::ipfw) fn object_number(word: &Word, object: Object) -> Result<u32, Problem> {
    numbers::decimal(word, &format!("the number of a {}", object.word()), 1..=LAST)
}

/// Options that each object takes.
fn known(object: Object) -> &'static [&'static str] {
    match object {
        Object::Pipe => &[
            "bw",
            "delay",
            "burst",
            "profile",
            "queue",
            "plr",
            "red",
            "gred",
            "codel",
            "pie",
            "droptail",
            "mask",
            "sched_mask",
            "buckets",
            "noerror",
            "bandwidth",
        ],
        Object::Queue => &[
            "sched",
            "pipe",
            "weight",
            "lmax",
            "pri",
            "queue",
            "plr",
            "red",
            "gred",
            "codel",
            "pie",
            "droptail",
            "mask",
            "flow_mask",
            "buckets",
            "noerror",
            "link",
            "maxlen",
            "priority",
        ],
        Object::Scheduler => &["type", "mask", "sched_mask", "buckets", "pipe", "link"],
    }
}

/// What another object takes, and which.
fn elsewhere(name: &str) -> Option<&'static str> {
    let has = |object| known(object).contains(&name);
    match (has(Object::Pipe), has(Object::Queue), has(Object::Scheduler)) {
        (true, true, _) => Some("pipes and queues"),
        (true, false, _) => Some("pipes"),
        (false, true, _) => Some("queues"),
        (false, false, true) => Some("schedulers"),
        _ => None,
    }
}

/// Reads what follows `config`.
pub(in crate::ipfw) fn read(
    object: Object,
    number: u32,
    words: &mut Words<'_>,
    remarks: &mut Vec<String>,
) -> Result<Config, Problem> {
    let mut config = Config::new(object, number);
    let mut seen: Vec<&str> = Vec::new();
    while let Some(word) = words.take() {
        let name = match word.text.as_str() {
            "bandwidth" => "bw",
            "maxlen" => "lmax",
            "priority" => "pri",
            "flow_mask" | "sched_mask" if known(object).contains(&word.text.as_str()) => "mask",
            "link" | "sched" if object != Object::Pipe => "pipe",
            "gred" | "codel" | "pie" | "droptail" => "red",
            name => name,
        };
        if !known(object).contains(&word.text.as_str()) {
            return Err(not_an_option(word, object));
        }
        if seen.contains(&name) {
            return Err(word
                .problem(format!("{} a second time", Found(&word.text)))
                .help("keep one of the two"));
        }
        seen.push(name);
        Reader { config: &mut config, words, remarks }.option(word)?;
    }
    Ok(config)
}

fn not_an_option(word: &Word, object: Object) -> Problem {
    let name = word.text.as_str();
    if name == "ecn" || name == "noecn" {
        return word.problem(format!("{} stands behind `red`, `gred`, `codel` or `pie`", Found(name)));
    }
    match elsewhere(name) {
        Some(others) => {
            word.problem(format!("{} is an option of {others}, not of a {}", Found(name), object.word()))
        }
        None => unknown(
            word,
            name,
            &format!("option of a {}", object.word()),
            known(object),
            &[
                ("src-port", "it stands behind `mask`"),
                ("dst-port", "it stands behind `mask`"),
                ("src-ip", "it stands behind `mask`"),
                ("dst-ip", "it stands behind `mask`"),
                ("delay-profile", "use `profile`"),
                ("slotsize", "narrows counts bytes"),
            ],
        ),
    }
}

struct Reader<'a, 'w> {
    config: &'a mut Config,
    words: &'a mut Words<'w>,
    remarks: &'a mut Vec<String>,
}

impl Reader<'_, '_> {
    fn option(&mut self, word: &Word) -> Result<(), Problem> {
        match word.text.as_str() {
            "bw" | "bandwidth" => self.config.rate = Some(self.quantity("a rate", quantity::rate)?),
            "delay" => self.config.delay = Some(self.quantity("a time", quantity::time)?),
            "burst" => {
                self.config.burst = Some(self.quantity("a size", quantity::size)?);
                self.remarks.push(
                    "after idling as much passes at once as the rate would have sent in the meantime, but no more than the burst".into(),
                );
            }
            "profile" => {
                self.config.profile = Some(PathBuf::from(&self.words.expect("the file of a profile")?.text));
            }
            "queue" => {
                self.config.bound = Some(self.quantity("a number of slots or bytes", quantity::bound)?)
            }
            "plr" => self.config.loss = Some(loss(self.words.expect("a probability")?)?),
            "droptail" => self.config.management = Some(Management::DropTail),
            "red" | "gred" => self.config.management = Some(self.red(word.text == "gred")?),
            "codel" => self.config.management = Some(Management::Codel(self.codel()?)),
            "pie" => self.config.management = Some(Management::Pie(self.pie()?)),
            "weight" => self.config.weight = Some(self.number("a weight", 1, 65_536)?),
            "lmax" | "maxlen" => {
                self.config.longest = Some(self.number("the length of a packet", 1, 65_535)?)
            }
            "pri" | "priority" => self.config.priority = Some(self.number("a priority", 0, 255)?),
            "mask" | "flow_mask" | "sched_mask" => {
                self.config.mask = Some(mask::read(self.words, self.remarks)?)
            }
            "buckets" => {
                self.number("a number of buckets", 1, 65_536)?;
                self.remarks.push("`buckets` changes nothing: tables of flows grow by themselves".into());
            }
            "noerror" => {
                self.remarks.push("`noerror` changes nothing: senders are told of no drop".into());
            }
            "type" => self.config.scheduler = Some(self.scheduler()?),
            _ => {
                let number = self.words.expect("the number of a pipe or scheduler")?;
                let parent = object_number(number, Object::Scheduler)?;
                if self.config.object == Object::Scheduler && parent != self.config.number {
                    return Err(number
                        .problem(format!("scheduler {} sends by pipe {parent}", self.config.number))
                        .help(format!(
                            "a scheduler sends by the pipe of its own number: configure pipe {}",
                            self.config.number
                        )));
                }
                self.config.parent = Some(parent).filter(|_| self.config.object == Object::Queue);
            }
        }
        Ok(())
    }

    fn quantity<T>(
        &mut self,
        what: &str,
        read: impl Fn(&Word) -> Result<Read<T>, Problem>,
    ) -> Result<T, Problem> {
        let word = self.words.expect(what)?;
        let read = read(word)?;
        self.remarks.extend(read.taken_as.map(|taken| format!("{} is {taken}", Found(&word.text))));
        Ok(read.value)
    }

    fn number(&mut self, what: &str, low: u32, high: u32) -> Result<u32, Problem> {
        numbers::decimal(self.words.expect(what)?, what, low..=high)
    }

    /// `w_q/min/max/max_p [ecn]`
    fn red(&mut self, gentle: bool) -> Result<Management, Problem> {
        const EXPECTED: &str = "w_q/min_th/max_th/max_p, as in 0.002/5/15/0.1";
        let word = self.words.expect(EXPECTED)?;
        let parts: Vec<Word> = word.text.split('/').map(|part| word.part(part)).collect();
        let [weight, min, max, probability] = parts.as_slice() else { return Err(word.expected(EXPECTED)) };
        let above_zero = |word: &Word, share: Share| match share.is_zero() {
            true => Err(word.expected("a number above 0, at most 1")),
            false => Ok(share),
        };
        above_zero(weight, share(weight)?)?;
        let weight = number(weight, "a weight above 0, at most 1")?;
        let probability = above_zero(probability, share(probability)?)?;
        let threshold = |word: &Word| quantity::kilo(word, "a threshold");
        let (low, high) = (threshold(min)?, threshold(max)?);
        if low >= high {
            return Err(min
                .problem(format!(
                    "the lower threshold is {low}, which is not below the upper one, which is {high}"
                ))
                .help(EXPECTED));
        }
        let ecn = self.words.take_if(&["ecn"]).is_some();
        Ok(Management::Red { gentle, weight, min: low, max: high, probability, ecn })
    }

    fn ecn(&mut self, ecn: &mut Option<bool>) -> bool {
        match self.words.take_if(&["ecn", "noecn"]) {
            Some(word) => {
                *ecn = Some(word.text == "ecn");
                true
            }
            None => false,
        }
    }

    fn time(&mut self, name: &str, time: &mut Option<Duration>) -> Result<bool, Problem> {
        if self.words.take_if(&[name]).is_none() {
            return Ok(false);
        }
        *time = Some(self.quantity("a time", quantity::time)?);
        Ok(true)
    }

    fn codel(&mut self) -> Result<Codel, Problem> {
        let mut codel = Codel::default();
        while self.codel_option(&mut codel)? {}
        Ok(codel)
    }

    fn codel_option(&mut self, codel: &mut Codel) -> Result<bool, Problem> {
        Ok(self.time("target", &mut codel.target)?
            || self.time("interval", &mut codel.interval)?
            || self.ecn(&mut codel.ecn))
    }

    fn pie(&mut self) -> Result<Pie, Problem> {
        let mut pie = Pie::default();
        while self.pie_option(&mut pie)? {}
        Ok(pie)
    }

    fn pie_option(&mut self, pie: &mut Pie) -> Result<bool, Problem> {
        if let Some(word) = self.words.take_if(&["onoff"]) {
            return Err(word
                .problem("`onoff` is known to ipfw and not to narrows")
                .help("PIE as in RFC 8033 is always on, and drops nothing while the queue is short"));
        }
        if let Some(word) = self.words.take_if(&["dre", "ts"]) {
            self.remarks.push(format!("`{}` changes nothing: delays are measured by time stamps", word.text));
            return Ok(true);
        }
        for (yes, no, value) in
            [("capdrop", "nocapdrop", &mut pie.cap_drop), ("derand", "noderand", &mut pie.derandomize)]
        {
            if let Some(word) = self.words.take_if(&[yes, no]) {
                *value = Some(word.text == yes);
                return Ok(true);
            }
        }
        for (name, gain) in [("alpha", &mut pie.alpha), ("beta", &mut pie.beta)] {
            if self.words.take_if(&[name]).is_some() {
                *gain = Some(number(self.words.expect("a gain")?, "a gain")?);
                return Ok(true);
            }
        }
        if self.words.take_if(&["max_ecnth"]).is_some() {
            pie.mark_below = Some(share(self.words.expect("a probability")?)?);
            return Ok(true);
        }
        Ok(self.time("target", &mut pie.target)?
            || self.time("tupdate", &mut pie.update)?
            || self.time("max_burst", &mut pie.burst)?
            || self.ecn(&mut pie.ecn))
    }

    fn hashed_option(&mut self, hashed: &mut Hashed) -> Result<bool, Problem> {
        let options = [
            ("quantum", "a number of bytes", &mut hashed.quantum, 1 << 20),
            ("limit", "a number of packets", &mut hashed.limit, u32::MAX),
            ("flows", "a number of flows", &mut hashed.flows, 65_536),
        ];
        for (name, what, value, most) in options {
            if self.words.take_if(&[name]).is_some() {
                *value = Some(self.number(what, 1, most)?);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn scheduler(&mut self) -> Result<SchedulerType, Problem> {
        const TYPES: &[&str] = &["fifo", "wf2q+", "rr", "qfq", "prio", "fq_codel", "fq_pie"];
        let word = self.words.expect("the type of a scheduler")?;
        let mut hashed = Hashed::default();
        Ok(match word.text.to_ascii_lowercase().as_str() {
            "fifo" => SchedulerType::Fifo,
            "wf2q+" => SchedulerType::Wf2q,
            "rr" => SchedulerType::RoundRobin,
            "qfq" => SchedulerType::Qfq,
            "prio" => SchedulerType::Priority,
            "fq_codel" => {
                let mut codel = Codel::default();
                while self.hashed_option(&mut hashed)? || self.codel_option(&mut codel)? {}
                SchedulerType::FqCodel(hashed, codel)
            }
            "fq_pie" => {
                let mut pie = Pie::default();
                while self.hashed_option(&mut hashed)? || self.pie_option(&mut pie)? {}
                SchedulerType::FqPie(hashed, pie)
            }
            name => {
                const REFUSED: &[(&str, &str)] =
                    &[("kps", "use `qfq`"), ("gfq", "use `qfq`"), ("drr", "ipfw calls it `rr`")];
                return Err(unknown(word, name, "type of a scheduler", TYPES, REFUSED));
            }
        })
    }
}

/// A share from 0 to 1.
fn share(word: &Word) -> Result<Share, Problem> {
    let node = Node { span: word.span.clone(), value: Value::Float(word.text.clone()) };
    let read = match word.text.as_str() {
        "1" | "0" => Share::read_of_several(&node),
        _ => Share::read(&node),
    };
    read.map_err(|_| word.expected("a probability from 0 to 1, such as 0.05"))
}

/// A plain number.
fn number(word: &Word, what: &str) -> Result<Number, Problem> {
    let node = Node { span: word.span.clone(), value: Value::Float(word.text.clone()) };
    Number::read(&node).map_err(|_| word.expected(&format!("{what}, with at most 9 digits after the point")))
}

/// `P`, or `K,p,H,r`.
fn loss(word: &Word) -> Result<Loss, Problem> {
    let shares: Vec<Share> =
        word.text.split(',').map(|item| share(&word.part(item))).collect::<Result<_, _>>()?;
    match shares.as_slice() {
        [share] => Ok(Loss::Independent(*share)),
        [loss_good, p, loss_bad, r] => {
            Ok(Loss::GilbertElliott { loss_good: *loss_good, p: *p, loss_bad: *loss_bad, r: *r })
        }
        _ => Err(word.expected("one probability, or four: K,p,H,r of the Gilbert-Elliott model")),
    }
}

//! `loss` and `ecn`.

use super::options::{Chance, LossOption, Netem};
use super::row::{Key, PERCENTAGE, Reader, Row};
use super::value::{chance_of, correlate, share, table};
use super::{units, words};
use crate::dialect::Word;
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::{Found, Problem, one_of};
use crate::units::Share;

pub(super) const LOSS: Row<Netem> = Row {
    words: &["loss", "drop"],
    read: |netem, word, reader| {
        netem.loss = Some(read(word, reader)?);
        Ok(())
    },
    show: |netem| {
        Some(match netem.loss? {
            // A loss of 0% is shown too, as `ecn` requires a loss.
            LossOption::Random(chance) => chance.show().unwrap_or_else(|| chance.share.to_string()),
            LossOption::State { p13, p31, p32, p23, p14 } => format!("state {p13} {p31} {p32} {p23} {p14}"),
            LossOption::GilbertElliott { p, r, loss_bad, loss_good } => {
                format!("gemodel {p} {r} {loss_bad} {loss_good}")
            }
        })
    },
    explain,
};

fn read(word: Word<'_>, reader: &mut Reader<'_, '_>) -> Result<LossOption, Problem> {
    if let Some(number) = reader.words.take_number(false) {
        return reader.chance_of(number).map(LossOption::Random);
    }
    const MODELS: [&str; 3] = ["random", "state", "gemodel"];
    let model = reader.words.expect(word, "a percentage or a model")?;
    match model.text {
        "random" => reader.chance(model).map(LossOption::Random),
        "state" => {
            reader.words.take_if("p13");
            let p13 = reader.expect(model, PERCENTAGE, units::percent)?;
            let [p31, p32, p23, p14] = labelled(["p31", "p32", "p23", "p14"], reader)?;
            Ok(LossOption::State {
                p13,
                p31: p31.unwrap_or(p13.complement()),
                p32: p32.unwrap_or(Share::ZERO),
                p23: p23.unwrap_or(Share::ZERO.complement()),
                p14: p14.unwrap_or(Share::ZERO),
            })
        }
        "gemodel" => {
            reader.words.take_if("p");
            let p = reader.expect(model, PERCENTAGE, units::percent)?;
            let [r, loss_bad, loss_good] = labelled(["r", "1-h", "1-k"], reader)?;
            Ok(LossOption::GilbertElliott {
                p,
                r: r.unwrap_or(p.complement()),
                loss_bad: loss_bad.unwrap_or(Share::ZERO.complement()),
                loss_good: loss_good.unwrap_or(Share::ZERO),
            })
        }
        _ => {
            let problem = model.problem(format!("{} is not a loss model", Found(model.text)));
            Err(problem
                .did_you_mean(model.text, MODELS)
                .help(format!("allowed: a percentage, or {}", one_of(&MODELS))))
        }
    }
}

/// Percentages, each optionally preceded by its label, up to the first missing one.
fn labelled<const N: usize>(
    labels: [&str; N],
    reader: &mut Reader<'_, '_>,
) -> Result<[Option<Share>; N], Problem> {
    let mut all = [None; N];
    for (slot, label) in all.iter_mut().zip(labels) {
        let number = match reader.words.peek().filter(|word| word.text == label) {
            Some(word) => {
                reader.words.take();
                reader.words.expect(word, PERCENTAGE)?
            }
            None => match reader.words.take_number(false) {
                Some(number) => number,
                None => break,
            },
        };
        *slot = Some(reader.value(number, units::percent)?);
    }
    Ok(all)
}

fn explain(netem: &Netem) -> Vec<String> {
    let Some(loss) = netem.loss else { return Vec::new() };
    let place = if netem.has_rate() { "before the queue" } else { "before anything else" };
    let where_lost = format!("It happens {place}.");
    let verb = if netem.ecn { "marked or lost" } else { "lost" };
    match loss {
        _ if loss.is_none() => vec!["No packet is lost.".into()],
        LossOption::Random(chance) => words::chance(chance, &format!("Packets that are {verb}"), &where_lost),
        LossOption::State { p13, p31, p32, p23, p14 } => vec![
            format!(
                "Packets are {verb} by a Markov chain of four states that makes a step at each packet: from good to a burst of losses {p13} and back {p31}; within the burst from lost to received {p32} and back {p23}; from good to a single loss {p14}."
            ),
            where_lost,
        ],
        LossOption::GilbertElliott { p, r, loss_bad, loss_good } => vec![
            format!(
                "Packets are {verb} by Gilbert and Elliott's model, in two states: from good to bad {p}, from bad to good {r} at each packet. In the bad state {loss_bad} of the packets are {verb}, in the good one {loss_good}."
            ),
            where_lost,
        ],
    }
}

pub(super) const ECN: Row<Netem> = Row {
    words: &["ecn"],
    read: |netem, _, _| {
        netem.ecn = true;
        Ok(())
    },
    show: |netem| netem.ecn.then(String::new),
    explain: |_| {
        vec![
            "A packet that `loss` would lose is marked (CE) instead, if it is ECN-capable; others are lost."
                .into(),
        ]
    },
};

pub(super) const LOSS_KEY: Key = Key {
    name: "loss",
    plain: "\"0%\"",
    write: |netem| {
        let loss = netem.loss.filter(|loss| !loss.is_none());
        Ok(loss.map(|loss| table([("ingress", model(loss, netem.ecn))])))
    },
    read: |reading, node| {
        let model = match &node.value {
            Value::Table(table) => match (table.get("ingress"), table.get("wire"), table.get("with-delay")) {
                (Some(model), None, None) | (None, Some(model), None) => model,
                (None, None, None) => node,
                _ => return None,
            },
            _ => node,
        };
        let Value::Table(table) = &model.value else {
            reading.netem.loss = Some(LossOption::Random(chance_of(model)?));
            return Some(());
        };
        reading.netem.ecn = table.get("ecn").is_some_and(|node| node.boolean() == Ok(true));
        let of = |inner: &Table, key: &str, default: Share| inner.get(key).map_or(Some(default), share);
        reading.netem.loss = Some(if let Some(inner) = table.get("gilbert-elliott") {
            let inner = inner.table("").ok()?;
            LossOption::GilbertElliott {
                p: share(inner.get("p")?)?,
                r: share(inner.get("r")?)?,
                loss_bad: of(inner, "loss-bad", Share::ZERO.complement())?,
                loss_good: of(inner, "loss-good", Share::ZERO)?,
            }
        } else if let Some(inner) = table.get("markov") {
            let inner = inner.table("").ok()?;
            LossOption::State {
                p13: share(inner.get("p13")?)?,
                p31: share(inner.get("p31")?)?,
                p32: of(inner, "p32", Share::ZERO)?,
                p23: of(inner, "p23", Share::ZERO.complement())?,
                p14: of(inner, "p14", Share::ZERO)?,
            }
        } else {
            LossOption::Random(chance_of(model)?)
        });
        Some(())
    },
};

fn model(loss: LossOption, ecn: bool) -> Value {
    let shares = |entries: &[(&str, Share)]| {
        let mut table = Table::default();
        entries.iter().for_each(|(key, share)| table.put(key, text(share)));
        Value::Table(table)
    };
    let mut model = Table::default();
    match loss {
        LossOption::Random(Chance { share, correlation }) if correlation.is_zero() && !ecn => {
            return text(share);
        }
        LossOption::Random(Chance { share, correlation }) => {
            model.put("rate", text(share));
            correlate(&mut model, correlation);
        }
        LossOption::State { p13, p31, p32, p23, p14 } => {
            let all = [("p13", p13), ("p31", p31), ("p32", p32), ("p23", p23), ("p14", p14)];
            model.put("markov", shares(&all));
        }
        LossOption::GilbertElliott { p, r, loss_bad, loss_good } => {
            let all = [("p", p), ("r", r), ("loss-bad", loss_bad), ("loss-good", loss_good)];
            model.put("gilbert-elliott", shares(&all));
        }
    }
    if ecn {
        model.put("ecn", Value::Boolean(true));
    }
    Value::Table(model)
}

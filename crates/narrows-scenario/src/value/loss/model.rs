//! Models of loss: `"1%"`, `{ rate, correlation }`, `{ gilbert-elliott = { … } }`, `{ markov = { … } }`,
//! `{ conditional = [ … ] }`, `{ pattern = { file } }`; beside each `ecn = true`.

use narrows_core::Loss as Model;
use narrows_core::model::selector::{
    Conditional, FourState, GilbertElliott, Selector, SelectorError, Transitions,
};

use crate::node::{Node, Table, Value};
use crate::pattern::About;
use crate::problem::{Problem, one_of};
use crate::units::Share;
use crate::value::chance::Chance;
use crate::value::condition::Surroundings;
use crate::value::inline::Inline;
use crate::value::pattern::PatternUse;

/// What loses packets in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct LossModel {
    /// Which packets.
    pub losses: Losses,
    /// Whether packets that can be marked are marked instead.
    pub ecn: bool,
}

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Losses {
    /// Each with the same probability, perhaps depending on the one before.
    Chance(Chance),
    /// Two states, good and bad.
    GilbertElliott {
        /// From good to bad, at each packet.
        p: Share,
        /// From bad to good.
        r: Share,
        /// The probability of loss in the bad state, 1 − h.
        loss_bad: Share,
        /// The probability of loss in the good state, 1 − k.
        loss_good: Share,
    },
    /// NetEm's four states.
    Markov {
        /// From reception within a gap to losses within a burst.
        p13: Share,
        /// Back.
        p31: Share,
        /// From losses within a burst to reception within a burst.
        p32: Share,
        /// Back.
        p23: Share,
        /// From reception within a gap to an isolated loss.
        p14: Share,
    },
    /// The probability after so many losses in a row; the last stays.
    Conditional(Vec<Share>),
    /// As written in a file.
    Pattern(PatternUse),
}

const MODELS: &[&str] = &["rate", "gilbert-elliott", "markov", "conditional", "pattern"];

/// The most probabilities of a conditional loss.
const MOST_CONDITIONAL: usize = 10_000;

impl LossModel {
    /// The keys of its table.
    pub(crate) const KEYS: &[&str] =
        &["rate", "correlation", "gilbert-elliott", "markov", "conditional", "pattern", "ecn"];

    /// Reads a model; nothing where nothing is lost.
    pub(super) fn read(node: &Node, around: Surroundings<'_>) -> Result<Option<Self>, Problem> {
        match &node.value {
            Value::Table(table) => {
                table.only(Self::KEYS)?;
                Self::read_table(node, table, around)
            }
            _ => {
                let chance = Chance::independent(Share::read(node)?);
                Ok((!chance.is_never()).then_some(Self { losses: Losses::Chance(chance), ecn: false }))
            }
        }
    }

    /// Reads the keys of a model in a table that has no others.
    pub(super) fn read_table(
        node: &Node,
        table: &Table,
        around: Surroundings<'_>,
    ) -> Result<Option<Self>, Problem> {
        let keys: Vec<_> = table.iter().filter(|(key, _)| MODELS.contains(&key.name.as_str())).collect();
        let losses = match keys[..] {
            [(key, value)] => {
                if let (Some(other), false) = (table.key("correlation"), key.name == "rate") {
                    return Err(Problem::new(format!("`correlation` does not go with `{}`", key.name))
                        .at(&other.span)
                        .help("it goes with `rate`; the other models say themselves how losses follow one another"));
                }
                Losses::read(&key.name, node, table, value, around)?
            }
            [] => {
                return Err(Problem::new("it is not said what is lost")
                    .at(&node.span)
                    .help(format!("write one of {}", one_of(MODELS))));
            }
            [(first, _), (second, _), ..] => {
                return Err(Problem::new("more than one model of loss")
                    .at(&second.span)
                    .also(&first.span, "the first")
                    .help("keep one; `ingress` and `wire` may have one each"));
            }
        };
        let ecn = table.optional("ecn", Node::boolean)?.unwrap_or(false);
        let never = matches!(losses, Losses::Chance(chance) if chance.is_never());
        Ok((!never).then_some(Self { losses, ecn }))
    }

    /// Losses that do not depend on one another.
    pub(crate) fn independent(&self) -> Option<Chance> {
        match self.losses {
            Losses::Chance(chance) if chance.correlation.is_zero() => Some(chance),
            _ => None,
        }
    }

    /// The engine's.
    pub(crate) fn build(&self) -> Option<Model> {
        Some(Model { selector: self.losses.build()?, mark: self.ecn })
    }

    /// The share of packets that is lost in the long run, or marked.
    pub fn mean(&self) -> f64 {
        self.losses.build().map_or(0.0, |selector| selector.mean())
    }

    /// How many packets are lost in a row on average, where that has a closed form; while losses go on, other packets
    /// are not counted.
    pub fn mean_burst(&self) -> Option<f64> {
        self.losses.build()?.mean_burst()
    }

    pub(crate) fn text(&self) -> String {
        if let (Losses::Chance(chance), false) = (&self.losses, self.ecn)
            && chance.correlation.is_zero()
        {
            return chance.text();
        }
        self.table_text()
    }

    pub(super) fn table_text(&self) -> String {
        let mut table = Inline::default();
        self.losses.write(&mut table);
        table.plain("ecn", self.ecn.then_some(true));
        table.finish()
    }
}

impl Losses {
    /// Reads the model under the key `name` of `table`.
    fn read(
        name: &str,
        node: &Node,
        table: &Table,
        value: &Node,
        around: Surroundings<'_>,
    ) -> Result<Self, Problem> {
        let inside = |problem: Problem| problem.inside(name);
        match name {
            "rate" => Chance::read_table(node, table).map(Self::Chance),
            "gilbert-elliott" => gilbert_elliott(value).map_err(inside),
            "markov" => markov(value).map_err(inside),
            "conditional" => conditional(value).map_err(inside),
            _ => PatternUse::read(value, About::Loss, around).map(Self::Pattern).map_err(inside),
        }
    }

    /// The engine's, if anything is lost.
    fn build(&self) -> Option<Box<dyn Selector>> {
        const CHECKED: &str = "it was made when it was read";
        Some(match self {
            Self::Chance(chance) => return chance.build(),
            Self::GilbertElliott { p, r, loss_bad, loss_good } => {
                let [p, r, bad, good] = [p, r, loss_bad, loss_good].map(|share| share.probability());
                Box::new(GilbertElliott::new(p, r, bad, good))
            }
            Self::Markov { p13, p31, p32, p23, p14 } => {
                Box::new(four_states([*p13, *p31, *p32, *p23, *p14]).expect(CHECKED))
            }
            Self::Conditional(after) => Box::new(after_losses(after).expect(CHECKED)),
            Self::Pattern(pattern) => pattern.selector(),
        })
    }

    fn write(&self, table: &mut Inline) {
        match self {
            Self::Chance(chance) => chance.write(table),
            Self::GilbertElliott { p, r, loss_bad, loss_good } => {
                let mut inner = Inline::default();
                inner.quoted("p", Some(p));
                inner.quoted("r", Some(r));
                inner.quoted("loss-bad", (*loss_bad != Share::ALWAYS).then_some(loss_bad));
                inner.quoted("loss-good", (!loss_good.is_zero()).then_some(loss_good));
                table.plain("gilbert-elliott", Some(inner.finish()));
            }
            Self::Markov { p13, p31, p32, p23, p14 } => {
                let mut inner = Inline::default();
                for (key, share) in MARKOV.iter().zip([p13, p31, p32, p23, p14]) {
                    inner.quoted(key, Some(share));
                }
                table.plain("markov", Some(inner.finish()));
            }
            Self::Conditional(after) => {
                let after: Vec<String> = after.iter().map(|share| format!("\"{share}\"")).collect();
                table.plain("conditional", Some(format!("[{}]", after.join(", "))));
            }
            Self::Pattern(pattern) => table.plain("pattern", Some(pattern.text())),
        }
    }
}

/// For people: `1%`, `Gilbert-Elliott, p 1%, r 30%`.
impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chance(chance) => chance.fmt(f),
            Self::GilbertElliott { p, r, loss_bad, loss_good } => {
                write!(f, "Gilbert-Elliott, p {p}, r {r}")?;
                if *loss_bad != Share::ALWAYS || !loss_good.is_zero() {
                    write!(f, ", {loss_bad} lost while bad, {loss_good} while good")?;
                }
                Ok(())
            }
            Self::Markov { p13, p31, p32, p23, p14 } => {
                write!(f, "4 states, p13 {p13}, p31 {p31}, p32 {p32}, p23 {p23}, p14 {p14}")
            }
            Self::Conditional(after) => {
                let after: Vec<String> = after.iter().take(4).map(Share::to_string).collect();
                write!(f, "{} after 0, 1, … losses in a row", after.join(", "))
            }
            Self::Pattern(pattern) => write!(f, "{pattern}"),
        }
    }
}

const MARKOV: [&str; 5] = ["p13", "p31", "p32", "p23", "p14"];

fn gilbert_elliott(node: &Node) -> Result<Losses, Problem> {
    const HELP: &str = "write it like gilbert-elliott = { p = \"1%\", r = \"30%\" }";
    let table = node.table("a table").map_err(|p| p.help(HELP))?;
    table.only(&["p", "r", "loss-bad", "loss-good"])?;
    let required = |key| match table.optional(key, Share::read_of_several)? {
        Some(share) => Ok(share),
        None => Err(Problem::new(format!("`{key}` is missing")).at(&node.span).help(HELP)),
    };
    let optional = |key, default| {
        table.optional(key, Share::read_of_several).map(|share: Option<Share>| share.unwrap_or(default))
    };
    let (p, r) = (required("p")?, required("r")?);
    let (loss_bad, loss_good) = (optional("loss-bad", Share::ALWAYS)?, optional("loss-good", Share::ZERO)?);
    Ok(Losses::GilbertElliott { p, r, loss_bad, loss_good })
}

fn markov(node: &Node) -> Result<Losses, Problem> {
    const HELP: &str = "write it like markov = { p13 = \"1%\", p31 = \"30%\", p32 = \"10%\", p23 = \"40%\", p14 = \"0.1%\" }";
    let table = node.table("a table").map_err(|p| p.help(HELP))?;
    table.only(&MARKOV)?;
    let mut shares = [Share::ZERO; 5];
    for (share, key) in shares.iter_mut().zip(MARKOV) {
        *share = table.optional(key, Share::read_of_several)?.unwrap_or_default();
    }
    for key in ["p13", "p31"] {
        if table.get(key).is_none() {
            return Err(Problem::new(format!("`{key}` is missing")).at(&node.span).help(HELP));
        }
    }
    four_states(shares).map_err(|error| Problem::new(error.to_string()).at(&node.span).help(HELP))?;
    let [p13, p31, p32, p23, p14] = shares;
    Ok(Losses::Markov { p13, p31, p32, p23, p14 })
}

fn conditional(node: &Node) -> Result<Losses, Problem> {
    const ALLOWED: &str =
        "a list: the probability of loss after 0, 1, 2, … losses in a row, such as [\"1%\", \"20%\"]";
    let items = node.list(ALLOWED)?;
    if items.is_empty() || items.len() > MOST_CONDITIONAL {
        return Err(node.expected(&format!("{ALLOWED}, of 1 to {MOST_CONDITIONAL}")));
    }
    let after: Vec<Share> = items.iter().map(Share::read_of_several).collect::<Result<_, _>>()?;
    after_losses(&after).map_err(|error| Problem::new(error.to_string()).at(&node.span))?;
    Ok(Losses::Conditional(after))
}

/// The engine's chain.
fn four_states([p13, p31, p32, p23, p14]: [Share; 5]) -> Result<FourState, SelectorError> {
    FourState::new(Transitions {
        p13: p13.probability(),
        p31: p31.probability(),
        p32: p32.probability(),
        p23: p23.probability(),
        p14: p14.probability(),
    })
}

/// The engine's losses after losses.
fn after_losses(after: &[Share]) -> Result<Conditional, SelectorError> {
    Conditional::new(after.iter().map(|share| share.probability()).collect::<Vec<_>>())
}

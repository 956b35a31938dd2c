//! Loss models: `"1%"`, `{ rate, correlation }`, `{ gilbert-elliott = { … } }`, `{ markov = { … } }`, `{
//! conditional = [ … ] }`, `{ pattern = { file } }`; `ecn = true` may be added to each.

use std::fmt;
use std::ops::Range;

use narrows_core::Loss as Model;
use narrows_core::model::selector::{Conditional, FourState, SelectorError, Transitions};
use narrows_core::model::selector::{GilbertElliott as TwoState, Selector};

use crate::keys::compound::{Group, List, Short};
use crate::keys::kind::{Boolean, ByHand, Like};
use crate::keys::quantity::{ONE_OF_PERCENTAGES, Percentage};
use crate::keys::{Choosing, Form, Keyed, Row, alternatives, row, schema};
use crate::node::{Node, Table};
use crate::pattern::About;
use crate::problem::Problem;
use crate::units::Share;
use crate::value::chance::{CORRELATION, Chance};
use crate::value::pattern::{PatternOf, PatternUse};

/// A loss model for one place.
#[derive(Clone, Debug, PartialEq)]
pub struct LossModel {
    /// Selects the packets.
    pub losses: Losses,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

/// A way to select packets for loss.
trait Loses: fmt::Display {
    /// The engine's selector; `None` if nothing is lost.
    fn selector(&self) -> Option<Box<dyn Selector>>;
}

alternatives! {
    /// Selects the packets that are lost.
    enum Losses: dyn Loses, the losses of LossModel {
        Chance(Chance) = "rate" as RATE, "Each with the same probability, perhaps depending on the one before.";
        GilbertElliott(GilbertElliott) = "gilbert-elliott" as GilbertElliott::FORM, "Two states, good and bad.";
        Markov(Markov) = "markov" as Markov::FORM, "NetEm's four states.";
        Conditional(After) = "conditional" as AFTER, "The probability after 0, 1, 2, … losses in a row; the last stays.";
        Pattern(PatternUse) = "pattern" as PatternOf(About::Loss), "By a pattern of losses.";
    }
}

/// The loss probability; its correlation is a key of its own.
const RATE: ByHand<Chance> = ByHand {
    words: || "probability".into(),
    schema: schema::share,
    read: |node, around| Percentage.read(node, around).map(Chance::independent),
    write: |chance| Percentage.write(&chance.rate),
};

impl Default for LossModel {
    fn default() -> Self {
        Self { losses: Losses::Chance(Chance::default()), ecn: false }
    }
}

impl Keyed for LossModel {
    const CHOICES: &'static [Row<Self>] = Losses::ROWS;
    const CHOOSING: Choosing = Choosing {
        none: "no loss model is given",
        several: "more than one model of loss",
        help: "keep one; `ingress` and `wire` may have one each",
    };
    const ROWS: &'static [Row<Self>] = &[
        Row::new(
            "correlation",
            &CORRELATION,
            "Rank correlation between consecutive packets; with `rate`.",
            |of: &Self| match &of.losses {
                Losses::Chance(chance) => CORRELATION.write(&chance.correlation),
                _ => None,
            },
            |of: &mut Self, node, around| {
                let read = CORRELATION.read(node, around)?;
                if let Losses::Chance(chance) = &mut of.losses {
                    chance.correlation = read;
                }
                Ok(())
            },
        ),
        row!("ecn", ecn, Boolean, "Mark ECN-capable packets instead of dropping them."),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        let Some(key) = table.key("correlation").filter(|_| table.get("rate").is_none()) else {
            return Ok(());
        };
        let model = Self::CHOICES.iter().map(crate::keys::Key::name).find(|name| table.get(name).is_some());
        Err(Problem::new(format!("`correlation` cannot be used with `{}`", model.unwrap_or_default()))
            .at(&key.span)
            .help("it goes with `rate`; the other models say themselves how losses follow one another"))
    }
}

const SHORT: Short<LossModel> = Short {
    key: "rate",
    words: "probability",
    table: Group::new("LossTable", "One model of loss.", "{ gilbert-elliott = { p = \"1%\", r = \"30%\" } }"),
};

/// A loss model; `None` if nothing is lost.
pub(super) const MODEL: Like<Short<LossModel>, Option<LossModel>> = Like {
    kind: SHORT,
    read: |node, around| SHORT.read(node, around).map(LossModel::unless_never),
    write: |model| SHORT.write(model.as_ref()?),
};

impl LossModel {
    /// `None` if nothing is lost.
    pub(super) fn unless_never(self) -> Option<Self> {
        let never = matches!(self.losses, Losses::Chance(chance) if chance.is_never());
        (!never).then_some(self)
    }

    /// As written in a file.
    pub(crate) fn text(&self) -> String {
        SHORT.write(self).map(|value| Node::new(value).toml()).unwrap_or_default()
    }

    /// The probability of uncorrelated random loss; `None` for other models.
    pub(crate) fn independent(&self) -> Option<Chance> {
        match self.losses {
            Losses::Chance(chance) if chance.correlation.is_zero() => Some(chance),
            _ => None,
        }
    }

    /// The engine's loss model.
    pub(crate) fn build(&self) -> Option<Model> {
        Some(Model { selector: self.losses.common().selector()?, mark: self.ecn })
    }

    /// Long-run share of packets that are lost or marked.
    pub fn mean(&self) -> f64 {
        self.losses.common().selector().map_or(0.0, |selector| selector.mean())
    }

    /// Mean number of consecutive losses, if it has a closed form; packets that do not arrive while losses
    /// continue are not counted.
    pub fn mean_burst(&self) -> Option<f64> {
        self.losses.common().selector()?.mean_burst()
    }
}

/// For display: `1%`, `Gilbert-Elliott, p 1%, r 30%`.
impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.common().fmt(f)
    }
}

impl Loses for Chance {
    fn selector(&self) -> Option<Box<dyn Selector>> {
        self.build()
    }
}

impl Loses for PatternUse {
    fn selector(&self) -> Option<Box<dyn Selector>> {
        Some(Self::selector(self))
    }
}

/// Gilbert-Elliott model with a good and a bad state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Transition probability from good to bad, per packet.
    pub p: Share,
    /// Transition probability from bad to good, per packet.
    pub r: Share,
    /// Loss probability in the bad state, 1 − h.
    pub loss_bad: Share,
    /// Loss probability in the good state, 1 − k.
    pub loss_good: Share,
}

impl Default for GilbertElliott {
    /// Has no transition probabilities, which are required.
    fn default() -> Self {
        Self { p: Share::ZERO, r: Share::ZERO, loss_bad: Share::ALWAYS, loss_good: Share::ZERO }
    }
}

impl GilbertElliott {
    const FORM: Group<Self> =
        Group::new("GilbertElliott", "Two states, good and bad.", "{ p = \"1%\", r = \"30%\" }");
}

impl Keyed for GilbertElliott {
    const ROWS: &'static [Row<Self>] = &[
        row!("p", p, ONE_OF_PERCENTAGES, "Transition probability from good to bad, per packet.").required(),
        row!("r", r, ONE_OF_PERCENTAGES, "Transition probability from bad to good.").required(),
        row!("loss-bad", loss_bad, ONE_OF_PERCENTAGES, "Loss probability in the bad state, 1 − h."),
        row!("loss-good", loss_good, ONE_OF_PERCENTAGES, "Loss probability in the good state, 1 − k."),
    ];
}

impl Loses for GilbertElliott {
    fn selector(&self) -> Option<Box<dyn Selector>> {
        let Self { p, r, loss_bad, loss_good } = self;
        let [p, r, bad, good] = [p, r, loss_bad, loss_good].map(|share| share.probability());
        Some(Box::new(TwoState::new(p, r, bad, good)))
    }
}

impl fmt::Display for GilbertElliott {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p, r, loss_bad, loss_good } = self;
        write!(f, "Gilbert-Elliott, p {p}, r {r}")?;
        if *loss_bad != Share::ALWAYS || !loss_good.is_zero() {
            write!(f, ", {loss_bad} lost while bad, {loss_good} while good")?;
        }
        Ok(())
    }
}

/// NetEm's four-state Markov model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Markov {
    /// From reception in a gap to losses in a burst.
    pub p13: Share,
    /// From losses in a burst to reception in a gap.
    pub p31: Share,
    /// From losses in a burst to reception in a burst.
    pub p32: Share,
    /// From reception in a burst to losses in a burst.
    pub p23: Share,
    /// From reception in a gap to an isolated loss.
    pub p14: Share,
}

impl Markov {
    const EXAMPLE: &str = "{ p13 = \"1%\", p31 = \"30%\", p32 = \"10%\", p23 = \"40%\", p14 = \"0.1%\" }";
    const FORM: Group<Self> = Group::new(
        "Markov",
        "Probabilities of going from one state to another; 0 if they are not given.",
        Self::EXAMPLE,
    );

    /// The engine's Markov chain.
    fn chain(&self) -> Result<FourState, SelectorError> {
        FourState::new(Transitions {
            p13: self.p13.probability(),
            p31: self.p31.probability(),
            p32: self.p32.probability(),
            p23: self.p23.probability(),
            p14: self.p14.probability(),
        })
    }
}

impl Keyed for Markov {
    const ROWS: &'static [Row<Self>] = &[
        row!("p13", p13, ONE_OF_PERCENTAGES, "Transition from gap to burst.").required(),
        row!("p31", p31, ONE_OF_PERCENTAGES, "Transition from a loss in a burst back to the gap.").required(),
        row!("p32", p32, ONE_OF_PERCENTAGES, "Transition from a loss in a burst to a packet received in it."),
        row!("p23", p23, ONE_OF_PERCENTAGES, "Transition from a packet received in a burst back to a loss."),
        row!("p14", p14, ONE_OF_PERCENTAGES, "Transition from gap to an isolated loss."),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let help = format!("write it like markov = {}", Self::EXAMPLE);
        let chain = self.chain().map(|_| ());
        chain.map_err(|error| Problem::new(error.to_string()).at(place).help(help))
    }
}

impl Loses for Markov {
    fn selector(&self) -> Option<Box<dyn Selector>> {
        Some(Box::new(self.chain().expect("it was made when it was read")))
    }
}

impl fmt::Display for Markov {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { p13, p31, p32, p23, p14 } = self;
        write!(f, "4 states, p13 {p13}, p31 {p31}, p32 {p32}, p23 {p23}, p14 {p14}")
    }
}

/// Loss probability after 0, 1, 2, … consecutive losses; the last one applies to longer runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After(Vec<Share>);

const SHARES: List<ByHand<Share>> = List {
    what: "a list: the probability of loss after 0, 1, 2, … losses in a row, such as [\"1%\", \"20%\"]",
    most: 10_000,
    one: ONE_OF_PERCENTAGES,
};
const AFTER: Like<List<ByHand<Share>>, After> = Like {
    kind: SHARES,
    read: |node, around| {
        let after = After(SHARES.read(node, around)?);
        let made = after.model().map(|_| ());
        made.map_err(|error| Problem::new(error.to_string()).at(&node.span))?;
        Ok(after)
    },
    write: |after| SHARES.write(&after.0),
};

impl After {
    fn model(&self) -> Result<Conditional, SelectorError> {
        Conditional::new(self.0.iter().map(|share| share.probability()).collect::<Vec<_>>())
    }
}

impl Loses for After {
    fn selector(&self) -> Option<Box<dyn Selector>> {
        Some(Box::new(self.model().expect("it was made when it was read")))
    }
}

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after: Vec<String> = self.0.iter().take(4).map(Share::to_string).collect();
        write!(f, "{} after 0, 1, … losses in a row", after.join(", "))
    }
}

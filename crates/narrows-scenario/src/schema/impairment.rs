//! Losses, duplicates, flipped bits, reordering, traces.

#![expect(dead_code, reason = "the types are there for their schema alone")]

use schemars::JsonSchema;

use super::delay::PatternFile;
use super::from_rows::TraceFormat;
use super::{Rate, Share, Size, Time};

/// Packets that are lost by chance.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Loss {
    /// On the wire.
    Wire(Share),
    /// A model of losses on the wire, or one for each place.
    Parts(Box<LossParts>),
}

/// A model on the wire, or `ingress` and `wire`; `with-delay` beside either.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct LossParts {
    /// Before the queue.
    ingress: Option<LossModel>,
    /// After the transmitter.
    wire: Option<LossModel>,
    /// Over the delay that a packet drew: delays, rising, and the probability there; straight lines between them.
    #[schemars(length(min = 1, max = 1000), inner(length(min = 2, max = 2)))]
    with_delay: Option<Vec<Vec<DelayOrShare>>>,
    #[schemars(flatten)]
    model: Losses,
}

/// A part of a point: a delay, or a probability.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum DelayOrShare {
    /// A delay, or a probability in quotes.
    Text(String),
    /// A probability.
    Number(#[schemars(range(min = 0, max = 1))] f64),
}

/// What loses packets in one place.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum LossModel {
    /// Independently.
    Share(Share),
    /// By a model.
    Model(Box<LossTable>),
}

/// One model of loss.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct LossTable {
    #[schemars(flatten)]
    model: Losses,
}

/// One of `rate`, `gilbert-elliott`, `markov`, `conditional` and `pattern`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(super) struct Losses {
    /// The probability for each packet.
    rate: Option<Share>,
    /// The rank correlation of one packet and the next; with `rate`.
    correlation: Option<Share>,
    /// Two states, good and bad.
    gilbert_elliott: Option<GilbertElliott>,
    /// NetEm's four states.
    markov: Option<Markov>,
    /// The probability after 0, 1, 2, … losses in a row; the last stays.
    #[schemars(length(min = 1, max = 10_000))]
    conditional: Option<Vec<Share>>,
    /// By a pattern of losses.
    pattern: Option<PatternFile>,
    /// Whether packets that can be marked are marked instead.
    ecn: Option<bool>,
}

/// Two states, good and bad.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct GilbertElliott {
    /// From good to bad, at each packet.
    p: Share,
    /// From bad to good.
    r: Share,
    /// The probability of loss in the bad state, 1 − h; always if it is not given.
    loss_bad: Option<Share>,
    /// The probability of loss in the good state, 1 − k; never if it is not given.
    loss_good: Option<Share>,
}

/// Probabilities of going from one state to another; 0 if they are not given.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct Markov {
    /// From a gap into a burst.
    p13: Share,
    /// From a loss in a burst back into a gap.
    p31: Share,
    /// From a loss in a burst to a packet that gets through there.
    p32: Option<Share>,
    /// Back.
    p23: Option<Share>,
    /// From a gap to a single loss.
    p14: Option<Share>,
}

/// A probability, perhaps with a correlation.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Chance {
    /// Of each packet independently.
    Share(Share),
    /// With a correlation.
    Parts(ChanceParts),
}

/// A probability and a correlation.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct ChanceParts {
    /// The probability for each packet.
    rate: Share,
    /// The rank correlation of one packet and the next.
    correlation: Option<Share>,
}

/// Bits that are flipped on the wire.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Corrupt {
    /// One bit in this share of the packets.
    Share(Share),
    /// Otherwise.
    Parts(CorruptParts),
}

/// One of `rate`, `bit-errors` and `pattern`.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CorruptParts {
    /// The share of packets of which one bit is flipped.
    rate: Option<Share>,
    /// The rank correlation of one packet and the next; with `rate`.
    correlation: Option<Share>,
    /// The probability that a bit is flipped, 10% at most.
    bit_errors: Option<Share>,
    /// By a pattern of bit errors.
    pattern: Option<PatternFile>,
}

/// Packets that skip the delay.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Reorder {
    /// With this probability.
    Number(#[schemars(range(min = 0, max = 1))] f64),
    /// `1%`, `25% gap 5` or `none`.
    Text(
        #[schemars(regex(pattern = r"^ *(none|\+?[0-9_.]+([eE][+-]?[0-9]+)? *%?( gap [0-9]+)?) *$"))] String,
    ),
    /// Its parts.
    Parts(ReorderParts),
}

/// Of every `gap` packets the first `gap − 1` never skip the delay.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct ReorderParts {
    /// For each of the others, until one has.
    probability: Option<Share>,
    /// The same, as the other impairments call it.
    rate: Option<Share>,
    /// 1 if it is not given.
    gap: Option<u32>,
    /// The rank correlation of one candidate and the next.
    correlation: Option<Share>,
}

/// What a link follows over time.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Trace {
    /// A file, or `none`.
    File(String),
    /// A file, and how it is used.
    Parts(TraceParts),
}

/// A trace, and how it is used.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(super) struct TraceParts {
    /// The file, relative to this file's folder.
    file: String,
    /// How it is written; by its name and content if it is not given.
    format: Option<TraceFormat>,
    /// What comes after its end; that depends on the format if it is not given.
    then: Option<Then>,
    /// How far into the trace the link begins.
    start: Option<Time>,
}

/// What comes after the end of a trace.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub(super) enum Then {
    /// The trace from its beginning, again and again.
    Loop,
    /// Its last values stay.
    Hold,
    /// The link's own values hold again.
    End,
}

/// A policer, or `none`.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub(super) enum Policer {
    /// `none`.
    None(String),
    /// A bucket of tokens.
    Bucket(PolicerParts),
}

/// A policer: packets for which a bucket has no tokens are dropped, marked, or counted.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct PolicerParts {
    /// Tokens come at this rate.
    rate: Rate,
    /// How many bytes of them the bucket holds.
    burst: Size,
    /// The rate of a second bucket, which holds a packet.
    peakrate: Option<Rate>,
    /// The longest packet; 1500 bytes.
    mtu: Option<Size>,
    /// What the shortest packet counts; nothing.
    mpu: Option<Size>,
    /// What a packet counts; what it counts for the link.
    overhead: Option<super::Overhead>,
    /// What becomes of packets for which there are no tokens; they are dropped.
    exceed: Option<Exceed>,
}

/// What becomes of packets for which there are no tokens.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Exceed {
    /// They are dropped.
    Drop,
    /// They are marked with "congestion experienced" where they can be, and dropped where not.
    Mark,
    /// They pass, and are counted.
    Pass,
}

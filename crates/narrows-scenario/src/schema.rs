//! What the JSON Schema says of values that have no rows yet. The types say what a value may look like; the reading is
//! elsewhere.

#![expect(dead_code, reason = "the types are there for their schema alone")]

mod delay;
mod from_rows;
mod impairment;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::keys::schema::Definitions;

use delay::{Delay, Slots};
use impairment::{Chance, Corrupt, Loss, Policer, Reorder, Trace};

/// What the schema says of a `T`.
fn of<T: JsonSchema>(definitions: &mut Definitions) -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    if let Some(Value::Object(all)) = schema.remove("$defs") {
        definitions.extend(all);
    }
    schema.remove("$schema");
    schema.remove("title");
    schema.to_value()
}

/// What the schema says of `delay`.
pub(crate) fn delay(definitions: &mut Definitions) -> Value {
    of::<Delay>(definitions)
}

/// What the schema says of `overhead`.
pub(crate) fn overhead(definitions: &mut Definitions) -> Value {
    of::<Overhead>(definitions)
}

/// What the schema says of `loss`.
pub(crate) fn loss(definitions: &mut Definitions) -> Value {
    of::<Loss>(definitions)
}

/// What the schema says of `duplicate`.
pub(crate) fn chance(definitions: &mut Definitions) -> Value {
    of::<Chance>(definitions)
}

/// What the schema says of `corrupt`.
pub(crate) fn corrupt(definitions: &mut Definitions) -> Value {
    of::<Corrupt>(definitions)
}

/// What the schema says of `reorder`.
pub(crate) fn reorder(definitions: &mut Definitions) -> Value {
    of::<Reorder>(definitions)
}

/// What the schema says of `slots`.
pub(crate) fn slots(definitions: &mut Definitions) -> Value {
    of::<Slots>(definitions)
}

/// What the schema says of `trace`.
pub(crate) fn trace(definitions: &mut Definitions) -> Value {
    of::<Trace>(definitions)
}

/// What the schema says of `mtu`.
pub(crate) fn mtu(definitions: &mut Definitions) -> Value {
    of::<Mtu>(definitions)
}

/// What the schema says of `policer`.
pub(crate) fn policer(definitions: &mut Definitions) -> Value {
    of::<Policer>(definitions)
}

/// TOML has no null: what may be missing is just not required.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        let before = choices.len();
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        // What is left of a pair needs no choice.
        if let ([Value::Object(only)], true) = (&choices[..], before == 2) {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
}

/// A rate such as `1.5mbit`, `unlimited` or `down`. Units: bit, kbit, mbit, gbit, tbit, kibit, mibit, gibit, tibit.
#[derive(JsonSchema)]
struct Rate(
    #[schemars(regex(
        pattern = r"^ *(unlimited|down|\+?[0-9_.]+([eE][+-]?[0-9]+)? *([kKmMgGtT][iI]?)?[bB][iI][tT]) *$"
    ))]
    String,
);

/// A time such as `10ms`. Units: ns, us, ms, s, min, h.
#[derive(JsonSchema)]
struct Time(
    #[schemars(regex(pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *(ns|us|µs|μs|ms|s|min|h) *$"))] String,
);

/// A size such as `64kB`. Units: bytes, B, kB, MB, GB, KiB, MiB, GiB.
#[derive(JsonSchema)]
struct Size(
    #[schemars(regex(pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *(bytes?|B|[kMG]B|[KMG]iB) *$"))] String,
);

/// A probability such as `1%` or 0.01.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Share {
    /// In percent, or as a fraction.
    Text(#[schemars(regex(pattern = r"^ *\+?[0-9_.]+([eE][+-]?[0-9]+)? *%? *$"))] String),
    /// As a fraction.
    Number(#[schemars(range(min = 0, max = 1))] f64),
}

/// Whether packets may overtake one another.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum Order {
    /// A packet is held back until those before it have left.
    Keep,
    /// Packets leave when they are due.
    Allow,
}

/// What counts as the length of a packet on the wire.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Overhead {
    /// A usual one.
    Named(NamedOverhead),
    /// Its parts.
    Parts(OverheadParts),
}

/// A usual overhead.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum NamedOverhead {
    /// The IP packet alone.
    Ip,
    /// The frame without its check sequence.
    Frame,
    /// The frame with check sequence, preamble and gap.
    Ethernet,
    /// AAL5 in cells of 48 bytes that take 53.
    Atm,
    /// What 802.11 adds: LLC and SNAP, header and check sequence.
    Wlan,
}

/// In this order: the bytes of the base, plus `bytes`, at least `minimum`, in whole cells.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct OverheadParts {
    /// `ip`, or `frame` with the link header.
    base: Option<OverheadBase>,
    /// More, or fewer, bytes for each packet.
    bytes: Option<i32>,
    /// The least bytes that a packet takes.
    minimum: Option<u32>,
    /// The cells that it is cut into.
    cells: Option<Cells>,
}

/// What is counted.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum OverheadBase {
    /// The IP packet.
    Ip,
    /// The IP packet and its link header.
    Frame,
}

/// Cells that a packet is cut into.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Cells {
    /// 48 bytes in 53.
    Named(NamedCells),
    /// Of any size.
    Parts(CellParts),
}

/// A usual kind of cells.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum NamedCells {
    /// 48 bytes in 53, without AAL5's trailer, for which `bytes = 8` stands.
    Atm,
}

/// A kind of cells.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CellParts {
    /// Bytes of payload.
    payload: u32,
    /// Bytes on the wire.
    size: u32,
}

/// The longest packet, in bytes of the IP packet.
#[derive(JsonSchema)]
#[schemars(untagged)]
enum Mtu {
    /// Longer ones are cut or answered, as routers do.
    Bytes(#[schemars(range(min = 68, max = 65_535))] u32),
    /// `none`, or the number.
    Text(#[schemars(regex(pattern = r"^ *(none|[0-9]+) *$"))] String),
    /// With what becomes of longer ones.
    Parts(MtuParts),
}

/// The longest packet and what becomes of longer ones.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case", deny_unknown_fields)]
struct MtuParts {
    /// Bytes of the IP packet.
    #[schemars(range(min = 68, max = 65_535))]
    bytes: u32,
    /// `fragment` if it is not given.
    policy: Option<MtuPolicy>,
}

/// What becomes of a packet that is too long.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
enum MtuPolicy {
    /// IPv4 that may be cut is; the sender of any other is told.
    Fragment,
    /// The sender is told.
    Answer,
    /// It vanishes.
    BlackHole,
}

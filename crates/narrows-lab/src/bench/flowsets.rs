//! The harness's syntax: numbers with suffixes, flow sets, several loads in one line.

use narrows_core::sched::Weight;

/// The default packet length of a flow set, in bytes.
const LENGTH: u32 = 1000;

/// The maximum number of flow sets in a load.
const MOST_FLOWSETS: usize = 1 << 16;

/// The mix of weights in the published tables.
const MIX: &str = "1::32k,2::4k,4::2k,8::1k,128::16,1k::1";

/// Identical flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flowset {
    /// The weight of each.
    pub weight: Weight,
    /// The length of their packets, in bytes.
    pub length: u32,
    /// The number of flows.
    pub flows: u32,
}

/// The flows of one load: a column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its text on the command line.
    pub name: String,
    /// Its flows, by flow set. At least one.
    pub flowsets: Vec<Flowset>,
}

impl Column {
    /// The number of flows.
    pub fn flows(&self) -> u64 {
        self.flowsets.iter().map(|set| u64::from(set.flows)).sum()
    }
}

/// A number of packets, absolute or per flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    number: u64,
    per_flow: bool,
}

impl Quantity {
    /// The number of packets, given the number of flows.
    pub fn packets(self, flows: u64) -> u64 {
        if self.per_flow { self.number.saturating_mul(flows) } else { self.number }
    }

    /// The number of packets, if it does not depend on the number of flows.
    pub const fn fixed(self) -> Option<u64> {
        if self.per_flow { None } else { Some(self.number) }
    }
}

/// An error in a word of the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordError {
    /// Not a number.
    #[error(
        "`{0}` is not a number; numbers look like 20, 4k (4·1024), 20m (20·1024·1024), 4K (4000), 20M (20,000,000)"
    )]
    Number(String),
    /// Zero or too large.
    #[error("the number in `{0}` must be at least 1 and fit in 32 bits")]
    Range(String),
    /// A flow set with too many parts.
    #[error(
        "`{0}` is not a flow set; one is weight:maxlen:flows, as in 8:1500:64 or, with packets of 1000 bytes, 8::64"
    )]
    Flowset(String),
    /// A range of weights or lengths that is descending or not a range.
    #[error(
        "`{0}` is not a range; one is min-max-steps, as in 1-8-4 for 1, 3, 5, 8; a load has {MOST_FLOWSETS} flow sets at most"
    )]
    Steps(String),
    /// Plain counts mixed with flow sets.
    #[error(
        "`{0}` has plain counts beside flow sets; put a semicolon or a space between loads, as in '512; 1::512,8::64'"
    )]
    Mixed(String),
    /// No flows.
    #[error("no flows: name at least one load, as in 512 or 1::512,8::64")]
    Nothing,
}

/// Parses a number of packets: digits, then `k` (2¹⁰), `m` (2²⁰), `K` (10³) or `M` (10⁶), then `n` for "times the
/// number of flows".
///
/// # Errors
/// If it has another form.
pub fn quantity(text: &str) -> Result<Quantity, WordError> {
    let (digits, per_flow) = match text.strip_suffix('n') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    Ok(Quantity { number: number(digits).ok_or_else(|| WordError::Number(text.into()))?, per_flow })
}

/// Parses loads, separated by semicolons or white space. Each is a list of flow sets (`1::512,8::64`), or several
/// counts of flows with weight 1 (`1,8,64`), each a separate load; `mix` among them is the mix of the published
/// tables.
///
/// # Errors
/// If one has neither form.
pub fn columns(text: &str) -> Result<Vec<Column>, WordError> {
    let mut columns = Vec::new();
    for load in text.split(|c: char| c == ';' || c.is_whitespace()).filter(|load| !load.is_empty()) {
        let items: Vec<&str> = load.split(',').collect();
        match items.iter().filter(|item| item.contains(':')).count() {
            0 => {
                for item in items {
                    columns.push(count(item)?);
                }
            }
            all if all == items.len() => {
                columns.push(Column { name: load.into(), flowsets: flowsets(load)? })
            }
            _ => return Err(WordError::Mixed(load.into())),
        }
    }
    if columns.is_empty() { Err(WordError::Nothing) } else { Ok(columns) }
}

/// This many flows of weight 1, or the mix.
fn count(item: &str) -> Result<Column, WordError> {
    let flowsets = match item {
        "mix" => flowsets(MIX)?,
        _ => vec![Flowset { weight: Weight::ONE, length: LENGTH, flows: positive(item)? }],
    };
    Ok(Column { name: item.into(), flowsets })
}

fn flowsets(text: &str) -> Result<Vec<Flowset>, WordError> {
    let mut all = Vec::new();
    for item in text.split(',') {
        let parts: Vec<&str> = item.split(':').collect();
        if parts.len() > 3 {
            return Err(WordError::Flowset(item.into()));
        }
        let part = |at: usize| parts.get(at).copied().unwrap_or("");
        let flows = if part(2).is_empty() { 1 } else { positive(part(2))? };
        let lengths = steps(part(1), LENGTH)?;
        for weight in steps(part(0), 1)? {
            let weight = Weight::new(weight).ok_or_else(|| WordError::Range(item.into()))?;
            all.extend(lengths.iter().map(|&length| Flowset { weight, length, flows }));
            if all.len() > MOST_FLOWSETS {
                return Err(WordError::Steps(item.into()));
            }
        }
    }
    Ok(all)
}

/// A number, or `min-max-steps`: that many numbers, evenly spaced and rounded down; two if `steps` is omitted.
fn steps(text: &str, default: u32) -> Result<Vec<u32>, WordError> {
    if text.is_empty() {
        return Ok(vec![default]);
    }
    let numbers = text.split('-').map(positive).collect::<Result<Vec<u32>, _>>()?;
    let (least, greatest, steps) = match numbers[..] {
        [one] => return Ok(vec![one]),
        [least, greatest] => (least, greatest, 2),
        [least, greatest, steps] => (least, greatest, steps),
        _ => return Err(WordError::Steps(text.into())),
    };
    if greatest < least || steps < 2 || steps as usize > MOST_FLOWSETS {
        return Err(WordError::Steps(text.into()));
    }
    let span = u64::from(greatest - least);
    // At most `span`, so the sum fits in 32 bits.
    let step = |nth: u32| least + (span * u64::from(nth) / u64::from(steps - 1)) as u32;
    Ok((0..steps).map(step).collect())
}

fn positive(text: &str) -> Result<u32, WordError> {
    let number = number(text).ok_or_else(|| WordError::Number(text.into()))?;
    u32::try_from(number).ok().filter(|&number| number > 0).ok_or_else(|| WordError::Range(text.into()))
}

fn number(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'm' => (&text[..text.len() - 1], 1 << 20),
        b'K' => (&text[..text.len() - 1], 1_000),
        b'M' => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    // `parse` would accept a sign.
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse::<u64>().ok().filter(|_| plain)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(weight: u32, length: u32, flows: u32) -> Flowset {
        Flowset { weight: Weight::new(weight).unwrap(), length, flows }
    }

    #[test]
    fn the_mix_is_that_of_the_published_table() {
        let mix = &columns("mix").unwrap()[0];
        assert_eq!(mix.flows(), 32_768 + 4_096 + 2_048 + 1_024 + 16 + 1);
        let weights: Vec<u32> = mix.flowsets.iter().map(|set| set.weight.get()).collect();
        assert_eq!(weights, [1, 2, 4, 8, 128, 1024]);
        assert!(mix.flowsets.iter().all(|set| set.length == 1000));
        assert_eq!(mix.flowsets, columns(MIX).unwrap()[0].flowsets);
    }

    #[test]
    fn counts_are_loads_of_their_own_and_flow_sets_are_one_load() {
        let names =
            |text: &str| columns(text).unwrap().into_iter().map(|column| column.name).collect::<Vec<_>>();
        assert_eq!(names("1,8,4k,mix"), ["1", "8", "4k", "mix"]);
        assert_eq!(names("1::512,8::64; 32k 8:1500:2"), ["1::512,8::64", "32k", "8:1500:2"]);
        assert_eq!(columns("8:1500:2").unwrap()[0].flowsets, [set(8, 1500, 2)]);
        assert_eq!(columns("::").unwrap()[0].flowsets, [set(1, 1000, 1)]);
        assert_eq!(columns("4k").unwrap()[0].flowsets, [set(1, 1000, 4096)]);
    }

    #[test]
    fn ranges_make_a_flow_set_for_each_step() {
        let expected = [1, 3, 5, 8].map(|weight| set(weight, 1000, 2));
        assert_eq!(columns("1-8-4::2").unwrap()[0].flowsets, expected);
        let expected = [set(1, 64, 1), set(1, 1500, 1), set(2, 64, 1), set(2, 1500, 1)];
        assert_eq!(columns("1-2:64-1500:1").unwrap()[0].flowsets, expected);
        assert_eq!(columns("8-1:1:1"), Err(WordError::Steps("8-1".into())));
        assert_eq!(columns("1-8-1:1:1"), Err(WordError::Steps("1-8-1".into())));
        let many = "1-60000-60000:1-60000-60000:1";
        assert_eq!(columns(many), Err(WordError::Steps(many.into())));
    }

    #[test]
    fn suffixes_are_the_references() {
        for (text, packets) in
            [("20", 20), ("4k", 4096), ("20m", 20 << 20), ("4K", 4000), ("2M", 2_000_000), ("4n", 40)]
        {
            assert_eq!(quantity(text).unwrap().packets(10), packets, "{text}");
        }
        for text in
            ["", "n", "k", "-1", "+1", "1.5", "4g", "4 n", "99999999999999999999", "18446744073709551615k"]
        {
            assert_eq!(quantity(text), Err(WordError::Number(text.into())), "{text}");
        }
    }

    #[test]
    fn what_is_no_load_is_refused_with_the_place() {
        assert_eq!(columns("0"), Err(WordError::Range("0".into())));
        assert_eq!(columns("1::0"), Err(WordError::Range("0".into())));
        assert_eq!(columns("0::1"), Err(WordError::Range("0".into())));
        assert_eq!(columns("4g"), Err(WordError::Number("4g".into())));
        assert_eq!(columns("1::2:3"), Err(WordError::Flowset("1::2:3".into())));
        assert_eq!(columns("1::512,8"), Err(WordError::Mixed("1::512,8".into())));
        assert_eq!(columns(" ; "), Err(WordError::Nothing));
        assert_eq!(columns("4m::4096m"), Err(WordError::Range("4096m".into())));
    }
}

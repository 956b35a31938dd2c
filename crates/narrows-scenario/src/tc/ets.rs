//! `ets bands 4 strict 1 quanta 4500 3000 1514 priomap 3 3 1`: enhanced transmission selection (IEEE 802.1Qaz).

use super::bands::Bands;
use super::unit::{FRAME, missing, number, unknown};
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::Problem;

/// Enhanced transmission selection (ETS).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ets {
    pub(super) bands: Bands,
    /// The number of strict bands, which are the first.
    pub(super) strict: u8,
    /// The quanta of all others.
    pub(super) quanta: Vec<u32>,
}

impl Ets {
    /// The quantum of a band, which counts from 1; `None` for a strict one.
    pub(super) fn quantum(&self, band: u16) -> Option<u32> {
        self.quanta.get(self.place(band)?).copied()
    }

    /// Sets the quantum of a band. Returns whether it is one of those that have any.
    pub(super) fn set_quantum(&mut self, band: u16, quantum: u32) -> bool {
        let place = self.place(band).and_then(|place| self.quanta.get_mut(place));
        place.map(|place| *place = quantum).is_some()
    }

    fn place(&self, band: u16) -> Option<usize> {
        usize::from(band).checked_sub(usize::from(self.strict) + 1)
    }
}

/// The kernel's limit of bands.
const MOST_BANDS: i64 = 16;

/// Bands that are not said are as many as the others need; bands without a quantum have that of a frame; and priorities
/// that are not said go to the last band.
pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Ets, Problem> {
    let (mut bands, mut strict) = (0, 0);
    let (mut quanta, mut map) = (Vec::new(), Vec::new());
    while let Some(word) = words.take() {
        match word.text {
            "bands" => bands = number(word, words, 0, MOST_BANDS)? as usize,
            "strict" => strict = number(word, words, 0, MOST_BANDS)? as usize,
            "quanta" => {
                quanta =
                    numbers(word, words, "the quanta of the bands that are not strict", 1, u32::MAX.into())?;
            }
            "priomap" => map = numbers(word, words, "the bands of up to 16 priorities", 0, MOST_BANDS - 1)?,
            _ => return Err(unknown(word, "ets", &["bands", "strict", "quanta", "priomap"])),
        }
    }
    if bands == 0 {
        bands = strict + quanta.len();
    }
    match strict + quanta.len() {
        _ if bands == 0 => {
            return Err(missing(name, "bands", "ets strict 1 quanta 3000 1514")
                .help("or `strict` or `quanta`, which say how many there are"));
        }
        needed if needed > bands => {
            return Err(name.problem(format!(
                "{needed} bands are needed for `strict` and `quanta`, and there are {bands}"
            )));
        }
        _ if bands > MOST_BANDS as usize => {
            return Err(name.problem(format!("{bands} bands")).help(format!("at most {MOST_BANDS}")));
        }
        _ => {}
    }
    if let Some((_, word)) = map.iter().find(|(band, _)| *band as usize >= bands) {
        return Err(word
            .problem(format!("the band {} is none of {bands}", word.text))
            .help("bands count from 0"));
    }
    if let Some((_, word)) = map.get(16) {
        return Err(word
            .problem(format!("`priomap` has {} numbers", map.len()))
            .help("16 are allowed, one for each priority from 0 to 15"));
    }
    let last = bands as u8 - 1; // 1 to 16
    let mut bands = Bands { bands: bands as u8, map: [last; 16] };
    bands.map.iter_mut().zip(map).for_each(|(band, (said, _))| *band = said as u8);
    let mut quanta: Vec<u32> = quanta.into_iter().map(|(quantum, _)| quantum as u32).collect();
    quanta.resize(usize::from(bands.bands) - strict, FRAME.get() as u32);
    Ok(Ets { bands, strict: strict as u8, quanta })
}

/// Numbers up to the next word, each with its place.
fn numbers<'a>(
    after: Word<'_>,
    words: &mut Words<'a>,
    what: &str,
    low: i64,
    high: i64,
) -> Result<Vec<(i64, Word<'a>)>, Problem> {
    let mut all = Vec::new();
    while let Some(word) = words.take_number(false) {
        all.push((units::integer(word, "a number", low, high)?, word));
    }
    if all.is_empty() { Err(words.missing(after, what)) } else { Ok(all) }
}

//! Output of presets for people and programs.

use std::fmt;

use serde_json::{Value as Json, json};

use super::{Preset, PresetFigures, PresetSource};
use crate::problem::ScenarioError;
use crate::way::Way;

/// Line width in characters.
const WIDTH: usize = 98;

impl fmt::Display for PresetFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = match (self.down, self.up) {
            (Some(down), Some(up)) => Some(format!("{down} down, {up} up")),
            (Some(rate), None) => Some(format!("{rate} down")),
            (None, Some(rate)) => Some(format!("{rate} up")),
            (None, None) => None,
        };
        let round_trip = self.round_trip.map(|time| format!("round trip {time}"));
        let all: Vec<String> = rates.into_iter().chain(round_trip).collect();
        f.write_str(&all.join(", "))
    }
}

impl PresetSource {
    /// Authors and year.
    fn by(&self) -> String {
        match self.year {
            Some(year) => format!("{}, {year}", self.authors),
            None => self.authors.clone(),
        }
    }
}

/// The full description that `narrows preset show` prints.
impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.name, self.about)?;
        writeln!(f, "{}", self.figures)?;
        writeln!(f, "measured: {}", self.measured)?;
        for (way, words) in [(Way::Down, "from the server"), (Way::Up, "from the client")] {
            writeln!(f, "\n{} ({words})", way.name())?;
            let keys = self.keys(way);
            let width = keys.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
            for (key, value) in keys {
                writeln!(f, "  {key:width$} = {value}")?;
            }
        }
        writeln!(f, "\nsources")?;
        for source in &self.sources {
            wrapped(f, "  - ", &source.title)?;
            wrapped(f, "    ", &source.by())?;
            writeln!(f, "    {}", source.link)?;
            wrapped(f, "    gives ", &source.gives)?;
        }
        writeln!(f, "\nnot measured; chosen as follows")?;
        self.chosen.iter().try_for_each(|sentence| wrapped(f, "  - ", sentence))?;
        writeln!(f, "\nuse it: narrows run --preset {} -- CMD", self.name)?;
        writeln!(f, "change a value: narrows run --preset {} --loss 1% -- CMD", self.name)
    }
}

/// Writes text in lines of at most [`WIDTH`] characters where words allow, the first line after `before`,
/// the others indented to it.
fn wrapped(f: &mut fmt::Formatter<'_>, before: &str, text: &str) -> fmt::Result {
    let mut line = before.to_string();
    let blank = " ".repeat(before.chars().count().min(4));
    let mut is_new = true;
    for word in text.split(' ') {
        if !is_new && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{line}")?;
            line.clone_from(&blank);
            is_new = true;
        }
        if !is_new {
            line.push(' ');
        }
        line += word;
        is_new = false;
    }
    writeln!(f, "{line}")
}

impl Preset {
    /// The preset as JSON: rates in bits per second, times in nanoseconds, and the keys as written in a
    /// file.
    pub fn json(&self) -> Json {
        let keys =
            |way| -> Json { self.keys(way).into_iter().map(|(key, value)| (key, json!(value))).collect() };
        let source = |source: &PresetSource| {
            let PresetSource { title, authors, year, link, gives } = source;
            json!({ "title": title, "authors": authors, "year": year, "link": link, "gives": gives })
        };
        let PresetFigures { down, up, round_trip } = self.figures;
        json!({
            "name": self.name,
            "about": self.about,
            "measured": self.measured,
            "down_bits_per_second": down.map(|rate| rate.bits_per_second()),
            "up_bits_per_second": up.map(|rate| rate.bits_per_second()),
            "round_trip_ns": round_trip.map(|time| time.nanos()),
            "down": keys(Way::Down),
            "up": keys(Way::Up),
            "sources": self.sources.iter().map(source).collect::<Vec<_>>(),
            "chosen": self.chosen,
        })
    }
}

/// The generated part of `docs/presets.md`: a table of all presets, and a section for each.
///
/// # Errors
/// If a preset cannot be read.
pub fn presets_page() -> Result<String, ScenarioError> {
    let all: Vec<Preset> = Preset::names().into_iter().map(Preset::named).collect::<Result<_, _>>()?;
    let mut page =
        String::from("| preset | what | down | up | round trip | measured |\n|---|---|---|---|---|---|\n");
    for Preset { name, about, measured, figures, .. } in &all {
        let rate =
            |rate: Option<_>| rate.map_or("not set".into(), |rate: narrows_core::Rate| format!("{rate}"));
        let (down, up) = (rate(figures.down), rate(figures.up));
        let round_trip = figures.round_trip.map_or("not set".into(), |time| time.to_string());
        page += &format!("| [`{name}`](#{name}) | {about} | {down} | {up} | {round_trip} | {} |\n", measured);
    }
    for preset in &all {
        page += &preset.section();
    }
    Ok(page)
}

impl Preset {
    /// Its section of that page.
    fn section(&self) -> String {
        let mut text = format!("\n## {}\n{}.\n\n```toml\n", self.name, self.about);
        for way in [Way::Down, Way::Up] {
            let keys = self.keys(way).into_iter().map(|(key, value)| format!("{key} = {value}"));
            text += &format!("{} = {{ {} }}\n", way.name(), keys.collect::<Vec<_>>().join(", "));
        }
        text += "```\n\nSources:\n\n";
        for source in &self.sources {
            let PresetSource { title, link, gives, .. } = source;
            text += &format!("- {}: [{title}]({link}). Gives {gives}.\n", source.by());
        }
        text += "\nNot measured; chosen as follows:\n\n";
        self.chosen.iter().for_each(|sentence| text += &format!("- {sentence}\n"));
        text
    }
}

//! Traces that presets use, embedded in the program.

/// Name prefix of preset traces.
const TRACE_PREFIX: &str = "preset:";
/// The preset traces.
pub(crate) const TRACES: &[(&str, &str)] = &[
    ("leo-satellite.csv", include_str!("preset/leo-satellite.csv")),
    ("train-down.csv", include_str!("preset/train-down.csv")),
    ("train-up.csv", include_str!("preset/train-up.csv")),
];

/// Returns the contents of a preset trace such as `preset:leo-satellite.csv`.
pub fn preset_trace(file: &str) -> Option<&'static str> {
    let name = file.strip_prefix(TRACE_PREFIX)?;
    TRACES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

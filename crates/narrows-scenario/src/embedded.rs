//! Traces that presets bring: files of the program itself.

/// What traces of presets are called, before the name of the file.
const TRACE_PREFIX: &str = "preset:";
/// The traces of presets.
pub(crate) const TRACES: &[(&str, &str)] = &[
    ("leo-satellite.csv", include_str!("preset/leo-satellite.csv")),
    ("train-down.csv", include_str!("preset/train-down.csv")),
    ("train-up.csv", include_str!("preset/train-up.csv")),
];

/// What is in a trace that presets bring, such as `preset:leo-satellite.csv`.
pub fn preset_trace(file: &str) -> Option<&'static str> {
    let name = file.strip_prefix(TRACE_PREFIX)?;
    TRACES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

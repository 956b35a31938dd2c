//! Public ipfw commands are accepted or refused as the corpus says.

use narrows_scenario::Interfaces;
use narrows_scenario::ipfw::Script;

/// Each entry: whether it is accepted, its source, and the script.
fn entries() -> impl Iterator<Item = (bool, &'static str, String)> {
    let lines = include_str!("corpus/ipfw.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [verdict, source, command] = fields[..] else { panic!("not three fields: {line}") };
        assert!(["accepted", "refused"].contains(&verdict), "{line}");
        (verdict == "accepted", source, command.replace("\\n", "\n"))
    })
}

fn read(text: &str) -> Result<Script, String> {
    let script = Script::at_interfaces(text, "script", &Interfaces::default()).map_err(|e| e.to_string())?;
    script.scenario("script").map_err(|error| error.to_string())?;
    Ok(script)
}

#[test]
fn verdicts_are_those_of_the_corpus() {
    let mut wrong = String::new();
    let (mut accepted, mut all) = (0, 0);
    for (expected, source, text) in entries() {
        let read = read(&text);
        all += 1;
        accepted += usize::from(read.is_ok());
        if read.is_ok() != expected {
            let verdict = read.err().unwrap_or_else(|| "accepted\n".into());
            wrong += &format!("{source}:\n{text}\n→ {verdict}\n");
        }
    }
    assert!(wrong.is_empty(), "{accepted} of {all} accepted; not as expected:\n{wrong}");
}

//! What the documentation shows is right: its scenarios parse, its changes apply, and no key is left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use narrows_scenario::{Files, Scenario, ScenarioError};

const HOSTS: &str = "\n[hosts.client]\n[hosts.server]\n";
const LINK: &str = "\n[links.access]\nbetween = [\"client\", \"server\"]\n";
const CLASSES: &str = r#"
scheduler = { type = "drr", classes = [{ name = "voip", match = { dscp = "ef" } }, { name = "rest" }] }
"#;
/// The files that examples name, with as little in them as will do.
const FILES: &[(&str, &str)] = &[
    ("cell.down", "1\n2\n5\n"),
    ("cell.up", "4\n9\n"),
    ("path.csv", "time_s,rate_mbit\n0,10\n40,5\n60,\n"),
    ("rtt.txt", "10\n12\n"),
    ("x.dist", "-8192 0 8192\n"),
    ("h.csv", "0,1,ns\n100,0,ns\n"),
    ("drive.csv", "ts,downlink,dl\n0,5,5\n1,7,7\n"),
    ("drive.light", "0 20 0 1 2\n100 25 0 1 2\n200 20\n"),
    ("drive.down", "3\n3\n7\n"),
    ("d.pattern", "pattern delay\nper packet\nlength 10\n1 3ms\n"),
    ("l.pattern", "pattern loss\nper packet\nlength 10\n3\n"),
    ("radio.profile", "bw 2Mbit/s\nprob delay\n0 1\n1 2\n"),
    ("b.pattern", "pattern bit-errors\nper bit\nlength 1000000\n77\n"),
];

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    let files = Files::given(FILES.iter().map(|(name, contents)| (*name, contents.as_bytes().to_vec())));
    files.add("alternate.wasm", &include_bytes!("../../../examples/scheduler-c/alternate.wasm")[..]);
    Scenario::parse_with(text, "block.toml", files)
}

/// Keys at the top of a file that stand alone; the first line of a fragment says by these where it belongs.
const TOP: [&str; 2] = ["seed", "duration"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// README and everything below docs.
fn pages() -> Vec<(String, String)> {
    let (mut files, mut folders) = (vec![root().join("README.md")], vec![root().join("docs")]);
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).expect("there are docs");
        let (inner, here): (Vec<_>, Vec<_>) =
            entries.map(|entry| entry.expect("it can be read").path()).partition(|path| path.is_dir());
        folders.extend(inner);
        files.extend(
            here.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")),
        );
    }
    files.sort();
    files.into_iter().map(|file| (file.display().to_string(), read(&file))).collect()
}

/// The fenced blocks of a language, with the line at which each begins.
fn blocks(page: &str, language: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(bool, usize, String)> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            // Behind a comma stands what other tests have to know.
            (None, Some(info)) => {
                open = Some((info.split(',').next() == Some(language), number + 2, String::new()));
            }
            (Some(_), Some("")) => match open.take() {
                Some((true, start, text)) => blocks.push((start, text)),
                _ => continue,
            },
            (Some((_, _, text)), _) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// A fragment with what it takes for granted: the usual two hosts, and the link that its first lines are about.
fn completed(fragment: &str) -> String {
    let has = |table: &str| fragment.lines().any(|line| line.starts_with(table));
    let first = fragment.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let first = first.unwrap_or_default();
    let key = first.split(['=', ' ']).next().unwrap_or_default();
    let is_about_a_link = !first.starts_with('[') && !TOP.contains(&key);
    let hosts = if has("[hosts.") { "" } else { HOSTS };
    match (has("[links"), is_about_a_link) {
        (true, _) => format!("{fragment}{hosts}"),
        (false, true) => format!("{LINK}{fragment}{hosts}"),
        (false, false) => format!("{fragment}{hosts}{LINK}"),
    }
}

#[test]
fn every_scenario_parses() {
    let mut seen = 0;
    for (page, text) in pages() {
        for (line, block) in blocks(&text, "toml") {
            if let Err(error) = parse(&completed(&block)) {
                panic!("{page}:{line}\n{error}");
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} blocks were found");
}

/// The words of a line as a shell divides it, without escapes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.push(c),
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '#' && word.is_empty() => break,
            None if c.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|w| !w.is_empty()))
            }
            None => word.push(c),
        }
    }
    words.extend(Some(word).filter(|w| !w.is_empty()));
    words
}

#[test]
fn every_change_applies() {
    let mut seen = 0;
    for (page, text) in pages() {
        for (line, block) in blocks(&text, "sh") {
            // Every change is shown for the link `access`, with the usual two classes, or for `link`, which flags make.
            let text = format!("{HOSTS}{LINK}{CLASSES}{}", LINK.replace("access", "link"));
            let mut scenario = parse(&text).expect("two hosts and two links");
            for command in block.lines().filter(|command| command.starts_with("narrows set ")) {
                if command.contains(" --to ") {
                    continue;
                }
                let words = words(command);
                let changes: Vec<&String> = words.iter().filter(|word| word.contains('=')).collect();
                assert!(!changes.is_empty(), "{page}:{line}: {command}");
                if let Err(error) = scenario.assign_all(&changes) {
                    panic!("{page}:{line}: {command}\n{error}");
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "only {seen} changes were found");
}

/// The names of all properties in a schema. Names that the user gives are no properties of it.
fn properties(schema: &serde_json::Value, names: &mut BTreeSet<String>) {
    match schema {
        serde_json::Value::Object(map) => {
            for (word, inner) in map {
                if let ("properties", serde_json::Value::Object(keys)) = (word.as_str(), inner) {
                    names.extend(keys.keys().cloned());
                }
                properties(inner, names);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| properties(item, names)),
        _ => {}
    }
}

/// The page with each table between `<!-- keys: NAME -->` and `<!-- end -->` as the rows of the keys say, and their names.
fn with_tables(page: &str) -> (String, BTreeSet<String>) {
    let tables = narrows_scenario::reference();
    let (mut text, mut names, mut rest) = (String::new(), BTreeSet::new(), page);
    while let Some((before, after)) = rest.split_once("<!-- keys: ") {
        let (name, after) = after.split_once(" -->").expect("a mark has an end");
        let (_, after) = after.split_once("<!-- end -->").expect("a table has an end");
        let table = tables.get(name).unwrap_or_else(|| panic!("no table of keys is called `{name}`"));
        text += &format!("{before}<!-- keys: {name} -->\n{table}<!-- end -->");
        names.insert(name.into());
        rest = after;
    }
    (text + rest, names)
}

/// `NARROWS_BLESS=1 cargo test -p narrows-scenario --test docs` writes the tables.
#[test]
fn the_tables_of_keys_are_what_the_program_knows() {
    let page = root().join("docs/scenario.md");
    let text = read(&page);
    let (right, names) = with_tables(&text);
    let known: BTreeSet<String> = narrows_scenario::reference().into_keys().map(String::from).collect();
    assert_eq!(names, known, "each table has its place on the page");
    is_or_becomes(&page, &text, &right);
}

/// The same for the presets.
#[test]
fn the_page_of_presets_is_what_the_program_knows() {
    let page = root().join("docs/presets.md");
    let text = read(&page);
    let (before, after) = text.split_once("<!-- presets -->\n").expect("there is a mark");
    let (_, after) = after.split_once("<!-- end -->").expect("it has an end");
    let presets = narrows_scenario::presets_page().unwrap_or_else(|error| panic!("{error}"));
    is_or_becomes(&page, &text, &format!("{before}<!-- presets -->\n{presets}<!-- end -->{after}"));
}

/// Fails where a page is not as it should be, or writes it.
fn is_or_becomes(page: &Path, text: &str, right: &str) {
    if std::env::var_os("NARROWS_BLESS").is_some() {
        std::fs::write(page, right).expect("the page can be written");
        return;
    }
    for (line, (found, right)) in text.lines().zip(right.lines()).enumerate() {
        assert_eq!(found, right, "{}:{}, see NARROWS_BLESS above", page.display(), line + 1);
    }
    assert_eq!(text, right);
}

#[test]
fn every_key_is_in_the_reference() {
    let schema = serde_json::from_str(&narrows_scenario::schema()).expect("the schema is JSON");
    let mut names = BTreeSet::new();
    properties(&schema, &mut names);
    assert!(names.len() > 30, "{names:?}");
    let reference = read(&root().join("docs/scenario.md"));
    let mentions = |name: &String| {
        let quoted = format!("`{name}`");
        // A parameter of a value may be shown within the value.
        reference.contains(&quoted) || reference.contains(&format!("{name} = "))
    };
    let missing: Vec<&String> = names.iter().filter(|name| !mentions(name)).collect();
    assert!(missing.is_empty(), "docs/scenario.md says nothing about {missing:?}");
}

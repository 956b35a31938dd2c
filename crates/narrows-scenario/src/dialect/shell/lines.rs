//! What filters of lines make of a text: `grep`, `sed`, `tr` and `cut`.

use super::printf::{Escapes, unescaped};
use super::programs::Printed;
use super::regular;

/// What `grep` finds.
pub(super) fn searched(
    name: &str,
    words: &[&str],
    input: Option<&str>,
    file: &dyn Fn(&str) -> Option<String>,
) -> Option<Printed> {
    let (mut is_quiet, mut is_inverted, mut ignores_case, mut is_extended, mut counts) =
        (false, false, false, name == "egrep", false);
    let mut rest = words;
    while let Some((flags, behind)) = rest.split_first().filter(|(first, _)| first.starts_with('-')) {
        rest = behind;
        for flag in flags.trim_start_matches('-').chars() {
            match flag {
                'q' | 's' => is_quiet |= flag == 'q',
                'v' => is_inverted = true,
                'i' => ignores_case = true,
                'E' => is_extended = true,
                'c' => counts = true,
                _ => return None,
            }
        }
    }
    let (pattern, files) = rest.split_first()?;
    let is_plain = !pattern.contains(|c: char| !c.is_ascii_alphanumeric() && !" /:,_-".contains(c));
    if name == "fgrep" && !is_plain {
        return None;
    }
    let text = match files {
        [] => input?.to_owned(),
        [name] => file(name)?,
        _ => return None,
    };
    let pattern = if is_extended { (*pattern).to_owned() } else { regular::extended(pattern) };
    let pattern = if ignores_case { pattern.to_lowercase() } else { pattern };
    let mut found = Vec::new();
    for line in text.lines() {
        let looked_at = if ignores_case { line.to_lowercase() } else { line.to_owned() };
        if regular::fits(&pattern, &looked_at)? != is_inverted {
            found.push(line);
        }
    }
    let text = match () {
        () if counts => format!("{}\n", found.len()),
        () if is_quiet => String::new(),
        () => found.iter().flat_map(|line| [*line, "\n"]).collect(),
    };
    Some(Printed { text, succeeds: !found.is_empty(), is_default: false })
}

/// What `tr` makes of a text, for single characters and ranges.
pub(super) fn translated(text: &str, flags: &str, from: &str, to: Option<&str>) -> Option<String> {
    let set = |text: &str| -> Option<Vec<char>> {
        let text = match text {
            "[:upper:]" => "A-Z".to_owned(),
            "[:lower:]" => "a-z".to_owned(),
            "[:digit:]" => "0-9".to_owned(),
            "[:space:]" => " \t\n\r\u{b}\u{c}".to_owned(),
            _ if text.contains('[') => return None,
            _ => unescaped(text, Escapes::OfText)?,
        };
        let chars: Vec<char> = text.chars().collect();
        let mut all = Vec::new();
        let mut at = 0;
        while at < chars.len() {
            match (chars.get(at + 1), chars.get(at + 2)) {
                (Some('-'), Some(last)) => {
                    all.extend(chars[at]..=*last);
                    at += 3;
                }
                _ => {
                    all.push(chars[at]);
                    at += 1;
                }
            }
        }
        Some(all)
    };
    let from = set(from)?;
    let Some(to) = to else {
        let mut last = None;
        let keeps = |c: &char| match flags {
            "-d" => !from.contains(c),
            // Each but these.
            "-cd" | "-dc" => from.contains(c),
            // One of several that follow one another.
            _ => last.replace(*c) != Some(*c) || !from.contains(c),
        };
        return Some(text.chars().filter(keeps).collect());
    };
    let to = set(to)?;
    let last = *to.last()?;
    let of =
        |c: char| from.iter().position(|from| *from == c).map_or(c, |at| to.get(at).copied().unwrap_or(last));
    Some(text.chars().map(of).collect())
}

/// What `cut -d X -f N` leaves of each line.
pub(super) fn cut(text: &str, flags: &[&str]) -> Option<String> {
    let (mut separator, mut fields, mut chars) = ('\t', None, None);
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let mut value = |flag: &str, of: &str| match flag.strip_prefix(of)? {
            "" => flags.next().map(|value| (*value).to_owned()),
            value => Some(value.to_owned()),
        };
        if flag.starts_with("-d") {
            separator = value(flag, "-d")?.chars().next()?;
        } else if flag.starts_with("-f") {
            fields = Some(value(flag, "-f")?);
        } else if flag.starts_with("-c") {
            chars = Some(value(flag, "-c")?);
        } else {
            return None;
        }
    }
    let range = |text: &str| -> Option<(usize, usize)> {
        let number =
            |text: &str, default| if text.is_empty() { Some(default) } else { text.parse::<usize>().ok() };
        match text.split_once('-') {
            Some((first, last)) => Some((number(first, 1)?, number(last, usize::MAX)?)),
            None => Some((text.parse().ok()?, text.parse().ok()?)),
        }
    };
    let (first, last) = range(fields.as_deref().or(chars.as_deref())?)?;
    let within = |at: usize| (first..=last).contains(&(at + 1));
    let of_line = |line: &str| match fields {
        Some(_) if !line.contains(separator) => line.to_owned(),
        Some(_) => {
            let kept = line.split(separator).enumerate().filter(|(at, _)| within(*at)).map(|(_, part)| part);
            kept.collect::<Vec<_>>().join(&separator.to_string())
        }
        None => line.chars().enumerate().filter(|(at, _)| within(*at)).map(|(_, c)| c).collect(),
    };
    Some(text.lines().map(|line| of_line(line) + "\n").collect())
}

/// What `sed` makes of a text by `s/…/…/`.
pub(super) fn edited(text: &str, words: &[&str]) -> Option<String> {
    let mut is_extended = false;
    let mut scripts = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-E" | "-r" => is_extended = true,
            "-e" => scripts.push(*rest.next()?),
            flag if flag.starts_with('-') => return None,
            script if scripts.is_empty() => scripts.push(script),
            _ => return None,
        }
    }
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for script in scripts.iter().flat_map(|script| script.split([';', '\n'])).map(str::trim) {
        let separator = script.strip_prefix('s')?.chars().next()?;
        let mut parts = vec![String::new()];
        let mut is_escaped = false;
        for c in script.get(1 + separator.len_utf8()..)?.chars() {
            match c {
                _ if is_escaped => {
                    let part = parts.last_mut()?;
                    if c != separator {
                        part.push('\\');
                    }
                    part.push(c);
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                c if c == separator => parts.push(String::new()),
                c => parts.last_mut()?.push(c),
            }
        }
        let [pattern, by, flags] = &parts[..] else { return None };
        // Groups are not told apart.
        if by.contains('\\') || !matches!(flags.as_str(), "" | "g") {
            return None;
        }
        let pattern = if is_extended { pattern.clone() } else { regular::extended(pattern) };
        for line in &mut lines {
            *line = regular::replaced(&pattern, line, by, flags == "g")?;
        }
    }
    Some(lines.into_iter().map(|line| line + "\n").collect())
}

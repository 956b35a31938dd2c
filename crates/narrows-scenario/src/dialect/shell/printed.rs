//! What programs print of which that depends on their words, and the lines that they read, alone.

use std::collections::BTreeSet;

use super::arithmetic;
use super::awk;
use super::decimal;
use super::lines;
use super::printf::{Escapes, formatted, unescaped};
use super::programs::{Printed, named};
use crate::problem::Problem;

/// The most numbers of a `seq` or of braces.
pub(super) const MOST_NUMBERS: i64 = 1 << 16;

/// Whether a program only passes on some of the lines that it reads.
pub(super) fn filters(words: &[&str]) -> bool {
    matches!(named(words).0, "grep" | "egrep" | "fgrep")
}

/// Kinds of disciplines that no device has by itself.
const NEVER: &[&str] =
    &["netem", "htb", "tbf", "ingress", "clsact", "hfsc", "cake", "prio", "sfq", "cbq", "drr", "qfq", "ffff"];

/// Those of these kinds that words name.
pub(super) fn kinds(words: &[&str]) -> impl Iterator<Item = &'static str> {
    NEVER.iter().copied().filter(|kind| words.iter().any(|word| word.contains(kind)))
}

/// The disciplines that words name by their numbers, as `20:` of `handle 20:` and `2:` of `classid 2:1`.
pub(super) fn numbers(words: &[&str]) -> impl Iterator<Item = String> {
    let mut before = "";
    let number = move |word| {
        // `handle 20` is `handle 20:`.
        let is_handle = std::mem::replace(&mut before, word) == "handle";
        let whole = word.trim_start_matches('^');
        let (major, minor) = whole.split_once(':').or(is_handle.then_some((whole, "")))?;
        let major = u16::from_str_radix(major, 16).ok()?;
        // Devices have disciplines without a number, and the kernel gives them high ones.
        let is_given = (1..0x8000).contains(&major) && minor.chars().all(|c| c.is_ascii_hexdigit());
        is_given.then(|| format!("{major:x}:"))
    };
    words.iter().flat_map(|words| words.split(' ')).filter_map(number)
}

/// Whether `grep` finds something in what tc says of devices with these kinds and numbers of disciplines, and others by
/// default; `None` if that is not known.
pub(super) fn looked_for(words: &[&str], configured: &BTreeSet<String>) -> Option<bool> {
    let (name, rest) = named(words);
    let pattern = rest.iter().find(|word| !word.starts_with('-'))?;
    if matches!(name, "awk" | "gawk" | "mawk") {
        return chosen_by_awk(pattern, configured).then_some(true);
    }
    // What is anything else does not matter.
    let rest_of_pattern = pattern.replace(" .* ", " ");
    let lacks = kinds(&[pattern]).any(|kind| !configured.contains(kind))
        || numbers(&[pattern]).any(|number| !configured.contains(&number));
    let is_one = lacks && !rest_of_pattern.contains(['|', '*', '?']);
    (matches!(name, "grep" | "egrep" | "fgrep") && is_one && !rest.iter().any(|word| word.contains('v')))
        .then_some(false)
}

/// Whether a program of awk, with one condition, only prints something of disciplines of kinds that are not configured:
/// `{ if ($1 == "hfsc") print $6 }`, `/netem/ { print $3 }`.
fn chosen_by_awk(program: &str, configured: &BTreeSet<String>) -> bool {
    let is_simple = !["!", "||", ";", "else", "BEGIN", "END"].iter().any(|part| program.contains(part));
    let asked: Vec<&str> =
        program.split('"').skip(1).step_by(2).chain(program.split('/').skip(1).step_by(2)).collect();
    let lacks = kinds(&asked).any(|kind| !configured.contains(kind));
    let compares = program.contains("==") || program.trim_start().starts_with('/');
    is_simple && compares && lacks && program.matches("print").count() == 1
}

/// What a command prints, for those of which that depends on their words, and the lines that they read, alone. `file` gives
/// the text of a file.
pub(super) fn printed(
    words: &[&str],
    input: Option<&str>,
    file: &dyn Fn(&str) -> Option<String>,
) -> Option<Printed> {
    if filters(words) {
        let (name, rest) = named(words);
        return lines::searched(name, rest, input, file);
    }
    if let ("expr", rest) = named(words) {
        let value = expression(rest)?;
        return Some(Printed { text: format!("{value}\n"), succeeds: value != 0, ..Printed::default() });
    }
    Some(Printed { text: text_printed(words, input, file)?, ..Printed::default() })
}

fn text_printed(
    words: &[&str],
    input: Option<&str>,
    file: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    let (name, rest) = named(words);
    let line = |text: String| Some(text + "\n");
    // Of nothing, filters of lines leave nothing.
    if input == Some("") && matches!(name, "head" | "tail" | "cut" | "sort" | "uniq" | "tr") && reads(words) {
        return Some(String::new());
    }
    match (name, rest) {
        ("echo", rest) => {
            let is_flags = |word: &&&str| {
                word.len() > 1
                    && word.strip_prefix('-').is_some_and(|all| all.chars().all(|c| "neE".contains(c)))
            };
            let count = rest.iter().take_while(is_flags).count();
            let (flags, words) = rest.split_at(count);
            let has = |flag: char| flags.iter().any(|word| word.contains(flag));
            let text = words.join(" ");
            let text = match (has('e'), has('E')) {
                (true, true) => return None,
                (true, false) => unescaped(&text, Escapes::OfText)?,
                _ => text,
            };
            Some(if has('n') { text } else { text + "\n" })
        }
        ("printf", ["--", format, rest @ ..]) => formatted(format, rest),
        ("printf", [format, rest @ ..]) if !format.starts_with('-') => formatted(format, rest),
        // Wherever a program is, its name tells which one is meant.
        ("which", [name]) | ("type", ["-p" | "-P", name]) => line((*name).to_owned()),
        ("id", ["-u"]) => line("0".to_owned()),
        ("whoami", []) | ("id", ["-un" | "-nu"]) | ("logname", []) => line("root".to_owned()),
        ("seq", numbers) => {
            let numbers: Vec<i64> =
                numbers.iter().map(|number| number.parse().ok()).collect::<Option<_>>()?;
            let numbers = match numbers[..] {
                [last] => counted(1, 1, last),
                [first, last] => counted(first, 1, last),
                [first, step, last] => counted(first, step, last),
                _ => return None,
            };
            Some(numbers.ok()?.iter().map(|number| format!("{number}\n")).collect())
        }
        ("jot", words) => {
            // How many, from which one on: `jot 3`, `jot 3 5`, `jot - 5 7`.
            let number = |at: usize| words.get(at).map_or(Some(1), |word| word.parse::<i64>().ok());
            let numbers = match words {
                ["-", _, _] => counted(number(1)?, 1, number(2)?),
                [_] | [_, _] => {
                    let first = number(1)?;
                    counted(first, 1, first.saturating_add(number(0)?).saturating_sub(1))
                }
                _ => return None,
            };
            Some(numbers.ok()?.iter().map(|number| format!("{number}\n")).collect())
        }
        ("basename", [path]) => line(base(path).to_owned()),
        ("basename", [path, end]) => {
            let name = base(path);
            line(name.strip_suffix(end).filter(|name| !name.is_empty()).unwrap_or(name).to_owned())
        }
        ("dirname", [path]) => {
            let path = path.trim_end_matches('/');
            line(match path.rsplit_once('/') {
                _ if path.is_empty() => "/".to_owned(),
                Some((folder, _)) if folder.trim_end_matches('/').is_empty() => "/".to_owned(),
                Some((folder, _)) => folder.trim_end_matches('/').to_owned(),
                None => ".".to_owned(),
            })
        }
        ("cat", [] | ["-"]) => input.map(str::to_owned),
        // The rules that every host has lead to no pipe.
        ("cat", ["/etc/pf.conf"]) => Some(String::new()),
        ("cat", [name]) => file(name),
        ("realpath", [path]) | ("readlink", ["-f" | "-e" | "-m", path]) => line((*path).to_owned()),
        ("bc", flags) if flags.iter().all(|flag| matches!(*flag, "-l" | "-q" | "-lq" | "-ql")) => {
            decimal::of_lines(input?, if flags.iter().any(|flag| flag.contains('l')) { 20 } else { 0 })
        }
        ("tr", [flags @ ("-d" | "-cd" | "-dc" | "-s"), from]) => lines::translated(input?, flags, from, None),
        ("tr", [from, to]) if !from.starts_with('-') => lines::translated(input?, "", from, Some(to)),
        ("cut", flags) => lines::cut(input?, flags),
        ("head", ["-1"] | ["-n1"] | ["-n", "1"]) => {
            Some(input?.lines().take(1).map(|line| format!("{line}\n")).collect())
        }
        ("tail", ["-1"] | ["-n1"] | ["-n", "1"]) => {
            Some(input?.lines().last().map(|line| format!("{line}\n")).unwrap_or_default())
        }
        ("sed", words) => lines::edited(input?, words),
        ("awk" | "gawk" | "mawk", words) => awk::printed(words, input),
        ("xargs", ["printf", format]) => formatted(format, &input?.split_whitespace().collect::<Vec<_>>()),
        ("xargs", [] | ["echo"]) => line(input?.split_whitespace().collect::<Vec<_>>().join(" ")),
        ("wc", ["-w"]) => line(input?.split_whitespace().count().to_string()),
        ("wc", ["-l"]) => line(input?.matches('\n').count().to_string()),
        ("true" | ":", _) => Some(String::new()),
        _ => None,
    }
}

/// What a path is behind its last slash.
fn base(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit('/').next() {
        Some("") if !path.is_empty() => "/",
        name => name.unwrap_or_default(),
    }
}

/// Whether a program may read what is given to it.
pub(super) fn reads(words: &[&str]) -> bool {
    const READERS: &[&str] = &[
        "awk", "bc", "cat", "cut", "egrep", "fgrep", "gawk", "grep", "head", "mawk", "sed", "sort", "tail",
        "tr", "uniq", "wc", "xargs",
    ];
    match named(words) {
        // From files alone.
        ("cat", [_, ..]) if !words.contains(&"-") => false,
        (name, _) => READERS.contains(&name),
    }
}

/// The value of the words of `expr`: decimal numbers, and operators that mean the same as in a shell.
fn expression(words: &[&str]) -> Option<i64> {
    const SAME: &[&str] = &["+", "-", "*", "/", "%", "(", ")", "<", "<=", ">", ">=", "!="];
    let mut text = String::new();
    for word in words {
        let number = word.parse::<i64>().ok().filter(|_| !word.starts_with('+'));
        match (number, *word) {
            (Some(number), _) => text += &format!(" {number}"),
            (None, "=") => text += " ==",
            (None, word) if SAME.contains(&word) => text += &format!(" {word}"),
            _ => return None,
        }
    }
    arithmetic::value(&text, &mut NoNumbers).ok().filter(|_| !text.is_empty())
}

struct NoNumbers;

impl arithmetic::Numbers for NoNumbers {
    fn text(&mut self, name: &str, _: Option<i64>) -> Result<String, crate::problem::Problem> {
        Err(crate::problem::Problem::new(format!("`{name}` is no number")))
    }

    fn set(&mut self, _: &str, _: Option<i64>, _: i64) {}
}

/// Numbers from the first to the last.
pub(super) fn counted(first: i64, step: i64, last: i64) -> Result<Vec<i64>, Problem> {
    let is_none = first != last && (last > first) != (step > 0) && step != 0;
    let most = match is_none {
        true => Some(0),
        false => last.checked_sub(first).and_then(|span| span.checked_div(step)?.checked_add(1)),
    };
    let Some(most) = most.filter(|most| *most <= MOST_NUMBERS) else {
        return Err(Problem::new(format!("more than {MOST_NUMBERS} numbers")));
    };
    Ok((0..most.max(0)).map(|index| first + index * step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_print() {
        for (words, input, expected) in [
            (&["echo", "a", "b"][..], None, Some("a b\n")),
            (&["printf", "%d:%s%%\\n", "7", "x"], None, Some("7:x%\n")),
            (&["printf", "%03d ", "7", "8"], None, Some("007 008 ")),
            (&["printf", "%.2f", "1.125"], None, Some("1.12")),
            // Programs that calculate with other numbers of digits do not agree.
            (&["printf", "%.2f", "1.005"], None, None),
            (&["printf", "%03d", "-5"], None, Some("-05")),
            (&["printf", "--", "a\\\\n%+d", "7"], None, None),
            (&["echo", "-e", "-n", "a\\\\nb"], None, Some("a\\nb")),
            (&["echo", "-e", "\\x41"], None, None),
            (&["seq", "2", "2", "6"], None, Some("2\n4\n6\n")),
            (&["seq", "1", "2", "0"], None, Some("")),
            (&["expr", "5+3"], None, None),
            (&["expr", "010", "+", "1"], None, Some("11\n")),
            (&["expr", "2", "|", "3"], None, None),
            (&["dirname", "/a"], None, Some("/\n")),
            (&["dirname", "a/b/"], None, Some("a\n")),
            (&["basename", ".sh", ".sh"], None, Some(".sh\n")),
            (&["tr", "-cd", "0-9"], Some("a1b2\n"), Some("12")),
            (&["tr", "-s", " "], Some("a  b\n"), Some("a b\n")),
            (&["egrep", "z|b"], Some("ab\n"), Some("ab\n")),
            (&["fgrep", "a.c"], Some("abc\n"), None),
            (&["wc", "-l"], Some("a\nb"), Some("1\n")),
            (&["expr", "6", "*", "7"], None, Some("42\n")),
            (&["basename", "/a/b.sh", ".sh"], None, Some("b\n")),
            (&["dirname", "./a"], None, Some(".\n")),
            (&["bc"], Some("scale=2; 10/3\n"), Some("3.33\n")),
            (&["bc"], Some("100*0.9"), Some("90.0\n")),
            (&["bc"], Some("1.5*1.25"), Some("1.87\n")),
            (&["bc"], Some("7/2*2-(1+.5)"), Some("4.5\n")),
            (&["bc"], Some("scale=1; 1/4"), Some(".2\n")),
            (&["bc"], Some("x=1"), None),
            (&["tr", "a-c", "A-C"], Some("abcd"), Some("ABCd")),
            (&["tr", "-d", "m"], Some("5mm"), Some("5")),
            (&["cut", "-d,", "-f2"], Some("a,b,c\n"), Some("b\n")),
            (&["cut", "-d", ":", "-f", "2-"], Some("a:b:c\n"), Some("b:c\n")),
            (&["bc", "-l"], Some("864.5 * 1000 / 56"), Some("15437.50000000000000000000\n")),
            (
                &["bc", "-q", "-l"],
                Some("(40/1000.0)*(100*1000000.0/8.0)"),
                Some("500000.00000000000000000000\n"),
            ),
            (&["xargs", "printf", "%.2fkbit"], Some("15437.5\n"), Some("15437.50kbit")),
            (&["grep", "^a"], Some("ab\nba\n"), Some("ab\n")),
            (&["grep", "-vc", "a"], Some("ab\nc\n"), Some("1\n")),
            (&["grep", "-w", "a\\|b"], Some("ab\n"), None),
            (&["sed", "s/[^0-9]//g"], Some("10mbit\n"), Some("10\n")),
            (&["sed", "-e", "s|/|:|"], Some("a/b/c\n"), Some("a:b/c\n")),
            (&["sed", "-E", "s/(a|b)+/x/;s/c/d/"], Some("abc\n"), Some("xd\n")),
            (&["sed", "s/\\(a\\)/\\1/"], Some("a\n"), None),
            (&["awk", "{print $2}"], Some("a b c\n d  e\n"), Some("b\ne\n")),
            (&["awk", "-F:", "{ print $1 \"-\" $NF }"], Some("a:b:c\n"), Some("a-c\n")),
            (&["awk", "BEGIN {print 100*0.95}"], None, Some("95\n")),
            (&["awk", "BEGIN { printf \"%.2f\", 10 / 4 }"], None, Some("2.50")),
            (&["awk", "-v", "r=10", "BEGIN{print int(r*1000/3) \"kbit\"}"], None, Some("3333kbit\n")),
            (&["awk", "BEGIN {print 1/3, 1e6, 2^10}"], None, Some("0.333333 1000000 1024\n")),
            (&["awk", "/b/ {print}"], Some("ab\nc\n"), Some("ab\n")),
            (&["awk", "NR==2 {print $1}"], Some("a\nb c\n"), Some("b\n")),
            (&["awk", "BEGIN {print (3 > 2 ? \"a\" : \"b\")}"], None, Some("a\n")),
            (
                &["awk", "BEGIN {\n b = 3000 / 8; # bytes\n if (b < 2000) b = 2000;\n printf \"%d\", b; }"],
                None,
                Some("2000"),
            ),
            (&["awk", "{ while (1) x }"], Some("a\n"), None),
            (&["date"], None, None),
            (&["command", "-v", "tc"], None, Some("tc\n")),
        ] {
            let found = printed(words, input, &|_| None);
            assert_eq!(found.map(|found| found.text).as_deref(), expected, "{words:?} {input:?}");
        }
    }
}

//! Values of variables and arguments: `$NAME`, `$1`, `${NAME%…}`.

use super::field::{Expansion, Field, Fields, How, NOT_RUN, Quotes, Unknown, unnamed};
use super::pattern::Pattern;
use super::place::Place;
use super::scan::{self, byte, name_length};
use super::state::Runner;
use super::values::{Missing, Scalar, Value};
use crate::problem::{Found, Problem};

/// Scripts that configure networks run as root.
const ROOT: &str = "0";

const GIVEN: &str = "a script gets arguments behind its name: narrows tc check SCRIPT ARG…, or: narrows ipfw check SCRIPT -- ARG…";

impl Runner<'_> {
    /// An argument of the script, or of the function that is executed.
    pub(super) fn argument(&mut self, number: usize) -> Field {
        if number == 0 {
            return match self.start.path {
                Some(path) => Field::known(path.to_string_lossy()),
                None => self.missing(Missing::Output, "0"),
            };
        }
        match self.values.arguments() {
            Some(arguments) => match arguments.get(number - 1).cloned() {
                Some(scalar) => self.of_scalar(scalar, &number.to_string()),
                None => self.not_set(&number.to_string()),
            },
            None => self.missing(Missing::Argument, &number.to_string()),
        }
    }

    /// All arguments.
    pub(super) fn arguments(&mut self, is_joined: bool) -> Expansion {
        let Some(arguments) = self.values.arguments().map(<[Scalar]>::to_vec) else {
            return Expansion::One(self.missing(Missing::Argument, if is_joined { "*" } else { "@" }));
        };
        let fields: Vec<Field> = arguments.into_iter().map(|scalar| self.of_scalar(scalar, "@")).collect();
        self.all(fields, is_joined)
    }

    /// Values, which are one text in quotes if they are joined.
    pub(super) fn all(&mut self, fields: Vec<Field>, is_joined: bool) -> Expansion {
        if !is_joined {
            return Expansion::All(fields);
        }
        let separator = match self.values.scalar("IFS") {
            Some(Scalar::Text(text)) => text.chars().next().map(String::from).unwrap_or_default(),
            _ => " ".to_owned(),
        };
        Expansion::Joined(fields, separator)
    }

    /// `$#`, `$?` and others.
    pub(super) fn special(&mut self, name: &str) -> Field {
        match (name, self.values.arguments()) {
            ("#", Some(arguments)) => Field::known(arguments.len().to_string()),
            ("#", None) if self.is_without && !self.values.is_unclear() => Field::known("0"),
            ("#", None) => self.missing(Missing::Argument, "#"),
            ("?", _) => match self.status.known() {
                Some(status) => Field::known(status.to_string()),
                None => self.missing(Missing::Output, "?"),
            },
            ("-", _) => Field::known(if self.exits_on_failure { "ehB" } else { "hB" }),
            _ => self.missing(Missing::Output, name),
        }
    }

    /// What a variable is that is not in the script: its name.
    pub(super) fn missing(&self, what: Missing, of: &str) -> Field {
        let what = if what == Missing::Argument && self.values.is_unclear() { Missing::Output } else { what };
        if self.is_without && what == Missing::Argument {
            return Field::default();
        }
        let problem = match what {
            Missing::Argument if of.starts_with(|c: char| c.is_ascii_digit()) => {
                Problem::new(format!("`${of}` is an argument of the script, which has none"))
            }
            _ => Problem::new(format!("`${of}` has {} as its value", what.words())),
        };
        let problem = if what == Missing::Argument { problem.help(GIVEN) } else { problem }.help(NOT_RUN);
        let unknown = Unknown { problem, what, is_named: true };
        Field { text: format!("${of}"), unknown: Some(Box::new(unknown)) }
    }

    pub(super) fn of_scalar(&self, scalar: Scalar, name: &str) -> Field {
        match scalar {
            Scalar::Text(text) => Field::known(text),
            Scalar::Missing(what, of) => {
                let mut field = self.missing(what, &of);
                if let Some(unknown) = &mut field.unknown
                    && of != name
                {
                    let problem = Problem::new(format!("`${name}` has {} as its value", what.words()));
                    let problem = if what == Missing::Argument { problem.help(GIVEN) } else { problem };
                    unknown.problem = problem.help(NOT_RUN);
                }
                field
            }
        }
    }

    /// The value of a variable.
    pub(super) fn named(&self, name: &str) -> Field {
        match (self.values.scalar(name), name) {
            (Some(scalar), _) => self.of_scalar(scalar.clone(), name),
            _ if self.values.is_unset(name) => self.not_set(name),
            (None, "UID" | "EUID") => Field::known(ROOT),
            (
                None,
                "RANDOM" | "SECONDS" | "HOSTNAME" | "PWD" | "LINENO" | "PPID" | "OLDPWD" | "HOME" | "PATH"
                | "OSTYPE" | "MACHTYPE" | "HOSTTYPE",
            ) => self.missing(Missing::Output, name),
            (None, "USER" | "LOGNAME") => Field::known("root"),
            (None, "BASH_SOURCE") => match self.start.path {
                Some(path) => Field::known(path.to_string_lossy()),
                None => self.missing(Missing::Output, name),
            },
            (None, _) if self.reads_others && self.values.get(name).is_none() => {
                self.missing(Missing::File, name)
            }
            (None, _) if self.is_without => Field::default(),
            (None, _) if self.values.get(name).is_some() => Field::default(),
            (None, _) => {
                let mut field = Field::wrong(
                    Problem::new(format!("`${name}` is a variable of a shell that is not set"))
                        .help(format!("set it above, as in: {name}=VALUE, or give it: --env {name}=VALUE")),
                );
                if let Some(unknown) = &mut field.unknown {
                    unknown.what = Missing::Unset;
                }
                field
            }
        }
    }

    /// What stands for a variable or argument of which the script says that it is not set.
    fn not_set(&self, name: &str) -> Field {
        if !self.exits_on_unset {
            return Field::default();
        }
        let mut field =
            Field::wrong(Problem::new(format!("`${name}` is not set: the script ends here (set -u)")));
        if let Some(unknown) = &mut field.unknown {
            unknown.what = Missing::Unset;
        }
        field
    }

    /// One of an array.
    pub(super) fn element(&mut self, name: &str, index: &str, place: &Place) -> Field {
        match self.values.get(name) {
            Some(Value::Map(_)) => {
                let key = self.expand_one(index, place, How::One);
                let Some(Value::Map(map)) = self.values.get(name) else { return key };
                match (map.get(&key.text).cloned(), key.unknown) {
                    (_, Some(unknown)) => Field { text: String::new(), unknown: Some(unknown) },
                    (Some(scalar), None) => self.of_scalar(scalar, name),
                    (None, None) => Field::default(),
                }
            }
            _ => {
                let index = self.calculated(index, place);
                let number: Option<i64> = index.text.parse().ok();
                let found = match (self.values.get(name), number) {
                    _ if index.unknown.is_some() => return index,
                    (Some(Value::List(list)), Some(at)) => {
                        let last = list.keys().next_back().copied().unwrap_or(-1);
                        list.get(&if at < 0 { last + 1 + at } else { at }).cloned()
                    }
                    (Some(Value::One(scalar)), Some(0)) => Some(scalar.clone()),
                    (None, _) => return self.named(name),
                    _ => None,
                };
                found.map_or_else(Field::default, |scalar| self.of_scalar(scalar, name))
            }
        }
    }

    /// All values of an array, or its indices.
    pub(super) fn elements(&self, name: &str, keys: bool) -> Vec<Field> {
        let of = |scalar: &Scalar| self.of_scalar(scalar.clone(), name);
        match (self.values.get(name), keys) {
            (Some(Value::List(list)), false) => list.values().map(of).collect(),
            (Some(Value::List(list)), true) => list.keys().map(|key| Field::known(key.to_string())).collect(),
            (Some(Value::Map(map)), _) => {
                let mut all: Vec<(&String, &Scalar)> = map.iter().collect();
                all.sort_by_key(|(key, _)| bucket(key));
                all.into_iter()
                    .map(|(key, value)| if keys { Field::known(key.as_str()) } else { of(value) })
                    .collect()
            }
            (Some(Value::One(scalar)), false) => vec![of(scalar)],
            (Some(Value::One(_)), true) => vec![Field::known("0")],
            (Some(Value::Unset), _) => Vec::new(),
            (None, _) => vec![self.named(name)],
        }
    }

    /// `${…}`
    pub(super) fn parameter(&mut self, inside: &str, place: &Place, is_quoted: bool) -> Expansion {
        let wrong = |problem: Problem| Expansion::One(Field::wrong(problem.help(NOT_RUN)));
        let not_understood = || {
            wrong(Problem::new(format!(
                "{} is a command or an expansion of a shell",
                Found(&format!("${{{inside}}}"))
            )))
        };
        // `${#A}` is a length, `${!A}` another variable.
        let prefix = inside.chars().next().filter(|c| matches!(c, '#' | '!') && inside.len() > 1);
        let body = if prefix.is_some() { &inside[1..] } else { inside };
        let offset = inside.len() - body.len();
        let length = match name_length(body) {
            0 if body.starts_with(|c: char| c.is_ascii_digit()) => {
                body.len() - body.trim_start_matches(|c: char| c.is_ascii_digit()).len()
            }
            0 => usize::from(body.starts_with(['@', '*', '#', '?', '$', '!', '-'])),
            length => length,
        };
        if length == 0 {
            return not_understood();
        }
        let name = &body[..length];
        let mut rest = &body[length..];
        let mut index = None;
        if rest.starts_with('[') {
            let mut deep = 0_usize;
            let close = rest.char_indices().find(|(_, c)| {
                deep = if *c == '[' { deep + 1 } else { deep - usize::from(*c == ']') };
                deep == 0
            });
            let Some((close, _)) = close else { return not_understood() };
            index = Some((&rest[1..close], place.at(offset + length + 1)));
            rest = &rest[close + 1..];
        }
        let place = place.at(inside.len() - rest.len());
        let is_all = matches!(index, Some(("@" | "*", _))) || matches!(name, "@" | "*");
        if is_all {
            return self
                .all_of(
                    name,
                    prefix,
                    index.is_some_and(|(index, _)| index == "*") || name == "*",
                    rest,
                    &place,
                    is_quoted,
                )
                .unwrap_or_else(not_understood);
        }
        let is_absent = self.is_absent(name, index.as_ref());
        let mut field = match (&index, name) {
            (Some((index, place)), _) => self.element(name, index, place),
            (None, name) if name.starts_with(|c: char| c.is_ascii_digit()) => {
                self.argument(name.parse().unwrap_or(usize::MAX))
            }
            (None, name) if name_length(name) > 0 => self.named(name),
            (None, name) => self.special(name),
        };
        match prefix {
            Some('#') if rest.is_empty() => {
                if field.unknown.is_none() {
                    field.text = field.text.chars().count().to_string();
                }
                return Expansion::One(field);
            }
            Some('!') if field.unknown.is_none() && name_length(&field.text) == field.text.len() => {
                field = self.named(&field.text.clone());
            }
            Some(_) => return not_understood(),
            None => {}
        }
        let target = (name_length(name) > 0 && prefix.is_none()).then_some((name, index));
        let is_absent = is_absent && prefix.is_none() || prefix.is_some() && field.text.is_empty();
        self.operated(field, is_absent, target, rest, &place, is_quoted).unwrap_or_else(not_understood)
    }

    /// `${A[@]}` and what stands behind it.
    pub(super) fn all_of(
        &mut self,
        name: &str,
        prefix: Option<char>,
        is_joined: bool,
        rest: &str,
        place: &Place,
        is_quoted: bool,
    ) -> Option<Expansion> {
        let is_arguments = matches!(name, "@" | "*");
        let mut fields = match is_arguments {
            true => match self.arguments(false) {
                Expansion::All(fields) => fields,
                one => return Some(one),
            },
            false => self.elements(name, prefix == Some('!')),
        };
        if prefix == Some('#') {
            let unknown = fields.into_iter().find(|field| {
                field.unknown.as_ref().is_some_and(|unknown| !unknown.is_named) && !self.is_without
            });
            return match unknown {
                Some(field) => Some(Expansion::One(field)),
                None => Some(Expansion::One(Field::known(
                    match is_arguments {
                        true => self.values.arguments().map_or(0, <[Scalar]>::len),
                        false => self.elements(name, false).len(),
                    }
                    .to_string(),
                ))),
            };
        }
        let slice = rest.strip_prefix(':').filter(|rest| !rest.starts_with(['-', '=', '+', '?']));
        if let Some(slice) = slice {
            let (first, count) =
                slice.split_once(':').map_or((slice, None), |(first, count)| (first, Some(count)));
            let mut number = |text: &str| self.calculated(text, place).text.parse::<i64>().ok();
            let first = number(first)?;
            let count = match count {
                Some(count) => usize::try_from(number(count)?).ok()?,
                None => usize::MAX,
            };
            // Arguments are numbered from 1.
            let skipped = match self.values.get(name) {
                // Those with an index from there on.
                Some(Value::List(list)) if !is_arguments && first >= 0 => list.range(..first).count(),
                _ => usize::try_from(first - i64::from(is_arguments)).ok()?,
            };
            fields = fields.into_iter().skip(skipped).take(count).collect();
        } else if let Some(default) = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-')) {
            if fields.is_empty() || fields.iter().any(|field| !is_set(field)) {
                return Some(Expansion::Default(default.to_owned(), place.at(rest.len() - default.len())));
            }
        } else if let Some(alternative) = rest.strip_prefix(":+").or_else(|| rest.strip_prefix('+')) {
            if fields.is_empty() || fields.iter().any(|field| !is_set(field)) {
                return Some(Expansion::All(Vec::new()));
            }
            return Some(Expansion::Default(
                alternative.to_owned(),
                place.at(rest.len() - alternative.len()),
            ));
        } else if !rest.is_empty() {
            fields = fields
                .into_iter()
                .map(|field| match self.operated(field, false, None, rest, place, is_quoted)? {
                    Expansion::One(field) => Some(field),
                    _ => None,
                })
                .collect::<Option<_>>()?;
        }
        Some(self.all(fields, is_joined))
    }

    /// What stands in place of a value, as one text.
    fn default_text(&mut self, default: &str, place: &Place, is_quoted: bool) -> Field {
        let mut fields = Fields::new(How::One, Vec::new());
        fields.quotes = Quotes::Default;
        self.fill(default, place, is_quoted, &mut fields);
        fields.open.unwrap_or_default()
    }

    /// What the operator behind the name in `${NAME…}` makes of its value; `None` if it is not understood.
    pub(super) fn operated(
        &mut self,
        field: Field,
        is_absent: bool,
        target: Option<(&str, Option<(&str, Place)>)>,
        rest: &str,
        place: &Place,
        is_quoted: bool,
    ) -> Option<Expansion> {
        if rest.is_empty() {
            return Some(Expansion::One(field));
        }
        let (tests_empty, operator) = match rest.strip_prefix(':') {
            Some(behind) if behind.starts_with(['-', '=', '+', '?']) => (true, behind),
            _ => (false, rest),
        };
        let place = &place.at(rest.len() - operator.len() + 1);
        let word = operator.get(1..).unwrap_or_default();
        // An argument that is not known is taken to be left out.
        let is_argument = field.unknown.as_ref().is_some_and(|unknown| unknown.what == Missing::Argument);
        let is_unset = !is_set(&field) || field.unknown.is_none() && field.text.is_empty() && is_absent;
        let is_null =
            is_unset || is_argument || tests_empty && field.unknown.is_none() && field.text.is_empty();
        match operator.as_bytes().first()? {
            b'-' | b'=' | b'+' | b'?' => {}
            _ if field.unknown.is_some() => {
                return Some(Expansion::One(Field { unknown: unnamed(field.unknown), ..field }));
            }
            _ => {}
        }
        Some(Expansion::One(match operator.as_bytes().first()? {
            b'-' if is_null => return Some(Expansion::Default(word.to_owned(), place.clone())),
            b'=' if is_null => {
                let value = self.default_text(word, place, is_quoted);
                match (target?, &value.unknown) {
                    ((name, None), None) => self.values.set(name, Scalar::Text(value.text.clone())),
                    ((name, Some((index, place))), None) => {
                        self.set_element(name, index, &place, Scalar::Text(value.text.clone()), false);
                    }
                    _ => {}
                }
                value
            }
            b'+' if is_null => Field::default(),
            b'+' => return Some(Expansion::Default(word.to_owned(), place.clone())),
            b'?' if is_null && !is_argument => {
                let said = self.default_text(word, place, is_quoted).text;
                Field::wrong(Problem::new(format!("the script ends here: {}", Found(&said))))
            }
            // What would stand in its place if it were empty has no other name.
            b'-' | b'=' | b'?' => field,
            b'#' | b'%' => {
                let sign = &operator[..1];
                let (is_longest, word, place) = match word.strip_prefix(sign) {
                    Some(word) => (true, word, place.at(1)),
                    None => (false, word, place.clone()),
                };
                let pattern = self.expand_one(word, &place, How::Pattern);
                if pattern.unknown.is_some() {
                    return Some(Expansion::One(pattern));
                }
                let pattern = Pattern::new(&pattern.text)?;
                if !self.is_affordable(pattern.cost(field.text.len(), false)) {
                    return None;
                }
                Field::known(match sign {
                    "#" => pattern.without_start(&field.text, is_longest),
                    _ => pattern.without_end(&field.text, is_longest),
                })
            }
            b'/' if is_unset => field,
            b'/' => {
                let (is_all, word) = word.strip_prefix('/').map_or((false, word), |word| (true, word));
                let (end, word) = match word.chars().next() {
                    Some(c @ ('#' | '%')) => (Some(c), &word[1..]),
                    _ => (None, word),
                };
                let slash = slash(word);
                let by = word.get(slash + 1..).unwrap_or_default();
                let pattern = self.expand_one(&word[..slash], place, How::Pattern);
                let by = self.expand_one(by, place, How::One);
                if let Some(unknown) = pattern.unknown.or(by.unknown) {
                    return Some(Expansion::One(Field { text: String::new(), unknown: Some(unknown) }));
                }
                // From bash 5.2 on, it may stand for what was found.
                if by.text.contains('&') {
                    return None;
                }
                let found = Pattern::new(&pattern.text)?;
                if !self.is_affordable(found.cost(field.text.len(), end.is_none())) {
                    return None;
                }
                Field::known(match end {
                    Some(_) if field.text.is_empty() && found.fits("") => by.text,
                    None if pattern.text.is_empty() => field.text,
                    None => found.replaced(&field.text, &by.text, is_all),
                    Some('#') => match found.without_start(&field.text, true) {
                        rest if rest.len() < field.text.len() || pattern.text.is_empty() => by.text + &rest,
                        _ => field.text,
                    },
                    Some(_) => match found.without_end(&field.text, true) {
                        rest if rest.len() < field.text.len() || pattern.text.is_empty() => rest + &by.text,
                        _ => field.text,
                    },
                })
            }
            b'^' if matches!(word, "" | "^") => {
                changed_case(&field.text, word.is_empty(), |c| c.to_ascii_uppercase())
            }
            b',' if matches!(word, "" | ",") => {
                changed_case(&field.text, word.is_empty(), |c| c.to_ascii_lowercase())
            }
            b':' => {
                let (first, count) =
                    word.split_once(':').map_or((word, None), |(first, count)| (first, Some(count)));
                let length = i64::try_from(field.text.chars().count()).ok()?;
                let number = |field: Field| match field.unknown {
                    None => field.text.parse::<i64>().ok(),
                    Some(_) => None,
                };
                let first = number(self.calculated(first, place))?;
                // Before the start there is nothing.
                let first = if length + first < 0 {
                    length
                } else if first < 0 {
                    length + first
                } else {
                    first
                };
                let first = first.min(length);
                let end = match count {
                    None => length,
                    Some(count) => match number(self.calculated(count, place))? {
                        count if count < 0 => (length + count).max(first),
                        count => first.saturating_add(count).min(length),
                    },
                };
                let (first, count) = (usize::try_from(first).ok()?, usize::try_from(end - first).ok()?);
                Field::known(field.text.chars().skip(first).take(count).collect::<String>())
            }
            _ => return None,
        }))
    }

    /// Whether so many comparisons are not too many for one value; they count as steps.
    fn is_affordable(&mut self, cost: usize) -> bool {
        cost < 1 << 28 && self.take_steps(cost >> 10)
    }

    /// Whether an argument is one that the script or function has not got, or a variable is unset.
    fn is_absent(&mut self, name: &str, index: Option<&(&str, Place)>) -> bool {
        if let Ok(number) = name.parse::<usize>() {
            return self.values.arguments().is_none_or(|arguments| number > arguments.len());
        }
        let Some((index, place)) = index else {
            return name_length(name) > 0 && self.values.scalar(name).is_none();
        };
        match self.values.get(name) {
            Some(Value::Map(_)) => {
                let key = self.expand_one(index, place, How::One).text;
                !matches!(self.values.get(name), Some(Value::Map(map)) if map.contains_key(&key))
            }
            // What counts on is not counted twice.
            Some(Value::List(_)) if !index.contains(['=', '+', '-']) => {
                let at = self.calculated(index, place).text.parse::<i64>();
                !matches!((self.values.get(name), at), (Some(Value::List(list)), Ok(at)) if list.contains_key(&at))
            }
            Some(Value::One(_)) => *index != "0",
            _ => true,
        }
    }
}

/// Whether a value is set, as far as is known.
fn is_set(field: &Field) -> bool {
    field.unknown.as_ref().is_none_or(|unknown| unknown.is_named || unknown.what != Missing::Unset)
}

fn changed_case(text: &str, first_only: bool, change: impl Fn(char) -> char) -> Field {
    let most = if first_only { 1 } else { usize::MAX };
    Field::known(
        text.chars().enumerate().map(|(at, c)| if at < most { change(c) } else { c }).collect::<String>(),
    )
}

/// Where the pattern of `${A/PATTERN/TEXT}` ends.
fn slash(text: &str) -> usize {
    let mut at = 0;
    while at < text.len() {
        if byte(text, at) == b'/' {
            return at;
        }
        at = scan::unit(text, at, 0).unwrap_or(text.len());
    }
    text.len()
}

/// The place of a key in bash's table, which decides the order of an associative array (hash_string of its lib, FNV-1,
/// 1,024 buckets).
fn bucket(key: &str) -> u32 {
    let hash =
        key.bytes().fold(2_166_136_261_u32, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(byte));
    hash & 1_023
}

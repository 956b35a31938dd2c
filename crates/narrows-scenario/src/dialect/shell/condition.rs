//! Conditions: `[ … ]`, `test …` and `[[ … ]]`.

use std::ops::Range;

use super::field::{Expanded, Field, How};
use super::pattern::Pattern;
use super::state::{Runner, Status};
use crate::problem::{Found, Problem};

/// Parentheses and signs within one another.
const DEEPEST: usize = 64;
/// Questions about files and terminals, which depend on the host.
const OF_HOST: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-t", "-u", "-w", "-x", "-G",
    "-L", "-N", "-O", "-S",
];

/// One of the words of a condition.
#[derive(Debug)]
enum Token {
    Word(Field),
    /// `(`, `)`, `&&`, `||`, `!`, `<` or `>`.
    Sign(&'static str),
}

const SIGNS: &[&str] = &["(", ")", "&&", "||", "!", "<", ">"];

impl Runner<'_> {
    /// Whether the words of `[[ … ]]` hold.
    pub(super) fn condition(&mut self, words: &[Range<usize>]) -> Status {
        let found = self.condition_once(words);
        if found.is_some() || self.values.arguments().is_some() && !self.reads_environment(words) {
            return found.map_or(Status::Unknown { is_condition: true }, Status::of);
        }
        match self.without(|runner| runner.condition_once(words)) {
            Some(holds) => Status::WithoutArguments(u8::from(!holds)),
            None => Status::Unknown { is_condition: true },
        }
    }

    /// Whether a word has a variable that nothing sets.
    fn reads_environment(&mut self, words: &[Range<usize>]) -> bool {
        words.iter().any(|word| {
            let field = self.one(word, How::One);
            field.unknown.is_some_and(|unknown| {
                matches!(unknown.what, super::values::Missing::Unset | super::values::Missing::Argument)
            })
        })
    }

    fn condition_once(&mut self, words: &[Range<usize>]) -> Option<bool> {
        let source = self.source.clone();
        let mut tokens = Vec::new();
        let mut is_pattern = false;
        for word in words {
            let raw = &source.text[word.clone()];
            if let Some(sign) = SIGNS.iter().find(|sign| **sign == raw) {
                tokens.push(Token::Sign(sign));
                continue;
            }
            let is_operator = matches!(raw, "=" | "==" | "!=" | "=~");
            let how = if is_pattern { How::Pattern } else { How::One };
            tokens.push(Token::Word(self.one(word, how)));
            is_pattern = is_operator && tokens.len() > 1;
        }
        let mut reader = Reader { tokens: &tokens, at: 0, is_double: true };
        let holds = reader.or(self, 0);
        if reader.at == tokens.len() { holds } else { None }
    }

    /// Whether the words of `[ … ]` or `test …` hold.
    pub(super) fn tested(&mut self, all: &[Expanded], words: &[Range<usize>]) -> Status {
        if all.iter().all(|word| word.unknown.is_none())
            && let Some(status) = self.tested_clear(all)
        {
            return status;
        }
        let found = self.tested_once(all);
        let is_clear = all.iter().all(|word| {
            word.unknown.as_ref().is_none_or(|unknown| {
                !matches!(unknown.what, super::values::Missing::Unset | super::values::Missing::Argument)
            })
        });
        if found.is_some() || is_clear {
            return found.map_or(Status::Unknown { is_condition: true }, Status::of);
        }
        let holds = self.without(|runner| {
            let all = runner.all_words(words);
            let clear = match all.iter().all(|word| word.unknown.is_none()) {
                true => runner.tested_clear(&all).and_then(Status::known),
                false => None,
            };
            clear.or_else(|| runner.tested_once(&all).map(|holds| u8::from(!holds)))
        });
        match holds {
            Some(status) => Status::WithoutArguments(status),
            None => Status::Unknown { is_condition: true },
        }
    }

    /// The status of `[ … ]` by the number of its words (POSIX.1-2017, test); `None` where that depends on more.
    fn tested_clear(&mut self, all: &[Expanded]) -> Option<Status> {
        let (first, rest) = all.split_first()?;
        let mut words: Vec<&str> = rest.iter().map(Expanded::text).collect();
        if first.text == "[" && words.pop() != Some("]") {
            return Some(Status::Known(2));
        }
        let found = tested_words(&words)?;
        if let Err(Some(wrong)) = found {
            let span = rest.iter().find(|word| word.text == wrong).map_or(first.span(), Expanded::span);
            self.wrong(Problem::new(format!("{} is no whole number", Found(wrong))), &span);
        }
        Some(found.map_or(Status::Known(2), Status::of))
    }

    fn tested_once(&mut self, all: &[Expanded]) -> Option<bool> {
        let mut rest = all.get(1..)?;
        if all.first()?.text == "[" {
            let (last, before) = rest.split_last()?;
            if last.text != "]" {
                return None;
            }
            rest = before;
        }
        let tokens: Vec<Token> = rest
            .iter()
            .map(|word| {
                match SIGNS.iter().find(|sign| **sign == word.text && matches!(**sign, "(" | ")" | "!")) {
                    // One word alone is a text.
                    Some(sign) if rest.len() > 1 => Token::Sign(sign),
                    _ => Token::Word(Field { text: word.text.clone(), unknown: word.unknown.clone() }),
                }
            })
            .collect();
        if tokens.is_empty() {
            return Some(false);
        }
        let mut reader = Reader { tokens: &tokens, at: 0, is_double: false };
        let holds = reader.or(self, 0);
        if reader.at == tokens.len() { holds } else { None }
    }
}

/// Whether the words of `[ … ]` hold; an error where they are not understood there, with the word that is no number.
fn tested_words<'w>(words: &[&'w str]) -> Option<Result<bool, Option<&'w str>>> {
    let not = |rest: &[&'w str]| Some(tested_words(rest)?.map(|holds| !holds));
    match *words {
        [] => Some(Ok(false)),
        [one] => Some(Ok(!one.is_empty())),
        ["!", one] => not(&[one]),
        ["-z", one] => Some(Ok(one.is_empty())),
        ["-n", one] => Some(Ok(!one.is_empty())),
        [flag, _] => match OF_HOST.contains(&flag) || matches!(flag, "-v" | "-o" | "-R") {
            true => None,
            false => Some(Err(None)),
        },
        [one, "-a", other] => Some(Ok(!one.is_empty() && !other.is_empty())),
        [one, "-o", other] => Some(Ok(!one.is_empty() || !other.is_empty())),
        [one, operator, other] if is_comparison(operator) && operator != "=~" => {
            let is_wrong = |text: &&&str| text.trim().parse::<i64>().is_err();
            let is_number = matches!(operator, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
            match [one, other].iter().find(is_wrong).filter(|_| is_number) {
                Some(wrong) => Some(Err(Some(*wrong).filter(|wrong| !wrong.trim().is_empty()))),
                None => match operator {
                    "=" | "==" => Some(Ok(one == other)),
                    "!=" => Some(Ok(one != other)),
                    _ => None,
                },
            }
        }
        ["!", one, other] => not(&[one, other]),
        ["(", one, ")"] => tested_words(&[one]),
        [_, _, _] => Some(Err(None)),
        ["!", one, two, three] => not(&[one, two, three]),
        ["(", one, other, ")"] => tested_words(&[one, other]),
        _ => None,
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    is_double: bool,
}

impl<'a> Reader<'a> {
    fn sign(&mut self, double: &str, single: &str) -> bool {
        let is = match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) => *sign == double,
            Some(Token::Word(field)) => !self.is_double && field.unknown.is_none() && field.text == single,
            None => false,
        };
        self.at += usize::from(is);
        is
    }

    /// `A || B`; `None` if it is not known.
    fn or(&mut self, runner: &mut Runner<'_>, depth: usize) -> Option<bool> {
        let mut holds = self.and(runner, depth);
        while self.sign("||", "-o") {
            let next = self.and(runner, depth);
            holds = match (holds, next) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), other) | (other, Some(false)) => other,
                _ => None,
            };
        }
        holds
    }

    fn and(&mut self, runner: &mut Runner<'_>, depth: usize) -> Option<bool> {
        let mut holds = self.not(runner, depth);
        while self.sign("&&", "-a") {
            let next = self.not(runner, depth);
            holds = match (holds, next) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), other) | (other, Some(true)) => other,
                _ => None,
            };
        }
        holds
    }

    fn not(&mut self, runner: &mut Runner<'_>, depth: usize) -> Option<bool> {
        if depth > DEEPEST {
            self.at = usize::MAX;
            return None;
        }
        if self.sign("!", "!") {
            return self.not(runner, depth + 1).map(|holds| !holds);
        }
        if self.sign("(", "(") {
            let holds = self.or(runner, depth + 1);
            if !self.sign(")", ")") {
                self.at = usize::MAX;
            }
            return holds;
        }
        self.one(runner)
    }

    fn word(&self, at: usize) -> Option<&'a Field> {
        match self.tokens.get(at)? {
            Token::Word(field) => Some(field),
            Token::Sign(_) => None,
        }
    }

    fn one(&mut self, runner: &mut Runner<'_>) -> Option<bool> {
        let first = self.word(self.at)?;
        let known = |field: &'a Field| field.unknown.is_none().then_some(field.text.as_str());
        // `A = B`
        let operator = match self.tokens.get(self.at + 1) {
            Some(Token::Word(field)) => field.text.as_str(),
            Some(Token::Sign(sign @ ("<" | ">"))) => sign,
            _ => "",
        };
        if is_comparison(operator)
            && let Some(second) = self.word(self.at + 2)
        {
            self.at += 3;
            return compared(known(first)?, operator, known(second)?, self.is_double, runner);
        }
        let text = first.text.as_str();
        let is_flag = first.unknown.is_none() && text.len() == 2 && text.starts_with('-');
        if let Some(second) = self.word(self.at + 1).filter(|_| is_flag) {
            self.at += 2;
            return match text {
                "-z" => known(second).map(str::is_empty),
                "-n" => known(second).map(|text| !text.is_empty()),
                // A file beside the script is there, one that it makes itself is not before.
                "-e" | "-f" | "-r" | "-s" => {
                    let file = known(second)?;
                    match runner.beside(file).filter(|file| !file.is_empty()) {
                        Some(_) => Some(true),
                        None => runner.will_make(file).then_some(false),
                    }
                }
                "-v" => {
                    let is_set = runner.values.scalar(known(second)?).is_some();
                    (is_set || runner.is_without).then_some(is_set)
                }
                _ => None,
            };
        }
        self.at += 1;
        match is_flag && (OF_HOST.contains(&text) || matches!(text, "-z" | "-n")) {
            // Without its argument, it is a text that is not empty; in `[[`, an error.
            true if self.is_double => None,
            _ => known(first).map(|text| !text.is_empty()),
        }
    }
}

fn is_comparison(operator: &str) -> bool {
    matches!(
        operator,
        "=" | "=="
            | "!="
            | "=~"
            | "<"
            | ">"
            | "-eq"
            | "-ne"
            | "-lt"
            | "-le"
            | "-gt"
            | "-ge"
            | "-nt"
            | "-ot"
            | "-ef"
    )
}

fn compared(
    one: &str,
    operator: &str,
    other: &str,
    is_double: bool,
    runner: &mut Runner<'_>,
) -> Option<bool> {
    // `[` has decimal numbers only, `[[` calculations.
    let mut number = |text: &str| match is_double {
        true => runner.calculate(text).ok(),
        false => text.trim().parse::<i64>().ok(),
    };
    Some(match operator {
        "=" | "==" if is_double => Pattern::new(other)?.fits(one),
        "!=" if is_double => !Pattern::new(other)?.fits(one),
        "=" | "==" => one == other,
        "!=" => one != other,
        "-eq" => number(one)? == number(other)?,
        "-ne" => number(one)? != number(other)?,
        "-lt" => number(one)? < number(other)?,
        "-le" => number(one)? <= number(other)?,
        "-gt" => number(one)? > number(other)?,
        "-ge" => number(one)? >= number(other)?,
        "=~" => super::regular::fits(other, one)?,
        // The order depends on the language of the host.
        _ => return None,
    })
}

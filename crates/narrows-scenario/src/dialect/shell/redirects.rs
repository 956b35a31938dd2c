//! What commands read, and where they print: redirections, here-documents, files of the script.

use std::collections::VecDeque;
use std::ops::Range;

use super::field::{Expanded, Field, Fields, How, Quotes};
use super::place::Place;
use super::programs::{self, Runs};
use super::scan::{byte, unit};
use super::state::{Flow, InputLine, Output, Runner, Status, lines_of, text_of};
use super::tree::{Command, Document, Node, Redirect};
use super::values::{Missing, Scalar};
use super::{Call, Role};
use crate::files;

/// The longest file that a script writes.
const LONGEST_WRITTEN: usize = 1 << 20;
/// The longest script that is searched for all that it does with a file.
const LONGEST_SEARCHED: usize = 1 << 16;
/// The file that has nothing.
const NOTHING: &str = "/dev/null";
/// Programs that make files.
const MAKERS: &[&str] = &[
    "wget", "curl", "git", "cp", "mv", "ln", "tar", "unzip", "install", "tee", "scp", "rsync", "make", "sed",
    "cat", "python", "python3", "perl", ">", ">>",
];
/// The folder of the kernel's settings.
const SETTINGS: &str = "/proc/sys/";

impl Runner<'_> {
    pub(super) fn command(&mut self, command: &Command) -> Flow {
        if self.is_over {
            return Flow::Exit;
        }
        if command.redirects.is_empty() {
            return self.node(command);
        }
        let (input, output) = self.redirected(&command.redirects);
        // `$(< FILE)` is the text of the file.
        let is_file = matches!(&command.node, Node::Simple { assignments, words } if assignments.is_empty() && words.is_empty());
        if let (Some(input), Some(own), true) = (&input, &mut self.output, is_file) {
            match input {
                Some(lines) => own.text += &text_of(lines),
                None => own.is_unknown = true,
            }
        }
        let before = input.map(|input| std::mem::replace(&mut self.input, input));
        let is_kept = output.as_ref().is_some_and(|output| output.is_some())
            || output.is_some() && self.output.is_some();
        let printed = is_kept.then(|| self.output.replace(Output::default()));
        let was_piped = self.is_piped;
        self.is_piped &= before.is_none();
        let mut flow = self.node(command);
        self.is_piped = was_piped;
        if let Some(printed) = printed {
            let own = std::mem::replace(&mut self.output, printed).unwrap_or_default();
            match output.flatten() {
                Some((file, _)) if file.starts_with(SETTINGS) && flow == Flow::On => {
                    flow = self.set_of_kernel(&file[SETTINGS.len()..], &own, &command.span);
                }
                Some((file, appends)) => self.write(file, appends, own),
                None => {}
            }
        }
        if let Some(before) = before {
            self.input = before;
        }
        flow
    }

    /// Writes what has been printed to a file, which the script may read again.
    pub(super) fn write(&mut self, file: String, appends: bool, printed: Output) {
        let before = if appends { self.beside(&file) } else { Some(String::new()) };
        let text = before.filter(|_| !printed.is_unknown).map(|before| before + &printed.text);
        let file = file.strip_prefix("./").map_or(file.clone(), str::to_owned);
        self.written.insert(file, text.filter(|text| text.len() < LONGEST_WRITTEN));
    }

    /// `echo 1 > /proc/sys/net/ipv4/ip_forward` is `sysctl -w net.ipv4.ip_forward=1`.
    fn set_of_kernel(&mut self, key: &str, value: &Output, span: &Range<usize>) -> Flow {
        if value.is_unknown {
            return Flow::On;
        }
        let setting = format!("{}={}", key.replace('/', "."), value.text.trim_end());
        let word = |text: &str| Expanded {
            text: text.to_owned(),
            span: self.place(span),
            unknown: None,
            vanishes: false,
        };
        let words = ["sysctl", "-w", &setting].map(word);
        self.program(&words, span)
    }

    /// What redirections change: what can be read, and whether what is printed goes elsewhere, to a file with that name.
    #[expect(clippy::type_complexity, reason = "read once, at its only call")]
    pub(super) fn redirected(
        &mut self,
        redirects: &[Redirect],
    ) -> (Option<Option<VecDeque<InputLine>>>, Option<Option<(String, bool)>>) {
        let (mut input, mut output) = (None, None);
        for redirect in redirects {
            match redirect {
                Redirect::Input(word) => {
                    let file = self.one(word, How::One);
                    let place = Place::Whole(self.place(word));
                    let text = file.unknown.is_none().then(|| self.beside(&file.text)).flatten();
                    input = Some(text.map(|text| lines_of(&text, &place)));
                }
                Redirect::HereString(word) => {
                    let field = self.one(word, How::One);
                    let place = Place::Whole(self.place(word));
                    input = Some(field.unknown.is_none().then(|| lines_of(&(field.text + "\n"), &place)));
                }
                Redirect::Here(document) => input = Some(Some(self.document(document))),
                Redirect::Output { target, appends } => {
                    let file = self.one(target, How::One);
                    let is_file = file.unknown.is_none()
                        && !file.text.starts_with("/dev/")
                        && !file.text.chars().all(|c| c.is_ascii_digit() || c == '-');
                    output = Some(is_file.then_some((file.text, *appends)));
                }
                Redirect::Other => {}
            }
        }
        (input, output)
    }

    /// The lines of a here-document.
    pub(super) fn document(&mut self, document: &Document) -> VecDeque<InputLine> {
        let source = self.source.clone();
        let mut at = document.lines.start;
        let mut all: VecDeque<InputLine> = VecDeque::new();
        let mut is_continued = false;
        for line in source.text[document.lines.clone()].split_inclusive('\n') {
            let bare = line.trim_end_matches(['\n', '\r']);
            let text = if document.is_indented { bare.trim_start_matches('\t') } else { bare };
            let place = source.place.at(at + bare.len() - text.len());
            at += line.len();
            let backslashes = text.len() - text.trim_end_matches('\\').len();
            let joins = std::mem::replace(&mut is_continued, backslashes % 2 == 1 && document.is_expanded);
            let text = if is_continued { &text[..text.len() - 1] } else { text };
            let is_plain = !document.is_expanded || !text.contains(['$', '`', '\\']);
            let mut line = InputLine { text: text.to_owned(), place, unknown: None, is_open: false };
            if !is_plain {
                let whole = line.place.of(&(0..text.len()));
                let field = self.document_line(text, &Place::Whole(whole.clone()));
                line.text = field.text;
                match field.unknown {
                    Some(unknown) if !self.is_unclear(&unknown) || unknown.what == Missing::Unset => {
                        self.wrong(unknown.problem, &whole);
                    }
                    unknown => line.unknown = unknown,
                }
                line.place = Place::Whole(whole);
            }
            match all.back_mut().filter(|_| joins) {
                Some(before) => before.join(&line),
                None => all.push_back(line),
            }
        }
        all
    }

    /// A line of a here-document, in which quotes are text.
    pub(super) fn document_line(&mut self, text: &str, place: &Place) -> Field {
        let mut at = 0;
        while at < text.len() {
            at = match byte(text, at) {
                b'\'' | b'"' => at + 1,
                _ => match unit(text, at, 0) {
                    Ok(end) => end,
                    Err(problem) => return Field::wrong(problem),
                },
            };
        }
        let mut fields = Fields::new(How::One, Vec::new());
        fields.quotes = Quotes::Document;
        self.fill(text, place, true, &mut fields);
        fields.open.unwrap_or_default()
    }

    /// The script that a command runs here and that is not in the folder of this one, if this one does nothing with it but
    /// run it: something else might have made it.
    pub(super) fn missing_script<'a>(&self, all: &'a [Expanded], known: &[&str]) -> Option<&'a Expanded> {
        let is_here = self.elsewhere.is_empty() && !self.has_moved;
        let run = programs::runs(known).filter(|run| run.what == Runs::File && is_here)?;
        let word = all.get(run.word).filter(|word| word.unknown.is_none())?;
        let name = word.text.strip_prefix("./").unwrap_or(&word.text);
        let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains('/');
        let text = &self.source.text;
        let may_make =
            |line: &str| line.contains(name) && line.split_whitespace().any(|word| MAKERS.contains(&word));
        let is_made =
            text.len() > LONGEST_SEARCHED || self.written.contains_key(name) || text.lines().any(may_make);
        (is_name && !is_made && files::is_absent(self.start.path?.parent()?, name)).then_some(word)
    }

    /// Whether the script makes this file itself, as a note that it has run, and has not done so yet.
    pub(super) fn will_make(&mut self, file: &str) -> bool {
        let text = &self.source.text;
        let length = text.len();
        if length > LONGEST_SEARCHED || self.written.contains_key(file) {
            return false;
        }
        let is_it = |word: &str| {
            let word = word.trim_matches(['"', '\'', ';']);
            let variable = word.strip_prefix('$').map(|name| name.trim_matches(['{', '}']));
            let value = variable.and_then(|name| self.values.scalar(name));
            word == file || matches!(value, Some(Scalar::Text(value)) if value == file)
        };
        let mut before = "";
        let makes = text.split_whitespace().any(|word| {
            let is_made = matches!(std::mem::replace(&mut before, word), "touch" | ">") && is_it(word);
            is_made || word.strip_prefix('>').is_some_and(is_it)
        });
        self.take_steps(length / 64);
        makes
    }

    /// The text of a file in the folder of the script.
    pub(super) fn beside(&self, name: &str) -> Option<String> {
        if name == NOTHING {
            return Some(String::new());
        }
        let name = name.strip_prefix("./").unwrap_or(name);
        if let Some(written) = self.written.get(name) {
            return written.clone();
        }
        files::inside(self.start.path?.parent()?, name)
    }

    /// The lines that a command executes itself.
    pub(super) fn batch(&mut self, all: VecDeque<InputLine>) -> Flow {
        let mut lines: Vec<InputLine> = Vec::new();
        for line in all {
            match lines.last_mut().filter(|last| last.text.ends_with('\\')) {
                Some(before) => {
                    before.text.pop();
                    before.join(&line);
                }
                None => lines.push(line),
            }
        }
        for line in lines {
            let code = line.text.split('#').next().unwrap_or_default();
            if code.trim().is_empty() {
                continue;
            }
            let start = code.len() - code.trim_start().len();
            let span = line.place.of(&(start..code.trim_end().len()));
            let words: Vec<Expanded> = words_of_line(code)
                .into_iter()
                .map(|word| Expanded {
                    text: code[word.clone()].trim_matches(['"', '\'']).to_owned(),
                    span: line.place.of(&word),
                    unknown: line.unknown.clone().filter(|_| code[word.clone()].contains('$')),
                    vanishes: false,
                })
                .collect();
            match self.answered(&Call::new(&words, span, Role::Line)) {
                Flow::On => {}
                flow => return flow,
            }
        }
        self.status = Status::SUCCESS;
        Flow::On
    }
}

/// The words of a line that a program reads, with their quotes.
fn words_of_line(line: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            at += blank;
            continue;
        }
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let length = match quote.and_then(|quote| rest[1..].find(quote)) {
            Some(close) => close + 2,
            None => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        all.push(at..at + length);
        at += length;
    }
    all
}

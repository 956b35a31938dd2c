//! How far something long is, on a terminal, and a Ctrl-C that it hears of.

use std::io::{self, IsTerminal, Write, stderr};
use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use narrows_io::interrupt;
use narrows_io::terminal::WindowSize;

use crate::output::Failure;

/// What is over sooner shows nothing.
const SOON: Duration = Duration::from_millis(500);
/// As often as a person reads.
const PER_SECOND: u8 = 10;

/// A line on the terminal that says how far it is, and how long it takes yet. It goes when this does.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    is_shown: bool,
}

impl Progress {
    /// Nothing is shown in a pipe or where nobody wants it, and nothing before half a second.
    pub(crate) fn new(quiet: bool) -> Self {
        let wanted = !quiet && stderr().is_terminal();
        let bar = wanted.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()));
        Self { bar, is_shown: false }
    }

    /// Says that it has come to `done` of `total`, where that is known, and in words what it does now.
    pub(crate) fn tell(&mut self, done: u64, total: Option<u64>, what: &str) {
        let Some(bar) = &self.bar else { return };
        if bar.length() != total || !self.is_shown {
            bar.set_style(style(total.is_some()));
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
        }
        bar.set_position(done);
        if bar.message() != what {
            bar.set_message(what.to_owned());
        }
        if !self.is_shown && bar.elapsed() >= SOON {
            self.is_shown = true;
            bar.set_draw_target(terminal());
            bar.tick();
        }
    }

    /// A line for what says nothing of itself while it goes on: a thread of its own shows that time goes by.
    pub(crate) fn waiting(quiet: bool, what: &str) -> Self {
        let progress = Self::new(quiet);
        if let Some(bar) = &progress.bar {
            bar.set_style(style(false));
            bar.set_message(what.to_owned());
            bar.set_draw_target(terminal());
            bar.enable_steady_tick(SOON);
        }
        progress
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn terminal() -> ProgressDrawTarget {
    ProgressDrawTarget::term_like_with_hz(Box::new(Terminal), PER_SECOND)
}

/// The standard error, a little narrower than it is: behind a line as wide as the terminal the `^C` that the terminal shows
/// would begin another one, and that would be cleared instead of ours.
#[derive(Debug)]
struct Terminal;

impl Terminal {
    /// What a `^C` takes, and a cursor.
    const LEFT_FREE: u16 = 4;
    const USUAL: u16 = 80;

    fn write(&self, text: std::fmt::Arguments<'_>) -> io::Result<()> {
        stderr().write_fmt(text)
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        let width = WindowSize::of(&stderr()).map_or(0, |size| size.columns);
        let width = if width == 0 { Self::USUAL } else { width };
        width.saturating_sub(Self::LEFT_FREE).max(1)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        if lines == 0 { Ok(()) } else { self.write(format_args!("\x1b[{lines}A")) }
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        if lines == 0 { Ok(()) } else { self.write(format_args!("\x1b[{lines}B")) }
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        if columns == 0 { Ok(()) } else { self.write(format_args!("\x1b[{columns}C")) }
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        if columns == 0 { Ok(()) } else { self.write(format_args!("\x1b[{columns}D")) }
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write(format_args!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.write(format_args!("{text}"))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write(format_args!("\r\x1b[2K"))
    }

    fn flush(&self) -> io::Result<()> {
        stderr().flush()
    }
}

fn style(has_end: bool) -> ProgressStyle {
    let template = match has_end {
        true => "[{bar:30}] {percent:>3} %, {eta} left: {msg}",
        false => "{elapsed}: {msg}",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    style.progress_chars("=> ")
}

/// Something long that computes: its progress, and whether it is asked to end.
pub(crate) struct Long {
    progress: Progress,
}

impl Long {
    /// From here on the first Ctrl-C is for who asks [`Long::tell`]; the second ends the program at once.
    pub(crate) fn start(quiet: bool) -> Result<Self, Failure> {
        interrupt::catch().map_err(|cause| Failure::Other(format!("cannot catch signals: {cause}")))?;
        Ok(Self { progress: Progress::new(quiet) })
    }

    /// Whether to go on.
    pub(crate) fn tell(&mut self, done: u64, total: Option<u64>, what: &str) -> ControlFlow<()> {
        if interrupt::asked().is_some() {
            return ControlFlow::Break(());
        }
        self.progress.tell(done, total, what);
        ControlFlow::Continue(())
    }

    /// The same for the lab.
    pub(crate) fn step(&mut self, step: &narrows_lab::Step) -> ControlFlow<()> {
        self.tell(step.done as u64, Some(step.total as u64), &step.what)
    }
}

/// What a program exits with that a signal has asked to end; as a shell says it.
pub(crate) fn interrupted() -> Option<u8> {
    // Signals go up to 64.
    interrupt::asked().map(|signal| 128 + signal as u8)
}

/// The exit status, unless a signal has asked for an end. Says on the standard error that not all is there.
pub(crate) fn status_or_interrupted(status: u8, what: &str) -> u8 {
    let Some(interrupted) = interrupted() else { return status };
    // Where nobody listens, the exit status says it.
    let _ = writeln!(stderr(), "narrows: interrupted: {what}");
    interrupted
}

/// `--quiet` of commands that print no report.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct Quiet {
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

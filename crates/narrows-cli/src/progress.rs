//! Progress of long operations on a terminal, and handling of Ctrl-C.

use std::io::{self, IsTerminal, Write, stderr};
use std::ops::ControlFlow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use narrows_io::interrupt;
use narrows_io::terminal::WindowSize;

use crate::output::Failure;

/// Shorter operations show no progress.
const SOON: Duration = Duration::from_millis(500);
/// Updates per second.
const PER_SECOND: u8 = 10;

/// A terminal line with progress and remaining time. It is cleared when this is dropped.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    is_shown: bool,
}

impl Progress {
    /// Shows nothing in a pipe or with `quiet`, and nothing in the first half second.
    pub(crate) fn new(quiet: bool) -> Self {
        let wanted = !quiet && stderr().is_terminal();
        let bar = wanted.then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()));
        Self { bar, is_shown: false }
    }

    /// Reports progress: `done` of `total`, if known, and the current activity.
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

    /// A line for an operation that does not report progress: a separate thread shows the elapsed time.
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

/// Stderr, a little narrower than it is: after a line as wide as the terminal, the `^C` that the terminal
/// shows would start a new line, and that line would be cleared instead of ours.
#[derive(Debug)]
struct Terminal;

impl Terminal {
    /// Space for `^C` and a cursor.
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

/// A long computation: its progress, and whether it should stop.
pub(crate) struct Long {
    progress: Progress,
}

impl Long {
    /// From here on, the first Ctrl-C makes [`Long::tell`] return a stop; the second one ends the program
    /// at once.
    pub(crate) fn start(quiet: bool) -> Result<Self, Failure> {
        interrupt::catch().map_err(|cause| Failure::Other(format!("cannot catch signals: {cause}")))?;
        Ok(Self { progress: Progress::new(quiet) })
    }

    /// Whether to continue.
    pub(crate) fn tell(&mut self, done: u64, total: Option<u64>, what: &str) -> ControlFlow<()> {
        if interrupt::asked().is_some() {
            return ControlFlow::Break(());
        }
        self.progress.tell(done, total, what);
        ControlFlow::Continue(())
    }

    /// Same for the lab.
    pub(crate) fn step(&mut self, step: &narrows_lab::Step) -> ControlFlow<()> {
        self.tell(step.done as u64, Some(step.total as u64), &step.what)
    }
}

/// Exit status of a program that a signal has asked to end, as in a shell.
pub(crate) fn interrupted() -> Option<u8> {
    // Signal numbers are at most 64.
    interrupt::asked().map(|signal| 128 + signal as u8)
}

/// The exit status, unless a signal has asked to end. Then reports on stderr that the results are
/// incomplete.
pub(crate) fn status_or_interrupted(status: u8, what: &str) -> u8 {
    let Some(interrupted) = interrupted() else { return status };
    // If stderr is closed, the exit status is enough.
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

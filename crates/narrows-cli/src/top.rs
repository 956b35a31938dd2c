//! `narrows top`: a live view of a run, which can also change settings.
//!
//! It is a client of the control socket: it queries like `narrows stats` and changes settings like `narrows
//! set`. The packet threads are not aware of it.

mod app;
mod editor;
mod graph;
mod group;
mod keys;
mod lateness;
mod model;
mod order;
mod source;
mod units;
mod view;

use std::env;
use std::io::{IsTerminal, stdout};
use std::mem::ManuallyDrop;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use clap::Args;
use narrows_io::wait::EndSignals;
use ratatui::DefaultTerminal;

use crate::output::Failure;
use app::{App, Effect};
use source::{Event, Target};
use view::Theme;

/// The arguments of `narrows top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows top
  narrows top dsl
  NO_COLOR=1 narrows top --run 4711")]
pub(crate) struct Top {
    /// Run, by name or number, or a group of runs such as a lab [default: the only one, or the one around this shell]
    #[arg(value_name = "RUN", conflicts_with = "run")]
    which: Option<String>,
    /// Same as RUN
    #[arg(long)]
    run: Option<String>,
}

pub(crate) fn top(args: &Top) -> Result<u8, Failure> {
    let which = args.which.as_deref().or(args.run.as_deref());
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if !stdout().is_terminal() || is_dumb {
        let run = which.map_or(String::new(), |run| format!(" --run {run}"));
        return Err(Failure::Other(format!(
            "top needs a terminal that it can draw on: narrows stats --watch{run} prints the same figures as lines, with --json \
             for programs"
        )));
    }
    let target = Target::find(which)?;
    let (events, happens) = channel();
    let failed = |what: &'static str| move |cause| Failure::Other(format!("cannot {what}: {cause}"));
    // Set up before other threads exist, which would get the signals.
    let signals = EndSignals::catch().map_err(failed("take signals"))?;
    let terminal = ratatui::try_init().map_err(failed("draw on the terminal"))?;
    let mut screen = Screen(ManuallyDrop::new(terminal));

    let (hurry, hurried) = sync_channel(1);
    let (wants, wanted) = channel();
    let start = |work: Box<dyn FnOnce() + Send>| drop(thread::spawn(work));
    let (to, of) = (events.clone(), target.clone());
    start(Box::new(move || match of {
        Target::Run(run) => source::ask(*run, &hurried, &to),
        Target::Group(name) => source::ask_group(&name, &hurried, &to),
    }));
    let (to, of) = (events.clone(), target.clone());
    start(Box::new(move || source::change(&of, &wanted, &to)));
    let to = events.clone();
    start(Box::new(move || drop(source::signals(signals, &to))));
    start(Box::new(move || source::keys(&events)));

    let colours = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut app = App::new(target.about());
    loop {
        let terminal = &mut screen.0;
        terminal
            .draw(|frame| view::draw(frame, &mut app, Theme { colours }, view::now()))
            .map_err(failed("draw on the terminal"))?;
        let Ok(first) = happens.recv() else { return Ok(0) };
        // Process all pending events before drawing.
        for event in std::iter::once(first).chain(happens.try_iter()) {
            let effect = match event {
                Event::Key(key) => keys::press(&mut app, key),
                event => app.take(event),
            };
            match effect {
                Some(Effect::Quit) => return Ok(0),
                // One pending request is enough.
                Some(Effect::Look) => drop(hurry.try_send(())),
                Some(Effect::Change(change)) => drop(wants.send(change)),
                None => {}
            }
        }
    }
}

/// The terminal, which is restored on every exit; on a panic by the hook of `try_init`, before the message.
///
/// It is not dropped: its `drop` prints an error if the terminal is gone, when nobody can read it.
struct Screen(ManuallyDrop<DefaultTerminal>);

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

#[cfg(test)]
mod tests;

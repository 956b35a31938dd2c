//! The program's input and output, carried over the serial line: pipes if the caller has pipes or files, a terminal
//! if the caller has one.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use narrows_io::terminal::{self, PseudoTerminal, Settings, WindowSize};
use narrows_io::wait::{Waiting, wait};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::Pid;

use crate::channel::{FromGuest, FromHost, Incoming, Output};
use crate::plan::Plan;

/// The line's device.
const LINE: &str = "/dev/ttyS0";
/// How many bytes are carried at once.
const CHUNK: usize = 1 << 14;
/// How often, in virtual time, streams are checked when nothing happens: typed input arrives with the guest's next
/// event. Except at a prompt, virtual time passes quickly, so this is soon.
const TICK: std::time::Duration = std::time::Duration::from_secs(1);
/// The same at a shell's prompt, where virtual time follows real time.
const TICK_AT_PROMPT: std::time::Duration = std::time::Duration::from_millis(10);

/// The program's input.
enum Input {
    /// It is complete.
    File(File),
    Nothing,
    /// It is received from the host and written to this pipe.
    Stream(Option<PipeWriter>),
    Terminal,
}

pub(super) struct Streams {
    line: File,
    line_reader: File,
    incoming: Incoming,
    input: Input,
    /// Received bytes that the program has not read.
    untaken: VecDeque<u8>,
    input_ended: bool,
    output: Option<PipeReader>,
    error: Option<PipeReader>,
    /// Whether both outputs are the same.
    joined: bool,
    pair: Option<PseudoTerminal>,
    wants: [bool; 2],
    ticks: Option<TimerFd>,
    prompting: bool,
    watches_prompt: bool,
    buffer: Vec<u8>,
}

impl Streams {
    /// Opens the line, and the streams that the plan specifies.
    pub(super) fn open(plan: &Plan, file: Option<File>) -> io::Result<Self> {
        let line = File::options().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(LINE)?;
        Settings::of(&line)?.raw().set(&line)?;
        let line_reader =
            unblocked(File::options().read(true).custom_flags(OFlag::O_NOCTTY.bits()).open(LINE)?)?;
        let terminal = |name| Ok::<_, io::Error>(plan.text(name)? == "terminal");
        let input = match (plan.text("input")?.to_str(), file) {
            (Some("terminal"), _) => Input::Terminal,
            (Some("file"), Some(mut file)) => {
                file.seek(SeekFrom::Start(plan.number("offset")?))?;
                Input::File(file)
            }
            (Some("stream"), _) => Input::Stream(None),
            _ => Input::Nothing,
        };
        let wants = [terminal("output")?, terminal("error")?];
        let typed = matches!(input, Input::Terminal);
        let pair = if typed || wants.contains(&true) { Some(PseudoTerminal::open()?) } else { None };
        if let Some(pair) = &pair {
            let size =
                WindowSize { rows: plan.number("rows")? as u16, columns: plan.number("columns")? as u16 };
            size.set(&pair.person)?;
            if !typed {
                // The caller's terminal is then not raw: it converts line ends itself.
                Settings::of(&pair.programs)?.plain_output().set(&pair.programs)?;
            }
            unblock(&pair.person)?;
        }
        let ticks = if typed { Some(ticks()?) } else { None };
        Ok(Self {
            line,
            line_reader,
            incoming: Incoming::default(),
            input,
            untaken: VecDeque::new(),
            input_ended: false,
            output: None,
            error: None,
            joined: plan.has("joined"),
            pair,
            wants,
            ticks,
            prompting: false,
            watches_prompt: plan.has("prompts"),
            buffer: vec![0; CHUNK],
        })
    }

    /// Connects the program to its ends.
    pub(super) fn connect(&mut self, command: &mut Command) -> io::Result<()> {
        let stdin = match &mut self.input {
            Input::File(file) => file.try_clone()?.into(),
            Input::Nothing => Stdio::null(),
            Input::Terminal => self.programs()?,
            Input::Stream(writer) => {
                let (reader, far) = io::pipe()?;
                unblock(&far)?;
                *writer = Some(far);
                reader.into()
            }
        };
        command.stdin(stdin);
        let [output, error] = self.wants;
        if self.joined {
            let (reader, writer) = unblocked_pipe()?;
            command.stdout(writer.try_clone()?).stderr(writer);
            self.output = Some(reader);
            return self.lead(command);
        }
        if output {
            command.stdout(self.programs()?);
        } else {
            let (reader, writer) = unblocked_pipe()?;
            command.stdout(writer);
            self.output = Some(reader);
        }
        if error {
            command.stderr(self.programs()?);
        } else {
            let (reader, writer) = unblocked_pipe()?;
            command.stderr(writer);
            self.error = Some(reader);
        }
        self.lead(command)
    }

    fn lead(&self, command: &mut Command) -> io::Result<()> {
        match &self.pair {
            Some(pair) => terminal::lead_session(command, pair.programs.try_clone()?),
            None => narrows_io::child_lifetime::without_terminal(command),
        }
        Ok(())
    }

    fn programs(&self) -> io::Result<Stdio> {
        let pair = self.pair.as_ref().ok_or_else(|| io::Error::other("the plan names no terminal"))?;
        Ok(pair.programs.try_clone()?.into())
    }

    /// The program has its ends; our copies of them were closed with the command that held them, and the file is
    /// closed here.
    pub(super) fn started(&mut self) {
        if matches!(self.input, Input::File(_)) {
            self.input = Input::Nothing;
        }
    }

    pub(super) fn say(&mut self, message: &FromGuest) -> io::Result<()> {
        self.line.write_all(&message.encode())
    }

    /// Sleeps until there is something to carry, or a child has ended.
    pub(super) fn wait(&self, children: &SignalFd) -> io::Result<()> {
        let mut descriptors = vec![Waiting::readable(children), Waiting::readable(&self.line_reader)];
        descriptors.extend(self.output.as_ref().map(Waiting::readable));
        descriptors.extend(self.error.as_ref().map(Waiting::readable));
        descriptors.extend(self.pair.as_ref().map(|pair| Waiting::readable(&pair.person)));
        descriptors.extend(self.ticks.as_ref().map(Waiting::readable));
        match (&self.input, &self.pair) {
            (Input::Stream(Some(writer)), _) if !self.untaken.is_empty() => {
                descriptors.push(Waiting::writable(writer));
            }
            (Input::Terminal, Some(pair)) if !self.untaken.is_empty() => {
                descriptors.push(Waiting::writable(&pair.person));
            }
            _ => {}
        }
        wait(&mut descriptors, None)?;
        Ok(())
    }

    /// Carries pending data, in both directions.
    pub(super) fn carry(&mut self, child: Pid) -> io::Result<()> {
        self.hear(child)?;
        self.feed()?;
        self.collect()?;
        if let Some(ticks) = &self.ticks {
            // Only readable after a tick; no other error is possible.
            let _ = nix::unistd::read(ticks, &mut [0; 8]);
            self.look_at_prompt(child)?;
        }
        Ok(())
    }

    /// Carries what the program wrote before it ended. Programs that it left behind are not waited for.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        self.collect()
    }

    fn hear(&mut self, child: Pid) -> io::Result<()> {
        loop {
            match self.line_reader.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(count) => self.incoming.push(&self.buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while let Some(message) = self.incoming.host_message().map_err(io::Error::other)? {
            match message {
                FromHost::Input(bytes) => self.untaken.extend(bytes),
                FromHost::InputEnded => self.input_ended = true,
                FromHost::Signal(signal) => {
                    if let Ok(signal) = Signal::try_from(i32::from(signal)) {
                        // Fails if it has ended; its own children are up to it.
                        let _ = kill(child, signal);
                    }
                }
                FromHost::Window(rows, columns) => {
                    if let Some(pair) = &self.pair {
                        WindowSize { rows, columns }.set(&pair.person)?;
                    }
                }
                // A program that writes to a pipe without a reader gets an error.
                FromHost::Closed(Output::Standard) => self.output = None,
                FromHost::Closed(Output::Error) => self.error = None,
                FromHost::Closed(Output::Terminal) => {}
            }
        }
        Ok(())
    }

    fn feed(&mut self) -> io::Result<()> {
        let mut taken = 0;
        while !self.untaken.is_empty() {
            let (bytes, _) = self.untaken.as_slices();
            let written = match (&mut self.input, &self.pair) {
                (Input::Stream(Some(writer)), _) => writer.write(bytes),
                (Input::Terminal, Some(pair)) => nix::unistd::write(&pair.person, bytes).map_err(Into::into),
                // Nobody reads it.
                _ => Ok(bytes.len()),
            };
            match written {
                Ok(count) => {
                    self.untaken.drain(..count);
                    taken += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.input = Input::Nothing,
                Err(error) => return Err(error),
            }
        }
        if self.input_ended && self.untaken.is_empty() && matches!(self.input, Input::Stream(_)) {
            self.input = Input::Nothing;
        }
        if taken > 0 {
            self.say(&FromGuest::Taken(taken as u32))?; // the host sends less than 4 GiB ahead
        }
        Ok(())
    }

    fn collect(&mut self) -> io::Result<()> {
        for which in [Output::Standard, Output::Error, Output::Terminal] {
            loop {
                let result = match which {
                    Output::Standard => read(self.output.as_ref(), &mut self.buffer),
                    Output::Error => read(self.error.as_ref(), &mut self.buffer),
                    Output::Terminal => read(self.pair.as_ref().map(|pair| &pair.person), &mut self.buffer),
                };
                match result {
                    Ok(Some(0)) => {
                        self.close(which);
                        break;
                    }
                    Ok(Some(count)) => self.say(&FromGuest::Wrote(which, self.buffer[..count].to_vec()))?,
                    Ok(None) => break,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // No program has the pseudo-terminal open any more.
                    Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => break,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, which: Output) {
        match which {
            Output::Standard => self.output = None,
            Output::Error => self.error = None,
            Output::Terminal => {}
        }
    }

    /// Whether a shell of the run is alone in the terminal's foreground, which means that it waits for the user.
    fn look_at_prompt(&mut self, child: Pid) -> io::Result<()> {
        let Some(pair) = self.pair.as_ref().filter(|_| self.watches_prompt) else { return Ok(()) };
        let front = terminal::foreground(&pair.person).unwrap_or(0);
        let prompting = front == child.as_raw() as u32 || parent(front) == Some(child.as_raw());
        if prompting != self.prompting {
            self.prompting = prompting;
            if let Some(ticks) = &self.ticks {
                tick(ticks, if prompting { TICK_AT_PROMPT } else { TICK })?;
            }
            self.say(&FromGuest::Prompting(prompting))?;
        }
        Ok(())
    }
}

fn parent(process: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may itself contain brackets and spaces; after it: state, parent, …
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(1)?.parse().ok()
}

fn read(from: Option<&impl AsFd>, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    from.map(|from| nix::unistd::read(from, buffer).map_err(Into::into)).transpose()
}

fn ticks() -> io::Result<TimerFd> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
    tick(&timer, TICK)?;
    Ok(timer)
}

fn tick(timer: &TimerFd, every: std::time::Duration) -> io::Result<()> {
    Ok(timer.set(Expiration::Interval(TimeSpec::from(every)), TimerSetTimeFlags::empty())?)
}

/// A pipe from the program, with a non-blocking reading end.
fn unblocked_pipe() -> io::Result<(io::PipeReader, io::PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    unblock(&reader)?;
    Ok((reader, writer))
}

fn unblock(descriptor: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFL)?);
    fcntl(descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

fn unblocked(file: File) -> io::Result<File> {
    unblock(&file)?;
    Ok(file)
}

//! Output at the end of a run, and `narrows report`, which shows stored reports.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{env, fs, io, process};

use clap::{Args, ValueEnum};
use narrows_io::clock::clock_realtime;
use narrows_io::terminal::WindowSize;
use narrows_live::run_record::ago;
use narrows_report::{CaptureReport, Look, Report};
use narrows_scenario::{printable, read_bytes};

use crate::json::Json;
use crate::output::{Failure, print, print_coloured, write_json};
use crate::outputs;
use crate::state;

/// The variable with the default report form.
const ENVIRONMENT: &str = "NARROWS_REPORT";
/// Maximum number of stored reports.
const MOST_KEPT: usize = 20;
/// Maximum size of a stored report.
const LONGEST: usize = 16 << 20;

/// The arguments of `narrows report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  narrows report
  narrows report --list
  narrows report 2 --json | jq .pairs")]
pub(crate) struct ShowReport {
    /// Report written by --json, - for stdin, or a number as in --list [default: the last run's]
    #[arg(value_name = "RUN.json|N")]
    which: Option<String>,
    /// List the kept reports, newest first
    #[arg(long, conflicts_with_all = ["which", "to", "summary"])]
    list: bool,
    #[command(flatten)]
    json: Json,
    /// Print the summary, at most twelve lines
    #[arg(long, conflicts_with = "to")]
    summary: bool,
}

/// What is said at the end.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) json: Json,
    /// How much to print at the end; `narrows report` prints all of it later [default: $NARROWS_REPORT, or summary]
    #[arg(long, value_name = "HOW", value_enum, conflicts_with = "quiet")]
    pub(crate) report: Option<ReportForm>,
    /// Print no report: --report none
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// How much of a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportForm {
    /// All of it
    Full,
    /// At most twelve lines
    Summary,
    /// Nothing
    None,
}

pub(crate) fn report(args: &ShowReport) -> Result<u8, Failure> {
    let folder = Kept::find();
    if args.list {
        return list(&folder);
    }
    let (which, json) = args.meant()?;
    json.probe()?;
    let file = match which.as_deref() {
        Some("-") => None,
        Some(number) if is_number(number) => Some(folder.numbered(number)?),
        Some(file) => Some(file.into()),
        None => match folder.reports().into_iter().next() {
            Some(newest) => Some(newest),
            None => return Err(Failure::Other(format!("no report to show: {}", folder.count()))),
        },
    };
    outputs::check(&[("--json", json.path())], file.as_slice())?;
    let report = match &file {
        Some(file) => read(file)?,
        None => parse(
            Path::new("stdin"),
            &read_bytes("-".as_ref()).map_err(|cause| reading("stdin".as_ref(), &cause))?,
        )?,
    };
    if let Some(path) = json.path() {
        write_json(path, &report)?;
    }
    if json.takes_stdout() {
        return Ok(0);
    }
    match args.summary {
        true => print_coloured(&report.summary(look(&stdout())).to_string())?,
        false => print(&report.text().to_string())?,
    }
    Ok(0)
}

impl ShowReport {
    /// Selects the report and its JSON output. `--json 3` meant report 3 before `--json` could be followed
    /// by a file.
    fn meant(&self) -> Result<(Option<String>, Json), Failure> {
        let Some(after) = self.json.path().filter(|_| self.which.is_none() && !self.json.takes_stdout())
        else {
            return Ok((self.which.clone(), self.json.clone()));
        };
        let name = after.display().to_string();
        if after.exists() {
            return Err(Failure::Other(format!(
                "--json {name}: is that the report to show, or where to write the last one? To show it: narrows report {name} \
                 --json; to write there: narrows report 1 --json {name}"
            )));
        }
        match name.parse::<usize>() {
            Ok(_) => Ok((Some(name), Json::to_stdout())),
            Err(_) => Ok((None, self.json.clone())),
        }
    }
}

fn list(folder: &Kept) -> Result<u8, Failure> {
    let kept = folder.reports();
    if kept.is_empty() {
        print(&format!("{}\n", folder.count()))?;
    }
    for (number, path) in (1..).zip(&kept) {
        let line = match read(path) {
            Ok(report) => format!("{}: {}", report.title, report.trust_line()),
            Err(error) => error.to_string(),
        };
        let age = fs::metadata(path).and_then(|data| data.modified()).map_or(String::new(), age);
        print(&format!("{number:>3}  {age:>12}  {line}\n"))?;
    }
    Ok(0)
}

/// Whether this names a kept report, and no file.
pub(crate) fn is_number(word: &str) -> bool {
    word.parse::<usize>().is_ok() && !Path::new(word).exists()
}

/// Unix time.
fn now() -> Duration {
    Duration::from_nanos(clock_realtime())
}

/// `3 min ago`.
fn age(then: SystemTime) -> String {
    let then = then.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    ago(u64::try_from(then.as_nanos()).unwrap_or(u64::MAX))
}

fn reading(path: &Path, cause: &io::Error) -> Failure {
    Failure::Other(format!("the report {} cannot be read: {cause}", path.display()))
}

pub(crate) fn read(path: &Path) -> Result<Report, Failure> {
    parse(path, &read_bytes(path).map_err(|cause| reading(path, &cause))?)
}

pub(crate) fn parse(path: &Path, text: &[u8]) -> Result<Report, Failure> {
    serde_json::from_slice(text).map_err(|error| {
        let what = "a report as `narrows run --json FILE` writes it";
        Failure::Other(format!("{}: {error}; expected {what}", path.display()))
    })
}

/// The folder of stored reports; none if the user has no state folder.
pub(crate) struct Kept(Option<PathBuf>);

impl Kept {
    /// `narrows/reports` in the user's state folder. Must be called before entering a user namespace.
    pub(crate) fn find() -> Self {
        Self(state::folder().map(|folder| folder.join("reports")))
    }

    /// The reports in this folder.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self(Some(folder))
    }

    /// The folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// The report with this number in the list.
    pub(crate) fn numbered(&self, number: &str) -> Result<PathBuf, Failure> {
        let at = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        at.and_then(|at| self.reports().into_iter().nth(at))
            .ok_or_else(|| Failure::Other(format!("there is no kept report {number}: {}", self.count())))
    }

    /// The report of the run with this number that started at this Unix time in nanoseconds.
    pub(crate) fn of_run(&self, number: u32, since_ns: u64) -> Option<Report> {
        let name = |path: &PathBuf| path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let is_its = |path: &PathBuf| {
            let name = name(path)?;
            let (at, run) = name.split_once('-')?;
            (run == number.to_string() && at.parse::<u64>().ok()? >= since_ns / 1_000_000).then_some(())
        };
        let found = self.reports().into_iter().find(|path| is_its(path).is_some())?;
        read(&found).ok()
    }

    /// Stores a report, and at most [`MOST_KEPT`] in all. Returns whether it is stored; a failure does not
    /// affect the run.
    pub(crate) fn keep(&self, report: &Report) -> bool {
        let Some(folder) = &self.0 else { return false };
        self.try_keep(folder, report).is_ok()
    }

    fn try_keep(&self, folder: &Path, report: &Report) -> io::Result<()> {
        let text = serde_json::to_string(report)?;
        if text.len() > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let name = format!("{:013}-{}", now().as_millis(), process::id());
        // Written in full, or not at all.
        let unfinished = folder.join(format!("{name}.part"));
        fs::write(&unfinished, text)
            .and_then(|()| fs::rename(&unfinished, folder.join(format!("{name}.json"))))
            .inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
        for old in self.reports().iter().skip(MOST_KEPT) {
            // A concurrent run may have removed it.
            let _ = fs::remove_file(old);
        }
        Ok(())
    }

    /// The stored reports, newest first.
    fn reports(&self) -> Vec<PathBuf> {
        let entries = self.0.as_ref().and_then(|folder| fs::read_dir(folder).ok());
        let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let mut all: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        all.sort();
        all.reverse();
        all
    }

    /// Number and folder of the reports, for errors.
    fn count(&self) -> String {
        match &self.0 {
            Some(folder) => format!("{} are kept in {}", self.reports().len(), folder.display()),
            None => "none are kept, as neither XDG_STATE_HOME nor HOME names a folder of this user".into(),
        }
    }
}

/// The form of the report to print.
pub(crate) fn form(args: &ReportArgs) -> Result<ReportForm, Failure> {
    if args.quiet {
        return Ok(ReportForm::None);
    }
    match (args.report, env::var(ENVIRONMENT).as_deref()) {
        (Some(form), _) => Ok(form),
        (None, Ok("full")) => Ok(ReportForm::Full),
        (None, Ok("none")) => Ok(ReportForm::None),
        (None, Ok("summary" | "") | Err(_)) => Ok(ReportForm::Summary),
        (None, Ok(other)) => {
            Err(Failure::Other(format!("{ENVIRONMENT}={other}: expected full, summary or none")))
        }
    }
}

/// Ends a live run: writes the report where requested, stores it, and prints it to stderr, as stdout
/// belongs to the program. A report that cannot be written is printed nevertheless. An incomplete capture, series or
/// packets file is an error as well, unless its reader closed it.
pub(crate) fn conclude(report: &Report, args: &ReportArgs, kept: &Kept) -> Result<(), Failure> {
    let written = args.json.path().map_or(Ok(()), |path| write_json(path, report));
    let is_kept = kept.keep(report);
    // A closed stderr is ignored.
    let _ = match form(args)? {
        ReportForm::None => Ok(()),
        ReportForm::Full => write!(stderr(), "\n{}", printable(&report.text().to_string())),
        ReportForm::Summary => {
            let more = if is_kept { "(narrows report shows everything)\n" } else { "" };
            write!(stderr(), "\n{}{more}", report.summary(look(&stderr())))
        }
    };
    let capture =
        report.capture.as_ref().filter(|capture| capture.error.is_some() && !capture.reader_is_gone);
    let lacking = capture.map(CaptureReport::sentence).or_else(|| report.unwritten.first().cloned());
    match lacking {
        Some(sentence) => written.and(Err(Failure::Other(sentence))),
        None => written,
    }
}

/// Style of a summary on this output.
pub(crate) fn look(to: &(impl IsTerminal + std::os::fd::AsFd)) -> Look {
    if !to.is_terminal() {
        return Look::default();
    }
    let plain = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    let width = WindowSize::of(to).ok().map(|size| usize::from(size.columns)).filter(|&columns| columns > 0);
    Look { width: width.unwrap_or(Look::default().width), colour: !plain }
}

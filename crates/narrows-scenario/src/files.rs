//! Files that a scenario names: samples, tables, patterns, traces.
//!
//! Names are relative to the scenario's folder. Each file is read once. Its name then means the same
//! contents for the lifetime of the scenario, even if the file changes, so that changing one part of a
//! value does not load other samples, and a run can be replayed from what was read.

use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::embedded::preset_trace;
use crate::node::Node;
use crate::problem::{Found, Problem, ScenarioError};
use crate::tables::TableError;
use crate::trace::{Reading, Trace};

/// Maximum size of a file. Guards against a mistyped name, for example that of a disk image.
pub const MOST_BYTES: u64 = 64 << 20;

/// Maximum length of a scenario or script: some hundred thousand lines.
pub const LONGEST_TEXT: u64 = 16 << 20;

/// The longest script of tc or ipfw: some million commands.
pub const LONGEST_SCRIPT: u64 = 128 << 20;

/// Reads a scenario or script by name; returns its text and its name. The file may be a pipe; `-` is the
/// standard input.
///
/// # Errors
/// If the file cannot be read, is not text, or is longer than [`LONGEST_TEXT`], as an endless device is.
pub fn read_text(path: &Path, what: &str) -> Result<(String, String), ScenarioError> {
    bounded(path, what, LONGEST_TEXT, false)
}

/// As [`read_text`], for a script of tc or ipfw, which may have up to [`LONGEST_SCRIPT`] bytes.
///
/// # Errors
/// As [`read_text`].
pub fn read_script(path: &Path) -> Result<(String, String), ScenarioError> {
    bounded(path, "script", LONGEST_SCRIPT, true)
}

fn bounded(path: &Path, what: &str, most: u64, is_lossy: bool) -> Result<(String, String), ScenarioError> {
    let file = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
    text_of(path, most, is_lossy).map(|text| (text, file.clone())).map_err(|why| {
        let problem = Problem::new(format!("the {what} `{file}` cannot be read: {why}"));
        ScenarioError::new(&file, "", vec![problem])
    })
}

/// The longest file beside a script that it reads.
const LONGEST_BESIDE: u64 = 1 << 20;

/// Whether there is nothing of this name in a folder.
pub(crate) fn is_absent(folder: &Path, name: &str) -> bool {
    let found = folder.join(name).symlink_metadata();
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The text of a file that a script names, if it is in the folder of the script.
pub(crate) fn inside(folder: &Path, name: &str) -> Option<String> {
    let path = Path::new(name);
    let inside = path.strip_prefix(folder).ok().filter(|_| !folder.as_os_str().is_empty()).unwrap_or(path);
    if !inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A link may lead out of it.
    let (folder, file) = (folder.canonicalize().ok()?, folder.join(inside).canonicalize().ok()?);
    if !file.starts_with(&folder) || !file.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(LONGEST_BESIDE + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LONGEST_BESIDE).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a file of any kind; `-` is the standard input.
///
/// # Errors
/// If the file cannot be read, or is larger than [`MOST_BYTES`], as an endless device is.
pub fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let file: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(path)?),
    };
    let mut contents = Vec::new();
    // A regular file says its size.
    if std::fs::metadata(path).map_or(0, |data| data.len()) <= MOST_BYTES {
        file.take(MOST_BYTES + 1).read_to_end(&mut contents)?;
        if contents.len() as u64 <= MOST_BYTES {
            return Ok(contents);
        }
    }
    Err(std::io::Error::other(format!("it is larger than {} MiB", MOST_BYTES >> 20)))
}

/// With `is_lossy`, what is not UTF-8, as comments of old scripts are, becomes `\u{fffd}`.
fn text_of(path: &Path, most: u64, is_lossy: bool) -> Result<String, String> {
    let why = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        _ => error.to_string(),
    };
    let file: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(std::io::stdin()),
        _ => Box::new(std::fs::File::open(path).map_err(why)?),
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(why)?;
    if bytes.len() as u64 > most {
        return Err(format!("it is longer than {} MiB", most >> 20));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if is_lossy && !error.as_bytes().contains(&0) => {
            Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        Err(_) => Err("it is not UTF-8 text".into()),
    }
}

/// The source of the files that a scenario names, and a cache of those read so far. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Folder that names are relative to; `None` if all contents are given in memory.
    folder: Option<PathBuf>,
    /// Whether none may be opened now. Clones do not share this.
    closed: bool,
    read: Arc<Mutex<Vec<NamedFile>>>,
    traces: Arc<Mutex<Vec<KnownTrace>>>,
}

/// A parsed trace. A long trace takes a second to parse. A running link that starts to follow the trace, or
/// follows it from another position, cannot wait that long.
#[derive(Clone, Debug)]
struct KnownTrace {
    file: NamedFile,
    reading: Reading,
    trace: Arc<Trace>,
}

/// A file that a scenario names, with its contents. Cheap to clone.
#[derive(Clone)]
pub struct NamedFile {
    /// The name in the scenario.
    pub name: Arc<str>,
    /// The contents.
    pub contents: Arc<[u8]>,
}

impl PartialEq for NamedFile {
    fn eq(&self, other: &Self) -> bool {
        let is_the_same = Arc::ptr_eq(&self.contents, &other.contents);
        self.name == other.name && (is_the_same || self.contents == other.contents)
    }
}

impl Eq for NamedFile {}

impl std::fmt::Debug for NamedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.contents.len())
    }
}

/// The source of files does not count in comparisons of scenarios; the values made from files compare their
/// contents.
impl PartialEq for Files {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Files {
    /// Files relative to the folder of this scenario; a name may lead out of the folder.
    pub fn beside(scenario: impl AsRef<Path>) -> Self {
        let folder = scenario.as_ref().parent().unwrap_or(Path::new(""));
        Self { folder: Some(folder.into()), ..Self::default() }
    }

    /// These files only; nothing is read from disk.
    ///
    /// ```
    /// # use narrows_scenario::{Files, Scenario};
    /// let text = r#"
    ///     [hosts.a]
    ///     [hosts.b]
    ///     [links.l]
    ///     between = ["a", "b"]
    ///     delay = { samples = { file = "measured.txt", unit = "ms" } }
    /// "#;
    /// let files = Files::given([("measured.txt", b"10\n12\n11\n".to_vec())]);
    /// let scenario = Scenario::parse_with(text, "net.toml", files)?;
    /// assert_eq!(scenario.files()[0].name.as_ref(), "measured.txt");
    /// # Ok::<(), narrows_scenario::ScenarioError>(())
    /// ```
    pub fn given<N: Into<Arc<str>>>(contents: impl IntoIterator<Item = (N, Vec<u8>)>) -> Self {
        let files = Self::default();
        for (name, contents) in contents {
            files.add(name, contents);
        }
        files
    }

    /// Sets the contents of a file, as if it had just been read. If the name already has contents, they
    /// stay.
    pub fn add(&self, name: impl Into<Arc<str>>, contents: impl Into<Arc<[u8]>>) {
        let file = NamedFile { name: name.into(), contents: contents.into() };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if !read.iter().any(|known| known.name == file.name) {
            read.push(file);
        }
    }

    /// Whether files that have not been read before may be opened. Clones made before keep what they had.
    pub(crate) fn open(&mut self, may: bool) {
        self.closed = !may;
    }

    /// All files read so far, in the order of their first use.
    pub fn all(&self) -> Vec<NamedFile> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there is a file with this name, including empty and unreadable files.
    pub(crate) fn has(&self, name: &str) -> bool {
        let folder = self.folder.as_ref().filter(|_| !self.closed);
        let on_disk = || folder.is_some_and(|folder| folder.join(name).is_file());
        let is_read = || self.all().iter().any(|file| *file.name == *name);
        !name.is_empty() && (is_read() || preset_trace(name).is_some() || on_disk())
    }

    /// Returns the file with this name.
    fn file(&self, name: &str) -> Result<NamedFile, String> {
        if let Some(file) = self.all().into_iter().find(|file| *file.name == *name) {
            return Ok(file);
        }
        if let Some(contents) = preset_trace(name) {
            self.add(name, contents.as_bytes());
            return self.file(name);
        }
        if self.closed {
            return Err("only files that the scenario uses already may be named here".into());
        }
        let Some(folder) = &self.folder else {
            return Err("it is not among the files that the scenario included".into());
        };
        let contents = read(&folder.join(name))?;
        self.add(name, contents);
        self.all().into_iter().find(|file| *file.name == *name).ok_or_else(|| "it cannot be kept".into())
    }

    /// Reads the file that a value names.
    pub(crate) fn read(&self, node: &Node) -> Result<NamedFile, Problem> {
        let name = match node.text("the name of a file")?.trim() {
            "" => return Err(node.expected("the name of a file")),
            name => name,
        };
        self.file(name).map_err(|why| {
            Problem::new(format!("the file {} cannot be read: {why}", Found(name))).at(&node.span)
        })
    }

    /// Reads the file that a value names and parses it with `parse`. Errors show the place in both files.
    pub(crate) fn parse<T>(
        &self,
        node: &Node,
        parse: impl FnOnce(&NamedFile) -> Result<T, ScenarioError>,
    ) -> Result<(NamedFile, T), Problem> {
        let file = self.read(node)?;
        let parsed = parse(&file).map_err(|error| error.into_problem().at(&node.span))?;
        Ok((file, parsed))
    }

    /// Reads the trace that a value names. A trace that was read before is not parsed again.
    pub(crate) fn trace(&self, node: &Node, reading: Reading) -> Result<(NamedFile, Arc<Trace>), Problem> {
        let file = self.read(node)?;
        let known = || self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known().iter().find(|known| known.file == file && known.reading == reading) {
            return Ok((file, known.trace.clone()));
        }
        let read = |file: &NamedFile| Trace::read_as(&file.name, &file.contents, &reading);
        let (file, trace) = self.parse(node, read)?;
        let trace = Arc::new(trace);
        known().push(KnownTrace { file: file.clone(), reading, trace: trace.clone() });
        Ok((file, trace))
    }

    /// Same for a file of numbers.
    pub(crate) fn table<T>(
        &self,
        node: &Node,
        parse: impl FnOnce(&NamedFile) -> Result<T, TableError>,
    ) -> Result<(NamedFile, T), Problem> {
        let file = self.read(node)?;
        let parsed = parse(&file).map_err(|error| {
            let text = String::from_utf8_lossy(&file.contents);
            let line = error.line().and_then(|number| Some((number, text.lines().nth(number - 1)?)));
            match line {
                Some((number, line)) => Problem::new(error.what()).on_line(&file.name, number, line),
                None => Problem::new(error.to_string()),
            }
            .at(&node.span)
        })?;
        Ok((file, parsed))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let why = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("no such file: {}", path.display()),
        _ => error.to_string(),
    };
    // Opening a pipe waits for its writer, and reading a device may never end.
    if !std::fs::metadata(path).map_err(why)?.is_file() {
        return Err("it is not a regular file".into());
    }
    let file = std::fs::File::open(path).map_err(why)?;
    let mut contents = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut contents).map_err(why)?;
    match contents.len() as u64 {
        0..=MOST_BYTES => Ok(contents),
        _ => Err(format!("it is larger than {} MiB", MOST_BYTES >> 20)),
    }
}

//! Progress of a build.

/// A step of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The source package is downloaded.
    Download,
    /// The tree is unpacked, or copied, and edited.
    Unpack,
    /// The configuration is created.
    Configure,
    /// The sources are compiled and linked.
    Compile,
    /// The kernel is moved into the store.
    Keep,
}

impl Step {
    /// In one word.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Download => "downloading",
            Self::Unpack => "unpacking",
            Self::Configure => "configuring",
            Self::Compile => "compiling",
            Self::Keep => "putting it in place",
        }
    }
}

/// A progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A step begins.
    Begins(Step),
    /// This many files have been compiled by this build.
    Compiled(u32),
}

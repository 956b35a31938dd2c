//! What a build tells whoever watches.

/// A part of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The source package is fetched.
    Download,
    /// The tree is unpacked, or copied, and edited.
    Unpack,
    /// The configuration is made.
    Configure,
    /// The sources are compiled and linked.
    Compile,
    /// The kernel is put where kernels are kept.
    Keep,
}

impl Step {
    /// In a word.
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

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A part begins.
    Begins(Step),
    /// So many files are compiled by this build.
    Compiled(u32),
}

//! What the tests share.

use std::path::{Path, PathBuf};

/// A folder of the test's own, empty.
pub(crate) fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{}: {error}", path.display()),
        _ => {}
    }
    std::fs::create_dir_all(&path).expect("the build folder can be written");
    path
}

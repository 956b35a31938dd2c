//! `narrows lab`: tells where the published evaluations of schedulers are now.

use crate::output::Failure;

/// The message for users of the old name.
pub(crate) fn lab() -> Failure {
    Failure::Other(
        "evaluations that were published are programs of their own, apart from narrows: in its source tree,\n  cargo run --release -p narrows-dbhpd -- --out dbhpd\nis what `narrows lab dbhpd --out dbhpd` was (docs/dbhpd-tail.md)"
            .into(),
    )
}

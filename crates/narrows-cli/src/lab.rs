//! `narrows lab`, which says where published evaluations of schedulers are now.

use crate::output::Failure;

/// What somebody asks for who knows it by its old name.
pub(crate) fn lab() -> Failure {
    Failure::Other(
        "evaluations that were published are programs of their own, apart from narrows: in its source tree,\n  cargo run --release -p narrows-dbhpd -- --out dbhpd\nis what `narrows lab dbhpd --out dbhpd` was (docs/dbhpd-tail.md)"
            .into(),
    )
}

//! A panic that ends.
//!
//! A user-mode kernel that has panicked sends itself `SIGABRT` until that ends it. As the first process of a namespace, which
//! takes everything with it when it goes, it is spared by its own signals and would do so for ever: it exits instead.

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "a panic that ends",
    unneeded: &[],
    files: &[(
        "arch/um/os-Linux/util.c",
        &[(
            "\t\tif (kill(getpid(), SIGABRT) < 0)\n",
            "\t\tif (getpid() == 1 /* narrows */ || kill(getpid(), SIGABRT) < 0)\n",
        )],
    )],
};

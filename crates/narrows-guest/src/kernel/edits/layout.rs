//! The same memory at every boot.
//!
//! A user-mode kernel lays its memory out behind its own, where the host's address randomisation has put the end of its
//! data: how much memory the guest has, and with it how long its hash tables are, would differ from boot to boot. The
//! kernel starts itself again without randomisation, unless the host forbids that. From 6.13 on it does so by itself.

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "the same memory at every boot",
    unneeded: &[("arch/um/os-Linux/main.c", "PER_LINUX | ADDR_NO_RANDOMIZE")],
    files: &[(
        "arch/um/os-Linux/main.c",
        &[
            ("#include <sys/resource.h>\n", "#include <sys/personality.h>\n#include <sys/resource.h>\n"),
            (
                "\tint ret, i, err;

\tset_stklim();
",
                "\tint ret, i, err;
\tstatic char self[4096];

\t/* narrows: the same layout, and with it the same memory, at every boot */
\tret = personality(0xffffffff);
\tif (ret >= 0 && !(ret & ADDR_NO_RANDOMIZE) &&
\t    personality(ret | ADDR_NO_RANDOMIZE) >= 0 &&
\t    (personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
\t\ti = readlink(\"/proc/self/exe\", self, sizeof(self) - 1);
\t\tif (i > 0) {
\t\t\tself[i] = 0;
\t\t\texecve(self, argv, envp);
\t\t}
\t}

\tset_stklim();
",
            ),
        ],
    )],
};

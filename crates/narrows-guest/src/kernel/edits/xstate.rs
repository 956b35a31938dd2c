//! Processors whose extended state is longer than the kernel's buffer for it.
//!
//! Up to 6.12, a user-mode kernel keeps 2,696 bytes of a process's extended state (all up to the protection keys) and sets
//! it with that length. A host whose processor has AMX has 11,008 bytes, gives as many as one asks for, but takes nothing
//! short of the whole: the kernel would end as its first process begins. Here the rest is set to zero. Nothing is lost:
//! what lies there (AMX) is a program's only with the host's permission for that very process (`arch_prctl`), which a
//! guest's program cannot ask for. From 6.13 on the kernel's buffer is as long as the host says, which `host_fp_size`
//! tells.

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "hosts with AMX",
    unneeded: &[("arch/x86/um/os-Linux/registers.c", "host_fp_size")],
    files: &[(
        "arch/x86/um/os-Linux/registers.c",
        &[
            ("#include <stdlib.h>\n", "#include <stdlib.h>\n#include <string.h>\n"),
            (
                "\t\tiov.iov_base = fp_regs;
\t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);
\t\tif (ptrace(PTRACE_SETREGSET,",
                "\t\t/*
\t\t * narrows: the host takes a whole xstate only. What lies beyond
\t\t * FP_SIZE is AMX's, which no guest program can be permitted:
\t\t * zero, and of the components only those before it are named
\t\t * (512 bytes in: 0 to 7, 9 and 19).
\t\t */
\t\tstatic unsigned long whole[16384 / sizeof(unsigned long)];

\t\tmemcpy(whole, fp_regs, FP_SIZE * sizeof(unsigned long));
\t\twhole[512 / sizeof(unsigned long)] &= 0x802ffUL;
\t\tiov.iov_base = whole;
\t\tiov.iov_len = sizeof(whole);
\t\tif (ptrace(PTRACE_SETREGSET,",
            ),
        ],
    )],
};

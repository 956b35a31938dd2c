//! Input that comes while the kernel waits.
//!
//! While a user-mode kernel waits for the controller of its clock, interrupts are off, and input is to be handled afterwards.
//! Older kernels, 6.1 among them, ask the host at once whose input it is, which tells them once, and once more afterwards, when
//! it has nothing to tell: what is typed then is not read before more comes at a better moment. Here they keep in mind what they
//! were told. Later kernels do (`pending_event`).

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "input that comes while the kernel waits",
    unneeded: &[("arch/um/kernel/irq.c", "pending_event")],
    files: &[(
        "arch/um/kernel/irq.c",
        &[
            (
                "\tbool wakeup;\n",
                "\tbool wakeup;\n\tbool narrows_told; /* that it has input, which was not handled */\n",
            ),
            (
                "static bool irqs_suspended;\n",
                "static bool irqs_suspended;\nstatic bool narrows_told; /* of some */\n",
            ),
            (
                "\t\tmark_sigio_pending();\n",
                "\t\treg->narrows_told = narrows_told = true;\n\t\tmark_sigio_pending();\n",
            ),
            (
                "\twhile (1) {\n\t\t/* This is now lockless",
                "\tif (narrows_told && !timetravel_handlers_only) {
\t\tnarrows_told = false;
\t\tlist_for_each_entry(irq_entry, &active_fds, list) {
\t\t\tfor (i = 0; i < NUM_IRQ_TYPES; i++) {
\t\t\t\tstruct irq_reg *reg = &irq_entry->reg[i];

\t\t\t\tif (!reg->narrows_told)
\t\t\t\t\tcontinue;
\t\t\t\treg->narrows_told = false;
\t\t\t\tif (reg->events)
\t\t\t\t\tirq_io_loop(reg, regs);
\t\t\t}
\t\t}
\t}

\twhile (1) {\n\t\t/* This is now lockless",
            ),
        ],
    )],
};

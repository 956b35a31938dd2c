//! Floating-point registers that stay where they are.
//!
//! Where a user-mode kernel runs programs by ptrace (before 6.16, always), it takes over all registers of a process at each
//! system call and sets them again after it. The floating-point ones are a third of what a system call costs, and hardly
//! ever wanted. With these edits they stay in the host's process, and the kernel keeps in mind whose they are: it takes them
//! over when another thread is to run there, before it handles a signal, and where a system call wants them (that makes
//! or ends processes, replaces the program, returns from a signal, or is traced). What the kernel itself runs in that
//! process, to map memory, puts them back.

use super::Edit;

const PROCESS: &str = "arch/um/os-Linux/skas/process.c";

pub(super) const EDIT: Edit = Edit {
    purpose: "floating-point registers that stay where they are",
    // Newer kernels have programs stop themselves, and never move those registers. Older ones make processes out of those of
    // others, which would have to be looked after, too.
    unneeded: &[(PROCESS, "using_seccomp"), (PROCESS, "copy_context_skas0")],
    files: &[
        (
            "arch/x86/um/shared/sysdep/ptrace.h",
            &[(
                "\tint is_user;\n",
                "\tint is_user;\n\tint fp_at; /* narrows: the process that has what fp is to hold, or 0 */\n",
            )],
        ),
        (
            "arch/um/include/shared/skas/mm_id.h",
            &[(
                "\tint syscall_data_len;\n",
                "\tint syscall_data_len;\n\tstruct uml_pt_regs *fp_of; /* narrows: whose fp_at is pid */\n",
            )],
        ),
        (
            "arch/um/kernel/skas/mmu.c",
            &[(
                "\tnew_id->stack = stack;\n",
                "\tnew_id->stack = stack;\n\tnew_id->fp_of = NULL; /* narrows */\n",
            )],
        ),
        (
            PROCESS,
            &[
                (
                    "/* narrows: of arch/um/kernel/time.c */\n",
                    "/* narrows: takes over what they were left at, by a thread of this process */
void narrows_fp_take(struct uml_pt_regs *regs);

void narrows_fp_take(struct uml_pt_regs *regs)
{
	int pid = regs->fp_at;

	if (!pid)
		return;
	regs->fp_at = 0;
	current_mm_id()->fp_of = NULL;
	if (get_fp_registers(pid, regs->fp)) {
		printk(UM_KERN_ERR \"%s - get_fp_registers failed, errno = %d\\n\",
		       __func__, errno);
		fatal_sigsegv();
	}
}

/* narrows: of arch/um/kernel/signal.c */
int narrows_fp_stays(long syscall);

/* narrows: of arch/um/kernel/time.c */
",
                ),
                (
                    "\t\tif (put_fp_registers(pid, regs->fp)) {\n",
                    "\t\tif (regs->fp_at != pid && current_mm_id()->fp_of)
			narrows_fp_take(current_mm_id()->fp_of);
		if (regs->fp_at != pid && put_fp_registers(pid, regs->fp)) {
",
                ),
                (
                    "\t\tif (get_fp_registers(pid, regs->fp)) {\n",
                    "\t\tregs->fp_at = 0;
		current_mm_id()->fp_of = NULL;
		if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP + 0x80 &&
		    narrows_fp_stays(PT_SYSCALL_NR(regs->gp))) {
			regs->fp_at = pid;
			current_mm_id()->fp_of = regs;
		}
		if (!regs->fp_at && get_fp_registers(pid, regs->fp)) {
",
                ),
            ],
        ),
        (
            "arch/um/kernel/signal.c",
            &[
                (
                    "void do_signal(struct pt_regs *regs)\n",
                    "/* narrows: of arch/um/os-Linux/skas/process.c */
void narrows_fp_take(struct uml_pt_regs *regs);

/* narrows: whether nobody wants them before the program goes on */
int narrows_fp_stays(long syscall);

int narrows_fp_stays(long syscall)
{
	switch (syscall) {
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
	case __NR_execve:
	case __NR_execveat:
	case __NR_exit:
	case __NR_exit_group:
	case __NR_rt_sigreturn:
		return 0;
	}
	return !current->ptrace;
}

void do_signal(struct pt_regs *regs)
",
                ),
                (
                    "\twhile (get_signal(&ksig)) {\n",
                    "\t/* narrows: the handler's frame wants them, and a thread that ends here leaves none */
	narrows_fp_take(&regs->regs);

	while (get_signal(&ksig)) {
",
                ),
            ],
        ),
        (
            "arch/um/os-Linux/skas/mem.c",
            &[
                (
                    "\terr = ptrace(PTRACE_CONT, pid, 0, 0);\n",
                    "\t/* narrows: the program's own are there, maybe */
	if (get_fp_registers(pid, narrows_fp))
		panic(\"cannot read floating-point registers of %d\\n\", pid);

	err = ptrace(PTRACE_CONT, pid, 0, 0);
",
                ),
                (
                    "\twait_stub_done(pid);\n",
                    "\twait_stub_done(pid);

	if (put_fp_registers(pid, narrows_fp))
		panic(\"cannot set floating-point registers of %d\\n\", pid);
",
                ),
                (
                    "static inline long do_syscall_stub(",
                    "static unsigned long narrows_fp[FP_SIZE];

static inline long do_syscall_stub(",
                ),
            ],
        ),
    ],
};

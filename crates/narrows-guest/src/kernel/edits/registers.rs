//! Floating-point registers that stay where they are.
//!
//! Where a user-mode kernel runs programs by ptrace (before 6.16, always), it takes over all registers of a process at each system
//! call and sets them again after it. The floating-point ones are most of that, a third of what a system call costs, and
//! hardly ever wanted. With these edits they stay in the host's process as long as nobody else can want them: the
//! process has no other thread and is not traced, and the call makes no process, replaces no program and returns from no
//! signal. They are taken over before a signal is handled. What the kernel itself runs in that process (to map memory)
//! puts them back.

use super::Edit;

/// Newer kernels have programs stop themselves, by seccomp, and never move those registers.
const PROCESS: &str = "arch/um/os-Linux/skas/process.c";

pub(super) const EDIT: Edit = Edit {
    purpose: "floating-point registers that stay where they are",
    unneeded: Some((PROCESS, "using_seccomp")),
    files: &[
        (
            "arch/x86/um/shared/sysdep/ptrace.h",
            &[(
                "\tint is_user;\n",
                "\tint is_user;\n\tint fp_at; /* narrows: the process that has what fp is to hold, or 0 */\n",
            )],
        ),
        (
            PROCESS,
            &[
                (
                    "/* narrows: of arch/um/kernel/time.c */\n",
                    "/* narrows: takes over what they were left at */
void narrows_fp_take(struct uml_pt_regs *regs);

void narrows_fp_take(struct uml_pt_regs *regs)
{
	if (regs->fp_at && get_fp_registers(regs->fp_at, regs->fp)) {
		printk(UM_KERN_ERR \"%s - get_fp_registers failed, errno = %d\\n\",
		       __func__, errno);
		fatal_sigsegv();
	}
	regs->fp_at = 0;
}

/* narrows: of arch/um/kernel/process.c */
int narrows_fp_stays(long syscall);

/* narrows: of arch/um/kernel/time.c */
",
                ),
                (
                    "\t\tif (put_fp_registers(pid, regs->fp)) {\n",
                    "\t\tif (regs->fp_at != pid && put_fp_registers(pid, regs->fp)) {\n",
                ),
                (
                    "\t\tif (get_fp_registers(pid, regs->fp)) {\n",
                    "\t\tregs->fp_at = 0;
		if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP + 0x80 &&
		    narrows_fp_stays(PT_SYSCALL_NR(regs->gp)))
			regs->fp_at = pid;
		if (!regs->fp_at && get_fp_registers(pid, regs->fp)) {
",
                ),
            ],
        ),
        (
            "arch/um/kernel/process.c",
            &[
                (
                    "void interrupt_end(void)\n",
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
	case __NR_rt_sigreturn:
		return 0;
	}
	return !current->ptrace && atomic_read(&current->mm->mm_users) == 1;
}

void interrupt_end(void)
",
                ),
                ("\t\t\tdo_signal(regs);\n", "\t\t\tnarrows_fp_take(&regs->regs), do_signal(regs);\n"),
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

use super::*;
use crate::kernel::temporary::Folder;

const EXAMPLE: Edit = Edit {
    purpose: "an example",
    unneeded: &[("other/file.c", "does_it_itself")],
    patch: "--- a/some/file.c
+++ b/some/file.c
@@ -1,1 +1,2 @@
 int a;
+int b;
@@ -4,1 +5,1 @@
-	return a;
+	return a + b;
--- a/more/file.c
+++ b/more/file.c
@@ -1,1 +1,1 @@
-one
+two
",
};

const BEFORE: &str = "int a;\nint f(void)\n{\n\treturn a;\n}\n";
const AFTER: &str = "int a;\nint b;\nint f(void)\n{\n\treturn a + b;\n}\n";

/// A tree of files with these texts.
fn tree(files: &[(&str, &str)]) -> Folder {
    let tree = Folder::new();
    for (file, text) in files {
        let path = tree.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    tree
}

fn example(some: &str) -> Folder {
    tree(&[("some/file.c", some), ("more/file.c", "one"), ("other/file.c", "")])
}

#[test]
fn an_edit_is_made_once() {
    let tree = example(BEFORE);
    let read = |file| fs::read_to_string(tree.path().join(file)).unwrap();
    for _ in 0..2 {
        assert!(EXAMPLE.make(tree.path()).unwrap());
        assert_eq!((read("some/file.c"), read("more/file.c")), (AFTER.into(), "two".into()));
    }
}

#[test]
fn an_edit_that_was_begun_is_ended() {
    let tree = example("int a;\nint b;\n{\n\treturn a;\n}\n");
    EXAMPLE.make(tree.path()).unwrap();
    let edited = fs::read_to_string(tree.path().join("some/file.c")).unwrap();
    assert_eq!(edited, "int a;\nint b;\n{\n\treturn a + b;\n}\n");
}

#[test]
fn a_kernel_that_does_it_itself_is_left_alone() {
    let tree = tree(&[("some/file.c", BEFORE), ("other/file.c", "void does_it_itself(void);\n")]);
    assert!(!EXAMPLE.make(tree.path()).unwrap());
    assert_eq!(fs::read_to_string(tree.path().join("some/file.c")).unwrap(), BEFORE);
}

#[test]
fn a_tree_that_is_not_as_expected_is_said_so() {
    let text = |text| EXAMPLE.make(example(text).path()).unwrap_err().to_string();
    let missing = text("int a;\n\treturn 0;\n");
    assert!(missing.contains("some/file.c") && missing.contains("`return a;` is there 0 times"), "{missing}");
    let twice = text("int a;\n\treturn a;\n\treturn a;\n");
    assert!(twice.contains("is there 2 times") && twice.contains("an example"), "{twice}");
}

#[test]
fn a_missing_file_is_named() {
    let tree = Folder::new();
    let error = make_all(tree.path()).unwrap_err().to_string();
    assert!(error.contains("arch/x86/um/os-Linux/registers.c, which cannot be read"), "{error}");
}

/// What the files of 6.12, and of the versions before it that need more, have at the places in question, in outline.
pub(in crate::kernel) const OUTLINE: [(&str, &str); 16] = [
    (
        "arch/x86/um/os-Linux/registers.c",
        "#include <stdlib.h>

int restore(void)
{
	if (have_xstate_support) {
		iov.iov_base = fp_regs;
		iov.iov_len = FP_SIZE * sizeof(unsigned long);
		if (ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &iov) < 0)
			return -errno;
	}
}
",
    ),
    (
        "arch/um/os-Linux/main.c",
        "#include <sys/resource.h>

int main(int argc, char **argv, char **envp)
{
	int ret, i, err;

	set_stklim();
}
",
    ),
    (
        "arch/um/os-Linux/util.c",
        "	for (;;)
		if (kill(getpid(), SIGABRT) < 0)
			exit(127);

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	return getrandom(buf, len, flags);
}

void after(void);
",
    ),
    (
        "arch/um/include/linux/time-internal.h",
        "#include <shared/timetravel.h>

#define TIMER_MULTIPLIER 256
#define TIMER_MIN_DELTA  500
",
    ),
    (
        "arch/um/kernel/time.c",
        "static LIST_HEAD(time_travel_events);

	case UM_TIMETRAVEL_FREE_UNTIL:
		break;

static void time_travel_add_event(struct time_travel_event *e,
				  unsigned long long time)

static u64 timer_read(struct clocksource *cs)
{
			time_travel_update_time_rel(TIMER_MULTIPLIER);
		return time_travel_time / TIMER_MULTIPLIER;
}
",
    ),
    (
        "arch/um/kernel/skas/syscall.c",
        "#include <asm/delay.h>

	syscall = UPT_SYSCALL_NR(r);
			um_udelay(1);
			schedule();
",
    ),
    (
        "arch/um/os-Linux/skas/process.c",
        "int is_skas_winch(int pid, int fd, void *data)
{
	return pid == getpgrp();
}

void userspace(struct uml_pt_regs *regs, unsigned long *aux_fp_regs)
{
	interrupt_end();

	while (1) {
		if (put_fp_registers(pid, regs->fp)) {
			fatal_sigsegv();
		}
		if (get_fp_registers(pid, regs->fp)) {
			fatal_sigsegv();
		}

		UPT_SYSCALL_NR(regs) = -1; /* Assume: It's not a syscall */
",
    ),
    (
        "arch/um/os-Linux/skas/mem.c",
        "static inline long do_syscall_stub(struct mm_id *mm_idp)
{
	err = ptrace(PTRACE_CONT, pid, 0, 0);
	if (err)
		panic(err);

	wait_stub_done(pid);
",
    ),
    (
        "arch/um/include/shared/skas/mm_id.h",
        "struct mm_id {
	int syscall_data_len;
};
",
    ),
    (
        "arch/um/kernel/skas/mmu.c",
        "	new_id->stack = stack;
",
    ),
    (
        "arch/um/kernel/signal.c",
        "void do_signal(struct pt_regs *regs)
{
	while (get_signal(&ksig)) {
",
    ),
    (
        "arch/x86/um/shared/sysdep/ptrace.h",
        "struct uml_pt_regs {
	int is_user;
};
",
    ),
    (
        "arch/x86/um/vdso/vma.c",
        "#include <linux/init.h>

static int __init init_vdso(void)
{
	copy_page(page_address(um_vdso), vdso_start);
}

{
	if (mmap_write_lock_killable(mm))
		return -EINTR;
",
    ),
    (
        "arch/x86/um/vdso/um_vdso.c",
        "#include <asm/unistd.h>

{
	long ret;

	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_clock_gettime), \"D\" (clock), \"S\" (ts)
{
	long ret;

	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_gettimeofday), \"D\" (tv), \"S\" (tz)
",
    ),
    (
        "arch/um/kernel/irq.c",
        "struct irq_reg {
	bool wakeup;
};
static bool irqs_suspended;

	if (timetravel_handlers_only) {
		mark_sigio_pending();
		return;
	}

	while (1) {
		/* This is now lockless - epoll keeps back-referencesto the irqs
",
    ),
    (
        "kernel/sched/core.c",
        "int __sched __cond_resched(void)
{
	if (should_resched(0) && !irqs_disabled()) {
",
    ),
];

/// All edits, by what they are for.
pub(in crate::kernel) const ALL: [&str; 10] = [
    "hosts with AMX",
    "seeded randomness",
    "the same memory at every boot",
    "a clock of nanoseconds",
    "kernel loops that wait for others",
    "a clock that programs read by themselves",
    "floating-point registers that stay where they are",
    "several system calls made as one",
    "input that comes while the kernel waits",
    "a panic that ends",
];

fn outline() -> Folder {
    tree(&OUTLINE)
}

#[test]
fn trees_of_known_series_take_all_edits() {
    let tree = outline();
    assert_eq!(make_all(tree.path()).unwrap(), ALL);
    let read = |file| fs::read_to_string(tree.path().join(file)).unwrap();
    let registers = read("arch/x86/um/os-Linux/registers.c");
    assert!(
        registers.contains("iov.iov_len = sizeof(whole);") && !registers.contains("iov_base = fp_regs"),
        "{registers}"
    );
    let util = read("arch/um/os-Linux/util.c");
    assert!(util.contains("narrows_seed=") && util.ends_with("}\n\nvoid after(void);\n"), "{util}");
    let clock = read("arch/um/kernel/time.c");
    assert!(
        clock.contains("_rel(narrows_step());") && clock.contains("time_travel_time / TIMER_MULTIPLIER"),
        "{clock}"
    );
    assert_eq!(make_all(tree.path()).unwrap(), ALL);
    assert_eq!(read("arch/um/os-Linux/util.c"), util);
}

#[test]
fn newer_trees_keep_what_they_have() {
    let tree = outline();
    let registers = "unsigned long host_fp_size;\n";
    let (_, by_ptrace) = OUTLINE.iter().find(|(file, _)| file.ends_with("skas/process.c")).unwrap();
    let by_seccomp = format!("int using_seccomp;\n{by_ptrace}");
    let input = "struct irq_reg {\n\tbool pending_event;\n};\n";
    for (file, text) in [
        ("arch/x86/um/os-Linux/registers.c", registers),
        ("arch/um/os-Linux/main.c", "personality(PER_LINUX | ADDR_NO_RANDOMIZE);\n"),
        ("arch/um/os-Linux/skas/process.c", by_seccomp.as_str()),
        ("arch/um/kernel/irq.c", input),
    ] {
        fs::write(tree.path().join(file), text).unwrap();
    }
    let missing = [
        "hosts with AMX",
        "the same memory at every boot",
        "floating-point registers that stay where they are",
        "input that comes while the kernel waits",
    ];
    let rest: Vec<_> = ALL.into_iter().filter(|purpose| !missing.contains(purpose)).collect();
    assert_eq!(make_all(tree.path()).unwrap(), rest);
    assert_eq!(fs::read_to_string(tree.path().join("arch/x86/um/os-Linux/registers.c")).unwrap(), registers);
}

#[test]
fn the_hash_is_fowler_noll_and_vos() {
    // Published: the hash of "a" and of "foobar"; the end mark is one more step.
    let step = |hash: u64| hash.wrapping_mul(0x0100_0000_01b3);
    assert_eq!(fnv_1a(["a"].into_iter()), step(0xaf63_dc4c_8601_ec8c));
    assert_eq!(fnv_1a(["foobar"].into_iter()), step(0x8594_4171_f739_67e8));
    assert_ne!(fnv_1a(["ab", "c"].into_iter()), fnv_1a(["a", "bc"].into_iter()));
}

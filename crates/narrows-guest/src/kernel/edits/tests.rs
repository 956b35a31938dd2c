use super::*;
use crate::kernel::temporary::Folder;

const EXAMPLE: Edit = Edit {
    purpose: "an example",
    file: "some/file.c",
    unneeded: Some("does_it_itself"),
    replacements: &[("int a;\n", "int a;\nint b;\n"), ("return a;", "return a + b;")],
};

#[test]
fn an_edit_is_made_once() {
    let before = "int a;\nint f(void)\n{\n\treturn a;\n}\n";
    let once = EXAMPLE.apply(before).unwrap().unwrap();
    assert_eq!(once, "int a;\nint b;\nint f(void)\n{\n\treturn a + b;\n}\n");
    assert_eq!(EXAMPLE.apply(&once).unwrap().unwrap(), once);
}

#[test]
fn an_edit_that_was_begun_is_ended() {
    let edited = EXAMPLE.apply("int a;\nint b;\n{\n\treturn a;\n}\n").unwrap().unwrap();
    assert_eq!(edited, "int a;\nint b;\n{\n\treturn a + b;\n}\n");
}

#[test]
fn a_kernel_that_does_it_itself_is_left_alone() {
    assert_eq!(EXAMPLE.apply("void does_it_itself(void);\n").unwrap(), None);
}

#[test]
fn a_tree_that_is_not_as_expected_is_said_so() {
    let text = |text| EXAMPLE.apply(text).unwrap_err().to_string();
    let missing = text("int a;\nreturn 0;\n");
    assert!(missing.contains("some/file.c") && missing.contains("`return a;` is there 0 times"), "{missing}");
    let twice = text("int a;\nreturn a;\nreturn a;\n");
    assert!(twice.contains("is there 2 times") && twice.contains("an example"), "{twice}");
}

#[test]
fn a_missing_file_is_named() {
    let tree = Folder::new();
    let error = make_all(tree.path()).unwrap_err().to_string();
    assert!(error.contains("arch/x86/um/os-Linux/registers.c, which cannot be read"), "{error}");
}

/// What the files of 6.1 and 6.12 have at the places in question, in outline.
pub(in crate::kernel) const OUTLINE: [(&str, &str); 7] = [
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
        "#define TIMER_MULTIPLIER 256
#define TIMER_MIN_DELTA  500
",
    ),
    (
        "arch/um/kernel/time.c",
        "static u64 timer_read(struct clocksource *cs)
{
			time_travel_update_time_rel(TIMER_MULTIPLIER);
		return time_travel_time / TIMER_MULTIPLIER;
}
",
    ),
    (
        "arch/um/kernel/skas/syscall.c",
        "			um_udelay(1);
			schedule();
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
pub(in crate::kernel) const ALL: [&str; 8] = [
    "hosts with AMX",
    "seeded randomness",
    "the same memory at every boot",
    "a clock of nanoseconds",
    "cheap looks at the clock",
    "cheap calls that fail",
    "kernel loops that wait for others",
    "a panic that ends",
];

fn outline() -> Folder {
    let tree = Folder::new();
    for (file, text) in OUTLINE {
        let path = tree.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    tree
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
    for (file, text) in [
        ("arch/x86/um/os-Linux/registers.c", registers),
        ("arch/um/os-Linux/main.c", "personality(PER_LINUX | ADDR_NO_RANDOMIZE);\n"),
    ] {
        fs::write(tree.path().join(file), text).unwrap();
    }
    let missing = ["hosts with AMX", "the same memory at every boot"];
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

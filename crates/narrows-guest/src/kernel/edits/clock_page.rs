//! A clock that programs read by themselves.
//!
//! A look at the clock is a system call of a user-mode kernel, which costs the host two switches of processes (8 to 15 µs);
//! programs that move packets look twice for each. With these edits the kernel shares a page with every program: what the
//! clock shows, until when nothing else happens, and how far each of the clocks is from it. The vDSO, through which the C
//! library looks, adds the step that the look takes (as `clock.rs` has it) by itself, and makes the system call only
//! when that would come to the next event. When the program next enters the kernel, its clock goes on from there. Clocks show
//! the same with and without; but programs take turns at system calls, and there are fewer.
//!
//! A program that writes to that page sets the clock of the guest, forward and not beyond the next event; it could as well
//! have looked that often.

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "a clock that programs read by themselves",
    unneeded: &[],
    files: &[
        (
            "arch/um/include/linux/time-internal.h",
            &[(
                "#include <shared/timetravel.h>\n",
                "#include <shared/timetravel.h>

/* narrows: the clock, as programs and kernel share it; in nanoseconds */
struct narrows_clock {
	unsigned long long now;
	/* nothing happens before this */
	unsigned long long until;
	/* where the last look ended, and how many there were without a pause */
	unsigned long long reached;
	unsigned int steps;
	/* what to add for each clock */
	unsigned long long realtime, monotonic, raw, boottime;
};

extern struct narrows_clock *narrows_clock;
",
            )],
        ),
        (
            "arch/um/kernel/time.c",
            &[
                (
                    "static LIST_HEAD(time_travel_events);\n",
                    "static LIST_HEAD(time_travel_events);

/* narrows: the clock that is shared, and how far the controller lets it run */
static struct narrows_clock narrows_clock_unshared;
struct narrows_clock *narrows_clock = &narrows_clock_unshared;
static unsigned long long narrows_free_until;

void narrows_leave(void);
void narrows_enter(void);
",
                ),
                (
                    "\tcase UM_TIMETRAVEL_FREE_UNTIL:\n",
                    "\tcase UM_TIMETRAVEL_FREE_UNTIL:\n\t\tnarrows_free_until = msg->time;\n",
                ),
                (
                    "static void time_travel_add_event(struct time_travel_event *e,\n",
                    "/* the clock may go to here without anybody being asked */
static unsigned long long narrows_until(void)
{
	struct time_travel_event *e = time_travel_first_event();

	if (!e || time_travel_ext_waiting)
		return 0;
	if (time_travel_mode == TT_MODE_EXTERNAL)
		return min(e->time, narrows_free_until);
	return time_travel_mode == TT_MODE_INFCPU ? e->time : 0;
}

/* a program goes on */
void narrows_leave(void)
{
	struct narrows_clock *clock = narrows_clock;
	unsigned long flags;

	if (time_travel_mode == TT_MODE_OFF)
		return;
	/* with interrupts off these looks take no time */
	local_irq_save(flags);
	clock->realtime = ktime_get_real_ns() - time_travel_time;
	clock->monotonic = ktime_get_ns() - time_travel_time;
	clock->raw = ktime_get_raw_ns() - time_travel_time;
	clock->boottime = ktime_get_boottime_ns() - time_travel_time;
	clock->until = narrows_until();
	WRITE_ONCE(clock->now, time_travel_time);
	local_irq_restore(flags);
}

/* a program is back */
void narrows_enter(void)
{
	unsigned long long now = READ_ONCE(narrows_clock->now);
	unsigned long flags;

	local_irq_save(flags);
	if (now > time_travel_time && now < narrows_until())
		time_travel_set_time(now);
	local_irq_restore(flags);
}

static void time_travel_add_event(struct time_travel_event *e,
",
                ),
            ],
        ),
        (
            "arch/um/os-Linux/skas/process.c",
            &[
                (
                    "void userspace(struct uml_pt_regs *regs",
                    "/* narrows: of arch/um/kernel/time.c */
void narrows_leave(void);
void narrows_enter(void);

void userspace(struct uml_pt_regs *regs",
                ),
                (
                    "\tinterrupt_end();\n\n\twhile (1) {\n",
                    "\tinterrupt_end();\n\n\twhile (1) {\n\t\tnarrows_leave();\n",
                ),
                (
                    "\t\tUPT_SYSCALL_NR(regs) = -1; /* Assume: It's not a syscall */\n",
                    "\t\tnarrows_enter();\n\t\tUPT_SYSCALL_NR(regs) = -1; /* Assume: It's not a syscall */\n",
                ),
            ],
        ),
        (
            "arch/x86/um/vdso/vma.c",
            &[
                ("#include <linux/init.h>\n", "#include <linux/init.h>\n#include <linux/time-internal.h>\n"),
                (
                    "\tcopy_page(page_address(um_vdso), vdso_start);\n",
                    "\tcopy_page(page_address(um_vdso), vdso_start);\n\tnarrows_share_clock();\n",
                ),
                (
                    "static int __init init_vdso(void)\n",
                    "static void __init narrows_share_clock(void)
{
	unsigned long page = get_zeroed_page(GFP_KERNEL);

	if (!page)
		panic(\"no memory for the clock\\n\");
	*(struct narrows_clock *)page = *narrows_clock;
	narrows_clock = (struct narrows_clock *)page;
}

static vm_fault_t narrows_clock_fault(const struct vm_special_mapping *sm,
				      struct vm_area_struct *vma,
				      struct vm_fault *vmf)
{
	return vmf_insert_pfn(vma, vmf->address,
			      page_to_pfn(virt_to_page(narrows_clock)));
}

/* narrows: the clock's page is right before the vDSO's */
static int narrows_map_clock(struct mm_struct *mm)
{
	static struct vm_special_mapping mapping = {
		.name = \"[clock]\",
		.fault = narrows_clock_fault,
	};

	return PTR_ERR_OR_ZERO(_install_special_mapping(mm,
		um_vdso_addr - PAGE_SIZE, PAGE_SIZE,
		VM_READ|VM_WRITE|VM_SHARED|VM_MAYREAD|VM_MAYWRITE|VM_MAYSHARE|
		VM_IO|VM_PFNMAP|VM_DONTEXPAND|VM_DONTDUMP, &mapping));
}

static int __init init_vdso(void)
",
                ),
                (
                    "\tif (mmap_write_lock_killable(mm))\n\t\treturn -EINTR;\n",
                    "\tif (mmap_write_lock_killable(mm))
		return -EINTR;

	if (narrows_map_clock(mm)) {
		mmap_write_unlock(mm);
		return -ENOMEM;
	}
",
                ),
            ],
        ),
        (
            "arch/x86/um/vdso/um_vdso.c",
            &[
                (
                    "#include <asm/unistd.h>\n",
                    "#include <asm/unistd.h>
#include <linux/minmax.h>
#include <linux/time-internal.h>

/*
 * narrows: looks at the clock where that takes no system call; returns
 * whether. Whoever is interrupted in between tries again.
 */
static noinline int narrows_look(int which, unsigned long long *ns)
{
	struct narrows_clock *clock =
		(void *)(((unsigned long)&narrows_look & -4096UL) - 4096);
	unsigned long long now, then, offset;
	unsigned int steps;

	if (which == CLOCK_MONOTONIC)
		offset = clock->monotonic;
	else if (which == CLOCK_REALTIME)
		offset = clock->realtime;
	else if (which == CLOCK_BOOTTIME)
		offset = clock->boottime;
	else if (which == CLOCK_MONOTONIC_RAW)
		offset = clock->raw;
	else
		return 0;
	do {
		now = READ_ONCE(clock->now);
		steps = now == clock->reached ? min(clock->steps + 1, 1024U) : 0;
		then = now + max(steps, 16U);
		if (then >= READ_ONCE(clock->until))
			return 0;
	} while (!__sync_bool_compare_and_swap(&clock->now, now, then));
	clock->reached = then;
	clock->steps = steps;
	*ns = then + offset;
	return 1;
}
",
                ),
                (
                    "\tlong ret;

	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_clock_gettime),",
                    "\tunsigned long long ns;
	long ret;

	if (narrows_look(clock, &ns)) {
		ts->tv_sec = ns / 1000000000;
		ts->tv_nsec = ns % 1000000000;
		return 0;
	}
	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_clock_gettime),",
                ),
                (
                    "\tlong ret;

	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_gettimeofday),",
                    "\tunsigned long long ns;
	long ret;

	if (tv && !tz && narrows_look(CLOCK_REALTIME, &ns)) {
		tv->tv_sec = ns / 1000000000;
		tv->tv_usec = ns % 1000000000 / 1000;
		return 0;
	}
	asm(\"syscall\"
		: \"=a\" (ret)
		: \"0\" (__NR_gettimeofday),",
                ),
            ],
        ),
    ],
};

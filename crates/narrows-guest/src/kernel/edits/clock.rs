//! A clock of nanoseconds.
//!
//! A user-mode kernel's clock counts steps of 256 ns and sets no timer less than 500 ns ahead. So that loops which wait for
//! it end, a program that looks at it moves it by a step, and a call that fails (with "nothing there yet", mostly) by 1 µs.
//! That is 4 to 7 µs of a round trip through a user-space forwarder. With these edits it counts nanoseconds, timers are at
//! their instant, and both move it by as little as a loop lets them: the Nth since it last stood still by N ns, by 16 at
//! least and 1,024 at most. A program that answers a packet loses some 50 ns; one that spins for 20 ms is through after
//! 20,000 looks, no more than 1 µs late.

use super::Edit;

pub(super) const STEPS: Edit = Edit {
    purpose: "a clock of nanoseconds",
    file: "arch/um/include/linux/time-internal.h",
    unneeded: None,
    replacements: &[
        ("#define TIMER_MULTIPLIER 256\n", "#define TIMER_MULTIPLIER 1 /* narrows: nanoseconds */\n"),
        (
            "#define TIMER_MIN_DELTA  500\n",
            "#define TIMER_MIN_DELTA  1 /* narrows: timers are at their instant */\n
/* narrows: by how much a look at the clock, or a call that fails, moves it */
unsigned int narrows_step(void);
",
        ),
    ],
};

pub(super) const LOOKS: Edit = Edit {
    purpose: "cheap looks at the clock",
    file: "arch/um/kernel/time.c",
    unneeded: None,
    replacements: &[
        (
            "static u64 timer_read(struct clocksource *cs)\n",
            "unsigned int narrows_step(void)
{
	static unsigned long long reached;
	static unsigned int steps;

	steps = time_travel_time == reached ? min(steps + 1, 1024U) : 0;
	reached = time_travel_time + max(steps, 16U);
	return max(steps, 16U);
}

static u64 timer_read(struct clocksource *cs)
",
        ),
        (
            "time_travel_update_time_rel(TIMER_MULTIPLIER);\n",
            "time_travel_update_time_rel(narrows_step());\n",
        ),
    ],
};

pub(super) const FAILURES: Edit = Edit {
    purpose: "cheap calls that fail",
    file: "arch/um/kernel/skas/syscall.c",
    unneeded: None,
    replacements: &[("\t\t\tum_udelay(1);\n", "\t\t\ttime_travel_ndelay(narrows_step());\n")],
};

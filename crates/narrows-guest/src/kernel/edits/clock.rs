//! A clock of nanoseconds.
//!
//! A user-mode kernel's clock counts steps of 256 ns and sets no timer less than 500 ns ahead. So that loops which wait for
//! it end, a program that looks at it moves it by a step, and a call that fails (with "nothing there yet", mostly) by 1 µs.
//! That is 4 to 7 µs of a round trip through a user-space forwarder. With these edits it counts nanoseconds, timers are at
//! their instant, and both move it by as little as a loop lets them: the Nth since it last stood still by N ns, by 16 at
//! least and 1,024 at most. A program that answers a packet loses some 50 ns; one that spins for 20 ms is through after
//! 20,000 looks, no more than 1 µs late.
//!
//! The kernel itself has loops that look again and again whether another task is done, and offer it the processor
//! (`cond_resched`). That task gets it when the slice of the one that loops is over, which is never where time stands still:
//! freeing a process's entries of `/proc` was seen to loop for ever. After a million offers without time passing each takes
//! 1 µs. (Reading `/proc/net/tcp` makes some ten thousand.)

use super::Edit;

pub(super) const STEPS: Edit = Edit {
    purpose: "a clock of nanoseconds",
    unneeded: &[],
    files: &[
        (
            "arch/um/include/linux/time-internal.h",
            &[
                ("#define TIMER_MULTIPLIER 256\n", "#define TIMER_MULTIPLIER 1 /* narrows: nanoseconds */\n"),
                (
                    "#define TIMER_MIN_DELTA  500\n",
                    "#define TIMER_MIN_DELTA  1 /* narrows: timers are at their instant */\n
/* narrows: by how much a look at the clock, or a call that fails, moves it */
unsigned int narrows_step(void);
/* narrows: the processor is offered to others */
void narrows_offer(void);
",
                ),
            ],
        ),
        (
            "arch/um/kernel/time.c",
            &[
                (
                    "static u64 timer_read(struct clocksource *cs)\n",
                    "unsigned int narrows_step(void)
{
	struct narrows_clock *clock = narrows_clock;

	clock->steps = time_travel_time == clock->reached ?
		min(clock->steps + 1, 1024U) : 0;
	clock->reached = time_travel_time + max(clock->steps, 16U);
	return max(clock->steps, 16U);
}

void narrows_offer(void)
{
	static unsigned long long reached;
	static unsigned int offers;

	if (time_travel_mode != TT_MODE_INFCPU && time_travel_mode != TT_MODE_EXTERNAL)
		return;
	if (time_travel_time != reached) {
		reached = time_travel_time;
		offers = 0;
	}
	if (++offers < 1000000 || irqs_disabled() || in_interrupt() || time_travel_ext_waiting)
		return;
	offers = 1000000;
	time_travel_update_time_rel(1000);
	reached = time_travel_time;
}

static u64 timer_read(struct clocksource *cs)
",
                ),
                (
                    "time_travel_update_time_rel(TIMER_MULTIPLIER);\n",
                    "time_travel_update_time_rel(narrows_step());\n",
                ),
            ],
        ),
        (
            "arch/um/kernel/skas/syscall.c",
            &[("\t\t\tum_udelay(1);\n", "\t\t\ttime_travel_ndelay(narrows_step());\n")],
        ),
    ],
};

pub(super) const OFFERS: Edit = Edit {
    purpose: "kernel loops that wait for others",
    unneeded: &[],
    files: &[(
        "kernel/sched/core.c",
        &[(
            "int __sched __cond_resched(void)\n{\n",
            "void narrows_offer(void);\n\nint __sched __cond_resched(void)\n{\n\tnarrows_offer();\n",
        )],
    )],
};

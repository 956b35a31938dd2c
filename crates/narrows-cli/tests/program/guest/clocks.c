/*
 * That looks at a clock through the C library and by system calls agree: none is before the one before it, whichever way each is
 * made, also where two processes look in turn; all clocks run alike; and a look moves the clock by 16 ns, or as many as there were
 * without a pause.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const clockid_t CLOCKS[] = {CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME, CLOCK_MONOTONIC_RAW};

static long long nanoseconds(struct timespec time)
{
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long by_library(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return nanoseconds(time);
}

static long long by_kernel(clockid_t clock)
{
	struct timespec time;
	syscall(SYS_clock_gettime, clock, &time);
	return nanoseconds(time);
}

static void expect(int holds, const char *what, long long a, long long b)
{
	if (holds)
		return;
	printf("%s: %lld, %lld\n", what, a, b);
	exit(1);
}

static void in_turn(int from, int to, int turns)
{
	long long theirs, ours;

	while (turns-- > 0) {
		if (read(from, &theirs, sizeof theirs) != sizeof theirs)
			exit(2);
		ours = turns % 3 ? by_library(CLOCK_MONOTONIC) : by_kernel(CLOCK_MONOTONIC);
		expect(theirs < ours, "another process's look is later", theirs, ours);
		ours = by_library(CLOCK_MONOTONIC);
		if (write(to, &ours, sizeof ours) != sizeof ours)
			exit(2);
	}
}

int main(void)
{
	for (int c = 0; c < 4; c++) {
		long long last = by_kernel(CLOCKS[c]);
		long long apart = by_library(CLOCKS[c]) - by_library(CLOCK_MONOTONIC);

		for (int i = 0; i < 20000; i++) {
			long long now = i % 5 == 4 ? by_kernel(CLOCKS[c]) : by_library(CLOCKS[c]);
			/* The kernel has its own looks at each tick. */
			expect(last + 16 <= now && now <= last + 8192, "a step", last, now);
			last = now;
		}
		long long then = by_kernel(CLOCKS[c]) - by_kernel(CLOCK_MONOTONIC);
		expect(llabs(then - apart) <= 2048, "clocks run alike", apart, then);
	}
	struct timeval day;
	long long before = by_library(CLOCK_REALTIME);
	gettimeofday(&day, NULL);
	long long now = (day.tv_sec * 1000000LL + day.tv_usec) * 1000;
	expect(before / 1000 * 1000 <= now && now <= before + 2048, "gettimeofday", before, now);
	struct timespec soon = {0, 5000000};
	before = by_library(CLOCK_MONOTONIC);
	nanosleep(&soon, NULL);
	now = by_library(CLOCK_MONOTONIC);
	expect(before + 5000000 <= now && now <= before + 5060000, "a sleep", before, now);
	expect(clock_gettime(99, &soon) == -1 && errno == EINVAL, "a clock that is not there", errno, 0);

	int there[2], back[2], status;
	if (pipe(there) || pipe(back))
		return 2;
	if (fork() == 0) {
		in_turn(there[0], back[1], 1000);
		_exit(0);
	}
	before = by_library(CLOCK_MONOTONIC);
	if (write(there[1], &before, sizeof before) != sizeof before)
		return 2;
	in_turn(back[0], there[1], 999);
	if (wait(&status) < 0 || status)
		return 1;
	puts("agree");
	return 0;
}

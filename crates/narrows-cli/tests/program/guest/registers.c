/*
 * That a program's floating-point registers are its own, whatever happens meanwhile: system calls that return at once, that block
 * and that fail, signals whose handler changes all of them, new processes, other threads, memory that is used for the first
 * time. Each system call is made between setting all sixteen and reading them, with nothing of the C library's in between.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef unsigned long long word;
#define ALL "xmm0","xmm1","xmm2","xmm3","xmm4","xmm5","xmm6","xmm7","xmm8","xmm9","xmm10","xmm11","xmm12","xmm13","xmm14","xmm15"
#define EACH(do) do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)
#define SET(n) "movdqu " #n "*16(%[from]), %%xmm" #n "\n\t"
#define GET(n) "movdqu %%xmm" #n ", " #n "*16(%[to])\n\t"

/* A pattern of its own for each caller and time, and a rounding mode. */
static void pattern(word *to, unsigned *mxcsr, unsigned who, unsigned when)
{
	for (unsigned i = 0; i < 32; i++)
		to[i] = (who + 1) * 0x9e3779b97f4a7c15ULL + when * 0x100000001b3ULL + i;
	*mxcsr = 0x1f80 | ((who + when) & 3) << 13;
}

/* Makes a system call between setting and comparing; what it gave. */
static long held(const char *what, unsigned who, unsigned when, long number, long a, long b, long c)
{
	word before[32], after[32];
	unsigned set, got, usual = 0x1f80;
	long result;

	pattern(before, &set, who, when);
	asm volatile("ldmxcsr %[set]\n\t" EACH(SET) "syscall\n\t" EACH(GET) "stmxcsr %[got]\n\tldmxcsr %[usual]"
		     : "=a"(result), [got] "=m"(got)
		     : "0"(number), "D"(a), "S"(b), "d"(c), [from] "r"(before), [to] "r"(after), [set] "m"(set),
		       [usual] "m"(usual)
		     : "rcx", "r11", "memory", ALL);
	if (memcmp(before, after, sizeof before) || (set ^ got) & 0x6000) {
		printf("%s: registers of %u were not kept, time %u\n", what, who, when);
		exit(1);
	}
	return result;
}

/* The same with memory that is used for the first time in place of a call. */
static void held_by_memory(unsigned who, unsigned when, char *page)
{
	word before[32], after[32];
	unsigned set;

	pattern(before, &set, who, when);
	asm volatile(EACH(SET) "movb $1, (%[page])\n\t" EACH(GET)
		     : : [from] "r"(before), [to] "r"(after), [page] "r"(page) : "memory", ALL);
	if (memcmp(before, after, sizeof before)) {
		printf("memory: registers were not kept, time %u\n", when);
		exit(1);
	}
}

static volatile int signals;

static void change_all(int signal)
{
	held("handler", 77, signals++, SYS_getppid, 0, 0, 0);
	(void)signal;
}

static void *thread(void *who)
{
	for (unsigned i = 0; i < 300; i++) {
		struct timespec span = {0, 1000 * ((i + (long)who) % 7)};
		held("threads, sleeping", (long)who, i, SYS_nanosleep, (long)&span, 0, 0);
		held("threads", (long)who, i, SYS_sched_yield, 0, 0, 0);
	}
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_handler = change_all};
	struct timespec span = {0, 100000};
	pthread_t threads[3];
	char *pages;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	for (int round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 100; i++) {
			held("at once", 1, i, SYS_getppid, 0, 0, 0);
			held("failing", 1, i, SYS_close, -1, 0, 0);
			held("sleeping", 1, i, SYS_nanosleep, (long)&span, 0, 0);
			held("signal", 1, i, SYS_kill, getpid(), SIGUSR1, 0);
		}
		/* A signal that ends a sleep. */
		struct timespec long_span = {1, 0};
		timer_t timer;
		struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
		struct itimerspec soon = {.it_value = {0, 1000000}};
		timer_create(CLOCK_MONOTONIC, &event, &timer);
		timer_settime(timer, 0, &soon, NULL);
		if (held("signal in sleep", 1, 0, SYS_nanosleep, (long)&long_span, 0, 0) != -4)
			return puts("the sleep was not interrupted"), 1;
		timer_delete(timer);
		pages = mmap(NULL, 400 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		for (unsigned i = 0; i < 400; i++) {
			held("before memory", 1, i, SYS_getppid, 0, 0, 0);
			held_by_memory(1, i, pages + i * 4096);
		}
		/* Mapped and unmapped between two calls: the kernel has much to do in the process. */
		for (unsigned i = 0; i < 50; i++)
			held("unmapping", 1, i, SYS_munmap, (long)pages + i * 8 * 4096, 4096, 0);
		munmap(pages, 400 * 4096);
		/* Both come back with the same registers. */
		long child = held("fork", 1, round, SYS_fork, 0, 0, 0);
		if (child == 0) {
			for (unsigned i = 0; i < 50; i++)
				held("child", 2, i, SYS_nanosleep, (long)&span, 0, 0);
			_exit(0);
		}
		for (unsigned i = 0; i < 50; i++)
			held("parent", 1, i, SYS_nanosleep, (long)&span, 0, 0);
		int status;
		if (waitpid(child, &status, 0) != child || status)
			return puts("the child failed"), 1;
		for (long i = 0; i < 3; i++)
			pthread_create(&threads[i], NULL, thread, (void *)(i + 3));
		thread((void *)9);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
	}
	if (signals != 303)
		return printf("%d signals\n", signals), 1;
	puts("kept");
	return 0;
}

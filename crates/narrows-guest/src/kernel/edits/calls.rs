//! Several system calls made as one.
//!
//! What a system call of a user-mode kernel costs is the host's two switches of processes, not what it does. The packet
//! loop sends, waits, looks at the clock and receives, each time round; with this edit it asks for all of that at once
//! (`narrows_io::exchange`). Calls are made in order until one gives less than it is to; each time is what it would have
//! been by itself, and no other program runs in between that would not have run.

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "several system calls made as one",
    unneeded: &[],
    files: &[(
        "arch/um/kernel/skas/syscall.c",
        &[
            (
                "#include <asm/delay.h>\n",
                "#include <asm/delay.h>
#include <linux/uaccess.h>

/*
 * narrows: makes several system calls. Takes an array of these and how many
 * there are; returns how many were made.
 */
#define NARROWS_CALLS 28279

struct narrows_call {
	long number;
	unsigned long arguments[6];
	/* the last one made where the result is less */
	long least;
	long result;
};

typedef long narrows_handler(long, long, long, long, long, long);

static long narrows_calls(struct narrows_call __user *calls, unsigned long count)
{
	struct narrows_call call;
	unsigned long *a = call.arguments;
	unsigned long made;

	for (made = 0; made < count;) {
		if (copy_from_user(&call, calls + made, sizeof(call)))
			return -EFAULT;
		switch (call.number) {
		case __NR_sendmmsg:
		case __NR_recvmmsg:
		case __NR_ppoll:
		case __NR_clock_gettime:
			break;
		default:
			return -EINVAL;
		}
		call.result = ((narrows_handler *)sys_call_table[call.number])(
			a[0], a[1], a[2], a[3], a[4], a[5]);
		switch (call.result) {
		case -ERESTARTSYS:
		case -ERESTARTNOINTR:
		case -ERESTARTNOHAND:
		case -ERESTART_RESTARTBLOCK:
			call.result = -EINTR;
		}
		if (put_user(call.result, &calls[made].result))
			return -EFAULT;
		made++;
		if (call.result < call.least)
			break;
	}
	return made;
}
",
            ),
            (
                "\tsyscall = UPT_SYSCALL_NR(r);\n",
                "\tsyscall = UPT_SYSCALL_NR(r);
	if (syscall == NARROWS_CALLS) {
		PT_REGS_SET_SYSCALL_RETURN(regs,
			narrows_calls((void __user *)UPT_SYSCALL_ARG1(r),
				      UPT_SYSCALL_ARG2(r)));
		goto out;
	}
",
            ),
        ],
    )],
};

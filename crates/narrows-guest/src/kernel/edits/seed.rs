//! Randomness that is the same at every boot.
//!
//! A user-mode kernel takes randomness from the host in one function. With `narrows_seed=N` on the command line it is
//! the stream of Steele, Lea and Flood's SplitMix64 from the state N in place of that, a byte a step; without, the host's as before.
//! The kernel's own generator (ChaCha20 with keys by BLAKE2s) is seeded from it, and everything else from that.

use super::Edit;

pub(super) const EDIT: Edit = Edit {
    purpose: "seeded randomness",
    unneeded: &[],
    files: &[(
        "arch/um/os-Linux/util.c",
        &[(
            "ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
\treturn getrandom(buf, len, flags);
}
",
            r#"/* narrows: with narrows_seed=N, randomness is SplitMix64's stream from N */
static int narrows_seeded;
static unsigned long long narrows_state;

static int __init narrows_seed_setup(char *line, int *add)
{
	narrows_state = strtoull(line, NULL, 0);
	narrows_seeded = 1;
	*add = 0;
	return 0;
}

__uml_setup("narrows_seed=", narrows_seed_setup,
"narrows_seed=<number>\n"
"    The guest's randomness is derived from this number.\n\n"
);

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	unsigned char *to = buf;
	unsigned long long z;
	size_t done;

	if (!narrows_seeded)
		return getrandom(buf, len, flags);
	for (done = 0; done < len; done++) {
		z = (narrows_state += 0x9e3779b97f4a7c15ULL);
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
		to[done] = (z ^ (z >> 31)) >> 56;
	}
	return len;
}
"#,
        )],
    )],
};

/*
 * Added to the kernel's arch/x86/um/os-Linux/registers.c by ./build.
 *
 * User-Mode Linux 6.1 saves the whole extended processor state at every system call into a buffer of 2,696 bytes. On
 * processors with AMX that state takes some 11 KB, and the host refuses to load a part of it: nothing runs. So the 512 bytes
 * of x87 and SSE state are saved at system calls (what lies beyond is dead there by the calling convention, and stays in the
 * host's process; it is also quicker), and the whole state only around a page fault, where the host's delivery of a signal
 * resets it.
 */
static unsigned long whole_fp_state[32768 / sizeof(unsigned long)];
static struct iovec whole_fp_iov;

int save_whole_fp_state(int pid)
{
	whole_fp_iov.iov_base = whole_fp_state;
	whole_fp_iov.iov_len = sizeof(whole_fp_state);
	return ptrace(PTRACE_GETREGSET, pid, NT_X86_XSTATE, &whole_fp_iov) < 0 ? -errno : 0;
}

int restore_whole_fp_state(int pid)
{
	return ptrace(PTRACE_SETREGSET, pid, NT_X86_XSTATE, &whole_fp_iov) < 0 ? -errno : 0;
}

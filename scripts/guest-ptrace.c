/* Lets User-Mode Linux 6.1 run on processors whose register state outgrew it (AMX: 11 KB, where it has room for 2.7 KB).
 *
 * The host's kernel takes a process's extended registers back only as a whole: PTRACE_SETREGSET with less than all of
 * NT_X86_XSTATE is EFAULT, and the guest's first process dies of it. scripts/guest preloads this: a shorter write is laid
 * over what the process has, and written back whole. The part that UML does not know, no guest process can use: the
 * kernel hands AMX out on request only, and UML does not pass the request on.
 *
 * And lets the guest's kernel come before the guest's processes, which are processes of this machine as it is, on the same
 * CPU: where scripts/guest runs all of them ahead of others (SCHED_RR), each of those that it begins to trace steps back to
 * the lowest such priority. At the same one the timer of the guest's kernel had to wait until a busy process had used up its
 * turn, which takes 100 ms.
 */
enum { SYS_PTRACE = 101, SYS_SETSCHEDULER = 144, SYS_GETSCHEDULER = 145, ROUND_ROBIN = 2, LOWEST = 1 };
enum { TRACEME = 0, PEEKTEXT = 1, PEEKUSER = 3, SETREGSET = 0x4205, GETREGSET = 0x4204, XSTATE = 0x202 };

struct vector { void *base; unsigned long length; };

extern long syscall(long number, ...);

static unsigned char whole[1 << 16];

long ptrace(long request, long pid, long address, void *data)
{
    if (request == SETREGSET && address == XSTATE) {
        struct vector *given = data, all = { whole, sizeof whole };
        unsigned long i;

        if (syscall(SYS_PTRACE, GETREGSET, pid, address, &all) < 0)
            return -1;
        for (i = 0; i < given->length && i < all.length; i++)
            whole[i] = ((unsigned char *)given->base)[i];
        return syscall(SYS_PTRACE, SETREGSET, pid, address, &all);
    }
    if (request == TRACEME && syscall(SYS_GETSCHEDULER, 0) == ROUND_ROBIN) {
        int lowest = LOWEST;

        if (syscall(SYS_SETSCHEDULER, 0, ROUND_ROBIN, &lowest) < 0)
            return -1;
    }
    if (request >= PEEKTEXT && request <= PEEKUSER) { /* the C library gives the value back instead of storing it */
        long value, failed = syscall(SYS_PTRACE, request, pid, address, &value);
        return failed ? failed : value;
    }
    return syscall(SYS_PTRACE, request, pid, address, data);
}

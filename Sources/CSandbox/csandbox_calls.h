// CALL(name, rule, reason): the system calls that a worker may make. Every other one ends it.
//
// A call that decoders of some library need is added here, with the library's name.

// The protocol.
CALL(recvmsg, ON_SOCKET, "receives requests, and descriptors of large images")
CALL(write, ON_OUTPUT, "sends results; libjxl writes messages")
CALL(exit_group, ANY, "ends when the parent has closed the socket")

// Memory. No page becomes executable.
CALL(brk, ANY, "malloc grows the heap")
CALL(mmap, MAPPING, "malloc gets large blocks, Swift gets metadata; large images are read")
CALL(close, ON_IMAGE, "a large image, once it is mapped")
CALL(munmap, ANY, "malloc returns large blocks")
CALL(mremap, ANY, "realloc of large blocks")

// Time, and threads that wait for each other.
CALL(clock_gettime, OWN_CLOCK, "--max-decode-time counts processor time, which the vDSO does not know")
CALL(futex, ANY, "pthread_once wakes other threads, even without any")

CALL(getrandom, ANY, "expat seeds its tables")

// glibc before 2.37.
CALL(sysinfo, ANY, "qsort reads the size of the memory")

// `abort`, so that the report names SIGABRT.
CALL(rt_sigprocmask, ANY, "abort")
CALL(gettid, ANY, "abort")
CALL(getpid, ANY, "abort")
CALL(tgkill, OWN_PROCESS, "abort")
CALL(writev, ON_ERRORS, "malloc names damage before it calls abort")

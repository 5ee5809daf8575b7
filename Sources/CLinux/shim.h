// Functions of the C library that Swift's Glibc module lacks: it reads the headers without the
// feature macros that show them, or leaves their headers out.
#include <pthread.h>
#include <sys/types.h>
#include <sys/xattr.h>

// unistd.h, Linux
int syncfs(int descriptor);
// pthread.h, Linux
int pthread_setname_np(pthread_t thread, const char *name);

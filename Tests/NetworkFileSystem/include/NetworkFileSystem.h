// When preloaded, reports every file system as NFS. With this variable of the environment, refuses
// system calls instead: a list like `shmap=EOPNOTSUPP,utimensat=EPERM`.
#define REFUSED_CALLS "REFUSED_CALLS"

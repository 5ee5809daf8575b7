// Preloaded, every file system says that it is NFS.

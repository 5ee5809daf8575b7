// When preloaded, reports every file system as NFS.

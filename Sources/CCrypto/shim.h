// Digests of OpenSSL's libcrypto: the functions of each algorithm, which 3.0 deprecates in favour
// of EVP and keeps. They are linked from the archive, which adds 25 KB. Loading the shared library
// would take longer than all other work of `prefetch get`.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

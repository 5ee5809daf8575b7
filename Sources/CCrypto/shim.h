// SHA-256 of OpenSSL's libcrypto: the functions of the algorithm, which 3.0 deprecates in favour of
// EVP, and keeps. Out of the archive, of which the linker takes these and what tells the processor's
// instructions, 25 KB; to load the library takes longer than what `prefetch get` does with it.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

// SHA-256 of OpenSSL's libcrypto, which libcurl brings along anyway: the functions of the algorithm,
// which 3.0 deprecates in favour of EVP, and keeps.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

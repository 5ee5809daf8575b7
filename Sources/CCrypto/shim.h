// SHA-256 of OpenSSL's libcrypto, which libcurl brings along anyway.
#include <openssl/evp.h>

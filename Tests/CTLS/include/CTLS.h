/* The server side of TLS over memory buffers, by the system's OpenSSL, which libcurl needs anyway.
   Uses no sockets and never blocks: the caller transfers the bytes both ways. Threads may share a
   context; a session belongs to one thread at a time. */
#ifndef CTLS_H
#define CTLS_H

#include <stddef.h>

typedef struct ctls_context ctls_context;
typedef struct ctls_session ctls_session;

/* The result of an operation. */
enum {
    /* Done; when reading, bytes were read. */
    CTLS_DONE = 1,
    /* It needs more from the client. */
    CTLS_WANTS_MORE = 0,
    /* The client closed the connection (close_notify). */
    CTLS_ENDED = -1,
    /* A protocol violation, or no common version, cipher or protocol. */
    CTLS_FAILED = -2,
};

/* `chain` and `key` are paths of PEM files. `minimum` and `maximum` are wire versions (0x0301 is
   TLS 1.0, 0x0304 TLS 1.3), 0 for no maximum. `protocols` lists ALPN protocols (RFC 7301 §3.1),
   each after a byte with its length, preferred one first; they are copied. All ciphers of the
   versions are allowed. Returns null, with OpenSSL's message in `error`, if a file cannot be
   used. */
ctls_context *_Nullable ctls_context_create(
    const char *_Nonnull chain, const char *_Nonnull key, int minimum, int maximum,
    const unsigned char *_Nonnull protocols, unsigned protocols_count, char *_Nonnull error,
    size_t error_capacity);
/* Requires clients to have a certificate of an authority in this PEM file. Returns CTLS_DONE, or
   CTLS_FAILED if the file cannot be used. */
int ctls_context_require_client(
    ctls_context *_Nonnull context, const char *_Nonnull authority);
void ctls_context_free(ctls_context *_Nullable context);

/* The context must outlive the session. Returns null if out of memory. */
ctls_session *_Nullable ctls_session_create(ctls_context *_Nonnull context);
void ctls_session_free(ctls_session *_Nullable session);

/* Accepts bytes from the client. Returns CTLS_DONE or CTLS_FAILED. */
int ctls_take(ctls_session *_Nonnull session, const void *_Nullable bytes, int count);

/* Continues the handshake. Returns CTLS_DONE, CTLS_WANTS_MORE or CTLS_FAILED. */
int ctls_shake_hands(ctls_session *_Nonnull session);

/* Whether the handshake resumed an earlier session (RFC 8446 §2.2). Returns 0 or 1. */
int ctls_is_resumed(const ctls_session *_Nonnull session);

/* The negotiated protocol, not null-terminated; `count` is 0 if there is none. */
const unsigned char *_Nullable ctls_protocol(
    const ctls_session *_Nonnull session, unsigned *_Nonnull count);

/* Decrypts bytes; sets `count` to their number if the result is CTLS_DONE. */
int ctls_read(
    ctls_session *_Nonnull session, void *_Nullable buffer, int capacity, int *_Nonnull count);

/* Encrypts all `count` bytes, after the handshake. Returns CTLS_DONE or CTLS_FAILED. */
int ctls_write(ctls_session *_Nonnull session, const void *_Nullable bytes, int count);

/* Sends close_notify. */
void ctls_end(ctls_session *_Nonnull session);

/* The number of bytes to send to the client. `ctls_give` removes them. */
size_t ctls_waiting(const ctls_session *_Nonnull session);
int ctls_give(ctls_session *_Nonnull session, void *_Nullable buffer, int capacity);

#endif

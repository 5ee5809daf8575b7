/* The server's end of TLS over buffers in memory, by the system's OpenSSL, which libcurl brings into
   the tests anyway. Nothing here blocks or knows a socket: the caller carries bytes both ways. A
   context may be shared by threads; a session belongs to one at a time. */
#ifndef CTLS_H
#define CTLS_H

#include <stddef.h>

typedef struct ctls_context ctls_context;
typedef struct ctls_session ctls_session;

/* What an operation came to. */
enum {
    /* Done; of reading, what was asked for has come. */
    CTLS_DONE = 1,
    /* It needs more from the client. */
    CTLS_WANTS_MORE = 0,
    /* The client said that it ends (close_notify). */
    CTLS_ENDED = -1,
    /* The protocol was broken, or no version, cipher or protocol is common. */
    CTLS_FAILED = -2,
};

/* `chain` and `key` are paths of PEM files; `minimum` and `maximum` are versions as on the wire
   (0x0301 is TLS 1.0, 0x0304 TLS 1.3), 0 for no maximum. `protocols` are those of ALPN, RFC 7301 §3.1,
   each after a byte with its length, the preferred one first; they are copied. Every cipher is
   allowed that the version needs. Null, with OpenSSL's words in `error`, when a file cannot be used. */
ctls_context *_Nullable ctls_context_create(
    const char *_Nonnull chain, const char *_Nonnull key, int minimum, int maximum,
    const unsigned char *_Nonnull protocols, unsigned protocols_count, char *_Nonnull error,
    size_t error_capacity);
void ctls_context_free(ctls_context *_Nullable context);

/* The context has to outlive it. Null without memory. */
ctls_session *_Nullable ctls_session_create(ctls_context *_Nonnull context);
void ctls_session_free(ctls_session *_Nullable session);

/* Takes bytes that the client sent. CTLS_DONE or CTLS_FAILED. */
int ctls_take(ctls_session *_Nonnull session, const void *_Nullable bytes, int count);

/* Goes on with the handshake. CTLS_DONE, CTLS_WANTS_MORE or CTLS_FAILED. */
int ctls_shake_hands(ctls_session *_Nonnull session);

/* The protocol that was agreed on, without a null byte at its end; `count` is 0 when there is none. */
const unsigned char *_Nullable ctls_protocol(
    const ctls_session *_Nonnull session, unsigned *_Nonnull count);

/* Decrypts; `count` gets the number of bytes when the result is CTLS_DONE. */
int ctls_read(
    ctls_session *_Nonnull session, void *_Nullable buffer, int capacity, int *_Nonnull count);

/* Encrypts all of `count` bytes. CTLS_DONE or CTLS_FAILED. Not before the handshake is done. */
int ctls_write(ctls_session *_Nonnull session, const void *_Nullable bytes, int count);

/* Says that nothing follows (close_notify). */
void ctls_end(ctls_session *_Nonnull session);

/* The number of bytes that wait to be sent to the client, and takes them. */
size_t ctls_waiting(const ctls_session *_Nonnull session);
int ctls_give(ctls_session *_Nonnull session, void *_Nullable buffer, int capacity);

#endif

#include "CTLS.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>

struct ctls_context {
    SSL_CTX *library;
    const unsigned char *protocols;
    unsigned protocols_count;
};

/* The library's buffers belong to `library`, which frees them. */
struct ctls_session {
    SSL *library;
    BIO *from_client;
    BIO *to_client;
};

static int choose_protocol(
    SSL *library, const unsigned char **chosen, unsigned char *chosen_count,
    const unsigned char *offered, unsigned offered_count, void *user) {
    (void)library;
    const ctls_context *context = user;
    unsigned char *selected = NULL;
    if (SSL_select_next_proto(
            &selected, chosen_count, context->protocols, context->protocols_count, offered,
            offered_count)
        != OPENSSL_NPN_NEGOTIATED) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    *chosen = selected;
    return SSL_TLSEXT_ERR_OK;
}

void ctls_context_free(ctls_context *context) {
    if (context == NULL) {
        return;
    }
    SSL_CTX_free(context->library);
    free((void *)context->protocols);
    free(context);
}

ctls_context *ctls_context_create(
    const char *chain, const char *key, int minimum, int maximum, const unsigned char *protocols,
    unsigned protocols_count, char *error, size_t error_capacity) {
    ERR_clear_error();
    ctls_context *context = calloc(1, sizeof *context);
    if (context == NULL) {
        return NULL;
    }
    unsigned char *copy = malloc(protocols_count);
    if (copy != NULL) {
        for (unsigned index = 0; index < protocols_count; index++) {
            copy[index] = protocols[index];
        }
        context->protocols = copy;
        context->protocols_count = protocols_count;
        context->library = SSL_CTX_new(TLS_server_method());
    }
    if (context->library != NULL) {
        /* The system's configuration may forbid parameters that a test needs. */
        SSL_CTX_set_security_level(context->library, 0);
        SSL_CTX_set_alpn_select_cb(context->library, choose_protocol, context);
        if (SSL_CTX_set_min_proto_version(context->library, minimum) == 1
            && SSL_CTX_set_max_proto_version(context->library, maximum) == 1
            && SSL_CTX_use_certificate_chain_file(context->library, chain) == 1
            && SSL_CTX_use_PrivateKey_file(context->library, key, SSL_FILETYPE_PEM) == 1) {
            return context;
        }
    }
    ERR_error_string_n(ERR_get_error(), error, error_capacity);
    ctls_context_free(context);
    return NULL;
}

int ctls_context_require_client(ctls_context *context, const char *authority) {
    if (SSL_CTX_load_verify_locations(context->library, authority, NULL) != 1) {
        return CTLS_FAILED;
    }
    SSL_CTX_set_verify(
        context->library, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return CTLS_DONE;
}

void ctls_session_free(ctls_session *session) {
    if (session == NULL) {
        return;
    }
    SSL_free(session->library);
    free(session);
}

ctls_session *ctls_session_create(ctls_context *context) {
    ctls_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->library = SSL_new(context->library);
    session->from_client = BIO_new(BIO_s_mem());
    session->to_client = BIO_new(BIO_s_mem());
    if (session->library == NULL || session->from_client == NULL || session->to_client == NULL) {
        BIO_free(session->from_client);
        BIO_free(session->to_client);
        ctls_session_free(session);
        return NULL;
    }
    /* An empty buffer is a pause, not the end of the connection. */
    BIO_set_mem_eof_return(session->from_client, -1);
    SSL_set_bio(session->library, session->from_client, session->to_client);
    SSL_set_accept_state(session->library);
    return session;
}

int ctls_is_resumed(const ctls_session *session) { return SSL_session_reused(session->library); }

/* Maps the return value of a call to a CTLS result. */
static int outcome(const ctls_session *session, int status) {
    switch (SSL_get_error(session->library, status)) {
    case SSL_ERROR_NONE:
        return CTLS_DONE;
    case SSL_ERROR_WANT_READ:
        return CTLS_WANTS_MORE;
    case SSL_ERROR_ZERO_RETURN:
        return CTLS_ENDED;
    default:
        return CTLS_FAILED;
    }
}

int ctls_take(ctls_session *session, const void *bytes, int count) {
    if (count == 0 || BIO_write(session->from_client, bytes, count) == count) {
        return CTLS_DONE;
    }
    return CTLS_FAILED;
}

int ctls_shake_hands(ctls_session *session) {
    ERR_clear_error();
    return outcome(session, SSL_do_handshake(session->library));
}

const unsigned char *ctls_protocol(const ctls_session *session, unsigned *count) {
    const unsigned char *name = NULL;
    SSL_get0_alpn_selected(session->library, &name, count);
    return name;
}

int ctls_read(ctls_session *session, void *buffer, int capacity, int *count) {
    ERR_clear_error();
    *count = SSL_read(session->library, buffer, capacity);
    return outcome(session, *count);
}

int ctls_write(ctls_session *session, const void *bytes, int count) {
    if (count == 0) {
        return CTLS_DONE;
    }
    ERR_clear_error();
    /* Without partial writes, it takes all bytes or fails. */
    return outcome(session, SSL_write(session->library, bytes, count));
}

void ctls_end(ctls_session *session) {
    ERR_clear_error();
    SSL_shutdown(session->library);
}

size_t ctls_waiting(const ctls_session *session) {
    return BIO_ctrl_pending(session->to_client);
}

int ctls_give(ctls_session *session, void *buffer, int capacity) {
    return BIO_read(session->to_client, buffer, capacity);
}

// The C boundary to libcurl: the whole of its header, and typed wrappers for the functions that
// Swift cannot call because they are variadic. Nothing else.
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>

#pragma clang assume_nonnull begin

// curl_easy_setopt is variadic; one wrapper for each kind of argument it takes.

static inline CURLcode ccurl_easy_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

/// The string is copied by libcurl.
static inline CURLcode ccurl_easy_set_string(CURL *handle, CURLoption option,
                                             const char *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_easy_set_pointer(CURL *handle, CURLoption option,
                                              void *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

/// The list is kept by reference: it has to live as long as the handle uses it.
static inline CURLcode ccurl_easy_set_list(CURL *handle, CURLoption option,
                                           struct curl_slist *_Nullable value) {
    return curl_easy_setopt(handle, option, value);
}

typedef size_t (*ccurl_write_function)(char *_Nullable data, size_t size, size_t count,
                                       void *_Nullable context);

static inline CURLcode ccurl_easy_set_write_function(CURL *handle, ccurl_write_function function) {
    return curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_header_function(CURL *handle,
                                                      ccurl_write_function function) {
    return curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_open_socket_function(CURL *handle,
                                                           curl_opensocket_callback function) {
    return curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_prerequest_function(CURL *handle,
                                                          curl_prereq_callback function) {
    return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, function);
}

/// The address that libcurl is about to connect to: the struct ends with a member that is longer
/// than its type says, so that it must not be copied out.
static inline const struct sockaddr *ccurl_socket_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

// curl_easy_getinfo is variadic too.

static inline CURLcode ccurl_easy_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_easy_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(handle, info, value);
}

/// The list is the caller's to free.
static inline CURLcode ccurl_easy_get_list(CURL *handle, CURLINFO info,
                                           struct curl_slist *_Nullable *_Nonnull value) {
    return curl_easy_getinfo(handle, info, value);
}

/// curl_share_setopt is variadic.
static inline CURLSHcode ccurl_share_set_data(CURLSH *share, curl_lock_data data) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, data);
}

/// curl_multi_setopt is variadic.
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// The members of CURLMsg that a finished transfer has: its `data` is a union, which Swift sees
/// as overlapping storage without saying which member is valid.
static inline CURLcode ccurl_message_result(const CURLMsg *message) {
    return message->data.result;
}

#pragma clang assume_nonnull end

#endif

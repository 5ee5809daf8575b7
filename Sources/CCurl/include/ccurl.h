// The C boundary to libcurl: the types of its header, and wrappers for the functions used here.
//
// libcurl is loaded on first use instead of linked. Debian's brings 27 libraries along, which took
// a third of the time of commands without network access. The wrappers have their own names, so
// that the program contains no undefined libcurl symbol.
//
// Functions that create something (a handle, a list, an error's text) load libcurl and report a
// failure to load. All others require an object created by those.
#ifndef CCURL_H
#define CCURL_H

#include <curl/curl.h>

#pragma clang assume_nonnull begin

/// The name of the library, unchanged since 7.16 (2006).
#define CCURL_LIBRARY "libcurl.so.4"

/// All functions used here, without the prefix `curl_`.
#define CCURL_FUNCTIONS(FUNCTION) \
    FUNCTION(easy_cleanup) \
    FUNCTION(easy_getinfo) \
    FUNCTION(easy_header) \
    FUNCTION(easy_init) \
    FUNCTION(easy_nextheader) \
    FUNCTION(easy_pause) \
    FUNCTION(easy_setopt) \
    FUNCTION(easy_strerror) \
    FUNCTION(free) \
    FUNCTION(global_init) \
    FUNCTION(multi_add_handle) \
    FUNCTION(multi_cleanup) \
    FUNCTION(multi_info_read) \
    FUNCTION(multi_init) \
    FUNCTION(multi_perform) \
    FUNCTION(multi_poll) \
    FUNCTION(multi_remove_handle) \
    FUNCTION(multi_setopt) \
    FUNCTION(multi_strerror) \
    FUNCTION(multi_wakeup) \
    FUNCTION(share_cleanup) \
    FUNCTION(share_init) \
    FUNCTION(share_setopt) \
    FUNCTION(slist_append) \
    FUNCTION(slist_free_all) \
    FUNCTION(url) \
    FUNCTION(url_cleanup) \
    FUNCTION(url_dup) \
    FUNCTION(url_get) \
    FUNCTION(url_set) \
    FUNCTION(url_strerror) \
    FUNCTION(version)

/// The loaded functions with the types of the header; all NULL before loading and after a failure.
struct ccurl_functions {
#define CCURL_MEMBER(name) __typeof__(curl_##name) *_Nullable name;
    CCURL_FUNCTIONS(CCURL_MEMBER)
#undef CCURL_MEMBER
};

/// Written by `ccurl_load` only.
extern struct ccurl_functions ccurl_functions __attribute__((visibility("hidden")));

/// Loads libcurl once per process; callable from any thread.
///
/// Returns NULL, or the reason for the failure: one line that names the missing part.
const char *_Nullable ccurl_load(void);

// MARK: Loading

/// Returns NULL if libcurl cannot be loaded, like the functions below.
static inline const char *_Nullable ccurl_version(void) {
    return ccurl_load() ? NULL : ccurl_functions.version();
}

/// Returns CURLE_FAILED_INIT if libcurl cannot be loaded.
static inline CURLcode ccurl_global_init(long flags) {
    return ccurl_load() ? CURLE_FAILED_INIT : ccurl_functions.global_init(flags);
}

static inline CURL *_Nullable ccurl_easy_init(void) {
    return ccurl_load() ? NULL : ccurl_functions.easy_init();
}

static inline CURLM *_Nullable ccurl_multi_init(void) {
    return ccurl_load() ? NULL : ccurl_functions.multi_init();
}

static inline CURLSH *_Nullable ccurl_share_init(void) {
    return ccurl_load() ? NULL : ccurl_functions.share_init();
}

/// Copies the line; if it returns NULL, the list is unchanged.
static inline struct curl_slist *_Nullable ccurl_slist_append(struct curl_slist *_Nullable list,
                                                              const char *line) {
    return ccurl_load() ? NULL : ccurl_functions.slist_append(list, line);
}

static inline CURLU *_Nullable ccurl_url(void) {
    return ccurl_load() ? NULL : ccurl_functions.url();
}

static inline const char *ccurl_easy_strerror(CURLcode code) {
    const char *missing = ccurl_load();
    return missing ? missing : ccurl_functions.easy_strerror(code);
}

static inline const char *ccurl_multi_strerror(CURLMcode code) {
    const char *missing = ccurl_load();
    return missing ? missing : ccurl_functions.multi_strerror(code);
}

static inline const char *ccurl_url_strerror(CURLUcode code) {
    const char *missing = ccurl_load();
    return missing ? missing : ccurl_functions.url_strerror(code);
}

// MARK: URLs

static inline void ccurl_url_cleanup(CURLU *handle) { ccurl_functions.url_cleanup(handle); }

static inline CURLU *_Nullable ccurl_url_dup(CURLU *handle) {
    return ccurl_functions.url_dup(handle);
}

static inline CURLUcode ccurl_url_set(CURLU *handle, CURLUPart part, const char *_Nullable text,
                                      unsigned int flags) {
    return ccurl_functions.url_set(handle, part, text, flags);
}

/// The caller frees the text with `ccurl_free`.
static inline CURLUcode ccurl_url_get(CURLU *handle, CURLUPart part,
                                      char *_Nullable *_Nonnull text, unsigned int flags) {
    return ccurl_functions.url_get(handle, part, text, flags);
}

/// Frees memory that libcurl returned.
static inline void ccurl_free(void *_Nullable memory) {
    if (memory) ccurl_functions.free(memory);
}

// MARK: Easy handles

static inline void ccurl_easy_cleanup(CURL *handle) { ccurl_functions.easy_cleanup(handle); }

static inline CURLcode ccurl_easy_pause(CURL *handle, int bits) {
    return ccurl_functions.easy_pause(handle, bits);
}

static inline CURLHcode ccurl_easy_header(CURL *handle, const char *name, size_t index,
                                          unsigned int origin, int request,
                                          struct curl_header *_Nullable *_Nonnull field) {
    return ccurl_functions.easy_header(handle, name, index, origin, request, field);
}

static inline struct curl_header *_Nullable ccurl_easy_nextheader(
    CURL *handle, unsigned int origin, int request, struct curl_header *_Nullable previous) {
    return ccurl_functions.easy_nextheader(handle, origin, request, previous);
}

// curl_easy_setopt is variadic, which Swift cannot call; one wrapper for each kind of argument.

/* CURLAUTH_BASIC and CURLAUTH_DIGEST: Swift does not import their casts. */
static const long ccurl_authentication_basic = (long)CURLAUTH_BASIC;
static const long ccurl_authentication_digest = (long)CURLAUTH_DIGEST;

static inline CURLcode ccurl_easy_set_long(CURL *handle, CURLoption option, long value) {
    return ccurl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_easy_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
    return ccurl_functions.easy_setopt(handle, option, value);
}

/// The string is copied by libcurl.
static inline CURLcode ccurl_easy_set_string(CURL *handle, CURLoption option,
                                             const char *_Nullable value) {
    return ccurl_functions.easy_setopt(handle, option, value);
}

static inline CURLcode ccurl_easy_set_pointer(CURL *handle, CURLoption option,
                                              void *_Nullable value) {
    return ccurl_functions.easy_setopt(handle, option, value);
}

/// The list is not copied: it must outlive its use by the handle.
static inline CURLcode ccurl_easy_set_list(CURL *handle, CURLoption option,
                                           struct curl_slist *_Nullable value) {
    return ccurl_functions.easy_setopt(handle, option, value);
}

typedef size_t (*ccurl_byte_function)(char *_Nullable data, size_t size, size_t count,
                                      void *_Nullable context);

/// For CURLOPT_WRITEFUNCTION, CURLOPT_READFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode ccurl_easy_set_byte_function(CURL *handle, CURLoption option,
                                                    ccurl_byte_function function) {
    return ccurl_functions.easy_setopt(handle, option, function);
}

static inline CURLcode ccurl_easy_set_open_socket_function(CURL *handle,
                                                           curl_opensocket_callback function) {
    return ccurl_functions.easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_close_socket_function(CURL *handle,
                                                            curl_closesocket_callback function) {
    return ccurl_functions.easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, function);
}

static inline CURLcode ccurl_easy_set_prerequest_function(CURL *handle,
                                                          curl_prereq_callback function) {
    return ccurl_functions.easy_setopt(handle, CURLOPT_PREREQFUNCTION, function);
}

/// The address that libcurl is about to connect to. Do not copy the struct: its last member is
/// longer than its type.
static inline const struct sockaddr *ccurl_socket_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

// curl_easy_getinfo is variadic, too.

static inline CURLcode ccurl_easy_get_long(CURL *handle, CURLINFO info, long *value) {
    return ccurl_functions.easy_getinfo(handle, info, value);
}

static inline CURLcode ccurl_easy_get_offset(CURL *handle, CURLINFO info, curl_off_t *value) {
    return ccurl_functions.easy_getinfo(handle, info, value);
}

/// The text belongs to the handle.
static inline CURLcode ccurl_easy_get_string(CURL *handle, CURLINFO info,
                                             const char *_Nullable *_Nonnull value) {
    return ccurl_functions.easy_getinfo(handle, info, value);
}

/// The caller frees the list.
static inline CURLcode ccurl_easy_get_list(CURL *handle, CURLINFO info,
                                           struct curl_slist *_Nullable *_Nonnull value) {
    return ccurl_functions.easy_getinfo(handle, info, value);
}

static inline void ccurl_slist_free_all(struct curl_slist *_Nullable list) {
    if (list) ccurl_functions.slist_free_all(list);
}

// MARK: Shares

static inline void ccurl_share_cleanup(CURLSH *share) { ccurl_functions.share_cleanup(share); }

/// curl_share_setopt is variadic.
static inline CURLSHcode ccurl_share_set_data(CURLSH *share, curl_lock_data data) {
    return ccurl_functions.share_setopt(share, CURLSHOPT_SHARE, data);
}

// MARK: The multi handle

static inline void ccurl_multi_cleanup(CURLM *multi) { ccurl_functions.multi_cleanup(multi); }

static inline CURLMcode ccurl_multi_add_handle(CURLM *multi, CURL *handle) {
    return ccurl_functions.multi_add_handle(multi, handle);
}

static inline CURLMcode ccurl_multi_remove_handle(CURLM *multi, CURL *handle) {
    return ccurl_functions.multi_remove_handle(multi, handle);
}

static inline CURLMcode ccurl_multi_perform(CURLM *multi, int *running) {
    return ccurl_functions.multi_perform(multi, running);
}

static inline CURLMcode ccurl_multi_poll(CURLM *multi, int milliseconds) {
    return ccurl_functions.multi_poll(multi, NULL, 0, milliseconds, NULL);
}

/// Callable from any thread.
static inline CURLMcode ccurl_multi_wakeup(CURLM *multi) {
    return ccurl_functions.multi_wakeup(multi);
}

static inline CURLMsg *_Nullable ccurl_multi_info_read(CURLM *multi, int *remaining) {
    return ccurl_functions.multi_info_read(multi, remaining);
}

/// curl_multi_setopt is variadic.
static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return ccurl_functions.multi_setopt(multi, option, value);
}

/// A member of CURLMsg for finished transfers. Its `data` is a union, and Swift does not know which
/// member is valid.
static inline CURLcode ccurl_message_result(const CURLMsg *message) {
    return message->data.result;
}

#pragma clang assume_nonnull end

#endif

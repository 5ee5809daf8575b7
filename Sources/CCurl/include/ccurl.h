// The C boundary to libcurl: the types of its header, and wrappers for the functions used here.
//
// libcurl is loaded on first use instead of linked. Debian's brings 27 libraries along, which took
// a third of the time of commands without network access. The wrappers have their own names, so
// that the program contains no undefined libcurl symbol.
//
// Functions that create something (a handle, a list, an error's text) load libcurl and report a
// failure to load. All others require an object created by those.
#pragma once

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
    FUNCTION(version) \
    FUNCTION(version_info)

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

// An enumeration before libcurl 8.14, numbers since.
static const long ccurl_netrc_ignored = CURL_NETRC_IGNORED;
static const long ccurl_netrc_optional = CURL_NETRC_OPTIONAL;

// MARK: Loading

/// Returns NULL if libcurl cannot be loaded, like the functions below.
static inline const char *_Nullable ccurl_version(void) {
    return ccurl_load() ? NULL : ccurl_functions.version();
}

/// Returns 0x075801 for 7.88.1; 0 if libcurl cannot be loaded.
static inline unsigned ccurl_version_number(void) {
    return ccurl_load() ? 0 : ccurl_functions.version_info(CURLVERSION_NOW)->version_num;
}

/// Returns CURLE_FAILED_INIT if libcurl cannot be loaded.
static inline CURLcode ccurl_global_init(long flags) {
    return ccurl_load() ? CURLE_FAILED_INIT : ccurl_functions.global_init(flags);
}

#define CCURL_MAKER(type, name) \
    static inline type *_Nullable ccurl_##name(void) { \
        return ccurl_load() ? NULL : ccurl_functions.name(); \
    }
CCURL_MAKER(CURL, easy_init)
CCURL_MAKER(CURLM, multi_init)
CCURL_MAKER(CURLSH, share_init)
CCURL_MAKER(CURLU, url)

/// Copies the line; if it returns NULL, the list is unchanged.
static inline struct curl_slist *_Nullable ccurl_slist_append(struct curl_slist *_Nullable list,
                                                              const char *line) {
    return ccurl_load() ? NULL : ccurl_functions.slist_append(list, line);
}

#define CCURL_TEXT(name, type) \
    static inline const char *ccurl_##name(type code) { \
        const char *missing = ccurl_load(); \
        return missing ? missing : ccurl_functions.name(code); \
    }
CCURL_TEXT(easy_strerror, CURLcode)
CCURL_TEXT(multi_strerror, CURLMcode)
CCURL_TEXT(url_strerror, CURLUcode)

// MARK: Calls

/// A function that needs an object of libcurl.
#define CCURL_CALL(type, name, parameters, arguments) \
    static inline type ccurl_##name parameters { return ccurl_functions.name arguments; }

static inline void ccurl_url_cleanup(CURLU *handle) { ccurl_functions.url_cleanup(handle); }
CCURL_CALL(CURLU *_Nullable, url_dup, (CURLU *handle), (handle))
CCURL_CALL(CURLUcode, url_set,
           (CURLU *handle, CURLUPart part, const char *_Nullable text, unsigned int flags),
           (handle, part, text, flags))
/// The caller frees the text with `ccurl_free`.
CCURL_CALL(CURLUcode, url_get,
           (CURLU *handle, CURLUPart part, char *_Nullable *_Nonnull text, unsigned int flags),
           (handle, part, text, flags))

/// Frees memory that libcurl returned.
static inline void ccurl_free(void *_Nullable memory) {
    if (memory) ccurl_functions.free(memory);
}

static inline void ccurl_easy_cleanup(CURL *handle) { ccurl_functions.easy_cleanup(handle); }
CCURL_CALL(CURLcode, easy_pause, (CURL *handle, int bits), (handle, bits))
CCURL_CALL(CURLHcode, easy_header,
           (CURL *handle, const char *name, size_t index, unsigned int origin, int request,
            struct curl_header *_Nullable *_Nonnull field),
           (handle, name, index, origin, request, field))
CCURL_CALL(struct curl_header *_Nullable, easy_nextheader,
           (CURL *handle, unsigned int origin, int request,
            struct curl_header *_Nullable previous),
           (handle, origin, request, previous))

static inline void ccurl_slist_free_all(struct curl_slist *_Nullable list) {
    if (list) ccurl_functions.slist_free_all(list);
}

static inline void ccurl_share_cleanup(CURLSH *share) { ccurl_functions.share_cleanup(share); }

static inline void ccurl_multi_cleanup(CURLM *multi) { ccurl_functions.multi_cleanup(multi); }
CCURL_CALL(CURLMcode, multi_add_handle, (CURLM *multi, CURL *handle), (multi, handle))
CCURL_CALL(CURLMcode, multi_remove_handle, (CURLM *multi, CURL *handle), (multi, handle))
CCURL_CALL(CURLMcode, multi_perform, (CURLM *multi, int *running), (multi, running))
CCURL_CALL(CURLMcode, multi_poll, (CURLM *multi, int milliseconds),
           (multi, NULL, 0, milliseconds, NULL))
/// Callable from any thread.
CCURL_CALL(CURLMcode, multi_wakeup, (CURLM *multi), (multi))
CCURL_CALL(CURLMsg *_Nullable, multi_info_read, (CURLM *multi, int *remaining),
           (multi, remaining))

// MARK: Variadic functions

// Swift cannot call them; one wrapper for each kind of argument.

/* CURLAUTH_BASIC and CURLAUTH_DIGEST: Swift does not import their casts. */
static const long ccurl_authentication_basic = (long)CURLAUTH_BASIC;
static const long ccurl_authentication_digest = (long)CURLAUTH_DIGEST;

typedef size_t (*ccurl_byte_function)(char *_Nullable data, size_t size, size_t count,
                                      void *_Nullable context);

#define CCURL_SET(kind, type) \
    static inline CURLcode ccurl_easy_set_##kind(CURL *handle, CURLoption option, type value) { \
        return ccurl_functions.easy_setopt(handle, option, value); \
    }
CCURL_SET(long, long)
CCURL_SET(offset, curl_off_t)
/// The string is copied by libcurl.
CCURL_SET(string, const char *_Nullable)
CCURL_SET(pointer, void *_Nullable)
/// The list is not copied: it must outlive its use by the handle.
CCURL_SET(list, struct curl_slist *_Nullable)
/// For CURLOPT_WRITEFUNCTION, CURLOPT_READFUNCTION and CURLOPT_HEADERFUNCTION.
CCURL_SET(byte_function, ccurl_byte_function)
CCURL_SET(open_socket_function, curl_opensocket_callback)
CCURL_SET(close_socket_function, curl_closesocket_callback)
CCURL_SET(prerequest_function, curl_prereq_callback)

#define CCURL_GET(kind, type) \
    static inline CURLcode ccurl_easy_get_##kind(CURL *handle, CURLINFO info, type value) { \
        return ccurl_functions.easy_getinfo(handle, info, value); \
    }
CCURL_GET(long, long *)
CCURL_GET(offset, curl_off_t *)
/// The text belongs to the handle.
CCURL_GET(string, const char *_Nullable *_Nonnull)
/// The caller frees the list.
CCURL_GET(list, struct curl_slist *_Nullable *_Nonnull)

static inline CURLSHcode ccurl_share_set_data(CURLSH *share, curl_lock_data data) {
    return ccurl_functions.share_setopt(share, CURLSHOPT_SHARE, data);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return ccurl_functions.multi_setopt(multi, option, value);
}

// MARK: Members of structs

/// The address that libcurl is about to connect to. Do not copy the struct: its last member is
/// longer than its type.
static inline const struct sockaddr *ccurl_socket_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

/// A member of CURLMsg for finished transfers. Its `data` is a union, and Swift does not know which
/// member is valid.
static inline CURLcode ccurl_message_result(const CURLMsg *message) {
    return message->data.result;
}

#pragma clang assume_nonnull end

internal import CCurl
import PrefetchModel

/// libcurl's data that the handles of all transfers share: TLS sessions, and cookies with a jar.
///
/// Without it each handle has its own TLS sessions, and a new connection resumes one only by
/// chance. libcurl keeps eight, of the hosts that used one last. Only the loop's thread uses
/// it: libcurl needs no locks.
final class SharedData {
    /// For CURLOPT_SHARE. Each handle's owner keeps a reference, since no handle may outlive it.
    let pointer: UnsafeMutableRawPointer

    init(hasCookies: Bool) throws(UserError) {
        guard let pointer = ccurl_share_init() else { throw SharedData.outOfMemory }
        self.pointer = pointer
        let kinds = [CURL_LOCK_DATA_SSL_SESSION] + (hasCookies ? [CURL_LOCK_DATA_COOKIE] : [])
        for kind in kinds where ccurl_share_set_data(pointer, kind) != CURLSHE_OK {
            throw SharedData.outOfMemory
        }
    }

    deinit { ccurl_share_cleanup(pointer) }

    private static var outOfMemory: UserError {
        UserError(
            libcurl: "shared data", CURLE_OUT_OF_MEMORY.rawValue,
            String(cString: ccurl_easy_strerror(CURLE_OUT_OF_MEMORY)))
    }
}

import CCurl
import Glibc
import PrefetchModel

extension URLParser {
    /// One part of a parsed URL as libcurl hands it out; nil when it answers `absent`, its code for
    /// a part that the URL does not have.
    static func part(
        _ part: CURLUPart, of handle: OpaquePointer, flags: UInt32 = 0, absent: CURLUcode
    ) throws(EntryBatch.Problem) -> [UInt8]? {
        var text: UnsafeMutablePointer<CChar>?
        let status = curl_url_get(handle, part, &text, flags)
        defer { curl_free(text) }
        if status != CURLUE_OK, status == absent { return nil }
        guard status == CURLUE_OK, let text else { throw problem(status) }
        return Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }

    /// A failure of libcurl's URL API in words that hold nothing of the URL.
    static func problem(_ code: CURLUcode) -> EntryBatch.Problem {
        switch code {
        case CURLUE_UNSUPPORTED_SCHEME:
            EntryBatch.Problem(
                reason: .unsupportedScheme, message: "only http and https are supported")
        case CURLUE_BAD_SCHEME:
            EntryBatch.Problem(
                reason: .invalidEntry,
                message: "the scheme is missing (write https:// in front, or give --base-url)")
        case CURLUE_NO_HOST:
            EntryBatch.Problem(reason: .invalidEntry, message: "the URL has no host")
        case CURLUE_BAD_HOSTNAME:
            EntryBatch.Problem(reason: .invalidEntry, message: "the host name is not valid")
        case CURLUE_BAD_IPV6:
            EntryBatch.Problem(reason: .invalidEntry, message: "the IPv6 address is not valid")
        case CURLUE_BAD_PORT_NUMBER:
            EntryBatch.Problem(
                reason: .invalidEntry, message: "the port is not a number within 0…65535")
        case CURLUE_BAD_SLASHES:
            EntryBatch.Problem(
                reason: .invalidEntry, message: "the scheme is not followed by two slashes")
        case CURLUE_BAD_USER, CURLUE_BAD_LOGIN, CURLUE_BAD_PASSWORD:
            EntryBatch.Problem(reason: .invalidEntry, message: "the user information is not valid")
        default:
            EntryBatch.Problem(
                reason: .invalidEntry,
                message: "not a valid URL (\(String(cString: curl_url_strerror(code))))")
        }
    }
}

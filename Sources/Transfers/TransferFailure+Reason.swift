internal import CCurl
import PrefetchModel

extension TransferFailure {
    /// The reason that a code of libcurl stands for.
    ///
    /// `isConnected` tells whether the request had begun to be sent.
    static func reason(curlCode: CURLcode, isConnected: Bool) -> FailureReason {
        switch curlCode {
        case CURLE_UNSUPPORTED_PROTOCOL:
            .unsupportedScheme
        case CURLE_URL_MALFORMAT:
            .invalidEntry
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            .dns
        // SOCKS proxies say in one code whatever kept them from connecting.
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_PROXY:
            .connect
        case CURLE_OPERATION_TIMEDOUT:
            // Only the time-out for connecting is libcurl's.
            isConnected ? .timeout : .connect
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ENGINE_NOTFOUND,
            CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CRL_BADFILE,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED, CURLE_SSL_CLIENTCERT:
            .tls
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
            CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_HTTP2_STREAM,
            CURLE_HTTP3, CURLE_CHUNK_FAILED, CURLE_BAD_CONTENT_ENCODING, CURLE_AGAIN:
            .interrupted
        case CURLE_OUT_OF_MEMORY:
            // Also libcurl's answer to a header line longer than it accepts.
            isConnected ? .interrupted : .internal
        case CURLE_FILESIZE_EXCEEDED:
            .tooLarge
        default:
            .internal
        }
    }
}

internal import CCurl
import PrefetchModel

extension TransferFailure {
    /// How far a transfer had come when libcurl gave it up.
    enum Phase: Hashable, CaseIterable {
        /// Nothing of the request was sent: resolving, connecting, TLS.
        case connecting
        /// The request was sent, at least in part: what is wrong is the answer.
        case answering
    }

    /// The reason that a code of libcurl stands for: the one table of them.
    ///
    /// URLs are parsed before they become requests, the protocols are http and https, and
    /// the only callbacks that end a transfer say why themselves. So once a request was sent, what
    /// goes wrong is the connection's or the origin's doing, and may be over soon; `internal` is
    /// left for what this machine or this program does wrong.
    static func reason(curlCode: CURLcode, in phase: Phase) -> FailureReason {
        switch curlCode {
        // Before a request is sent: this libcurl lacks TLS. Afterwards: an answer that is not HTTP, of a
        // version or status that libcurl does not know.
        case CURLE_UNSUPPORTED_PROTOCOL:
            phase == .answering ? .interrupted : .unsupportedScheme
        // Our parser and libcurl's request disagree: never held against the URL.
        case CURLE_URL_MALFORMAT:
            .invalidEntry

        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            .dns

        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_QUIC_CONNECT_ERROR:
            .connect
        // SOCKS proxies say in one code whatever kept them from connecting.
        case CURLE_PROXY:
            .connect
        // Only the time-out for connecting is libcurl's; the others are ours.
        case CURLE_OPERATION_TIMEDOUT:
            phase == .answering ? .timeout : .connect

        // What the handshake or the certificate of the other side did.
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CIPHER,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED, CURLE_SSL_CLIENTCERT:
            .tls
        // Files and engines of this machine: a wrong `--cacert` says nothing about an origin.
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED:
            .internal

        // The connection ended, or what came over it is not HTTP.
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
            CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3,
            CURLE_CHUNK_FAILED, CURLE_AGAIN, CURLE_RANGE_ERROR, CURLE_BAD_DOWNLOAD_RESUME:
            .interrupted
        // An encoding that was not asked for, and cannot be decoded.
        case CURLE_BAD_CONTENT_ENCODING:
            .interrupted
        // Our write function says why when it refuses bytes; without that it was libcurl's decoder, which
        // found something behind the end of compressed data.
        case CURLE_WRITE_ERROR:
            .interrupted
        // Also libcurl's answer to a header line longer than it accepts; newer ones have a code of
        // its own for that.
        case CURLE_OUT_OF_MEMORY:
            phase == .answering ? .interrupted : .internal
        case TransferFailure.tooLarge:
            .interrupted

        case CURLE_FILESIZE_EXCEEDED:
            .tooLarge

        // Options, callbacks and protocols that are not used here, and codes that nobody knows yet.
        default:
            .internal
        }
    }

    /// What happened, where libcurl's own words for the code are for other cases of it.
    static func message(curlCode: CURLcode, in phase: Phase) -> String? {
        switch (curlCode, phase) {
        case (CURLE_WRITE_ERROR, _):
            "there is data after the end of the compressed body"
        case (CURLE_OUT_OF_MEMORY, .answering), (TransferFailure.tooLarge, _):
            "the response header is too long"
        default:
            nil
        }
    }

    /// CURLE_TOO_LARGE: a field grew larger than allowed (libcurl 8.6).
    private static let tooLarge = CURLcode(rawValue: 100)
}

extension TransferFailure {
    /// Whether it was ended by a callback of ours, of which libcurl's code says no more than that.
    package var isEndedByUs: Bool {
        curlCode == Int32(CURLE_WRITE_ERROR.rawValue)
            || curlCode == Int32(CURLE_ABORTED_BY_CALLBACK.rawValue)
    }
}

internal import CCurl
import Glibc
package import PrefetchModel

extension TransferFailure {
    /// The phase in which libcurl gave a transfer up.
    enum TransferPhase: Hashable, CaseIterable {
        /// Resolving, connecting or TLS: nothing of the request was sent.
        case connecting
        /// The request was sent, at least in part: the response is at fault.
        case answering
    }

    /// Maps libcurl's codes to reasons; the only such table.
    ///
    /// URLs are parsed before they become requests, the protocols are http and https, and
    /// callbacks that end a transfer record their own reason. So a failure after the request was
    /// sent is due to the connection or the origin, and may be temporary. `internal` is for
    /// failures of this machine or program.
    static func reason(curlCode: CURLcode, in phase: TransferPhase) -> FailureReason {
        switch curlCode {
        // Before a request: this libcurl lacks TLS. After it: no HTTP, or an unknown version.
        case CURLE_UNSUPPORTED_PROTOCOL:
            phase == .answering ? .interrupted : .unsupportedScheme
        // Our parser and libcurl's request disagree, which never counts against the URL.
        case CURLE_URL_MALFORMAT:
            .invalidEntry

        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            .dns

        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED, CURLE_QUIC_CONNECT_ERROR:
            .connect
        // SOCKS proxies report every reason for not connecting with one code.
        case CURLE_PROXY:
            .connect
        // Only the time-out for connecting is libcurl's; this program checks the others.
        case CURLE_OPERATION_TIMEDOUT:
            phase == .answering ? .timeout : .connect

        // The handshake or the certificate of the other side.
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CIPHER,
            CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_SHUTDOWN_FAILED, CURLE_USE_SSL_FAILED, CURLE_SSL_CLIENTCERT:
            .tls
        // Files and engines of this machine: a wrong `--cacert` is not the origin's fault.
        case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED:
            .internal

        // The connection ended, or carried something other than HTTP.
        case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_RECV_ERROR,
            CURLE_WEIRD_SERVER_REPLY, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3,
            CURLE_CHUNK_FAILED, CURLE_AGAIN, CURLE_RANGE_ERROR, CURLE_BAD_DOWNLOAD_RESUME:
            .interrupted
        // An unrequested encoding that cannot be decoded.
        case CURLE_BAD_CONTENT_ENCODING:
            .interrupted
        // Our write function records its reason when it refuses bytes. Without one, libcurl's
        // decoder found data after the end of the compressed body.
        case CURLE_WRITE_ERROR:
            .interrupted
        // Also libcurl's code for a header line that is too long, but for newer versions.
        case CURLE_OUT_OF_MEMORY:
            phase == .answering ? .interrupted : .internal
        case TransferFailure.tooLarge:
            .interrupted

        case CURLE_FILESIZE_EXCEEDED:
            .tooLarge

        // Options, callbacks and protocols that are not used here, and future codes. After the
        // request, libcurl has codes of its own for some responses that it cannot read.
        default:
            phase == .answering ? .interrupted : .internal
        }
    }

    /// Maps a code, the system's error of the last connection, and libcurl's message.
    static func persistence(
        curlCode: CURLcode, systemError: Int32, text: String
    ) -> Persistence {
        switch curlCode {
        case CURLE_PEER_FAILED_VERIFICATION: .untrusted
        // libcurl does not say whether the name or its server is unknown.
        case CURLE_COULDNT_RESOLVE_HOST: .absent
        case CURLE_COULDNT_CONNECT where systemError == ECONNREFUSED: .absent
        // No TLS at the port, or none that fits. The code also stands for connections that break
        // in the handshake; their messages name no error of OpenSSL's, or an end.
        case CURLE_SSL_CONNECT_ERROR
        where text.contains("error:") && !text.contains("unexpected eof"): .absent
        default: .unknown
        }
    }

    /// Whether libcurl's message is that of a server's alert about the client's certificate
    /// (RFC 8446 §6.2). With TLS 1.3 it arrives in place of the response.
    static func refusesCertificate(_ text: String) -> Bool {
        let text = text.lowercased()
        return text.contains("alert")
            && ["certificate", "unknown ca", "access denied"].contains(where: text.contains)
    }

    /// Whether libcurl's message is that of an alert by which servers with TLS 1.2 refuse clients
    /// without a certificate, or with another one, among other reasons (RFC 5246 §7.2.2).
    static func mayRefuseCertificate(_ text: String) -> Bool {
        text.lowercased().contains("alert handshake failure")
    }

    /// A message for codes with a text in libcurl that describes other cases; nil for the rest.
    static func message(curlCode: CURLcode, in phase: TransferPhase) -> String? {
        switch (curlCode, phase) {
        case (CURLE_WRITE_ERROR, _):
            "there is data after the end of the compressed body"
        case (CURLE_BAD_FUNCTION_ARGUMENT, .answering):
            "the response header begins with a blank"
        case (CURLE_OUT_OF_MEMORY, .answering), (TransferFailure.tooLarge, _):
            "the response header is too long"
        default:
            nil
        }
    }

    /// Whether one of the time limits has passed.
    package var isTimeout: Bool {
        [.timeout, .stalled].contains(reason)
            || curlCode == Int(CURLE_OPERATION_TIMEDOUT.rawValue)
    }

    /// Whether the response's head or trailers exceed the limits, as they would at another attempt:
    /// libcurl's for a head, or ours, which end a transfer by a callback.
    package var hasExcessiveHead: Bool {
        reason == .interrupted
            && [CURLE_OUT_OF_MEMORY, CURLE_WRITE_ERROR, TransferFailure.tooLarge]
                .contains { Int($0.rawValue) == curlCode }
    }

    /// CURLE_TOO_LARGE: a field grew larger than allowed (libcurl 8.6).
    private static let tooLarge = CURLcode(rawValue: 100)
}

extension TransferFailure {
    /// The failure with libcurl's code in its message, for reports.
    ///
    /// The code of a transfer that our own callback ended is meaningless and left out.
    package var namingCurlCode: TransferFailure {
        let ours = [CURLE_WRITE_ERROR, CURLE_ABORTED_BY_CALLBACK].map { Int($0.rawValue) }
        guard let curlCode, !ours.contains(curlCode) else { return self }
        // As on a minimal system.
        let remedy =
            curlCode == Int(CURLE_SSL_CACERT_BADFILE.rawValue)
            ? "; install ca-certificates, or see --cacert" : ""
        return TransferFailure(
            Failure(reason, "\(message) (libcurl \(curlCode))\(remedy)"), httpStatus: httpStatus,
            curlCode: curlCode, persistence: persistence)
    }
}

import CCurl
import Glibc
import PrefetchModel
import Testing

@testable import Transfers

@Suite(.timeLimit(.minutes(15)))
struct FailureReasonTests {
    /// Codes with a reason of their own; all others are the origin's fault after the request.
    private static let origins: [UInt32: FailureReason] = [
        5: .dns, 6: .dns, 7: .connect, 45: .connect, 96: .connect, 97: .connect,
        35: .tls, 59: .tls, 60: .tls, 64: .tls, 80: .tls, 83: .tls, 90: .tls, 91: .tls, 98: .tls,
        8: .interrupted, 16: .interrupted, 18: .interrupted, 23: .interrupted, 33: .interrupted,
        36: .interrupted, 52: .interrupted, 55: .interrupted, 56: .interrupted, 61: .interrupted,
        81: .interrupted, 88: .interrupted, 92: .interrupted, 95: .interrupted,
        100: .interrupted, 63: .tooLarge, 3: .invalidEntry,
        // Files and engines of this machine.
        53: .internal, 54: .internal, 58: .internal, 66: .internal, 77: .internal, 82: .internal,
    ]

    private static func reason(
        _ code: UInt32, _ phase: TransferFailure.TransferPhase
    ) -> FailureReason {
        TransferFailure.reason(curlCode: CURLcode(rawValue: code), in: phase)
    }

    @Test func mapsEveryCode() {
        let byPhase: Set<UInt32> = [1, 27, 28]
        for code in UInt32(1)...120 where !byPhase.contains(code) {
            for phase in TransferFailure.TransferPhase.allCases {
                let reason = Self.reason(code, phase)
                let unknown = phase == .answering ? FailureReason.interrupted : .internal
                #expect(reason == Self.origins[code] ?? unknown, "code \(code)")
            }
        }
    }

    @Test func hostsWithoutAServerAreAbsent() {
        func persistence(
            _ code: CURLcode, _ error: Int32 = 0, _ text: String = ""
        ) -> TransferFailure.Persistence {
            TransferFailure.persistence(curlCode: code, systemError: error, text: text)
        }
        #expect(persistence(CURLE_COULDNT_RESOLVE_HOST) == .absent)
        #expect(persistence(CURLE_COULDNT_CONNECT, ECONNREFUSED) == .absent)
        #expect(persistence(CURLE_COULDNT_CONNECT, ENETUNREACH) == .unknown)
        for (text, isAbsent) in [
            ("OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number", true),
            ("TLS connect error: error:0A00010B:SSL routines::wrong version number", true),
            ("OpenSSL/3.0.19: error:0A000126:SSL routines::unexpected eof while reading", false),
            (
                "OpenSSL SSL_connect: Connection reset by peer in connection to a.example:443 ",
                false
            ),
            ("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to a.example:443 ", false),
        ] {
            let expected = isAbsent ? TransferFailure.Persistence.absent : .unknown
            #expect(persistence(CURLE_SSL_CONNECT_ERROR, 0, text) == expected, "\(text)")
        }
        #expect(persistence(CURLE_PEER_FAILED_VERIFICATION) == .untrusted)
        #expect(persistence(CURLE_OPERATION_TIMEDOUT) == .unknown)
    }

    @Test func missingAuthoritiesNameTheirPackage() {
        let failure = TransferFailure(
            Failure(.internal, "error setting certificate file: /a"), httpStatus: nil,
            curlCode: Int(CURLE_SSL_CACERT_BADFILE.rawValue), persistence: .unknown)
        #expect(
            failure.namingCurlCode.message
                == "error setting certificate file: /a (libcurl 77); install ca-certificates, or see "
                + "--cacert")
    }

    @Test func aMalformedResponseIsInterrupted() {
        #expect(Self.reason(1, .connecting) == .unsupportedScheme)
        #expect(Self.reason(1, .answering) == .interrupted)
        #expect(Self.reason(27, .connecting) == .internal)
        #expect(Self.reason(27, .answering) == .interrupted)
        #expect(Self.reason(28, .connecting) == .connect)
        #expect(Self.reason(28, .answering) == .timeout)
    }
}

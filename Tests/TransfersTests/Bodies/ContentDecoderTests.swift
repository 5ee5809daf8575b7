import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

/// Content codings as servers and stores send them.
@Suite struct ContentDecoderTests {
    private static let plain = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    private static func gzip(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        Encodings.encoded(Array(bytes), .gzip)
    }

    /// Decodes pieces of a size; every third part is refused once, as after a full budget, and
    /// the rest of its piece is offered again in two parts.
    private func decoded(_ bytes: [UInt8], pieces: Int, pauses: Bool) throws -> [UInt8] {
        let decoder = ContentDecoder()
        var output: [UInt8] = []
        var parts = 0
        func take(_ part: UnsafeRawBufferPointer) -> Bool {
            parts += 1
            guard !pauses || parts % 3 != 0 else { return false }
            output += part
            return true
        }
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            let isTaken = try piece.withUnsafeBytes { try decoder.decode($0, take: take) }
            guard !isTaken else { continue }
            for half in [piece.prefix(piece.count / 2), piece.dropFirst(piece.count / 2)] {
                let half = Array(half)
                while try !half.withUnsafeBytes({ try decoder.decode($0, take: take) }) {}
            }
        }
        guard decoder.isAtEnd else { throw Failure(.interrupted, "cut") }
        return output
    }

    static let forms: [(String, [UInt8])] = [
        ("gzip", gzip(plain)), ("zeros", gzip(plain) + [UInt8](repeating: 0, count: 700)),
        ("members", gzip(plain[..<70_000]) + gzip(plain[70_000...])),
        ("empty members", gzip([]) + gzip(plain) + gzip([]) + [0]),
        ("deflate", Encodings.encoded(plain, .deflate)),
        ("raw deflate", Encodings.encoded(plain, .rawDeflate)),
    ]

    @Test(arguments: forms, [1, 100, 64 << 10, .max])
    func isDecoded(form: (name: String, bytes: [UInt8]), pieces: Int) throws {
        let pieces = min(pieces, form.bytes.count)
        #expect(try decoded(form.bytes, pieces: pieces, pauses: false) == Self.plain)
        if pieces > 1 {
            #expect(try decoded(form.bytes, pieces: pieces, pauses: true) == Self.plain)
        }
    }

    @Test(arguments: [
        (gzip(plain) + [7], "there is data after the end of the compressed body"),
        (gzip(plain) + [0, 7], "there is data after the end of the compressed body"),
        (Encodings.encoded(plain, .deflate) + [1], "there is data after the end"),
        (gzip(plain) + [0x1F, 0], "the compressed body is damaged"),
        ([UInt8](repeating: 0xFF, count: 50), "the compressed body is damaged"),
        (Array(gzip(plain).dropLast()), "cut"), (gzip(plain) + gzip(plain).prefix(30), "cut"),
    ])
    func otherBytesAreErrors(bytes: [UInt8], message: String) {
        for pieces in [1, 10_000] {
            let failure = #expect(throws: Failure.self) {
                try decoded(bytes, pieces: pieces, pauses: false)
            }
            #expect(failure?.message.hasPrefix(message) == true, "\(String(describing: failure))")
        }
    }

    @Test(
        arguments: [
            ([], .none), (["identity"], .none), (["UTF-8"], .none), (["aws-chunked"], .none),
            (["gzip"], .zlib), (["GZIP "], .zlib), (["x-gzip"], .zlib), (["deflate"], .zlib),
            (["gzip, aws-chunked"], .perhapsZlib), (["aws-chunked,gzip"], .perhapsZlib),
            (["gzip", "utf-8"], .perhapsZlib),
            (["", "gzip"], .zlib), (["br"], .byLibcurl), (["zstd"], .byLibcurl),
            (["gzip, br"], .byLibcurl), (["gzip", "gzip"], .byLibcurl),
            (["br, aws-chunked"], .none),
        ] as [([String], ContentCodings)])
    func unknownCodingsAreLeftOut(values: [String], codings: ContentCodings) {
        #expect(ContentCodings(values) == codings)
    }

    /// Reasons in fields and bodies of errors.
    @Test(
        arguments: [
            (
                403, "application/xml",
                "<Error><Code>AccessDenied</Code><Message>Request has expired"
                    + "</Message><X-Amz-Expires>9</X-Amz-Expires></Error>",
                "Request has expired, AccessDenied"
            ),
            (
                400, "text/xml", "<?xml version='1.0'?><Error><Code>ExpiredRequest</Code></Error>",
                "ExpiredRequest"
            ),
            (
                404, "application/xml",
                "<Error><Code>NoSuchKey</Code><Message>No such key.</Message></Error>",
                "No such key, NoSuchKey"
            ),
            (403, "", "<?xml version='1.0'?><Error><Message>a  b\n c</Message></Error>", "a b c"),
            (
                403, "application/xml",
                "<Error><Message>see http://a.b/?sig=secret</Message></Error>", nil
            ),
            (403, "application/xml", "<Error><Code>A</Code", nil),
            (
                403, "text/html; charset=utf-8", "<html><title>Access Denied</title>",
                "Access Denied"
            ),
            (403, "text/html", "<title>403 Forbidden</title>", nil), (403, "text/html", "<p>", nil),
            (403, "text/plain", "hotlinking is not allowed\nmore", "hotlinking is not allowed"),
            (404, "text/plain", "not here", nil), (403, "image/png", "text", nil),
            (
                500, "text/plain", String(repeating: "x", count: 5000),
                String(repeating: "x", count: 120)
            ),
            (200, "application/xml", "<Error><Code>A</Code></Error>", nil),
        ] as [(Int, String, String, String?)])
    func errorsGiveReasons(status: Int, type: String, body: String, reason: String?) {
        for pieces in [1, 10_000] {
            var found = ErrorReason()
            var rest = Array(body.utf8)[...]
            while !rest.isEmpty {
                Array(rest.prefix(pieces)).withUnsafeBytes { found.append($0) }
                rest = rest.dropFirst(pieces)
            }
            let fields = [HeaderField(name: "Content-Type", value: type)]
            #expect(found.text(status: status, fields: fields, hiding: []) == reason)
        }
    }

    @Test(arguments: ["cf-mitigated", "x-amzn-waf-action"])
    func challengesAreNamed(field: String) {
        let fields = [
            HeaderField(name: field, value: "challenge"),
            HeaderField(name: "content-type", value: "text/html"),
        ]
        #expect(
            ErrorReason().text(status: 403, fields: fields, hiding: [])
                == "a challenge for browsers")
    }

    /// Texts of OpenSSL as libcurl gives them.
    @Test(arguments: [
        (
            "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
            true
        ),
        (
            "OpenSSL SSL_read: error:0A000412:SSL routines::sslv3 alert bad certificate, errno 0",
            true
        ),
        ("error:0A000418:SSL routines::tlsv1 alert unknown ca", true),
        ("error:0A000415:SSL routines::sslv3 alert certificate expired", true),
        ("error:0A000419:SSL routines::tlsv1 alert access denied", true),
        ("error:0A000410:SSL routines::sslv3 alert handshake failure", false),
        ("SSL certificate problem: certificate has expired", false),
        ("Recv failure: Connection reset by peer", false), ("", false),
    ])
    func alertsAboutCertificatesAreKnown(text: String, isRefusal: Bool) {
        #expect(TransferFailure.refusesCertificate(text) == isRefusal)
        // With TLS 1.2 a missing certificate has this alert, like other faults.
        #expect(
            TransferFailure.mayRefuseCertificate(text) == text.contains("alert handshake failure"))
    }
}

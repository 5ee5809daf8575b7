/// Faults of lengths, chunks, encodings and heads.
extension FaultCase {
    /// Ambiguous responses are rejected with one of these reasons and never stored.
    private static let contradiction = Expectation.refused(
        "interrupted", "corrupt-image", "not-an-image")

    static let lengths: [FaultCase] = [
        FaultCase("length-long", at: 5, .transient("interrupted"), "so many more bytes announced") {
            .image($0.file, framing: .lyingLength($0.file.count + $0.parameter))
        },
        FaultCase("length-short", at: 30, contradiction, "so many fewer bytes announced") {
            .image($0.file, framing: .lyingLength($0.file.count - $0.parameter))
        },
        FaultCase("length-negative", contradiction, "a length of -1") {
            .image($0.file, framing: .lengthTexts(["-1"]))
        },
        FaultCase("length-text", contradiction, "a length of letters") {
            .image($0.file, framing: .lengthTexts(["many"]))
        },
        FaultCase("length-sign", .either("interrupted"), "a length with a plus sign") {
            .image($0.file, framing: .lengthTexts(["+\($0.file.count)"]))
        },
        FaultCase("length-true-last", contradiction, "two lengths, the true one last") {
            .image($0.file, framing: .lengthTexts(["5", "\($0.file.count)"]))
        },
        FaultCase("length-true-first", contradiction, "two lengths, the true one first") {
            .image($0.file, framing: .lengthTexts(["\($0.file.count)", "5"]))
        },
        FaultCase("length-twice", .either("interrupted"), "the true length twice") {
            .image($0.file, framing: .lengthTexts(["\($0.file.count)", "\($0.file.count)"]))
        },
        FaultCase("length-list", contradiction, "two lengths in one field") {
            .image($0.file, framing: .lengthTexts(["5, \($0.file.count)"]))
        },
        FaultCase(
            "length-overflow", .either("interrupted", "too-large"), "a length of 2^70, and closed"
        ) {
            .image($0.file, framing: .lengthTexts(["1180591620717411303424"]))
        },
        FaultCase("length-huge", .permanent("too-large"), "a length of 2^40 that never comes") {
            .image($0.file, framing: .lyingLength(1 << 40), ending: .stalledAfter(bodyBytes: 10))
        },
        FaultCase("length-and-chunks", at: 5, contradiction, "chunked, and a length of so many") {
            .image($0.file, framing: .chunkedWithLength($0.parameter))
        },
        FaultCase("endless-chunked", .permanent("too-large"), "chunks without end") {
            .image($0.file, framing: .chunked, ending: .endless)
        },
        FaultCase("endless-closed", .permanent("too-large"), "bytes without end or frame") {
            .image($0.file, framing: .closeDelimited, ending: .endless)
        },
        FaultCase("endless-announced", .permanent("too-large"), "a length of 2^60, all sent") {
            .image($0.file, framing: .lyingLength(1 << 60), ending: .endless)
        },
    ]

    /// A handwritten chunked body; the connection is closed after it.
    private static func chunked(_ body: [UInt8]) -> Response {
        var response = Response(body: body, framing: .closeDelimited)
        response.rawHead =
            "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=3600\r\n"
            + "Transfer-Encoding: chunked\r\n\r\n"
        return response
    }

    private static func size(_ file: [UInt8]) -> String { String(file.count, radix: 16) }

    static let chunks: [FaultCase] = [
        FaultCase("chunk-size-text", .transient("interrupted"), "a size of letters") {
            chunked(Array("many\r\n".utf8) + $0.file + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase("chunk-size-negative", .transient("interrupted"), "a size of -1") {
            chunked(Array("-1\r\n".utf8) + $0.file + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase(
            "chunk-size-huge", .refused("interrupted", "too-large"),
            "a size of 2^63 - 1, and closed"
        ) {
            chunked(Array("7fffffffffffffff\r\n".utf8) + $0.file)
        },
        FaultCase("chunk-size-long", .transient("interrupted"), "a size of 40 digits") {
            chunked(
                Array("\(String(repeating: "0", count: 39))1\r\n".utf8) + $0.file
                    + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase("chunk-size-prefixed", .transient("interrupted"), "a size with 0x before it") {
            chunked(
                Array("0x\(size($0.file))\r\n".utf8) + $0.file + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase("chunk-size-empty", .transient("interrupted"), "an empty size") {
            chunked(Array("\r\n".utf8) + $0.file + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase("chunk-short", .transient("interrupted"), "a size 5 below the chunk's") {
            chunked(
                Array("\(String($0.file.count - 5, radix: 16))\r\n".utf8) + $0.file
                    + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase("chunk-no-last", .transient("interrupted"), "the last chunk is missing") {
            chunked(Array("\(size($0.file))\r\n".utf8) + $0.file + Array("\r\n".utf8))
        },
        FaultCase("chunk-trailers", .arrives, "fields after the last chunk") {
            chunked(
                Array("\(size($0.file))\r\n".utf8) + $0.file
                    + Array("\r\n0\r\nX-Sum: 1\r\nContent-Length: 3\r\n\r\n".utf8))
        },
        FaultCase("trailers-endless", .transient("interrupted"), "trailers without end") {
            .image($0.file, framing: .chunked, ending: .endlessTrailers)
        },
        FaultCase("chunk-extensions", .arrives, "chunk extensions (RFC 9112 §7.1.1)") {
            chunked(
                Array("\(size($0.file));a=b;c=\"d\"\r\n".utf8) + $0.file
                    + Array("\r\n0;last\r\n\r\n".utf8))
        },
        FaultCase("chunk-tiny", .arrives, "a chunk for each byte") { context in
            chunked(
                context.file.flatMap { [0x31, 0x0D, 0x0A, $0, 0x0D, 0x0A] }
                    + Array("0\r\n\r\n".utf8))
        },
        FaultCase(
            "transfer-encoding-unknown", .refused("interrupted", "not-an-image"),
            "`Transfer-Encoding: unknown`"
        ) {
            var response = Response.image($0.file, framing: .closeDelimited)
            response.headers.append(("Transfer-Encoding", "unknown"))
            return response
        },
    ]

    /// Framing fields that another reader on the way may take for others (RFC 9112 §5.1, §6.1).
    static let ambiguousFraming: [FaultCase] = [
        FaultCase("length-blank", .transient("interrupted"), "`Content-Length : N`") {
            under("HTTP/1.1 200 OK\r\nContent-Length : LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("chunked-blank", .transient("interrupted"), "`Transfer-Encoding : chunked`") {
            under(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\nContent-Length: LENGTH\r\n\r\n",
                $0.file)
        },
        FaultCase("length-control", .transient("interrupted"), "a control before the colon") {
            under("HTTP/1.1 200 OK\r\nContent-Length\u{b}: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("chunked-folded", .transient("interrupted"), "`chunked` on the next line") {
            under(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
                Array("\(size($0.file))\r\n".utf8) + $0.file + Array("\r\n0\r\n\r\n".utf8))
        },
        FaultCase("transfer-encodings", .transient("interrupted"), "two `Transfer-Encoding`") {
            under(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n",
                Array("\(size($0.file))\r\n".utf8) + $0.file + Array("\r\n0\r\n\r\n".utf8))
        },
    ]

    private static func coded(_ name: String, _ body: [UInt8]) -> Response {
        var response = Response.image(body)
        response.headers.append(("Content-Encoding", name))
        return response
    }

    /// Codings that no client requested.
    static let encodings: [FaultCase] = [
        FaultCase("gzip", .arrives, "gzip") {
            coded("gzip", Encodings.encoded($0.file, .gzip))
        },
        FaultCase("deflate", .arrives, "deflate in zlib's frame") {
            coded("deflate", Encodings.encoded($0.file, .deflate))
        },
        FaultCase("deflate-raw", .either("interrupted"), "deflate without a frame") {
            coded("deflate", Encodings.encoded($0.file, .rawDeflate))
        },
        FaultCase("gzip-stacked", .either("interrupted"), "gzip in gzip") {
            coded("gzip, gzip", Encodings.encoded(Encodings.encoded($0.file, .gzip), .gzip))
        },
        FaultCase(
            "gzip-many", at: 40, .refused("interrupted", "not-an-image"),
            "so many times gzip, they say"
        ) {
            coded(repeatElement("gzip", count: $0.parameter).joined(separator: ","), $0.file)
        },
        FaultCase("gzip-bomb", .permanent("too-large"), "48 kB of gzip, 50 MB decoded") { _ in
            coded("gzip", Encodings.bomb)
        },
        FaultCase("deflate-bomb", .permanent("too-large"), "48 kB of deflate, 50 MB decoded") { _ in
            coded("deflate", Encodings.deflateBomb)
        },
        FaultCase(
            "gzip-stacked-bomb", .refused("too-large", "interrupted"),
            "half a kilobyte of gzip in gzip, 50 MB decoded"
        ) { _ in
            coded("gzip, gzip", Encodings.stackedBomb)
        },
        FaultCase(
            "encoding-unknown", .arrives, "the body as it is, under a coding that nobody knows"
        ) {
            coded("UTF-8", $0.file)
        },
        FaultCase("encoding-unknown-in-list", .arrives, "such a coding beside gzip") {
            coded("gzip, aws-chunked", $0.file)
        },
        FaultCase("encoding-lie", .transient("interrupted"), "called gzip and plain") {
            coded("gzip", $0.file)
        },
        FaultCase(
            "encoding-cut", at: 500, .refused("interrupted", "corrupt-image"),
            "gzip without its last so many bytes, truly announced"
        ) {
            coded("gzip", Encodings.encoded($0.file, .gzip).dropLast($0.parameter))
        },
        FaultCase("encoding-identity", .arrives, "`Content-Encoding: identity`") {
            coded("identity", $0.file)
        },
    ]

    /// The file after this head, with its length; the connection is closed after it.
    private static func under(_ head: String, _ file: [UInt8]) -> Response {
        var response = Response(body: file, framing: .closeDelimited)
        response.rawHead = head.replacing("LENGTH", with: "\(file.count)")
        return response
    }

    private static let anyHead = Expectation.refused(
        "interrupted", "not-an-image", "http-status")

    static let heads: [FaultCase] = [
        FaultCase("no-head", anyHead, "the file without any head") {
            under("", $0.file)
        },
        FaultCase("garbage", anyHead, "bytes that are not HTTP") { _ in
            under("\u{1}\u{2}\u{3}SSH-2.0-none\r\n\r\n", [])
        },
        FaultCase("status-text", anyHead, "a status of letters") {
            under("HTTP/1.1 fine\r\nContent-Length: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("first-field-folded", anyHead, "a first field that begins with a blank") {
            under(
                "HTTP/1.1 200 OK\r\n Content-Length: LENGTH\r\nContent-Length: LENGTH\r\n\r\n",
                $0.file)
        },
        FaultCase("status-short", anyHead, "a status of two digits") {
            under("HTTP/1.1 20 OK\r\nContent-Length: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("version-unknown", anyHead, "HTTP/9.9") {
            under("HTTP/9.9 200 OK\r\nContent-Length: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("version-1.0", .arrives, "HTTP/1.0 without a length") {
            under("HTTP/1.0 200 OK\r\n\r\n", $0.file)
        },
        FaultCase("line-feeds", .arrives, "lines that end with LF alone") {
            under("HTTP/1.1 200 OK\nContent-Length: LENGTH\n\n", $0.file)
        },
        FaultCase("folded", .either("interrupted"), "a field folded over two lines") {
            under("HTTP/1.1 200 OK\r\nX-A: b\r\n  c\r\nContent-Length: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("no-colon", .either("interrupted"), "a field without a colon") {
            under("HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("nul", .either("interrupted"), "a zero byte in a field") {
            under("HTTP/1.1 200 OK\r\nX-A: b\u{0}c\r\nContent-Length: LENGTH\r\n\r\n", $0.file)
        },
        FaultCase("header-long", at: 300_000, .transient("interrupted"), "a field of so many bytes")
        {
            var response = Response.image($0.file)
            response.headers.append(("X-Long", String(repeating: "x", count: $0.parameter)))
            return response
        },
        FaultCase(
            "headers-many", at: 5000, .transient("interrupted"), "so many fields of 100 bytes"
        ) {
            var response = Response.image($0.file)
            for index in 0..<$0.parameter {
                response.headers.append(("X-\(index)", String(repeating: "x", count: 90)))
            }
            return response
        },
        FaultCase(
            "headers-endless", .transient("interrupted", "timeout"), "fields without end"
        ) { _ in
            Response(
                headers: [("X-Long", String(repeating: "x", count: 1000))], ending: .endlessHead)
        },
        FaultCase("interim", at: 3, .arrives, "so many answers 103 before the true one", interim),
        FaultCase(
            "interim-flood", at: 2000, .either("interrupted", "timeout"),
            "so many answers 103 before the true one", interim),
        FaultCase(
            "interim-endless", .transient("interrupted", "timeout"), wait: .total,
            "answers 102 without end"
        ) { _ in
            var response = Response(ending: .endlessPrelude)
            response.prelude = Array(
                String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 100).utf8)
            return response
        },
    ]

    private static let interim: Answer = { context in
        var response = Response.image(context.file)
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
        response.prelude = Array(String(repeating: early, count: context.parameter).utf8)
        return response
    }
}

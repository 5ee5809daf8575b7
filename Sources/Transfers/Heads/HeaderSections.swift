import PrefetchModel

/// The header sections of one response, line by line: interim heads, the head, and trailers.
struct HeaderSections {
    /// Bytes and lines of all sections.
    private var bytes = 0
    private var lines = 0
    /// Whether the empty line at the end of the last section's head has arrived. libcurl takes a
    /// connection that closes inside the section for the end of an empty body.
    private(set) var isComplete = false
    /// A reason to distrust the end of the body: a framing field of the last head that libcurl
    /// reads differently from other readers (RFC 9112 §5.1, §5.2). Nil without one.
    private(set) var framingProblem: String?
    /// Whether a line that begins with a blank would continue a framing field.
    private var isInFramingField = false

    /// libcurl limits the final response's own head to as many bytes, and stores interim responses
    /// and trailers without a limit.
    static let maximumBytes = 300 << 10
    /// libcurl compares all names for each field that it hands out: 45,000 fields took 17 seconds,
    /// 1,000 take some ten milliseconds.
    static let maximumLines = 1000

    /// Takes one line of a header section, its final empty line included.
    ///
    /// Each section begins with a status line. Trailers after a chunked body are lines, too.
    ///
    /// - Returns: the limit that the line exceeds; nil for a line within the limits.
    mutating func receive(_ line: UnsafeRawBufferPointer) -> String? {
        bytes += line.count
        lines += 1
        guard bytes <= HeaderSections.maximumBytes else {
            let limit = ByteCount(HeaderSections.maximumBytes)
            return "the response has more than \(limit) of header fields"
        }
        guard lines <= HeaderSections.maximumLines else {
            return "the response has more than \(HeaderSections.maximumLines) header fields"
        }
        if line.first == UInt8(ascii: "H"), line.starts(with: "HTTP/".utf8) {
            isComplete = false
            // Interim responses and a proxy's response to CONNECT frame no body.
            framingProblem = nil
            isInFramingField = false
        } else if line.count <= 2,
            line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8)
        {
            isComplete = true
        } else if !isComplete {
            judge(line)
        }
        return nil
    }

    private mutating func judge(_ line: UnsafeRawBufferPointer) {
        if isInFramingField, line[0] == UInt8(ascii: " ") || line[0] == UInt8(ascii: "\t") {
            framingProblem = "the response has a framing field of several lines"
            return
        }
        switch HeaderLine.framingName(in: line) {
        case nil: isInFramingField = false
        case .exact?: isInFramingField = true
        case .disguised?:
            framingProblem = "the response has a framing field with a malformed name"
        }
    }
}

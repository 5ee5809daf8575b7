import PrefetchModel

/// The header sections of one response, line by line: interim heads, the head, and trailers.
struct HeaderSections {
    /// Bytes and lines of all sections.
    private(set) var bytes = 0
    private var lines = 0
    /// Whether the empty line at the end of the last section's head has arrived. libcurl takes a
    /// connection that closes inside the section for the end of an empty body.
    private(set) var isComplete = false
    /// A reason to distrust the end of the body: a framing field of the last head that libcurl
    /// reads differently from other readers (RFC 9112 §5.1, §5.2). Nil without one.
    private(set) var framingProblem: String?
    /// Whether a line that begins with a blank would continue a framing field.
    private var isInFramingField = false
    /// The values of `Content-Encoding` in the last head.
    private var codings: [String] = []
    /// Undoes them; nil if libcurl does, or nothing is to be undone.
    private(set) var decoder: ContentDecoder?
    /// Whether the body may be decoded here. The requests of services expect no coding.
    private let mayDecode: Bool

    /// libcurl has this limit for the final head, and none for interim responses and trailers.
    static let maximumBytes = 300 << 10
    /// libcurl compares all names for each field that it hands out: 45,000 fields took 17 seconds,
    /// 1,000 take some ten milliseconds.
    static let maximumLines = 1000

    init(mayDecode: Bool) {
        self.mayDecode = mayDecode
    }

    /// Whether libcurl leaves the body as it is.
    var leavesContent: Bool { decoder != nil || ContentCodings(codings) == .none }

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
            (codings, decoder) = ([], nil)
        } else if line.count <= 2,
            line.elementsEqual("\r\n".utf8) || line.elementsEqual("\n".utf8)
        {
            isComplete = true
        } else if !isComplete {
            judge(line)
            if let value = HeaderLine.value(of: "content-encoding", in: line) {
                codings.append(String(decoding: value, as: UTF8.self))
                switch mayDecode ? ContentCodings(codings) : .none {
                case .zlib: decoder = ContentDecoder()
                case .perhapsZlib: decoder = ContentDecoder(isCertain: false)
                case .none, .byLibcurl: decoder = nil
                }
            }
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

/// A line of a header section, as bytes: libcurl's list of fields is slow to search.
enum HeaderLine {
    /// The fields that decide where a body ends, in lower case.
    static let framingNames: [StaticString] = ["content-length", "transfer-encoding"]

    /// The value of a field if the line has this name, which is in lower case; nil for other lines.
    static func value(
        of name: StaticString, in line: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        let count = name.utf8CodeUnitCount
        guard line.count > count, line[count] == UInt8(ascii: ":"), equal(line.prefix(count), name)
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: line[(count + 1)...])
    }

    /// How a line contains a name.
    enum Naming {
        case exact
        /// Mixed with other bytes, or behind a CR, which some skip (RFC 9112 §2.2, §5.1).
        case disguised
    }

    /// Looks for a name of ``framingNames`` before a colon; nil for other lines.
    static func framingName(in line: UnsafeRawBufferPointer) -> Naming? {
        var rest = line[...]
        while !rest.isEmpty {
            let part = rest.prefix { $0 != UInt8(ascii: "\r") }
            if let colon = part.firstIndex(of: UInt8(ascii: ":")) {
                // Bytes that no name has, such as blanks, controls and a no-break space.
                let visible = part[..<colon].lazy.filter { (0x21...0x7e).contains($0) }
                for name in framingNames where equal(visible, name) {
                    let isExact = colon == name.utf8CodeUnitCount
                    return isExact ? .exact : .disguised
                }
            }
            rest = rest.dropFirst(part.count + 1)
        }
        return nil
    }

    private static func equal(_ bytes: some Sequence<UInt8>, _ name: StaticString) -> Bool {
        let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        // The bit that separates the cases of a letter changes no hyphen.
        return bytes.elementsEqual(name) { $0 | 0x20 == $1 }
    }
}

/// The body length that the `Content-Length` fields of a response announce.
///
/// libcurl reads digits up to the first other byte, and ignores a number that is too large. A
/// proxy on the way may read the same text differently (RFC 9112 §6.3).
enum AnnouncedLength: Hashable {
    case unknown
    case bytes(Int)
    /// Other text than digits, or more bytes than 63 bits can count.
    case unreadable
    case contradictory

    /// - Parameter values: the values of all fields of that name, trimmed.
    init(of values: [String]) {
        self = .unknown
        for value in values {
            // Equal numbers in a list are one number (RFC 9110 §8.6).
            let members = value.utf8.split(
                separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
            for member in members {
                guard let number = AnnouncedLength.number(member) else {
                    self = .unreadable
                    return
                }
                guard self == .unknown || self == .bytes(number) else {
                    self = .contradictory
                    return
                }
                self = .bytes(number)
            }
        }
    }

    /// Whether the fields say where the body ends: by a length, or by `chunked` as the last coding
    /// (RFC 9112 §6.3).
    ///
    /// libcurl 7.88 reports success for a body over HTTP/2 if its stream or connection ends early
    /// without an error code, so the frames announce nothing.
    static func isFramed(by fields: [HeaderField]) -> Bool {
        if fields.first("content-length") != nil { return true }
        guard let codings = fields.first("transfer-encoding") else { return false }
        let last = codings.split(separator: ",", omittingEmptySubsequences: false).last ?? ""
        return last.filter { $0 != " " && $0 != "\t" }.lowercased() == "chunked"
    }

    private static func number(_ text: Substring.UTF8View) -> Int? {
        let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard let first = text.firstIndex(where: { !isBlank($0) }),
            let last = text.lastIndex(where: { !isBlank($0) }),
            text[first...last].allSatisfy(\.isDecimalDigit)
        else { return nil }
        // Nil for more than 63 bits.
        return Int(Substring(text[first...last]))
    }
}

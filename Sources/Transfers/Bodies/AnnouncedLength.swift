import PrefetchModel

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

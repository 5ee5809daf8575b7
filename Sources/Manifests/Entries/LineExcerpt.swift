import PrefetchModel

/// A printable excerpt of a bad line: at most 512 bytes of UTF-8. Tabs become spaces, other control
/// characters U+FFFD. User information and everything after the name of a `header` field become
/// `***`.
///
/// Masking works on the bytes, since a URL parser may miss user information in a bad line: the line
/// may be cut before the `@`, or a slash of the scheme may be missing.
enum LineExcerpt {
    static let maximumBytes = 512

    static func text(_ line: UnsafeBufferPointer<UInt8>) -> String {
        String(decoding: make(line), as: UTF8.self)
    }

    static func text(of text: String) -> String {
        Array(text.utf8).withUnsafeBufferPointer(LineExcerpt.text)
    }

    static func make(_ line: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        // A few bytes more, so a character cut in two is beyond the limit.
        let margin = maximumBytes + 8
        var visible: [UInt8]
        let header = headerValue(line)
        let end = header ?? line.count
        if let secret = userInformation(line) {
            visible = Array(line[..<min(secret.lowerBound, margin)])
            visible += "***".utf8
            visible += line[secret.upperBound..<end].prefix(margin)
        } else {
            visible = Array(line[..<end].prefix(margin))
        }
        if header != nil { visible += "***".utf8 }
        var excerpt: [UInt8] = []
        excerpt.reserveCapacity(min(visible.count, maximumBytes))
        for scalar in String(decoding: visible, as: UTF8.self).unicodeScalars {
            let isControl = scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
            let shown = UTF8.encode(scalar == "\t" ? " " : isControl ? "\u{FFFD}" : scalar)
            guard let shown, excerpt.count + shown.count <= maximumBytes else { break }
            excerpt += shown
        }
        return excerpt
    }

    /// The index of the first header's value after the URL; nil without one.
    ///
    /// Any name that contains `header` counts. Nothing after it is shown, since the value may
    /// contain spaces.
    private static func headerValue(_ line: UnsafeBufferPointer<UInt8>) -> Int? {
        let word = Array("header".utf8)
        let blanks = line.prefix { $0.isBlank }.count
        var index = line[blanks...].firstIndex(where: \.isBlank) ?? line.count
        while index + word.count <= line.count {
            if zip(word, line[index...]).allSatisfy({ $0 == $1.lowercased }) {
                let rest = line[(index + word.count)...]
                let end = rest.firstIndex {
                    $0 == UInt8(ascii: "=") || $0 == UInt8(ascii: ":") || $0.isBlank
                }
                return end.map { $0 + 1 } ?? line.count
            }
            index += 1
        }
        return nil
    }

    /// The range of user information, without the `@`; nil without any.
    ///
    /// It ends at the last `@` of the authority. If the authority has no `@` but a colon without a
    /// port, the password may contain a slash: then it ends at the last `@` of the URL.
    private static func userInformation(_ line: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        let blanks = line.prefix { $0.isBlank }.count
        let token = line[blanks...].prefix { !$0.isBlank }
        guard token.contains(UInt8(ascii: "@")) else { return nil }
        var start = token.startIndex
        if let colon = token.firstIndex(of: UInt8(ascii: ":")),
            token[..<colon].allSatisfy({ $0.isLetter || $0.isDecimalDigit })
        {
            let after = token[(colon + 1)...]
            // `user:password@host` has no scheme.
            if let next = after.first, isSlash(next) || !after.contains(where: isSlash) {
                start = isSlash(next) ? after.firstIndex { !isSlash($0) } ?? token.endIndex : start
            }
        }
        let slashes = token[start...].prefix(while: isSlash).count
        start += slashes
        let authority = token[start...].prefix {
            !isSlash($0) && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { return start..<at }
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            !authority[(colon + 1)...].allSatisfy(\.isDecimalDigit),
            let at = token.lastIndex(of: UInt8(ascii: "@"))
        else { return nil }
        return start..<at
    }

    private static func isSlash(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\")
    }
}

import PrefetchModel

/// The beginning of a bad line as it may be shown: valid UTF-8 of at most 512 bytes, tabs replaced by spaces, other control
/// characters by U+FFFD, and what looks like user information by `***`, as all that stands
/// behind the name of a `header` field.
///
/// The masking is done here since a bad line may hide its user information from whoever parses it:
/// the line may be cut before the `@`, or the scheme's slashes be too few.
enum LineExcerpt {
    static let maximumBytes = 512

    static func text(_ line: UnsafeBufferPointer<UInt8>) -> String {
        String(decoding: make(line), as: UTF8.self)
    }

    static func make(_ line: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        // A few bytes more, so that a character cut in two lies behind the limit.
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

    /// Where the value of the first header begins behind the URL; nil without one.
    ///
    /// Anything that has `header` in its name counts, and nothing is shown from there to the end of
    /// the line: it is bad, perhaps since a value has spaces in it.
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

    /// Where user information lies, without the `@`; nil where nothing looks like it.
    ///
    /// It ends at the last `@` of the authority. Where the authority has none, but a colon that no
    /// port follows, a password may hold a slash: then it ends at the last `@` of the URL's text.
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

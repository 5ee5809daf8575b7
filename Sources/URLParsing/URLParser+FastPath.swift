import PrefetchModel

/// The byte-wise check whether a URL is canonical, which most lines are: they need no parser.
///
/// It accepts only URLs that libcurl's parser and the normalisation leave unchanged. It may refuse
/// more: libcurl parses everything unusual.
extension URLParser {
    /// libcurl judges longer ones, and refuses them from 8,000,000 bytes on.
    private static let maximumFastBytes = 1 << 20
    /// RFC 1035 §2.3.4.
    private static let maximumHostBytes = 253

    /// Whether normalising leaves the URL unchanged; false also where only libcurl knows.
    func isCanonical(_ bytes: Span<UInt8>) -> Bool {
        bytes.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress, !buffer.isEmpty else { return false }
            return canonicalPrefix(start, count: buffer.count) == buffer.count
        }
    }

    /// The length of the canonical URL at `start`, which ends at the first space or tab or at
    /// `count`; 0 for none.
    package func canonicalPrefix(_ start: UnsafePointer<UInt8>, count: Int) -> Int {
        guard count <= URLParser.maximumFastBytes, count > 8,
            start[0] == UInt8(ascii: "h"), start[1] == UInt8(ascii: "t"),
            start[2] == UInt8(ascii: "t"), start[3] == UInt8(ascii: "p")
        else { return 0 }
        let isSecure = start[4] == UInt8(ascii: "s")
        var index = isSecure ? 5 : 4
        guard start[index] == UInt8(ascii: ":"), start[index + 1] == UInt8(ascii: "/"),
            start[index + 2] == UInt8(ascii: "/")
        else { return 0 }
        index += 3

        let hostLength = plainHostLength(start + index, count: count - index)
        guard hostLength > 0 else { return 0 }
        index += hostLength
        if index < count, start[index] == UInt8(ascii: ":") {
            index += 1
            let portLength = URLParser.plainPortLength(
                start + index, count: count - index, otherThan: isSecure ? 443 : 80)
            guard portLength > 0 else { return 0 }
            index += portLength
        }
        guard index < count, start[index] == UInt8(ascii: "/") else { return 0 }
        return plainPathEnd(start, from: index, count: count)
    }

    /// The end of the URL with a path that begins at `first`; 0 for anything that needs libcurl.
    private func plainPathEnd(_ start: UnsafePointer<UInt8>, from first: Int, count: Int) -> Int {
        let table = classes.table
        var index = first
        var allowed = ByteClasses.pathWithoutStop
        while index < count {
            let byte = start[index]
            if table[Int(byte)] & allowed != 0 {
                index += 1
                continue
            }
            switch byte {
            case UInt8(ascii: "."):
                // Only in the path; may begin a dot segment.
                if start[index - 1] == UInt8(ascii: "/") { return 0 }
                index += 1
            case UInt8(ascii: "%"):
                guard isPlainEscape(start + index, count: count - index) else { return 0 }
                index += 3
            case UInt8(ascii: "?"):
                allowed = ByteClasses.query
                index += 1
            case UInt8(ascii: " "), UInt8(ascii: "\t"):
                return index
            default:
                return 0
            }
        }
        return index
    }

    /// Whether the bytes begin with an upper-case escape of a byte that must be escaped.
    private func isPlainEscape(_ start: UnsafePointer<UInt8>, count: Int) -> Bool {
        guard count >= 3, start[1] < UInt8(ascii: "a"), start[2] < UInt8(ascii: "a"),
            let high = start[1].hexadecimalValue, let low = start[2].hexadecimalValue
        else { return false }
        return classes.table[Int(high << 4 | low)] & ByteClasses.unreserved == 0
    }

    /// The length of a host that libcurl leaves unchanged; 0 when that is uncertain.
    private func plainHostLength(_ start: UnsafePointer<UInt8>, count: Int) -> Int {
        let table = classes.table
        let limit = min(count, URLParser.maximumHostBytes + 1)
        var length = 0
        var previous = UInt8(ascii: ".")
        var mayBeNumber = true
        while length < limit {
            let byte = start[length]
            guard table[Int(byte)] & ByteClasses.host != 0 else { break }
            switch byte {
            case UInt8(ascii: "."):
                if previous == UInt8(ascii: ".") { return 0 }
            case UInt8(ascii: "-"):
                // May mark an international name.
                if previous == UInt8(ascii: "-") || previous == UInt8(ascii: ".") { return 0 }
                mayBeNumber = false
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
                UInt8(ascii: "x"):
                break
            default:
                mayBeNumber = false
            }
            previous = byte
            length += 1
        }
        guard length > 0, length < limit || limit == count,
            length <= URLParser.maximumHostBytes, previous != UInt8(ascii: ".")
        else { return 0 }
        if mayBeNumber, start[0].isDecimalDigit,
            !URLParser.isDottedQuad(start, count: length)
        {
            return 0
        }
        return length
    }

    /// Whether the text is an IPv4 address as `inet_ntop` writes it.
    private static func isDottedQuad(_ start: UnsafePointer<UInt8>, count: Int) -> Bool {
        var index = 0
        for part in 0..<4 {
            if part > 0 {
                guard index < count, start[index] == UInt8(ascii: ".") else { return false }
                index += 1
            }
            let first = index
            var value = 0
            while index < count, index - first < 3, start[index].isDecimalDigit {
                value = value * 10 + Int(start[index] - UInt8(ascii: "0"))
                index += 1
            }
            guard index > first, value <= 255,
                index - first == 1 || start[first] != UInt8(ascii: "0")
            else { return false }
        }
        return index == count
    }

    /// The length of a port of plain digits within 1…65535 that is not the default; 0 otherwise.
    private static func plainPortLength(
        _ start: UnsafePointer<UInt8>, count: Int, otherThan defaultPort: Int
    ) -> Int {
        var length = 0
        var value = 0
        while length < min(count, 6), start[length].isDecimalDigit {
            value = value * 10 + Int(start[length] - UInt8(ascii: "0"))
            length += 1
        }
        guard length > 0, start[0] != UInt8(ascii: "0"), value <= 65535, value != defaultPort
        else { return 0 }
        return length
    }
}

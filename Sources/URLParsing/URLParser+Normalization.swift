import CCurl
import PrefetchModel

extension URLParser {
    /// The longest scheme that libcurl recognises (`MAX_SCHEME_LEN` in its `urlapi.c`).
    private static let maximumSchemeBytes = 40

    /// Checks the scheme by libcurl's rule: for `data:` and `mailto:` libcurl only reports missing
    /// slashes.
    func checkScheme(
        _ bytes: Span<UInt8>, hasBase: Bool, isListed: Bool
    ) throws(URLParsingError) {
        guard !bytes.isEmpty, bytes[0] != UInt8(ascii: "#") else {
            throw URLParsingError(.invalidEntry, "the URL is empty")
        }
        var length = 0
        while length < bytes.count, URLParser.isSchemeByte(bytes[length], at: length) {
            length += 1
        }
        guard length > 0, length <= URLParser.maximumSchemeBytes, length < bytes.count,
            bytes[length] == UInt8(ascii: ":")
        else {
            if hasBase { return }
            throw URLParser.problem(CURLUE_BAD_SCHEME)
        }
        let scheme = String(
            decoding: (0..<length).map { bytes[$0].lowercased }, as: UTF8.self)
        if scheme == "http" || scheme == "https" { return }
        // A host and its port, like `localhost:8080/a.png`. The author of a list can correct it.
        if length + 1 < bytes.count, bytes[length + 1].isDecimalDigit {
            throw URLParser.problem(isListed ? CURLUE_BAD_SCHEME : CURLUE_UNSUPPORTED_SCHEME)
        }
        // `user:password@host` looks like a scheme.
        guard !(length..<bytes.count).contains(where: { bytes[$0] == UInt8(ascii: "@") }) else {
            throw URLParser.problem(CURLUE_UNSUPPORTED_SCHEME)
        }
        throw URLParsingError(
            .unsupportedScheme, "the scheme '\(scheme)' is not supported, only http and https are")
    }

    private static func isSchemeByte(_ byte: UInt8, at index: Int) -> Bool {
        if byte.isLetter { return true }
        guard index > 0 else { return false }
        return byte.isDecimalDigit || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: ".")
    }

    /// Appends a path, query or name with escapes normalised (RFC 3986 §6.2.2.1 and §6.2.2.2) and
    /// bytes outside `allowed` escaped.
    func appendNormalized(
        _ bytes: [UInt8], allowed: UInt8, to text: inout [UInt8]
    ) {
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if classes.table[Int(byte)] & allowed != 0 {
                text.append(byte)
                continue
            }
            guard byte == UInt8(ascii: "%"), index + 1 < bytes.count,
                let high = bytes[index].hexadecimalValue,
                let low = bytes[index + 1].hexadecimalValue
            else {
                URLParser.appendEscape(of: byte, to: &text)
                continue
            }
            index += 2
            let value = high << 4 | low
            if classes.table[Int(value)] & ByteClasses.unreserved != 0 {
                text.append(value)
            } else {
                URLParser.appendEscape(of: value, to: &text)
            }
        }
    }

    private static func appendEscape(of byte: UInt8, to text: inout [UInt8]) {
        func digit(_ value: UInt8) -> UInt8 {
            value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
        }
        text.append(UInt8(ascii: "%"))
        text.append(digit(byte >> 4))
        text.append(digit(byte & 15))
    }

    /// Removes dot segments (RFC 3986 §5.2.4) from a path that begins with a slash. libcurl has
    /// removed all but the escaped ones.
    static func removeDotSegments(_ path: inout [UInt8]) {
        let slash = UInt8(ascii: "/")
        let stop = UInt8(ascii: ".")
        var output: [UInt8] = []
        output.reserveCapacity(path.count)
        var index = 0
        while index < path.count {
            // `index` is at a slash.
            var end = index + 1
            while end < path.count, path[end] != slash { end += 1 }
            let segment = path[(index + 1)..<end]
            let isLast = end == path.count
            if segment.elementsEqual(CollectionOfOne(stop)) {
                if isLast { output.append(slash) }
            } else if segment.elementsEqual([stop, stop]) {
                while let last = output.popLast(), last != slash {}
                if isLast { output.append(slash) }
            } else {
                output += path[index..<end]
            }
            index = end
        }
        path = output
    }
}

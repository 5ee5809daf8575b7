/// Escapes a text for a terminal or log: every character that could start a line, move the cursor
/// or change the reading direction becomes a visible escape.
///
/// The escapes are `\n`, `\r` and `\t`, and `\u{1B}` for other control and format characters
/// (Unicode categories Cc, Cf, Zl and Zp). The joiners U+200C and U+200D are kept, since scripts
/// and emoji need them. Backslashes are kept, too, so the original can't be recovered.
///
/// Long `data:` URLs keep only their beginning.
package func printable(_ text: String) -> String { printable(text, shortensData: true) }

/// Escapes a text in the same way; with or without whole `data:` URLs.
package func printable(_ given: String, shortensData: Bool) -> String {
    let text = shortensData ? shorteningData(in: given) : given
    guard text.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case "\u{20}"..."\u{7E}", "\u{200C}", "\u{200D}": result.unicodeScalars.append(scalar)
        default:
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator:
                result += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            default:
                result.unicodeScalars.append(scalar)
            }
        }
    }
    return result
}

private let shownBytesOfData = 64

private func shorteningData(in text: String) -> String {
    let scheme = Array("data:".utf8)
    guard text.utf8.count > 2 * shownBytesOfData, text.utf8.firstRange(of: scheme) != nil
    else { return text }
    var bytes = Array(text.utf8)[...]
    var result: [UInt8] = []
    while let start = bytes.firstRange(of: scheme)?.lowerBound {
        result += bytes[..<start]
        // Not in `/metadata:`.
        if let before = result.last, before.isLetter || before.isDecimalDigit || before == 0x2F {
            result += scheme
            bytes = bytes[(start + scheme.count)...]
            continue
        }
        let url = bytes[start...].prefix { $0 > 0x20 && !"\"<>".utf8.contains($0) }
        bytes = bytes[url.endIndex...]
        guard url.count > 2 * shownBytesOfData else {
            result += url
            continue
        }
        result += url.prefix(shownBytesOfData)
        result += "… (\(ByteCount(url.count)))".utf8
        if url.last == UInt8(ascii: ":") { result.append(UInt8(ascii: ":")) }
    }
    return String(decoding: result + bytes, as: UTF8.self)
}

/// Redacts every URL in a message; see ``RedactedURL``.
///
/// Libraries and servers quote URLs with their secrets. A word (text between white space, quotation
/// marks `"` and angle brackets) with `@`, `=` or `%` counts as a URL.
package func redacted(_ message: String) -> String {
    guard message.utf8.contains(where: RedactedURL.mayBeginSecret) else { return message }
    var result = ""
    var word = String.UnicodeScalarView()
    func endWord() {
        guard !word.isEmpty else { return }
        // The text around a URL goes on behind it: `(URL): `.
        var url = word[...]
        while let last = url.last, ")]},;:.!'".unicodeScalars.contains(last) { url.removeLast() }
        let tail = Substring(word[url.endIndex...])
        let text = String(Substring(url))
        let isSuspect = text.utf8.contains(where: RedactedURL.mayBeginSecret)
        result += (isSuspect ? RedactedURL(text).description : text) + tail
        word.removeAll(keepingCapacity: true)
    }
    for scalar in message.unicodeScalars {
        switch scalar {
        // Not the apostrophe, which is an ordinary byte of a URL (RFC 3986 §2.2).
        case "\u{0}"..."\u{20}", "\"", "<", ">", "\u{7F}"..."\u{A0}":
            endWord()
            result.unicodeScalars.append(scalar)
        default:
            word.append(scalar)
        }
    }
    endWord()
    return result
}

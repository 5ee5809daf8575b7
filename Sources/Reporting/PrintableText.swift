internal import PrefetchModel

/// Text for a terminal or a log: everything that could start a new line, move the cursor or turn
/// the reading direction is replaced by a visible escape.
///
/// `\n`, `\r` and `\t` for the common ones, `\u{1B}` for other control and format characters
/// (Unicode's categories Cc, Cf, Zl and Zp). The joiners U+200C and U+200D stay: scripts and emoji
/// need them and they move nothing. Backslashes stay as they are; the text is for reading, not for
/// turning back.
package func printable(_ text: String) -> String {
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

/// A message with every URL in it shown as ``RedactedURL`` shows it.
///
/// Libraries and servers quote URLs inside their messages, with what was secret in them. A word
/// (what stands between white space, quotation marks `"` and angle brackets) that holds `@`, or `=`
/// after a query's separator, is taken for one.
package func redacted(_ message: String) -> String {
    guard message.utf8.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "=") })
    else { return message }
    var result = ""
    var word = String.UnicodeScalarView()
    func endWord() {
        guard !word.isEmpty else { return }
        let isSuspect = word.contains { $0 == "@" || $0 == "=" }
        result += isSuspect ? RedactedURL(String(word)).description : String(word)
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

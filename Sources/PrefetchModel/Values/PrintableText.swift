/// Escapes a text for a terminal or log: every character that could start a line, move the cursor
/// or change the reading direction becomes a visible escape.
///
/// The escapes are `\n`, `\r` and `\t`, and `\u{1B}` for other control and format characters
/// (Unicode categories Cc, Cf, Zl and Zp). The joiners U+200C and U+200D are kept, since scripts
/// and emoji need them. Backslashes are kept, too, so the original can't be recovered.
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
        let text = String(word)
        let isSuspect = text.utf8.contains(where: RedactedURL.mayBeginSecret)
        result += isSuspect ? RedactedURL(text).description : text
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

internal import PrefetchModel

/// Escapes a text for an attribute or the content of an element in XML 1.0.
///
/// ``printable(_:)`` makes control characters visible. XML also forbids U+FFFE and U+FFFF, which
/// become U+FFFD.
package func xmlText(_ text: String) -> String {
    var result = ""
    for scalar in printable(text).unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\"": result += "&quot;"
        case "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

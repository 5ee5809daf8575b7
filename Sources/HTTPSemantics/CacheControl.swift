package import PrefetchModel

/// The directives of `Cache-Control` that a private cache obeys (RFC 9111 §5.2.2).
package struct CacheControl: Hashable, Sendable {
    package private(set) var maxAge: Duration?
    package private(set) var forbidsStoring = false
    package private(set) var requiresValidation = false
    /// Whether a `max-age` was there that is no number; the response counts as stale (§4.2.1).
    package private(set) var hasInvalidMaxAge = false

    /// Numbers beyond this count as this (§1.2.2).
    private static let largestSeconds: Int64 = 1 << 31

    /// - Parameter fields: the response's; several `Cache-Control` fields are one list.
    package init(_ fields: [HeaderField]) {
        for directive in CacheControl.directives(fields.values(of: "cache-control")) {
            switch directive.name {
            case "no-store":
                forbidsStoring = true
            case "no-cache":
                // With field names it limits those fields only; treating it as bare is the
                // stricter reading, which the section allows.
                requiresValidation = true
            case "max-age":
                guard let seconds = CacheControl.deltaSeconds(directive.value) else {
                    hasInvalidMaxAge = true
                    continue
                }
                // Doubled directives that differ: the stricter (§4.2.1).
                let value = Duration.seconds(seconds)
                maxAge = min(maxAge ?? value, value)
            default:
                break
            }
        }
    }

    /// A number of seconds, saturating at 2³¹; nil unless the text is one or more digits.
    static func deltaSeconds(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return min(Int64(text) ?? largestSeconds, largestSeconds)
    }

    /// Splits `#cache-directive` lists; commas inside quoted strings do not separate.
    private static func directives(_ values: [String]) -> [(name: String, value: String)] {
        var result: [(String, String)] = []
        for value in values {
            var isQuoted = false
            var isEscaped = false
            var items = [""]
            for character in value {
                if isEscaped {
                    isEscaped = false
                } else if isQuoted, character == "\\" {
                    isEscaped = true
                    continue
                } else if character == "\"" {
                    isQuoted.toggle()
                    continue
                } else if character == ",", !isQuoted {
                    items.append("")
                    continue
                }
                items[items.count - 1].append(character)
            }
            for item in items {
                let parts = item.split(
                    separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard let name = parts.first?.trimmed, !name.isEmpty else { continue }
                result.append((name.lowercased(), parts.count > 1 ? parts[1].trimmed : ""))
            }
        }
        return result
    }
}

extension Substring {
    /// Without the optional white space of HTTP (space and tab) at both ends.
    fileprivate var trimmed: String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}

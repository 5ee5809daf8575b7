/// The parameters of URLs' queries that cache keys leave out: `utm_source`, or `utm_*` for all that
/// begin so; `*` alone stands for the whole query.
///
/// URLs are in the form of ``RequestURL``, so names are compared with their escapes.
package struct IgnoredQuery: Hashable, Sendable {
    private struct QueryPattern: Hashable {
        let name: [UInt8]
        let isPrefix: Bool
    }

    private let patterns: [QueryPattern]

    package static let none = IgnoredQuery(patterns: [])

    package var isEmpty: Bool { patterns.isEmpty }

    private init(patterns: [QueryPattern]) {
        self.patterns = patterns
    }

    /// Parses names separated by commas; nil if one is empty, or has a `*` before its end.
    package init?(_ text: String) {
        var patterns: [QueryPattern] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let isPrefix = part.hasSuffix("*")
            let name = isPrefix ? part.dropLast() : part
            guard !part.isEmpty, !name.contains("*"), !name.contains("&"), !name.contains("=")
            else { return nil }
            patterns.append(QueryPattern(name: Array(name.utf8), isPrefix: isPrefix))
        }
        self.init(patterns: patterns)
    }

    /// Returns a URL without these parameters, and without `?` if none is left; nil if the URL has
    /// no such parameter.
    package func removed(from url: some Collection<UInt8>) -> [UInt8]? {
        guard !patterns.isEmpty, let mark = url.firstIndex(of: UInt8(ascii: "?")) else {
            return nil
        }
        let query = url[url.index(after: mark)...]
        let parameters = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        let kept = parameters.filter { parameter in
            let name = parameter.prefix { $0 != UInt8(ascii: "=") }
            return !patterns.contains {
                $0.isPrefix ? name.starts(with: $0.name) : name.elementsEqual($0.name)
            }
        }
        guard kept.count < parameters.count else { return nil }
        var result = Array(url[..<mark])
        if !kept.isEmpty {
            result.append(UInt8(ascii: "?"))
            result += kept.joined(separator: CollectionOfOne(UInt8(ascii: "&")))
        }
        return result
    }

    package func areEqual(_ first: String, _ second: String) -> Bool {
        if first == second { return true }
        guard !patterns.isEmpty else { return false }
        return (removed(from: first.utf8) ?? Array(first.utf8))
            == (removed(from: second.utf8) ?? Array(second.utf8))
    }
}

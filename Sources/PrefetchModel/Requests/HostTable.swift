/// Values for the hosts that patterns match. The most specific pattern decides: the one with most
/// letters.
package struct HostTable<Value: Sendable>: Sendable {
    /// The most specific first.
    private let rows: [(pattern: HostPattern, value: Value)]

    /// Takes rows, the strongest first among equally specific ones, and rows for hosts that no
    /// other row matches.
    package init(
        _ rows: [(pattern: HostPattern, value: Value)] = [],
        otherwise others: [(pattern: HostPattern, value: Value)] = []
    ) {
        // `sorted` is stable.
        self.rows = [rows, others].flatMap { rows in
            rows.sorted { $0.pattern.literals > $1.pattern.literals }
        }
    }

    package var isEmpty: Bool { rows.isEmpty }
    package var values: [Value] { rows.map(\.value) }

    package subscript(position: Int) -> Value { rows[position].value }

    /// Returns the position among ``values`` of the host in a canonical URL or origin; nil without
    /// a matching pattern.
    package func position(ofHostIn url: some StringProtocol) -> Int? {
        // Most runs have no table.
        guard !rows.isEmpty else { return nil }
        return position(ofHostIn: Array(url.utf8)[...])
    }

    /// Like ``position(ofHostIn:)-(StringProtocol)``, for the bytes of a URL.
    package func position(ofHostIn url: ArraySlice<UInt8>) -> Int? {
        guard !rows.isEmpty else { return nil }
        let host = HostPattern.host(in: url)
        return rows.firstIndex { $0.pattern.matches(host) }
    }

    /// The value for the host in a canonical URL or origin; nil without a matching pattern.
    package subscript(hostIn url: some StringProtocol) -> Value? {
        position(ofHostIn: url).map { rows[$0].value }
    }

    /// The value for the host in the bytes of a canonical URL; nil without a matching pattern.
    package subscript(hostIn url: ArraySlice<UInt8>) -> Value? {
        position(ofHostIn: url).map { rows[$0].value }
    }

    /// The values of the patterns that may match a host of a domain.
    package func values(within domain: String) -> [Value] {
        rows.filter { $0.pattern.mayMatch(hostOf: domain) }.map(\.value)
    }

    package func map<New>(_ change: (Value) -> New) -> HostTable<New> {
        HostTable<New>(sorted: rows.map { ($0.pattern, change($0.value)) })
    }

    private init(sorted rows: [(pattern: HostPattern, value: Value)]) {
        self.rows = rows
    }
}

/// A host's name, in which `*` stands for any text: `*.example.com`.
package struct HostPattern: Hashable, Sendable {
    private let bytes: [UInt8]

    /// Nil for a text that isn't made of letters, digits and `-._*[]:`.
    package init?(_ text: String) {
        bytes = Array(text.lowercased().utf8)
        let isAllowed: (UInt8) -> Bool = {
            $0.isLetter || $0.isDecimalDigit || "-._*[]:".utf8.contains($0)
        }
        guard !bytes.isEmpty, bytes.allSatisfy(isAllowed) else { return nil }
    }

    func mayMatch(hostOf domain: String) -> Bool {
        let name = Array(domain.utf8)
        return matches(name[...]) || bytes.last == HostPattern.star
            || bytes.suffix(name.count + 1) == [UInt8(ascii: ".")] + name
            || matches(([UInt8(ascii: "x"), UInt8(ascii: ".")] + name)[...])
    }

    var literals: Int { bytes.count { $0 != HostPattern.star } }

    private static let star = UInt8(ascii: "*")

    /// Whether a host, in lower case, has the form of the pattern.
    package func matches(_ host: ArraySlice<UInt8>) -> Bool {
        var (place, next) = (host.startIndex, 0)
        // The last star, and the place up to which it stands for the host.
        var star: (next: Int, place: Int)?
        while place < host.endIndex {
            if next < bytes.count, bytes[next] == HostPattern.star {
                star = (next + 1, place)
                next += 1
            } else if next < bytes.count, bytes[next] == host[place] {
                next += 1
                place += 1
            } else if let last = star {
                star = (last.next, last.place + 1)
                (next, place) = (last.next, last.place + 1)
            } else {
                return false
            }
        }
        return bytes[next...].allSatisfy { $0 == HostPattern.star }
    }

    /// The host in a canonical URL, without user information and port.
    package static func host(in url: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let slash = UInt8(ascii: "/")
        guard let scheme = url.firstIndex(of: slash) else { return [] }
        var authority = url[scheme...].drop { $0 == slash }.prefix {
            $0 != slash && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            authority = authority[(at + 1)...]
        }
        if authority.first == UInt8(ascii: "[") {
            return authority.firstIndex(of: UInt8(ascii: "]")).map { authority[...$0] } ?? authority
        }
        return authority.prefix { $0 != UInt8(ascii: ":") }
    }
}

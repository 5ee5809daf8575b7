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
        let place = HostPattern.place(in: url)
        return rows.firstIndex { $0.pattern.matches(place) }
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

/// A host's name, in which `*` stands for any text: `*.example.com`. With a port, `*:8080`, it
/// matches only URLs with that port, given or by their scheme.
package struct HostPattern: Hashable, Sendable {
    /// The host of a canonical URL.
    package struct Place {
        /// In lower case, without user information and port.
        package let name: ArraySlice<UInt8>
        /// Nil only in a text that is not a URL.
        package let port: Int?
    }

    /// Without the port.
    private let bytes: [UInt8]
    private let port: Int?
    let literals: Int

    /// Nil for a text that isn't made of letters, digits and `-._*`, or an IPv6 address in
    /// brackets, and perhaps a port.
    package init?(_ text: String) {
        var name = Array(text.lowercased().utf8)
        literals = name.count { $0 != HostPattern.star }
        let end = name.lastIndex(of: UInt8(ascii: "]")) ?? name.startIndex
        if let colon = name[end...].lastIndex(of: HostPattern.colon) {
            let digits = String(decoding: name[(colon + 1)...], as: UTF8.self)
            guard let number = UInt16(digits), number > 0,
                name[(colon + 1)...].allSatisfy(\.isDecimalDigit)
            else { return nil }
            port = Int(number)
            name.removeSubrange(colon...)
        } else {
            port = nil
        }
        let isAddress = name.first == UInt8(ascii: "[") && name.last == UInt8(ascii: "]")
        let others = isAddress ? "-._*:" : "-._*"
        let isAllowed: (UInt8) -> Bool = {
            $0.isLetter || $0.isDecimalDigit || others.utf8.contains($0)
        }
        guard !name.isEmpty,
            (isAddress ? name.dropFirst().dropLast() : name[...]).allSatisfy(isAllowed)
        else { return nil }
        bytes = name
    }

    func mayMatch(hostOf domain: String) -> Bool {
        let name = Array(domain.utf8)
        return matches(name[...]) || bytes.last == HostPattern.star
            || bytes.suffix(name.count + 1) == [UInt8(ascii: ".")] + name
            || matches(([UInt8(ascii: "x"), UInt8(ascii: ".")] + name)[...])
    }

    private static let star = UInt8(ascii: "*")
    private static let colon = UInt8(ascii: ":")

    package func matches(_ place: Place) -> Bool {
        (port == nil || port == place.port) && matches(place.name)
    }

    /// Whether a host, in lower case, has the form of the pattern.
    private func matches(_ host: ArraySlice<UInt8>) -> Bool {
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

    /// The host in a canonical URL or origin.
    package static func place(in url: ArraySlice<UInt8>) -> Place {
        let slash = UInt8(ascii: "/")
        guard let start = url.firstIndex(of: slash) else { return Place(name: [], port: nil) }
        var authority = url[start...].drop { $0 == slash }.prefix {
            $0 != slash && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            authority = authority[(at + 1)...]
        }
        let bracket = authority.first == UInt8(ascii: "[") ? UInt8(ascii: "]") : nil
        let end =
            bracket.flatMap { authority.firstIndex(of: $0) }.map { $0 + 1 }
            ?? authority.firstIndex(of: colon) ?? authority.endIndex
        let isSecure = url[..<start].elementsEqual("https:".utf8)
        let given = Int(String(decoding: authority[end...].dropFirst(), as: UTF8.self))
        return Place(name: authority[..<end], port: given ?? (isSecure ? 443 : 80))
    }
}

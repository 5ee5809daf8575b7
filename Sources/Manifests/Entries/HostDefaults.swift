package import PrefetchModel

/// Fields for the entries of some hosts; an entry's own fields are stronger.
package struct HostDefaults: Sendable {
    /// Fields for the hosts that a pattern matches.
    package struct Rule: Sendable {
        let pattern: HostPattern
        let timeToLive: Duration?
        let headers: [HeaderField]

        package init(
            _ pattern: HostPattern, timeToLive: Duration? = nil, headers: [HeaderField] = []
        ) {
            self.pattern = pattern
            self.timeToLive = timeToLive
            self.headers = headers
        }

        /// Adds the rule's fields to an entry's own.
        func adding(to own: EntryExtras?) -> EntryExtras {
            var extras = own ?? EntryExtras()
            extras.timeToLive = extras.timeToLive ?? timeToLive
            extras.headers = headers.replaced(by: extras.headers)
            return extras
        }
    }

    /// The most specific first.
    private let rules: [Rule]

    /// Takes rules, the strongest first among equally specific ones.
    package init(_ rules: [Rule]) {
        // `sorted` is stable.
        self.rules = rules.sorted { $0.pattern.literals > $1.pattern.literals }
    }

    /// The most specific rule for a host; nil without any.
    func rule(for host: ArraySlice<UInt8>) -> Rule? {
        rules.first { $0.pattern.matches(host) }
    }

    /// The host in a canonical URL, without user information and port.
    static func host(of url: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
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

/// A host's name, in which `*` stands for any text: `*.example.com`.
package struct HostPattern: Hashable, Sendable {
    /// In lower case.
    private let bytes: [UInt8]

    /// Nil for a text that isn't made of letters, digits and `-._*[]:`.
    package init?(_ text: String) {
        bytes = Array(text.lowercased().utf8)
        let isAllowed: (UInt8) -> Bool = {
            (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || "-._*[]:".utf8.contains($0)
        }
        guard !bytes.isEmpty, bytes.allSatisfy(isAllowed) else { return nil }
    }

    /// The number of bytes that stand for themselves.
    var literals: Int { bytes.count { $0 != HostPattern.star } }

    private static let star = UInt8(ascii: "*")

    /// Whether a host, in lower case, has the form of the pattern.
    func matches(_ host: ArraySlice<UInt8>) -> Bool {
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
}

internal import SQLite

/// A host as a user names it: `example.com` for any scheme and port, `example.com:8080` for any
/// scheme, or an origin, `https://example.com`. Compared without regard to case.
package struct HostName: Hashable, Sendable {
    /// In lower case.
    package let text: String

    package init(_ text: String) {
        self.text = text.lowercased()
    }

    /// Whether it names an origin: scheme, host and port, as the cache stores them.
    package func matches(origin: String) -> Bool {
        let origin = origin.lowercased()
        guard let separator = origin.firstRange(of: "://") else { return origin == text }
        let authority = origin[separator.upperBound...]
        if origin == text || authority == text { return true }
        guard let colon = authority.lastIndex(of: ":"),
            authority[colon...].dropFirst().allSatisfy(\.isNumber)
        else { return false }
        return authority[..<colon] == text
    }
}

extension HostLog {
    /// Removes all hosts, including unreadable rows.
    ///
    /// - Returns: the number removed.
    package func removeAll() throws(StorageError) -> Int {
        try database.write("forgetting hosts") { database in
            try database.execute("DELETE FROM host")
            return database.changes
        }
    }

    /// Removes the hosts with these names.
    ///
    /// - Returns: the number removed, and the names without a host.
    package func removeAll(
        named names: [HostName]
    ) throws(StorageError) -> (count: Int, unknown: [HostName]) {
        try database.write("forgetting hosts") { database in
            let hosts = try database.all("SELECT host FROM host") {
                try $0.text(0)
            }
            let removal = try database.prepare("DELETE FROM host WHERE host = ?")
            var (count, known): (Int, Set<HostName>) = (0, [])
            for host in hosts {
                let matching = names.filter { $0.matches(origin: host) }
                guard !matching.isEmpty else { continue }
                known.formUnion(matching)
                try removal.execute(.text(host))
                count += 1
            }
            return (count, names.filter { !known.contains($0) })
        }
    }
}

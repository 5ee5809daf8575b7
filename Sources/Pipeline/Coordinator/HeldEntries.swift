import PrefetchModel

/// Entries that are blacklisted because their host was down. They wait in the store, without a
/// place in any queue: if their host responds in this run, they are requested after all.
struct HeldEntries {
    /// The limits of held entries; further ones end at once.
    private static let maximumCount = 1000
    private static let maximumCountOfHost = 200

    private var hosts: [Int: String] = [:]
    private var results: [Int: EntryResult] = [:]
    private var identifiers: [String: [Int]] = [:]

    var isEmpty: Bool { hosts.isEmpty }
    var count: Int { hosts.count }

    func hasRoom(for host: String) -> Bool {
        count < HeldEntries.maximumCount
            && identifiers[host, default: []].count < HeldEntries.maximumCountOfHost
    }

    func contains(_ identifier: Int) -> Bool { hosts[identifier] != nil }

    /// Holds an entry; `result` is its result if the host does not respond, nil if it is not
    /// wanted.
    mutating func hold(_ identifier: Int, host: String, result: EntryResult?) {
        hosts[identifier] = host
        results[identifier] = result
        identifiers[host, default: []].append(identifier)
    }

    /// Removes and returns the entries of a host, in the order of the lists.
    mutating func release(host: String) -> [Int] {
        let released = identifiers.removeValue(forKey: host) ?? []
        for identifier in released {
            hosts[identifier] = nil
            results[identifier] = nil
        }
        return released
    }

    /// Removes and returns all entries, in the order of the lists.
    mutating func removeAll() -> [(identifier: Int, result: EntryResult?)] {
        let all = hosts.keys.sorted().map { ($0, results[$0]) }
        self = HeldEntries()
        return all
    }
}

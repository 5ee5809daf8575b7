import PrefetchModel

/// Entries that are blacklisted because their host was down. They wait in the store, without a
/// place in any queue: if their host responds in this run, they are requested after all.
struct HeldEntries {
    /// The limits of held entries; further ones end at once.
    private static let maximumCount = 1000
    private static let maximumCountOfHost = 200

    /// By entry; nil for a result that is not wanted.
    private var results: [Int: EntryResult?] = [:]
    private var identifiers: [String: [Int]] = [:]

    var isEmpty: Bool { results.isEmpty }
    var count: Int { results.count }

    func hasRoom(for host: String) -> Bool {
        count < HeldEntries.maximumCount
            && identifiers[host, default: []].count < HeldEntries.maximumCountOfHost
    }

    func contains(_ identifier: Int) -> Bool { results.keys.contains(identifier) }

    /// Holds an entry; `result` is its result if the host does not respond, nil if it is not
    /// wanted.
    mutating func hold(_ identifier: Int, host: String, result: EntryResult?) {
        results.updateValue(result, forKey: identifier)
        identifiers[host, default: []].append(identifier)
    }

    /// Removes and returns the entries of a host, in the order of the lists.
    mutating func release(host: String) -> [Int] {
        let released = identifiers.removeValue(forKey: host) ?? []
        for identifier in released { results.removeValue(forKey: identifier) }
        return released
    }

    /// Removes and returns all entries, in the order of the lists.
    mutating func removeAll() -> [(identifier: Int, result: EntryResult?)] {
        let all = results.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        self = HeldEntries()
        return all
    }
}

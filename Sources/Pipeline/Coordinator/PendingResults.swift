import CacheStorage
import PrefetchModel

/// Entries that end without a turn: duplicates of ended entries, during the look-up of their
/// images, fresh entries while their attributes are committed, and blacklisted ones of hosts that
/// are not back yet. Also variants that wait for their entry.
struct PendingResults {
    private var duplicates: [Int: (EntryResult, SharedOutcome?)] = [:]
    /// Tokens are negative; entries have other identifiers.
    private var last = 0
    var annotating = 0
    var held = HeldEntries()
    /// Variants that were made beside the requested ones, until their entry's change is written.
    var others: [Int: [VariantChange]] = [:]
    /// The number of variants that the codec workers make or have tried to make, by entry.
    var tried: [Int: Int] = [:]

    private static let capacity = 4096

    var hasNoLookups: Bool { duplicates.isEmpty }
    var hasRoom: Bool { duplicates.count < PendingResults.capacity }
    var tokens: [Int] { Array(duplicates.keys) }

    /// Returns the token of the duplicate's findings. Without an outcome to share, its own stays.
    mutating func add(_ result: EntryResult, _ shared: SharedOutcome?) -> Int {
        last -= 1
        duplicates[last] = (result, shared)
        return last
    }

    mutating func take(_ token: Int) -> (EntryResult, SharedOutcome?)? {
        duplicates.removeValue(forKey: token)
    }
}

/// Entries that are blacklisted because of their host. They wait in the store, without a place in
/// any queue: if their host responds in this run, they are requested after all.
///
/// A host that was down has returned with any success. A host at fault may serve some images, so
/// one of the failing ones is requested as a probe.
struct HeldEntries {
    /// Further ones end at once, or wait to be read until the probes have ended.
    private static let maximumCount = 10_000

    struct HeldEntry {
        /// Nil for a result that is not wanted.
        let result: EntryResult?
        let host: String
        let reason: FailureReason
        let httpStatus: Int?
        let isStored: Bool
        let lastFailedAt: Timestamp
    }

    private var entries: [Int: HeldEntry] = [:]
    private var identifiers: [String: [Int]] = [:]
    private var atFault: [String: FaultyHost] = [:]
    private var probes: [Int: String] = [:]
    private var mayNeedProbe = false

    private struct FaultyHost {
        var identifiers: [Int] = []
        var wasProbed = false
        var hasRecovered = false
    }

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    var isFull: Bool { count >= HeldEntries.maximumCount }
    var hasProbes: Bool { !probes.isEmpty }

    func contains(_ identifier: Int) -> Bool { entries.keys.contains(identifier) }

    /// Whether a host at fault has recovered; nil for a host without held entries.
    func hasRecovered(_ host: String) -> Bool? { atFault[host]?.hasRecovered }

    /// Whether one more entry is held; a host at fault that was probed in vain takes no more.
    func takes(_ failure: FailureRecord) -> Bool {
        !isFull && !(failure.isOfFault && hasFailedProbe(failure.host))
    }

    private func hasFailedProbe(_ host: String) -> Bool {
        guard let faulty = atFault[host] else { return false }
        return faulty.wasProbed && !faulty.hasRecovered && !probes.values.contains(host)
    }

    /// Holds an entry; `result` is its result if the host does not respond, nil if it is not
    /// wanted.
    mutating func hold(_ identifier: Int, by failure: FailureRecord, result: EntryResult?) {
        entries[identifier] = HeldEntry(
            result: result, host: failure.host, reason: failure.reason,
            httpStatus: failure.httpStatus, isStored: failure.isStored,
            lastFailedAt: failure.streak.lastFailedAt)
        if failure.isOfFault {
            atFault[failure.host, default: FaultyHost()].identifiers.append(identifier)
            mayNeedProbe = true
        } else {
            identifiers[failure.host, default: []].append(identifier)
        }
    }

    /// Removes one entry of each host at fault that has not been probed: the one that was requested
    /// the longest time ago, since an image may have been removed.
    mutating func takeProbes() -> [Int] {
        guard mayNeedProbe else { return [] }
        mayNeedProbe = false
        var taken: [Int] = []
        for (host, faulty) in atFault.sorted(by: { $0.key < $1.key })
        where !faulty.wasProbed && !faulty.hasRecovered {
            let oldest = faulty.identifiers.min {
                let (first, second) = (entries[$0]?.lastFailedAt, entries[$1]?.lastFailedAt)
                return (first ?? .distantPast, $0) < (second ?? .distantPast, $1)
            }
            guard let oldest else { continue }
            atFault[host]?.wasProbed = true
            atFault[host]?.identifiers.removeAll { $0 == oldest }
            entries.removeValue(forKey: oldest)
            probes[oldest] = host
            taken.append(oldest)
        }
        return taken
    }

    /// Notes the end of an entry. Returns the entries of its host if it was a probe that succeeded.
    mutating func ended(_ identifier: Int, isSuccess: Bool) -> [Int] {
        guard let host = probes.removeValue(forKey: identifier), isSuccess else { return [] }
        let released = atFault[host]?.identifiers ?? []
        atFault[host]?.identifiers = []
        atFault[host]?.hasRecovered = true
        for identifier in released { entries.removeValue(forKey: identifier) }
        return released
    }

    /// Removes the entries of a host that was down and has responded.
    mutating func release(host: String) -> [Int] {
        let released = identifiers.removeValue(forKey: host) ?? []
        for identifier in released { entries.removeValue(forKey: identifier) }
        return released
    }

    /// Removes all entries; what is known of the hosts at fault stays.
    mutating func removeAll() -> [(identifier: Int, entry: HeldEntry)] {
        let all = entries.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        entries = [:]
        identifiers = [:]
        for host in atFault.keys { atFault[host]?.identifiers = [] }
        return all
    }
}

import EntryLifecycle

/// Findings of entries that were looked up before their turns, many with one wake-up of the look-up
/// thread.
///
/// A value without I/O. Entries that are not in it are looked up at their turns.
struct LookAhead {
    enum FoundAhead {
        case found(Findings)
        /// The look-up is under way; the entry waits for it.
        case awaited
        case unknown
    }

    private enum LookUpState {
        case asked
        /// Its turn arrived before the findings.
        case awaited
        case found(Findings)
    }

    private var states: [Int: LookUpState] = [:]
    /// Turns since the last hit.
    private var misses = 0

    /// Entries of a host that are looked up at a time.
    static let window = 64
    /// Findings are some hundred bytes each.
    private static let capacity = 1024

    var hasRoom: Bool { states.count < LookAhead.capacity }

    func knows(_ identifier: Int) -> Bool { states[identifier] != nil }

    /// Notes that an entry is looked up; returns false if it was before, or if there is no room.
    mutating func ask(_ identifier: Int) -> Bool {
        guard hasRoom, states[identifier] == nil else { return false }
        states[identifier] = .asked
        return true
    }

    mutating func take(_ identifier: Int) -> FoundAhead {
        switch states[identifier] {
        case .found(let findings):
            states[identifier] = nil
            misses = 0
            return .found(findings)
        case .asked, .awaited:
            states[identifier] = .awaited
            misses = 0
            return .awaited
        case nil:
            misses += 1
            if misses >= LookAhead.capacity { dropUnused() }
            return .unknown
        }
    }

    /// Stores the findings of an entry, and returns whether it waits for them.
    mutating func arrived(_ identifier: Int, _ findings: Findings) -> Bool {
        switch states[identifier] {
        case .asked:
            states[identifier] = .found(findings)
            return false
        case .awaited:
            states[identifier] = nil
            return true
        case .found, nil:
            return false
        }
    }

    /// In LIFO order, later entries may start before looked-up ones.
    private mutating func dropUnused() {
        misses = 0
        states = states.filter { if case .found = $0.value { false } else { true } }
    }
}

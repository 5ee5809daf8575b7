import EntryLifecycle

/// What is looked up of entries before their turns come, many with one wake-up of the thread that does it.
///
/// A value without I/O. Who is not in it when its turn comes is looked up then.
struct LookAhead {
    /// What is known of an entry whose turn has come.
    enum Arrival {
        case found(Findings)
        /// On its way: it is used as soon as it comes.
        case awaited
        /// Nobody has asked.
        case unknown
    }

    private enum State {
        case asked
        /// Its turn has come before the findings have.
        case awaited
        case found(Findings)
    }

    private var states: [Int: State] = [:]
    /// Turns since one was found here.
    private var misses = 0

    /// Entries of a host that are looked up at a time.
    static let window = 64
    /// Findings are some hundred bytes each.
    private static let capacity = 1024

    var hasRoom: Bool { states.count < LookAhead.capacity }

    /// Whether an entry has been asked for and not been taken yet.
    func knows(_ identifier: Int) -> Bool { states[identifier] != nil }

    /// Notes that an entry is asked for.
    ///
    /// - Returns: false if it was before, or if there is no room; it is not to be asked for then.
    mutating func ask(_ identifier: Int) -> Bool {
        guard hasRoom, states[identifier] == nil else { return false }
        states[identifier] = .asked
        return true
    }

    /// An entry's turn has come.
    mutating func take(_ identifier: Int) -> Arrival {
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

    /// What was asked for has come.
    ///
    /// - Returns: whether the entry waits for it.
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

    /// In LIFO order others may have come before those that were looked up.
    private mutating func dropUnused() {
        misses = 0
        states = states.filter { if case .found = $0.value { false } else { true } }
    }
}

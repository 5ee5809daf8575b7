import PrefetchModel

/// The ends of requested entries over the time of a run, in at most ``mostSlots`` slots.
///
/// Slots are 10 ms wide at first. When a run lasts longer, each pair becomes one.
package struct RunTimeline: Sendable {
    package struct Slot: Hashable, Sendable {
        /// Entries that ended without failing.
        package fileprivate(set) var warm = 0
        package fileprivate(set) var failed = 0
        /// Attempts after the first one of entries that ended in the slot.
        package fileprivate(set) var retries = 0
        package fileprivate(set) var bytes = 0

        package var entries: Int { warm + failed }
    }

    package static let mostSlots = 120
    /// Runs of more than three years count as such.
    private static let longest = Duration.seconds(100_000_000)

    /// Up to the last one with an entry.
    package private(set) var slots: [Slot] = []
    package private(set) var width = Duration.milliseconds(10)

    mutating func note(
        after time: Duration, isFailure: Bool, retries: Int, bytes: Int
    ) {
        let time = min(max(.zero, time), RunTimeline.longest)
        while Int(time / width) >= RunTimeline.mostSlots { halve() }
        let index = Int(time / width)
        if index >= slots.count {
            slots += [Slot](repeating: Slot(), count: index + 1 - slots.count)
        }
        if isFailure { slots[index].failed += 1 } else { slots[index].warm += 1 }
        slots[index].retries.addReported(retries)
        slots[index].bytes.addReported(bytes)
    }

    private mutating func halve() {
        width *= 2
        slots = stride(from: 0, to: slots.count, by: 2).map { place in
            guard place + 1 < slots.count else { return slots[place] }
            let (first, second) = (slots[place], slots[place + 1])
            return Slot(
                warm: first.warm + second.warm, failed: first.failed + second.failed,
                retries: first.retries + second.retries, bytes: first.bytes + second.bytes)
        }
    }
}

/// The pauses of hosts that held up a run, from its progress.
struct PauseLog: Sendable {
    private(set) var pauses: [HostPause] = []

    private static let limit = 100
    /// Progress names the host once a second; a longer gap ends a pause.
    private static let longestGap = Duration.milliseconds(1500)

    mutating func note(_ progress: RunProgress) {
        guard let holdUp = progress.holdUp, holdUp.pause != nil else { return }
        let now = progress.elapsed
        if let last = pauses.indices.last, pauses[last].host == holdUp.host,
            now - pauses[last].end <= PauseLog.longestGap
        {
            pauses[last].end = now
        } else if pauses.count < PauseLog.limit {
            pauses.append(HostPause(host: holdUp.host, start: now, end: now))
        }
    }
}

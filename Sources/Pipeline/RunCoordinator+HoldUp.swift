import PrefetchModel
import Scheduling

/// The host that holds the run up, as it was found last: finding it goes through all hosts.
struct HoldUpWatch {
    fileprivate var found: HoldUp?
    fileprivate var nextLook = ContinuousClock.now

    fileprivate static let interval = Duration.seconds(1)
    /// Shorter pauses are those between any two requests.
    fileprivate static let shownPause = Duration.seconds(1)
}

extension RunCoordinator {
    /// What keeps more transfers from running, when that is a host: nil while as many run as may, or
    /// images wait for the processor or the disk, or the list has not been read to its end and
    /// nothing waits.
    func holdUp(at now: ContinuousClock.Instant) -> HoldUp? {
        guard hasRoomForTransfer, !isStopping, hasReadAll || !scheduler.isEmpty else { return nil }
        guard now >= holdUpWatch.nextLook else { return holdUpWatch.found }
        holdUpWatch.nextLook = now + HoldUpWatch.interval
        holdUpWatch.found = scheduler.largestLoad.flatMap { holdUp(by: $0, at: now) }
        return holdUpWatch.found
    }

    private func holdUp(
        by load: Scheduler.HostLoad, at now: ContinuousClock.Instant
    ) -> HoldUp? {
        // The scheduler knows hosts by number; an entry of it has the name.
        let entry =
            load.waitingEntry
            ?? pending.identifiers { $0.progress?.host?.isOf(load) == true }.first
        guard let entry = entry.flatMap({ pending[$0] }) else { return nil }
        let pause = load.wakeTime.map { $0 - now }
        return HoldUp(
            host: (entry.progress?.target ?? entry.url).origin, inFlight: load.running,
            waiting: load.waiting,
            pause: pause.flatMap { $0 >= HoldUpWatch.shownPause ? $0 : nil })
    }
}

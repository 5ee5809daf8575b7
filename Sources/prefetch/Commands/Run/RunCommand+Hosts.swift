import CacheStorage
import PrefetchModel
import Reporting

extension RunCommand {
    /// Returns messages about the hosts that make a run wait for more than a day; none without any.
    func messages(about waits: [HostLog.LongWait]) -> [String] {
        guard let first = waits.first else { return [] }
        let others = waits.count > 1 ? " and \(counted(waits.count - 1, "other host"))" : ""
        let event =
            switch first.cause {
            case .pause(let until): "not requested until \(until), as it asked"
            case .impossible: "its stored pause or pace is impossible and ignored"
            }
        return [
            printable("prefetch: \(first.host)\(others): \(event)"),
            printable("hint: `prefetch hosts clear \(first.host)` forgets it"),
        ]
    }
}

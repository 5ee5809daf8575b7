import ArgumentParser
import Glibc
import PrefetchModel

/// A time of the day in local time, `hh:mm`: the next moment with it.
struct TimeOfDayArgument: ExpressibleByArgument {
    private let hour: Int32
    private let minute: Int32

    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            parts.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            let hour = Int32(parts[0]), let minute = Int32(parts[1]), hour < 24, minute < 60
        else { return nil }
        (self.hour, self.minute) = (hour, minute)
    }

    /// The time until the next such moment, more than 0. The clock may be set back or forward in
    /// between.
    func timeLeft(at now: Timestamp) -> Duration {
        var seconds = Int(now.milliseconds / 1000)
        let second = seconds
        var local = tm()
        localtime_r(&seconds, &local)
        (local.tm_hour, local.tm_min, local.tm_sec, local.tm_isdst) = (hour, minute, 0, -1)
        var next = local
        var time = mktime(&next)
        if time <= second {
            next = local
            next.tm_mday += 1
            time = mktime(&next)
        }
        return Timestamp(seconds: Int64(time)).timeSince(now)
    }
}

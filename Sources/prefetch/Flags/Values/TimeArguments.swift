import ArgumentParser
import Glibc
import PrefetchModel

/// A time in the past: an age like `12h` or `7d`, or a date in UTC like `2026-11-21` or
/// `2026-11-21T05:37:16Z`.
enum SinceArgument: ExpressibleByArgument {
    case ago(Duration)
    case date(Timestamp)

    /// The accepted forms, for messages.
    static let form = "a duration like 12h or 7d, or a date like 2026-11-21 or 2026-11-21T05:37:16Z"

    init?(argument: String) {
        if let duration = Duration(quantity: argument) {
            self = .ago(duration)
        } else if let date = SinceArgument.date(argument) {
            self = .date(date)
        } else {
            return nil
        }
    }

    func moment(at now: Timestamp) -> Timestamp {
        switch self {
        case .ago(let duration): now.advanced(by: .zero - duration)
        case .date(let date): date
        }
    }

    /// Parses `YYYY-MM-DD` or `YYYY-MM-DDThh:mm:ssZ` (RFC 3339).
    private static func date(_ text: String) -> Timestamp? {
        let parts = text.split(separator: "T", omittingEmptySubsequences: false)
        guard let date = parts.first, parts.count <= 2,
            let days = numbers(date, separator: "-", digits: [4, 2, 2])
        else { return nil }
        var fields = tm()
        fields.tm_year = days[0] - 1900
        fields.tm_mon = days[1] - 1
        fields.tm_mday = days[2]
        if parts.count == 2 {
            guard parts[1].last == "Z",
                let times = numbers(parts[1].dropLast(), separator: ":", digits: [2, 2, 2])
            else { return nil }
            (fields.tm_hour, fields.tm_min, fields.tm_sec) = (times[0], times[1], times[2])
        }
        var normal = fields
        let seconds = timegm(&normal)
        // `timegm` accepts 31 February as a day in March.
        guard normal.tm_mday == fields.tm_mday, normal.tm_mon == fields.tm_mon,
            normal.tm_hour == fields.tm_hour, normal.tm_min == fields.tm_min,
            normal.tm_sec == fields.tm_sec
        else { return nil }
        return Timestamp(seconds: Int64(seconds))
    }

    /// The parts as numbers, if each has the given count of digits.
    private static func numbers(
        _ text: Substring, separator: Character, digits: [Int]
    ) -> [Int32]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int32(digits: $0) }
        return parts.map(\.utf8.count) == digits && numbers.count == parts.count ? numbers : nil
    }
}

/// A time of the day in local time, `hh:mm`: the next moment with it.
struct TimeOfDayArgument: ExpressibleByArgument {
    private let hour: Int32
    private let minute: Int32

    init?(argument: String) {
        let parts = argument.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            let hour = Int32(digits: parts[0]), let minute = Int32(digits: parts[1]), hour < 24,
            minute < 60
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

import Glibc

/// HTTP dates (RFC 9110 §5.6.7), relative to the wall clock.
package enum HTTPDateText {
    /// A date in whole seconds, rounded down. A date in the near future may be past when it
    /// arrives.
    package static func now(plus seconds: Int = 0) -> String {
        var time = Glibc.time(nil) + seconds
        var parts = tm()
        gmtime_r(&time, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]
        let clock = [parts.tm_hour, parts.tm_min, parts.tm_sec].map(twoDigits)
            .joined(separator: ":")
        return "\(days[Int(parts.tm_wday)]), \(twoDigits(parts.tm_mday)) "
            + "\(months[Int(parts.tm_mon)]) \(parts.tm_year + 1900) \(clock) GMT"
    }

    private static func twoDigits(_ value: Int32) -> String {
        value < 10 ? "0\(value)" : "\(value)"
    }
}

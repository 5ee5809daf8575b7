/// A time of the day on a local clock, to the minute.
package struct TimeOfDay: Hashable, Sendable {
    private let minute: Int64

    /// Nil outside 00:00…23:59.
    package init?(hour: Int, minute: Int) {
        guard (0..<24).contains(hour), (0..<60).contains(minute) else { return nil }
        self.minute = Int64(hour * 60 + minute)
    }

    /// Returns the first moment after `now` at which the local clock begins to show this time, or
    /// skips it. A time that the clock shows twice in a night therefore has two such moments. All
    /// moments are seconds since 1970 UTC; `offset` returns the clock's seconds east of UTC.
    package func next(after now: Int64, offset: (Int64) -> Int64) -> Int64 {
        var moment = now
        var clock = now + offset(now)
        while true {
            moment += 60 - TimeOfDay.remainder(clock, 60)
            let next = moment + offset(moment)
            // Normally 1; more after the clock was set forward, 0 or less after it was set back.
            let steps = TimeOfDay.minutes(next) - TimeOfDay.minutes(clock)
            let since = TimeOfDay.remainder(TimeOfDay.minutes(next) - minute, 1440)
            if since < max(1, steps) { return moment }
            clock = next
        }
    }

    private static func minutes(_ seconds: Int64) -> Int64 {
        (seconds - remainder(seconds, 60)) / 60
    }

    private static func remainder(_ number: Int64, _ divisor: Int64) -> Int64 {
        let remainder = number % divisor
        return remainder < 0 ? remainder + divisor : remainder
    }
}

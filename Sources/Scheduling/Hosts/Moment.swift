import PrefetchModel

/// An instant in stored form. Its layout is known to the compiler, unlike that of
/// `ContinuousClock.Instant`, so that copying a struct with instants needs no calls into the
/// runtime.
package struct Moment: Hashable, Comparable, Sendable {
    private let sinceStart: Duration

    private static let start = ContinuousClock.now

    package init(_ instant: ContinuousClock.Instant) {
        sinceStart = Moment.start.duration(to: instant)
    }

    private init(sinceStart: Duration) {
        self.sinceStart = sinceStart
    }

    package var instant: ContinuousClock.Instant { Moment.start + sinceStart }

    static func + (moment: Moment, duration: Duration) -> Moment {
        Moment(sinceStart: moment.sinceStart + duration)
    }

    package static func < (left: Moment, right: Moment) -> Bool {
        left.sinceStart < right.sinceStart
    }
}

extension Moment {
    /// The whole nanoseconds, rounded down. Saturates beyond 292 years.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = sinceStart.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let rest = (attoseconds - (attoseconds < 0 ? 999_999_999 : 0)) / 1_000_000_000
        let (sum, carry) = whole.addingReportingOverflow(rest)
        guard overflow || carry else { return sum }
        return seconds < 0 ? .min : .max
    }

    init(nanoseconds: Int64) {
        self.init(sinceStart: .nanoseconds(nanoseconds))
    }

    /// Negative before `other`.
    func seconds(since other: Moment) -> Double {
        (sinceStart - other.sinceStart).secondsValue
    }
}

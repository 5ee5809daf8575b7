/// A histogram of durations in at most 240 classes, for percentiles in bounded memory.
///
/// Classes are eight to each power of two of microseconds. So a percentile differs from the exact
/// one by at most a 16th of it (6.25 %), and below 16 µs by less than 1 µs. Durations of more than
/// 71 minutes count as such.
package struct DurationHistogram: Sendable {
    /// By class, up to the largest one in use: most hosts need few.
    private var counts: [UInt32] = []
    package private(set) var count = 0

    private static let longest = UInt64(UInt32.max)

    package init() {}

    /// Counts a duration; a negative one as zero.
    package mutating func note(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        let microseconds = overflow ? Int64.max : scaled &+ attoseconds / 1_000_000_000_000
        let index = DurationHistogram.index(
            of: duration < .zero
                ? 0 : min(UInt64(max(0, microseconds)), DurationHistogram.longest))
        if index >= counts.count {
            counts += [UInt32](repeating: 0, count: index + 1 - counts.count)
        }
        counts[index] += counts[index] == .max ? 0 : 1
        count += 1
    }

    /// Returns the duration that this share of all, 0…1, do not exceed; nil without a duration.
    package func quantile(_ share: Double) -> Duration? {
        precondition((0...1).contains(share), "a share is between 0 and 1")
        guard count > 0 else { return nil }
        let rank = max(1, Int((share * Double(count)).rounded(.up)))
        var passed = 0
        for (index, number) in counts.enumerated() {
            passed += Int(number)
            if passed >= rank { return DurationHistogram.middle(of: index) }
        }
        return DurationHistogram.middle(of: counts.count - 1)
    }

    private static func index(of microseconds: UInt64) -> Int {
        guard microseconds >= 8 else { return Int(microseconds) }
        let exponent = 63 - microseconds.leadingZeroBitCount
        return (exponent - 2) * 8 + Int(microseconds >> (exponent - 3)) % 8
    }

    private static func middle(of index: Int) -> Duration {
        guard index >= 8 else { return .microseconds(index) }
        let shift = index / 8 - 1
        let start = (8 + index % 8) << shift
        return .microseconds(start + (1 << shift) / 2)
    }
}

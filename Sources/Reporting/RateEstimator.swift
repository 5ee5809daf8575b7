internal import Glibc

/// Smoothed rates of a run, for the progress line.
///
/// Two exponentially weighted means, over about 3 and 15 seconds. If they agree, the rate is steady
/// enough for a prediction. After a series of fresh entries, or when an origin stalls, the short
/// mean departs from the long one at once.
struct RateEstimator: Sendable {
    /// A mean of rates; their weights fall by a factor of e every `timeConstant` seconds. Dividing
    /// by the sum of weights keeps the first seconds from being too low.
    private struct Mean {
        let timeConstant: Double
        var sum = 0.0
        var weight = 0.0

        mutating func observe(_ amount: Double, over seconds: Double) {
            let kept = exp(-seconds / timeConstant)
            sum = sum * kept + amount / seconds * (1 - kept)
            weight = weight * kept + (1 - kept)
        }

        var value: Double { weight > 0 ? sum / weight : 0 }
    }

    private var shortEntries = Mean(timeConstant: 3)
    private var longEntries = Mean(timeConstant: 15)
    private var shortBytes = Mean(timeConstant: 3)
    private var lastSeconds = 0.0
    private var lastEntries = 0
    private var lastBytes = 0

    /// Adds the totals at `seconds` since the run's start, on its monotonic clock. An observation
    /// that isn't later than the previous one is ignored.
    mutating func observe(seconds: Double, entriesDone: Int, bytesReceived: Int) {
        let span = seconds - lastSeconds
        guard span > 0 else { return }
        let entries = Double(max(0, entriesDone - lastEntries))
        shortEntries.observe(entries, over: span)
        longEntries.observe(entries, over: span)
        shortBytes.observe(Double(max(0, bytesReceived - lastBytes)), over: span)
        lastSeconds = seconds
        lastEntries = entriesDone
        lastBytes = bytesReceived
    }

    var entriesPerSecond: Double { shortEntries.value }
    var bytesPerSecond: Double { shortBytes.value }

    /// Predicted seconds for `entries`; nil in a run's first 3 seconds, and while the means differ
    /// by more than half.
    func secondsLeft(entries: Int) -> Double? {
        let (short, long) = (shortEntries.value, longEntries.value)
        guard lastSeconds >= 3, short > 0, long > 0, short < long * 1.5, long < short * 1.5 else {
            return nil
        }
        return Double(entries) / long
    }
}

internal import PrefetchModel

/// Fixed decimals, rounded half away from zero; for finite numbers of ordinary size.
package func decimal(_ value: Double, places: Int) -> String {
    let scale = places == 0 ? 1 : places == 1 ? 10 : 100
    guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
    let scaled = Int((value * Double(scale)).rounded())
    let sign = scaled < 0 ? "-" : ""
    let (whole, fraction) = scaled.magnitude.quotientAndRemainder(dividingBy: UInt(scale))
    guard scale > 1 else { return "\(sign)\(whole)" }
    let digits = String(fraction)
    let zeros = String(repeating: "0", count: max(0, (scale == 10 ? 1 : 2) - digits.count))
    return "\(sign)\(whole).\(zeros)\(digits)"
}

/// A rate with about three significant digits: `0.25`, `7.4`, `714`.
func rateText(_ rate: Double) -> String {
    decimal(rate, places: rate < 0.995 ? 2 : rate < 99.95 ? 1 : 0)
}

/// `53.6 MiB/s`.
func byteRateText(_ bytesPerSecond: Double) -> String {
    let clamped = min(max(0, bytesPerSecond.isFinite ? bytesPerSecond : 0), 1e18)
    return "\(ByteCount(Int(clamped)))/s"
}

/// `41 ms`, `4.2 s`, `3 min 12 s`, `2 h 5 min`, `3 d 4 h`: two units at most; negative times are 0.
package func durationText(_ duration: Duration) -> String {
    let milliseconds = max(0, duration.wholeMilliseconds)
    if milliseconds < 1000 { return "\(milliseconds) ms" }
    if milliseconds < 59_950 { return "\(decimal(Double(milliseconds) / 1000, places: 1)) s" }
    let seconds = milliseconds / 1000 + (milliseconds % 1000 >= 500 ? 1 : 0)
    return compound(seconds)
}

/// Like ``durationText(_:)`` without fractions, at least 1 s, for text that changes often.
func wholeDurationText(seconds: Double) -> String {
    let clamped = min(max(0, seconds.isFinite ? seconds : 0), 1e12).rounded()
    return clamped < 60 ? "\(max(1, Int(clamped))) s" : compound(Int64(clamped))
}

/// Seconds with three decimals, `4.200`, of 0 or more milliseconds.
func secondsText(milliseconds: Int64) -> String {
    let fraction = String(milliseconds % 1000 + 1000).dropFirst()
    return "\(milliseconds / 1000).\(fraction)"
}

private func compound(_ seconds: Int64) -> String {
    switch seconds {
    case ..<3600: "\(seconds / 60) min \(seconds % 60) s"
    case ..<86400: "\(seconds / 3600) h \(seconds / 60 % 60) min"
    default: "\(seconds / 86400) d \(seconds / 3600 % 24) h"
    }
}

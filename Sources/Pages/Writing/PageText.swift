import PrefetchModel
import Reporting

// Texts of pages.

/// `12,345`
func grouped(_ number: Int) -> String {
    let digits = String(number.magnitude)
    var text = number < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text += "," }
        text.append(digit)
    }
    return text
}

/// `1 image`, `12,345 images`
func groupedCount(_ number: Int, _ noun: String) -> String {
    "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
}

/// `81.2 KiB`, for counts that a report may have wrong.
func sizeText(_ bytes: Int) -> String { "\(ByteCount(max(0, bytes)))" }

/// `38.2 %`; `–` of nothing.
func percentText(_ part: Int, of whole: Int) -> String {
    whole > 0 ? "\(decimal(Double(part) / Double(whole) * 100, places: 1)) %" : "–"
}

/// `2026-11-28 05:37 UTC`
func minuteText(_ time: Timestamp) -> String {
    let text = time.description
    return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
}

/// `2026-11-28`
func dayText(_ day: Int64) -> String {
    String(Timestamp(seconds: day * 86400).description.prefix(10))
}

/// `until 2026-12-01`, or with the time of the day for today.
func expiryText(_ time: Timestamp, at now: Timestamp) -> String {
    // A year beyond 9999 stands for no expiry at all.
    guard time.day < Timestamp.days(year: 9999, month: 1, day: 1) else { return "without expiry" }
    let text = time.day == now.day ? minuteText(time) : dayText(time.day)
    return "\(time > now ? "until" : "since") \(text)"
}

/// `640 × 427`; empty without known sides.
func sidesText(_ image: StoredImage) -> String {
    guard let width = image.knownWidth, let height = image.knownHeight else { return "" }
    return "\(width) × \(height)"
}

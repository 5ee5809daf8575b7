/// An instant of the wall clock in whole milliseconds since 1970-01-01 00:00 UTC, the unit of
/// every time in the cache.
///
/// Time-outs and durations never use it; they use a monotonic clock.
package struct Timestamp: Hashable, Comparable, BitwiseCopyable, Sendable {
    package var milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds
    }

    package init(seconds: Int64) {
        self.init(
            milliseconds: Timestamp.clamped(seconds.multipliedReportingOverflow(by: 1000), seconds))
    }

    /// Later than every stored instant (the year 292 278 994); means "never expires".
    package static let distantFuture = Timestamp(milliseconds: .max)
    package static let distantPast = Timestamp(milliseconds: .min)

    /// The distance into the future up to which stored times are trusted. One hour covers a clock
    /// set back by an hour, which must not refetch everything or request all blacklisted URLs. Five
    /// more minutes cover clocks that are slightly off.
    package static let toleratedClockStep = Duration.seconds(3900)

    package static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.milliseconds < right.milliseconds
    }

    /// Saturates at ``distantFuture`` and ``distantPast`` instead of overflowing.
    package func advanced(by duration: Duration) -> Timestamp {
        let delta = duration.wholeMilliseconds
        return Timestamp(
            milliseconds: Timestamp.clamped(milliseconds.addingReportingOverflow(delta), delta))
    }

    /// The time from `other` to this instant; negative when this one is earlier.
    package func timeSince(_ other: Timestamp) -> Duration {
        let (difference, overflow) = milliseconds.subtractingReportingOverflow(other.milliseconds)
        return .milliseconds(overflow ? (milliseconds < 0 ? Int64.min : .max) : difference)
    }

    private static func clamped(
        _ result: (partialValue: Int64, overflow: Bool), _ direction: Int64
    ) -> Int64 {
        result.overflow ? (direction < 0 ? .min : .max) : result.partialValue
    }
}

extension Timestamp: CustomStringConvertible {
    /// RFC 3339 in UTC with seconds, `2026-11-21T05:37:16Z`, as the report prints it.
    ///
    /// Years outside 0…9999 cannot be written in that format and saturate at its ends.
    package var description: String {
        String(unsafeUninitializedCapacity: Timestamp.textCount) { buffer in
            writeText(to: UnsafeMutableRawBufferPointer(buffer))
            return Timestamp.textCount
        }
    }

    /// Bytes of ``description``, all of them ASCII.
    package static let textCount = 20

    /// Writes ``description`` to the first ``textCount`` bytes.
    package func writeText(to bytes: UnsafeMutableRawBufferPointer) {
        let earliest: Int64 = -62_167_219_200
        let latest: Int64 = 253_402_300_799
        // Not `(milliseconds - 999) / 1000`, which overflows for the distant past.
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
        let seconds = min(max(remainder < 0 ? quotient - 1 : quotient, earliest), latest)
        let days = seconds >= 0 ? seconds / 86400 : (seconds - 86399) / 86400
        let secondOfDay = seconds - days * 86400
        let (year, month, day) = Timestamp.civilDate(daysSince1970: days)
        var index = 0
        func append(_ value: Int64, digits: Int, then separator: StaticString) {
            var rest = value
            for position in stride(from: index + digits - 1, through: index, by: -1) {
                bytes[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
                rest /= 10
            }
            bytes[index + digits] = separator.utf8Start.pointee
            index += digits + 1
        }
        append(year, digits: 4, then: "-")
        append(month, digits: 2, then: "-")
        append(day, digits: 2, then: "T")
        append(secondOfDay / 3600, digits: 2, then: ":")
        append(secondOfDay / 60 % 60, digits: 2, then: ":")
        append(secondOfDay % 60, digits: 2, then: "Z")
    }

    /// The proleptic Gregorian date of a day number (Howard Hinnant, "chrono-Compatible
    /// Low-Level Date Algorithms", `civil_from_days`).
    private static func civilDate(daysSince1970 days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}

extension Duration {
    /// Milliseconds, truncated towards zero; saturates.
    package var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, carried) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        return carried ? (seconds < 0 ? .min : .max) : sum
    }

    /// Seconds as a floating-point number, for rates and text only.
    package var secondsValue: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) + Double(attoseconds) * 1e-18
    }
}

extension Timestamp {
    /// Parses the form of ``description``; nil for any other form, and for dates that do not exist.
    package init?(text: UnsafeRawBufferPointer) {
        guard text.count == Timestamp.textCount, text[4] == UInt8(ascii: "-"),
            text[7] == UInt8(ascii: "-"), text[10] == UInt8(ascii: "T"),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
            text[19] == UInt8(ascii: "Z")
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in text[range] {
                guard byte.isDecimalDigit else { return nil }
                value = value * 10 + Int64(byte - 48)
            }
            return value
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10),
            let hour = number(11..<13), let minute = number(14..<16), let second = number(17..<19),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 60
        else { return nil }
        let days = Timestamp.days(year: year, month: month, day: day)
        self.init(seconds: days * 86400 + hour * 3600 + minute * 60 + second)
        // The 30th of February has become a day in March.
        guard description.utf8.elementsEqual(text) else { return nil }
    }

    /// The number of a day of the proleptic Gregorian calendar (Howard Hinnant,
    /// "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`), for years from 0 on.
    package static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        // The year begins in March; January and February of the year 0 belong to the one before.
        let shiftedYear = (month <= 2 ? year - 1 : year) + 400
        let era = shiftedYear / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return (era - 1) * 146_097 + dayOfEra - 719_468
    }

    /// The number of the UTC day since 1970-01-01, day 0.
    package var day: Int64 {
        let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 86_400_000)
        return remainder < 0 ? quotient - 1 : quotient
    }
}

package import PrefetchModel

/// Reads an HTTP date in its three forms: IMF-fixdate, RFC 850 and asctime (RFC 9110 §5.6.7).
///
/// The C library's `strptime` also accepts one-digit hours, any amount of white space and the 31st
/// of February. All of these are invalid, which means the past in `Expires` (RFC 9111 §5.3).
package enum HTTPDate {
    /// The instant of the text, or nil when it has none of the forms.
    ///
    /// Letters are case-insensitive, and a zone other than GMT is invalid (RFC 9111 §4.2). The
    /// name of the day may be short or long in each form, and need not fit the date. Years run
    /// from 0 to 9999. The two-digit year of the RFC 850 form is chosen so that the instant is at
    /// most 50 years after `now` (RFC 9110 §5.6.7).
    package static func parse(
        _ text: some StringProtocol, relativeTo now: Timestamp
    ) -> Timestamp? {
        // No form is longer than "Wednesday, 09-Nov-1994 08:49:37 GMT"; a value of 100 kB need not
        // be copied.
        guard text.utf8.count <= 40 else { return nil }
        var scanner = DateScanner(text)
        guard scanner.takeDayName() else { return nil }
        let date: (year: Int64, month: Int64, day: Int64)?
        let time: Int64?
        if scanner.take(",") {
            guard scanner.take(" "), let day = scanner.takeDigits(2) else { return nil }
            let hasTwoDigitYear = scanner.take("-")
            guard hasTwoDigitYear || scanner.take(" "), let month = scanner.takeMonth(),
                scanner.take(hasTwoDigitYear ? "-" : " "),
                let number = scanner.takeDigits(hasTwoDigitYear ? 2 : 4), scanner.take(" ")
            else { return nil }
            time = scanner.takeTime()
            guard let time, scanner.take(" "), scanner.takeZone() else { return nil }
            let year =
                hasTwoDigitYear
                ? fullYear(number, month: month, day: day, time: time, now: now) : number
            date = (year, month, day)
        } else {
            guard scanner.take(" "), let month = scanner.takeMonth(), scanner.take(" "),
                let day = scanner.take(" ") ? scanner.takeDigits(1) : scanner.takeDigits(2),
                scanner.take(" ")
            else { return nil }
            time = scanner.takeTime()
            guard scanner.take(" "), let year = scanner.takeDigits(4) else { return nil }
            date = (year, month, day)
        }
        guard let date, let time, scanner.isAtEnd,
            (1...daysInMonth(date.month, of: date.year)).contains(date.day)
        else { return nil }
        return Timestamp(
            seconds: Timestamp.days(year: date.year, month: date.month, day: date.day) * 86400
                + time
        )
    }

    /// The latest year with these last two digits in which the instant is at most 50 years after
    /// `now`.
    private static func fullYear(
        _ twoDigits: Int64, month: Int64, day: Int64, time: Int64, now: Timestamp
    ) -> Int64 {
        let earliest = Timestamp.days(year: 0, month: 1, day: 1)
        let latest = Timestamp.days(year: 9999, month: 12, day: 31)
        let nowSeconds = min(max(now.milliseconds / 1000, earliest * 86400), latest * 86400)
        // Within a year of the right one, so that its century plus two lies beyond the limit.
        let currentYear = 1970 + nowSeconds / 31_556_952
        var year = (currentYear / 100 + 2) * 100 + twoDigits
        // The date minus 50 calendar years must not be in the future.
        while year >= 100,
            Timestamp.days(year: year - 50, month: month, day: day) * 86400 + time > nowSeconds
        {
            year -= 100
        }
        return year
    }

    private static func daysInMonth(_ month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

/// Scans the parts of a date from the front of a text. A run reads two or more dates for each
/// response.
private struct DateScanner {
    private let bytes: [UInt8]
    private var position = 0

    private static let zone = Array("gmt".utf8)
    private static let dayNames = [
        "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
    ].map { Array($0.utf8) }
    private static let days = dayNames.map { word($0[0..<3]) }
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ].map { word(Array($0.utf8)[0..<3]) }

    /// Three letters in lower case as one number, to compare names without a loop.
    private static func word(_ letters: ArraySlice<UInt8>) -> UInt32 {
        letters.reduce(0) { $0 << 8 | UInt32($1 | 0x20) }
    }

    init(_ text: some StringProtocol) {
        // Faster than an array of the view itself.
        bytes = String(text).withBytes { Array($0) }
    }

    var isAtEnd: Bool { position == bytes.count }

    mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: character) else {
            return false
        }
        position += 1
        return true
    }

    mutating func takeZone() -> Bool {
        let letters = takeLetters()
        return letters.count == 3 && isEqual(letters, DateScanner.zone)
    }

    mutating func takeDayName() -> Bool {
        let letters = takeLetters()
        guard letters.count >= 3,
            let day = DateScanner.days.firstIndex(of: DateScanner.word(bytes[letters.prefix(3)]))
        else { return false }
        let name = DateScanner.dayNames[day]
        return letters.count == 3 || letters.count == name.count && isEqual(letters, name)
    }

    /// Takes a three-letter name of a month, and returns its number from 1 to 12.
    mutating func takeMonth() -> Int64? {
        let letters = takeLetters()
        guard letters.count == 3 else { return nil }
        return DateScanner.months.firstIndex(of: DateScanner.word(bytes[letters])).map {
            Int64($0) + 1
        }
    }

    mutating func takeDigits(_ count: Int) -> Int64? {
        guard count <= bytes.count - position else { return nil }
        var number: Int64 = 0
        for digit in bytes[position..<position + count] {
            guard digit.isDecimalDigit else { return nil }
            number = number * 10 + Int64(digit - 48)
        }
        position += count
        return number
    }

    /// Takes `hh:mm:ss` as the second of the day; a leap second counts as the next one.
    mutating func takeTime() -> Int64? {
        guard let hour = takeDigits(2), hour <= 23, take(":"), let minute = takeDigits(2),
            minute <= 59, take(":"), let second = takeDigits(2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func takeLetters() -> Range<Int> {
        let start = position
        while position < bytes.count, (97...122).contains(bytes[position] | 0x20) { position += 1 }
        return start..<position
    }

    /// Whether the letters are the beginning of a name, case-insensitively.
    private func isEqual(_ letters: Range<Int>, _ name: [UInt8]) -> Bool {
        zip(bytes[letters], name).allSatisfy { $0 | 0x20 == $1 }
    }
}

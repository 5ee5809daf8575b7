extension Timestamp {
    /// Parses the form of ``description``, `2026-11-21T05:37:16Z`, in ASCII.
    ///
    /// - Returns: Nil for any other form, and for dates that do not exist.
    package init?(text: UnsafeRawBufferPointer) {
        guard text.count == Timestamp.textCount, text[4] == UInt8(ascii: "-"),
            text[7] == UInt8(ascii: "-"), text[10] == UInt8(ascii: "T"),
            text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
            text[19] == UInt8(ascii: "Z")
        else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var value: Int64 = 0
            for byte in text[range] {
                guard (48...57).contains(byte) else { return nil }
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

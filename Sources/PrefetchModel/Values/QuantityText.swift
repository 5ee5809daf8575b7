/// The text form of durations in flags and manifests: `500ms`, `30s`, `5m`, `2h`, `7d`, optionally
/// with a fraction. A bare number means seconds, as with curl.
extension Duration {
    private static let quantityUnits: [(suffix: String, seconds: Double)] = [
        ("", 1), ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86400),
    ]

    package static let quantityForm = "a duration like 500ms, 90s, 5m, 12h or 30d"

    /// Parses the text form, rounded to milliseconds.
    ///
    /// Returns nil for anything else: signs, white space, exponents, other units, and more than
    /// 36,500 days.
    package init?(quantity text: String) {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let suffix = text[digits.endIndex...]
        guard let number = Double(digits),
            let unit = Duration.quantityUnits.first(where: { $0.suffix == suffix }),
            // A century exceeds any use and cannot overflow.
            number * unit.seconds <= 100 * 365 * 86400
        else { return nil }
        self = .milliseconds(Int64((number * unit.seconds * 1000).rounded()))
    }

    /// The text form in the largest unit that divides the duration; `0s` below a millisecond.
    package var quantityDescription: String {
        let milliseconds = wholeMilliseconds
        for (suffix, seconds) in Duration.quantityUnits.reversed() where !suffix.isEmpty {
            let unit = Int64(seconds * 1000)
            if milliseconds >= unit, milliseconds % unit == 0 {
                return "\(milliseconds / unit)\(suffix)"
            }
        }
        return "0s"
    }
}

/// The text form of sizes in flags: a number with an optional decimal (`kB MB GB`) or binary (`KiB
/// MiB GiB`) unit. Fractions are allowed, case is ignored, and the default unit is bytes.
extension ByteCount {
    private static let quantityUnits: [(suffix: String, bytes: Int)] = [
        ("", 1), ("b", 1), ("k", 1000), ("kb", 1000), ("m", 1_000_000), ("mb", 1_000_000),
        ("g", 1_000_000_000), ("gb", 1_000_000_000), ("kib", 1 << 10), ("mib", 1 << 20),
        ("gib", 1 << 30),
    ]

    package static let quantityForm = "a size like 500000, 200KiB, 64MiB or 2GB"

    /// The accepted form if a unit is required.
    package static let quantityFormWithUnit = "a size with its unit, like 200KiB, 64MiB or 2GB"

    /// Parses the text form, rounded to bytes. Returns nil for anything else: signs, white space,
    /// exponents, other units, and values that overflow.
    package init?(quantity text: String) {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let suffix = text[digits.endIndex...].lowercased()
        guard let number = Double(digits),
            let unit = ByteCount.quantityUnits.first(where: { $0.suffix == suffix }),
            let bytes = Int(exactly: (number * Double(unit.bytes)).rounded())
        else { return nil }
        self.init(bytes)
    }

    /// The text form in the largest binary unit that divides the size.
    package var quantityDescription: String {
        for (suffix, unit) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        where bytes >= unit && bytes % unit == 0 {
            return "\(bytes / unit)\(suffix)"
        }
        return "\(bytes)"
    }
}

import PrefetchModel

/// The rule for the values of a flag, beside their form.
struct ValueCheck<Value>: Sendable {
    /// Returns the end of the message about a wrong value, `must be at least 1`; nil for a right
    /// one.
    let mistake: @Sendable (Value) -> String?

    init(_ mistake: @escaping @Sendable (Value) -> String?) {
        self.mistake = mistake
    }

    static var none: ValueCheck { ValueCheck { _ in nil } }
}

extension ValueCheck<Int> {
    static func atLeast(_ least: Int) -> ValueCheck {
        ValueCheck { $0 < least ? "must be at least \(least)" : nil }
    }

    static func between(_ least: Int, _ most: Int) -> ValueCheck {
        ValueCheck { (least...most).contains($0) ? nil : "must be between \(least) and \(most)" }
    }
}

extension ValueCheck<OrAuto<Int>> {
    static func between(_ least: Int, _ most: Int) -> ValueCheck {
        ValueCheck { $0.value.flatMap(ValueCheck<Int>.between(least, most).mistake) }
    }
}

extension ValueCheck<ByteCount> {
    static func atLeast(_ least: ByteCount, _ text: String) -> ValueCheck {
        ValueCheck { $0 < least ? "must be at least \(text)" : nil }
    }
}

extension ValueCheck<Duration> {
    static var positive: ValueCheck {
        ValueCheck { $0 > .zero ? nil : "must be more than 0" }
    }
}

extension ValueCheck<String> {
    static var path: ValueCheck { ValueCheck { $0.isEmpty ? "needs a path" : nil } }

    /// A file that is replaced at the end.
    static var replacedFile: ValueCheck {
        ValueCheck { $0.isEmpty || $0 == "-" ? "takes a file, and not -" : nil }
    }
}

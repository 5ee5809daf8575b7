package import PrefetchModel

/// The settings that a failure depended on, as its row stores them.
package struct FailureConditions: Equatable, Sendable {
    private let values: [FailureSetting: String]

    /// Stores the settings that a failure of that reason depends on.
    ///
    /// `value` returns the value of a setting in the failed run: digits for a limit, otherwise a
    /// text without spaces. Settings with an empty one do not matter.
    package init(of reason: FailureReason, value: (FailureSetting) -> String) {
        let all = FailurePolicy.settings(of: reason).map { ($0, value($0)) }
        values = Dictionary(uniqueKeysWithValues: all.filter { !$1.isEmpty })
    }

    /// Parses ``text``. Unknown settings and malformed words are ignored.
    package init(text: String) {
        var values: [FailureSetting: String] = [:]
        for word in text.split(separator: " ") {
            guard let sign = word.firstIndex(of: "="),
                let setting = FailureSetting(rawValue: String(word[..<sign]))
            else { continue }
            values[setting] = String(word[word.index(after: sign)...])
        }
        self.values = values
    }

    /// `name=value` for each setting, separated by spaces, in the order of ``FailureSetting``.
    package var text: String {
        FailureSetting.allCases.compactMap { setting in
            values[setting].map { "\(setting.rawValue)=\($0)" }
        }.joined(separator: " ")
    }

    /// The value of a setting that is a list, for a failure that each of these items causes.
    package static func any(of items: [String]) -> String {
        items.map { "|" + $0 }.joined()
    }

    /// Whether the present value of a setting is the stored one, or has one of its items.
    private static func repeats(_ stored: String, _ present: String) -> Bool {
        guard stored.first == "|" else { return present == stored }
        let items = Set(stored.split(separator: "|"))
        return present.split(separator: ",").contains(where: items.contains)
    }

    /// Whether no setting of a run makes success more likely: each is the same, or stricter.
    ///
    /// A limit that is not a number (a damaged row) does not hold, so the URL is requested.
    package func hold(for value: (FailureSetting) -> String) -> Bool {
        values.allSatisfy { setting, stored in
            guard setting.isLimit else {
                return FailureConditions.repeats(stored, value(setting))
            }
            guard let stored = Int(stored), let present = Int(value(setting)) else { return false }
            return present <= stored
        }
    }
}

package import PrefetchModel

/// The facts that decided a failure, as its row keeps them.
package struct FailureConditions: Equatable, Sendable {
    private let values: [FailureSetting: String]

    /// `value` gives what holds for the run in which it failed: digits for a limit, else a text without
    /// spaces.
    package init(of reason: FailureReason, value: (FailureSetting) -> String) {
        values = Dictionary(
            uniqueKeysWithValues: FailurePolicy.settings(of: reason).map { ($0, value($0)) })
    }

    /// Reads what ``text`` gives. Facts that this version does not know, and words that are none, are
    /// left out.
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

    /// `name=value` for each fact, separated by spaces, in the order of ``FailureSetting``.
    package var text: String {
        FailureSetting.allCases.compactMap { setting in
            values[setting].map { "\(setting.rawValue)=\($0)" }
        }.joined(separator: " ")
    }

    /// The same of a failure of that reason, of whatever version of this program.
    ///
    /// Versions that knew fewer formats by their bytes kept nothing of ``FailureSetting/otherFormats``: what was no image to
    /// them, or none that they took, may be stored now.
    package func hold(for reason: FailureReason, value: (FailureSetting) -> String) -> Bool {
        switch reason {
        case .notAnImage, .unsupportedImage: values[.otherFormats] != nil && hold(for: value)
        default: hold(for: value)
        }
    }

    /// Whether a run may not do better: each fact is the same for it, or stricter.
    ///
    /// A limit that is no number, which takes a damaged row, keeps nobody from asking.
    package func hold(for value: (FailureSetting) -> String) -> Bool {
        values.allSatisfy { setting, stored in
            guard setting.isLimit else { return value(setting) == stored }
            guard let stored = Int(stored), let present = Int(value(setting)) else { return false }
            return present <= stored
        }
    }
}

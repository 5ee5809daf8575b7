import Reporting

/// A progress line on a terminal, overwritten in place; nothing elsewhere.
struct ProgressText {
    private let isWanted: Bool
    private var isShown = false

    init(isWanted: Bool) {
        self.isWanted = isWanted && StandardError.isCapableTerminal
    }

    mutating func show(_ text: String) {
        guard isWanted else { return }
        StandardError.put(String(text.prefix(max(1, StandardError.width - 1))))
        isShown = true
    }

    mutating func clear() {
        guard isShown else { return }
        StandardError.put(ProgressLine.clearText)
        isShown = false
    }
}

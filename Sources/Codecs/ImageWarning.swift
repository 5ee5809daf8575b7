/// A fault of a file that loses no pixel, so the image is stored all the same.
package struct ImageWarning: Hashable, Sendable {
    /// A sentence without a full stop.
    package let text: String
    /// Whether the last bytes of the file are missing. A body of unknown length may then be cut.
    package let lacksEnd: Bool

    init(_ text: String, lacksEnd: Bool = false) {
        self.text = text
        self.lacksEnd = lacksEnd
    }
}

/// The first warning of one source. Like its source, for use by one thread.
final class WarningNote {
    private(set) var warning: ImageWarning?

    func note(_ warning: ImageWarning?) {
        self.warning = self.warning ?? warning
    }

    /// Notes the parts that `--strip none` leaves out of a file because they break its format:
    /// their names, without control characters, in the order of the file, and the word for one.
    func noteMalformed(_ names: [String], _ part: String) {
        guard let first = names.first else { return }
        let others = names.count > 1 ? " and \(names.count - 1) more" : ""
        note(ImageWarning("left out a malformed \(part): \(first)\(others)"))
    }
}

/// A fault of a file that loses no pixel, so that the image is stored all the same.
package struct ImageWarning: Hashable, Sendable {
    /// A sentence without a full stop.
    package let text: String
    /// Whether the last bytes of the file are missing. A body whose end the transport could not
    /// see may then be cut.
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
}

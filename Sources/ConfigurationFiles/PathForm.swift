package import PrefetchModel

/// The place of file names in a value. A `~/` at their start is the home directory, as a shell
/// writes it on the command line.
package enum PathForm: Sendable {
    case none
    /// The whole value.
    case whole
    /// `@FILE`, else no file.
    case afterAt
    /// `overlay=FILE` among the steps of an image.
    case overlays

    /// The text before a file name.
    private var mark: String? {
        switch self {
        case .none: nil
        case .whole: ""
        case .afterAt: "@"
        case .overlays: "overlay="
        }
    }

    /// Returns the value with the home directory in place of `~`.
    ///
    /// - Throws: `UserError` for the home of a user by name, and without a home.
    package func expanded(_ text: String, home: String?) throws(UserError) -> String {
        guard let mark, text.contains("~") else { return text }
        var starts = [mark.endIndex(in: text)].compactMap(\.self)
        if case .overlays = self { starts = text.ranges(of: mark).map(\.upperBound) }
        var result = text
        for start in starts.reversed() where text[start...].hasPrefix("~") {
            let rest = text[start...].dropFirst()
            guard rest.isEmpty || rest.hasPrefix("/") else {
                throw UserError(
                    .usage, "takes ~/ for your home, and no ~NAME",
                    hint: "write the whole path, or ./~NAME for a file of that name")
            }
            guard let home else {
                throw UserError(
                    .usage, "has ~, but HOME is not set", hint: "write the whole path")
            }
            let isRoot = home == "/" && !rest.isEmpty
            result.replaceSubrange(start..<rest.startIndex, with: isRoot ? "" : home)
        }
        return result
    }
}

extension String {
    /// The end of this prefix in a text; nil if the text begins otherwise.
    fileprivate func endIndex(in text: String) -> String.Index? {
        text.hasPrefix(self) ? text.index(text.startIndex, offsetBy: count) : nil
    }
}

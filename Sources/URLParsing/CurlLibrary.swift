internal import CCurl

/// libcurl, loaded at its first use: a URL that has to be parsed, or a transfer.
///
/// Any thread may call it. A process tries to load it once.
package enum CurlLibrary {
    /// libcurl is missing, or unusable.
    package struct Missing: Error, Equatable, Sendable, CustomStringConvertible {
        /// One line that names the library, and the missing function.
        package let reason: String

        package var description: String { "cannot load libcurl: \(reason)" }
        package var hint: String { "install libcurl 7.88 or newer (Debian's package is libcurl4)" }
    }

    /// - Throws: when libcurl cannot be loaded, at every call.
    package static func load() throws(Missing) {
        guard let reason = ccurl_load() else { return }
        throw Missing(reason: String(cString: reason))
    }
}

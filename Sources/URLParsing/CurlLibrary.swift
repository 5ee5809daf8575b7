internal import CCurl

/// libcurl, which is loaded when something first needs it: a URL that has to be parsed, a transfer.
///
/// From any thread, and once a process: what could not be loaded is not tried again.
package enum CurlLibrary {
    /// It is not there, or not one that can be used.
    package struct Missing: Error, Equatable, Sendable, CustomStringConvertible {
        /// One line that names the library, and the function that it does not have.
        package let reason: String

        package var description: String { "cannot load libcurl: \(reason)" }
        package var hint: String { "install libcurl 7.88 or newer (Debian's package is libcurl4)" }
    }

    /// - Throws: where it cannot be loaded, now as at every other time.
    package static func load() throws(Missing) {
        guard let reason = ccurl_load() else { return }
        throw Missing(reason: String(cString: reason))
    }
}

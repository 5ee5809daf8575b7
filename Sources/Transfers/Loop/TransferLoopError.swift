import URLParsing

/// An error of libcurl itself, which ends the loop.
package struct TransferLoopError: Error, CustomStringConvertible {
    package let operation: String
    package let code: Int32
    package let message: String
    /// The library that ``code`` belongs to.
    var origin = Origin.libcurl
    package var hint: String?

    enum Origin {
        case libcurl
        /// An `errno`.
        case system
        /// No code: libcurl cannot be loaded.
        case missingLibrary
    }

    package var description: String {
        switch origin {
        case .libcurl: "libcurl: \(operation): \(message) (\(code))"
        case .system: "\(operation): \(message)"
        case .missingLibrary: message
        }
    }
}

extension TransferLoopError {
    init(_ missing: CurlLibrary.Missing) {
        self.init(
            operation: "loading", code: 0, message: missing.description, origin: .missingLibrary,
            hint: missing.hint)
    }
}

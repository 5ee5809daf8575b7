internal import CCurl
package import PrefetchModel

/// libcurl, loaded at its first use: a URL that has to be parsed, or a transfer.
///
/// Any thread may call it. A process tries to load it once.
package enum CurlLibrary {
    package static func load() throws(UserError) {
        if let failure = failure() { throw failure }
    }

    /// Loads it. Returns the error, nil without one.
    static func failure() -> UserError? {
        ccurl_load().map { reason in
            UserError(
                .failed, "cannot load libcurl", String(cString: reason),
                hint: "install libcurl 7.88 or newer (Debian's package is libcurl4)")
        }
    }
}

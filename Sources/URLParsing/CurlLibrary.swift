internal import CCurl
package import PrefetchModel

/// libcurl, loaded at its first use: a URL that has to be parsed, or a transfer.
///
/// Any thread may call it. A process tries to load it once.
package enum CurlLibrary {
    package static func load() throws(UserError) {
        guard let reason = ccurl_load() else { return }
        throw UserError(
            .failed, "cannot load libcurl", String(cString: reason),
            hint: "install libcurl 7.88 or newer (Debian's package is libcurl4)")
    }
}

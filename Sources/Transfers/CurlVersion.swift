internal import CCurl
package import URLParsing

/// libcurl as it is loaded, and what it was loaded with.
package enum CurlVersion {
    /// `7.88.1 (OpenSSL/3.0.17 zlib/1.2.13 nghttp2/1.52.0)`. Needs nothing to be set up.
    ///
    /// - Throws: where libcurl cannot be loaded.
    package static func text() throws(CurlLibrary.Missing) -> String {
        try CurlLibrary.load()
        guard let text = ccurl_version() else { return "" }
        let words = String(cString: text).split(separator: " ", maxSplits: 1)
        let version = words.first?.split(separator: "/").last ?? ""
        return words.count > 1 ? "\(version) (\(words[1]))" : String(version)
    }
}

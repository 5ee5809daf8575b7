internal import CCurl
package import PrefetchModel
import URLParsing

/// The versions of the loaded libcurl and its libraries.
package enum CurlVersion {
    /// As in `7.88.1 (OpenSSL/3.0.17 zlib/1.2.13 nghttp2/1.52.0)`. Needs no setup.
    package static func text() throws(UserError) -> String {
        try CurlLibrary.load()
        guard let text = ccurl_version() else { return "" }
        let words = String(cString: text).split(separator: " ", maxSplits: 1)
        let version = words.first?.split(separator: "/").last ?? ""
        return words.count > 1 ? "\(version) (\(words[1]))" : String(version)
    }
}

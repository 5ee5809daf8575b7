internal import CCurl

/// libcurl as it is loaded, and what it was loaded with.
package enum CurlVersion {
    /// `7.88.1 (OpenSSL/3.0.17 zlib/1.2.13 nghttp2/1.52.0)`. Needs nothing to be set up.
    package static var text: String {
        let words = String(cString: curl_version()).split(separator: " ", maxSplits: 1)
        let version = words.first?.split(separator: "/").last ?? ""
        return words.count > 1 ? "\(version) (\(words[1]))" : String(version)
    }
}

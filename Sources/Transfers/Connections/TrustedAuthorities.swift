internal import CCurl
import PrefetchModel

/// The certificate authorities of one connection, from a file or a folder.
///
/// libcurl 7.88 parses a file once, but once per connection if it has a folder as well; for the
/// system's 140 authorities that takes 20 ms. So connections trust the file alone, and an origin
/// with an issuer that it lacks is tried again with the folder alone. OpenSSL accepts a chain that
/// reaches any trusted certificate, so the two accept what both together would.
enum TrustedAuthorities {
    case ofFile
    case ofFolder

    /// The paths in force; nil for libcurl's own or none.
    struct Paths {
        let file: String?
        /// Nil without a folder, and without a file.
        let folder: String?

        /// `handle` is a new one, which knows libcurl's own paths.
        init(_ settings: RequestSettings, defaultsOf handle: UnsafeMutableRawPointer) {
            file = settings.authorityFile ?? EasyHandle.text(CURLINFO_CAINFO, of: handle)
            // A given file without a folder replaces the system's folder as well.
            let ownFolder =
                settings.authorityFile == nil ? EasyHandle.text(CURLINFO_CAPATH, of: handle) : nil
            folder = settings.authorityFolder ?? ownFolder
        }
    }

    /// Whether a failed verification is due to an unknown issuer, by OpenSSL's result
    /// (X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT and others of `x509_vfy.h`).
    static func isIssuerUnknown(_ verification: Int) -> Bool {
        [2, 18, 19, 20, 21].contains(verification)
    }
}

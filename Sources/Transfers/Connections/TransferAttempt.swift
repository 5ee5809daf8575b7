internal import CCurl
import Glibc
import PrefetchModel

/// A request on its way through libcurl.
struct TransferAttempt {
    let request: TransferRequest
    /// The origin of a request over TLS; nil for others.
    let origin: String?
    /// The position of its settings in ``TransferConfiguration/hosts``; nil for the common ones.
    let hostSettings: Int?
    /// The authorities that the origin's certificate is verified with.
    var authorities = TrustedAuthorities.ofFile
    /// Whether credentials are sent by the scheme Digest (RFC 7616) instead of Basic.
    var usesDigest = false
    /// Whether it needs a handle without the challenge of an earlier request.
    var needsNewHandle = false
    /// The number of times that the request was sent again because its shared connection ended.
    var resends = 0

    init(
        _ request: TransferRequest, _ hosts: HostTable<TransferConfiguration> = HostTable()
    ) {
        self.request = request
        hostSettings = hosts.position(ofHostIn: request.url.text)
        origin = request.url.isEncrypted ? request.url.origin : nil
    }

    func trusting(_ authorities: TrustedAuthorities) -> TransferAttempt {
        var attempt = self
        attempt.authorities = authorities
        return attempt
    }
}

/// A transfer's use of the connections of its origin.
struct ConnectionUse {
    let origin: String
    /// Whether it has opened a socket, on which its request was not sent yet.
    var isConnecting = false
    var isRefused = false
    /// Whether its request was sent, or is about to be.
    var isSent = false
    var isAnswered = false
    /// Whether the response came over HTTP/2.
    var isShared = false
}

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
        /// For https proxies, whatever the settings say about origins.
        let proxyFile: String?
        /// Nil without a folder, and without a file.
        let folder: String?

        /// `handle` is a new one, which knows libcurl's own paths.
        init(_ settings: RequestSettings, defaultsOf handle: UnsafeMutableRawPointer) {
            proxyFile = Self.systemFile(default: EasyHandle.text(CURLINFO_CAINFO, of: handle))
            file = settings.authorityFile ?? proxyFile
            // A given file without a folder replaces the system's folder as well.
            let ownFolder =
                settings.authorityFile == nil ? EasyHandle.text(CURLINFO_CAPATH, of: handle) : nil
            folder = settings.authorityFolder ?? ownFolder
        }

        /// libcurl's own file, or else the first of ``systemFiles``: a carried libcurl was built
        /// for Debian.
        static func systemFile(
            default own: String?, exists: (String) -> Bool = { access($0, R_OK) == 0 }
        ) -> String? {
            if let own, exists(own) { return own }
            return systemFiles.first(where: exists) ?? own
        }

        /// The certificates of each family of systems.
        static let systemFiles = [
            // Debian, Arch, Alpine, Gentoo
            "/etc/ssl/certs/ca-certificates.crt",
            // Fedora, RHEL, Amazon Linux
            "/etc/pki/tls/certs/ca-bundle.crt",
            "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
            // SUSE
            "/etc/ssl/ca-bundle.pem",
            // FreeBSD's layout, in Alpine and others
            "/etc/ssl/cert.pem",
        ]
    }

    /// Whether a failed verification is due to an unknown issuer, by OpenSSL's result
    /// (X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT and others of `x509_vfy.h`).
    static func isIssuerUnknown(_ verification: Int) -> Bool {
        [2, 18, 19, 20, 21].contains(verification)
    }
}

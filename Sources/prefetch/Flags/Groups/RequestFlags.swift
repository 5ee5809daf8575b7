import ArgumentParser
import ConfigurationFiles
import Hashing
import Manifests
import Pipeline
import PrefetchModel

/// Flags about header fields, credentials, proxies and addresses.
///
/// No message repeats a value, since it may be a secret.
struct RequestFlags: FlagRows {
    static let flags = FlagTable(RequestFlags())

    let sender = SenderFlags()
    let route = RouteFlags()
    let addresses = AddressFlags()

    static func combined(_ flags: Flags<RequestFlags>) throws {
        try SenderFlags.combined(flags.sender)
        try RouteFlags.combined(flags.route)
        try AddressFlags.combined(flags.addresses)
    }
}

/// Flags about the header fields and the credentials of requests.
struct SenderFlags: FlagRows {
    static let flags = FlagTable(SenderFlags())

    let headers = RunFlag<[String]>(
        repeatable: "header", value: "name: value",
        help: """
            Header field for every request, or @FILE with one per line; 'Name:' removes a field. \
            Never sent cross-origin by a redirect.
            """, brief: "header field for every request, or @FILE",
        inProjects: .refusedWithSecrets,
        inHosts: .entries {
            $0.defaults.headers = $0.defaults.headers.replaced(
                by: try RequestFiles.fields(of: $1))
        }, holdsSecret: true
    ) { $0.run.requests.fields = try RequestFiles.fields(of: $1) }

    let userAgent = RunFlag<String>(
        "user-agent", value: "text", sets: \.run.userAgent,
        help: "Value of the User-Agent field.", inHosts: .likeRun,
        check: ValueCheck {
            $0.utf8.contains { $0 < 0x20 || $0 == 0x7F }
                ? "must not contain control characters" : nil
        })

    let acceptedFormats = RunFlag<AcceptedFormats?>(
        "accept-formats", value: "formats",
        help: """
            Request images in these formats, comma-separated, by the Accept field: jpeg,png for \
            apps and data sets that need them. Origins that have only others may still send them \
            (default: all that are decoded).
            """, inHosts: .likeRun, check: ValueCheck { $0.mistake }
    ) { $0.run.requests.accept = $1.field }

    let user = RunFlag<String?>(
        "user", value: "name:password",
        help: """
            Credentials for every listed origin, or @FILE, which keeps them out of the process \
            list. Never sent cross-origin by a redirect.
            """, inProjects: .refused, inHosts: .likeRun, holdsSecret: true
    ) { $0.run.requests.credentials = try RequestFiles.credentials($1) }

    let usesNetrc = RunFlag<Bool>(
        "netrc", help: "Read credentials from $NETRC, or else ~/.netrc.",
        inProjects: .refused)

    let netrcFile = RunFlag<String?>(
        "netrc-file", value: "file", help: "Read credentials from this file.",
        inProjects: .refused, replaces: ["netrc"], check: .path)

    let cookieJar = RunFlag<String?>(
        "cookie-jar", value: "file",
        help: "Read cookies from this file if it exists, and write them back at the end.",
        inProjects: .refused,
        check: ValueCheck {
            $0.isEmpty ? "needs a path" : $0 == "-" ? "takes a file, and not -" : nil
        }
    ) {
        $0.run.requests.cookieJar = $1
        $0.run.requests.cookieFingerprints = try CookieJarFile.fingerprints(of: $1)
    }

    static func combined(_ flags: Flags<SenderFlags>) throws {
        if flags.usesNetrc, flags.netrcFile != nil {
            throw ValidationError("--netrc and --netrc-file cannot be combined")
        }
    }
}

/// Flags about the addresses that requests may go to.
struct AddressFlags: FlagRows {
    static let flags = FlagTable(AddressFlags())

    let allowsDowngrade = RunFlag<Bool>(
        "allow-downgrade", help: "Also follow redirects from https to http.",
        inProjects: .refused
    ) { $0.run.redirects.allowsDowngrade = $1 }

    let allowsLinkLocal = RunFlag<Bool>(
        "allow-link-local",
        help: "Allow link-local addresses, which include the metadata services of clouds.",
        inProjects: .refused
    ) { $0.run.requests.allowsLinkLocal = $1 }

    let deniesPrivate = RunFlag<Bool>(
        "deny-private",
        help: """
            Refuse loopback, private and link-local addresses, for lists you do not trust (SSRF).
            """, inProjects: .refused
    ) { $0.run.requests.deniesPrivate = $1 }

    static func combined(_ flags: Flags<AddressFlags>) throws {
        if flags.allowsLinkLocal, flags.deniesPrivate {
            throw ValidationError("--allow-link-local and --deny-private cannot be combined")
        }
    }
}

extension Flags<RequestFlags> {
    /// Applies the flags, and the environment where they say nothing.
    ///
    /// - Throws: `UserError` with status 64 for an invalid value, 2 for a file that can't be used.
    func applyWithEnvironment(to settings: inout RunSettings) throws {
        try apply(to: &settings)
        try self.sender.applyNetrc(to: &settings.run.requests)
        try self.route.applyEnvironment(to: &settings)
    }

    /// Warns about `--insecure` in every run, even with `-q`.
    func warn() {
        guard self.route.insecure else { return }
        StandardError.write(
            "prefetch: --insecure: certificates are not verified: anyone on the network path can "
                + "pose as the origin")
        StandardError.write("hint: --cacert FILE trusts the CA certificates in that file")
    }

    var filesRead: [WrittenFiles.Use] {
        let (sender, route) = (self.sender, self.route)
        let texts = (sender.headers + [sender.user, route.proxy].compactMap(\.self)).filter {
            $0.hasPrefix("@")
        }
        let certificates = WrittenFiles.uses([
            ("--cert", route.certificate), ("--key", route.certificateKey),
        ])
        return [sender.netrcUse, route.authorityUse].compactMap(\.self) + certificates
            + texts.map { WrittenFiles.Use(path: String($0.dropFirst()), name: "@FILE") }
    }

    /// The folders that hold files which these flags read. OpenSSL takes a list of folders.
    var foldersRead: [WrittenFiles.Use] {
        (self.route.authorityFolder ?? "").split(separator: ":").map {
            WrittenFiles.Use(path: String($0), name: "SSL_CERT_DIR")
        }
    }
}

extension Flags<SenderFlags> {
    /// The netrc file, given or the user's; nil without a flag for one.
    fileprivate var netrcUse: WrittenFiles.Use? {
        if self.usesNetrc {
            let path = environment("NETRC") ?? environment("HOME").map { $0 + "/.netrc" }
            return path.map { WrittenFiles.Use(path: $0, name: "--netrc") }
        }
        return self.netrcFile.map { WrittenFiles.Use(path: $0, name: "--netrc-file") }
    }

    fileprivate func applyNetrc(to requests: inout RequestSettings) throws {
        guard let use = netrcUse else {
            guard self.usesNetrc else { return }
            throw UserError(
                "--netrc: neither NETRC nor HOME is set",
                hint: "name the file with --netrc-file")
        }
        // Reading it here reports an unreadable file; libcurl would treat it as empty.
        let contents = try RequestFiles.contents(of: use.path, use.name, limit: 16 << 20)
        requests.netrcFile = use.path
        requests.netrcFingerprint = SHA256Hasher().digest(of: contents).description
    }
}

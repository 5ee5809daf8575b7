import FileOutput
import Glibc
import Hashing
import PrefetchModel

/// Values of flags about requests, and the files that they name.
enum RequestFiles {
    /// The fields of values of `--header`, in their order.
    static func fields(of values: [String]) throws -> [HeaderField] {
        var fields: [HeaderField] = []
        for given in values {
            guard given.hasPrefix("@") else {
                fields.append(try field(given, "--header"))
                continue
            }
            let path = String(given.dropFirst())
            let text = try contents(of: path, "--header")
            for (index, line) in lines(text).enumerated() where !line.isEmpty {
                fields.append(try field(line, "\(path): line \(index + 1)"))
            }
        }
        return fields
    }

    private static func field(
        _ line: some StringProtocol, _ subject: String
    ) throws(UserError) -> HeaderField {
        try reporting(as: { $0.message = "\(subject): \($0.message)" }) {
            try HeaderField(requestLine: line)
        }
    }

    static let proxyForm = "[SCHEME://][USER:PASSWORD@]HOST[:PORT]"
    static let proxySchemes = "SCHEME is one of \(ProxySettings.schemes.joined(separator: ", "))"

    /// The settings of a proxy for all requests without exception, given as the value of the flag.
    static func proxies(_ value: String) throws -> ProxySettings {
        let settings = ProxySettings(explicit: try secret(value, "--proxy"), exceptions: "")
        guard settings.http.map(ProxySettings.isProxy) ?? true else {
            throw UserError(.usage, "--proxy takes \(proxyForm), or @FILE", hint: proxySchemes)
        }
        return settings
    }

    static func credentials(_ value: String) throws -> Credentials {
        guard let parsed = Credentials(text: try secret(value, "--user")) else {
            throw UserError(
                .usage, "--user takes NAME:PASSWORD without control characters, or @FILE")
        }
        return parsed
    }

    static func certificate(_ file: String, key: String?) throws -> ClientCertificate {
        let limit = 1 << 20
        let text = try contents(of: file, "--cert", limit: limit)
        guard text.contains("-----BEGIN CERTIFICATE-----") else {
            throw UserError("\(file): contains no certificate", hint: "--cert names a PEM file")
        }
        let ownText = try key.map { try contents(of: $0, "--key", limit: limit) }
        let keyText = ownText ?? text
        guard keyText.contains("PRIVATE KEY-----") else {
            throw UserError(
                "\(key ?? file): contains no private key", hint: "--key names a PEM file with it")
        }
        guard !keyText.contains("ENCRYPTED") else {
            throw UserError(
                "\(key ?? file): the private key is encrypted",
                hint: "openssl pkey -in \(key ?? file) -out PLAIN writes one that is not")
        }
        return (
            file: file, keyFile: key,
            fingerprint: SHA256Hasher().digest(of: text + (ownText ?? "")).description
        )
    }

    static func addresses(_ text: String) throws -> HostAddresses {
        guard let addresses = HostAddresses(text: text) else {
            throw UserError(
                .usage,
                "--resolve takes HOST:PORT:ADDRESS[,ADDRESS], like example.com:443:192.0.2.7")
        }
        return addresses
    }

    /// The value itself, or for `@FILE` the first line of that file.
    static func secret(_ value: String, _ flag: String) throws -> String {
        guard value.hasPrefix("@") else { return value }
        let text = try contents(of: String(value.dropFirst()), flag)
        return lines(text).first.map(String.init) ?? ""
    }

    /// The lines without their ends. Swift treats CR LF as one character.
    static func lines(_ text: String) -> [Substring] {
        text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    }

    static func contents(of path: String, _ flag: String, limit: Int = 64 << 10) throws -> String {
        let bytes = try Result { () throws(InputFileError) in
            try InputFile.readRegular(path, limit: limit + 1)
        }.mapError { UserError("\(path): \($0.cause)", hint: "\(flag) names this file") }.get()
        guard bytes.count <= limit else {
            throw UserError("\(path): larger than \(ByteCount(limit)), the limit for \(flag)")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw UserError("\(path): not UTF-8", hint: "\(flag) takes a file of UTF-8 text")
        }
        return text
    }

    static func unusable(_ path: String, _ flag: String, _ cause: Int32) -> UserError {
        UserError("\(path): \(String(cString: strerror(cause)))", hint: "\(flag) names this file")
    }
}

extension RequestSettings {
    /// Trusts the certificates of a file instead of the system's.
    mutating func trust(_ use: WrittenFiles.Use) throws {
        let text = try RequestFiles.contents(of: use.path, use.name, limit: 64 << 20)
        guard text.firstRange(of: "-----BEGIN") != nil else {
            throw UserError(
                "\(use.path): contains no certificate",
                hint: "\(use.name) names a PEM file, which has a line -----BEGIN CERTIFICATE-----")
        }
        authorityFile = use.path
        authorityFingerprint = SHA256Hasher().digest(of: text).description
    }
}

enum CookieJarFile {
    /// Returns the lines of the jar's cookies. Checks before the run, not at its end, that the jar
    /// can be read and written, and that it is one: libcurl would empty any other file.
    private static func checkedCookies(of path: String) throws -> [Substring] {
        do {
            try FilePlace(path).checkReplacing()
        } catch {
            // Anything else is said of the folder or the file.
            if case .foreignLink = error { throw error }
        }
        var status = stat()
        guard stat(path, &status) != 0 else {
            let text = try RequestFiles.contents(of: path, "--cookie-jar", limit: 64 << 20)
            let cookies = try cookies(in: text, path)
            guard access(path, W_OK) == 0 else {
                throw RequestFiles.unusable(path, "--cookie-jar", errno)
            }
            return cookies
        }
        guard errno == ENOENT else { throw RequestFiles.unusable(path, "--cookie-jar", errno) }
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        guard access(folder, W_OK | X_OK) == 0 else {
            throw UserError(
                "\(folder): \(String(cString: strerror(errno)))",
                hint: "--cookie-jar writes a file in this folder")
        }
        return []
    }

    private static func cookies(in text: String, _ path: String) throws -> [Substring] {
        let mark: Unicode.Scalar = "\u{FEFF}"
        let scalars = text.unicodeScalars
        // At line feeds alone: a cookie may contain other line separators.
        let lines = (scalars.first == mark ? scalars.dropFirst() : scalars[...]).split(
            separator: "\n", omittingEmptySubsequences: false)
        var cookies: [Substring] = []
        // Comments alone may be any file, so they need the format's own.
        var firstComment: Int?
        var hasHeader = false
        for (index, scalars) in lines.enumerated() {
            var line = Substring(scalars)
            if line.unicodeScalars.last == "\r" { line.unicodeScalars.removeLast() }
            guard !isIgnored(line) else {
                hasHeader = hasHeader || isHeader(line)
                if line.hasPrefix("#") { firstComment = firstComment ?? index }
                continue
            }
            cookies.append(line)
            guard isCookie(line) else { throw isNoCookie(index, path) }
        }
        if cookies.isEmpty, !hasHeader, let firstComment { throw isNoCookie(firstComment, path) }
        return cookies
    }

    private static func isNoCookie(_ index: Int, _ path: String) -> UserError {
        UserError(
            "\(path): line \(index + 1) is not a cookie in Netscape's format",
            hint: "--cookie-jar replaces this file at the end; name a new one, or one that "
                + "`curl -c` or a browser's export in this format has written")
    }

    /// Whether a comment is the first line of the format, as curl and browsers write it.
    private static func isHeader(_ line: Substring) -> Bool {
        ["# Netscape HTTP Cookie File", "# HTTP Cookie File"].contains { line.hasPrefix($0) }
    }

    /// Whether a line is blank or a comment.
    private static func isIgnored(_ line: Substring) -> Bool {
        line.hasPrefix("#") && !line.hasPrefix("#HttpOnly_") || line.allSatisfy(\.isWhitespace)
    }

    /// Whether a line is a cookie: domain, subdomains, path, TLS only, expiry, name and value.
    private static func isCookie(_ line: Substring) -> Bool {
        let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
        return fields.count == 7 && fields[2].hasPrefix("/")
            && [fields[1], fields[3]].allSatisfy { ["TRUE", "FALSE"].contains($0) }
            && fields[4].first?.isNumber == true
    }

    /// Fingerprints of the paths, names and values by domain. Expiry dates change with every
    /// response.
    static func fingerprints(of path: String) throws -> [String: String] {
        let cookies = try checkedCookies(of: path).map {
            $0.split(separator: "\t", omittingEmptySubsequences: false)
        }
        let hasher = SHA256Hasher()
        return Dictionary(grouping: cookies) { fields in
            let domain =
                fields[0].hasPrefix("#HttpOnly_")
                ? fields[0].dropFirst("#HttpOnly_".count) : fields[0]
            return domain.drop { $0 == "." }.lowercased()
        }.mapValues { cookies in
            let texts = cookies.map { "\($0[2])\t\($0[5])\t\($0[6])" }.sorted()
            let digest = hasher.digest(of: texts.joined(separator: "\n"))
            return String(digest.leadingWords.0 >> 32, radix: 16)
        }
    }
}

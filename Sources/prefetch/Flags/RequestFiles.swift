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
        return ClientCertificate(
            file: file, keyFile: key,
            fingerprint: SHA256Hasher().digest(of: text + (ownText ?? "")).description)
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

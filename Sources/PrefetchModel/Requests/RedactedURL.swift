/// The display form of a URL: user information is masked, and bytes that could control a terminal
/// are percent-encoded.
///
/// Query parameters that grant access (`X-Amz-Signature`, `sig`, `token` and similar) are also
/// masked, since logs are read by others. Input may be no URL at all, so doubtful text is masked.
/// Masking works on bytes: a combining mark after a separator would hide it from a comparison of
/// characters.
///
/// Not masked: secrets in a path, and parameters of a percent-encoded URL inside a parameter.
package struct RedactedURL: CustomStringConvertible, Sendable {
    package let description: String

    package init(_ url: some StringProtocol) {
        self.init(String(url))
    }

    /// Redacts a whole line, which may contain no URL or several; keeps spaces.
    package init(line: String) {
        self.init(line, keepingSpaces: true)
    }

    // Not generic, since other modules would run unspecialised code for every line of a report.
    package init(_ url: String) {
        self.init(url, keepingSpaces: false)
    }

    private init(_ url: String, keepingSpaces: Bool) {
        var needsEncoding = false
        var mayHoldSecrets = false
        for byte in url.utf8 {
            needsEncoding = needsEncoding || byte <= 0x20 || byte == 0x22 || byte >= 0x7F
            mayHoldSecrets = mayHoldSecrets || byte == Byte.at || byte == Byte.equals
        }
        let text = needsEncoding ? RedactedURL.printable(url, keepingSpaces: keepingSpaces) : url
        guard mayHoldSecrets else {
            description = text
            return
        }
        var bytes = Array(text.utf8)
        RedactedURL.maskUserInformation(&bytes)
        RedactedURL.replaceSecretParameters(&bytes) { _ in RedactedURL.mask }
        description = String(decoding: bytes, as: UTF8.self)
    }

    /// Masks the secrets of all URLs in a text that is written for others; keeps everything else.
    package static func maskingSecrets(in text: String) -> String {
        guard text.contains("://"), RedactedURL.mayHoldSecrets(text) else { return text }
        var masked: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.first {
            // A URL ends at a blank, and in JSON and HTML at a quotation mark.
            var word = Array(rest.prefix { $0 > 0x20 && $0 != 0x22 })
            rest = rest.dropFirst(max(1, word.count))
            if word.isEmpty { word = [first] }
            if RedactedURL.nextAuthority(word, from: 0) != nil {
                RedactedURL.maskUserInformation(&word)
                RedactedURL.replaceSecretParameters(&word) { _ in RedactedURL.mask }
            }
            masked += word
        }
        return String(decoding: masked, as: UTF8.self)
    }

    /// Returns a URL with other values of the query parameters that grant access.
    package static func replacingSecrets(
        of url: String, by replacement: (ArraySlice<UInt8>) -> [UInt8]
    ) -> String {
        guard RedactedURL.mayHoldSecrets(url) else { return url }
        var bytes = Array(url.utf8)
        RedactedURL.replaceSecretParameters(&bytes, by: replacement)
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func mayHoldSecrets(_ text: String) -> Bool {
        text.utf8.contains { $0 == Byte.at || $0 == Byte.equals }
    }

    private enum Byte {
        static let number = UInt8(ascii: "#")
        static let ampersand = UInt8(ascii: "&")
        static let slash = UInt8(ascii: "/")
        static let colon = UInt8(ascii: ":")
        static let semicolon = UInt8(ascii: ";")
        static let equals = UInt8(ascii: "=")
        static let question = UInt8(ascii: "?")
        static let at = UInt8(ascii: "@")
        static let backslash = UInt8(ascii: "\\")
    }

    private static let mask = Array("***".utf8)

    /// Percent-encodes control characters, spaces, quotation marks and bidirectional controls.
    private static func printable(_ url: String, keepingSpaces: Bool) -> String {
        var text = ""
        for scalar in url.unicodeScalars {
            switch scalar.value {
            case 0x20 where keepingSpaces: text += " "
            case 0...0x20, 0x22, 0x7F...0x9F, 0x061C, 0x200B...0x200F, 0x2028...0x202E,
                0x2060...0x206F, 0xFEFF, 0xFFFD:
                for byte in String(scalar).utf8 {
                    text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
                }
            default:
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

// MARK: - User information

extension RedactedURL {
    /// Masks the text before the last `@` of every authority, also in URLs inside the path or
    /// query.
    private static func maskUserInformation(_ bytes: inout [UInt8]) {
        guard bytes.contains(Byte.at) else { return }
        var start = leadingAuthority(bytes)
        while let authority = start {
            var next = authority
            if let at = userInformationEnd(bytes, authority: authority) {
                bytes.replaceSubrange(authority..<at, with: mask)
                next = authority + mask.count
            }
            start = nextAuthority(bytes, from: next)
        }
    }

    /// The offset of the first authority: after a scheme and any number of slashes (libcurl accepts
    /// one to three), or after two leading slashes. Without slashes only text like
    /// `user:password@host` counts, since `name@2x.png` is a relative reference.
    private static func leadingAuthority(_ bytes: [UInt8]) -> Int? {
        let schemeEnd = bytes.firstIndex { !isSchemeByte($0) } ?? bytes.endIndex
        let hasScheme = schemeEnd > 0 && schemeEnd < bytes.count && bytes[schemeEnd] == Byte.colon
        let slashes = hasScheme ? schemeEnd + 1 : 0
        var index = slashes
        while index < bytes.count, isSlash(bytes[index]) { index += 1 }
        if index - slashes >= (hasScheme ? 1 : 2) { return index }
        let segment = bytes.prefix { !isSlash($0) && $0 != Byte.question && $0 != Byte.number }
        if let colon = segment.firstIndex(of: Byte.colon), segment[colon...].contains(Byte.at) {
            return 0
        }
        return nextAuthority(bytes, from: 0)
    }

    /// The offset after the next `://` and any further slashes.
    private static func nextAuthority(_ bytes: [UInt8], from start: Int) -> Int? {
        var index = start
        while index + 2 < bytes.count {
            if bytes[index] == Byte.colon, isSlash(bytes[index + 1]), isSlash(bytes[index + 2]) {
                index += 3
                while index < bytes.count, isSlash(bytes[index]) { index += 1 }
                return index
            }
            index += 1
        }
        return nil
    }

    /// The offset of the `@` that ends the user information; nil without one.
    private static func userInformationEnd(_ bytes: [UInt8], authority: Int) -> Int? {
        let rest = bytes[authority...]
        let end =
            rest.firstIndex { $0 == Byte.slash || $0 == Byte.question || $0 == Byte.number }
            ?? rest.endIndex
        if let at = bytes[authority..<end].lastIndex(of: Byte.at) { return at }
        // `user:pa/ss@host`: the text after the colon is not a port. It may be a password that was
        // not percent-encoded. An IPv6 address has its own colons.
        let address = rest.first == UInt8(ascii: "[") ? rest.firstIndex(of: UInt8(ascii: "]")) : nil
        guard
            let colon = bytes[(address ?? authority)..<max(end, address ?? end)].firstIndex(
                of: Byte.colon),
            !bytes[(colon + 1)..<end].allSatisfy(\.isDecimalDigit)
        else { return nil }
        return rest.lastIndex(of: Byte.at)
    }

    private static func isSlash(_ byte: UInt8) -> Bool {
        byte == Byte.slash || byte == Byte.backslash
    }

    private static func isSchemeByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDecimalDigit || "+-.".utf8.contains(byte)
    }
}

// MARK: - Query parameters

extension RedactedURL {
    /// Complete parameter names that grant access, in lower case: AWS, Azure, CloudFront and Akamai
    /// signed URLs, and common names.
    private static let secretNames: Set<String> = [
        "api_key", "apikey", "auth", "authorization", "awsaccesskeyid", "hdnea", "hdnts", "jwt",
        "key-pair-id", "pass", "policy", "pwd", "session", "sessionid", "sid", "sig",
    ]

    /// Parts of parameter names that grant access: `access_token`, `X-Amz-Signature`,
    /// `X-Goog-Credential`.
    private static let secretParts = [
        "credential", "hmac", "password", "passwd", "secret", "signature", "token",
    ].map { Array($0.utf8) }

    /// A name begins after any of `?`, `&`, `;` and `#`, since servers differ in their separators;
    /// a masked value ends only at `&` or `#`.
    private static func replaceSecretParameters(
        _ bytes: inout [UInt8], by replacement: (ArraySlice<UInt8>) -> [UInt8]
    ) {
        let isSeparator: (UInt8) -> Bool = {
            $0 == Byte.question || $0 == Byte.ampersand || $0 == Byte.semicolon
                || $0 == Byte.number
        }
        guard var index = bytes.firstIndex(where: isSeparator) else { return }
        while index < bytes.count {
            guard isSeparator(bytes[index]) else {
                index += 1
                continue
            }
            let name = index + 1
            index = name
            while index < bytes.count, bytes[index] != Byte.equals, !isSeparator(bytes[index]) {
                index += 1
            }
            guard index < bytes.count, bytes[index] == Byte.equals,
                isSecret(name: bytes[name..<index])
            else { continue }
            let value = index + 1
            let end =
                bytes[value...].firstIndex { $0 == Byte.ampersand || $0 == Byte.number }
                ?? bytes.endIndex
            let replaced = replacement(bytes[value..<end])
            bytes.replaceSubrange(value..<end, with: replaced)
            index = value + replaced.count
        }
    }

    private static func isSecret(name: ArraySlice<UInt8>) -> Bool {
        var plain: [UInt8] = []
        plain.reserveCapacity(name.count)
        var index = name.startIndex
        while index < name.endIndex {
            var byte = name[index]
            if byte == UInt8(ascii: "%"), index + 2 < name.endIndex,
                let value = UInt8(
                    String(decoding: name[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
            {
                byte = value
                index += 2
            }
            plain.append(byte.lowercased)
            index += 1
        }
        if secretNames.contains(String(decoding: plain, as: UTF8.self)) { return true }
        return secretParts.contains { part in
            plain.indices.contains { plain[$0...].starts(with: part) }
        }
    }
}

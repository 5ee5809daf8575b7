/// The display form of a URL: user information is masked, and bytes that could control a terminal
/// are percent-encoded.
///
/// Parameters that grant access (`X-Amz-Signature`, `sig`, `token` and similar) are also masked,
/// since logs are read by others, also in percent-encoded URLs inside a path or a parameter. Input
/// may be no URL at all, so doubtful text is masked. Masking works on bytes: a combining mark after
/// a separator would hide it from a comparison of characters.
///
/// Not masked: secrets in a path, other than parameters behind `;`.
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
            mayHoldSecrets = mayHoldSecrets || RedactedURL.mayBeginSecret(byte)
        }
        let text = needsEncoding ? RedactedURL.printable(url, keepingSpaces: keepingSpaces) : url
        guard mayHoldSecrets else {
            description = text
            return
        }
        let bytes = Array(text.utf8)
        let secrets = RedactedURL.secrets(in: bytes, userInformation: true)
        description =
            secrets.isEmpty
            ? text
            : String(
                decoding: RedactedURL.replace(secrets, in: bytes) { _ in RedactedURL.mask },
                as: UTF8.self)
    }

    /// Masks the secrets of all URLs in a text that is written for others; keeps everything else.
    /// A JSON text stays one.
    package static func maskingSecrets(in text: String) -> String {
        guard text.utf8.contains(where: mayBeginSecret) else { return text }
        var masked: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.first {
            let end = rest.indices.first { endsWord(rest[$0...]) } ?? rest.endIndex
            let word = rest[..<end]
            rest = rest[end...]
            // In JSON, the quotation mark behind it is escaped.
            let escapes = word.reversed().prefix { $0 == Byte.backslash }.count
            masked += maskedWord(Array(word.dropLast(escapes))) + word.suffix(escapes)
            if word.isEmpty {
                masked.append(first)
                rest = rest.dropFirst()
            }
        }
        return String(decoding: masked, as: UTF8.self)
    }

    /// Whether a URL in a text, in HTML or in a list of URLs ends before these bytes.
    private static func endsWord(_ rest: ArraySlice<UInt8>) -> Bool {
        guard let byte = rest.first else { return true }
        return byte <= 0x20 || "\"'<>|".utf8.contains(byte)
            || byte == UInt8(ascii: ",") && rest.dropFirst().starts(with: "http".utf8)
    }

    private static func maskedWord(_ word: [UInt8]) -> [UInt8] {
        guard word.contains(where: mayBeginSecret) else { return word }
        let isURL =
            nextAuthority(word, from: 0) != nil
            || nestedTexts(of: word).contains { nextAuthority($0.bytes, from: 0) != nil }
        // A URL without a scheme has a query, too.
        return replace(secrets(in: word, userInformation: isURL), in: word) { _ in mask }
    }

    /// Returns a URL with other values of the query parameters that grant access.
    package static func replacingSecrets(
        of url: String, by replacement: (ArraySlice<UInt8>) -> [UInt8]
    ) -> String {
        let bytes = Array(url.utf8)
        let secrets = secrets(in: bytes, userInformation: false)
        guard !secrets.isEmpty else { return url }
        return String(decoding: replace(secrets, in: bytes, by: replacement), as: UTF8.self)
    }

    /// Whether a secret may follow a byte, or its percent-encoding.
    static func mayBeginSecret(_ byte: UInt8) -> Bool {
        byte == Byte.at || byte == Byte.equals || byte == Byte.percent
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
        static let percent = UInt8(ascii: "%")
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

// MARK: - Nested URLs

extension RedactedURL {
    /// The decoded form of a text.
    private struct NestedText {
        var bytes: [UInt8]
        /// The offset of each byte in the text itself, and the text's length.
        var offsets: [Int]
    }

    /// The percent-decoded forms of a text, while they differ. URLs are rarely nested more than
    /// twice; many forms would be slow.
    private static func nestedTexts(of bytes: [UInt8]) -> [NestedText] {
        guard bytes.contains(Byte.percent) else { return [] }
        var texts: [NestedText] = []
        var text = NestedText(bytes: bytes, offsets: Array(0...bytes.count))
        while texts.count < 4, let next = decoded(text) {
            texts.append(next)
            text = next
        }
        return texts
    }

    /// The text with one level of percent-encoding removed; nil if it has none.
    private static func decoded(_ text: NestedText) -> NestedText? {
        var result = NestedText(bytes: [], offsets: [])
        var index = 0
        while index < text.bytes.count {
            let value = encodedByte(text.bytes[index...])
            result.bytes.append(value ?? text.bytes[index])
            result.offsets.append(text.offsets[index])
            index += value == nil ? 1 : 3
        }
        result.offsets.append(text.offsets[index])
        return result.bytes.count < text.bytes.count ? result : nil
    }

    /// The byte that the first three bytes encode; nil without `%` and two digits.
    private static func encodedByte(_ bytes: ArraySlice<UInt8>) -> UInt8? {
        guard bytes.count >= 3, bytes.first == Byte.percent,
            let high = bytes[bytes.startIndex + 1].hexadecimalValue,
            let low = bytes[bytes.startIndex + 2].hexadecimalValue
        else { return nil }
        return high << 4 | low
    }

    /// The ranges of secrets, in order and apart from one another.
    private static func secrets(in bytes: [UInt8], userInformation: Bool) -> [Range<Int>] {
        func ranges(_ bytes: [UInt8]) -> [Range<Int>] {
            secretParameters(bytes) + (userInformation ? RedactedURL.userInformation(bytes) : [])
        }
        var found = ranges(bytes)
        for text in nestedTexts(of: bytes) {
            found += ranges(text.bytes).map {
                text.offsets[$0.lowerBound]..<text.offsets[$0.upperBound]
            }
        }
        guard found.count > 1 else { return found }
        found.sort { $0.lowerBound < $1.lowerBound }
        var merged = [found[0]]
        for range in found.dropFirst() {
            let last = merged[merged.count - 1]
            if range.lowerBound < last.upperBound || range.lowerBound == last.lowerBound {
                merged[merged.count - 1] =
                    last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        return merged
    }

    private static func replace(
        _ ranges: [Range<Int>], in bytes: [UInt8], by replacement: (ArraySlice<UInt8>) -> [UInt8]
    ) -> [UInt8] {
        var result: [UInt8] = []
        var start = 0
        for range in ranges {
            result += bytes[start..<range.lowerBound]
            result += replacement(bytes[range])
            start = range.upperBound
        }
        return result + bytes[start...]
    }
}

// MARK: - User information

extension RedactedURL {
    /// The text before the last `@` of every authority, also in URLs inside the path or query.
    private static func userInformation(_ bytes: [UInt8]) -> [Range<Int>] {
        guard bytes.contains(Byte.at) else { return [] }
        var found: [Range<Int>] = []
        var start = leadingAuthority(bytes)
        while let authority = start {
            let end = userInformationEnd(bytes, authority: authority)
            if let end { found.append(authority..<end) }
            start = nextAuthority(bytes, from: end ?? authority)
        }
        return found
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

// MARK: - Parameters

extension RedactedURL {
    /// Complete parameter names that grant access, in lower case: of signed URLs by AWS, Azure,
    /// CloudFront, Akamai and Google, and common names.
    private static let secretNames: Set<String> = [
        "__gda__", "api_key", "apikey", "auth", "auth_key", "authorization", "awsaccesskeyid",
        "hdnea", "hdnts", "jsessionid", "jwt", "key-pair-id", "pass", "phpsessid", "policy", "pwd",
        "sess", "session", "sessionid", "sid", "sig", "ticket",
    ]

    /// Names that also have harmless values: Google's `key`, imgix's `s`, nginx's `md5` and `st`,
    /// Cloudflare's `verify`, the `hm` and `oh` of chats. Values like signatures are secrets.
    private static let doubtfulNames: Set<String> = [
        "code", "hm", "key", "md5", "oh", "s", "sign", "st", "verify",
    ]

    /// Parts of parameter names that grant access: `access_token`, `X-Amz-Signature`,
    /// `X-Goog-Credential`.
    private static let secretParts = [
        "credential", "hmac", "password", "passwd", "secret", "signature", "token",
    ].map { Array($0.utf8) }

    /// The values of parameters that grant access.
    ///
    /// A name begins after any of `?`, `&`, `;` and `#`, since servers differ in their separators;
    /// a value ends only at `&` or `#`, and a path's parameter at `/` or `?`, too.
    private static func secretParameters(_ bytes: [UInt8]) -> [Range<Int>] {
        let isSeparator: (UInt8) -> Bool = {
            $0 == Byte.question || $0 == Byte.ampersand || $0 == Byte.semicolon
                || $0 == Byte.number
        }
        var found: [Range<Int>] = []
        guard var index = bytes.firstIndex(where: isSeparator) else { return found }
        var isInPath = true
        while index < bytes.count {
            guard isSeparator(bytes[index]) else {
                index += 1
                continue
            }
            isInPath = isInPath && bytes[index] == Byte.semicolon
            let name = index + 1
            index = name
            while index < bytes.count, bytes[index] != Byte.equals, !isSeparator(bytes[index]) {
                index += 1
            }
            guard index < bytes.count, bytes[index] == Byte.equals,
                let kind = kind(ofName: bytes[name..<index])
            else { continue }
            let value = index + 1
            let end =
                bytes[value...].firstIndex {
                    $0 == Byte.ampersand || $0 == Byte.number
                        || isInPath && ($0 == Byte.slash || $0 == Byte.question)
                        || kind == .doubtful && $0 == Byte.semicolon
                } ?? bytes.endIndex
            index = end
            if kind == .secret || isLikeSignature(bytes[value..<end]) { found.append(value..<end) }
        }
        return found
    }

    private enum NameKind {
        case secret, doubtful
    }

    /// Nil for a harmless name.
    private static func kind(ofName name: ArraySlice<UInt8>) -> NameKind? {
        let name = name.map(\.lowercased)
        let text = String(decoding: name, as: UTF8.self)
        if secretNames.contains(text) { return .secret }
        if doubtfulNames.contains(text) { return .doubtful }
        let hasPart = secretParts.contains { part in
            name.indices.contains { name[$0...].starts(with: part) }
        }
        return hasPart ? .secret : nil
    }

    /// Whether a value has a hash in base 16 or 64: a long run of letters and digits. Words and
    /// numbers in it change less often between capitals, small letters and digits.
    private static func isLikeSignature(_ value: ArraySlice<UInt8>) -> Bool {
        guard !value.contains(UInt8(ascii: ".")) else { return false }
        return value.split { !$0.isLetter && !$0.isDecimalDigit }.contains { run in
            guard run.contains(where: \.isDecimalDigit), run.contains(where: \.isLetter) else {
                return false
            }
            if run.count >= 16, run.allSatisfy({ $0.hexadecimalValue != nil }) {
                return true
            }
            func kind(_ byte: UInt8) -> Int {
                byte.isDecimalDigit ? 0 : byte == byte.lowercased ? 1 : 2
            }
            let changes = zip(run, run.dropFirst()).count { kind($0) != kind($1) }
            return run.count >= 12 && Set(run.map(kind)).count == 3
                && 5 * changes >= 2 * (run.count - 1)
        }
    }
}

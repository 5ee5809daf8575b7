internal import CCurl
import PrefetchModel

extension TransferConfiguration {
    /// The header lines of a request to this host that libcurl does not write itself, in libcurl's
    /// notation.
    /// `Name:` without a value leaves the field out.
    func fieldLines(
        isForeign: Bool, _ userFields: [HeaderField] = [], conditions: [HeaderField] = []
    ) -> [String] {
        let given = self.fields(userFields)
        let fields = [HeaderField(name: "Accept", value: requests.accept ?? accept)]
            .replaced(by: isForeign ? given.following : given)
        return (fields + conditions).map {
            $0.value.isEmpty ? "\($0.name):" : "\($0.name): \($0.value)"
        }
    }

    /// The texts that must not appear in a message about a request.
    func secrets(of request: TransferRequest) -> [String] {
        let proxies = [requests.proxies.http, requests.proxies.https].compactMap(\.self)
        return (requests.fields + request.userFields).filter(\.mayBeSecret).map(\.value)
            + [requests.credentials?.password].compactMap(\.self)
            + [request.url.credentials].compactMap(\.self).flatMap(TransferConfiguration.passwords)
            + proxies.flatMap { proxy in
                TransferConfiguration.credentials(inProxy: proxy)
                    .map(TransferConfiguration.passwords) ?? []
            }
    }

    /// The texts that a server may repeat from a request, long ones first: values of the user's
    /// fields and their parts, credentials, and the secret parameters of the URL.
    func secretWords(of request: TransferRequest) -> [String] {
        var words = secrets(of: request)
        for field in requests.fields + request.userFields where field.mayBeSecret {
            words += field.value.split { " ,;=\"".contains($0) }.map(String.init)
                .filter { $0.utf8.count >= TransferConfiguration.shortestSecretPart }
        }
        let pairs = [
            requests.credentials.map { "\($0.user):\($0.password)" },
            request.url.credentials.map { String(decoding: $0.percentDecoded, as: UTF8.self) },
        ].compactMap(\.self)
        words += pairs.map { String(decoding: Array($0.utf8).base64, as: UTF8.self) }
        _ = RedactedURL.replacingSecrets(of: request.url.text) { value in
            let text = String(decoding: value, as: UTF8.self)
            words += [text, String(decoding: text.percentDecoded, as: UTF8.self)]
            return Array(value)
        }
        return words.filter { !$0.isEmpty }.sorted { $0.utf8.count > $1.utf8.count }
    }

    /// Shorter words of a field are ordinary ones.
    private static let shortestSecretPart = 8

    /// `NAME:PASSWORD` of a proxy. A password may contain a slash that should have been escaped.
    private static func credentials(inProxy text: String) -> Substring? {
        let start = text.firstRange(of: "://")?.upperBound ?? text.startIndex
        let authority = text[start...].prefix { $0 != "/" }
        let end = authority.lastIndex(of: "@") ?? text[start...].lastIndex(of: "@")
        return end.map { text[start..<$0] }
    }

    /// The password of `NAME:PASSWORD`, percent-encoded and decoded.
    private static func passwords(in credentials: Substring) -> [String] {
        guard let colon = credentials.firstIndex(of: ":") else { return [] }
        let password = credentials[credentials.index(after: colon)...]
        return [String(password), String(decoding: password.percentDecoded, as: UTF8.self)]
    }
}

/// A list of strings for libcurl, which keeps a reference to it.
final class FieldList {
    /// Nil for an empty list.
    let pointer: UnsafeMutablePointer<curl_slist>?

    init(_ lines: [String]) {
        pointer = lines.reduce(nil) { list, line in
            guard let longer = ccurl_slist_append(list, line) else {
                // A request must never lack a condition, or half of its fields.
                preconditionFailure("no memory for a request's fields")
            }
            return longer
        }
    }

    deinit {
        ccurl_slist_free_all(pointer)
    }
}

extension HeaderField {
    /// Whether the value may grant access; others are ordinary words, also in answers.
    fileprivate var mayBeSecret: Bool {
        let name = name.lowercased()
        return !["accept", "cache-control", "sec-"].contains(where: name.hasPrefix)
            && !["dnt", "origin", "pragma", "referer", "user-agent"].contains(name)
    }
}

package import PrefetchModel

/// The head of a stored list: its response and the times of its use. In the file it is one line
/// `NAME: VALUE` per property, after a first line with the version. An unknown name is ignored.
/// Without ``url``, ``responseURL``, the times and the size it is damaged.
package struct StoredList: Hashable, Sendable {
    /// The URL that names the list, without credentials.
    package let url: String
    /// The URL of the response, after redirects; without credentials.
    package let responseURL: String
    package var response: StoredResponse
    /// The time when the origin last sent or confirmed it.
    package var validatedAt: Timestamp
    /// ``validatedAt`` plus the origin's lifetime for it.
    package var expiresAt: Timestamp
    /// Whether the response arrived from a public address, or through a proxy.
    package var isPublic: Bool
    /// The first of the fetches in a row that gave a list with far fewer entries.
    package var shrunkSince: Timestamp?

    package init(
        url: String, responseURL: String, response: StoredResponse, validatedAt: Timestamp,
        expiresAt: Timestamp, isPublic: Bool
    ) {
        self.url = url
        self.responseURL = responseURL
        self.response = response
        self.validatedAt = validatedAt
        self.expiresAt = expiresAt
        self.isPublic = isPublic
    }

    private static let firstLine = "prefetch list 1"
    /// The end of the head: an empty line.
    static let end = Array("\n\n".utf8)

    private typealias Path = WritableKeyPath<StoredResponse, String?>

    private static var texts: [(name: String, value: Path)] {
        [
            ("etag", \.entityTag), ("last-modified", \.lastModified),
            ("cache-control", \.cacheControl), ("expires-field", \.expires),
            ("content-type", \.contentType),
        ]
    }

    func text(size: Int) -> String {
        var lines = [
            StoredList.firstLine, "url: \(url)", "response-url: \(responseURL)",
            "validated: \(validatedAt.milliseconds)", "expires: \(expiresAt.milliseconds)",
            "size: \(size)", "public: \(isPublic ? 1 : 0)",
        ]
        for (name, path) in StoredList.texts {
            // A value with a line feed, which no field has, would end its line.
            if let value = response[keyPath: path], !value.utf8.contains(0x0A) {
                lines.append("\(name): \(value)")
            }
        }
        if let shrunkSince { lines.append("shrunk-since: \(shrunkSince.milliseconds)") }
        if let date = response.date { lines.append("date: \(date.milliseconds)") }
        if let vary = response.vary {
            lines += vary.split(separator: "\n", omittingEmptySubsequences: false).map {
                "vary: \($0)"
            }
        }
        return lines.joined(separator: "\n")
    }

    static func parse(_ text: String) -> (list: StoredList, size: Int)? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.first == firstLine[...] else { return nil }
        var values: [Substring: [String]] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstRange(of: ": ") else { return nil }
            values[line[..<colon.lowerBound], default: []].append(String(line[colon.upperBound...]))
        }
        func time(_ name: Substring) -> Timestamp? {
            values[name]?.first.flatMap { Int64($0) }.map(Timestamp.init(milliseconds:))
        }
        guard let url = values["url"]?.first, let responseURL = values["response-url"]?.first,
            let validatedAt = time("validated"), let expiresAt = time("expires"),
            let size = values["size"]?.first.flatMap({ Int($0) })
        else { return nil }
        var response = StoredResponse()
        for (name, path) in texts { response[keyPath: path] = values[name[...]]?.first }
        response.date = time("date")
        response.vary = values["vary"]?.joined(separator: "\n")
        var list = StoredList(
            url: url, responseURL: responseURL, response: response, validatedAt: validatedAt,
            expiresAt: expiresAt, isPublic: values["public"]?.first != "0")
        list.shrunkSince = time("shrunk-since")
        return (list, size)
    }
}

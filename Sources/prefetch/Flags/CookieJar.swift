import FileOutput
import Glibc
import Hashing
import PrefetchModel

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

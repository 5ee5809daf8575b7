import PrefetchModel

/// Names that a web server obeys, hides or runs, in place of sending the file.
///
/// - A file or folder that begins with a dot: `.htaccess`, `.user.ini`, `.git`.
/// - A file that ends like a script, `a.php` or `a.cgi`, or is `web.config`.
/// - A file with an extension of PHP or server-side includes anywhere, `a.php.jpg`: Apache's
///   `AddHandler` and `AddOutputFilter` apply to any of a name's extensions.
///
/// A folder's extension has no effect, and many hosts end in `.pl`.
enum ServedName {
    /// The extensions of scripts, without PHP.
    private static let scripts: Set<String> = [
        "asa", "ashx", "asmx", "asp", "aspx", "cfm", "cgi", "fcgi", "jsp", "jspx", "pl", "py", "rb",
        "shtm", "shtml",
    ]
    /// The scripts with an extension that counts anywhere in a name.
    private static let included: Set<String> = ["shtm", "shtml"]
    private static let settings = "web.config"

    /// The parts of a name that a pattern fixes, whatever the image.
    struct Literals {
        /// Whether its beginning is one of them.
        var areFirst = false
        var texts: [String] = []
    }

    /// Checks a path that was made of a URL.
    ///
    /// - Throws: ``NamingProblem``.
    static func check(_ path: String) throws(NamingProblem) {
        let names = path.split(separator: "/").map(String.init)
        try check(names, names.map { _ in Literals() })
    }

    /// Checks names with their literals, the user's choice. Empty names count as missing.
    ///
    /// - Throws: ``NamingProblem``.
    static func check(_ names: [String], _ literals: [Literals]) throws(NamingProblem) {
        let last = names.lastIndex { !$0.isEmpty }
        for (index, name) in names.enumerated() {
            let isHidden = name.utf8.first == UInt8(ascii: ".") && !literals[index].areFirst
            guard isHidden || index == last && isRun(name, literals[index].texts) else { continue }
            throw NamingProblem(
                message: "a web server could obey or run \(RedactedURL(name))", isUnsafe: true)
        }
    }

    private static func isRun(_ name: String, _ literals: [String]) -> Bool {
        // Most names have one dot and an image's extension.
        let name = name.lowercased()
        let fixed = literals.map { $0.lowercased() }
        if name == settings { return !fixed.contains(settings) }
        let endings = extensions(name).filter { !$0.isEmpty }
        let chosen = Set(fixed.flatMap(extensions))
        return endings.enumerated().contains { index, ending in
            let isLast = index == endings.count - 1
            return (isPHP(ending) || (isLast ? scripts : included).contains(ending))
                && !chosen.contains(ending)
        }
    }

    private static func extensions(_ name: String) -> [String] {
        name.split(separator: ".", omittingEmptySubsequences: false).dropFirst().map {
            String($0.filter { $0 != " " })
        }
    }

    /// `php`, `php5`, `phps`, `pht`, `phtml`, `phar` and so on.
    private static func isPHP(_ ending: String) -> Bool {
        let isWord = ending.utf8.allSatisfy { $0.isLetter || $0.isDecimalDigit }
        return ending.hasPrefix("php") && isWord
            || ["phar", "pht", "phtm", "phtml"].contains(ending)
    }
}

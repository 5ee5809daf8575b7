import Glibc
import Manifests
import PrefetchModel
import URLParsing

// The names of lists, and hints about wrong ones.

extension ManifestSequence {
    /// Whether the argument has the form of a URL, with any scheme, and so isn't a file.
    static func isURL(_ argument: String) -> Bool {
        guard let separator = argument.firstRange(of: "://"),
            separator.lowerBound > argument.startIndex
        else { return false }
        return argument[..<separator.lowerBound].utf8.allSatisfy {
            $0.isLetter || $0.isDecimalDigit || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-")
                || $0 == UInt8(ascii: ".")
        }
    }

    /// - Throws: `UserError` with status 64 unless the text is an `http` or `https` URL.
    static func url(of text: String, hint: String? = nil) throws -> RequestURL {
        do {
            return try URLParser().parse(text.utf8)
        } catch {
            guard case .invalid(let failure) = error else { throw error }
            throw UserError(.usage, "\(RedactedURL(text))", failure.message, hint: hint)
        }
    }

    /// Whether the argument looks like a URL without scheme: `example.com/a.jpg`.
    private static func lacksScheme(_ argument: String) -> Bool {
        guard let slash = argument.firstIndex(of: "/") else { return false }
        let host = argument[..<slash]
        return host.contains(".") && !host.hasPrefix(".") && !host.hasSuffix(".")
    }

    static func hint(
        for error: ManifestError, _ configured: ConfiguredLists = ConfiguredLists()
    ) -> String? {
        if let hint = error.hint { return hint }
        if error.code == EMFILE { return "raise the limit of open files: ulimit -n 4096" }
        if error.code == ENOENT, error.operation == .open {
            if configured.has(error.path) { return "did you mean @\(error.path)?" }
            if let name = CommandArguments.subcommand(like: error.path, of: Prefetch.subcommands) {
                return "did you mean `prefetch \(name)`?"
            }
            if lacksScheme(error.path) { return "did you mean https://\(error.path)?" }
            return "name a list of URLs: a file, - for standard input, @NAME for one of a "
                + "configuration file, or --list URL"
        }
        if error.operation == .recognise {
            return "--format text reads it line by line anyway"
        }
        return error.code == EISDIR
            ? "name a file in it, or pass its list on standard input with -" : nil
    }
}

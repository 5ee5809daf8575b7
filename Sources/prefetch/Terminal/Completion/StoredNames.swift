import ArgumentParser
import CacheStorage

/// Names in the cache, which a shell offers as values of a flag.
///
/// The shell runs the program while the user types: it opens the cache that the words on the
/// command line select, creates none, and offers nothing when anything fails.
extension CompletionKind {
    /// The hosts of images, failures and remembered paces.
    static let storedHosts = custom { words, _, _ in
        names(on: words) { catalog in
            Set(
                try catalog.origins().map { $0.split(separator: "://").last.map(String.init) ?? $0 }
            )
        }
    }

    static let storedVariants = custom { words, _, _ in
        names(on: words) { catalog in Set(try catalog.variantNames().map(\.name)) }
    }

    private static func names(
        on words: [String], in read: (CacheCatalog) throws -> Set<String>
    ) -> [String] {
        do {
            var configured = ConfiguredCommand(
                [StatsCommand.configuration.commandName ?? ""] + cacheFlags(in: words))
            try configured.configure()
            let options = try CacheOptions.parse(Array(configured.arguments.dropFirst()))
            return try read(options.catalog()).filter(isPlain).sorted().map(written)
        } catch {
            return []
        }
    }

    /// Whether a name means itself in every shell. bash expands the words that it chooses from.
    private static func isPlain(_ name: String) -> Bool {
        name.utf8.allSatisfy { byte in
            switch UInt8(byte) {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-._:[]~".utf8.contains(byte)
            }
        }
    }

    /// In zsh a description follows a colon.
    private static func written(_ name: String) -> String {
        CompletionShell.requesting == .zsh ? name.replacing(":", with: "\\:") : name
    }

    /// The flags on the command line that choose the cache. bash makes three words of
    /// `--cache-dir=DIR`, and quotation marks are part of a word.
    private static func cacheFlags(in words: [String]) -> [String] {
        let words = words.dropFirst().filter { $0 != "=" }.map { word in
            word.filter { !"\"'\\".contains($0) }
        }
        let rows = CommandArguments.commonRows
        let given = GivenFlags(words, of: rows)
        return rows.filter(given.contains).map { row in
            given.value(of: row).map { "--\(row.name)=\(inHome($0))" } ?? "--\(row.name)"
        }
    }

    /// A path as the shell would expand it.
    private static func inHome(_ path: String) -> String {
        guard path.hasPrefix("~/"), let home = environment("HOME") else { return path }
        return home + path.dropFirst()
    }
}

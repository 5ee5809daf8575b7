import Glibc
import Manifests
import PrefetchModel

/// Several manifests, read in order, followed by the URLs among the arguments.
///
/// All are opened before the first is read, so that a wrong name fails at once and not after hours.
struct ManifestSequence: EntryReading {
    private var readers: [(name: String, reader: ManifestReader)]
    /// Receives, at the end of each manifest, the unusual forms of its lines and their remedies.
    var noting: (@Sendable (_ text: String, _ remedy: String) -> Void)?
    /// Receives the format of each manifest with its first entries.
    var findingFormat: (@Sendable (_ name: String, _ format: String) -> Void)?
    /// Receives the name of each manifest without an entry, at its end.
    var findingEmpty: (@Sendable (_ name: String) -> Void)?
    /// Whether the first reader has given an entry.
    private var hasEntries = false

    /// Whether every manifest is a regular file, which has an end.
    let isRegularFiles: Bool
    let sizeInBytes: Int?

    /// The names of the manifests, for messages and the run log. URLs are not among them, since
    /// they may hold secrets.
    let names: [String]

    /// The name of the list of URLs among the arguments.
    private static let nameOfURLs = "arguments"

    /// Takes paths, `-` for standard input, URLs, and lists of configuration files like `@shop`.
    init(arguments: [String], options: ManifestOptions) throws {
        if arguments.filter({ $0 == "-" }).count > 1 {
            throw CommandFailure(
                exitStatus: 64, message: "standard input can be read only once")
        }
        let urls = arguments.filter(ManifestSequence.isURL)
        let files = try arguments.filter { !ManifestSequence.isURL($0) }.flatMap { argument in
            ConfiguredLists.isName(argument)
                ? try ConfiguredLists.files(of: argument, options: options)
                : [(name: argument, options: options)]
        }
        names = files.map(\.name) + (urls.isEmpty ? [] : [ManifestSequence.nameOfURLs])
        do {
            readers = try files.map {
                ($0.name, try ManifestReader(path: $0.name, options: $0.options))
            }
            if !urls.isEmpty {
                let name = ManifestSequence.nameOfURLs
                readers.append(
                    (name, try ManifestReader(lines: urls, name: name, options: options)))
            }
        } catch let error as ManifestError {
            throw CommandFailure.unusable(
                error.description, hint: ManifestSequence.hint(for: error))
        }
        isRegularFiles = readers.allSatisfy(\.reader.isRegularFile)
        sizeInBytes = readers.compactMap(\.reader.sizeInBytes).reduce(0, +)
    }

    /// Whether the argument has the form of a URL, with any scheme, and so isn't a file.
    static func isURL(_ argument: String) -> Bool {
        guard let separator = argument.firstRange(of: "://"),
            separator.lowerBound > argument.startIndex
        else { return false }
        return argument[..<separator.lowerBound].utf8.allSatisfy {
            (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0)
                || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
        }
    }

    /// Whether the argument looks like a URL without scheme: `example.com/a.jpg`.
    private static func lacksScheme(_ argument: String) -> Bool {
        guard let slash = argument.firstIndex(of: "/") else { return false }
        let host = argument[..<slash]
        return host.contains(".") && !host.hasPrefix(".") && !host.hasSuffix(".")
    }

    static func hint(for error: ManifestError) -> String? {
        if let hint = error.hint { return hint }
        if error.code == ENOENT, error.operation == .open {
            if let name = CommandArguments.subcommand(like: error.path, of: Prefetch.subcommands) {
                return "did you mean `prefetch \(name)`?"
            }
            if lacksScheme(error.path) { return "did you mean https://\(error.path)?" }
            return "name a text file with one URL per line, or - for standard input"
        }
        if error.operation == .recognise {
            return "--format text reads it line by line anyway"
        }
        return error.code == EISDIR
            ? "name a file in it, or pass its list on standard input with -" : nil
    }

    mutating func nextBatch() throws -> EntryBatch? {
        while !readers.isEmpty {
            let name = readers[0].name
            let shown = name == "-" ? "standard input" : name
            if let batch = try readers[0].reader.nextBatch() {
                if !hasEntries, let format = readers[0].reader.format {
                    findingFormat?(shown, format.rawValue)
                }
                hasEntries = true
                return batch
            }
            let reader = readers.removeFirst().reader
            if !hasEntries { findingEmpty?(shown) }
            hasEntries = false
            for note in reader.notes { noting?("\(shown): \(note.text)", note.remedy) }
        }
        return nil
    }

    /// Like ``nextBatch()``, for commands other than `run`.
    ///
    /// - Throws: ``CommandFailure`` with status 2 if the list can't be read.
    mutating func nextBatchOfCommand() throws -> EntryBatch? {
        do {
            return try nextBatch()
        } catch let error as ManifestError {
            throw CommandFailure.unusable(
                error.description, hint: ManifestSequence.hint(for: error))
        }
    }
}

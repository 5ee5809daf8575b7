import ArgumentParser
import CacheStorage
import Exporting
import FileOutput
import PrefetchModel
import Reporting

extension ExportLayout: ExpressibleByArgument {}
extension ImageFolderMetadata: ExpressibleByArgument {}

/// Flags of `export` about the names of files.
struct ExportOptions: ParsableArguments {
    @Option(help: .value("layout", "The arrangement of the files."))
    var layout: ExportLayout?

    @Option(
        help: .value("name", "A variant to export; repeatable (default: main)."),
        completion: .storedVariants)
    var variant: [String] = []

    @Option(
        name: .customLong("name"),
        help: .value(
            "pattern",
            """
            The pattern of file names, like '{host}/{stem}-{variant}-{width}w.{ext}'; implies \
            --layout pattern.
            """))
    var pattern: String?

    @Option(
        help: .value(
            "variant=text",
            """
            The transformer's identifier by which the app-side loader requests a variant; \
            repeatable.
            """))
    var identifier: [String] = []

    @Flag(
        name: .customLong("case-insensitive"),
        help: "Make names that Windows and macOS take, and tell apart.")
    var isCaseInsensitive = false

    @Option(help: .value("n", "Samples per shard of webdataset (default: 10000)."))
    var shardSize: Int?

    @Option(
        help: .value(
            "name",
            """
            The attribute or column with the captions of webdataset, --map-json and --snippet \
            (default: caption).
            """))
    var caption: String?

    @Option(
        help: .value(
            "name", "The attribute or column with the labels of imagefolder (default: class)."))
    var label: String?

    @Option(help: .value("format", "The metadata of imagefolder (default: jsonl)."))
    var metadata: ImageFolderMetadata?

    private static let largestShard = 1_000_000

    /// Whether no flag is given.
    var isEmpty: Bool {
        layout == nil && variant.isEmpty && pattern == nil && identifier.isEmpty
            && !isCaseInsensitive && shardSize == nil && caption == nil && label == nil
            && metadata == nil
    }

    func validate() throws {
        guard (1...ExportOptions.largestShard).contains(shardSize ?? 1) else {
            throw ValidationError("--shard-size must be from 1 to \(ExportOptions.largestShard)")
        }
    }

    /// Nil if it is missing.
    var givenLayout: ExportLayout? { layout ?? (pattern == nil ? nil : .pattern) }

    var rules: ExportRules {
        get throws {
            guard let layout = givenLayout else {
                let names = ExportLayout.allCases.map(\.rawValue)
                throw UserError(
                    .usage, "--layout is missing",
                    hint: "--layout is \(names.listed(with: "or"))")
            }
            guard (pattern != nil) == (layout == .pattern) else {
                throw ValidationError(
                    layout == .pattern
                        ? "--layout pattern needs --name PATTERN"
                        : "--name needs --layout pattern")
            }
            guard variant.count < 2 || layout.takesVariants else {
                throw ValidationError(
                    "--layout \(layout.rawValue) takes one --variant; --name names several")
            }
            var rules = ExportRules(layout: layout)
            if let pattern {
                rules.pattern = try validated("--name '\(pattern)': ") { try NamePattern(pattern) }
            }
            rules.isCaseInsensitive = isCaseInsensitive
            try check(layout)
            rules.shardSize = shardSize ?? rules.shardSize
            rules.caption = caption ?? rules.caption
            rules.label = label ?? rules.label
            rules.metadata = metadata ?? rules.metadata
            rules.identifiers = try identifiers(for: layout)
            return rules
        }
    }

    /// Refuses flags of other layouts.
    private func check(_ layout: ExportLayout) throws {
        for (flag, isGiven, owner) in [
            ("--shard-size", shardSize != nil, ExportLayout.webdataset),
            ("--label", label != nil, .imagefolder), ("--metadata", metadata != nil, .imagefolder),
        ] where isGiven && layout != owner {
            throw ValidationError("\(flag) needs --layout \(owner.rawValue)")
        }
    }

    /// The flags that name an attribute or column.
    var details: [(flag: String, name: String)] {
        [("--caption", caption), ("--label", label)].compactMap { flag, name in
            name.map { (flag, $0) }
        }
    }

    private func identifiers(for layout: ExportLayout) throws -> [String: String] {
        guard identifier.isEmpty || layout.takesIdentifiers else {
            let names = ExportLayout.allCases.filter(\.takesIdentifiers).map(\.rawValue)
            throw ValidationError("--identifier needs \(names.listed(with: "or")) as the layout")
        }
        var identifiers: [String: String] = [:]
        for text in identifier {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw ValidationError("--identifier takes VARIANT=TEXT, not '\(text)'")
            }
            let name = String(text[..<equals])
            guard variant.contains(name) || name == VariantName.main.text && variant.isEmpty else {
                throw ValidationError("--identifier \(name): --variant does not name it")
            }
            identifiers[name] = String(text[text.index(after: equals)...])
        }
        return identifiers
    }
}

/// Flags of `export` about the folder: its files, and the files that it keeps.
struct ExportFolderOptions: ParsableArguments {
    @Flag(
        name: .customLong("link"),
        help: "Make hard links to the cache's files where possible. Never change such files.")
    var links = false

    @Flag(help: "Change the folder in place; keep files that are not exported now.")
    var update = false

    @Flag(help: "With --update: remove files of earlier exports that are not exported now.")
    var delete = false

    @Flag(name: .customLong("allow-empty"), help: "Export an empty folder if there are no images.")
    var allowsEmpty = false

    @Flag(DiskFlags.flags.allowsPartialLists) var allowsPartialLists: Bool

    @Option(help: .value("mode", "The mode of the files (default: 0666 less the umask)."))
    var mode: FileMode?

    var removesFiles: Bool { delete || !update }

    func validate() throws {
        guard update || !delete else { throw ValidationError("--delete needs --update") }
    }

    func settings(_ gap: ListGap?) -> ExportTree.Options {
        var settings = ExportTree.Options()
        settings.updates = update
        settings.deletes = delete
        settings.gap = gap
        settings.links = links
        settings.mode = mode
        return settings
    }
}

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
            "name", "The attribute or column with the captions of webdataset (default: caption)."))
    var caption: String?

    @Option(
        help: .value(
            "name", "The attribute or column with the labels of imagefolder (default: class)."))
    var label: String?

    @Option(help: .value("format", "The metadata of imagefolder (default: jsonl)."))
    var metadata: ImageFolderMetadata?

    private static let largestShard = 1_000_000

    func validate() throws {
        guard (1...ExportOptions.largestShard).contains(shardSize ?? 1) else {
            throw ValidationError("--shard-size must be from 1 to \(ExportOptions.largestShard)")
        }
        _ = try rules
    }

    var rules: ExportRules {
        get throws {
            guard let layout = layout ?? (pattern == nil ? nil : .pattern) else {
                let names = ExportLayout.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("--layout is missing; it is \(names)")
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
            ("--caption", caption != nil, .webdataset), ("--label", label != nil, .imagefolder),
            ("--metadata", metadata != nil, .imagefolder),
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

/// Flags of `export` about its maps: the path of each image's file.
struct ExportMapOptions: ParsableArguments {
    @Option(
        help: .value("file", "Write a table of URL, variant, path, width, height and SHA-256."),
        completion: .file())
    var map: String?

    @Option(
        name: .customLong("map-json"),
        help: .value("file", "The same as JSON Lines."), completion: .file())
    var mapJSON: String?

    var files: [WrittenFiles.Use] {
        WrittenFiles.uses([("--map", map), ("--map-json", mapJSON)])
    }

    /// Checks that the maps can be written.
    ///
    /// - Throws: also for a map in the exported folder.
    func check(outside folder: String) throws {
        for file in files.map(\.path) where file != "-" {
            guard !WrittenFiles.isInside(file, folder: folder) else {
                throw UserError(
                    .usage, "\(file): a map cannot be in the exported folder",
                    hint: "name a file outside of \(folder)")
            }
            try FilePlace(file).checkReplacing()
        }
    }

    func write(_ rows: [ExportPlan.Row]) throws {
        for (path, bytes) in [(map, Self.table), (mapJSON, Self.jsonLines)] {
            if let path { try OutputFile.replace(path, with: bytes(rows)) }
        }
    }

    /// Values separated by tabs, under a row of names. In a path, control characters are
    /// percent-encoded.
    private static func table(_ rows: [ExportPlan.Row]) -> [UInt8] {
        var text = "url\tvariant\tpath\twidth\theight\tsha256\n"
        for row in rows {
            let stored = row.image.stored
            let width = stored.knownWidth.map(String.init) ?? ""
            let height = stored.knownHeight.map(String.init) ?? ""
            text +=
                "\(row.image.url)\t\(row.image.variant)\t\(encoded(row.path))\t\(width)\t\(height)"
            text += "\t\(stored.digest)\n"
        }
        return Array(text.utf8)
    }

    private static func encoded(_ path: String) -> String {
        guard path.utf8.contains(where: { $0 < 0x20 }) else { return path }
        return path.unicodeScalars.map { scalar in
            scalar.value < 0x20
                ? URLParts.percentEncoded(UInt8(scalar.value)) : String(scalar)
        }.joined()
    }

    private static func jsonLines(_ rows: [ExportPlan.Row]) -> [UInt8] {
        var lines: [UInt8] = []
        for row in rows {
            var object = JSONObject()
            object.add("url", row.image.url)
            object.add("variant", row.image.variant)
            object.add("path", row.path)
            object.add("width", row.image.stored.knownWidth)
            object.add("height", row.image.stored.knownHeight)
            object.add("sha256", row.image.stored.digest.description)
            lines += object.bytes
            lines.append(UInt8(ascii: "\n"))
        }
        return lines
    }
}

import ArgumentParser
import Exporting
import PrefetchModel

extension ExportLayout: ExpressibleByArgument {}
extension ImageFolderMetadata: ExpressibleByArgument {}

/// Flags of `export` about the names of files.
struct ExportOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The arrangement of the files.", valueName: "layout"))
    var layout: ExportLayout?

    @Option(
        help: ArgumentHelp(
            "A variant to export; repeatable (default: main).", valueName: "name"))
    var variant: [String] = []

    @Option(
        name: .customLong("name"),
        help: ArgumentHelp(
            """
            The pattern of file names, like '{host}/{stem}-{variant}-{width}w.{ext}'; implies \
            --layout pattern.
            """, valueName: "pattern"))
    var pattern: String?

    @Option(
        help: ArgumentHelp(
            """
            The transformer's identifier by which the app-side loader asks for a variant; \
            repeatable.
            """, valueName: "variant=text"))
    var identifier: [String] = []

    @Flag(
        name: .customLong("case-insensitive"),
        help: "Make names that differ on Windows and macOS, too.")
    var isCaseInsensitive = false

    @Option(
        name: .customLong("shard-size"),
        help: ArgumentHelp("Samples per shard of webdataset.", valueName: "n"))
    var shardSize = 10_000

    @Option(
        help: ArgumentHelp(
            "The attribute or column with the captions of webdataset.", valueName: "name"))
    var caption = "caption"

    @Option(
        help: ArgumentHelp(
            "The attribute or column with the labels of imagefolder.", valueName: "name"))
    var label = "class"

    @Option(help: ArgumentHelp("The metadata of imagefolder.", valueName: "format"))
    var metadata = ImageFolderMetadata.jsonl

    private static let largestShard = 1_000_000

    func validate() throws {
        guard (1...ExportOptions.largestShard).contains(shardSize) else {
            throw ValidationError(
                "--shard-size must be from 1 to \(ExportOptions.largestShard)")
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
            var rules = ExportRules(layout: layout)
            if let pattern {
                do throws(NamePattern.Mistake) {
                    rules.pattern = try NamePattern(pattern)
                } catch {
                    throw ValidationError("--name '\(pattern)': \(error.message)")
                }
            }
            rules.isCaseInsensitive = isCaseInsensitive
            rules.shardSize = shardSize
            rules.caption = caption
            rules.label = label
            rules.metadata = metadata
            rules.identifiers = try identifiers(for: layout)
            return rules
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

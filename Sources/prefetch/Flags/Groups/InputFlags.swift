import ArgumentParser
import ConfigurationFiles
import Manifests
import Pipeline
import PrefetchModel
import URLParsing

/// Flags about the manifests that a command reads.
struct InputFlags: FlagRows {
    static let flags = FlagTable(InputFlags())

    let format = RunFlag<ManifestFormat>(
        "format", value: "format", default: .auto,
        help: """
            Format of the manifests: one URL per line, a table, JSON lines, or a sitemap; auto \
            finds it for each, and refuses web pages, images and other data.
            """, inProjects: .refused)

    let urlColumns = RunFlag<[String]>(
        repeatable: "url-column", value: "name",
        help: """
            Column of a table, or member of JSON objects, with the URL; by default image_url, url \
            and similar names. Several columns are an entry each.
            """, inProjects: .refused)

    let readsEachURL = RunFlag<Bool>(
        "each", help: "Each of several URLs in a cell or JSON array is an entry.",
        inProjects: .refused)

    let maximumRowSize = RunFlag<ByteCount>(
        "max-row-size", value: "size", default: ByteCount(ManifestOptions().maximumLineBytes),
        help: "Longest line or row of a manifest.", inProjects: .refused,
        check: .atLeast(ByteCount(1 << 10), "1KiB"))

    let columns = RunFlag<[String]>(
        repeatable: "column", value: "field=name",
        help: """
            Column or member with the values of a field; repeatable. FIELD= alone makes the column \
            of that name an ordinary one.
            """, inProjects: .refused)

    let hasNoHeader = RunFlag<Bool>(
        "no-header",
        help: "Tables have no row of names; columns are numbers, and the URL's is 1.",
        inProjects: .refused)

    let readsPages = RunFlag<Bool>(
        "sitemap-pages", help: "Sitemaps list the URLs of their pages, too.",
        inProjects: .refused)

    let baseURL = RunFlag<String?>(
        "base-url", value: "url", help: "Base URL of relative entries.",
        inProjects: .refused, check: ValueCheck(mistake: InputFlags.mistake(inBase:)))

    let keys = KeyFlags()
    let files = LocalFileFlags()

    static func combined(_ flags: Flags<InputFlags>) throws -> ColumnRules {
        if flags.urlColumns.contains("") { throw ValidationError("--url-column needs a name") }
        var rules = ColumnRules(urlColumns: flags.urlColumns, hasHeader: !flags.hasNoHeader)
        for text in flags.columns {
            guard let equals = text.firstIndex(of: "=") else {
                throw ValidationError("--column takes FIELD=NAME, like key=id")
            }
            let field = String(text[..<equals])
            let column = String(text[text.index(after: equals)...])
            // With --url-column it is the column of another URL.
            if field == "url", rules.urlColumns.isEmpty {
                rules.urlColumns = [column]
            } else {
                guard ColumnRules.isField(field) else {
                    throw ValidationError("--column: unknown field '\(field)'")
                }
                guard column.isEmpty || !rules.columns.values.contains(column) else {
                    throw ValidationError("--column assigns '\(column)' twice")
                }
                guard rules.columns.updateValue(column, forKey: field) == nil else {
                    throw ValidationError("--column names '\(field)' twice")
                }
            }
        }
        return rules
    }

    /// The mistake in a base URL. The manifest's reader reports a missing library.
    static func mistake(inBase url: String) -> String? {
        do throws(URLParsingError) {
            _ = try URLParser(baseURL: url)
        } catch .invalid {
            return "takes an absolute http or https URL, like https://example.com/a/"
        } catch {}
        return nil
    }
}

/// The flag of commands that look for an image by its URL.
struct KeyFlags: FlagRows {
    static let flags = FlagTable(KeyFlags())

    let ignoredQuery = RunFlag<IgnoredQuery?>(
        "key-ignore-query", value: "names",
        help: """
            Parameters of queries that keys leave out, such as utm_*,token; without names the whole \
            query. URLs that differ only in them are one image.
            """, inProjects: .refused
    ) { $0.run.entries.ignoredQuery = $1 }
}

/// The flag about sources besides HTTP.
struct LocalFileFlags: FlagRows {
    static let flags = FlagTable(LocalFileFlags())

    let filesBelow = RunFlag<String?>(
        "files-below", value: "dir",
        help: """
            Also take file: URLs of lists that are named here, for files below this folder; links \
            are followed inside it. Lists by URL and redirects never name files.
            """, inProjects: .refused, check: .path
    ) { $0.run.requests.filesBelow = $1 }
}

/// The flag of other commands than `run` for lists at URLs.
struct ListSourceFlags: FlagRows {
    static let flags = FlagTable(ListSourceFlags())

    let lists = RunFlag<[String]>(
        repeatable: "list", value: "url",
        help: """
            Also read the list at this URL, as runs have copied it into the cache, or in this file; \
            repeatable.
            """, isConfigurable: false, inProjects: .refused)
}

/// The flags of `[list.NAME]`, which a run applies to the entries of that list.
struct NamedListFlags: FlagRows {
    static let flags = FlagTable(NamedListFlags())

    let input = InputFlags()
    let acceptedFormats = SenderFlags.flags.acceptedFormats

    static func combined(_ flags: Flags<NamedListFlags>) throws -> ColumnRules {
        try InputFlags.combined(flags.input)
    }
}

extension Flags<NamedListFlags> {
    func apply(to options: inout ManifestOptions) {
        self.input.apply(to: &options, combined)
        options.listDefaults.headers =
            self.acceptedFormats.map {
                [HeaderField(name: "Accept", value: $0.field)]
            } ?? []
    }
}

extension Flags<InputFlags> {
    /// `variants` are the run's; entries are checked against them. `keepsColumns`: whether the
    /// columns that are no fields are wanted.
    func manifestOptions(
        variants: VariantSet? = nil, keepsColumns: Bool = false,
        selection: EntrySelection = EntrySelection()
    ) -> ManifestOptions {
        var options = ManifestOptions()
        apply(to: &options, combined)
        options.localSchemes = [.data, self.files.filesBelow == nil ? .fileByFlag : .file]
        options.keepsColumns = keepsColumns
        options.selection = selection
        options.ignoredQuery = self.keys.ignoredQuery ?? .none
        options.variants = variants
        return options
    }

    /// Sets the options that may differ between the lists of a run.
    fileprivate func apply(to options: inout ManifestOptions, _ columns: ColumnRules) {
        options.format = self.format
        options.baseURL = self.baseURL
        options.columns = columns
        options.readsEachURL = self.readsEachURL
        options.maximumLineBytes = self.maximumRowSize.bytes
        options.readsPages = self.readsPages
    }
}

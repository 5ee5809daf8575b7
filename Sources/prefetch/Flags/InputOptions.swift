import ArgumentParser
import Manifests
import PrefetchModel
import URLParsing

/// Flags about the manifests that a command reads.
struct InputOptions: ParsableArguments {
    @Option(RunFlags.format) var format: ManifestFormat
    @Option(RunFlags.urlColumn) var urlColumn: String?
    @Option(RunFlags.column) var columns: [String]
    @Flag(RunFlags.noHeader) var hasNoHeader: Bool
    @Flag(RunFlags.sitemapPages) var readsPages: Bool
    @Option(RunFlags.baseURL) var baseURL: String?
    @Option(RunFlags.keyIgnoreQuery) var ignoredQuery: IgnoredQuery?

    func validate() throws {
        _ = try columnRules
        guard let baseURL else { return }
        do throws(URLParsingError) {
            _ = try URLParser(baseURL: baseURL)
        } catch {
            switch error {
            case .invalid:
                throw ValidationError(
                    "--base-url takes an absolute http or https URL, like https://example.com/a/")
            case .missingLibrary:
                // Not a usage error. The manifest's reader reports it.
                break
            }
        }
    }

    private var columnRules: ColumnRules {
        get throws {
            if urlColumn?.isEmpty == true { throw ValidationError("--url-column needs a name") }
            var rules = ColumnRules(urlColumn: urlColumn, hasHeader: !hasNoHeader)
            for text in columns {
                guard let equals = text.firstIndex(of: "=") else {
                    throw ValidationError("--column takes FIELD=NAME, like key=id")
                }
                let field = String(text[..<equals])
                let column = String(text[text.index(after: equals)...])
                // Beside --url-column it is the column of another URL.
                if field == "url", rules.urlColumn == nil {
                    rules.urlColumn = column
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
    }

    /// `variants` are the run's; entries are checked against them. `keepsColumns`: whether the
    /// columns that are no fields are wanted.
    func manifestOptions(
        variants: VariantSet? = nil, keepsColumns: Bool = false,
        selection: EntrySelection = EntrySelection()
    ) throws -> ManifestOptions {
        ManifestOptions(
            format: format, baseURL: baseURL, columns: try columnRules, readsPages: readsPages,
            keepsColumns: keepsColumns, selection: selection, ignoredQuery: ignoredQuery ?? .none,
            variants: variants)
    }
}

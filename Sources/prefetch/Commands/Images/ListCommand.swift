import ArgumentParser
import CacheStorage
import FileOutput
import PrefetchModel
import Reporting
import Upkeep

struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the images in the cache.",
        discussion: """
            One line per stored variant, sorted by key unless --sort is given: fresh or stale, expiry \
            (`-` if it must be validated at every use), format, width and height in pixels, bytes, \
            path, and cache key. The variant's name follows if it is not main, and `superseded` if a \
            later run has stored another variant of that name. Keys are printed with any secrets in \
            their query strings.

            On a terminal the columns are aligned under a header; elsewhere they are tab-separated.

            Examples:
              prefetch list --host example.com --expired
              prefetch list --sort bytes --limit 20
              prefetch list --expires-within 1d --json | jq -r .url
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(
        help: """
            Print JSON Lines, with attributes, response metadata, and the reason and end of a \
            blacklisting.
            """)
    var json = false

    @Flag(
        name: .customLong("absolute-paths"),
        help: "Print absolute paths instead of paths relative to the cache directory.")
    var printsAbsolutePaths = false

    @OptionGroup var options: ListOptions

    private static let columns: [PrintedColumn] = [
        .text("STATE"), .text("EXPIRES"), .text("FORMAT"), .number("SIZE"), .number("BYTES"),
        .text("PATH"), .text("KEY"),
    ]

    func run() throws {
        let catalog = try cache.catalog()
        let now = WallClock.now()
        let prefix = printsAbsolutePaths ? try cache.absolutePath() + "/" : ""
        let selection = try options.selection(in: catalog, at: now)
        if json {
            var lines = LineWriter.standardOutput()
            try catalog.forEachItem(of: selection) { item in
                var object = JSONObject(item, attributes: item.attributes, at: now)
                object.add("superseded", item.isSuperseded)
                object.add("path", prefix + item.image.relativePath)
                object.add("reason", item.failure?.reason.rawValue)
                object.add("blacklisted_until", item.failure?.blacklistEnd(at: now))
                try lines.write(object)
            }
            return try lines.finish()
        }
        var table = ColumnWriter(ListCommand.columns)
        var output = RowWriter(.standardOutput())
        let shownPrefix = printable(prefix, shortensData: false)
        let freshness = ListSelection.FreshnessTest(fresh: true, at: now)
        try catalog.forEachRow(of: selection) { row in
            try output.append(row, prefix: shownPrefix, freshness: freshness)
            if table.isForPeople {
                try table.write(row: output.takeCells())
            } else {
                output.endLine()
            }
        }
        try output.flush()
        try table.finish()
    }
}

extension RowWriter {
    /// Appends the cells of a line, without its end.
    fileprivate mutating func append(
        _ row: CacheCatalog.ListRow, prefix: String, freshness: ListSelection.FreshnessTest
    ) throws(OutputError) {
        // Nearly every key is plain ASCII.
        let key =
            isPlain(row.key)
            ? nil
            : Array(printable(String(decoding: row.key, as: UTF8.self), shortensData: false).utf8)
        let names = row.name?.utf8.count ?? 1
        try beginLine(
            most: RowWriter.mostCells * RowWriter.mostFieldBytes + prefix.utf8.count
                + (key?.count ?? row.key.count) + names)
        let isFresh = freshness.holds(validatedAt: row.validatedAt, expiresAt: row.expiresAt)
        append(isFresh ? "fresh" : "stale")
        separate()
        if row.isValidatedAtEveryUse { append("-") } else { append(row.expiresAt) }
        separate()
        append(row.format.rawValue)
        separate()
        if row.widthInPixels == 0 {
            append("-")
        } else {
            append(row.widthInPixels)
            append(UInt8(ascii: "x"))
            append(row.heightInPixels)
        }
        separate()
        append(row.sizeInBytes)
        separate()
        append(prefix)
        append(pathOf: row.digest, format: row.format)
        separate()
        if let key { key.withUnsafeBytes { append($0) } } else { append(row.key) }
        if row.isSuperseded {
            separate()
            append(row.name ?? "-")
            separate()
            append("superseded")
        } else if let name = row.name, name != VariantName.main.text {
            separate()
            append(name)
        }
    }

    private static let mostCells = 10
}

import ArgumentParser
import CachePolicy
import CacheStorage
import Glibc
import Pipeline
import PrefetchModel
import Reporting

/// `prefetch list`
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List the images in the cache.",
        discussion: """
            One line per stored image, sorted by key: fresh or stale, expiry (`-` if it has to be \
            validated at every use), format, width and height in pixels, bytes, path, cache key, and \
            the variant's name where it is not main; of a variant that no longer has its name, since a later \
            run made another one by it, the name and `superseded`. Keys are printed whole, secrets in \
            their query strings included.

            On a terminal the columns are aligned under a header; elsewhere they are separated by tabs.

            Examples:
              prefetch list --host example.com
              prefetch list --json | jq -r 'select(.fresh | not) | .url'
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(
        help: """
            Print JSON Lines, with attributes, what is known of the response, and why and until when a \
            URL is blocked.
            """)
    var json = false

    @Flag(
        name: .customLong("absolute-paths"),
        help: "Print absolute paths instead of paths relative to the cache directory.")
    var printsAbsolutePaths = false

    @OptionGroup var hosts: HostFilter

    private static let columns: [ColumnWriter.Column] = [
        .text("STATE"), .text("EXPIRES"), .text("FORMAT"), .number("SIZE"), .number("BYTES"),
        .text("PATH"), .text("KEY"),
    ]

    func run() throws {
        let catalog = try cache.catalog()
        let now = WallClock.now()
        let prefix = printsAbsolutePaths ? try cache.absolutePath() + "/" : ""
        var lines = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        var table = ColumnWriter(ListCommand.columns)
        try writing {
            try catalog.forEachVariant(withAttributes: json) { item in
                guard hosts.includes(origin: item.resource.host) else { return }
                if json {
                    var object = JSONObject(item, attributes: item.attributes, at: now)
                    object.add("superseded", item.isSuperseded)
                    object.add("path", prefix + item.image.relativePath)
                    object.add("reason", item.failure?.reason.rawValue)
                    object.add("blocked_until", item.failure?.nextTry(at: now))
                    try lines.write(object)
                } else {
                    try table.write(row: cells(item, prefix: prefix, at: now))
                }
            }
            try lines.finish()
            try table.finish()
        }
    }

    private func cells(
        _ item: CacheCatalog.Item, prefix: String, at time: Timestamp
    ) -> [String] {
        [
            item.standing(at: time) == .fresh ? "fresh" : "stale",
            item.isValidatedAtEveryUse ? "-" : item.expiresAt.description,
            item.image.format.rawValue,
            item.image.knownWidth == nil
                ? "-" : "\(item.image.widthInPixels)x\(item.image.heightInPixels)",
            "\(item.image.size.bytes)",
            printable(prefix + item.image.relativePath),
            printable(item.resource.key),
        ] + remarks(on: item)
    }

    private func remarks(on item: CacheCatalog.Item) -> [String] {
        if item.isSuperseded { return [item.name ?? "-", "superseded"] }
        return [item.name].compactMap(\.self).filter { $0 != VariantName.main.text }
    }
}

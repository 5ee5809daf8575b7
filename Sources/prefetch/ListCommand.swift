import ArgumentParser
import CacheStorage
import Glibc
import Pipeline
import PrefetchModel
import Reporting

/// `prefetch list`
struct ListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List what the cache holds.",
        discussion: """
            One line a stored image, ordered by key, with tabs between the columns: fresh or stale, \
            expiry (`-` for an image to be validated at every use), format, width and height, bytes, \
            path in the cache, key.
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(help: "Print JSON Lines, with the images' attributes.")
    var json = false

    @Flag(
        name: .customLong("absolute-paths"),
        help: "Print absolute paths instead of paths relative to the cache directory.")
    var printsAbsolutePaths = false

    func run() throws {
        let catalog = try cache.catalog()
        let now = WallClock.now()
        let prefix = printsAbsolutePaths ? try cache.absolutePath() + "/" : ""
        var output = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        try writing {
            try catalog.forEachVariant(withAttributes: json) { item in
                if json {
                    var object = JSONObject(item, attributes: item.attributes, at: now)
                    object.add("path", prefix + item.image.relativePath)
                    object.add("reason", item.failure?.reason.rawValue)
                    object.add("blocked_until", item.failure?.nextTry(at: now))
                    try output.write(object)
                } else {
                    try output.write(line: line(item, prefix: prefix, at: now))
                }
            }
            try output.finish()
        }
    }

    private func line(_ item: CacheCatalog.Item, prefix: String, at time: Timestamp) -> String {
        [
            item.standing(at: time) == .fresh ? "fresh" : "stale",
            item.isValidatedAtEveryUse ? "-" : item.expiresAt.description,
            item.image.format.rawValue,
            "\(item.image.widthInPixels)x\(item.image.heightInPixels)",
            "\(item.image.size.bytes)",
            printable(prefix + item.image.relativePath),
            printable(item.resource.key),
        ].joined(separator: "\t")
    }
}

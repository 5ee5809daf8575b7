import ArgumentParser
import CacheStorage
import PrefetchModel
import Reporting
import Upkeep

struct PlaceholdersCommand: SearchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "placeholders",
        abstract: "Make missing placeholders of stored images.",
        discussion: """
            Decodes stored images that lack the attributes prefetch.thumbhash and prefetch.color, and \
            sets them, without any request. Runs make them for every image they decode, so this is \
            for images stored with --no-placeholders. An interrupted command continues at the next \
            call.

            Images with damaged or undecodable files are listed; the others are processed.

            Examples:
              prefetch placeholders
              prefetch placeholders --dry-run

            Exit status: 0 done, 1 no cache, or an image failed, 2 the cache cannot be used, 64 wrong \
            usage, 75 another process holds the cache.
            """)

    @OptionGroup var options: ChangeOptions

    @Flag(
        name: [.customShort("n"), .customLong("dry-run")],
        help: "Change nothing; print the number of images without placeholders.")
    var isDryRun = false

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    func run() throws {
        guard !isDryRun else {
            let count = try options.cache.catalog().countWithoutPlaceholder()
            return try LineWriter.print(["\(count)"])
        }
        let progress = try options.change { cache in
            var line = ProgressText(isWanted: !quiet)
            let filling = try PlaceholderFilling(
                cache, workers: AvailableProcessors.count, at: WallClock.now())
            defer { line.clear() }
            return try filling.run { progress, failures in
                line.clear()
                for failure in failures {
                    StandardError.write(
                        "prefetch: \(RedactedURL(failure.key)): \(redacted(failure.message))")
                }
                line.show("prefetch: \(progress.done)/\(progress.total) placeholders")
            }
        }
        if !quiet { StandardError.write("prefetch: \(PlaceholdersCommand.text(progress))") }
        if progress.failed > 0 { throw UserError(.incomplete, "") }
    }

    /// `12 placeholders made, 1 image failed, 2 of formats that are not decoded`
    private static func text(_ progress: PlaceholderFilling.FillingProgress) -> String {
        var parts = ["\(counted(progress.made, "placeholder")) made"]
        if progress.failed > 0 {
            parts.append("\(counted(progress.failed, "image")) failed")
        }
        if progress.skipped > 0 {
            parts.append("\(progress.skipped) of formats that are not decoded")
        }
        return parts.joined(separator: ", ")
    }
}
